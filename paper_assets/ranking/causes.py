"""Why a paper's place differs between two rankings: each possible cause is undone and the list arranged again (G16).

A cause holds if with it alone undone, and all else as it is now, the paper would not have entered, would not have
left, or would have moved less far. Causes that hold are ordered so:

1. a lane's place or the contrastive pick, which lifts or displaces a paper whatever its score;
2. the others by how far the paper would stand from its place without them (a paper that was no candidate: infinitely);
3. where that is equal, in the order of `KINDS`.

Where several would each do alone, so that none holds by itself, those that must be undone together are named together
(`Causes.decisive` counts them). What can be told apart is undone apart: each part of the paper's own score, the papers
that are gone by the reason why, new papers, other papers' scores. What cannot be is one cause: an edit of the profile,
another model, calibration or version of the ranking change the scores of all at once.

One more kind of cause: a name in `KINDS`, and in `_may_hold` how to undo it, in `causes_in_words` what to say.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from paper_assets.ranking import causes_in_words as say
from paper_assets.ranking.causes_in_words import OTHERS, Cause
from paper_assets.ranking.list_order import ReadingList, ScoredPapers, arrange, learned_of
from paper_assets.ranking.two_rankings import LEARNED, Bools, TwoRankings, differences

Outcome = Literal["entered", "left", "moved"]
KINDS = (
    "shown",  # a paper already shown: itself, or one above it that has freed its place
    "lane",
    "pick",
    "edit",  # of the profile or the options; another model, calibration or version of the ranking
    "version",  # of the paper
    "verdict",  # of the language model
    "ratings",  # of the reader, and what they taught
    "line",
    "shortlist",
    "tenth",
    "window",
    "removed",  # by another filter
    "new",
    "dimension",
    "came",  # other papers, new among the candidates
    "others",  # other papers, whose scores changed
    "level",  # less than what is displayed decided
)
_FIRST = ("lane", "pick")


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """The causes that hold, the deciding one first; more than one decide only `together`."""

    all: tuple[Cause, ...]
    decisive: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Possible:
    """A cause that may hold: how to undo it, and what to say if it does, given the list without it."""

    kind: str
    undo: Callable[[ScoredPapers], ScoredPapers]
    told: Callable[[ReadingList], Cause]
    by: float = 0.0  # what it brought the paper's own score


def why(two: TwoRankings, paper_id: str, outcome: Outcome, places: tuple[int | None, int | None]) -> Causes:
    """Why the paper entered, left or moved from the first place to the second."""
    old, new = (rows.get(paper_id) for rows in two.rows)
    if new is None:
        return Causes(all=(say.gone(two, paper_id),))
    at, own = two.at[paper_id], []
    if old is None:
        own.append(say.come(two, paper_id))

    def flips(without: ReadingList) -> bool:
        if outcome == "entered":
            return not without.listed[at]
        if outcome == "left":
            return bool(without.listed[at])
        rose = (places[0] or 0) > (places[1] or 0)
        return bool(without.place[at] > two.now.place[at] if rose else without.place[at] < two.now.place[at])

    if bool(two.now.listed[at]) != (outcome != "left"):  # a list by rules that are not known here
        return Causes(all=tuple(own) or (say.largest_part(two, paper_id),))
    possible = list(_may_hold(two, at))
    found = []
    for each in possible:
        without = arrange(each.undo(two.new))
        if flips(without):
            distance = abs(int(without.place[at]) - int(two.now.place[at]))
            found.append((each.kind not in _FIRST, -distance, KINDS.index(each.kind), each.told(without)))
    found.sort(key=lambda one: one[:3])
    lanes = [one for one in found if one[3].kind == "lane"]
    found = [one for one in found if one not in lanes[1:]]
    structural = [cause for late, *_, cause in found if not late]
    holding = (*structural, *own, *(cause for late, *_, cause in found if late))
    if holding:
        return Causes(all=holding)
    up = outcome == "entered" or (outcome == "moved" and (places[0] or 0) > (places[1] or 0))
    helped = [each for each in possible if each.by == 0 or (each.by > 0) == up]  # the rest worked against it
    together = _together(two, helped, flips) or _together(two, possible, flips)
    return Causes(all=tuple(together), decisive=len(together)) if together else Causes(all=(OTHERS,))


def _may_hold(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """What may have moved a paper that is a candidate now: how to undo it alone, and what to say."""
    yield from _claims(two, at)
    recomputed = two.recomputed
    if recomputed or two.rules_differ:
        yield _Possible(
            kind="edit", undo=lambda papers: _before_the_edit(two, papers), told=lambda _: say.edit(two, at)
        )
    if two.differs("preferences"):
        yield _Possible(
            kind="ratings", undo=lambda papers: _without_new_ratings(two, papers), told=lambda _: say.ratings(two, at)
        )
    if two.old.member[at]:
        yield from _own(two, at, recomputed=bool(recomputed))
    yield from _went(two, at)
    came = two.new.member & ~two.old.member
    came[at] = False
    if came.any():
        yield _Possible(
            kind="came",
            undo=lambda papers: replace(papers, member=papers.member & ~came),
            told=lambda _: say.by_others(
                two, "came", at, came & (two.now.place < two.now.place[at]), "{new} above it", came
            ),
        )
    others = two.common & ((two.old.final != two.new.final) | (two.old.probability != two.new.probability))
    others[at] = False
    if others.any() and (two.weights_only or not recomputed):
        yield _Possible(kind="others", undo=lambda papers: _as_before(two, papers, others), told=say.passed(two, at))


def _as_before(two: TwoRankings, papers: ScoredPapers, which: Bools) -> ScoredPapers:
    """Papers as they were, summed by the weights of now."""
    return replace(
        papers,
        probability=np.where(which, two.old.probability, papers.probability),
        final=np.where(which, two.old.final + two.reweighed[0], papers.final),
    )


def _before_the_edit(two: TwoRankings, papers: ScoredPapers) -> ScoredPapers:
    """Old rules; where scores were computed anew, old scores, and of new papers the sum by the old weights."""
    papers = replace(papers, rules=two.old.rules)
    if two.differs("top_k"):
        papers = replace(papers, lanes=papers.lanes | (two.old.lanes & papers.member))
    if two.headers[0].get("include_contrastive") != two.headers[1].get("include_contrastive"):
        papers = replace(papers, pick=two.old.pick & papers.member)
    if not two.recomputed:
        return papers
    as_it_was = papers.final == two.old.final + two.reweighed[0]
    papers = replace(papers, final=papers.final - np.where(as_it_was, two.reweighed[0], two.reweighed[1]))
    if two.weights_only:
        return papers
    return replace(
        papers,
        probability=np.where(two.common, two.old.probability, papers.probability),
        final=np.where(two.common, two.old.final, papers.final),
        lanes=two.old.lanes,
        pick=two.old.pick,
    )


def _without_new_ratings(two: TwoRankings, papers: ScoredPapers) -> ScoredPapers:
    """What the ratings taught before; of new papers nothing."""
    weight = two.headers[1]["weights"]["semantic_relevance"]
    pairs = [[rows.get(each) for rows in two.rows] for each in two.ids]
    by = np.array([learned_of(new) - (learned_of(old) if old else 0.0) if new else 0.0 for old, new in pairs])
    return replace(papers, probability=papers.probability - by, final=papers.final - weight * by)


def _claims(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """Places that papers have whatever their score."""
    settled = two.now.listed & ~two.new.lanes & ~two.new.pick  # needs no such place any more
    fresh, former = two.new.lanes & ~two.old.lanes, two.old.lanes & two.common & ~two.new.lanes & ~settled
    if fresh.any():
        yield _Possible(
            kind="lane",
            undo=lambda papers: replace(papers, lanes=papers.lanes & ~fresh),
            told=lambda _: say.by_lane(two, at, fresh, 1),
        )
    if former.any():
        yield _Possible(
            kind="lane",
            undo=lambda papers: replace(papers, lanes=(papers.lanes & ~fresh) | former),
            told=lambda _: say.by_lane(two, at, former, 0),
        )
    pick = two.old.pick & two.common & ~settled
    if (pick != two.new.pick).any():
        yield _Possible(
            kind="pick",
            undo=lambda papers: replace(papers, pick=(papers.pick & ~two.new.pick) | pick),
            told=say.by_pick(two, at),
        )


def _own(two: TwoRankings, at: int, *, recomputed: bool) -> Iterator[_Possible]:
    """Each part of the paper's own score that differs."""
    old, new = (rows[two.ids[at]] for rows in two.rows)
    headers = (two.headers[1], two.headers[1]) if two.weights_only else two.headers
    for name, by in differences(old, new, headers).items():
        if name == LEARNED:
            continue  # ratings move all papers at once: one cause
        kind, words = say.own_words(two, at, name, by)
        if recomputed and not two.weights_only:
            continue  # what it would be under the old interests or by the old model is not known: one cause

        def undo(papers: ScoredPapers, name: str = name, by: float = by) -> ScoredPapers:
            final, probability = papers.final.copy(), papers.probability.copy()
            final[at] -= by
            if name == "semantic_relevance":
                probability[at] += old[name] - new[name]
            return replace(papers, final=final, probability=probability)

        def told(_: ReadingList, kind: str = kind, words: str = words, name: str = name) -> Cause:
            return Cause(kind=kind, words=words, part=name)

        yield _Possible(kind=kind, undo=undo, told=told, by=by)


