"""Compute the probability that a paper is on topic for a profile, from cosines and word scores (SPEC G17).

The formula. A profile has interests i = 1..k. For each interest and each candidate paper:

    x_i     = intercept + a z(cosine_i) + b words_i + c share_i + d ln(k)
    logit_i = x_i - saturation * ln(1 + exp(x_i - s)) + ln(weight of the interest's level)
    p_i     = 1 / (1 + exp(-logit_i))           the probability that the paper is on topic for interest i
    p       = 1 - product of (1 - p_i)          the probability that it is on topic for at least one interest

- `cosine_i` compares the vectors of paper and interest. z subtracts the mean over the candidates and divides by their
  standard deviation, because a cosine that is high for one interest is usual for another (`standardized`).
- `words_i` is the term score of `term_matching.py`: how well title and abstract match the words of the interest.
- `share_i` is `words_i` divided by the mean of the interest's highest term scores in the window (`share_of_best`). A
  long interest has many words that no paper repeats, so that even its best papers have low term scores. Papers that
  earlier lists of the window showed are counted too: otherwise, the rest would seem to match well.
- `saturation` makes evidence count less where x_i is above s = `SATURATES_FROM`: there the slope of logit_i falls from
  1 to 1 - saturation. Readers and judges differ, so that a paper which matches twice as well is not twice as certain.
  Without it, papers of probability .6 to .8 were on topic less often, by .1.
- The level (primary, secondary, exploratory) has a weight from 0 to 1, whose logarithm lowers the logit.
- With vectors and words, the formula is applied twice: the papers that match an interest best in the first pass are
  compared with all papers, and the standardized similarity is a further term of the second pass (`similarity.py`).
- Liked papers have a logit too, from their cosines, their TF-IDF cosines and the words of their titles
  (`library_judged`). If a profile has interests and m liked papers, then
  logit(p) = logit(p by interests) + share(m) * (logit by liked papers - library_base),
  with share(m) = library_share * m / (m + library_half).

Only papers whose p reaches the threshold of the day are listed (`final_list.py`).

The coefficients were fitted to judged papers and are stored in `calibration.json`. `stem_frequencies.tsv` and
`word_frequencies.tsv` contain the background frequencies from which idf is computed (`python -m benchmarks.calibrate`
writes all three). `calibration_vectors.npz` contains the linear map that is applied to the vectors of interests, and
the mean vector of papers (`python -m benchmarks.query_adapter`). A hash of all four files and of the table of acronyms
is the calibration's version, which is stored with every ranking.

Constraints of the fit: a, b, c and the other coefficients of similarity are at least 0, so a higher cosine or term
score never lowers p. The saturation is at most .95. d is at most 0: a reader with a single interest means it more
broadly than a reader with nine.

Arrays are (interests, papers) unless a docstring gives another shape. Sums run over interests in the profile's order.
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

from paper_assets.ranking.similarity import signed_cosines, similarity_to_best
from paper_assets.ranking.term_matching import Background
from paper_assets.text import acronyms

COEFFICIENTS, FREQUENCIES, WORDS = "calibration.json", "stem_frequencies.tsv", "word_frequencies.tsv"
VECTORS = "calibration_vectors.npz"
SATURATES_FROM = -1.0  # points of log odds; of -3 to 0, -1 and -1.5 had the least log loss for readers left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Logit:
    """The coefficients of one logit; a part that does not apply has the coefficient 0.

    Attributes:
        intercept: the constant term.
        meaning: of the standardized cosine.
        words: of the term score of an interest, or of the standardized TF-IDF cosine to liked papers.
        titles: of the term score of liked papers' titles.
        share: of the term score as a share of the interest's highest ones.
        best: of the standardized similarity to an interest's best matches.
        number: of `log_number`.
        saturation: the share, from 0 to below 1, by which the slope of the logit falls where evidence is strong.
    """

    intercept: float
    meaning: float = 0.0
    words: float = 0.0
    share: float = 0.0
    titles: float = 0.0
    best: float = 0.0
    number: float = 0.0
    saturation: float = 0.0

    def of_several(self, interests: int) -> "Logit":
        """Return the coefficients for a profile with this number of interests: `number` is added to the intercept."""
        return replace(self, intercept=self.intercept + self.number * log_number(interests), number=0.0)


def log_number(interests: int) -> float:
    """Return ln(number of interests), at most ln 3.

    A reader of one interest means it more broadly than a reader of several; readers of three and of ten do not differ.
    """
    return float(np.log(min(interests, 3)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosines:
    """The usual mean and standard deviation (`spread`) of one kind of cosine, as measured on many papers.

    `standardized` mixes them with those of the candidates, as if they came from `weight` more candidates. For another
    embedding model than the calibrated one, `weight_elsewhere` replaces `weight`.
    """

    mean: float
    spread: float
    weight: float
    weight_elsewhere: float


Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HighestScores:
    """Which term scores of an interest are its highest: those of the best `papers`, whose usual mean is `usual`.

    `share_of_best` mixes the two, as if `usual` came from `weight` more papers.
    """

    papers: int
    usual: float
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVectors:
    """Arrays that are valid for the vectors of one embedding model only.

    Attributes:
        adapter: (d, d) linear map that moves the vector of a short interest towards the abstracts of its papers.
        mean: (d,) mean of the unit vectors of the background's papers.
    """

    adapter: Floats
    mean: Floats

    def matches(self, vectors: NDArray[Any]) -> bool:
        """Return whether vectors (n, d) have as many components as this model's."""
        return bool(vectors.ndim == 2 and vectors.shape[1] == len(self.mean))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """All coefficients: a `Logit` for each combination of parts that a paper can be judged by, and what they need.

    Attributes:
        interest: cosine and term score of one interest; the first pass, which selects its `best_matches` papers.
        interest_with_best: the same and the similarity to those papers; the second pass.
        interest_wordless: the cosine alone, for the mode `lanes` and for interests without a word, such as `+-`.
        words_only: the term score alone, if there is no embedding model.
        library: cosines and TF-IDF cosines to liked papers, each the mean over the `nearest` liked papers.
        library_words_only: TF-IDF cosines alone, if there is no embedding model.
        library_share, library_half, library_base: the library's share beside interests (`with_library`).
        highest_scores: which term scores of an interest the others are compared with.
        cosines, best_cosines: usual values of cosines to an interest, and of similarity to its best matches.
        library_cosines, library_words: usual values of cosines and of TF-IDF cosines to liked papers.
        background: frequencies of words and stems, for idf.
        model: the embedding model that the cosines are calibrated for.
        version: 12 hex digits over all data files.
        vectors: None for another embedding model than `model`.
    """

    interest: Logit
    interest_with_best: Logit
    interest_wordless: Logit
    words_only: Logit
    library: Logit
    library_words_only: Logit
    best_matches: int
    highest_scores: HighestScores
    nearest: int
    library_share: float
    library_half: float
    library_base: float
    cosines: Cosines
    library_cosines: Cosines
    library_words: Cosines
    best_cosines: Cosines
    background: Background
    model: str
    version: str
    vectors: ModelVectors | None = field(default=None, compare=False, repr=False)

    def for_model(self, model: str | None) -> "Calibration":
        """Return the calibration for vectors of `model` (None: the model is not known).

        For another model than the calibrated one, the usual values of cosines have less weight, and the vectors of
        interests are not adapted.
        """
        if model == self.model:
            return self
        cosines = replace(self.cosines, weight=self.cosines.weight_elsewhere)
        library = replace(self.library_cosines, weight=self.library_cosines.weight_elsewhere)
        best = replace(self.best_cosines, weight=self.best_cosines.weight_elsewhere)
        return replace(self, cosines=cosines, library_cosines=library, best_cosines=best, vectors=None)

    def adapted(self, queries: NDArray[np.float32]) -> Floats:
        """Return the vectors of interests (q, d) with the adapter applied; unchanged for another embedding model."""
        vectors = queries.astype(np.float64)
        if self.vectors is None or not self.vectors.matches(vectors):
            return vectors
        return np.array([(self.vectors.adapter * vector).sum(axis=1) for vector in vectors]).reshape(vectors.shape)

    def usual_cosines(self, papers: NDArray[np.float32]) -> Floats | None:
        """Return (n,) the mean cosine of each of the papers (n, d) to the background's papers, which are on any topic.

        None for vectors of another embedding model.
        """
        if self.vectors is None or not self.vectors.matches(papers):
            return None
        return signed_cosines(papers, self.vectors.mean[None])[:, 0] * float(np.sqrt((self.vectors.mean**2).sum()))


