"""Find preferences without effect: names and keywords of a profile that match no recent paper, or contradict each other
(SPEC G18).

Callers check the preferences against the candidates first, and only the rest against all papers of the last `DAYS`
days, which takes longer. This module reads no store.

To add a kind of preference: add a field to `Preferences`, its test to `unmatched_preferences` and its sentence to
`sentences`.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.profile import ProfileContent
from paper_assets.ranking.keywords import distinct, implied_by, keywords_in, matching_nothing, paper_texts
from paper_assets.text.names import maybe_same_person

DAYS: Final = 30
UNMET: Final = f"no paper of the last {DAYS} days"  # begins each sentence of what is without a match
CONTRADICTED: Final = "the preferred keyword"  # begins each sentence on a preferred keyword that is excluded too
POWERLESS: Final = "the excluded keyword"  # begins each sentence on one that can match no text
_PATTERN = re.compile(r"\.[*+?]|\\[bdswBDSW]|\*(?=.*\w)|\w\|\w|\[\^?\w|[\w)]\$$|^\^\w")  # of a regular expression
_AS_WORDS = "keywords are words, not patterns; a star stands for the rest of the last word only (GPT-4*)"
_FOR_TEXTS = ("title", "abstract")
_FOR_PEOPLE = ("authors", "affiliations")


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedPreferences:
    """The preferences of a profile, as written in it."""

    authors: tuple[str, ...]
    institutions: tuple[str, ...]
    must_keywords: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.authors or self.institutions or self.must_keywords)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a table of papers that `unmatched_preferences` needs for these preferences."""
        return (
            *(_FOR_PEOPLE if self.authors or self.institutions else ()),
            *(_FOR_TEXTS if self.must_keywords else ()),
        )


def preferences_of(content: ProfileContent) -> StatedPreferences:
    """Return the preferences of a profile, each once."""
    return StatedPreferences(
        authors=tuple(dict.fromkeys(content.preferred_authors)),
        institutions=tuple(dict.fromkeys(content.preferred_institutions)),
        must_keywords=(*distinct(content.keywords.must_include), *matching_nothing(content.keywords.must_include)),
    )


def unmatched_preferences(preferences: StatedPreferences, papers: pa.Table) -> StatedPreferences:
    """Return the preferences that match no paper of the table, which has at least the `columns` of the preferences."""
    return StatedPreferences(
        authors=_without_match(
            preferences.authors, lambda asked: maybe_same_person(_names(papers, "authors").to_pylist(), asked)
        ),
        institutions=_without_match(
            preferences.institutions,
            lambda asked: keywords_in(pa.chunked_array([_names(papers, "affiliations")]), asked),
        ),
        must_keywords=_without_match(preferences.must_keywords, lambda asked: keywords_in(paper_texts(papers), asked)),
    )


def sentences(preferences: StatedPreferences, papers: pa.Table) -> list[str]:
    """Return sentences that name the preferences without a match in `papers`, those of the last `DAYS` days.

    Empty if there are no papers, or every preference has a match.
    """
    left = unmatched_preferences(preferences, papers) if papers.num_rows else None
    if not left:
        return []
    texts = []
    if left.authors:
        texts.append(f"{UNMET} is by {_listed(left.authors)}")
    if left.institutions and not len(_names(papers, "affiliations")):
        texts.append(
            f"{UNMET} has an affiliation, so none counts as from {_listed(left.institutions)}: arXiv supplies none; "
            "PAPER_ASSETS_SEMANTIC_SCHOLAR=on fills them"
        )
    elif left.institutions:
        texts.append(f"{UNMET} is from {_listed(left.institutions)}")
    if left.must_keywords:
        texts.append(f"{UNMET} contains the must keyword {_listed(left.must_keywords)}")
    return texts


def contradictions(content: ProfileContent) -> list[str]:
    """Return sentences that name the preferred keywords whose papers an excluded or avoided keyword always matches, and
    the excluded and avoided keywords that can match no text.
    """
    keywords, texts = content.keywords, list[str]()
    excluded = [*keywords.exclude.hard, *keywords.exclude.soft]
    powerless = [*matching_nothing(excluded), *(each for each in excluded if _PATTERN.search(each))]
    texts += [f"{POWERLESS} {each} excludes nothing: {_AS_WORDS}" for each in dict.fromkeys(powerless)]
    for wanted in distinct(keywords.must_include):
        if hard := implied_by(wanted, keywords.exclude.hard):
            texts.append(
                f"{CONTRADICTED} {wanted} has no effect: papers with it are removed by the excluded keyword {hard[0]}"
            )
        elif soft := implied_by(wanted, keywords.exclude.soft, title=True, title_only=True):
            texts.append(
                f"{CONTRADICTED} {wanted} raises the score of a paper with it in the title, and the avoided keyword "
                f"{soft[0]} lowers it"
            )
    return texts


def unmatched_categories(followed: Sequence[str], papers: pa.Table) -> tuple[str, ...]:
    """Return the categories that no paper of the table is in."""
    stored = set(_names(papers, "categories").to_pylist()) if papers.num_rows else set()
    return tuple(category for category in dict.fromkeys(followed) if category not in stored)


def category_sentence(categories: Sequence[str]) -> str:
    """Return a sentence that names the categories without a paper in the last `DAYS` days."""
    return f"{UNMET} is in {_listed(categories)}; check how the category is written, or fetch its papers"


def _without_match(
    preferences: tuple[str, ...], found_in: Callable[[tuple[str, ...]], NDArray[np.bool_]]
) -> tuple[str, ...]:
    if not preferences:
        return ()
    met: NDArray[np.bool_] = np.logical_or.reduce(found_in(preferences), axis=0)
    return tuple(preference for preference, has_match in zip(preferences, met, strict=True) if not has_match)


def _names(papers: pa.Table, column: str) -> pa.Array:
    """Return every name in a column of lists, once."""
    return pc.unique(pc.list_flatten(papers.column(column).combine_chunks()))


def _listed(names: Sequence[str]) -> str:
    return " or ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} or {names[-1]}"
