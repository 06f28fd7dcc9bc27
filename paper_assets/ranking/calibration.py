"""The probability that a reader with these interests calls a paper on topic, and its coefficients (SPEC G17).

    logit_i = intercept + a z(cosine_i) + b words_i + c ln(number of interests) + ln(weight of the interest's level)
    p       = 1 - product of (1 - p_i)                                  any of the interests will do

z is the cosine's distance from the mean of the candidates in standard deviations: how near is near differs from
interest to interest. With liked papers, m of them, logit(p) is raised or lowered by share(m) (logit_library - base).
Arrays are (interests, papers); all sums run over interests in a fixed order.

The coefficients are data of the package: `calibration.json` holds them, `stem_frequencies.tsv` and
`word_frequencies.tsv` the background that words are valued by (`python -m benchmarks.calibrate` makes all three).
`calibration_vectors.npz` holds the map by which interests are adapted before the cosine is taken, and the mean vector
of papers (`python -m benchmarks.query_adapter`). A hash of their content, and of the acronyms, is stored with every
ranking. Every coefficient but the intercepts and c is at least 0: a paper nearer to what is sought is never less
probable. c is at most 0: who names one interest alone means it more broadly than who names nine.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.best_matches import likeness_to_best
from paper_assets.ranking.cosines import signed_cosines
from paper_assets.ranking.term_matching import Background
from paper_assets.text import acronyms

COEFFICIENTS, FREQUENCIES, WORDS = "calibration.json", "stem_frequencies.tsv", "word_frequencies.tsv"
VECTORS = "calibration_vectors.npz"


@dataclass(frozen=True, slots=True, kw_only=True)
class Logit:
    """logit = intercept + meaning * (a standardized cosine) + words * (a score of words) + titles * (that of the words
    of liked papers' titles) + best * (a standardized likeness to the best matches) + number * ln(number of interests).
    """

    intercept: float
    meaning: float = 0.0
    words: float = 0.0
    titles: float = 0.0
    best: float = 0.0
    number: float = 0.0

    def of_several(self, interests: int) -> "Logit":
        """Return the coefficients for a profile that names so many interests, `number` being part of the intercept."""
        return replace(self, intercept=self.intercept + self.number * float(np.log(interests)), number=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosines:
    """What cosines of an interest (or of liked papers together) to papers are like: their mean and standard deviation,
    which count as much as those of `weight` candidates, for another embedding model of `weight_elsewhere`.
    """

    mean: float
    spread: float
    weight: float
    weight_elsewhere: float


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVectors:
    """What holds for the vectors of one embedding model: `adapter` (d, d), the linear map that brings the vector of a
    short query near the abstracts it names, and `mean` (d,) of the background's papers.
    """

    adapter: Floats
    mean: Floats

    def matches(self, vectors: NDArray[Any]) -> bool:
        """Return whether vectors (n, d) have the length of this model's."""
        return bool(vectors.ndim == 2 and vectors.shape[1] == len(self.mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """A `Logit` for each set of parts.

    `interest`: meaning is the standardized cosine of one interest, words its term score; it finds the `best_matches`
    papers of an interest. `interest_with_best`: the same with the likeness of each paper to those. `interest_wordless`:
    meaning alone, for interests that hold no word to look for (`+-`) and the mode `lanes`. `words_only`: without a
    model. `library`: meaning and words are pooled over the `nearest` liked papers. In company of interests the library
    counts by `library_share * m / (m + library_half)` of its logit above `library_base`, m being the number of liked
    papers.
    """

    interest: Logit
    interest_with_best: Logit
    interest_wordless: Logit
    words_only: Logit
    library: Logit
    library_words_only: Logit
    best_matches: int
    nearest: int
    library_share: float
    library_half: float
    library_base: float
    cosines: Cosines
    library_cosines: Cosines
    library_words: Cosines
    best_cosines: Cosines
    background: Background
    model: str  # whose cosines these are
    version: str
    vectors: ModelVectors | None = field(default=None, compare=False, repr=False)

    def for_model(self, model: str | None) -> "Calibration":
        """Return the calibration for vectors of `model` (None: unknown).

        For another model than the calibrated one, the usual cosines count as those of fewer papers, and interests are
        not adapted.
        """
        if model == self.model:
            return self
        cosines = replace(self.cosines, weight=self.cosines.weight_elsewhere)
        library = replace(self.library_cosines, weight=self.library_cosines.weight_elsewhere)
        best = replace(self.best_cosines, weight=self.best_cosines.weight_elsewhere)
        return replace(self, cosines=cosines, library_cosines=library, best_cosines=best, vectors=None)

    def adapted(self, queries: NDArray[np.float32]) -> Floats:
        """Return the vectors (q, d) that papers are compared with; those of another model are not changed."""
        vectors = queries.astype(np.float64)
        if self.vectors is None or not self.vectors.matches(vectors):
            return vectors
        return np.array([(self.vectors.adapter * vector).sum(axis=1) for vector in vectors]).reshape(vectors.shape)

    def usual_cosines(self, papers: NDArray[np.float32]) -> Floats | None:
        """Return (n,) the mean cosine of papers (n, d) to papers on anything; None for those of another model."""
        if self.vectors is None or not self.vectors.matches(papers):
            return None
        return signed_cosines(papers, self.vectors.mean[None])[:, 0] * float(np.sqrt((self.vectors.mean**2).sum()))


@cache
def standard_calibration() -> Calibration:
    """Return the calibration that the package carries."""
    record, frequencies, words = _texts()
    return calibration_from(json.loads(record), frequencies=frequencies, words=words, vectors=_vectors())


@cache
def standard_version() -> str:
    """Return the version of `standard_calibration()` without its frequencies, which take most of the time to read."""
    record, frequencies, words = _texts()
    return _version(json.loads(record), frequencies, words, _vectors())


def _vectors() -> bytes:
    return (files("paper_assets.ranking") / VECTORS).read_bytes()


def _texts() -> tuple[str, str, str]:
    folder = files("paper_assets.ranking")
    record, frequencies, words = (
        (folder / name).read_text(encoding="utf-8") for name in (COEFFICIENTS, FREQUENCIES, WORDS)
    )
    return record, frequencies, words


def _version(record: Mapping[str, Any], frequencies: str, words: str, vectors: bytes) -> str:
    content = json.dumps(record, sort_keys=True) + frequencies + words + acronyms.table_text()
    return sha256(content.encode() + vectors).hexdigest()[:12]


def calibration_from(
    record: Mapping[str, Any], *, frequencies: str, words: str, vectors: bytes | None = None
) -> Calibration:
    """Read the contents of `calibration.json`, of the two files of frequencies (stem or word, tab, papers) and of
    `calibration_vectors.npz`.
    """
    parts: dict[str, Any] = {name: Logit(**values) for name, values in record["logits"].items()}
    background = Background(
        papers=record["background_papers"],
        holders=_counts(frequencies),
        words=_counts(words),
        weight=record["background_weight"],
    )
    return Calibration(
        **parts,
        **record["library"],
        cosines=Cosines(**record["cosines"]),
        library_cosines=Cosines(**record["library_cosines"]),
        library_words=Cosines(**record["library_words"]),
        best_matches=record["best_matches"],
        best_cosines=Cosines(**record["best_cosines"]),
        background=background,
        model=record["model"],
        version=_version(record, frequencies, words, vectors or b""),
        vectors=None if vectors is None else _model_vectors(vectors),
    )


def _model_vectors(content: bytes) -> ModelVectors:
    with np.load(BytesIO(content), allow_pickle=False) as arrays:
        return ModelVectors(adapter=arrays["adapter"].astype(np.float64), mean=arrays["mean"].astype(np.float64))


def _counts(lines: str) -> dict[str, int]:
    rows = (line.split("\t") for line in lines.splitlines())
    return {name: int(papers) for name, papers in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Logits, and the parts that they come from as far as there are any. Arrays (interests, papers), or (papers,)."""

    logits: Floats
    meaning: Floats | None
    words: Floats | None  # NaN for an interest without a word to look for
    near: Floats | None = None  # meaning as it enters the logit: standardized
    standard_words: Floats | None = None  # words as they enter the logit of liked papers: standardized
    titles: Floats | None = None  # how strongly papers hold the words of liked papers' titles
    best: Floats | None = None  # likeness to the best matches, standardized


def interests_judged(
    own: Floats | None,
    words: Floats | None,
    *,
    weights: tuple[float, ...],
    calibration: Calibration,
    vectors: NDArray[np.float32] | None = None,
) -> Judged:
    """Return each interest's logit from cosines `own` (i, n) and term scores `words` (i, n), whose rows are NaN for
    interests without words. One of the two may be missing.

    `vectors` (n, d) of the papers, to compare them with those that match an interest best; without words they do not
    count. An interest of weight 0 is not one of several.
    """
    best, interests = None, max(sum(weight > 0 for weight in weights), 1)
    if own is None:
        known = np.zeros((0, 0)) if words is None else words
        logits = _logits(calibration.words_only.of_several(interests), None, np.nan_to_num(known))
    else:
        near = standardized(own, calibration.cosines)
        logits = _logits(calibration.interest_wordless.of_several(interests), near, None)
        if words is not None:
            said = np.nan_to_num(words)
            both = _logits(calibration.interest.of_several(interests), near, said)
            if vectors is not None:
                usual = calibration.best_cosines
                most = calibration.best_matches
                best = standardized(likeness_to_best(vectors, both, most=most, otherwise=usual.mean), usual)
                with_best = calibration.interest_with_best.of_several(interests)
                both = _logits(with_best, near, said) + with_best.best * best
            logits = np.where(np.isnan(words), logits, both)
    with np.errstate(divide="ignore"):  # a level may have been set to count nothing
        logits = logits + np.log(np.array(weights))[:, None]
    return Judged(logits=logits, meaning=own, words=words, best=best)


def standardized(cosines: Floats, known: Cosines) -> Floats:
    """Return (i, n) cosines as distances from their row's mean in standard deviations, both drawn towards what is
    usual.

    Sums run over sorted values: a paper's bits do not depend on the order of the others.
    """
    count = cosines.shape[1]
    ordered = np.sort(cosines, axis=1)
    mean = (ordered.sum(axis=1) + known.weight * known.mean) / (count + known.weight)
    usual = known.spread**2 + (known.mean - mean) ** 2
    spread = ((np.sort((cosines - mean[:, None]) ** 2, axis=1)).sum(axis=1) + known.weight * usual) / (
        count + known.weight
    )
    found: Floats = (cosines - mean[:, None]) / np.sqrt(spread)[:, None]
    return found


def library_judged(
    cosines: Floats | None,
    tfidf: Floats | None,
    titles: Floats | None = None,
    *,
    usual: tuple[Floats | None, Floats | None] = (None, None),
    calibration: Calibration,
) -> tuple[Judged, Floats]:
    """Return the logit (n,) by liked papers, and how near each of them is (m, n), from cosines, TF-IDF cosines and
    scores of the words of their titles (m, n).

    The mean over the nearest ones counts: few papers of several topics are served by the nearest, many of one topic by
    all of them. `usual` are the cosines and TF-IDF cosines (n,) to papers on anything: what a paper has in common with
    all papers says nothing and is taken off. As with interests, how near is near depends on the other candidates.
    """
    nearest = calibration.nearest
    logit = calibration.library_words_only if cosines is None else calibration.library
    usual_cosines, usual_tfidf = (0.0 if part is None else part for part in usual)
    meaning = None if cosines is None else _mean(cosines, nearest)
    near = None if meaning is None else standardized((meaning - usual_cosines)[None], calibration.library_cosines)[0]
    words = None if tfidf is None else _mean(tfidf, nearest)
    standard_words = None if words is None else standardized((words - usual_tfidf)[None], calibration.library_words)[0]
    each = sum(
        factor / known.spread * part
        for factor, known, part in (
            (logit.meaning, calibration.library_cosines, cosines),
            (logit.words, calibration.library_words, tfidf),
        )
        if part is not None
    )
    logits = _logits(logit, near, standard_words)
    named = None if titles is None else _evidence(titles, nearest)
    if named is not None:
        logits = logits + logit.titles * named
    judged = Judged(logits=logits, meaning=meaning, words=words, near=near, standard_words=standard_words, titles=named)
    return judged, np.asarray(each)


def any_of(logits: Floats) -> Floats:
    """Return (n,) logit of 1 - product of (1 - p_i) over the interests, exact also where p is all but 0 or 1."""
    none = np.zeros(logits.shape[1])  # -ln of the product
    for row in logits:
        none = none + np.maximum(row, 0.0) + np.log1p(np.exp(-np.abs(row)))
    with np.errstate(divide="ignore"):
        return none + np.log(-np.expm1(-none))


def with_library(logits: Floats, library: Floats, *, liked: int, calibration: Calibration) -> Floats:
    """Return the logit (n,) of interests and `liked` papers together."""
    share = calibration.library_share * liked / (liked + calibration.library_half)
    return logits + share * (library - calibration.library_base)


def probability(logits: Floats) -> Floats:
    """Return 1 / (1 + e^-logit)."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-logits))


def _logits(logit: Logit, meaning: Floats | None, words: Floats | None) -> Floats:
    parts = [factor * part for factor, part in ((logit.meaning, meaning), (logit.words, words)) if part is not None]
    return logit.intercept + sum(parts[1:], parts[0])


def _evidence(scores: Floats, most: int) -> Floats:
    """Return (n,) the sum of the nearest ones over the root of their number: three titles that agree say more than
    one.
    """
    nearest = _nearest(scores, most)
    return _sum(nearest) / np.sqrt(len(nearest))


def _mean(scores: Floats, most: int) -> Floats:
    nearest = _nearest(scores, most)
    return _sum(nearest) / len(nearest)


def _nearest(scores: Floats, most: int) -> Floats:
    """Return the `most` highest scores of each paper (most, n), the highest first."""
    return np.sort(scores, axis=0)[::-1][:most]


def _sum(rows: Floats) -> Floats:
    """Return the sum (n,) of rows (m, n), one after the other: the order of the papers does not matter to it."""
    total = np.zeros(rows.shape[1])
    for row in rows:
        total = total + row
    return total
