"""Fit the coefficients that make relevance a probability.

    python -m benchmarks.calibrate --lists DIR [--lists DIR] --papers FILE [--write]

DIR holds `profiles.json` and `grades.json` (profile -> paper id -> grade 0 to 3; 2 and 3 are on topic), FILE papers as
`paper-assets import` takes them. Candidates are what the graph would rank on the newest judged day; one without a grade
counts as off topic. The background of the idf is all papers of the file. `evaluation/fitting.py` fits. `--write` puts
coefficients and background into the package.

Measure the coefficients on profiles that they were not fitted to by
`python -m benchmarks.evaluate --lists ... --leave-one-out`.
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation.final_lists import judged_day, newest_judged_day
from benchmarks.evaluation.fitting import fit, parts_of
from benchmarks.evaluation.judged_lists import load_judged_lists, scratch_warehouse
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import Paper
from paper_assets.ranking.calibration import (
    COEFFICIENTS,
    FREQUENCIES,
    WORDS,
    Calibration,
    Logit,
)
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.settings import ScoringConfig
from paper_assets.sources.bulk_files import read_papers
from paper_assets.text import acronyms
from paper_assets.text.words import asks, singular, stem, words_in

BACKGROUND_WEIGHT = 1000  # candidates; 300 to 3000 do as well, and without any twenty papers are misjudged
FEWEST_HOLDERS = 5  # a rarer word counts as unknown
LIKED = (1, 2, 3, 5, 8)  # relevant papers of one profile that are taken as liked
DRAWS = 2
DEADLINE = 600.0
FEWEST_DEFINITIONS, FEWEST_OF_LONG = 3, 2  # papers that define an acronym; the same for one of four letters or more
SAME_MEANING = 0.6  # of the papers that define it
AS_A_WORD = 0.1  # of the times in capitals that it may occur in small letters
_WORD = re.compile(r"[A-Za-z0-9]+")
_BRACKET = re.compile(
    r"\(\s*((?=\w*[A-Z])[A-Z0-9][A-Za-z0-9]*[A-Z0-9]s?|[A-Z]{2,}s?|[A-Z]+[a-z]+[A-Z][a-z]+s?)\s*[),;]"
)


def remembering(encode: Embed) -> Embed:
    """Return `encode` that embeds no text twice: readers of one week share their papers."""
    known: dict[str, NDArray[np.float32]] = {}

    def embed(texts: list[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        known.update(zip(new, encode(new), strict=True))
        return np.array([known[text] for text in texts])

    return embed


def background_of(papers: Sequence[Paper]) -> tuple[str, str]:
    """The lines of `stem_frequencies.tsv` and of `word_frequencies.tsv`."""
    stems, words = Counter[str](), Counter[str]()
    for paper in papers:
        held = {word for word in words_in(f"{paper.title} . {paper.abstract}") if asks(word)}
        stems.update({stem(word) for word in held})
        words.update({singular(word) for word in held})
    return _lines(stems), _lines(words)


def acronyms_of(papers: Sequence[Paper]) -> str:
    """Return the lines of `acronyms.tsv`: acronyms that enough papers define, mostly with one meaning, and that are
    rarely written in small letters, each with the first paper that taught it.
    """
    examples: dict[tuple[str, str], str] = {}
    defined: dict[str, Counter[str]] = {}
    written, as_words = Counter[str](), Counter[str]()
    for paper in papers:
        text = f"{paper.title} . {paper.abstract}"
        for acronym, meaning in {*_definitions_in(text)}:
            defined.setdefault(acronym, Counter())[meaning] += 1
            examples.setdefault((acronym, meaning), paper.paper_id)
        for word in _WORD.findall(text):
            (written if sum(map(str.isupper, word)) > 1 else as_words)[singular(word.lower())] += 1
    rows = []
    for acronym, meanings in sorted(defined.items()):
        by_words = Counter[tuple[str, ...]]()
        for meaning, count in meanings.items():
            by_words[tuple(map(singular, meaning.split()))] += count
        words, count = by_words.most_common(1)[0]
        fewest = FEWEST_OF_LONG if len(acronym) > 3 and len(words) > 1 else FEWEST_DEFINITIONS
        usual = count >= fewest and count >= SAME_MEANING * by_words.total()
        if usual and as_words[acronym] <= AS_A_WORD * (written[acronym] + 1):
            alike = [each for each in meanings if tuple(map(singular, each.split())) == words]
            meaning = max(alike, key=lambda each: (meanings[each], each))
            rows.append(f"{acronym}\t{meaning}\t{count}\t{examples[acronym, meaning]}\n")
    return "".join(rows)


def _definitions_in(text: str) -> Iterator[tuple[str, str]]:
    """Yield (acronym, meaning) of each "long form (LF)" in a text.

    The meaning is the words before the bracket if the acronym consists of their first letters. Otherwise it is found
    as by Schwartz and Hearst (2003): from the right, each letter of the acronym is matched, the first letter at the
    start of a word.
    """
    for bracket in _BRACKET.finditer(text):
        acronym = bracket[1].removesuffix("s").lower()
        words = words_in(text[: bracket.start()])
        last = words[-len(acronym) :]
        if "".join(word[0] for word in last) == acronym:
            yield acronym, " ".join(last)
            continue
        before = " ".join(words[-min(2 * len(acronym), len(acronym) + 5) :])
        at = len(before)
        for number, letter in reversed([*enumerate(acronym)]):
            at = before.rfind(letter, 0, at)
            while number == 0 and at > 0 and before[at - 1] != " ":
                at = before.rfind(letter, 0, at)
            if at < 0:
                break
        else:
            if acronym not in before[at:].split():
                yield acronym, before[at:]


def _lines(holders: Mapping[str, int]) -> str:
    return "".join(f"{one}\t{count}\n" for one, count in sorted(holders.items()) if count >= FEWEST_HOLDERS)


def record_of(calibration: Calibration) -> dict[str, Any]:
    """The content of `calibration.json`."""
    logits = {name: getattr(calibration, name) for name in Calibration.__slots__}
    return {
        "background_papers": calibration.background.papers,
        "background_weight": calibration.background.weight,
        "cosines": asdict(calibration.cosines),
        "library_cosines": asdict(calibration.library_cosines),
        "library_words": asdict(calibration.library_words),
        "best_matches": calibration.best_matches,
        "highest_scores": asdict(calibration.highest_scores),
        "best_cosines": asdict(calibration.best_cosines),
        "model": calibration.model,
        "library": {
            name: getattr(calibration, name) for name in ("library_base", "library_half", "library_share", "nearest")
        },
        "logits": {
            name: {part: round(value, 3) for part, value in asdict(logit).items() if part == "intercept" or value}
            for name, logit in logits.items()
            if isinstance(logit, Logit)
        },
    }


def main() -> None:
    """Fit, print, and keep if asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lists", type=Path, required=True, action="append")
    parser.add_argument("--papers", type=Path, required=True)
    parser.add_argument("--write", action="store_true", help="keep the coefficients in the package")
    asked = parser.parse_args()
    papers = list({paper.paper_id: paper for paper in read_papers(asked.papers)}.values())
    embed, scoring = remembering(load_embedder().encode), ScoringConfig()
    days = []
    with scratch_warehouse(papers, deadline=DEADLINE) as warehouse:
        for lists in map(load_judged_lists, asked.lists):
            as_of, _ = newest_judged_day(warehouse, lists)
            days += [
                judged_day(warehouse, each, as_of=as_of, purpose="general", embed=embed, scoring=scoring)
                for each in lists.profiles
            ]
    parts = [parts_of(day, embed=embed, scoring=scoring) for day in days]
    found = fit([each for each in parts if each], version="new")
    record = record_of(found)
    print(json.dumps(record, indent=2, sort_keys=True))
    if asked.write:
        stems, words = background_of(papers)
        record |= {"background_papers": len(papers), "background_weight": BACKGROUND_WEIGHT}
        contents = {COEFFICIENTS: json.dumps(record, indent=2, sort_keys=True) + "\n", FREQUENCIES: stems, WORDS: words}
        for name, content in contents.items():
            Path(str(files("paper_assets.ranking") / name)).write_text(content, encoding="utf-8")
        table = Path(str(files("paper_assets.text") / acronyms.TABLE))
        table.write_text(acronyms_of(papers), encoding="utf-8")


if __name__ == "__main__":
    main()
