"""Find why a paper's place differs between two rankings: undo each possible cause and arrange the list again (G16).

A cause counts if undoing it alone, with everything else as it is now, would have kept the paper from entering or
leaving the list, or would have made it move less. Causes that count are ordered:

1. a place reserved for an interest (a lane) or the contrastive pick, which moves a paper regardless of its score;
2. the others by how far the paper would be from its place without them (a paper that was not a candidate: infinitely);
3. where that is equal, in the order of `KINDS`.

If no cause counts alone, because several had the same effect, the smallest group found that must be undone together is
returned (`Causes.decisive` is its size). Everything that can be undone separately is one cause each: each part of the
paper's own score, the papers that are gone (by reason), new papers, other papers' scores. An edit of the profile and
another model, calibration or version of the ranking change all scores at once; each is one cause.

To add a kind of cause: add its name to `KINDS` and yield it in `_possible_causes` with how to undo it and a function
that describes it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal

import numpy as np

from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.ranking.explain import removed_in_words
from paper_assets.ranking.final_list import (
    LineRule,
    ReadingList,
    ScoredPapers,
    arrange,
    learned_of,
    probability_of,
    tenth,
)
from paper_assets.ranking.two_rankings import (
    LEARNED,
    Bools,
    TwoRankings,
    asked_of,
    candidates_edited,
    differences,
    edit_in_words,
    newer_version,
    ordinal,
)

_ROUNDING = 1e-9
NOTICED = 0.005  # of a score or a probability: half of what is displayed
_ALREADY_SHOWN = "ALREADY_SHOWN"  # the filter's code
_FREES = ("shown", "window", "removed")
_LLM = "embedding+llm"
_ADDED_IN_WORDS = {
    LEARNED: "what your ratings taught",
    "bonus": "what the mode adds",
    "soft_penalty": "soft penalty",
    "diversity_penalty": "likeness to a paper placed higher",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A reason why a paper moved: its kind (`KINDS`), its words, and the other papers or the part of the score
    responsible.

    `edit`: the part of the words that names an edit of the profile, if any does.
    """

    kind: str
    words: str
    papers: tuple[str, ...] = ()
    part: str | None = None
    edit: str = ""

    @property
    def brief(self) -> str:
        """The words for a reader who sees beside them what was edited."""
        return self.words.replace(self.edit, "your edit", 1) if self.edit else self.words

    @property
    def sentence(self) -> str:
        """The words, with the ids of the first three papers."""
        if not self.papers:
            return self.words
        return f"{self.words} ({', '.join(self.papers[:3])}{', …' if len(self.papers) > 3 else ''})"


_LEVEL = ("level", "it was nearly level with others: less than 0.005 decided")
OTHERS = Cause(kind="others", words="its score is the same; others came or went")


def largest_part(two: TwoRankings, paper_id: str) -> Cause:
    """Return the part of the paper's own score that differs most; whether it changed the place is not checked."""
    parts = two.parts(paper_id)
    name = max(parts, key=lambda part: (abs(parts[part]), part), default=None)
    if name is None or abs(parts[name]) <= NOTICED:
        return OTHERS
    return Cause(kind="dimension", words=f"{_part_in_words(name)} {parts[name]:+.3f}", part=name)


def own_words(two: TwoRankings, at: int, name: str, by: float) -> tuple[str, str]:
    """Return kind and words of the part `name` of the score of paper number `at`, which differs by `by`."""
    old, new = (rows[two.ids[at]] for rows in two.rows)
    dimension = f"{_part_in_words(name)} {by:+.3f}"
    then, now = probability_of(old), probability_of(new)
    if name != "recency" and (version := newer_version(old, new)):
        return "version", f"{version}: {dimension}"
    if name != "semantic_relevance":
        return ("dimension", dimension) if abs(by) > NOTICED else _LEVEL
    methods = old["evaluation_method"], new["evaluation_method"]
    if _LLM in methods:
        whose = "a language model's verdict" if methods[1] == _LLM else "a language model's verdict no longer"
        return "verdict", f"{whose}: relevance {_from_to(then, now)}"
    if two.line is not None:
        moved = _from_to(then, now)
        crossed = (then >= two.line, now >= two.line)
        if crossed[0] != crossed[1]:
            where = "rose above" if crossed[1] else "fell below"
            return "line", f"it {where} the threshold of {two.line:.2f} (probability {moved})"
        if two.new.rules.nudge is None and tenth(then) != tenth(now):
            where = "higher" if now > then else "lower"
            return "tenth", f"its probability is in a {where} tenth ({moved})"
        if abs(by) <= NOTICED < abs(now - then):
            return "shortlist", f"its probability among the most probable ({moved})"
    return ("dimension", dimension) if abs(by) > NOTICED else _LEVEL