@cache
def standard_calibration() -> Calibration:
    """Return the calibration of the package's data files. Read once."""
    record, frequencies, words = _texts()
    return calibration_from(json.loads(record), frequencies=frequencies, words=words, vectors=_vectors())


@cache
def standard_version() -> str:
    """Return the version of `standard_calibration()` without parsing the frequencies, which takes most of the time."""
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
    """Build a calibration from the contents of its data files.

    `record` is `calibration.json`. `frequencies` and `words` have lines of a stem or word, a tab, and the number of
    papers with it. `vectors` is `calibration_vectors.npz` (None: interests are not adapted). Raises KeyError or
    TypeError if `record` lacks a key or has an unknown one.
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
        highest_scores=HighestScores(**record["highest_scores"]),
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
    """Logits and the parts that they are computed from; a part that was not available is None.

    Arrays are (interests, papers) from `interests_judged`, (papers,) from `library_judged`.
    """

    logits: Floats
    meaning: Floats | None  # cosine
    words: Floats | None  # term score, NaN for an interest without words; from `library_judged` the TF-IDF cosine
    near: Floats | None = None  # liked papers: the standardized cosine, which enters the logit
    standard_words: Floats | None = None  # liked papers: the standardized TF-IDF cosine, which enters the logit
    titles: Floats | None = None  # liked papers: the term score of their titles
    best: Floats | None = None  # interests: the standardized similarity to the best matches


def interests_judged(
    cosines: Floats | None,
    words: Floats | None,
    *,
    weights: tuple[float, ...],
    calibration: Calibration,
    vectors: NDArray[np.float32] | None = None,
    earlier: Floats | None = None,
) -> Judged:
    """Return the logits (i, n) of n papers for each of i interests.

    `cosines` and term scores `words` are (i, n), `words` NaN in the rows of interests without words; one of the two may
    be missing. `weights` (i,) are those of the interests' levels; interests of weight 0 do not count in the number of
    interests. `vectors` (n, d) of the papers are compared with the best matches of each interest, if there are term
    scores. `earlier` (i, m) are the term scores of papers that earlier lists of the window showed (`share_of_best`).
    """
    best, interests = None, max(sum(weight > 0 for weight in weights), 1)
    term_scores = None if words is None else np.nan_to_num(words)
    share = None if term_scores is None else share_of_best(term_scores, earlier, calibration.highest_scores)
    if cosines is None:
        logits = _logits(calibration.words_only.of_several(interests), words=term_scores, share=share)
    else:
        z = standardized(cosines, calibration.cosines)
        logits = _logits(calibration.interest_wordless.of_several(interests), meaning=z)
        if words is not None:
            by_words = {"words": term_scores, "share": share}
            with_words = _logits(calibration.interest.of_several(interests), meaning=z, **by_words)
            if vectors is not None:
                usual = calibration.best_cosines
                count = calibration.best_matches
                best = standardized(similarity_to_best(vectors, with_words, most=count, otherwise=usual.mean), usual)
                with_best = calibration.interest_with_best.of_several(interests)
                with_words = _logits(with_best, meaning=z, **by_words, best=best)
            logits = np.where(np.isnan(words), logits, with_words)
    with np.errstate(divide="ignore"):  # the settings may give a level the weight 0
        logits = logits + np.log(np.array(weights))[:, None]
    return Judged(logits=logits, meaning=cosines, words=words, best=best)


def share_of_best(scores: Floats, earlier: Floats | None, highest: HighestScores) -> Floats:
    """Return term scores (i, n) divided by the mean of each interest's highest ones, mixed with the usual mean.

    `earlier` (i, m) are the scores of m more papers of the window, which earlier lists showed (None: none did).
    """
    every = scores if earlier is None else np.concatenate([scores, np.nan_to_num(earlier)], axis=1)
    count = every.shape[1]
    mean = np.sort(every, axis=1)[:, ::-1][:, : highest.papers].sum(axis=1) / highest.papers
    return scores / ((count * mean + highest.weight * highest.usual) / (count + highest.weight))[:, None]


def standardized(cosines: Floats, usual: Cosines) -> Floats:
    """Return z (i, n): each cosine (i, n) minus the mean of its row, divided by the standard deviation of its row.

    Mean and deviation are those of the row's n papers together with `usual.weight` papers of the usual values, so that
    few candidates do not decide them alone. Sums run over sorted values: the result of a paper does not depend on the
    order of the papers, to the last bit.
    """
    papers = cosines.shape[1]
    ordered = np.sort(cosines, axis=1)
    mean = (ordered.sum(axis=1) + usual.weight * usual.mean) / (papers + usual.weight)
    usual_variance = usual.spread**2 + (usual.mean - mean) ** 2
    variance = ((np.sort((cosines - mean[:, None]) ** 2, axis=1)).sum(axis=1) + usual.weight * usual_variance) / (
        papers + usual.weight
    )
    return (cosines - mean[:, None]) / np.sqrt(variance)[:, None]


def library_judged(
    cosines: Floats | None,
    tfidf: Floats | None,
    titles: Floats | None = None,
    *,
    usual: tuple[Floats | None, Floats | None] = (None, None),
    calibration: Calibration,
) -> tuple[Judged, Floats]:
    """Return the logits (n,) of n papers by m liked papers, and the nearness (m, n) of each paper to each liked one.

    `cosines`, `tfidf` and `titles` (m, n) are cosines, TF-IDF cosines and term scores of titles; at least one of the
    first two is given. Cosines are averaged over the `nearest` liked papers of the calibration: if liked papers are
    on several topics, only the nearest ones are on the topic of the paper. Term scores of titles: see `_evidence`.

    `usual` are the mean cosine and the mean TF-IDF cosine (n,) of each paper to papers on any topic. They are
    subtracted, because what a paper shares with all papers does not make it like the liked ones. The differences are
    standardized over the candidates, as for interests. Nearness is the weighted sum of cosine and TF-IDF cosine, and
    serves to name the nearest liked paper.
    """
    nearest = calibration.nearest
    logit = calibration.library_words_only if cosines is None else calibration.library
    usual_cosines, usual_tfidf = (0.0 if part is None else part for part in usual)
    meaning = None if cosines is None else _mean(cosines, nearest)
    near = None if meaning is None else standardized((meaning - usual_cosines)[None], calibration.library_cosines)[0]
    words = None if tfidf is None else _mean(tfidf, nearest)
    standard_words = None if words is None else standardized((words - usual_tfidf)[None], calibration.library_words)[0]
    nearness = sum(
        factor / known.spread * part
        for factor, known, part in (
            (logit.meaning, calibration.library_cosines, cosines),
            (logit.words, calibration.library_words, tfidf),
        )
        if part is not None
    )
    title_scores = None if titles is None else _evidence(titles, nearest)
    logits = _logits(logit, meaning=near, words=standard_words, titles=title_scores)
    judged = Judged(
        logits=logits, meaning=meaning, words=words, near=near, standard_words=standard_words, titles=title_scores
    )
    return judged, np.asarray(nearness)


def any_of(logits: Floats) -> Floats:
    """Return (n,) the logit of 1 - product of (1 - p_i) from the logits (i, n), exact also for p close to 0 or 1."""
    neg_log_none = np.zeros(logits.shape[1])  # -ln of the product, the probability of no interest
    for row in logits:
        neg_log_none = neg_log_none + np.maximum(row, 0.0) + np.log1p(np.exp(-np.abs(row)))
    with np.errstate(divide="ignore"):
        return neg_log_none + np.log(-np.expm1(-neg_log_none))


def with_library(logits: Floats, library: Floats, *, liked: int, calibration: Calibration) -> Floats:
    """Return the logits (n,) by interests and liked papers together; `liked` is the number of liked papers.

    `logits` (n,) are those by interests, `library` (n,) those by liked papers.
    """
    library_weight = calibration.library_share * liked / (liked + calibration.library_half)
    return logits + library_weight * (library - calibration.library_base)


def probability(logits: Floats) -> Floats:
    """Return 1 / (1 + exp(-logit)), in the shape of the logits."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-logits))


