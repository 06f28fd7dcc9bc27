"""Make the final list: which papers are above the threshold, and in which order (SPEC G4, G10-G12, G17).

If relevance is a probability p (in every interest mode except `seed`), the rules are:

1. Threshold. A paper is above the threshold if p reaches it; only such papers are listed, and they precede all others.
   The threshold follows from the day's papers (`ThresholdRule`): the most probable papers are listed as long as a large
   enough share of them is expected to be on topic.
2. Match. Both groups are ordered by the match, the highest first:

       match = log_odds(p) - log_odds(threshold) + preference_weight * (rest - preference_baseline)

   `rest` is the final score without relevance: keywords, authors, institutions, recency, code, bonus and penalties.
   `preference_weight` is the number of points of log odds for one point of it, and `preference_baseline` its value for
   a new paper that matches no preference. For the purpose idea_generation the log odds beyond a preferred probability
   lower the match (`PreferredProbability`). Ties go to the higher final score, then to the newer paper, then to the
   smaller id.
3. Variety. In the ranking mode `diversity`, and for idea_generation, a paper similar to one placed above it loses
   points (`scoring.py`).
4. Interests. An interest with a relevant paper, but none in the list, gets the place of the lowest paper that can
   leave (`with_every_interest`); at most a third of the places.
5. Contrast. If the profile asks for a contrastive paper, it gets the last place (`contrast.py`).

Without a threshold (mode `seed`, or no profile) the final score alone decides, and all candidates count as above it.

`final_list` makes the list of a new ranking from `Scored`. `arrange` makes the list of a stored ranking again from its
rows and header (`StoredScores`), for explanations that change one thing and look at the result.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.profile import RankingOptions
from paper_assets.ranking.contrast import Contrast, contrastive_paper
from paper_assets.ranking.preferences import log_odds, shifted
from paper_assets.ranking.relevance import with_every_interest
from paper_assets.ranking.scoring import best_first, final_scores, repeating
from paper_assets.ranking.traits import Taxonomy
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]


_ROUNDING = 1e-9  # points of log odds


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredProbability:
    """The probability that a purpose prefers: for each point of log odds beyond it the match loses `slope` points.

    The loss is at most `most` points. Stored in headers as `preferred_probability`.
    """

    probability: float
    slope: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdRule:
    """How a day's threshold follows from its papers. Stored in headers as `threshold_rule`.

    Papers are admitted from the most probable down, as long as their mean probability is at least `right`: that is the
    share of them that is expected to be on topic. The threshold is the probability that one more paper would need, at
    most that of the last one admitted, or `lowest` if all papers that reach `lowest` are admitted.

    Attributes:
        lowest: the least threshold.
        right: the least expected share of papers on topic.
        first_list: whether this is the first list for a reader's interests, which has a lower threshold if it would
            be short: the most probable `fewest` papers are admitted if they reach `doubtful`, and if no paper is
            admitted, the most probable one is, if it reaches `alone`.
    """

    lowest: float
    right: float
    first_list: bool = False
    alone: float = 1.0
    fewest: int = 0
    doubtful: float = 1.0

    def threshold(self, probability: Floats) -> float:
        """Return the threshold for a day whose papers have these probabilities (n,)."""
        descending = np.sort(probability)[::-1]
        threshold, admitted = self._admitted(descending[descending >= self.lowest])
        if not self.first_list:
            return threshold
        doubtful = descending[admitted : self.fewest]
        doubtful = doubtful[doubtful >= self.doubtful]
        if len(doubtful):
            return float(doubtful[-1])
        best = float(probability.max(initial=0.0))
        return threshold if admitted or best < self.alone else best

    def _admitted(self, descending: Floats) -> tuple[float, int]:
        """Return the threshold by the expected share of papers on topic, and the number of papers that reach it."""
        short = np.flatnonzero(np.cumsum(self.right - descending) > 0.0)
        if not len(short):
            return self.lowest, len(descending)
        count = int(short[0])
        admitted = descending[:count]
        needed = self.right * (count + 1) - admitted.sum()
        needed = max(needed, np.nextafter(descending[count], 1.0))  # it may be equal by rounding
        return float(max(np.append(admitted, needed).min(), self.lowest)), count


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredScores:
    """What the list of a stored ranking of n papers was made from; arrays (n,) unless noted.

    Attributes:
        probability: relevance, including what ratings changed.
        final: the final score.
        serves: (n, interests) the probability for each interest alone, 0 below the threshold.
        contrastive: whether it is the contrastive paper.
        header: that of the ranking.
    """

    probability: Floats
    final: Floats
    by_interest: Floats
    contrastive: Bools
    header: Mapping[str, Any]


def stored_scores(rows: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> StoredScores:
    """Read the papers of a stored ranking from its rows and header. The order of `rows` breaks ties."""
    none = [0.0] * len(header["interests_served"])
    return StoredScores(
        probability=np.array([probability_of(row) for row in rows]),
        final=np.array([row["final"] for row in rows]),
        by_interest=np.array([row["by_interest"] or none for row in rows]).reshape(len(rows), len(none)),
        contrastive=np.array(["CONTRASTIVE_PICK" in row["tags"] for row in rows], dtype=np.bool_),
        header=header,
    )


def preferred_probability_of(header: Mapping[str, Any]) -> PreferredProbability | None:
    """Read the preferred probability from a ranking's header; None if it has none."""
    return PreferredProbability(**header["preferred_probability"]) if header.get("preferred_probability") else None