def gone(two: TwoRankings, paper_id: str) -> Cause:
    """Return why a paper of the earlier ranking is no longer a candidate."""
    reason = two.removed.get(paper_id)
    if reason is None:
        edited = candidates_edited(two.edits, ("feed",)) if two.edited else None
        if edited and two.same_day:
            named = edit_in_words(edited)
            return Cause(kind="edit", words=f"{named}: no longer in the window", edit=named)
        return Cause(kind="window", words="no longer in the window")
    words = removed_in_words(reason)
    if reason == _ALREADY_SHOWN:
        return Cause(kind="shown", words=f"already shown: {words}")
    edited = candidates_edited(two.edits, ("keywords.exclude.hard", "constraints", "read", "ranking.purpose"))
    named = edit_in_words(edited) if two.edited and edited else ""
    return Cause(kind="removed", words=f"removed: {words}{named and f'; {named}'}", edit=named)


def come(two: TwoRankings, paper_id: str) -> Cause:
    """Return why a paper that was not a candidate is one now."""
    was = (two.removed_before or {}).get(paper_id)
    edited = candidates_edited(two.edits) if two.edited else None
    named = edit_in_words(edited) if edited else ""
    if was:
        words = f"no longer removed, as it was before: {removed_in_words(was)}"
        return Cause(kind="removed", words=f"{words}{named and f'; {named}'}", edit=named)
    known = two.removed_before is not None and ordinal(two.days.get(paper_id)) <= ordinal(
        _day(two.headers[0].get("as_of"))
    )
    if edited and (two.same_day or known):
        return Cause(kind="edit", words=f"{named}: now among the candidates", edit=named)
    return Cause(kind="new", words="new among the candidates")


def by_lane(two: TwoRankings, at: int, which: Bools, side: int) -> Cause:
    """Return the cause for papers that got (`side` 1) or lost (0) the place reserved for an interest."""
    places = two.headers[side].get("lane_places") or {}
    papers = [two.ids[each] for each in np.flatnonzero(which) if two.ids[each] in places]
    interests = ", ".join(dict.fromkeys(places[each] for each in papers))
    if two.ids[at] in papers:
        interest = places[two.ids[at]]
        if side:
            words = f"a place for your interest in {interest}, which no other paper shown serves"
        else:
            words = f"no place any more for your interest in {interest} alone"
        return Cause(kind="lane", words=words)
    words = f"a place goes to your interest in {interests}"
    return Cause(kind="lane", words=words if side else f"{words} no more", papers=tuple(papers))


def by_pick(two: TwoRankings, at: int) -> Callable[[ReadingList], Cause]:
    """Return the function that describes a change of the contrastive pick."""

    def describe(_: ReadingList) -> Cause:
        if two.new.pick[at]:
            return Cause(kind="pick", words="the contrastive pick: it differs from the others")
        if two.old.pick[at]:
            return Cause(kind="pick", words="no longer the contrastive pick")
        others = tuple(two.ids[each] for each in np.flatnonzero(two.new.pick))
        words = "the last place goes to the contrastive pick" if others else "no place goes to a contrastive pick"
        return Cause(kind="pick", words=words, papers=others)

    return describe


def passed(two: TwoRankings, at: int) -> Callable[[ReadingList], Cause]:
    """Return the function that describes other papers whose scores changed: those that passed it, or fell below it."""

    def describe(without: ReadingList) -> Cause:
        over = two.common & (two.now.place < two.now.place[at]) & (without.place > without.place[at])
        under = two.common & (two.now.place > two.now.place[at]) & (without.place < without.place[at])
        which, words = (
            (under, "{papers} fell below it") if under.sum() > over.sum() else (over, "{papers} rose past it")
        )
        return by_others(two, "others", at, which, words, which)

    return describe


