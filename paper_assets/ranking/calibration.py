"""From how near a paper is to how probably it is on topic: the coefficients, which are data of the package (SPEC G17).

`calibration.json` holds the coefficients, `stem_frequencies.tsv` and `word_frequencies.tsv` the background that words
are valued by. `python -m benchmarks.calibrate` makes them and prints the figures that speak for them; a hash of their
content is stored with every ranking. Every coefficient but the intercepts is at least 0: a paper nearer to what is
sought is never less probable.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from paper_assets.ranking.term_matching import Background

COEFFICIENTS, FREQUENCIES, WORDS = "calibration.json", "stem_frequencies.tsv", "word_frequencies.tsv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logit:
    """logit = intercept + meaning * (a cosine, standardized for interests) + words * (a score of words)."""

    intercept: float
    meaning: float = 0.0
    words: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosines:
    """What cosines of an interest (or of liked papers together) to papers are like: their mean and standard deviation,
    which count as much as those of `weight` candidates.
    """

    mean: float
    spread: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A `Logit` for each set of parts.

    `interest`: meaning is the standardized cosine of one interest, words its term score. `interest_wordless`: the same
    without words, for interests that hold no word to look for (`+-`) and the mode `lanes`. `words_only`: without a
    model. `library`: meaning and words are pooled over the `nearest` liked papers. In company of interests the library
    counts by `library_share * m / (m + library_half)` of its logit above `library_base`, m being the number of liked
    papers.
    """

    interest: Logit
    interest_wordless: Logit
    words_only: Logit
    library: Logit
    library_words_only: Logit
    nearest: int
    library_share: float
    library_half: float
    library_base: float
    cosines: Cosines
    library_cosines: Cosines
    background: Background
    version: str


@cache
def standard_calibration() -> Calibration:
    """The one that the package carries."""
    folder = files("paper_assets.ranking")
    texts = [(folder / name).read_text(encoding="utf-8") for name in (COEFFICIENTS, FREQUENCIES, WORDS)]
    return calibration_from(json.loads(texts[0]), frequencies=texts[1], words=texts[2])


def calibration_from(record: Mapping[str, Any], *, frequencies: str, words: str) -> Calibration:
    """Read the contents of `calibration.json` and of the two files of frequencies (stem or word, tab, papers)."""
    parts: dict[str, Any] = {name: Logit(**values) for name, values in record["logits"].items()}
    background = Background(
        papers=record["background_papers"],
        holders=_counts(frequencies),
        words=_counts(words),
        weight=record["background_weight"],
    )
    content = json.dumps(record, sort_keys=True) + frequencies + words
    return Calibration(
        **parts,
        **record["library"],
        cosines=Cosines(**record["cosines"]),
        library_cosines=Cosines(**record["library_cosines"]),
        background=background,
        version=sha256(content.encode()).hexdigest()[:12],
    )


def _counts(lines: str) -> dict[str, int]:
    rows = (line.split("\t") for line in lines.splitlines())
    return {name: int(papers) for name, papers in rows}
