"""Train linear models of what a reader rates worth reading, and weigh them by how well they predict (SPEC L2, L3).

Bayesian logistic regression around the formula. A paper's log odds are those of the formula plus a linear function of
its vector, its TF-IDF words and its dimensions, whose weights have normal priors of mean 0: without ratings they are 0,
and each rating moves them a little. A bias and a slope are fitted with them and not used later. They account for a
reader who is stricter than the formula, or for a formula that is too certain, which does not change the order of papers
and would empty the list. There are three models, from a cautious to a bold one: the larger the variance of the priors,
the further a rating moves similar papers. Each is solved in the dual, so that the cost of 1,000 ratings does not depend
on the number of words: scikit-learn's logistic regression supports neither an offset nor separate penalties.

The weights come from Bayesian model averaging between the formula alone and the three models. Each block of ratings is
predicted from the earlier ones, once by the formula (stricter or milder, sharper or blunter, as the earlier ratings
suggest) and by each model with what they taught about words, vectors and dimensions. The sum of a model's differences
in log probability is the log of its Bayes factor (Dawid 1984, prequential): it grows with a consistent reader's ratings
and falls without end with a random reader's. With the prior probabilities `PRIORS` it gives what each model counts,
without a threshold: the shift of a paper's log odds is the sum of theirs. The first few ratings count less, because
they may move the list at random: n of them by n³ / (n³ + `FIRST_FEW`³), a half at `FIRST_FEW` and nine tenths at twice
as many. `PRIORS`, `SHARPNESS` and `FIRST_FEW` were chosen on simulated readers by leave-one-reader-out
(docs/evaluation.md; `python -m benchmarks.learning`).

The vectors teach nothing that lowers the profile's liked papers: a "not for me" about another paper on their subject
does not withdraw what the reader has named.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.keywords import paper_texts
from paper_assets.ranking.preferences import Preferences, learned_features, log_odds
from paper_assets.ranking.term_matching import unit_tfidf
from paper_assets.text.forward_index import indexed
from paper_assets.text.words import without_addresses
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]

# Prior variances, measured on judged lists and CACM (docs/evaluation.md).
TEXT_VARIANCES = 5.0, 20.0, 80.0  # of the weights of vectors and of words, each: from a cautious to a bold model
DIMENSION_VARIANCE = 0.25
SLOPE_VARIANCE, SLOPE_UNIT = 1.0, 4.0  # of the factor of the formula's log odds, per SLOPE_UNIT of them
LIKED_RIDGE = 0.05  # the more, the more a liked paper may be lowered; measured .01 to 1
BIAS_VARIANCE = 3.0  # the more, the less ratings of one kind alone teach
_STEPS, _LONGEST_STEP, _PRECISION = 50, 5.0, 1e-7
_HARDLY_ANY = 1e-12  # share of a model that is not solved: it would change no shift
_FLOOR = 1e-6  # smallest weight p (1 - p)


@dataclass(frozen=True, kw_only=True)
class RatedPapers:
    """n rated papers in the order of rating.

    `liked` (n,): worth reading or not. `odds` (n,): log odds by the formula. `vectors` (n, d), `words` a sparse
    (n, stems) of unit rows with the names of its columns, `dimensions` (n, k) as `learned_features` gives them.
    `library` (l, d): vectors of the profile's liked papers.
    """

    ids: tuple[str, ...]
    liked: NDArray[np.bool_]
    odds: Floats
    vectors: NDArray[np.float32]
    words: Any
    stems: Sequence[str]
    dimensions: Floats
    library: NDArray[np.float32] | None = None

    @cached_property
    def covariances(self) -> tuple[Floats, ...]:
        """Return each model's prior covariance (n, n), with bias and slope."""
        unlearned = nuisance_covariance(self)
        return tuple(kernel + unlearned for kernel in kernels(self))


def kernels(rated: RatedPapers) -> tuple[Floats, ...]:
    """Return each model's prior covariance (n, n) of what the ratings teach, without bias and slope."""
    vectors, own = rated.vectors.astype(np.float64), rated.dimensions
    text: Floats = vectors @ vectors.T + (rated.words @ rated.words.T).toarray()
    dimensions = DIMENSION_VARIANCE * (own @ own.T)
    return tuple(variance * text + dimensions for variance in TEXT_VARIANCES)