def by_others(
    two: TwoRankings, kind: str, at: int, which: Bools, words: str, otherwise: Bools, *, edit: str = ""
) -> Cause:
    """Return a cause made of other papers: those of the mask `which`, or of `otherwise` if `which` has none.

    `words` contain `{papers}` or `{new}` for their number, and may contain `{are}` for the verb. `edit`: see `Cause`.
    """
    named = which if which.any() else otherwise
    order = sorted(np.flatnonzero(named), key=lambda each: (two.now.place[each], each))
    plural = "s" if len(order) != 1 else ""
    papers, new = (f"{len(order)} {noun}{plural}" for noun in ("paper", "new paper"))
    said = words.format(papers=papers, new=new, are="are" if plural else "is")
    freed = kind in _FREES and two.old.member[at] and not two.rows[0][two.ids[at]]["shown"]
    said = f"a place is free: {said}" if freed else f"others came or went: {said}"
    same = two.common[at] and all(
        abs(one[at] - other[at]) < NOTICED
        for one, other in ((two.old.final, two.new.final), (two.old.probability, two.new.probability))
    )
    return Cause(
        kind=kind,
        words=f"its score is the same; {said}" if same else said,
        papers=tuple(two.ids[each] for each in order),
        edit=edit,
    )


def ratings(two: TwoRankings, at: int) -> Cause:
    """Return the cause for what the reader's ratings taught, with how much that changes this paper's probability."""
    old, new = (rows.get(two.ids[at]) for rows in two.rows)
    then, now = (learned_of(row) if row else 0.0 for row in (old, new))
    moved = f", which {_influence(then, now)}" if abs(now - then) > NOTICED else ""
    return Cause(kind="ratings", words=f"what your ratings taught{moved}", part=LEARNED)


def _influence(then: float, now: float) -> str:
    """Describe how ratings change a probability now, and before, such as "lowers its probability by 0.02"."""
    if abs(now) <= NOTICED:
        return f"no longer {'raises' if then > 0 else 'lowers'} its probability by {abs(then):.2f}"
    before = f" (before it {'raised' if then > 0 else 'lowered'} it by {abs(then):.2f})" if abs(then) > NOTICED else ""
    return f"{'raises' if now > 0 else 'lowers'} its probability by {abs(now):.2f}{before}"


def edit(two: TwoRankings, at: int) -> Cause:
    """Return the cause for an edit, with the part of the paper's own score that it changed most."""
    words = " and ".join(two.recomputed or two.rules_differ)
    if two.recomputed and two.common[at] and (part := largest_part(two, two.ids[at])).part:
        words += f": {part.words}"
        old, new = (rows[two.ids[at]] for rows in two.rows)
        if not two.weights_only and newer_version(old, new):
            words += f"; {newer_version(old, new)}"
    return Cause(kind="edit", words=words, edit=two.edit_named)


def alone(rule: LineRule) -> Cause:
    """Return the cause for a doubtful paper that is shown alone in the first list of these interests, or no longer
    is.
    """
    if rule.never_empty:
        words = "the first list for these interests shows its best paper even if it is doubtful"
    else:
        words = "only the first list for these interests shows a doubtful paper alone"
    return Cause(kind="alone", words=words)


def _part_in_words(name: str) -> str:
    return DIMENSIONS_IN_WORDS.get(name) or _ADDED_IN_WORDS[name]


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _from_to(then: float, now: float) -> str:
    digits = 2 if f"{then:.2f}" != f"{now:.2f}" else 3
    return f"{then:.{digits}f} → {now:.{digits}f}"


Outcome = Literal["entered", "left", "moved"]
KINDS = (
    "shown",  # a paper already shown: itself, or one above it that has freed its place
    "lane",
    "pick",
    "edit",  # of the profile or the options; another model, calibration or version of the ranking
    "version",  # of the paper
    "verdict",  # of the language model
    "ratings",  # of the reader, and what they taught
    "alone",  # the best paper, shown alone because the first list for these interests would be empty
    "line",
    "shortlist",
    "tenth",
    "window",
    "removed",  # by another filter
    "new",
    "dimension",
    "came",  # other papers, new among the candidates
    "others",  # other papers, whose scores changed
    "level",  # a difference too small to be displayed
)
_FIRST = ("lane", "pick")


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """The causes found, in the order of the module's docstring. The first `decisive` of them decide together."""

    all: tuple[Cause, ...]
    decisive: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Possible:
    """A possible cause. `undo` returns the later ranking's papers without it, `describe` the cause from their list."""

    kind: str
    undo: Callable[[ScoredPapers], ScoredPapers]
    describe: Callable[[ReadingList], Cause]
    by: float = 0.0  # points that it adds to the paper's own score


