"""Align two rankings of one profile: scores as arrays over the papers of both, and the differences of their headers.

Pairs are (earlier, later). `causes.py` finds from this why a paper's place differs.
"""

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
# Keys of a profile that decide which papers are candidates, and those that change no score.
_CANDIDATES = ("feed", "read", "constraints", "keywords.exclude.hard", "ranking.purpose", "interests.papers")
_NO_SCORE = (
    *("feed", "read", "constraints", "keywords.exclude.hard", "questions", "rewriting"),
    *("ranking.top_k", "ranking.line", "ranking.include_contrastive", "ranking.contrastive_type"),
)
UNKNOWN = "what was edited is not kept"  # shown where the earlier profile is not stored


def profile_edits(before: Profile | None, after: Profile | None) -> dict[str, str] | None:
    """Return the differences of two profiles in words, by key such as `ranking.top_k`; None if one is not known."""
    if before is None or after is None:
        return None
    then, now = _leaves(profile_to_mapping(before)), _leaves(profile_to_mapping(after))
    return {key: _edit(key, then.get(key), now.get(key)) for key in [*now, *then] if then.get(key) != now.get(key)}


def candidates_edited(edits: Mapping[str, str] | None, keys: Sequence[str] = _CANDIDATES) -> str:
    """Return in words the edits that decide which papers are candidates; "" if there are none."""
    return UNKNOWN if edits is None else "; ".join(words for key, words in edits.items() if key.startswith(tuple(keys)))


def edit_in_words(edits: str) -> str:
    """Return the words for an edit of the profile that changed `edits`."""
    return f"the profile was edited ({edits})"


def scores_edited(edits: Mapping[str, str] | None) -> str:
    """Return in words the edits that can change a score; "" if there are none."""
    return (
        UNKNOWN if edits is None else "; ".join(words for key, words in edits.items() if not key.startswith(_NO_SCORE))
    )


def _leaves(record: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return the values of a nested record by their keys joined with dots, without the prefix `content.`."""
    leaves: dict[str, Any] = {}
    for key, value in record.items():
        name = key if path in ("", "content") else f"{path}.{key}"
        leaves |= _leaves(value, name) if isinstance(value, Mapping) and value else {name: value}
    return leaves


def _edit(key: str, then: Any, now: Any) -> str:
    """Describe the change of a value; for a list, what was added and removed."""
    if isinstance(then or [], list) and isinstance(now or [], list) and (then or now):
        added = [entry for entry in now or [] if entry not in (then or [])]
        dropped = [entry for entry in then or [] if entry not in (now or [])]
        descriptions = [*(f"+ {_entry(entry)}" for entry in added), *(f"- {_entry(entry)}" for entry in dropped)]
        more = f", {len(descriptions) - _NAMED} more" if len(descriptions) > _NAMED else ""
        return f"{key}: {', '.join(descriptions[:_NAMED]) or 'another order'}{more}"
    return f"{key}: {_entry(then)} → {_entry(now)}"


def _entry(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("paper_id") or value.get("title") or value.get("question") or "an entry")
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else str(value)


Bools = NDArray[np.bool_]
Row = Mapping[str, Any]
LEARNED = "learned"  # the part of a score that ratings add; it has the weight of relevance
ADDED = ("bonus", "soft_penalty", "diversity_penalty")  # parts of a score that have no weight
_RECOMPUTED = {  # keys of a header: if one of them differs, every score may differ
    "model": "another embedding model",
    "calibration": "another calibration",
    "code_version": "another version of the ranking",
}
_OPTIONS = ("purpose", "ranking_mode", "interest_mode", "hybrid_of", "enable_llm_verification", "weights")
_RULES = {
    "top_k": "places in the list",
    "line": "the lowest threshold",
    "include_contrastive": "a contrastive pick",
    "contrastive_type": "the kind of contrast",
}
_SAME = 1e-12  # parts that differ by at most this are equal


class TwoRankings:
    """Two rankings of one profile, aligned by paper.

    Attributes:
        rows: (earlier, later) rows by paper id.
        ids: the n papers of both rankings, the newest first; arrays and `ScoredPapers` have n rows in this order.
        at: the row number of a paper, by id.
        old, new: the papers of the earlier and the later ranking.
        common: (n,) whether a paper is a candidate of both.
        reweighed: (earlier, later) arrays (n,): by how much the later weights change the score of a row.
        removed, removed_before: filter reasons of the later and the earlier ranking by paper id (None: not known).
        days: days of first submission by paper id.
        edits: the result of `profile_edits` (None: not known).
        edited: whether the profile differs.
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
        self.ids = sorted({*self.rows[0], *self.rows[1]}, key=lambda paper_id: (-ordinal(days.get(paper_id)), paper_id))
        self.at = {paper_id: number for number, paper_id in enumerate(self.ids)}
        self.edited = headers[0].get("profile_hash") != headers[1].get("profile_hash")
        interests = tuple(
            dict.fromkeys(interest for header in reversed(headers) for interest in interests_served(header))
        )
        self.old, self.new = (
            scored_papers([rows.get(paper_id) for paper_id in self.ids], header, interests=interests)
            for rows, header in zip(self.rows, headers, strict=True)
        )
        self.common = self.old.member & self.new.member
        self.reweighed = tuple(
            np.array([self._reweighed(rows[paper_id]) if paper_id in rows else 0.0 for paper_id in self.ids])
            for rows in self.rows
        )

    @cached_property
    def now(self) -> ReadingList:
        """The later list, made again from its rows."""
        return arrange(self.new)

    def parts(self, paper_id: str) -> dict[str, float]:
        """Return by how much the parts of a paper's score differ, by name; only parts that differ."""
        return differences(self.rows[0][paper_id], self.rows[1][paper_id], self.headers)

    def _reweighed(self, row: Row) -> float:
        return sum(differences(row, row, self.headers).values())

    @cached_property
    def recomputed(self) -> list[str]:
        """In words, everything that changed the scores of all papers; empty if there is nothing."""
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
        """In words, everything that changed the list but no score; empty if there is nothing."""
        then, now = (asked_of(header) for header in self.headers)
        differences = [
            f"{words}: {_plain(then[name])} → {_plain(now[name])}"
            for name, words in _RULES.items()
            if name in then and name in now and then[name] != now[name]
        ]
        return [edit_in_words("; ".join(differences))] if differences and self.edited else differences

    @property
    def edit_named(self) -> str:
        """The item of `recomputed`, or else of `rules_differ`, that names the edit of the profile; "" if none does."""
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
    def first_list_before(self) -> bool | None:
        """Whether the earlier list was the first for its interests; None: its threshold had no rule."""
        rule = self.old.rules.line_rule
        return rule.first_list if rule else None

    @property
    def line(self) -> float | None:
        """The threshold of the later list, a probability; None: it has none."""
        return self.new.rules.line

    @property
    def same_day(self) -> bool:
        """Whether both rankings are of the same day."""
        return not self.differs("as_of")

    def has_lane_place(self, side: int) -> Bools:
        """Return (n,) which papers have a place reserved for an interest in the earlier (0) or later (1) list."""
        places = self.headers[side].get("lane_places") or {}
        return np.array([paper_id in places for paper_id in self.ids], dtype=np.bool_)


def asked_of(header: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the header with `line`, the threshold of the day, replaced by the lowest threshold of the options."""
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
    """Return by how much the parts of a score differ between two rows, in points; only parts that differ.

    Each row is weighted by its own header.
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