def learned_of(row: Mapping[str, Any]) -> float:
    """Return by how much the reader's ratings changed the probability of a row (L4); 0 if they were not used."""
    return row.get("learned") or 0.0


def probability_of(row: Mapping[str, Any]) -> float:
    """Return the probability by which a row was ordered: its relevance plus what was learned from ratings."""
    probability: float = row["semantic_relevance"] + learned_of(row)
    return probability


def matches(
    probability: Floats,
    final: Floats,
    *,
    preference_weight: float,
    weight: float,
    preferred_probability: PreferredProbability | None,
) -> Floats:
    """Return the match (n,) from probabilities and final scores (n,), without the constant that all papers share.

    `weight` is that of relevance in the final score.
    """
    match: Floats = _odds(probability, preferred_probability) + preference_weight * (final - weight * probability)
    return match


def _odds(probability: Floats | float, preferred_probability: PreferredProbability | None) -> Floats:
    """Return the log odds of a probability; beyond the preferred one they fall again."""
    odds = log_odds(probability)
    if preferred_probability is None:
        return odds
    beyond = np.maximum(odds - log_odds(preferred_probability.probability), 0.0)
    lowered: Floats = odds - beyond - np.minimum(preferred_probability.slope * beyond, preferred_probability.most)
    return lowered


def match_of(row: Mapping[str, Any], header: Mapping[str, Any]) -> float | None:
    """Return the match of a row; None in rankings ordered by the final score."""
    preference_weight = header.get("preference_weight")
    if preference_weight is None:
        return None
    probability = probability_of(row)
    rest: float = row["final"] - header["weights"]["semantic_relevance"] * probability
    match = points_above(probability, header) + float(preference_weight * (rest - header["preference_baseline"]))
    return match if abs(match) > _ROUNDING else 0.0  # so that the paper at the threshold is not shown with -0.00


def points_above(probability: float, header: Mapping[str, Any]) -> float:
    """Return the log odds of a probability minus those of the threshold: the first part of the match."""
    return float(_odds(probability, preferred_probability_of(header)) - log_odds(header["threshold"]))


def order_value(row: Mapping[str, Any], header: Mapping[str, Any]) -> float:
    """Return the number by which a row was ordered, which tables show: the match, or else the final score."""
    match = match_of(row, header)
    return float(row["final"]) if match is None else match


