"""Compare two rankings of a profile: which papers entered, left or moved, and why (SPEC G16).

This module compares the two lists and describes the differences. `causes.py` finds the reasons.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from paper_assets.ranking.causes import Cause, why
from paper_assets.ranking.two_rankings import ADDED, TwoRankings, asked_of
from paper_assets.text.numbers import percent

__all__ = ["ADDED", "Cause", "Changes", "Move", "changes_between", "difference_in_words", "sentences"]

_LINEAGE = (
    "profile_hash",
    "model",
    "preferences",
    "calibration",
    "llm_model",
    "llm_prompt",
    "code_version",
    "as_of",
    "purpose",
    "ranking_mode",
    "interest_mode",
    "top_k",
    "line",
    "quiet",
)
# Names for readers of keys of `_LINEAGE`; the others are shown with spaces for underscores.
_NAMES = {
    "model": "embedding model",
    "llm_model": "language model",
    "code_version": "version of the ranking",
    "top_k": "places in the list",
    "line": "lowest threshold",
    "quiet": "quiet day",
}
# Sentences for keys whose values are hashes, which are not shown.
_HASHES = {
    "profile_hash": "the profile was edited",
    "preferences": "what the ratings teach has changed",
    "calibration": "the calibration of relevance has changed",
    "llm_prompt": "the prompt of the language model has changed",
}
# The words of a paper's reason that mean the same as a difference of the key.
_NAMED_AS = {
    "profile_hash": "the profile was edited",
    "preferences": "what your ratings taught",
    "calibration": "another calibration",
}
_ALSO = 2  # causes that are named for a paper beside the deciding ones


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A paper whose place differs.

    Attributes:
        before, after: its places; None: not in the list.
        score_before, score_after: its final scores; None: not a candidate.
        parts: by how much each part of its score differs, by name.
        reason: the deciding causes as a sentence.
        causes: all causes that count, the deciding ones first.
        decisive: the number of deciding causes, mostly 1.
    """

    paper_id: str
    before: int | None
    after: int | None
    score_before: float | None
    score_after: float | None
    parts: Mapping[str, float]
    reason: str
    causes: tuple[Cause, ...]
    decisive: int

    @property
    def also(self) -> tuple[Cause, ...]:
        """The first causes that count beside the deciding ones."""
        return self.causes[self.decisive :][:_ALSO]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The papers whose place differs.

    `lineage` has what the rankings were computed from, where it differs: (earlier, later) by key of the header.
    """

    entered: tuple[Move, ...]
    left: tuple[Move, ...]
    moved: tuple[Move, ...]
    lineage: Mapping[str, tuple[Any, Any]]

    @property
    def unnamed(self) -> Mapping[str, tuple[Any, Any]]:
        """The items of the lineage that no paper's reason names."""
        moves = (*self.entered, *self.left, *self.moved)
        reasons = " ".join(move.reason for move in moves)
        return {
            name: values
            for name, values in self.lineage.items()
            if name not in _NAMED_AS or _NAMED_AS[name] not in reasons
        }


def changes_between(
    before: pa.Table,
    after: pa.Table,
    *,
    headers: tuple[Mapping[str, Any], Mapping[str, Any]],
    removed: Mapping[str, str],
    removed_before: Mapping[str, str] | None = None,
    days: Mapping[str, date] | None = None,
    edits: Mapping[str, str] | None = None,
) -> Changes:
    """Compare two rankings of a profile, given their rows (`ranking_schema()`) and their headers (earlier, later).

    `removed` has the filter reasons of the later ranking by paper id, `removed_before` those of the earlier one (None:
    not known). `days` are the papers' days of first submission, which break ties. `edits` is what was edited in the
    profile in between (`profile_edits`; None: not known). Papers that left are in the order of the earlier ranking,
    all others in that of the later one.
    """
    rows = before.to_pylist(), after.to_pylist()
    compared = TwoRankings(
        *rows, headers=headers, removed=removed, removed_before=removed_before, days=days or {}, edits=edits
    )
    then, now = ({row["paper_id"]: row["rank"] for row in side if row["shown"]} for side in rows)
    requested = [asked_of(header) for header in headers]
    return Changes(
        entered=tuple(_move(paper_id, None, now[paper_id], compared) for paper_id in now if paper_id not in then),
        left=tuple(_move(paper_id, then[paper_id], None, compared) for paper_id in then if paper_id not in now),
        moved=tuple(
            _move(paper_id, then[paper_id], now[paper_id], compared)
            for paper_id in now
            if paper_id in then and then[paper_id] != now[paper_id]
        ),
        lineage={
            name: (requested[0].get(name), requested[1].get(name))
            for name in _LINEAGE
            if requested[0].get(name) != requested[1].get(name)
        },
    )


def _move(paper_id: str, before: int | None, after: int | None, compared: TwoRankings) -> Move:
    old, new = (rows.get(paper_id) for rows in compared.rows)
    causes = why(compared, paper_id, "moved" if before and after else "entered" if after else "left", (before, after))
    return Move(
        paper_id=paper_id,
        before=before,
        after=after,
        score_before=old["final"] if old else None,
        score_after=new["final"] if new else None,
        parts=compared.parts(paper_id) if old and new else {},
        reason=" and ".join(cause.sentence for cause in causes.all[: causes.decisive]),
        causes=causes.all,
        decisive=causes.decisive,
    )


def difference_in_words(name: str, before: object, after: object) -> str:
    """Return an item of `Changes.lineage` in words."""
    values = (_value_in_words(name, value) for value in (before, after))
    return _HASHES.get(name) or f"{_NAMES.get(name, name.replace('_', ' '))}: {' → '.join(values)}"


def _value_in_words(name: str, value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return percent(value) if name == "line" and isinstance(value, float) else str(value)


def sentences(changes: Changes, titles: Mapping[str, str]) -> list[str]:
    """Return the changes in words: a line for each paper, then the differences in what the rankings depend on.

    `titles` are by paper id. Papers that left because they were already shown are one line together.
    """

    def line(move: Move) -> str:
        places = f"{move.before or '–'} → {move.after or '–'}"
        also = "".join(f"; {cause.sentence}" for cause in move.also)
        return f"{places}  {move.paper_id} {titles.get(move.paper_id, '')} ({move.reason}{also})"

    lines = [f"entered: {line(move)}" for move in changes.entered]
    already_shown = [move for move in changes.left if [cause.kind for cause in move.causes] == ["shown"]]
    lines += [f"left: {line(move)}" for move in changes.left if move not in already_shown]
    if already_shown:
        papers = "1 paper that was" if len(already_shown) == 1 else f"{len(already_shown)} papers that were"
        lines.append(
            f"left: {papers} already shown on an earlier day ({', '.join(move.paper_id for move in already_shown)})"
        )
    lines += [f"moved: {line(move)}" for move in changes.moved]
    lines += [difference_in_words(name, *values) for name, values in changes.unnamed.items()]
    return lines or ["nothing has changed"]