def nuisance_covariance(rated: RatedPapers) -> Floats:
    """Return the prior covariance (n, n) of bias and slope: the formula, stricter or milder, sharper or blunter."""
    slope = rated.odds / SLOPE_UNIT
    found: Floats = BIAS_VARIANCE + SLOPE_VARIANCE * np.outer(slope, slope)
    return found


def pulls(
    covariance: Floats,
    odds: Floats,
    liked: NDArray[np.bool_],
    *,
    start: Floats | None = None,
    precision: float = _PRECISION,
) -> Floats:
    """Return the dual weights (n,) `a` of the most probable model: log odds of the papers are `odds + covariance a`.

    Newton's method as in Rasmussen & Williams (2006), algorithm 3.1, with a bounded step; `start` (n,) is a guess. Near
    the solution each step leaves less than the square of the last change of the log odds, so it ends when that square
    is less than `precision`.
    """
    from scipy.linalg import cho_factor, cho_solve

    count, target = len(odds), liked.astype(np.float64)
    dual = np.zeros(count) if start is None else start
    found = covariance @ dual
    diagonal = np.arange(count)
    with _blas().limit(limits=1):  # threads of BLAS wait for each other on a busy machine
        for _ in range(_STEPS):
            probability = 1.0 / (1.0 + np.exp(-(odds + found)))
            weight = np.maximum(probability * (1 - probability), _FLOOR)
            root = np.sqrt(weight)
            right = weight * found + target - probability
            system = covariance * root
            system *= root[:, None]
            system[diagonal, diagonal] += 1.0
            # Symmetric, so that its transpose is the same matrix in LAPACK's own order, which need not be copied.
            factor = cho_factor(system.T, overwrite_a=True, check_finite=False)
            dual = right - root * cho_solve(factor, root * (covariance @ right), check_finite=False)
            step = covariance @ dual - found
            size = float(np.abs(step).max(initial=0.0))
            found = found + step * min(1.0, _LONGEST_STEP / size if size else 1.0)
            if size**2 < precision:
                break
    return dual


@cache
def _blas() -> Any:
    """Return the control of BLAS's threads; to find the libraries takes longer than to solve for a few ratings."""
    import scipy.linalg  # noqa: F401  # loads its BLAS, which the control would miss otherwise
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


def recalibrated(odds: Floats, liked: NDArray[np.bool_], *, later: Floats) -> Floats:
    """Return log odds of `later` papers by the formula with the bias and slope that the rated ones suggest.

    The same model as `pulls` with `nuisance_covariance` alone, solved for its two parameters.
    """

    def features(of: Floats) -> Floats:
        return np.column_stack([np.full(len(of), BIAS_VARIANCE**0.5), of * SLOPE_VARIANCE**0.5 / SLOPE_UNIT])

    known, target, found = features(odds), liked.astype(np.float64), np.zeros(2)
    for _ in range(_STEPS):
        probability = 1.0 / (1.0 + np.exp(-(odds + known @ found)))
        weight = np.maximum(probability * (1 - probability), _FLOOR)
        curvature = (known * weight[:, None]).T @ known + np.eye(2)
        step = np.linalg.solve(curvature, known.T @ (target - probability) - found)
        size = float(np.abs(known @ step).max(initial=0.0))
        found = found + step * min(1.0, _LONGEST_STEP / size if size else 1.0)
        if size < _PRECISION:
            break
    return later + features(later) @ found


def train(rated: RatedPapers, strengths: Sequence[float] = ()) -> Preferences:
    """Train on all ratings and average the models by `strengths` (default: as before any evidence).

    Without ratings, return a model that moves nothing.
    """
    shares = strengths or _relative((0.0,) * len(PRIORS))
    text, own = np.zeros(len(rated.ids)), np.zeros(len(rated.ids))  # dual weights, text with its variance
    if len(rated.ids):
        for share, variance, covariance in zip(shares, TEXT_VARIANCES, rated.covariances, strict=True):
            if share > _HARDLY_ANY:
                pull = share * pulls(covariance, rated.odds, rated.liked)
                text, own = text + variance * pull, own + DIMENSION_VARIANCE * pull
    dimensions = own @ rated.dimensions
    words = rated.words.T @ text if len(text) else np.zeros(len(rated.stems))
    order = sorted(np.flatnonzero(words).tolist(), key=lambda at: (-abs(words[at]), rated.stems[at]))
    vector = protect_liked(text @ rated.vectors.astype(np.float64), rated.library)
    version = sha256(b"".join(part.tobytes() for part in (vector, words, dimensions, text)))
    version.update(" ".join(rated.ids).encode())
    return Preferences(
        vector=vector,
        words={rated.stems[at]: float(words[at]) for at in order},
        dimensions=dimensions,
        rated=rated.ids,
        vectors=rated.vectors,
        pull=text,
        version=version.hexdigest()[:12],
    )


