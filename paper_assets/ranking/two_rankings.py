"""Compare two rankings of one profile: scores as arrays over the papers of both, and what differs in their headers."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.profile import Profile, profile_to_mapping
from paper_assets.ranking.final_list import (
    ReadingList,
    arrange,
    interests_served,
    learned_of,
    scored_papers,
)
from paper_assets.weights import DIMENSIONS

_NAMED = 3  # entries of a list that are named; the others are counted
# Keys that decide which papers are candidates, and those that decide neither that nor a score.
_CANDIDATES = ("feed", "read", "constraints", "keywords.exclude.hard", "ranking.purpose", "interests.papers")
_NO_SCORE = (
    *("feed", "read", "constraints", "keywords.exclude.hard", "questions", "rewriting"),
    *("ranking.top_k", "ranking.line", "ranking.include_contrastive", "ranking.contrastive_type"),
)
UNKNOWN = "what was edited is not kept"  # shown where the earlier profile is not stored


def profile_edits(before: Profile | None, after: Profile | None) -> dict[str, str] | None:
    """Return what differs in words, by key such as `ranking.top_k`; None if one of the profiles is not known."""
    if before is None or after is None:
        return None
    then, now = _leaves(profile_to_mapping(before)), _leaves(profile_to_mapping(after))
    return {key: _edit(key, then.get(key), now.get(key)) for key in [*now, *then] if then.get(key) != now.get(key)}


def candidates_edited(edits: Mapping[str, str] | None, keys: Sequence[str] = _CANDIDATES) -> str:
    """Return the edits that decide which papers are candidates, in words; nothing if there are none."""
    return UNKNOWN if edits is None else "; ".join(words for key, words in edits.items() if key.startswith(tuple(keys)))


def edit_in_words(edits: str) -> str:
    """Return that the profile was edited, with what was."""
    return f"the profile was edited ({edits})"


def scores_edited(edits: Mapping[str, str] | None) -> str:
    """Return the edits that can change a score, in words; nothing if there are none."""
    return (
        UNKNOWN if edits is None else "; ".join(words for key, words in edits.items() if not key.startswith(_NO_SCORE))
    )


def _leaves(record: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return the values by their keys joined with dots; `content.` is left out."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        name = key if path in ("", "content") else f"{path}.{key}"
        found |= _leaves(value, name) if isinstance(value, Mapping) and value else {name: value}
    return found


def _edit(key: str, then: Any, now: Any) -> str:
    if isinstance(then or [], list) and isinstance(now or [], list) and (then or now):
        added = [each for each in now or [] if each not in (then or [])]
        dropped = [each for each in then or [] if each not in (now or [])]
        descriptions = [*(f"+ {_entry(each)}" for each in added), *(f"- {_entry(each)}" for each in dropped)]
        more = f", {len(descriptions) - _NAMED} more" if len(descriptions) > _NAMED else ""
        return f"{key}: {', '.join(descriptions[:_NAMED]) or 'another order'}{more}"
    return f"{key}: {_entry(then)} → {_entry(now)}"


def _entry(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("paper_id") or value.get("title") or value.get("question") or "an entry")
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else str(value)


Bools = NDArray[np.bool_]
Row = Mapping[str, Any]
LEARNED = "learned"  # the part that ratings add, which has the weight of relevance
ADDED = ("bonus", "soft_penalty", "diversity_penalty")  # parts of a score that have no weight
_RECOMPUTED = {  # keys of a header: if one of them differs, every score may differ
    "model": "another embedding model",
    "calibration": "another calibration",
    "code_version": "another version of the ranking",
}
_OPTIONS = ("purpose", "ranking_mode", "interest_mode", "hybrid_of", "enable_llm_verification", "weights")
_RULES = {
    "top_k": "places in the list",
    "line": "the lowest line",
    "include_contrastive": "a contrastive pick",
    "contrastive_type": "the kind of contrast",
}
_SAME = 1e-12  # a part that differs by less is unchanged


class TwoRankings:
    """Two rankings of one profile, to find why a paper's place differs.

    `ids` are the n papers of both, the newest first. Arrays and `ScoredPapers` have n rows in this order, and `at` is
    the row of a paper. Pairs are (earlier, later). `removed`, `removed_before`: filter reasons by paper id of the
    later and the earlier ranking (None: not known). `days`: of first submission. `edits`: what was edited in the
    profile, as `profile_edits` returns it (None: not known).
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
        self.ids = sorted({*self.rows[0], *self.rows[1]}, key=lambda each: (-ordinal(days.get(each)), each))
        self.at = {paper_id: number for number, paper_id in enumerate(self.ids)}
        self.edited = headers[0].get("profile_hash") != headers[1].get("profile_hash")
        interests = tuple(dict.fromkeys(each for header in reversed(headers) for each in interests_served(header)))
        self.old, self.new = (
            scored_papers([rows.get(each) for each in self.ids], header, interests=interests)
            for rows, header in zip(self.rows, headers, strict=True)
        )
        self.common = self.old.member & self.new.member
        # (n,) by how much the later weights change the score of the earlier row, and of the later row.
        self.reweighed = tuple(
            np.array([self._reweighed(rows[each]) if each in rows else 0.0 for each in self.ids]) for rows in self.rows
        )

    @cached_property
    def now(self) -> ReadingList:
        """The later list, arranged again from its rows."""
        return arrange(self.new)

    def parts(self, paper_id: str) -> dict[str, float]:
        """Return by how much each part of a paper's score differs; only where it does."""
        return differences(self.rows[0][paper_id], self.rows[1][paper_id], self.headers)

    def _reweighed(self, row: Row) -> float:
        return sum(differences(row, row, self.headers).values())

    @cached_property
    def recomputed(self) -> list[str]:
        """What changed the scores of all papers, in words; empty if nothing did."""
        descriptions = [words for name, words in _RECOMPUTED.items() if self.differs(name)]
        options = [name for name in _OPTIONS if self.differs(name)]
        if self._scores_edit:
            return [self._scores_edit, *descriptions]
        return [*(self._option(name) for name in options if name != "weights" or len(options) == 1), *descriptions]

    @cached_property
    def weights_only(self) -> bool:
        """Whether other weights are the only reason why all scores changed."""
        if any(self.differs(name) for name in (*_RECOMPUTED, *_OPTIONS) if name not in ("purpose", "weights")):
            return False
        edits = self.edits if self.edited else {}
        return edits is not None and not scores_edited(
            {key: words for key, words in edits.items() if not key.startswith(("ranking.purpose", "ranking.weights"))}
        )

    @cached_property
    def rules_differ(self) -> list[str]:
        """What changed the list without changing a score, in words; empty if nothing did."""
        then, now = (asked_of(header) for header in self.headers)
        found = [
            f"{words}: {_plain(then[name])} → {_plain(now[name])}"
            for name, words in _RULES.items()
            if name in then and name in now and then[name] != now[name]
        ]
        return [edit_in_words("; ".join(found))] if found and self.edited else found

    @property
    def edit_named(self) -> str:
        """The item of `recomputed`, or else of `rules_differ`, that names the edit of the profile; empty if none
        does.
        """
        if self.recomputed:
            return self._scores_edit
        return "".join(self.rules_differ) if self.edited else ""

    @cached_property
    def _scores_edit(self) -> str:
        edits = scores_edited(self.edits) if self.edited else ""
        return edit_in_words(edits) if edits else ""

    def differs(self, name: str) -> bool:
        """Return whether the headers have different values for the key."""
        then, now = (header.get(name) for header in self.headers)
        return bool(then != now)

    def _option(self, name: str) -> str:
        if name == "weights":
            return "other weights of the dimensions"
        then, now = (header.get(name) for header in self.headers)
        return f"{name.replace('_', ' ')}: {_plain(then)} → {_plain(now)}"

    @property
    def never_empty_before(self) -> bool | None:
        """Whether the earlier list showed its best paper even if doubtful; None: its threshold followed no rule."""
        rule = self.old.rules.line_rule
        return rule.never_empty if rule else None

    @property
    def line(self) -> float | None:
        """The threshold of the later list, a probability; None: it has none."""
        return self.new.rules.line

    @property
    def same_day(self) -> bool:
        """Whether both are rankings of one day."""
        return not self.differs("as_of")

    def has_lane_place(self, side: int) -> Bools:
        """Return (n,) which papers have a place reserved for an interest in the earlier (0) or later (1) list."""
        places = self.headers[side].get("lane_places") or {}
        return np.array([paper_id in places for paper_id in self.ids], dtype=np.bool_)


