"""A list as it follows from stored rows: what a change of one of them would do to it (SPEC G16, G17).

The same order as `rank()` makes it, but from what is stored of a ranking, so that a question such as "and without this
paper?" is answered by arranging the rows again. What is not stored (which interests a paper serves beside its best)
is taken as it was: the papers that had a lane's place keep their claim to it, the pick stays the pick.

- Without a line: by final score.
- With one: papers above it first; of these, in the mode `balanced`, the K most probable; then by tenths of
  probability; within a tenth by final score. Papers under it by probability. Ties: the newer paper, then the lower id.
- The list is the first K that are above the line. A paper with a claim to a place that is not among them displaces
  the lowest without one; the pick takes the last place.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