def protect_liked(vector: Floats, library: NDArray[np.float32] | None) -> Floats:
    """Return the weights (d,) of a vector, changed as little as needed so that they hardly lower any liked paper."""
    if library is None or not len(library):
        return vector
    shift = library.astype(np.float64) @ vector
    lowered = library[shift < 0].astype(np.float64)
    system = lowered.T @ lowered + LIKED_RIDGE * np.eye(len(vector))
    found: Floats = vector - np.linalg.solve(system, lowered.T @ shift[shift < 0])
    return found


def rated_papers(
    papers: pa.Table,
    rows: pa.Table,
    vectors: NDArray[np.float32],
    *,
    liked: Mapping[str, bool],
    without_words: Collection[str] = (),
    library: NDArray[np.float32] | None = None,
) -> RatedPapers:
    """Collect what the formula, the vectors and the words say of rated papers.

    `papers` (columns of `paper_schema()`) in the order of rating, the `rows` of a ranking of them by the formula alone,
    their vectors (n, d), and by id whether they are worth reading.
    Nothing is learned of the stems `without_words`, of the words of addresses, and of a stem that only one of the
    papers holds: mostly a name or a number, of which one rating says little.
    """
    ids = papers.column("paper_id").to_pylist()
    place = {paper_id: row for row, paper_id in enumerate(rows.column("paper_id").to_pylist())}
    order = [place[paper_id] for paper_id in ids]
    dimensions = np.column_stack([rows.column(name).to_numpy() for name in DIMENSIONS])[order]
    texts = pa.array([without_addresses(text) for text in paper_texts(papers).to_pylist()], pa.string())
    words, stems = unit_tfidf(indexed(pa.chunked_array([texts])), background=standard_calibration().background)
    holders = np.bincount(words.indices, minlength=len(stems))
    kept = [at for at, stem in enumerate(stems) if holders[at] > 1 and stem not in without_words]
    words, stems = words[:, kept], [stems[at] for at in kept]
    return RatedPapers(
        ids=tuple(ids),
        liked=np.array([liked[paper_id] for paper_id in ids], dtype=np.bool_),
        odds=log_odds(dimensions[:, DIMENSIONS.index("semantic_relevance")]),
        vectors=vectors,
        words=words,
        stems=stems,
        dimensions=learned_features(dimensions),
        library=library,
    )


