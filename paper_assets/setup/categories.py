"""The categories of arXiv: their codes and names, and which of them fit a reader's words or papers.

To add a category, add a line to `arxiv_categories.tsv`: code, name, and what its papers are about, as short phrases
between commas. An interest is compared with each phrase, so a phrase should read like an interest.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from paper_assets.errors import InvalidInput
from paper_assets.text.words import asks, stem, words_in

MOST_PROPOSED = 4
_MACHINE_LEARNING = "cs.LG"
_NEAR_MACHINE_LEARNING = ("cs", "stat", "eess")  # archives whose papers on methods are often filed under cs.LG too
_LEAST_SHARE = 0.15  # of the similar papers; a category of fewer comes from cross-listing


@dataclass(frozen=True, slots=True)
class Category:
    """A category of arXiv. `subjects`: phrases between commas that say what its papers are about."""

    code: str
    name: str
    subjects: str

    def __str__(self) -> str:
        return f"{self.code} {self.name}"

    @property
    def phrases(self) -> tuple[str, ...]:
        """The name and each subject: the texts that interests are compared with."""
        return (self.name, *(phrase.strip() for phrase in self.subjects.split(",") if phrase.strip()))


@cache
def all_categories() -> Mapping[str, Category]:
    """Return every category by its code, in the order of the file: computer science first."""
    text = (files("paper_assets.setup") / "arxiv_categories.tsv").read_text(encoding="utf-8")
    categories = [Category(*line.split("\t")) for line in text.splitlines() if line]
    return {each.code: each for each in categories}


def category_name(code: str) -> str:
    """Return `cs.CL Computation and Language`; a code that is unknown here stays as it is."""
    category = all_categories().get(code)
    return str(category) if category else code


@cache
def categories_by_name() -> Mapping[str, str]:
    """Return the codes of all categories by code and by name, in lower case."""
    return {name.casefold(): each.code for each in all_categories().values() for name in (each.name, each.code)}


def check_category(text: str) -> str:
    """Return the code of a category given by code or name in any case. Raises InvalidInput that names similar ones."""
    if code := _code_of(text):
        return code
    wanted = text.strip().casefold()
    archive = wanted.partition(".")[0]
    similar = [str(each) for each in all_categories().values() if each.code.casefold().partition(".")[0] == archive]
    similar = similar or [str(each) for each in by_words([text])]
    hint = f"; for example {', '.join(similar[:3])}" if similar else "; https://arxiv.org/category_taxonomy lists them"
    raise InvalidInput(f"{text.strip()[:40]!r} is not a category of arXiv{hint}")


def read_categories(text: str) -> tuple[str, ...]:
    """Return the codes of categories by code or name, separated by commas, lines or (codes only) blanks.

    Raises InvalidInput.
    """
    if _code_of(text):
        return (check_category(text),)
    parts = [part for part in re.split(r"[,;\n]", text) if part.strip()]
    words = [[part] if _code_of(part) or "." not in part else part.split() for part in parts]
    return tuple(dict.fromkeys(check_category(word) for of_part in words for word in of_part))


def _code_of(text: str) -> str | None:
    return categories_by_name().get(" ".join(text.split()).casefold())


def excluded_categories(text: str) -> tuple[str, ...]:
    """Return categories to exclude as a profile has them: `primary:` before one excludes by the first category only."""
    only = text.strip().casefold().startswith("primary:")
    codes = read_categories(text.strip()[len("primary:") :] if only else text)
    return tuple(f"primary:{code}" if only else code for code in codes)


def by_votes(papers: Sequence[Sequence[str]]) -> list[Category]:
    """Propose the categories that similar papers have, most frequent first; the first of a paper's counts double."""
    votes: Counter[str] = Counter()
    for listed in papers:
        for place, code in enumerate(listed):
            votes[code] += 2 if place == 0 else 1
    least = _LEAST_SHARE * 2 * len(papers)
    categories = all_categories()
    codes = [code for code, count in votes.most_common() if count >= least and code in categories]
    return [categories[code] for code in codes[:MOST_PROPOSED]]


def with_machine_learning(named: Sequence[Category]) -> list[Category]:
    """Add cs.LG to categories that were proposed by name alone, where one is of a neighbouring archive.

    A name shows the subject, not where papers are filed: most papers that forecast traffic are in cs.LG, which no word
    of "traffic forecasting" suggests. A list without the papers costs the reader more than a category too many.
    """
    near = any(each.code.partition(".")[0] in _NEAR_MACHINE_LEARNING for each in named)
    return list(dict.fromkeys([*named, all_categories()[_MACHINE_LEARNING]])) if near else list(named)


def by_words(texts: Sequence[str]) -> list[Category]:
    """Propose the categories whose names and subjects share most words with the texts; none where no word is shared."""
    asked = {stem(word) for text in texts for word in words_in(text) if asks(word)}
    scored = [
        (len(asked & {stem(word) for word in words_in(" ".join(each.phrases)) if asks(word)}), -place, each)
        for place, each in enumerate(all_categories().values())
    ]
    best = sorted((each for each in scored if each[0]), reverse=True, key=lambda each: each[:2])
    return [each for _, _, each in best[: MOST_PROPOSED - 1]]
