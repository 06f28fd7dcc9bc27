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

One more kind of cause: a name in `KINDS`, and in `_Comparison.possible` how to undo it and what to say.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.ranking.explain import removed_in_words
from paper_assets.ranking.list_order import (
    ReadingList,
    ScoredPapers,
    arrange,
    learned_of,
    probability_of,
    rules_of,
    tenth,
)
from paper_assets.ranking.profile_edits import candidates_edited, scores_edited
from paper_assets.weights import DIMENSIONS

Bools = NDArray[np.bool_]
Row = Mapping[str, Any]
Outcome = Literal["entered", "left", "moved"]

LEARNED = "learned"  # the part that ratings add, which has the weight of relevance
ADDED = ("bonus", "soft_penalty", "diversity_penalty")  # parts of a score that have no weight
NOTICED = 0.005  # of a score or a probability: half of what is displayed
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
_ALREADY_SHOWN = "ALREADY_SHOWN"  # the filter's code
_FREES = ("shown", "window", "removed")
_FIRST = ("lane", "pick")
_LLM = "embedding+llm"
_ADDED_IN_WORDS = {
    LEARNED: "what your ratings taught",
    "bonus": "what the mode adds",
    "soft_penalty": "soft penalty",
    "diversity_penalty": "likeness to a paper placed higher",
}
_RECOMPUTED = {  # of a header: where one of these differs, all scores may
    "model": "another embedding model",
    "calibration": "another calibration",
    "code_version": "another version of the ranking",
}
_OPTIONS = ("purpose", "ranking_mode", "interest_mode", "hybrid_of", "enable_llm_verification", "weights")
_RULES = {
    "top_k": "places in the list",
    "line": "the line",
    "include_contrastive": "a contrastive pick",
    "contrastive_type": "the kind of contrast",
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


class Comparison:
    """Two rankings' rows and headers over the papers of both, to ask why a paper's place differs.

    `removed`, `removed_before`: filter reasons by paper id, now and then (None: not known). `days`: first submission.
    `edits`: what was edited in the profile, as `profile_edits` tells it (None: edited, but not known what).
    """

    def __init__(
        self,
        before: Sequence[Row],
        after: Sequence[Row],
        *,
        headers: tuple[Mapping[str, Any], Mapping[str, Any]],
        removed: Mapping[str, str],
        removed_before: Mapping[str, str] | None,
        days: Mapping[str, date],
        edits: Mapping[str, str] | None,
    ) -> None:
        self.headers, self.removed, self.removed_before, self.edits = headers, removed, removed_before, edits
        self.days = days
        self.rows = ({row["paper_id"]: row for row in before}, {row["paper_id"]: row for row in after})
        self.ids = sorted({*self.rows[0], *self.rows[1]}, key=lambda each: (-_ordinal(days.get(each)), each))
        self.at = {paper_id: number for number, paper_id in enumerate(self.ids)}
        self.edited = headers[0].get("profile_hash") != headers[1].get("profile_hash")
        self.old, self.new = (self._papers(side) for side in (0, 1))
        self.common = self.old.member & self.new.member
        # What other weights do to a sum, of a paper as it was and as it is.
        self.reweighed = tuple(
            np.array([self._reweighed(rows[each]) if each in rows else 0.0 for each in self.ids]) for rows in self.rows
        )

    @cached_property
    def now(self) -> ReadingList:
        """The later list, arranged from its rows."""
        return arrange(self.new)

    def why(self, paper_id: str, outcome: Outcome, places: tuple[int | None, int | None]) -> Causes:
        """Why the paper entered, left or moved from the first place to the second."""
        old, new = (rows.get(paper_id) for rows in self.rows)
        if new is None:
            return Causes(all=(self._gone(paper_id),))
        at, own = self.at[paper_id], []
        if old is None:
            own.append(self._come(paper_id))

        def flips(without: ReadingList) -> bool:
            if outcome == "entered":
                return not without.listed[at]
            if outcome == "left":
                return bool(without.listed[at])
            rose = (places[0] or 0) > (places[1] or 0)
            return bool(without.place[at] > self.now.place[at] if rose else without.place[at] < self.now.place[at])

        if bool(self.now.listed[at]) != (outcome != "left"):  # a list by rules that are not known here
            return Causes(all=tuple(own) or (self._largest_part(paper_id),))
        possible = list(self.possible(at))
        found = []
        for each in possible:
            without = arrange(each.undo(self.new))
            if flips(without):
                distance = abs(int(without.place[at]) - int(self.now.place[at]))
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
        together = self._together(helped, flips) or self._together(possible, flips)
        return Causes(all=tuple(together), decisive=len(together)) if together else Causes(all=(_OTHERS,))

    def possible(self, at: int) -> Iterator[_Possible]:
        """What may have moved a paper that is a candidate now: how to undo it alone, and what to say."""
        yield from self._claims(at)
        recomputed = self._recomputed
        if recomputed or self._rules_differ:
            yield _Possible(kind="edit", undo=self._before_the_edit, told=lambda _: self._edit(at))
        if self._differs("preferences"):
            yield _Possible(kind="ratings", undo=self._without_new_ratings, told=lambda _: self._ratings(at))
        if self.old.member[at]:
            yield from self._own(at, recomputed=bool(recomputed))
        yield from self._went(at)
        came = self.new.member & ~self.old.member
        came[at] = False
        if came.any():
            yield _Possible(
                kind="came",
                undo=lambda papers: replace(papers, member=papers.member & ~came),
                told=lambda _: self._by_others(
                    "came", at, came & (self.now.place < self.now.place[at]), "{new} above it", came
                ),
            )
        others = self.common & ((self.old.final != self.new.final) | (self.old.probability != self.new.probability))
        others[at] = False
        if others.any() and (self._weights_only or not recomputed):
            yield _Possible(kind="others", undo=lambda papers: self._as_before(papers, others), told=self._passed(at))

    # How things are undone.

    def _as_before(self, papers: ScoredPapers, which: Bools) -> ScoredPapers:
        """Papers as they were, summed by the weights of now."""
        return replace(
            papers,
            probability=np.where(which, self.old.probability, papers.probability),
            final=np.where(which, self.old.final + self.reweighed[0], papers.final),
        )

    def _before_the_edit(self, papers: ScoredPapers) -> ScoredPapers:
        """Old rules; where scores were computed anew, old scores, and of new papers the sum by the old weights."""
        papers = replace(papers, rules=self.old.rules)
        if self._differs("top_k"):
            papers = replace(papers, lanes=papers.lanes | (self.old.lanes & papers.member))
        if self.headers[0].get("include_contrastive") != self.headers[1].get("include_contrastive"):
            papers = replace(papers, pick=self.old.pick & papers.member)
        if not self._recomputed:
            return papers
        as_it_was = papers.final == self.old.final + self.reweighed[0]
        papers = replace(papers, final=papers.final - np.where(as_it_was, self.reweighed[0], self.reweighed[1]))
        if self._weights_only:
            return papers
        return replace(
            papers,
            probability=np.where(self.common, self.old.probability, papers.probability),
            final=np.where(self.common, self.old.final, papers.final),
            lanes=self.old.lanes,
            pick=self.old.pick,
        )

    def _without_new_ratings(self, papers: ScoredPapers) -> ScoredPapers:
        """What the ratings taught before; of new papers nothing."""
        weight = self.headers[1]["weights"]["semantic_relevance"]
        pairs = [[rows.get(each) for rows in self.rows] for each in self.ids]
        by = np.array([learned_of(new) - (learned_of(old) if old else 0.0) if new else 0.0 for old, new in pairs])
        return replace(papers, probability=papers.probability - by, final=papers.final - weight * by)

    # One kind of cause after the other.

    def _claims(self, at: int) -> Iterator[_Possible]:
        """Places that papers have whatever their score."""
        settled = self.now.listed & ~self.new.lanes & ~self.new.pick  # needs no such place any more
        fresh, former = self.new.lanes & ~self.old.lanes, self.old.lanes & self.common & ~self.new.lanes & ~settled
        if fresh.any():
            yield _Possible(
                kind="lane",
                undo=lambda papers: replace(papers, lanes=papers.lanes & ~fresh),
                told=lambda _: self._by_lane(at, fresh, 1),
            )
        if former.any():
            yield _Possible(
                kind="lane",
                undo=lambda papers: replace(papers, lanes=(papers.lanes & ~fresh) | former),
                told=lambda _: self._by_lane(at, former, 0),
            )
        pick = self.old.pick & self.common & ~settled
        if (pick != self.new.pick).any():
            yield _Possible(
                kind="pick",
                undo=lambda papers: replace(papers, pick=(papers.pick & ~self.new.pick) | pick),
                told=self._by_pick(at),
            )

    def _own(self, at: int, *, recomputed: bool) -> Iterator[_Possible]:
        """Each part of the paper's own score that differs."""
        old, new = (rows[self.ids[at]] for rows in self.rows)
        headers = (self.headers[1], self.headers[1]) if self._weights_only else self.headers
        for name, by in _differences(old, new, headers).items():
            if name == LEARNED:
                continue  # ratings move all papers at once: one cause
            kind, words = self._own_words(at, name, by)
            if recomputed and not self._weights_only:
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

    def _went(self, at: int) -> Iterator[_Possible]:
        """Papers that are no candidates any more, by the reason why."""
        reasons = dict[tuple[str, str], Bools]()
        for gone in np.flatnonzero(self.old.member & ~self.new.member):
            cause = self._gone(self.ids[gone])
            reasons.setdefault((cause.kind, cause.words), np.zeros(len(self.ids), dtype=np.bool_))[gone] = True
        for (kind, words), which in reasons.items():

            def undo(papers: ScoredPapers, which: Bools = which) -> ScoredPapers:
                return replace(
                    self._as_before(papers, which),
                    member=papers.member | which,
                    lanes=papers.lanes | (self.old.lanes & (papers.member | which)),
                    pick=papers.pick if papers.pick.any() else papers.pick | (self.old.pick & which),
                )

            def told(without: ReadingList, kind: str = kind, words: str = words, which: Bools = which) -> Cause:
                above = which & (without.place < without.place[at])
                said = "{papers} that stood above it {are} " + words
                if kind == "shown":
                    said = "{papers} that stood above it {are} already shown"
                if kind == "window":
                    said = "{papers} that stood above it {are} no longer in the window"
                return self._by_others(kind, at, above, said, which & without.listed)

            yield _Possible(kind=kind, undo=undo, told=told)

    # What to say.

    def parts(self, paper_id: str) -> dict[str, float]:
        """By how much each part of a paper's score differs; only where it does."""
        return _differences(self.rows[0][paper_id], self.rows[1][paper_id], self.headers)

    def _reweighed(self, row: Row) -> float:
        return sum(_differences(row, row, self.headers).values())

    def _largest_part(self, paper_id: str) -> Cause:
        """What differs most in the paper's own score, without proof that it decided."""
        parts = self.parts(paper_id)
        name = max(parts, key=lambda part: (abs(parts[part]), part), default=None)
        if name is None or abs(parts[name]) <= NOTICED:
            return _OTHERS
        return Cause(kind="dimension", words=f"{_part_in_words(name)} {parts[name]:+.3f}", part=name)

    def _own_words(self, at: int, name: str, by: float) -> tuple[str, str]:
        old, new = (rows[self.ids[at]] for rows in self.rows)
        dimension = f"{_part_in_words(name)} {by:+.3f}"
        then, now = probability_of(old), probability_of(new)
        if name != "recency" and (version := self._newer_version(old, new)):
            return "version", f"{version}: {dimension}"
        if name != "semantic_relevance":
            return ("dimension", dimension) if abs(by) > NOTICED else _LEVEL
        methods = old["evaluation_method"], new["evaluation_method"]
        if _LLM in methods:
            whose = "a language model's verdict" if methods[1] == _LLM else "a language model's verdict no longer"
            return "verdict", f"{whose}: relevance {_from_to(then, now)}"
        if self._line is not None:
            moved = _from_to(then, now)
            crossed = (then >= self._line, now >= self._line)
            if crossed[0] != crossed[1]:
                where = "over" if crossed[1] else "under"
                return "line", f"it went {where} the line of {self._line:.2f} (probability {moved})"
            if tenth(then) != tenth(now):
                where = "higher" if now > then else "lower"
                return "tenth", f"its probability is in a {where} tenth ({moved})"
            if abs(by) <= NOTICED < abs(now - then):
                return "shortlist", f"its probability among the most probable ({moved})"
        return ("dimension", dimension) if abs(by) > NOTICED else _LEVEL

    @staticmethod
    def _newer_version(old: Row, new: Row) -> str:
        """In words, nothing if it is the same or not known."""
        versions = old.get("version"), new.get("version")
        if None in versions or versions[0] == versions[1]:
            return ""
        return f"a new version of the paper (v{versions[0]} → v{versions[1]})"

    def _gone(self, paper_id: str) -> Cause:
        """Why a paper of the earlier ranking is no candidate any more."""
        reason = self.removed.get(paper_id)
        if reason is None:
            edited = candidates_edited(self.edits, ("feed",)) if self.edited else None
            if edited and self._same_day:
                return Cause(kind="edit", words=f"the profile was edited ({edited}): no longer in the window")
            return Cause(kind="window", words="no longer in the window")
        words = removed_in_words(reason)
        if reason == _ALREADY_SHOWN:
            return Cause(kind="shown", words=f"already shown: {words}")
        edited = candidates_edited(self.edits, ("keywords.exclude.hard", "constraints", "read", "ranking.purpose"))
        why = f"; the profile was edited ({edited})" if self.edited and edited else ""
        return Cause(kind="removed", words=f"removed: {words}{why}")

    def _come(self, paper_id: str) -> Cause:
        """Why a paper that was no candidate before is one now."""
        was = (self.removed_before or {}).get(paper_id)
        edited = candidates_edited(self.edits) if self.edited else None
        if was:
            why = f"; the profile was edited ({edited})" if edited else ""
            return Cause(kind="removed", words=f"no longer removed, as it was before: {removed_in_words(was)}{why}")
        known = self.removed_before is not None and _ordinal(self.days.get(paper_id)) <= _ordinal(
            _day(self.headers[0].get("as_of"))
        )
        if edited and (self._same_day or known):
            return Cause(kind="edit", words=f"the profile was edited ({edited}): now among the candidates")
        return Cause(kind="new", words="new among the candidates")

    def _by_lane(self, at: int, which: Bools, side: int) -> Cause:
        """Of those that have a lane's place now (`side` 1) and had none, or had one (0) and have none now."""
        places = self.headers[side].get("lane_places") or {}
        papers = [self.ids[each] for each in np.flatnonzero(which) if self.ids[each] in places]
        interests = ", ".join(dict.fromkeys(places[each] for each in papers))
        if self.ids[at] in papers:
            interest = places[self.ids[at]]
            if side:
                words = f"a place for your interest in {interest}, which no other paper shown serves"
            else:
                words = f"no place any more for your interest in {interest} alone"
            return Cause(kind="lane", words=words)
        words = f"a place goes to your interest in {interests}"
        return Cause(kind="lane", words=words if side else f"{words} no more", papers=tuple(papers))

    def _by_pick(self, at: int) -> Callable[[ReadingList], Cause]:
        def told(_: ReadingList) -> Cause:
            if self.new.pick[at]:
                return Cause(kind="pick", words="the contrastive pick: it differs from the others")
            if self.old.pick[at]:
                return Cause(kind="pick", words="no longer the contrastive pick")
            others = tuple(self.ids[each] for each in np.flatnonzero(self.new.pick))
            words = "the last place goes to the contrastive pick" if others else "no place goes to a contrastive pick"
            return Cause(kind="pick", words=words, papers=others)

        return told

    def _passed(self, at: int) -> Callable[[ReadingList], Cause]:
        def told(without: ReadingList) -> Cause:
            over = self.common & (self.now.place < self.now.place[at]) & (without.place > without.place[at])
            under = self.common & (self.now.place > self.now.place[at]) & (without.place < without.place[at])
            which, words = (
                (under, "{papers} fell below it") if under.sum() > over.sum() else (over, "{papers} rose past it")
            )
            return self._by_others("others", at, which, words, which)

        return told

    def _by_others(self, kind: str, at: int, which: Bools, words: str, otherwise: Bools) -> Cause:
        """A cause that lies with other papers; `words` say how many by `{papers}` or `{new}`."""
        named = which if which.any() else otherwise
        order = sorted(np.flatnonzero(named), key=lambda each: (self.now.place[each], each))
        plural = "s" if len(order) != 1 else ""
        papers, new = (f"{len(order)} {noun}{plural}" for noun in ("paper", "new paper"))
        said = words.format(papers=papers, new=new, are="are" if plural else "is")
        freed = kind in _FREES and self.old.member[at] and not self.rows[0][self.ids[at]]["shown"]
        said = f"a place is free: {said}" if freed else f"others came or went: {said}"
        same = self.common[at] and all(
            abs(one[at] - other[at]) < NOTICED
            for one, other in ((self.old.final, self.new.final), (self.old.probability, self.new.probability))
        )
        return Cause(
            kind=kind,
            words=f"its score is the same; {said}" if same else said,
            papers=tuple(self.ids[each] for each in order),
        )

    def _ratings(self, at: int) -> Cause:
        old, new = (rows.get(self.ids[at]) for rows in self.rows)
        then, now = (learned_of(row) if row else 0.0 for row in (old, new))
        moved = f": they move its probability by {now:+.2f} instead of {then:+.2f}" if abs(now - then) > NOTICED else ""
        return Cause(kind="ratings", words=f"what your ratings taught{moved}", part=LEARNED)

    def _edit(self, at: int) -> Cause:
        words = " and ".join(self._recomputed or self._rules_differ)
        if self._recomputed and self.common[at] and (part := self._largest_part(self.ids[at])).part:
            words += f": {part.words}"
            old, new = (rows[self.ids[at]] for rows in self.rows)
            if not self._weights_only and self._newer_version(old, new):
                words += f"; {self._newer_version(old, new)}"
        return Cause(kind="edit", words=words)

    # What differs between the headers.

    @cached_property
    def _recomputed(self) -> list[str]:
        """What has changed the scores of all papers, in words."""
        told = [words for name, words in _RECOMPUTED.items() if self._differs(name)]
        options = [name for name in _OPTIONS if self._differs(name)]
        edits = scores_edited(self.edits) if self.edited else ""
        if edits:
            return [f"the profile was edited ({edits})", *told]
        return [*(self._option(name) for name in options if name != "weights" or len(options) == 1), *told]

    @cached_property
    def _weights_only(self) -> bool:
        """Whether the scores have changed by other weights and nothing else."""
        if any(self._differs(name) for name in (*_RECOMPUTED, *_OPTIONS) if name not in ("purpose", "weights")):
            return False
        edits = self.edits if self.edited else {}
        return edits is not None and not scores_edited(
            {key: words for key, words in edits.items() if not key.startswith(("ranking.purpose", "ranking.weights"))}
        )

    @cached_property
    def _rules_differ(self) -> list[str]:
        """What has changed the list and no score, in words."""
        found = [
            f"{words}: {_plain(self.headers[0].get(name))} → {_plain(self.headers[1].get(name))}"
            for name, words in _RULES.items()
            if name in self.headers[0] and name in self.headers[1] and self._differs(name)
        ]
        return [f"the profile was edited ({'; '.join(found)})"] if found and self.edited else found

    def _differs(self, name: str) -> bool:
        then, now = (header.get(name) for header in self.headers)
        return bool(then != now)

    def _option(self, name: str) -> str:
        if name == "weights":
            return "other weights of the dimensions"
        then, now = (header.get(name) for header in self.headers)
        return f"{name.replace('_', ' ')}: {_plain(then)} → {_plain(now)}"

    @property
    def _line(self) -> float | None:
        return self.new.rules.line

    @property
    def _same_day(self) -> bool:
        return not self._differs("as_of")

    def _papers(self, side: int) -> ScoredPapers:
        rows, header = self.rows[side], self.headers[side]
        of = [rows.get(paper_id) for paper_id in self.ids]
        places = header.get("lane_places") or {}
        papers = ScoredPapers(
            member=np.array([row is not None for row in of], dtype=np.bool_),
            probability=np.array([probability_of(row) if row else 0.0 for row in of]),
            final=np.array([row["final"] if row else 0.0 for row in of]),
            tie=np.arange(len(of)),
            lanes=np.array([paper_id in places for paper_id in self.ids], dtype=np.bool_),
            pick=np.array([row is not None and "CONTRASTIVE_PICK" in row["tags"] for row in of], dtype=np.bool_),
            rules=rules_of(header, otherwise=max(sum(row["shown"] for row in rows.values()), 1)),
        )
        if not places:
            return papers
        # One that is shown though lower ones are not stays because no other serves its interest.
        shown = np.array([row is not None and row["shown"] for row in of], dtype=np.bool_)
        return replace(papers, lanes=papers.lanes | (shown & ~arrange(papers).listed))

    def _together(self, possible: Sequence[_Possible], flips: Callable[[ReadingList], bool]) -> list[Cause]:
        """The fewest that are found of those which must be undone together, one after the other in the order tried."""
        chosen: list[_Possible] = []
        papers = self.new
        for each in sorted(possible, key=lambda one: (one.kind == "edit", KINDS.index(one.kind))):
            papers = each.undo(papers)
            chosen.append(each)
            if flips(arrange(papers)):
                break
        else:
            return []
        for each in list(chosen[:-1]):
            papers = self.new
            for other in (one for one in chosen if one is not each):
                papers = other.undo(papers)
            if flips(arrange(papers)):
                chosen.remove(each)
        papers = self.new
        for each in chosen:
            papers = each.undo(papers)
        without = arrange(papers)
        return [each.told(without) for each in sorted(chosen, key=lambda one: KINDS.index(one.kind))]


_SAME = 1e-12  # a part that differs by less has not moved
_LEVEL = ("level", "it was nearly level with others: less than 0.005 decided")
_OTHERS = Cause(kind="others", words="its score is the same; others came or went")


def _parts(row: Row, header: Mapping[str, Any]) -> dict[str, float]:
    weights = header["weights"]
    return {
        **{name: weights[name] * row[name] for name in DIMENSIONS},
        LEARNED: weights["semantic_relevance"] * learned_of(row),
        **{name: row[name] for name in ADDED},
    }


def _differences(old: Row, new: Row, headers: tuple[Mapping[str, Any], Mapping[str, Any]]) -> dict[str, float]:
    then, now = _parts(old, headers[0]), _parts(new, headers[1])
    return {name: now[name] - then[name] for name in now if abs(now[name] - then[name]) > _SAME}


def _part_in_words(name: str) -> str:
    return DIMENSIONS_IN_WORDS.get(name) or _ADDED_IN_WORDS[name]


def _ordinal(day: date | None) -> int:
    return day.toordinal() if day else 0


def _day(text: str | None) -> date | None:
    return date.fromisoformat(text) if text else None


def _from_to(then: float, now: float) -> str:
    digits = 2 if f"{then:.2f}" != f"{now:.2f}" else 3
    return f"{then:.{digits}f} → {now:.{digits}f}"


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"
