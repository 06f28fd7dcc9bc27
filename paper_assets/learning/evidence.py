"""Weigh what a reader's ratings have taught by how well it predicts the reader's own ratings (SPEC L3).

Bayesian model averaging between two models: the formula alone, and the formula with what was learned. Each block of
ratings is predicted from the earlier ones, once by the formula (stricter or milder, sharper or blunter, as the earlier
ratings suggest) and once with what they taught about words, vectors and dimensions. The sum of the differences in log
probability is the log of the Bayes factor (Dawid 1984, prequential): it grows with a consistent reader's ratings and
falls without end with a random reader's. With the prior probability `PRIOR` it gives the share that learning counts,
which has no threshold: the shift of a paper's log odds is multiplied by it. The first few ratings count less, because
they may move the list at random: n of them by n / (n + `FIRST_FEW`).

`PRIOR`, `SHARPNESS` and `FIRST_FEW` were chosen on simulated readers by leave-one-reader-out (docs/evaluation.md;
`python -m benchmarks.learning`).
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from paper_assets.learning.preference_model import RatedPapers, kernel, nuisance, pulls, recalibrated

Floats = NDArray[np.float64]

PRIOR = 0.7  # probability, before any evidence, that the ratings teach something about other papers
SHARPNESS = 2.0  # power of the Bayes factor; a plug-in prediction from few ratings understates the evidence
FIRST_FEW = 3.0
_SIGNAL = 0.2  # of a rating, in counting the first few
_FIRST_BLOCK, _GROWTH, _GROWTH_LATER, _LATER = 1, 1.15, 2.0, 50
_PRECISION = 1e-4  # of log odds; finer changes no share that is shown
_MOST_GAIN = 50.0  # beyond it the share is 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The ratings learned from (`worth`, `no`), the gain in log probability, and pairs in order without and with it.

    `signals`: papers that the reader opened, cited or put on the shelf without rating them. A pair is one later rating
    worth reading and one not; `learning` is the profile's option.
    """

    worth: int
    no: int
    signals: int = 0
    gain: float = 0.0
    pairs: int = 0
    without: float = 0.0
    with_learning: float = 0.0
    learning: str = "auto"

    @property
    def share(self) -> float:
        """Return how much of what was learned counts, 0..1: its posterior probability, less for the first ratings."""
        if self.learning == "off" or not self.worth + self.no + self.signals:
            return 0.0
        gain = SHARPNESS * float(np.clip(self.gain, -_MOST_GAIN, _MOST_GAIN))
        posterior = float(1.0 / (1.0 + np.exp(-gain) * (1.0 - PRIOR) / PRIOR))
        count = self.worth + self.no + _SIGNAL * self.signals
        return posterior * count / (count + FIRST_FEW)

    @property
    def sentence(self) -> str:
        """Return how much the ratings count and why, for people."""
        if not self.worth + self.no + self.signals:
            return "Nothing is learned yet: no paper is rated worth reading or not for you."
        rated = f"{_papers(self.worth)} rated worth reading, {self.no} not for you"
        if self.signals:
            rated += f", {self.signals} opened, cited or on the shelf"
        if self.learning == "off":
            return f"Learning is off in the profile (ranking.learning); {rated}."
        counts = f"Your ratings count {self.share:.0%}: {rated}"
        if not self.gain:
            return f"{counts}; later ratings will show how well they predict what you like."
        how = "better" if self.gain > 0 else "worse"
        pairs = (
            f", and put {self.with_learning:g} of {self.pairs} pairs in the right order ({self.without:g} without)"
            if self.pairs
            else ""
        )
        return f"{counts}; earlier ratings predicted later ones {how} than the profile alone ({self.gain:+.2f}){pairs}."


def weigh(rated: RatedPapers, *, learning: str) -> Evidence:
    """Predict each block of ratings, in the order in which they were given, from the earlier ones."""
    explicit = rated.weights == 1.0
    evidence = Evidence(
        worth=int((rated.liked & explicit).sum()),
        no=int((~rated.liked & explicit).sum()),
        signals=int((~explicit).sum()),
        learning=learning,
    )
    if len(rated.liked) <= _FIRST_BLOCK:
        return evidence
    covariance = nuisance(rated) + kernel(rated)
    gain, pairs, in_order, pull = 0.0, 0, np.zeros(2), np.zeros(0)
    for start, end in _blocks(len(rated.liked)):
        before, now = slice(0, start), slice(start, end)
        liked, weights, known = rated.liked[now], rated.weights, explicit[now]
        pull = np.concatenate([pull, np.zeros(start - len(pull))])
        pull = pulls(
            covariance[before, before],
            rated.odds[before],
            rated.liked[before],
            weights[before],
            start=pull,
            precision=_PRECISION,
        )
        predicted = (
            recalibrated(rated.odds[before], rated.liked[before], weights[before], later=rated.odds[now]),
            rated.odds[now] + covariance[now, before] @ pull,
        )
        gains = _log_probability(predicted[1], liked) - _log_probability(predicted[0], liked)
        gain += float((weights[now] * gains).sum())
        worth, no = liked & known, ~liked & known
        pairs += int(worth.sum()) * int(no.sum())
        in_order += [_in_order(odds[worth], odds[no]) for odds in (rated.odds[now], predicted[1])]
    return replace(evidence, gain=gain, pairs=pairs, without=float(in_order[0]), with_learning=float(in_order[1]))


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