PRIORS = 0.7, 0.1, 0.05  # probability of each model before any evidence; the rest is the formula's
PRIOR = sum(PRIORS)  # that the ratings teach something about other papers
SHARPNESS = 3.0  # power of the Bayes factor; a plug-in prediction from few ratings understates the evidence
FIRST_FEW, FIRST_FEW_POWER = 5.0, 3
_FIRST_BLOCK, _GROWTH, _GROWTH_LATER, _LATER = 1, 1.15, 2.0, 50
_WEIGHT_PRECISION = 1e-4  # of log odds; finer changes no share that is shown
_HARDLY = 0.5  # a gain that is not worth calling better or worse
_MOST_GAIN = 50.0  # beyond it the share is 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The ratings learned from (`worth`, `no`), the gain in log probability, and pairs in order without and with it.

    A pair is one later rating worth reading and one not; `learning` is the profile's option. `gain` is that of the
    models together, `strengths` (their sum is 1) how much each of them counts beside the others.
    """

    worth: int
    no: int
    gain: float = 0.0
    pairs: int = 0
    without: float = 0.0
    with_learning: float = 0.0
    learning: str = "auto"
    strengths: Sequence[float] = ()

    @property
    def share(self) -> float:
        """Return how much of what was learned counts, 0..1: its posterior probability, less for the first ratings."""
        if self.learning == "off" or not self.worth + self.no:
            return 0.0
        gain = SHARPNESS * float(np.clip(self.gain, -_MOST_GAIN, _MOST_GAIN))
        posterior = float(1.0 / (1.0 + np.exp(-gain) * (1.0 - PRIOR) / PRIOR))
        return posterior * evidence_weight(self.worth + self.no)

    @property
    def sentence(self) -> str:
        """Return how much the ratings count and why, for people."""
        if not self.worth + self.no:
            return "Nothing is learned yet: no paper is rated worth reading or not for you."
        rated = f"{_papers(self.worth)} rated worth reading, {self.no} not for you"
        if self.learning == "off":
            return f"Learning is off in the profile (ranking.learning); {rated}."
        counts = f"Your ratings count {100 * self.share:.0f} %: {rated}"
        if not self.gain:
            return f"{counts}; later ratings will show how well they predict what you like."
        if abs(self.gain) < _HARDLY:
            return f"{counts}; later ratings neither confirmed nor contradicted what earlier ones taught."
        how = "better than" if self.gain > 0 else "worse than"
        return f"{counts}; earlier ratings predicted later ones {how} the profile alone."


def evidence_weight(count: float) -> float:
    """Return how much the evidence of `count` ratings counts, 0..1."""
    known = count**FIRST_FEW_POWER
    return known / (known + FIRST_FEW**FIRST_FEW_POWER)


def weigh(rated: RatedPapers, *, learning: str) -> Evidence:
    """Predict each block of ratings, in the order in which they were given, from the earlier ones."""
    evidence = Evidence(worth=int(rated.liked.sum()), no=int((~rated.liked).sum()), learning=learning)
    if len(rated.liked) <= _FIRST_BLOCK:
        return evidence
    covariances = rated.covariances
    gains, pairs, in_order = np.zeros(len(covariances)), 0, np.zeros(2)
    found = [np.zeros(0) for _ in covariances]
    for start, end in _blocks(len(rated.liked)):
        before, now = slice(0, start), slice(start, end)
        odds = rated.odds[now]
        found = [
            pulls(
                covariance[before, before],
                rated.odds[before],
                rated.liked[before],
                start=np.concatenate([pull, np.zeros(start - len(pull))]),
                precision=_WEIGHT_PRECISION,
            )
            for covariance, pull in zip(covariances, found, strict=True)
        ]
        plain = recalibrated(rated.odds[before], rated.liked[before], later=odds)
        learned = np.array(
            [odds + covariance[now, before] @ pull for covariance, pull in zip(covariances, found, strict=True)]
        )
        liked = rated.liked[now]
        pairs += int(liked.sum()) * int((~liked).sum())
        average = np.array(_relative(gains)) @ learned
        in_order += [_in_order(each[liked], each[~liked]) for each in (odds, average)]
        gains += (_log_probability(learned, liked) - _log_probability(plain, liked)).sum(axis=-1)
    return replace(
        evidence,
        gain=_together(gains),
        pairs=pairs,
        without=float(in_order[0]),
        with_learning=float(in_order[1]),
        strengths=_relative(gains),
    )


def _relative(gains: Sequence[float] | Floats) -> tuple[float, ...]:
    """Return how much each model counts beside the others after these gains; the sum is 1."""
    bounded = SHARPNESS * np.array(gains)
    weights = np.array(PRIORS) * np.exp(bounded - bounded.max())
    return tuple((weights / weights.sum()).tolist())


def _together(gains: Floats) -> float:
    """Return the gain of one model that has the models' prior and their likelihood."""
    return float(np.log(np.array(PRIORS) / PRIOR @ np.exp(SHARPNESS * (gains - gains.max()))) / SHARPNESS + gains.max())


def _papers(count: int) -> str:
    return f"{count} paper" if count == 1 else f"{count} papers"


def _blocks(count: int) -> list[tuple[int, int]]:
    ends = [min(_FIRST_BLOCK, count)]
    while ends[-1] < count:
        growth = _GROWTH if ends[-1] < _LATER else _GROWTH_LATER
        ends.append(min(count, max(ends[-1] + 1, int(ends[-1] * growth))))
    return list(pairwise(ends))


def _log_probability(odds: Floats, liked: NDArray[np.bool_]) -> Floats:
    found: Floats = -np.logaddexp(0.0, np.where(liked, -odds, odds))
    return found


def _in_order(worth: Floats, no: Floats) -> float:
    """Count pairs in which the paper worth reading is higher; equal ones count half."""
    return float(((np.sign(worth[:, None] - no[None]) + 1) / 2).sum())
