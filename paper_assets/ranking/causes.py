"""Find why a paper entered the list, left it or moved: undo each possible cause and make the list again (SPEC G16).

Method. `why` takes the later ranking, undoes one possible cause (for example, gives the paper its earlier recency),
and makes the list again (`final_list.arrange`). If the change of place then disappears, the cause counts.

A cause counts if undoing it alone, with everything else as it is now, would have kept the paper from entering or
leaving the list, or would have made it move less. Probabilities are not computed again: a paper that is gone has that
of the earlier ranking. Causes that count are returned in this order:

1. a place reserved for an interest (a lane) or for the contrastive pick, which does not depend on the paper's score;
2. the others, by how far the paper would be from its place without them (a paper that was not a candidate: first);
3. if that is equal, by the order of `KINDS`.

If no cause counts alone, because several had the same effect, a group of causes that must be undone together is
returned (`_together`); `Causes.decisive` is its size.

Possible causes are the changes that can be undone separately: each part of the paper's own score, the papers that are
gone (one cause for each reason), the new papers, and the changed scores of other papers. An edit of the profile and
another model, calibration or version of the ranking change all scores at once; each is one cause. The threshold is
called `line` in headers, and as the kind of a cause in `KINDS`: the paper rose above the threshold or fell below it.

To add a kind of cause: add its name to `KINDS` and yield it in `_possible_causes`, with a function that undoes it and a
function that describes it.
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
    """A reason why a paper moved.

    Attributes:
        kind: one of `KINDS`.
        words: the reason, for readers.
        papers: the ids of the other papers that are responsible, if any.
        part: the part of the paper's score that is responsible; None: no single one.
        edit: the part of `words` that names an edit of the profile; empty if there is none.
    """

    kind: str
    words: str
    papers: tuple[str, ...] = ()
    part: str | None = None
    edit: str = ""

    @property
    def brief(self) -> str:
        """The words with "your edit" for the edit, for a page that shows the edit beside them."""
        return self.words.replace(self.edit, "your edit", 1) if self.edit else self.words

    @property
    def sentence(self) -> str:
        """The words and the ids of the first three papers."""
        if not self.papers:
            return self.words
        return f"{self.words} ({', '.join(self.papers[:3])}{', …' if len(self.papers) > 3 else ''})"


_LEVEL = ("level", "it was nearly level with others: less than 0.005 decided")
OTHERS = Cause(kind="others", words="its score is the same; others came or went")


def largest_part(two: TwoRankings, paper_id: str, *, up: bool | None = None) -> Cause:
    """Return as a cause the part of the paper's own score that differs most, without checking that it had an effect.

    `up`: only among the parts that raised the score, or that lowered it.
    """
    parts = {name: by for name, by in two.parts(paper_id).items() if up is None or (by > 0) == up}
    name = max(parts, key=lambda part: (abs(parts[part]), part), default=None)
    if name is None or abs(parts[name]) <= NOTICED:
        return OTHERS
    return Cause(kind="dimension", words=f"{_part_in_words(name)} {parts[name]:+.3f}", part=name)


def own_words(two: TwoRankings, at: int, name: str, by: float) -> tuple[str, str]:
    """Return the kind and words of a cause: part `name` of the score of paper number `at` differs by `by` points."""
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
    """Return why a paper that was not a candidate before is one now."""
    reason_before = (two.removed_before or {}).get(paper_id)
    edited = candidates_edited(two.edits) if two.edited else None
    named = edit_in_words(edited) if edited else ""
    if reason_before:
        words = f"no longer removed, as it was before: {removed_in_words(reason_before)}"
        return Cause(kind="removed", words=f"{words}{named and f'; {named}'}", edit=named)
    known = two.removed_before is not None and ordinal(two.days.get(paper_id)) <= ordinal(
        _day(two.headers[0].get("as_of"))
    )
    if edited and (two.same_day or known):
        return Cause(kind="edit", words=f"{named}: now among the candidates", edit=named)
    return Cause(kind="new", words="new among the candidates")


def by_lane(two: TwoRankings, at: int, which: Bools, side: int) -> Cause:
    """Return the cause that papers `which` (n,) got (`side` 1) or lost (0) a place reserved for an interest.

    `at` is the number of the paper to explain.
    """
    places = two.headers[side].get("lane_places") or {}
    papers = [two.ids[number] for number in np.flatnonzero(which) if two.ids[number] in places]
    interests = ", ".join(dict.fromkeys(places[number] for number in papers))
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
    """Return a function that describes a change of the contrastive pick for paper number `at`."""

    def describe(_: ReadingList) -> Cause:
        if two.new.pick[at]:
            return Cause(kind="pick", words="the contrastive pick: it differs from the others")
        if two.old.pick[at]:
            return Cause(kind="pick", words="no longer the contrastive pick")
        others = tuple(two.ids[number] for number in np.flatnonzero(two.new.pick))
        words = "the last place goes to the contrastive pick" if others else "no place goes to a contrastive pick"
        return Cause(kind="pick", words=words, papers=others)

    return describe


def passed(two: TwoRankings, at: int) -> Callable[[ReadingList], Cause]:
    """Return a function that names the papers whose changed scores moved them past paper number `at`, or below it."""

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
    """Return a cause that names other papers: those of the mask `which` (n,), or of `otherwise` if `which` has none.

    `words` is a format string: `{papers}` and `{new}` become their number, `{are}` the verb. `edit`: see `Cause`.
    """
    named = which if which.any() else otherwise
    order = sorted(np.flatnonzero(named), key=lambda number: (two.now.place[number], number))
    plural = "s" if len(order) != 1 else ""
    papers, new = (f"{len(order)} {noun}{plural}" for noun in ("paper", "new paper"))
    reason = words.format(papers=papers, new=new, are="are" if plural else "is")
    freed = kind in _FREES and two.old.member[at] and not two.rows[0][two.ids[at]]["shown"]
    reason = f"a place is free: {reason}" if freed else f"others came or went: {reason}"
    same = two.common[at] and all(
        abs(earlier[at] - later[at]) < NOTICED
        for earlier, later in ((two.old.final, two.new.final), (two.old.probability, two.new.probability))
    )
    return Cause(
        kind=kind,
        words=f"its score is the same; {reason}" if same else reason,
        papers=tuple(two.ids[number] for number in order),
        edit=edit,
    )


def ratings(two: TwoRankings, at: int) -> Cause:
    """Return the cause that ratings taught something new, and how this changes the probability of paper number `at`."""
    old, new = (rows.get(two.ids[at]) for rows in two.rows)
    then, now = (learned_of(row) if row else 0.0 for row in (old, new))
    moved = f", which {_influence(then, now)}" if abs(now - then) > NOTICED else ""
    return Cause(kind="ratings", words=f"what your ratings taught{moved}", part=LEARNED)


def _influence(then: float, now: float) -> str:
    """Describe how ratings change a probability now and changed it before: "lowers its probability by 0.02"."""
    if abs(now) <= NOTICED:
        return f"no longer {'raises' if then > 0 else 'lowers'} its probability by {abs(then):.2f}"
    before = f" (before it {'raised' if then > 0 else 'lowered'} it by {abs(then):.2f})" if abs(then) > NOTICED else ""
    return f"{'raises' if now > 0 else 'lowers'} its probability by {abs(now):.2f}{before}"


def edit(two: TwoRankings, at: int, *, up: bool) -> Cause:
    """Return the cause for an edit, and the part that moved the score of paper number `at` most in its direction."""
    words = " and ".join(two.recomputed or two.rules_differ)
    if two.recomputed and two.common[at] and (part := largest_part(two, two.ids[at], up=up)).part:
        words += f": {part.words}"
        old, new = (rows[two.ids[at]] for rows in two.rows)
        if not two.weights_only and newer_version(old, new):
            words += f"; {newer_version(old, new)}"
    return Cause(kind="edit", words=words, edit=two.edit_named)


def doubtful(rule: LineRule) -> Cause:
    """Return the cause that a doubtful paper is shown, as only the first list of these interests does.

    `rule` is that of the later list: with `first_list` it is such a first list, else the earlier list was.
    """
    if rule.first_list:
        words = "the first list for these interests also shows doubtful papers"
    else:
        words = "only the first list for these interests shows doubtful papers"
    return Cause(kind="doubtful", words=words)


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
    "doubtful",  # shown because the first list for these interests would be short
    "line",  # the threshold
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
_FIRST = ("lane", "pick")  # kinds that precede all others, since the paper's score does not matter


@dataclass(frozen=True, slots=True, kw_only=True)
class Causes:
    """All causes that count, in the order of the module's docstring; the first `decisive` of them decide together."""

    all: tuple[Cause, ...]
    decisive: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Possible:
    """A change that may be a cause.

    `undo` returns the later ranking's papers without the change. `describe` returns the cause, given the list without
    it.
    """

    kind: str
    undo: Callable[[ScoredPapers], ScoredPapers]
    describe: Callable[[ReadingList], Cause]
    by: float = 0.0  # points that the change adds to the paper's own score


