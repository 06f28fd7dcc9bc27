"""The causes of a paper's move in words (G16): one function a kind, for one of the papers of two rankings."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

import numpy as np

from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.ranking.explain import removed_in_words
from paper_assets.ranking.list_order import ReadingList, learned_of, probability_of, tenth
from paper_assets.ranking.profile_edits import candidates_edited
from paper_assets.ranking.two_rankings import LEARNED, Bools, TwoRankings, newer_version, ordinal

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
    """What moved a paper, in words, the other papers it lies with, or the part of the paper's own score."""

    kind: str
    words: str
    papers: tuple[str, ...] = ()
    part: str | None = None

    @property
    def sentence(self) -> str:
        """The words with the papers' ids, of many the first three."""
        if not self.papers:
            return self.words
        return f"{self.words} ({', '.join(self.papers[:3])}{', …' if len(self.papers) > 3 else ''})"


_LEVEL = ("level", "it was nearly level with others: less than 0.005 decided")
OTHERS = Cause(kind="others", words="its score is the same; others came or went")


def largest_part(two: TwoRankings, paper_id: str) -> Cause:
    """What differs most in the paper's own score, without proof that it decided."""
    parts = two.parts(paper_id)
    name = max(parts, key=lambda part: (abs(parts[part]), part), default=None)
    if name is None or abs(parts[name]) <= NOTICED:
        return OTHERS
    return Cause(kind="dimension", words=f"{_part_in_words(name)} {parts[name]:+.3f}", part=name)


def own_words(two: TwoRankings, at: int, name: str, by: float) -> tuple[str, str]:
    """Kind and words of one part of the paper's own score, which differs by `by`."""
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
            where = "over" if crossed[1] else "under"
            return "line", f"it went {where} the line of {two.line:.2f} (probability {moved})"
        if tenth(then) != tenth(now):
            where = "higher" if now > then else "lower"
            return "tenth", f"its probability is in a {where} tenth ({moved})"
        if abs(by) <= NOTICED < abs(now - then):
            return "shortlist", f"its probability among the most probable ({moved})"
    return ("dimension", dimension) if abs(by) > NOTICED else _LEVEL


def gone(two: TwoRankings, paper_id: str) -> Cause:
    """Why a paper of the earlier ranking is no candidate any more."""
    reason = two.removed.get(paper_id)
    if reason is None:
        edited = candidates_edited(two.edits, ("feed",)) if two.edited else None
        if edited and two.same_day:
            return Cause(kind="edit", words=f"the profile was edited ({edited}): no longer in the window")
        return Cause(kind="window", words="no longer in the window")
    words = removed_in_words(reason)
    if reason == _ALREADY_SHOWN:
        return Cause(kind="shown", words=f"already shown: {words}")
    edited = candidates_edited(two.edits, ("keywords.exclude.hard", "constraints", "read", "ranking.purpose"))
    why = f"; the profile was edited ({edited})" if two.edited and edited else ""
    return Cause(kind="removed", words=f"removed: {words}{why}")


def come(two: TwoRankings, paper_id: str) -> Cause:
    """Why a paper that was no candidate before is one now."""
    was = (two.removed_before or {}).get(paper_id)
    edited = candidates_edited(two.edits) if two.edited else None
    if was:
        why = f"; the profile was edited ({edited})" if edited else ""
        return Cause(kind="removed", words=f"no longer removed, as it was before: {removed_in_words(was)}{why}")
    known = two.removed_before is not None and ordinal(two.days.get(paper_id)) <= ordinal(
        _day(two.headers[0].get("as_of"))
    )
    if edited and (two.same_day or known):
        return Cause(kind="edit", words=f"the profile was edited ({edited}): now among the candidates")
    return Cause(kind="new", words="new among the candidates")


def by_lane(two: TwoRankings, at: int, which: Bools, side: int) -> Cause:
    """Of those that have a lane's place now (`side` 1) and had none, or had one (0) and have none now."""
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
    """What to say of the contrastive pick."""

    def told(_: ReadingList) -> Cause:
        if two.new.pick[at]:
            return Cause(kind="pick", words="the contrastive pick: it differs from the others")
        if two.old.pick[at]:
            return Cause(kind="pick", words="no longer the contrastive pick")
        others = tuple(two.ids[each] for each in np.flatnonzero(two.new.pick))
        words = "the last place goes to the contrastive pick" if others else "no place goes to a contrastive pick"
        return Cause(kind="pick", words=words, papers=others)

    return told


def passed(two: TwoRankings, at: int) -> Callable[[ReadingList], Cause]:
    """What to say of other papers whose scores changed, given the list without that."""

    def told(without: ReadingList) -> Cause:
        over = two.common & (two.now.place < two.now.place[at]) & (without.place > without.place[at])
        under = two.common & (two.now.place > two.now.place[at]) & (without.place < without.place[at])
        which, words = (
            (under, "{papers} fell below it") if under.sum() > over.sum() else (over, "{papers} rose past it")
        )
        return by_others(two, "others", at, which, words, which)

    return told


def by_others(two: TwoRankings, kind: str, at: int, which: Bools, words: str, otherwise: Bools) -> Cause:
    """A cause that lies with other papers; `words` say how many by `{papers}` or `{new}`."""
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
    )


def ratings(two: TwoRankings, at: int) -> Cause:
    """What the reader's ratings taught, and by how much it moves this paper."""
    old, new = (rows.get(two.ids[at]) for rows in two.rows)
    then, now = (learned_of(row) if row else 0.0 for row in (old, new))
    moved = f": they move its probability by {now:+.2f} instead of {then:+.2f}" if abs(now - then) > NOTICED else ""
    return Cause(kind="ratings", words=f"what your ratings taught{moved}", part=LEARNED)


def edit(two: TwoRankings, at: int) -> Cause:
    """What was edited, and what that did most to the paper's own score."""
    words = " and ".join(two.recomputed or two.rules_differ)
    if two.recomputed and two.common[at] and (part := largest_part(two, two.ids[at])).part:
        words += f": {part.words}"
        old, new = (rows[two.ids[at]] for rows in two.rows)
        if not two.weights_only and newer_version(old, new):
            words += f"; {newer_version(old, new)}"
    return Cause(kind="edit", words=words)


def _part_in_words(name: str) -> str:
    return DIMENSIONS_IN_WORDS.get(name) or _ADDED_IN_WORDS[name]


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _from_to(then: float, now: float) -> str:
    digits = 2 if f"{then:.2f}" != f"{now:.2f}" else 3
    return f"{then:.{digits}f} → {now:.{digits}f}"