def _went(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """Papers that are no candidates any more, by the reason why."""
    reasons = dict[tuple[str, str], Bools]()
    for gone in np.flatnonzero(two.old.member & ~two.new.member):
        cause = say.gone(two, two.ids[gone])
        reasons.setdefault((cause.kind, cause.words), np.zeros(len(two.ids), dtype=np.bool_))[gone] = True
    for (kind, words), which in reasons.items():

        def undo(papers: ScoredPapers, which: Bools = which) -> ScoredPapers:
            return replace(
                _as_before(two, papers, which),
                member=papers.member | which,
                lanes=papers.lanes | (two.old.lanes & (papers.member | which)),
                pick=papers.pick if papers.pick.any() else papers.pick | (two.old.pick & which),
            )

        def told(without: ReadingList, kind: str = kind, words: str = words, which: Bools = which) -> Cause:
            above = which & (without.place < without.place[at])
            said = "{papers} that stood above it {are} " + words
            if kind == "shown":
                said = "{papers} that stood above it {are} already shown"
            if kind == "window":
                said = "{papers} that stood above it {are} no longer in the window"
            return say.by_others(two, kind, at, above, said, which & without.listed)

        yield _Possible(kind=kind, undo=undo, told=told)


def _together(two: TwoRankings, possible: Sequence[_Possible], flips: Callable[[ReadingList], bool]) -> list[Cause]:
    """The fewest that are found of those which must be undone together, one after the other in the order tried."""
    chosen: list[_Possible] = []
    papers = two.new
    for each in sorted(possible, key=lambda one: (one.kind == "edit", KINDS.index(one.kind))):
        papers = each.undo(papers)
        chosen.append(each)
        if flips(arrange(papers)):
            break
    else:
        return []
    for each in list(chosen[:-1]):
        papers = two.new
        for other in (one for one in chosen if one is not each):
            papers = other.undo(papers)
        if flips(arrange(papers)):
            chosen.remove(each)
    papers = two.new
    for each in chosen:
        papers = each.undo(papers)
    without = arrange(papers)
    return [each.told(without) for each in sorted(chosen, key=lambda one: KINDS.index(one.kind))]
