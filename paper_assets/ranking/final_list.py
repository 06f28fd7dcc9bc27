"""The final list: which papers are above the threshold, in which order (SPEC G4, G10-G12, G17).

If relevance is a probability, papers above the threshold precede all others, and both groups are ordered by their
match: the log odds of the probability above the threshold's, plus `nudge` times the other parts of the final score
(keywords, authors, institutions, recency, code, bonus, penalties). For purpose idea_generation log odds beyond an edge
lower the match. Papers below the threshold are not in the list. Without a threshold (mode `seed`, no profile) the final
score alone decides. Rankings from before the match was introduced are ordered by tenths of probability, and by final
score within a tenth (`nudge` is None).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.profile import RankingOptions
from paper_assets.ranking.contrast import Contrast, contrastive_pick
from paper_assets.ranking.preferences import log_odds, shifted
from paper_assets.ranking.relevance import with_every_lane
from paper_assets.ranking.scoring import best_first, final_scores, repeating
from paper_assets.ranking.traits import Taxonomy
from paper_assets.settings import ScoringConfig
from paper_assets.weights import DIMENSIONS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


_ROUNDING = 1e-9  # points of log odds


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """The probability beyond which a higher one counts less: each point of log odds beyond it subtracts `slope`, in all
    at most `most`.
    """

    probability: float
    slope: float
    most: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRule:
    """How a day's threshold follows from its papers: it is `lowest`, or as much higher as is needed so that a share of
    `right` of the papers above it is expected to be on topic.
    """

    lowest: float
    right: float
    slack: float = 0.0  # papers that an older ranking's list may be short of that share
    never_empty: bool = False  # the most probable paper is listed if it reaches `alone`, whatever is expected
    alone: float | None = None  # None: `lowest`, as in older rankings

    def line(self, probability: Floats) -> float:
        """Return the threshold for papers of these probabilities: that of the last one admitted."""
        falling = np.sort(probability[probability >= self.lowest])[::-1]
        missing = np.flatnonzero(np.cumsum(self.right - falling) > self.slack)
        if len(falling) and not len(missing):
            return self.lowest
        if len(missing) and missing[0]:
            return float(falling[missing[0] - 1])
        best = float(probability.max(initial=0.0))
        if self.never_empty and best >= (self.lowest if self.alone is None else self.alone):
            return best
        return max(self.right - self.slack, self.lowest) if len(missing) else self.lowest


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRules:
    """The number of places, the most of them for lanes, the threshold `line` (None: there is none), and whether the
    most probable papers go first.

    `line_rule` computes the threshold from the papers; None: it is the same every day. `nudge`: points of log odds for
    one point of the score beside relevance (None: an older ranking, ordered by tenths); `weight`: that of relevance in
    the score.
    """

    places: int
    for_lanes: int
    line: float | None
    shortlist: bool
    nudge: float | None = None
    weight: float = 0.0
    edge: Edge | None = None
    line_rule: LineRule | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredPapers:
    """n papers: which of them are candidates, their probability, final score, age rank and claims to a place.

    `tie`: (n,) the order at equal scores, lowest first. `serves` (n, lanes): the probability by each interest
    alone, 0 where it is too low. `lanes` (n,): has a place whatever its score; `pick` (n,): is the contrastive pick.
    """

    member: Bools
    probability: Floats
    final: Floats
    tie: Ints
    serves: Floats
    lanes: Bools
    pick: Bools
    rules: ListRules


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingList:
    """(n,) the place of each paper among all from 1 (n + 1: not a candidate), and which papers are in the list."""

    place: Ints
    listed: Bools


def rules_of(header: Mapping[str, Any], *, otherwise: int = 1) -> ListRules:
    """Read the rules from a ranking's header; older rankings have no threshold."""
    line, places, nudge = header.get("line"), header.get("top_k", otherwise), header.get("nudge")
    return ListRules(
        places=places,
        for_lanes=max(places // 3, len(header.get("lane_places") or ())),
        line=line,
        shortlist=line is not None and nudge is None and header.get("ranking_mode") == "balanced",
        nudge=nudge,
        weight=header["weights"]["semantic_relevance"] if nudge is not None else 0.0,
        edge=edge_of(header),
        line_rule=LineRule(**header["line_rule"]) if header.get("line_rule") else None,
    )


def interests_served(header: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the interests that at least one paper of the ranking serves, in the profile's order."""
    return tuple(header["served"] if "served" in header else (interest for interest, _ in header.get("serves") or ()))


def scored_papers(
    rows: Sequence[Mapping[str, Any] | None], header: Mapping[str, Any], *, interests: Sequence[str] = ()
) -> ScoredPapers:
    """Return a stored ranking's rows as they were arranged; at equal scores their order here decides.

    A row that is None is not a candidate. `interests`: the columns of `serves`; by default those of the header.
    """
    columns = {interest: at for at, interest in enumerate(interests or interests_served(header))}
    at = {row["paper_id"]: number for number, row in enumerate(rows) if row}
    serves = np.zeros((len(rows), len(columns)))
    for number, row in enumerate(rows):
        for interest, value in zip(header.get("served") or (), (row and row.get("serves")) or (), strict=False):
            serves[number, columns[interest]] = value
    # Older rankings store it in the header, by interest and paper.
    for interest, papers in header.get("serves") or ():
        for paper_id, value in papers.items():
            serves[at[paper_id], columns[interest]] = value
    # The oldest store only which papers got a place for an interest, not which papers serve it.
    places = () if {"served", "serves"} & header.keys() else header.get("lane_places") or ()
    found = ScoredPapers(
        member=np.array([row is not None for row in rows], dtype=np.bool_),
        probability=np.array([probability_of(row) if row else 0.0 for row in rows]),
        final=np.array([row["final"] if row else 0.0 for row in rows]),
        tie=np.arange(len(rows)),
        serves=serves,
        lanes=np.array([row is not None and row["paper_id"] in places for row in rows], dtype=np.bool_),
        pick=np.array([row is not None and "CONTRASTIVE_PICK" in row["tags"] for row in rows], dtype=np.bool_),
        rules=rules_of(header, otherwise=max(sum(bool(row and row["shown"]) for row in rows), 1)),
    )
    if not places:
        return found
    # A shown paper whose score is too low for the list keeps its place as the only one of its interest.
    shown = np.array([row is not None and row["shown"] for row in rows], dtype=np.bool_)
    return replace(found, lanes=found.lanes | (shown & ~arrange(found).listed))


def edge_of(header: Mapping[str, Any]) -> Edge | None:
    """Return the edge that a ranking's header names, if any."""
    return Edge(**header["edge"]) if header.get("edge") else None


def learned_of(row: Mapping[str, Any]) -> float:
    """Return by how much the reader's ratings moved the probability of a row of a ranking (L4); 0 where they did not
    count.
    """
    return row.get("learned") or 0.0


def probability_of(row: Mapping[str, Any]) -> float:
    """Return the probability by which a row was put in order: its relevance, moved by what was learned."""
    probability: float = row["semantic_relevance"] + learned_of(row)
    return probability


def matches(probability: Floats, final: Floats, *, nudge: float, weight: float, edge: Edge | None) -> Floats:
    """Return the match (n,) by which the list is ordered, up to a constant that all papers share."""
    found: Floats = _odds(probability, edge) + nudge * (final - weight * probability)
    return found


def _odds(probability: Floats | float, edge: Edge | None) -> Floats:
    """Return log odds that fall beyond the edge."""
    odds = log_odds(probability)
    if edge is None:
        return odds
    beyond = np.maximum(odds - log_odds(edge.probability), 0.0)
    found: Floats = odds - beyond - np.minimum(edge.slope * beyond, edge.most)
    return found


def match_of(row: Mapping[str, Any], header: Mapping[str, Any]) -> float | None:
    """Return the number by which a row was put in order; None in rankings ordered by the final score or by tenths."""
    nudge = header.get("nudge")
    if nudge is None:
        return None
    probability = probability_of(row)
    rest: float = row["final"] - header["weights"]["semantic_relevance"] * probability
    match = points_above(probability, header) + float(nudge * (rest - header["nudge_from"]))
    return match if abs(match) > _ROUNDING else 0.0  # the paper at the threshold: no -0.00


def points_above(probability: float, header: Mapping[str, Any]) -> float:
    """Return the points of log odds that a probability above the threshold adds."""
    return float(_odds(probability, edge_of(header)) - log_odds(header["line"]))


def order_value(row: Mapping[str, Any], header: Mapping[str, Any]) -> float:
    """Return the match, or the final score of a ranking that has none: the number that tables show."""
    match = match_of(row, header)
    return float(row["final"]) if match is None else match


def tenth(probability: Floats | float) -> Floats:
    """Return the tenth of probability by which papers above the threshold are grouped."""
    found: Floats = np.minimum(np.floor(10 * probability), 9.0)
    return found


def arrange(papers: ScoredPapers) -> ReadingList:
    """Put the candidates in order and fill the list."""
    rows, rules = np.flatnonzero(papers.member), papers.rules
    probability, final, tie = papers.probability[rows], papers.final[rows], papers.tie[rows]
    line = rules.line_rule.line(probability) if rules.line_rule else rules.line
    above = np.ones(len(rows), dtype=bool) if line is None else probability >= line
    pick = papers.pick[rows] & above & (rules.places > 1)
    places = rules.places - int(pick.any())
    if line is None:
        order = np.lexsort((tie, -final))
    else:
        first = np.zeros(len(rows), dtype=bool)
        if rules.shortlist:
            first[np.lexsort((tie, -final, -np.where(above, probability, -1.0)))[:places]] = True
        if rules.nudge is None:
            group = np.where(above, tenth(probability), probability)
        else:
            group = matches(probability, final, nudge=rules.nudge, weight=rules.weight, edge=rules.edge)
        order = np.lexsort((tie, -final, -group, ~(first & above), ~above))
    rows, above, pick = rows[order], above[order], pick[order]
    unpicked, places = np.flatnonzero(~pick), min(places, int((above & ~pick).sum()))
    serves = np.where(above[:, None], papers.serves[rows], 0.0)
    chosen, _ = with_every_lane(unpicked, serves, places=places, most=rules.for_lanes)
    inside = np.zeros(len(rows), dtype=bool)
    inside[chosen[:places]] = True
    lanes = papers.lanes[rows] & above & ~pick
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """n papers and all that their order depends on. `serves` (n, lanes) as in `Relevance`. `shift` (n,): by how much
    the reader's ratings move the log odds of each (L2); None if they are not used.
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
    nudge: float = 0.0  # points of log odds that a point of the score beside relevance counts
    edge: Edge | None = None
    line_rule: LineRule | None = None  # None: the threshold does not depend on the papers

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
        """(n,) above the threshold; all papers if there is none."""
        if self.line is None:
            return np.ones(len(self.bonus), dtype=bool)
        found: Bools = self.relevance >= self.line
        return found

    def match(self, final: Floats) -> Floats:
        """Return (n,) the match by which the list is ordered if there is a threshold, from the final scores."""
        return matches(self.relevance, final, nudge=self.nudge, weight=self.weights[_RELEVANCE], edge=self.edge)

    def with_days_line(self) -> "Scored":
        """The same papers with the threshold that follows from them."""
        return self if self.line_rule is None else replace(self, line=self.line_rule.line(self.relevance))

    def with_relevance(self, relevance: Floats) -> "Scored":
        """Return the same papers with another relevance."""
        dimensions = self.dimensions.copy()
        dimensions[:, _RELEVANCE] = relevance
        return replace(self, dimensions=dimensions)

    def final(self, scoring: ScoringConfig, *, diversity_penalty: float = 0.0) -> Floats:
        """Return (n,) final scores (G10)."""
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
    """Return the list of `options.top_k` places, of which the last may go to the pick; fewer if fewer papers are
    worth it.
    """
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
    """Return the `doubtful` rows that a verifier should be asked about, the most promising first (G5).

    Papers that even a verdict of 1 would not bring into the list are left out: its places are filled by papers that are
    not in doubt and match better. Without a threshold, all are asked about.
    """
    found = _filled(scored, options.top_k, options=options, scoring=scoring)
    place = np.empty(len(found.order), dtype=np.int64)
    place[found.order] = np.arange(len(found.order))
    asked: Rows = doubtful[np.argsort(place[doubtful], kind="stable")]
    if scored.line is None or options.include_contrastive:
        return asked
    lowest = scored.match(scored.final(scoring, diversity_penalty=_deduction(scored, options, scoring)))
    sure = scored.above
    sure[doubtful] = False
    rivals = np.sort(lowest[sure])
    certain = scored.with_relevance(np.full(len(lowest), scored.edge.probability if scored.edge else 1.0))
    best = certain.match(certain.final(scoring))
    ahead = len(rivals) - np.searchsorted(rivals, best[asked], side="right")
    for_a_lane = (scored.serves[asked] > 0).any(axis=1) & (options.top_k >= 3)
    return asked[(ahead < options.top_k) | for_a_lane]


def _filled(scored: Scored, places: int, *, options: RankingOptions, scoring: ScoringConfig) -> FinalList:
    """Return the list without the pick."""
    above = scored.above
    places = min(places, int(above.sum()))
    final, deducted = scored.final(scoring), np.zeros(len(scored.bonus))
    if scored.vectors is not None and (deduction := _deduction(scored, options, scoring)):
        lowered = scored.final(scoring, diversity_penalty=deduction)
        standing, fallen = _standings(scored, final, lowered)
        again = repeating(
            standing,
            fallen,
            scored.vectors,
            days=scored.days,
            paper_ids=scored.paper_ids,
            places=places,
            similarity=scoring.idea_similarity if scored.edge else scoring.diversity_similarity,
        )
        deducted, final = np.where(again, deduction, 0.0), np.where(again, lowered, final)
    keys = [] if scored.line is None else [above.astype(np.float64), scored.match(final)]
    order = best_first(final, scored.days, scored.paper_ids, before=keys)
    order, entered = with_every_lane(
        order, np.where(above[:, None], scored.serves, 0.0), places=places, most=options.top_k // 3
    )
    return FinalList(order=order, shown=places, final=final, diversity_penalty=deducted, lane_places=entered, pick=None)


def _deduction(scored: Scored, options: RankingOptions, scoring: ScoringConfig) -> float:
    """Return the points that a paper similar to a chosen one loses; 0 without the variety penalty."""
    return scoring.diversity_penalty if options.ranking_mode == "diversity" or scored.edge else 0.0


def _standings(scored: Scored, final: Floats, lowered: Floats) -> tuple[Floats, Floats]:
    """Return two rankings (n,) on one scale: in the order of the list by the scores `final`, and by `lowered`.

    The ranks are those of the pairs (above or not, match) of both, so that ties stay ties and nothing is rounded.
    """
    if scored.line is None:
        return final, lowered
    within = np.concatenate([scored.match(score) for score in (final, lowered)])
    pairs = np.column_stack([np.tile(scored.above, 2), within])
    _, places = np.unique(pairs, axis=0, return_inverse=True)
    ranked = places.reshape(2, -1).astype(np.float64)
    return ranked[0], ranked[1]