def arrange(scores: StoredScores) -> tuple[Rows, int]:
    """Order the papers of a stored ranking by its rules, as `final_list` did.

    Returns the row numbers, the best first, and how many of them are in the list.
    """
    header, probability = scores.header, scores.probability
    rule, threshold = header.get("threshold_rule"), header["threshold"]
    if rule:
        threshold = ThresholdRule(**rule).threshold(probability)
    above = np.ones(len(probability), dtype=bool) if threshold is None else probability >= threshold
    keys = [-scores.final]
    if threshold is not None:
        weight = header["weights"]["semantic_relevance"]
        match = matches(
            probability,
            scores.final,
            preference_weight=header["preference_weight"],
            weight=weight,
            preferred_probability=preferred_probability_of(header),
        )
        keys += [-match, ~above]
    order = np.lexsort(keys)
    contrastive = order[(scores.contrastive & above)[order]] if header["top_k"] > 1 else order[:0]
    order = order[~np.isin(order, contrastive)]
    places = min(header["top_k"], int(above.sum())) - len(contrastive)
    by_interest = np.where(above[:, None], scores.by_interest, 0.0)
    order, _ = with_every_interest(order, by_interest, places=places, most=header["top_k"] // 3)
    return np.concatenate([order[:places], contrastive, order[places:]]), places + len(contrastive)


_RELEVANCE = DIMENSIONS.index("semantic_relevance")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """n papers of a new ranking, and everything that their order depends on. Arrays are (n,) unless noted.

    `by_interest` (n, interests): see `Relevance`. `shift`: by how much the reader's ratings change the log odds (L2);
    None if ratings are not used. `threshold`: None: there is none.
    """

    paper_ids: pa.ChunkedArray
    texts: pa.ChunkedArray
    days: Floats  # higher for newer papers; NaN if unknown
    dimensions: Floats  # (n, 6)
    weights: tuple[float, ...]
    bonus: Floats
    penalty: Floats
    by_interest: Floats
    vectors: NDArray[np.float32] | None
    threshold: float | None
    shift: Floats | None = None
    preference_weight: float = 0.0  # points of log odds that a point of the score beside relevance counts
    preferred_probability: PreferredProbability | None = None
    threshold_rule: ThresholdRule | None = None  # None: the threshold does not depend on the papers

    @property
    def relevance(self) -> Floats:
        """Relevance (n,) plus what was learned from ratings: the probability that the order depends on."""
        own: Floats = self.dimensions[:, _RELEVANCE]
        return own if self.shift is None else own + self.learned

    @property
    def learned(self) -> Floats:
        """By how much ratings change the probability (n,) (L4)."""
        own: Floats = self.dimensions[:, _RELEVANCE]
        return np.zeros(len(own)) if self.shift is None else shifted(own, self.shift) - own

    @property
    def above(self) -> Bools:
        """Whether each paper is above the threshold (n,); true for all if there is none."""
        if self.threshold is None:
            return np.ones(len(self.bonus), dtype=bool)
        reached: Bools = self.relevance >= self.threshold
        return reached

    def match(self, final: Floats) -> Floats:
        """Return the match (n,) from the final scores (n,); only of use if there is a threshold."""
        return matches(
            self.relevance,
            final,
            preference_weight=self.preference_weight,
            weight=self.weights[_RELEVANCE],
            preferred_probability=self.preferred_probability,
        )

    def with_days_threshold(self) -> "Scored":
        """Return the same papers with the threshold of the day, if it follows from them."""
        return (
            self
            if self.threshold_rule is None
            else replace(self, threshold=self.threshold_rule.threshold(self.relevance))
        )

    @property
    def shows_doubtful(self) -> bool:
        """Whether the threshold of the day is lower because this is the first list for these interests."""
        rule = self.threshold_rule
        if rule is None or self.threshold is None or not rule.first_list:
            return False
        return self.threshold < replace(rule, first_list=False).threshold(self.relevance)

    def with_relevance(self, relevance: Floats) -> "Scored":
        """Return the same papers with another relevance (n,)."""
        dimensions = self.dimensions.copy()
        dimensions[:, _RELEVANCE] = relevance
        return replace(self, dimensions=dimensions)

    def final(self, scoring: ScoringConfig, *, diversity_penalty: float = 0.0) -> Floats:
        """Return the final scores (n,) (G10), as if all papers had this diversity penalty."""
        return final_scores(
            self.dimensions,
            self.weights,
            bonus=self.bonus,
            penalty=self.penalty,
            diversity_penalty=np.full(len(self.bonus), diversity_penalty),
            learned=None if self.shift is None else self.learned,
            scoring=scoring,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalList:
    """The list of a new ranking.

    Attributes:
        order: (n,) row numbers from the best to the last; the first `shown` of them are in the list.
        final: (n,) final scores, by row.
        diversity_penalty: (n,) the part of them that variety subtracts, 0 or less.
        interest_places: the interest that a row has its place for, by row number.
        contrast: the contrastive paper, which has the last place; None: there is none.
    """

    order: Rows
    shown: int
    final: Floats
    diversity_penalty: Floats
    interest_places: dict[int, int]
    contrast: Contrast | None


def final_list(scored: Scored, *, options: RankingOptions, scoring: ScoringConfig, taxonomy: Taxonomy) -> FinalList:
    """Make the list by the rules of the module's docstring.

    It has `options.top_k` places, or fewer if fewer papers are above the threshold. If a contrastive paper is
    requested, the other places are filled first; if no paper contrasts with them, the list is filled without one.
    """
    listed = _filled(scored, options.top_k - options.include_contrastive, options=options, scoring=scoring)
    if options.include_contrastive:
        above = listed.order[: int(scored.above.sum())]
        contrast = contrastive_paper(
            scored.texts, above, chosen=options.top_k - 1, kind=options.contrastive_type, taxonomy=taxonomy
        )
        if contrast is None:
            listed = _filled(scored, options.top_k, options=options, scoring=scoring)
        else:
            order = np.insert(np.delete(listed.order, contrast.place), options.top_k - 1, listed.order[contrast.place])
            listed = replace(listed, order=order, contrast=contrast)
    return replace(listed, shown=min(options.top_k, int(scored.above.sum())))


def asked_first(scored: Scored, doubtful: Rows, *, options: RankingOptions, scoring: ScoringConfig) -> Rows:
    """Select the `doubtful` rows that the verifier should judge, and return them in the order of the list (G5).

    A paper is left out if even the best possible verdict would not bring it into the list, because papers that are not
    doubtful and match better fill it. Without a threshold, or with a contrastive paper, none is left out.
    """
    listed = _filled(scored, options.top_k, options=options, scoring=scoring)
    place = np.empty(len(listed.order), dtype=np.int64)
    place[listed.order] = np.arange(len(listed.order))
    promising: Rows = doubtful[np.argsort(place[doubtful], kind="stable")]
    if scored.threshold is None or options.include_contrastive:
        return promising
    least = scored.match(scored.final(scoring, diversity_penalty=_deduction(scored, options, scoring)))
    certain = scored.above
    certain[doubtful] = False
    rivals = np.sort(least[certain])
    confirmed = scored.with_relevance(
        np.full(len(least), scored.preferred_probability.probability if scored.preferred_probability else 1.0)
    )
    best = confirmed.match(confirmed.final(scoring))
    ahead = len(rivals) - np.searchsorted(rivals, best[promising], side="right")
    for_an_interest = (scored.by_interest[promising] > 0).any(axis=1) & (options.top_k >= 3)
    return promising[(ahead < options.top_k) | for_an_interest]


def _filled(scored: Scored, places: int, *, options: RankingOptions, scoring: ScoringConfig) -> FinalList:
    """Return the list with this number of places, without a contrastive paper."""
    above = scored.above
    places = min(places, int(above.sum()))
    final, penalty = scored.final(scoring), np.zeros(len(scored.bonus))
    if scored.vectors is not None and (deduction := _deduction(scored, options, scoring)):
        lowered = scored.final(scoring, diversity_penalty=deduction)
        standing, fallen = _standings(scored, final, lowered)
        repeats = repeating(
            standing,
            fallen,
            scored.vectors,
            days=scored.days,
            paper_ids=scored.paper_ids,
            places=places,
            similarity=scoring.idea_similarity if scored.preferred_probability else scoring.diversity_similarity,
        )
        penalty, final = np.where(repeats, deduction, 0.0), np.where(repeats, lowered, final)
    keys = [] if scored.threshold is None else [above.astype(np.float64), scored.match(final)]
    order = best_first(final, scored.days, scored.paper_ids, before=keys)
    order, entered = with_every_interest(
        order, np.where(above[:, None], scored.by_interest, 0.0), places=places, most=options.top_k // 3
    )
    return FinalList(
        order=order, shown=places, final=final, diversity_penalty=penalty, interest_places=entered, contrast=None
    )


def _deduction(scored: Scored, options: RankingOptions, scoring: ScoringConfig) -> float:
    """Return the points (0 or less) for a paper that is similar to one above it; 0 if variety does not count."""
    return scoring.diversity_penalty if options.ranking_mode == "diversity" or scored.preferred_probability else 0.0


def _standings(scored: Scored, final: Floats, lowered: Floats) -> tuple[Floats, Floats]:
    """Return two arrays (n,) that order papers as the list does, one by the scores `final`, one by `lowered`.

    The values of both are on one scale: the ranks of the pairs (above the threshold or not, match) of both arrays, so
    that equal papers stay equal and nothing is rounded. Without a threshold they are the scores themselves.
    """
    if scored.threshold is None:
        return final, lowered
    within = np.concatenate([scored.match(score) for score in (final, lowered)])
    pairs = np.column_stack([np.tile(scored.above, 2), within])
    _, places = np.unique(pairs, axis=0, return_inverse=True)
    ranked = places.reshape(2, -1).astype(np.float64)
    return ranked[0], ranked[1]