def _logits(logit: Logit, **values: Floats | None) -> Floats:
    """Return the logits from the values of the coefficients' parts, by name; a part of None does not apply.

    From `SATURATES_FROM` on their slope falls to 1 - saturation.
    """
    parts = [getattr(logit, name) * part for name, part in values.items() if part is not None]
    evidence: Floats = logit.intercept + sum(parts[1:], parts[0])
    return evidence - logit.saturation * np.logaddexp(0.0, evidence - SATURATES_FROM)


def _evidence(scores: Floats, most: int) -> Floats:
    """Return (n,) the sum of the `most` highest scores (m, n) divided by the square root of their number.

    Unlike the mean, it is higher if several titles match than if one does.
    """
    nearest = _nearest(scores, most)
    return _sum(nearest) / np.sqrt(len(nearest))


def _mean(scores: Floats, most: int) -> Floats:
    """Return (n,) the mean of the `most` highest scores (m, n)."""
    nearest = _nearest(scores, most)
    return _sum(nearest) / len(nearest)


def _nearest(scores: Floats, most: int) -> Floats:
    """Return (most, n) the highest scores of each paper, the highest first."""
    return np.sort(scores, axis=0)[::-1][:most]


def _sum(rows: Floats) -> Floats:
    """Return the sum (n,) of rows (m, n), added one by one, so that it does not depend on the other columns."""
    total = np.zeros(rows.shape[1])
    for row in rows:
        total = total + row
    return total
