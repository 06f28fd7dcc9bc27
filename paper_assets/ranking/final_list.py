"""Make the final list: K places, filled in the order of match (SPEC G4, G10-G12, G17).

If relevance is a probability p (in every interest mode except `seed`), the rules are:

1. Match. Papers are ordered by the match, the highest first:

       match = log_odds(p) + preference_weight * (rest - preference_baseline)

   `rest` is the final score without relevance: keywords, authors, institutions, recency, code, bonus and penalties.
   `preference_weight` is the number of points of log odds for one point of it, and `preference_baseline` its value for
   a new paper that matches no preference. For the purpose idea_generation probabilities from `probability_cap` on count
   the same. Ties go to the higher final score, then to the newer paper, then to the smaller id.
2. Levels. Likely papers precede all others, whatever else these bring. Papers below the lowest probability (`floor`)
   are not listed.
3. Variety. In the ranking mode `diversity`, and for idea_generation, a paper similar to one placed above it loses
   points (`scoring.py`). In the ranking mode `novelty`, likely papers of one level are ordered by day, newest first.
4. People. Likely papers by followed authors are always in the list, instead of the lowest ones.
5. Interests. An interest with a likely paper, but none in the list, gets the place of the lowest paper that can leave,
   if its paper is about as likely (`_with_every_interest`); at most a third of the places.
6. Contrast. If the profile asks for a contrastive paper, a likely one that contrasts gets the last place
   (`contrast.py`).

Without a floor (mode `seed`, or no profile) the final score alone decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.profile import RankingOptions
from paper_assets.ranking.contrast import Contrast, contrastive_paper
from paper_assets.ranking.levels import LEVELS, LIKELY, probability_of
from paper_assets.ranking.preferences import log_odds, shifted
from paper_assets.ranking.scoring import best_first, final_scores, repeating
from paper_assets.ranking.traits import Taxonomy
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
Bools = NDArray[np.bool_]

CHANGES_NOTHING = {
    "novelty": "the mode novelty changes nothing here: the likely papers are of one day or in the order of their days",
    "diversity": "the mode diversity changes nothing here: no likely paper is similar to one above it",
}
_ABOUT_AS_LIKELY = 0.05  # by how much less likely a paper may be than the one whose place it gets
_RELEVANCE = DIMENSIONS.index("semantic_relevance")


def match_of(row: Mapping[str, Any], header: Mapping[str, Any]) -> float | None:
    """Return the match of a row; None in rankings ordered by the final score."""
    if header.get("preference_weight") is None:
        return None
    rest: float = row["final"] - header["weights"]["semantic_relevance"] * probability_of(row)
    return points_on_topic(row, header) + float(header["preference_weight"] * (rest - header["preference_baseline"]))


def points_on_topic(row: Mapping[str, Any], header: Mapping[str, Any], *, learned: bool = True) -> float:
    """Return the first part of a match: the log odds that the paper is on topic, with or without the ratings."""
    probability = probability_of(row) if learned else row["semantic_relevance"]
    return float(log_odds(min(probability, header.get("probability_cap") or 1.0)))


def order_value(row: Mapping[str, Any], header: Mapping[str, Any]) -> float:
    """Return the number by which a row was ordered: the match, or else the final score."""
    match = match_of(row, header)
    return float(row["final"]) if match is None else match


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """n papers of a new ranking, and everything that their order depends on. Arrays are (n,) unless noted.

    `by_interest` (n, interests): the probability for each interest alone. `shift`: by how much the reader's ratings
    change the log odds (L2); None if ratings are not used. `floor`: the lowest probability of the list; None: relevance
    is not a probability.
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
    floor: float | None
    followed: Bools | None = None  # (n,) by an author that the reader follows, or perhaps; None: none is
    shift: Floats | None = None
    preference_weight: float = 0.0  # points of log odds that a point of the score beside relevance counts
    probability_cap: float | None = None  # from here on probabilities count the same
    looked_for: Mapping[str, Bools] = field(default_factory=dict)  # (n,) what a setting looks for, by its note

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
    def possible(self) -> Bools:
        """Whether each paper may be in the list (n,); a relevance of 0 means that the reader avoids its topic."""
        if self.floor is None:
            return np.ones(len(self.bonus), dtype=bool)
        return (self.relevance >= self.floor) & (self.relevance > 0)

    @property
    def likely(self) -> Bools:
        """Whether each paper is likely to be on topic (n,); false for all if relevance is not a probability."""
        if self.floor is None:
            return np.zeros(len(self.bonus), dtype=bool)
        return self.possible & (self.relevance >= LIKELY)

    def match(self, final: Floats) -> Floats:
        """Return the match (n,) from the final scores (n,), without the constant that all papers share."""
        relevance = self.relevance
        rest = final - self.weights[_RELEVANCE] * relevance
        return log_odds(np.minimum(relevance, self.probability_cap or 1.0)) + self.preference_weight * rest

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
        notes: sentences for the reader on what a setting does to the order, or that it changes nothing.
    """

    order: Rows
    shown: int
    final: Floats
    diversity_penalty: Floats
    interest_places: dict[int, int]
    contrast: Contrast | None
    notes: tuple[str, ...] = ()


def final_list(scored: Scored, *, options: RankingOptions, scoring: ScoringConfig, taxonomy: Taxonomy) -> FinalList:
    """Make the list by the rules of the module's docstring.

    If a contrastive paper is requested, the other places are filled first; if no paper contrasts with them, the list is
    filled without one.
    """
    shown, notes = min(options.top_k, int(scored.possible.sum())), list[str]()
    listed = _filled(scored, options.top_k - options.include_contrastive, options=options, scoring=scoring)
    if scored.floor is not None and shown and options.ranking_mode in CHANGES_NOTHING:
        plain = options.model_copy(update={"ranking_mode": "balanced"})
        usual = list_order(scored, options=plain, scoring=scoring)[:shown]
        if np.array_equal(usual, list_order(scored, options=options, scoring=scoring)[:shown]):
            notes.append(CHANGES_NOTHING[options.ranking_mode])
        elif options.ranking_mode == "novelty":
            notes.append("the mode novelty puts the newest first among likely papers of one level")
    if scored.floor is not None and shown:
        notes += [note for note, found in scored.looked_for.items() if not (found & scored.likely).any()]
    if options.include_contrastive:
        worth_reading = scored.possible if scored.floor is None else scored.likely
        contrast = contrastive_paper(
            scored.texts,
            listed.order[: max(options.top_k - 1, int(worth_reading.sum()))],
            chosen=options.top_k - 1,
            kind=options.contrastive_type,
            taxonomy=taxonomy,
        )
        if contrast is None:
            listed = _filled(scored, options.top_k, options=options, scoring=scoring)
            if shown:
                notes.append(f"no likely paper contrasts with the list in its {options.contrastive_type}")
        else:
            order = np.insert(np.delete(listed.order, contrast.place), options.top_k - 1, listed.order[contrast.place])
            listed = replace(listed, order=order, contrast=contrast)
    return replace(listed, shown=shown, notes=tuple(notes))


def list_order(scored: Scored, *, options: RankingOptions, scoring: ScoringConfig) -> Rows:
    """Return the rows (n,) in the order of the list without a contrastive paper, for the verifier (G5)."""
    return _filled(scored, options.top_k, options=options, scoring=scoring).order


def _filled(scored: Scored, places: int, *, options: RankingOptions, scoring: ScoringConfig) -> FinalList:
    """Return the list with this number of places, without a contrastive paper."""
    possible = scored.possible
    places = min(places, int(possible.sum()))
    final, penalty = scored.final(scoring), np.zeros(len(scored.bonus))
    deduction = scoring.diversity_penalty if options.ranking_mode == "diversity" or scored.probability_cap else 0.0
    similarity = scoring.diversity_similarity if scored.floor is None else scoring.idea_similarity
    if scored.vectors is not None and deduction:
        lowered = scored.final(scoring, diversity_penalty=deduction)
        standing, fallen = _standings(scored, final, lowered)
        repeats = repeating(
            standing,
            fallen,
            scored.vectors,
            days=scored.days,
            paper_ids=scored.paper_ids,
            places=places,
            similarity=similarity,
        )
        penalty, final = np.where(repeats, deduction, 0.0), np.where(repeats, lowered, final)
    keys = [] if scored.floor is None else [_tiers(scored), scored.match(final)]
    if keys and options.ranking_mode == "novelty":
        very_likely = scored.likely & (scored.relevance >= LEVELS[0].least)
        known = np.where(np.isnan(scored.days), -np.inf, scored.days)
        keys[1:1] = [very_likely.astype(np.float64), np.where(scored.likely, known, 0.0)]
    order = best_first(final, scored.days, scored.paper_ids, before=keys)
    people = np.zeros(len(order), dtype=bool) if scored.followed is None else scored.followed & scored.likely
    best = np.concatenate([order[people[order]], order[~people[order]]])[:places]
    listed, entered = _with_every_interest(
        order[np.isin(order, best)].tolist(), order, scored, people, most=options.top_k // 3
    )
    inside = np.isin(order, listed)
    order = np.concatenate([order[inside], order[~inside]])
    return FinalList(
        order=order, shown=places, final=final, diversity_penalty=penalty, interest_places=entered, contrast=None
    )


def _tiers(scored: Scored) -> Floats:
    """Return (n,) 2 for likely papers, 1 for other possible ones, else 0."""
    return scored.possible.astype(np.float64) + scored.likely


def _standings(scored: Scored, final: Floats, lowered: Floats) -> tuple[Floats, Floats]:
    """Return two arrays (n,) that order papers as the list does, one by the scores `final`, one by `lowered`.

    The values of both are on one scale: the ranks of the pairs (tier, match) of both arrays, so that equal papers stay
    equal and nothing is rounded. Without a floor they are the scores themselves.
    """
    if scored.floor is None:
        return final, lowered
    within = np.concatenate([scored.match(score) for score in (final, lowered)])
    pairs = np.column_stack([np.tile(_tiers(scored), 2), within])
    _, places = np.unique(pairs, axis=0, return_inverse=True)
    ranked = places.reshape(2, -1).astype(np.float64)
    return ranked[0], ranked[1]


def _with_every_interest(
    listed: list[int], order: Rows, scored: Scored, people: Bools, *, most: int
) -> tuple[list[int], dict[int, int]]:
    """Let interests without a likely paper among the `listed` rows take a place, in the profile's order.

    The best likely paper of the interest by `order` enters, and the lowest of `listed`, which are in that order, leaves
    that is not the only one of an interest and not by `people` (n,) whom the reader follows, if the newcomer is about
    as likely. At most `most` papers enter. Returns the new rows, and by row number the interest of each newcomer.
    """
    serves, relevance = (scored.by_interest >= LIKELY) & scored.likely[:, None], scored.relevance
    entered: dict[int, int] = {}
    for interest in np.flatnonzero(serves.any(axis=0) & ~serves[listed].any(axis=0)).tolist():
        needed = serves[listed].sum(axis=0) == 1
        leaver = next((row for row in reversed(listed) if not people[row] and not (serves[row] & needed).any()), None)
        newcomer = int(order[np.argmax(serves[order, interest])])
        if leaver is None or len(entered) >= most or serves[listed, interest].any():
            continue
        if relevance[newcomer] >= relevance[leaver] - _ABOUT_AS_LIKELY:
            listed = [*(row for row in listed if row != leaver), newcomer]
            entered[newcomer] = interest
            entered.pop(leaver, None)
    return listed, entered