def why(two: TwoRankings, paper_id: str, outcome: Outcome, places: tuple[int | None, int | None]) -> Causes:
    """Return why the paper entered the list, left it, or moved from the first of the `places` to the second."""
    old, new = (rows.get(paper_id) for rows in two.rows)
    if new is None:
        return Causes(all=(gone(two, paper_id),))
    at, own = two.at[paper_id], []
    if old is None:
        own.append(come(two, paper_id))

    def flips(without: ReadingList) -> bool:
        if outcome == "entered":
            return not without.listed[at]
        if outcome == "left":
            return bool(without.listed[at])
        rose = (places[0] or 0) > (places[1] or 0)
        return bool(without.place[at] > two.now.place[at] if rose else without.place[at] < two.now.place[at])

    if bool(two.now.listed[at]) != (outcome != "left"):  # the stored list follows rules that are not known here
        return Causes(all=tuple(own) or (largest_part(two, paper_id),))
    possible = list(_possible_causes(two, at))
    found = []
    for each in possible:
        without = arrange(each.undo(two.new))
        if flips(without):
            distance = abs(int(without.place[at]) - int(two.now.place[at]))
            found.append((each.kind not in _FIRST, -distance, KINDS.index(each.kind), each.describe(without)))
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


def _possible_causes(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """Yield everything that may have moved paper number `at`, a candidate of the later ranking."""
    yield from _claims(two, at)
    recomputed = two.recomputed
    if recomputed or two.rules_differ:
        yield _Possible(
            kind="edit", undo=lambda papers: _before_the_edit(two, papers), describe=lambda _: edit(two, at)
        )
    if (rule := two.new.rules.line_rule) and two.never_empty_before == (not rule.never_empty):
        yield _Possible(
            kind="alone", undo=lambda papers: _never_empty(papers, not rule.never_empty), describe=lambda _: alone(rule)
        )
    if two.differs("preferences"):
        yield _Possible(
            kind="ratings", undo=lambda papers: _without_new_ratings(two, papers), describe=lambda _: ratings(two, at)
        )
    if two.old.member[at]:
        yield from _own_parts(two, at, recomputed=bool(recomputed))
    yield from _gone_by_reason(two, at)
    came = two.new.member & ~two.old.member
    came[at] = False
    if came.any():
        yield _Possible(
            kind="came",
            undo=lambda papers: replace(papers, member=papers.member & ~came),
            describe=lambda _: by_others(
                two, "came", at, came & (two.now.place < two.now.place[at]), "{new} above it", came
            ),
        )
    others = two.common & ((two.old.final != two.new.final) | (two.old.probability != two.new.probability))
    others[at] = False
    if others.any() and (two.weights_only or not recomputed):
        yield _Possible(kind="others", undo=lambda papers: _as_before(two, papers, others), describe=passed(two, at))


def _as_before(two: TwoRankings, papers: ScoredPapers, which: Bools) -> ScoredPapers:
    """Return the papers with the earlier parts for those of the mask `which`, summed with the later weights."""
    return replace(
        papers,
        probability=np.where(which, two.old.probability, papers.probability),
        final=np.where(which, two.old.final + two.reweighed[0], papers.final),
        serves=np.where(which[:, None], two.old.serves, papers.serves),
    )


def _before_the_edit(two: TwoRankings, papers: ScoredPapers) -> ScoredPapers:
    """Return the papers by the old rules.

    If the edit changed scores, papers of both rankings get their old scores, and new ones are summed with the old
    weights.
    """
    papers = replace(papers, rules=two.old.rules)
    if asked_of(two.headers[0]).get("line") != asked_of(two.headers[1]).get("line"):
        papers = replace(papers, serves=np.where(two.common[:, None], two.old.serves, papers.serves))
    if two.headers[0].get("include_contrastive") != two.headers[1].get("include_contrastive"):
        papers = replace(papers, pick=two.old.pick & papers.member)
    if not two.recomputed:
        return papers
    # A score that is undone part by part equals the earlier one up to rounding.
    as_it_was = np.isclose(papers.final, two.old.final + two.reweighed[0], rtol=0.0, atol=_ROUNDING)
    papers = replace(papers, final=papers.final - np.where(as_it_was, two.reweighed[0], two.reweighed[1]))
    if two.weights_only:
        return papers
    return replace(
        papers,
        probability=np.where(two.common, two.old.probability, papers.probability),
        final=np.where(two.common, two.old.final, papers.final),
        serves=np.where(two.common[:, None], two.old.serves, papers.serves),
        lanes=two.old.lanes,
        pick=two.old.pick,
    )


def _never_empty(papers: ScoredPapers, value: bool) -> ScoredPapers:
    rule = papers.rules.line_rule
    if rule is None:
        return papers
    return replace(papers, rules=replace(papers.rules, line_rule=replace(rule, never_empty=value)))


def _without_new_ratings(two: TwoRankings, papers: ScoredPapers) -> ScoredPapers:
    """Return the papers with what the ratings had taught before; new papers without any effect of ratings."""
    weight = two.headers[1]["weights"]["semantic_relevance"]
    pairs = [[rows.get(each) for rows in two.rows] for each in two.ids]
    by = np.array([learned_of(new) - (learned_of(old) if old else 0.0) if new else 0.0 for old, new in pairs])
    return replace(papers, probability=papers.probability - by, final=papers.final - weight * by)


def _claims(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """Yield the changes of places that papers get regardless of their score: for an interest, and the pick."""
    then, now = (two.has_lane_place(side) for side in (0, 1))
    settled = two.now.listed & ~now & ~two.new.pick  # listed for its score, so it no longer needs such a place
    fresh, former = now & ~then, then & two.common & ~now & ~settled

    def kept(papers: ScoredPapers) -> ScoredPapers:
        return replace(papers, serves=np.zeros_like(papers.serves), lanes=(papers.lanes | (then & now)) & ~fresh)

    if fresh.any():
        yield _Possible(
            kind="lane",
            undo=kept,
            describe=lambda _: by_lane(two, at, fresh, 1),
        )
    if former.any():
        yield _Possible(
            kind="lane",
            undo=lambda papers: replace(kept(papers), lanes=kept(papers).lanes | former),
            describe=lambda _: by_lane(two, at, former, 0),
        )
    pick = two.old.pick & two.common & ~settled
    if (pick != two.new.pick).any():
        yield _Possible(
            kind="pick",
            undo=lambda papers: replace(papers, pick=(papers.pick & ~two.new.pick) | pick),
            describe=by_pick(two, at),
        )


def _own_parts(two: TwoRankings, at: int, *, recomputed: bool) -> Iterator[_Possible]:
    """Yield each part of the paper's own score that differs."""
    old, new = (rows[two.ids[at]] for rows in two.rows)
    headers = (two.headers[1], two.headers[1]) if two.weights_only else two.headers
    for name, by in differences(old, new, headers).items():
        if name == LEARNED:
            continue  # ratings change all papers at once: one cause, in `_possible_causes`
        kind, words = own_words(two, at, name, by)
        if recomputed and not two.weights_only:
            continue  # the part by the old interests or the old model is not known, so the edit is the only cause

        def undo(papers: ScoredPapers, name: str = name, by: float = by) -> ScoredPapers:
            final, probability, serves = papers.final.copy(), papers.probability.copy(), papers.serves.copy()
            final[at] -= by
            if name == "semantic_relevance":
                probability[at] += old[name] - new[name]
                serves[at] = two.old.serves[at]
            return replace(papers, final=final, probability=probability, serves=serves)

        def describe(_: ReadingList, kind: str = kind, words: str = words, name: str = name) -> Cause:
            return Cause(kind=kind, words=words, part=name)

        yield _Possible(kind=kind, undo=undo, describe=describe, by=by)


def _gone_by_reason(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """Yield one possible cause for each reason why papers are no longer candidates."""
    reasons = dict[Cause, Bools]()
    for row in np.flatnonzero(two.old.member & ~two.new.member):
        cause = gone(two, two.ids[row])
        reasons.setdefault(cause, np.zeros(len(two.ids), dtype=np.bool_))[row] = True
    for cause, which in reasons.items():

        def undo(papers: ScoredPapers, which: Bools = which) -> ScoredPapers:
            return replace(
                _as_before(two, papers, which),
                member=papers.member | which,
                lanes=papers.lanes | (two.old.lanes & which),
                pick=papers.pick if papers.pick.any() else papers.pick | (two.old.pick & which),
            )

        def describe(without: ReadingList, cause: Cause = cause, which: Bools = which) -> Cause:
            above = which & (without.place < without.place[at])
            said = {"shown": "already shown", "window": "no longer in the window"}.get(cause.kind, cause.words)
            said = "{papers} above it {are} " + said.replace("{", "{{").replace("}", "}}")
            return by_others(two, cause.kind, at, above, said, which & without.listed, edit=cause.edit)

        yield _Possible(kind=cause.kind, undo=undo, describe=describe)


def _together(two: TwoRankings, possible: Sequence[_Possible], flips: Callable[[ReadingList], bool]) -> list[Cause]:
    """Return causes that change the outcome if all of them are undone; empty if undoing every possible one does not.

    Undoes one more at a time in the order of `KINDS`, an edit last, then drops each that is not needed.
    """
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
    return [each.describe(without) for each in sorted(chosen, key=lambda one: KINDS.index(one.kind))]