def why(two: TwoRankings, paper_id: str, outcome: Outcome, places: tuple[int | None, int | None]) -> Causes:
    """Return why a paper entered the list, left it, or moved from the first of the `places` to the second."""
    old, new = (rows.get(paper_id) for rows in two.rows)
    if new is None:
        return Causes(all=(gone(two, paper_id),))
    at, arrival = two.at[paper_id], [come(two, paper_id)] if old is None else []
    up = outcome == "entered" or (outcome == "moved" and (places[0] or 0) > (places[1] or 0))

    def flips(without: ReadingList) -> bool:
        if outcome == "entered":
            return not without.listed[at]
        if outcome == "left":
            return bool(without.listed[at])
        return bool(without.place[at] > two.now.place[at] if up else without.place[at] < two.now.place[at])

    if bool(two.now.listed[at]) != (outcome != "left"):  # the stored list was made by unknown rules
        return Causes(all=tuple(arrival) or (largest_part(two, paper_id),))
    possible = list(_possible_causes(two, at, up=up))
    counting = []
    for change in possible:
        without = arrange(change.undo(two.new))
        if flips(without):
            distance = abs(int(without.place[at]) - int(two.now.place[at]))
            counting.append((change.kind not in _FIRST, -distance, KINDS.index(change.kind), change.describe(without)))
    counting.sort(key=lambda entry: entry[:3])
    lanes = [entry for entry in counting if entry[3].kind == "lane"]
    counting = [entry for entry in counting if entry not in lanes[1:]]
    structural = [cause for late, *_, cause in counting if not late]
    holding = (*structural, *arrival, *(cause for late, *_, cause in counting if late))
    if holding:
        return Causes(all=holding)
    helped = [change for change in possible if change.by == 0 or (change.by > 0) == up]  # the rest worked against it
    together = _together(two, helped, flips) or _together(two, possible, flips)
    return Causes(all=tuple(together), decisive=len(together)) if together else Causes(all=(OTHERS,))


