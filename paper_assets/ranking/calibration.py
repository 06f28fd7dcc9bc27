"""From how near a paper is to how probably it is on topic: the coefficients, which are data of the package (SPEC G17).

`calibration.json` holds the coefficients, `stem_frequencies.tsv` the background that words are valued by. Both are
made, and the figures that speak for them printed, by `python -m benchmarks.calibrate`; their content is the version
that stands in every ranking. Every coefficient but the intercepts is at least 0: a paper nearer to what is sought is
never less probable.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

from paper_assets.ranking.term_matching import Background

COEFFICIENTS, FREQUENCIES = "calibration.json", "stem_frequencies.tsv"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logit:
    """logit = intercept + meaning * (a cosine) + words * (a share of words)."""

    intercept: float
    meaning: float = 0.0
    words: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A `Logit` for each set of parts that an interest mode can have.

    `seed_and_lanes`: meaning is the mean of an interest's cosine and that of all interests together. `lanes`: an
    interest's own cosine. `seed`: the cosine of all interests together, which are then one. Each has a twin for
    interests that hold no word to look for (`C++`). `words_only`: without a model.
    `library`: meaning and words are pooled over the `nearest` liked papers. In company of interests the library counts
    by `library_share * m / (m + library_half)` of its logit above `library_base`, m being the number of liked papers.
    """

    seed_and_lanes: Logit
    seed_and_lanes_wordless: Logit
    lanes: Logit
    lanes_wordless: Logit
    seed: Logit
    words_only: Logit
    library: Logit
    library_words_only: Logit
    nearest: int
    library_share: float
    library_half: float
    library_base: float
    background: Background
    version: str


@cache
def standard_calibration() -> Calibration:
    """The one that the package carries."""
    folder = files("paper_assets.ranking")
    texts = [(folder / name).read_text(encoding="utf-8") for name in (COEFFICIENTS, FREQUENCIES)]
    return calibration_from(json.loads(texts[0]), frequencies=texts[1])


def calibration_from(record: Mapping[str, Any], *, frequencies: str) -> Calibration:
    """What `calibration.json` and the lines of `stem_frequencies.tsv` (stem, tab, papers that hold it) say."""
    rows = (line.split("\t") for line in frequencies.splitlines())
    parts: dict[str, Any] = {name: Logit(**values) for name, values in record["logits"].items()}
    background = Background(
        papers=record["background_papers"],
        holders={stem: int(papers) for stem, papers in rows},
        weight=record["background_weight"],
    )
    content = json.dumps(record, sort_keys=True) + frequencies
    return Calibration(
        **parts,
        **record["library"],
        background=background,
        version=sha256(content.encode()).hexdigest()[:12],
    )