def asked_of(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the header with the threshold that the options ask for instead of the one that the day's papers gave."""
    rule = header.get("line_rule")
    return {**header, "line": rule["lowest"]} if rule else header


def newer_version(old: Row, new: Row) -> str:
    """Return in words that the paper's version changed; empty if it is the same or not known."""
    versions = old.get("version"), new.get("version")
    if None in versions or versions[0] == versions[1]:
        return ""
    return f"a new version of the paper (v{versions[0]} → v{versions[1]})"


def _parts(row: Row, header: Mapping[str, Any]) -> dict[str, float]:
    weights = header["weights"]
    return {
        **{name: weights[name] * row[name] for name in DIMENSIONS},
        LEARNED: weights["semantic_relevance"] * learned_of(row),
        **{name: row[name] for name in ADDED},
    }


def differences(old: Row, new: Row, headers: tuple[Mapping[str, Any], Mapping[str, Any]]) -> dict[str, float]:
    """Return by how much each part of a score differs between two rows, each weighted by its header.

    Only parts that differ.
    """
    then, now = _parts(old, headers[0]), _parts(new, headers[1])
    return {name: now[name] - then[name] for name in now if abs(now[name] - then[name]) > _SAME}


def ordinal(day: date | None) -> int:
    """Return the day as a number; 0 if it is not known."""
    return day.toordinal() if day else 0


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else ", ".join(map(str, value)) if isinstance(value, list) else f"{value}"
