"""Whether what was learned may take part: it must beat the list without it on ratings that it has not seen (SPEC L3).

Each block of ratings is predicted from those given before it, once by the formula (stricter or milder, sharper or
blunter, as the ratings before say) and once with what they taught of words, vectors and dimensions. The gain is the sum
of the differences in log probability: the log of the Bayes factor (Dawid 1984, prequential). On random ratings it falls
without end. Pairs of one paper worth reading and one not, in the right order or not, say the same in words.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from paper_assets.learning.preference_model import RatedPapers, kernel, nuisance, pulls

Floats = NDArray[np.float64]

NEEDED = 0.5  # gain from which learning takes part; docs/evaluation.md
NEEDED_EACH = 3  # ratings of either kind; fewer say nothing of what parts them
_FIRST_BLOCK, _GROWTH, _GROWTH_LATER, _LATER = 4, 1.25, 1.5, 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """The ratings that count (`worth`, `no`), the gain, and of `pairs` how many stand in the right order without and
    with learning. `learning` is the profile's own wish.
    """

    worth: int
    no: int
    gain: float = 0.0
    pairs: int = 0
    without: float = 0.0
    with_learning: float = 0.0
    learning: str = "auto"

    @property
    def earned(self) -> bool:
        """Whether learning takes part."""
        return self.learning == "auto" and min(self.worth, self.no) >= NEEDED_EACH and self.gain > NEEDED

    @property
    def sentence(self) -> str:
        """Whether it takes part and why, for people."""
        if not self.worth + self.no:
            return "Nothing is learned yet: no paper is rated worth reading or not for you."
        rated = f"{self.worth} papers rated worth reading, {self.no} not for you"
        if self.learning == "off":
            return f"Learning is off in the profile (ranking.learning); {rated}."
        if min(self.worth, self.no) < NEEDED_EACH:
            return f"Not yet: {rated}; at least {NEEDED_EACH} of each are needed."
        pairs = (
            f"; of {self.pairs} pairs of later ratings {self.with_learning:g} are in the right order with it, "
            f"{self.without:g} without"
            if self.pairs
            else ""
        )
        held_out = f"predicting later ratings from earlier ones they gain {self.gain:+.2f} of {NEEDED:g}{pairs}"
        return f"{'Your ratings take part' if self.earned else 'They stay out'}: {rated}; {held_out}."


def prove(rated: RatedPapers, *, learning: str) -> Proof:
    """Predict each block of ratings, in the order in which they were given, from those before it."""
    proof = Proof(worth=int(rated.liked.sum()), no=int((~rated.liked).sum()), learning=learning)
    if min(proof.worth, proof.no) < NEEDED_EACH:
        return proof
    without, taught = nuisance(rated), kernel(rated)
    gain, pairs, right = 0.0, 0, np.zeros(2)
    for start, end in _blocks(len(rated.liked)):
        before, now = slice(0, start), slice(start, end)
        liked = rated.liked[now]
        said = []
        for covariance in (without, without + taught):
            pull = pulls(covariance[before, before].copy(), rated.odds[before], rated.liked[before])
            said.append(rated.odds[now] + covariance[now, before] @ pull)
        gain += float((_log_probability(said[1], liked) - _log_probability(said[0], liked)).sum())
        pairs += int(liked.sum()) * int((~liked).sum())
        right += [_in_order(rated.odds[now], liked), _in_order(said[1], liked)]
    return replace(proof, gain=gain, pairs=pairs, without=float(right[0]), with_learning=float(right[1]))


def _blocks(count: int) -> list[tuple[int, int]]:
    ends = [min(_FIRST_BLOCK, count)]
    while ends[-1] < count:
        growth = _GROWTH if ends[-1] < _LATER else _GROWTH_LATER
        ends.append(min(count, max(ends[-1] + 1, int(ends[-1] * growth))))
    return list(pairwise(ends))


def _log_probability(odds: Floats, liked: NDArray[np.bool_]) -> Floats:
    found: Floats = -np.logaddexp(0.0, np.where(liked, -odds, odds))
    return found


def _in_order(odds: Floats, liked: NDArray[np.bool_]) -> float:
    """Pairs of a liked and another paper of which the liked one is higher; equal ones count half."""
    return float(((np.sign(odds[liked][:, None] - odds[~liked][None]) + 1) / 2).sum())
