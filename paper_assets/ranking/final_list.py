"""The final list: who stands above the line, in which order, for which lane, and the pick (SPEC G4, G10 to G12, G17).

Where relevance is a probability a line parts what is worth reading. Above it papers stand by tenths of probability, and
within a tenth by final score: whatever code, author or keyword bring, within a tenth it costs at most a tenth of a
relevant paper for each place. In the mode `balanced` the most probable papers fill the places and are then put in this
order; the other modes have no such shortlist. Below the line papers stand by probability and are not shown. Without a
line (mode `seed`, no profile) the final score alone decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.profile import RankingOptions
from paper_assets.ranking.contrast import Contrast, contrastive_pick
from paper_assets.ranking.diversity import repeating
from paper_assets.ranking.interest_modes import with_every_lane
from paper_assets.ranking.preferences import shifted
from paper_assets.ranking.scoring import best_first, final_scores
from paper_assets.ranking.traits import Taxonomy
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRules:
    """How many places there are, how many of them at most for lanes, from which probability on (None: no line), and
    whether the most probable go first.
    """

    places: int
    for_lanes: int
    line: float | None
    shortlist: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPapers:
    """n papers: which of them are candidates, their probability, final score, age rank and claims to a place.

    `tie`: (n,) who comes first at equal scores, lowest first. `lanes` (n,): has a lane's place; `pick` (n,): is it.
    """

    member: Bools
    probability: Floats
    final: Floats
    tie: Ints
    lanes: Bools
    pick: Bools
    rules: ListRules


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingList:
    """(n,) the place of each paper among all from 1 (n + 1: no candidate), and which are in the list."""

    place: Ints
    listed: Bools


def rules_of(header: Mapping[str, Any], *, otherwise: int = 1) -> ListRules:
    """The rules by a ranking's header; older ones know of no line."""
    line, places = header.get("line"), header.get("top_k", otherwise)
    return ListRules(
        places=places,
        for_lanes=max(places // 3, len(header.get("lane_places") or ())),
        line=line,
        shortlist=line is not None and header.get("ranking_mode") == "balanced",
    )


def learned_of(row: Mapping[str, Any]) -> float:
    """By how much the reader's ratings moved the probability of a row of a ranking (L4); 0 where they had no say."""
    return row.get("learned") or 0.0


def probability_of(row: Mapping[str, Any]) -> float:
    """The probability by which a row was put in order: its relevance, moved by what was learned."""
    probability: float = row["semantic_relevance"] + learned_of(row)
    return probability


def tenth(probability: Floats | float) -> Floats:
    """The tenth of probability that papers above the line are grouped by."""
    found: Floats = np.minimum(np.floor(10 * probability), 9.0)
    return found


def arrange(papers: ScoredPapers) -> ReadingList:
    """Put the candidates in order and fill the list."""
    rows, rules = np.flatnonzero(papers.member), papers.rules
    probability, final, tie = papers.probability[rows], papers.final[rows], papers.tie[rows]
    above = np.ones(len(rows), dtype=bool) if rules.line is None else probability >= rules.line
    pick = papers.pick[rows] & above & (rules.places > 1)
    places = rules.places - int(pick.any())
    if rules.line is None:
        order = np.lexsort((tie, -final))
    else:
        first = np.zeros(len(rows), dtype=bool)
        if rules.shortlist:
            first[np.lexsort((tie, -final, -np.where(above, probability, -1.0)))[:places]] = True
        group = np.where(above, tenth(probability), probability)
        order = np.lexsort((tie, -final, -group, ~(first & above), ~above))
    rows, above = rows[order], above[order]
    pick, lanes = pick[order], papers.lanes[rows] & above & ~pick[order]
    inside = np.zeros(len(rows), dtype=bool)
    inside[np.flatnonzero(above & ~pick)[:places]] = True
    late = np.flatnonzero(lanes & ~inside)[: rules.for_lanes]
    free = places - int(inside.sum())
    leaving = np.flatnonzero(inside & ~lanes)[::-1][: max(len(late) - free, 0)]
    inside[leaving] = False
    inside[late[: free + len(leaving)]] = True
    final_order = np.concatenate([rows[inside], rows[pick], rows[~inside & ~pick]])
    place = np.full(len(papers.member), len(papers.member) + 1)
    place[final_order] = np.arange(1, len(final_order) + 1)
    listed = np.zeros(len(papers.member), dtype=bool)
    listed[rows[inside | pick]] = True
    return ReadingList(place=place, listed=listed)


Rows = NDArray[np.int64]

_RELEVANCE = DIMENSIONS.index("semantic_relevance")
_SHORTLISTED = 10  # above every tenth


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """n papers and all that their order depends on. `serves` (n, lanes) as in `Relevance`. `shift` (n,): by how much
    the reader's ratings move the log odds of each (L2); None where they have no say.
    """

    paper_ids: pa.ChunkedArray
    texts: pa.ChunkedArray
    days: Floats  # the higher, the newer; NaN if unknown
    dimensions: Floats  # (n, 6)
    weights: tuple[float, ...]
    bonus: Floats
    penalty: Floats
    serves: Floats
    vectors: NDArray[np.float32] | None
    line: float | None
    shift: Floats | None = None

    @property
    def relevance(self) -> Floats:
        """(n,) as it counts for the order: moved by what was learned."""
        own: Floats = self.dimensions[:, _RELEVANCE]
        return own if self.shift is None else own + self.learned

    @property
    def learned(self) -> Floats:
        """(n,) by how much learning moves the probability (L4)."""
        own: Floats = self.dimensions[:, _RELEVANCE]
        return np.zeros(len(own)) if self.shift is None else shifted(own, self.shift) - own

    @property
    def above(self) -> Bools:
        """(n,) worth reading; all of them where there is no line."""
        if self.line is None:
            return np.ones(len(self.bonus), dtype=bool)
        found: Bools = self.relevance >= self.line
        return found

    def with_relevance(self, relevance: Floats) -> "Scored":
        """The same papers with another relevance."""
        dimensions = self.dimensions.copy()
        dimensions[:, _RELEVANCE] = relevance
        return replace(self, dimensions=dimensions)

    def final(self, scoring: ScoringConfig, *, diversity_penalty: float = 0.0) -> Floats:
        """(n,) final scores (G10)."""
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
    """`order` (n,): rows from the best to the last, the first `shown` of them in the list. Lane by row that has its
    place for a lane; the pick, if there is one, has the last place.
    """

    order: Rows
    shown: int
    final: Floats
    diversity_penalty: Floats
    lane_places: dict[int, int]
    pick: Contrast | None


def final_list(scored: Scored, *, options: RankingOptions, scoring: ScoringConfig, taxonomy: Taxonomy) -> FinalList:
    """The list of `options.top_k` places, of which the last may go to the pick; fewer where fewer are worth it."""
    found = _filled(scored, options.top_k - options.include_contrastive, options=options, scoring=scoring)
    if options.include_contrastive:
        above = found.order[: int(scored.above.sum())]
        pick = contrastive_pick(
            scored.texts, above, chosen=options.top_k - 1, kind=options.contrastive_type, taxonomy=taxonomy
        )
        if pick is None:
            found = _filled(scored, options.top_k, options=options, scoring=scoring)
        else:
            order = np.insert(np.delete(found.order, pick.place), options.top_k - 1, found.order[pick.place])
            found = replace(found, order=order, pick=pick)
    return replace(found, shown=min(options.top_k, int(scored.above.sum())))


def asked_first(scored: Scored, doubtful: Rows, *, options: RankingOptions, scoring: ScoringConfig) -> Rows:
    """The `doubtful` rows that a verifier should be asked about, the most promising first (G5).

    Left out are those that even a verdict of 1 would not bring into the list. The most probable fill a shortlist, so
    that a verdict of 1 always does; where tenths decide, a paper is out of reach if the places are filled by papers in
    the highest tenth that are not in doubt and score higher. Without a line all are asked, as the original asks them.
    """
    found = _filled(scored, options.top_k, options=options, scoring=scoring)
    place = np.empty(len(found.order), dtype=np.int64)
    place[found.order] = np.arange(len(found.order))
    asked: Rows = doubtful[np.argsort(place[doubtful], kind="stable")]
    if scored.line is None or options.ranking_mode == "balanced" or options.include_contrastive:
        return asked
    lowest = scored.final(scoring, diversity_penalty=_deduction(options, scoring))
    sure = scored.above & (tenth(scored.relevance) == tenth(np.ones(1)))
    sure[doubtful] = False
    rivals = np.sort(lowest[sure])
    best = scored.with_relevance(np.ones(len(lowest))).final(scoring)
    ahead = len(rivals) - np.searchsorted(rivals, best[asked], side="right")
    for_a_lane = (scored.serves[asked] > 0).any(axis=1) & (options.top_k >= 3)
    return asked[(ahead < options.top_k) | for_a_lane]


def _filled(scored: Scored, places: int, *, options: RankingOptions, scoring: ScoringConfig) -> FinalList:
    """Everything but the pick."""
    above = scored.above
    places = min(places, int(above.sum()))
    final, deducted = scored.final(scoring), np.zeros(len(scored.bonus))
    bands = _bands(scored)
    if options.ranking_mode == "diversity" and scored.vectors is not None:
        lowered = scored.final(scoring, diversity_penalty=_deduction(options, scoring))
        standing, fallen = _standings(scored, bands, final, lowered)
        again = repeating(
            standing,
            fallen,
            scored.vectors,
            days=scored.days,
            paper_ids=scored.paper_ids,
            places=places,
            similarity=scoring.diversity_similarity,
        )
        deducted, final = np.where(again, scoring.diversity_penalty, 0.0), np.where(again, lowered, final)
    if scored.line is not None and options.ranking_mode == "balanced":
        first = best_first(final, scored.days, scored.paper_ids, before=[scored.relevance])[:places]
        bands[first] += _SHORTLISTED
    keys = [] if scored.line is None else [bands, np.where(above, 0.0, scored.relevance)]
    order = best_first(final, scored.days, scored.paper_ids, before=keys)
    order, entered = with_every_lane(
        order, np.where(above[:, None], scored.serves, 0.0), places=places, most=options.top_k // 3
    )
    return FinalList(order=order, shown=places, final=final, diversity_penalty=deducted, lane_places=entered, pick=None)


def _bands(scored: Scored) -> Floats:
    """(n,) the tenth of its probability for a paper above the line, -1 for one below."""
    return np.where(scored.above, tenth(scored.relevance), -1.0)


def _deduction(options: RankingOptions, scoring: ScoringConfig) -> float:
    return scoring.diversity_penalty if options.ranking_mode == "diversity" else 0.0


def _standings(scored: Scored, bands: Floats, final: Floats, lowered: Floats) -> tuple[Floats, Floats]:
    """Numbers (n,) that are in the order of the list where `final` counts, and where `lowered` does.

    Places among all these pairs of band and score, so that equal stays equal and nothing is rounded.
    """
    if scored.line is None:
        return final, lowered
    within = [np.where(scored.above, score, scored.relevance) for score in (final, lowered)]
    pairs = np.column_stack([np.tile(bands, 2), np.concatenate(within)])
    _, places = np.unique(pairs, axis=0, return_inverse=True)
    ranked = places.reshape(2, -1).astype(np.float64)
    return ranked[0], ranked[1]