def _possible_causes(two: TwoRankings, at: int, *, up: bool) -> Iterator[_Possible]:
    """Yield every change that may have moved paper number `at`, a candidate of the later ranking, up or down."""
    yield from _claims(two, at)
    recomputed = two.recomputed
    if recomputed or two.rules_differ:
        yield _Possible(
            kind="edit", undo=lambda papers: _before_the_edit(two, papers), describe=lambda _: edit(two, at, up=up)
        )
    if (rule := two.new.rules.line_rule) and two.first_list_before == (not rule.first_list):
        yield _Possible(
            kind="doubtful",
            undo=lambda papers: _with_first_list(papers, not rule.first_list),
            describe=lambda _: doubtful(rule),
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

    def describe_newcomers(without: ReadingList) -> Cause:
        longer = two.now.listed[at] and not without.listed[at]
        words = "{new} above it, so the list is longer" if longer else "{new} above it"
        return by_others(two, "came", at, came & (two.now.place < two.now.place[at]), words, came)

    if came.any():
        yield _Possible(
            kind="came",
            undo=lambda papers: replace(papers, member=papers.member & ~came),
            describe=describe_newcomers,
        )
    others = two.common & ((two.old.final != two.new.final) | (two.old.probability != two.new.probability))
    others[at] = False
    if others.any() and (two.weights_only or not recomputed):
        yield _Possible(kind="others", undo=lambda papers: _as_before(two, papers, others), describe=passed(two, at))


def _as_before(two: TwoRankings, papers: ScoredPapers, which: Bools) -> ScoredPapers:
    """Return the papers with the earlier scores for those of the mask `which` (n,), summed with the later weights."""
    return replace(
        papers,
        probability=np.where(which, two.old.probability, papers.probability),
        final=np.where(which, two.old.final + two.reweighed[0], papers.final),
        serves=np.where(which[:, None], two.old.serves, papers.serves),
    )


def _before_the_edit(two: TwoRankings, papers: ScoredPapers) -> ScoredPapers:
    """Return the papers with the earlier rules.

    If the edit changed scores, papers of both rankings get their earlier scores, and the scores of new papers are
    summed with the earlier weights.
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


def _with_first_list(papers: ScoredPapers, value: bool) -> ScoredPapers:
    """Return the papers with `first_list` of the threshold's rule set to `value`."""
    rule = papers.rules.line_rule
    if rule is None:
        return papers
    return replace(papers, rules=replace(papers.rules, line_rule=replace(rule, first_list=value)))


def _without_new_ratings(two: TwoRankings, papers: ScoredPapers) -> ScoredPapers:
    """Return the papers with the earlier effect of ratings; new papers with none."""
    weight = two.headers[1]["weights"]["semantic_relevance"]
    pairs = [[rows.get(paper_id) for rows in two.rows] for paper_id in two.ids]
    effect = np.array([learned_of(new) - (learned_of(old) if old else 0.0) if new else 0.0 for old, new in pairs])
    return replace(papers, probability=papers.probability - effect, final=papers.final - weight * effect)


def _claims(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """Yield the changes of places that do not depend on a score: those for an interest, and the pick."""
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
    """Yield each part of the score of paper number `at` that differs.

    If all scores were `recomputed`, the edit is one cause and nothing is yielded, unless only the weights differ.
    """
    old, new = (rows[two.ids[at]] for rows in two.rows)
    headers = (two.headers[1], two.headers[1]) if two.weights_only else two.headers
    for name, points in differences(old, new, headers).items():
        if name == LEARNED:
            continue  # ratings change all papers at once, so `_possible_causes` has one cause for them
        kind, words = own_words(two, at, name, points)
        if recomputed and not two.weights_only:
            continue  # what the earlier interests or model would give now is not known, so the edit is the cause

        def undo(papers: ScoredPapers, name: str = name, points: float = points) -> ScoredPapers:
            final, probability, serves = papers.final.copy(), papers.probability.copy(), papers.serves.copy()
            final[at] -= points
            if name == "semantic_relevance":
                probability[at] += old[name] - new[name]
                serves[at] = two.old.serves[at]
            return replace(papers, final=final, probability=probability, serves=serves)

        def describe(_: ReadingList, kind: str = kind, words: str = words, name: str = name) -> Cause:
            return Cause(kind=kind, words=words, part=name)

        yield _Possible(kind=kind, undo=undo, describe=describe, by=points)


def _gone_by_reason(two: TwoRankings, at: int) -> Iterator[_Possible]:
    """Yield one possible cause for each reason why papers are no longer candidates (`gone`)."""
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
            reason = {"shown": "already shown", "window": "no longer in the window"}.get(cause.kind, cause.words)
            reason = "{papers} above it {are} " + reason.replace("{", "{{").replace("}", "}}")
            return by_others(two, cause.kind, at, above, reason, which & without.listed, edit=cause.edit)

        yield _Possible(kind=cause.kind, undo=undo, describe=describe)


def _together(two: TwoRankings, possible: Sequence[_Possible], flips: Callable[[ReadingList], bool]) -> list[Cause]:
    """Return a group of causes that changes the outcome if all of it is undone; empty if there is none.

    Undoes one more cause at a time, in the order of `KINDS` and an edit last, until the outcome changes; then drops
    each cause that is not needed.
    """
    chosen: list[_Possible] = []
    papers = two.new
    for change in sorted(possible, key=lambda cause: (cause.kind == "edit", KINDS.index(cause.kind))):
        papers = change.undo(papers)
        chosen.append(change)
        if flips(arrange(papers)):
            break
    else:
        return []
    for change in list(chosen[:-1]):
        papers = two.new
        for other in (cause for cause in chosen if cause is not change):
            papers = other.undo(papers)
        if flips(arrange(papers)):
            chosen.remove(change)
    papers = two.new
    for change in chosen:
        papers = change.undo(papers)
    without = arrange(papers)
    return [change.describe(without) for change in sorted(chosen, key=lambda cause: KINDS.index(cause.kind))]
