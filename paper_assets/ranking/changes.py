"""What changed between two rankings of a profile: which papers entered, left or moved, and why (SPEC G16).

`causes` decides why, by undoing what may have been the cause; here the two lists are compared and put in words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import pyarrow as pa

from paper_assets.ranking.causes import Cause, why
from paper_assets.ranking.two_rankings import ADDED, TwoRankings, asked_of

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
# What a ranking was computed from, in words; the other names speak for themselves.
_NAMES = {
    "model": "embedding model",
    "llm_model": "language model",
    "code_version": "version of the ranking",
    "top_k": "places in the list",
    "line": "threshold",
}
# Values that mean nothing to a reader: hashes.
_HASHES = {
    "profile_hash": "the profile was edited",
    "preferences": "what the ratings teach has changed",
    "calibration": "the calibration of relevance has changed",
    "llm_prompt": "the prompt of the language model has changed",
}
# What a paper's reason says where it names the same.
_NAMED_AS = {
    "profile_hash": "the profile was edited",
    "preferences": "what your ratings taught",
    "calibration": "another calibration",
}
_ALSO = 2  # further causes that are named for a paper


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One paper's places (None: not in the list) and scores before and after, and by how much each part moved it.

    `reason` names what decided; `causes` are all that hold, the deciding ones (`decisive`, mostly one) first.
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
        """Causes that hold beside the deciding one."""
        return self.causes[self.decisive :][:_ALSO]


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Papers of either list whose place differs, and what the two rankings were computed from, where that differs."""

    entered: tuple[Move, ...]
    left: tuple[Move, ...]
    moved: tuple[Move, ...]
    lineage: Mapping[str, tuple[Any, Any]]

    @property
    def unnamed(self) -> Mapping[str, tuple[Any, Any]]:
        """The lineage without what the reason of a paper already names."""
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
    """Compare two rankings' rows (`ranking_schema()`) with their headers. Lists are in the order of the later ranking,
    papers that left in that of the earlier.

    `removed` gives the filter reasons of the later ranking by paper id, `removed_before` those of the earlier (None:
    not known), `days` the papers' days of first submission, which decide ties, and `edits` what was edited in the
    profile in between (`profile_edits`; None: not known).
    """
    rows = before.to_pylist(), after.to_pylist()
    compared = TwoRankings(
        *rows, headers=headers, removed=removed, removed_before=removed_before, days=days or {}, edits=edits
    )
    then, now = ({row["paper_id"]: row["rank"] for row in side if row["shown"]} for side in rows)
    asked = [asked_of(header) for header in headers]
    return Changes(
        entered=tuple(_move(each, None, now[each], compared) for each in now if each not in then),
        left=tuple(_move(each, then[each], None, compared) for each in then if each not in now),
        moved=tuple(
            _move(each, then[each], now[each], compared) for each in now if each in then and then[each] != now[each]
        ),
        lineage={
            name: (asked[0].get(name), asked[1].get(name))
            for name in _LINEAGE
            if asked[0].get(name) != asked[1].get(name)
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
    """Return what two rankings were computed from and differs, an item of `Changes.lineage`, in words."""
    shown = ("none" if value is None else str(value) for value in (before, after))
    return _HASHES.get(name) or f"{_NAMES.get(name, name.replace('_', ' '))}: {' → '.join(shown)}"


def sentences(changes: Changes, titles: Mapping[str, str]) -> list[str]:
    """Return the changes in words, one line a paper, and last what the rankings were computed from, where that
    differs.
    """

    def line(move: Move) -> str:
        places = f"{move.before or '–'} → {move.after or '–'}"
        also = "".join(f"; {cause.sentence}" for cause in move.also)
        return f"{places}  {move.paper_id} {titles.get(move.paper_id, '')} ({move.reason}{also})"

    lines = [f"entered: {line(move)}" for move in changes.entered]
    shown = [move for move in changes.left if [cause.kind for cause in move.causes] == ["shown"]]
    lines += [f"left: {line(move)}" for move in changes.left if move not in shown]
    if shown:
        papers = "1 paper that was" if len(shown) == 1 else f"{len(shown)} papers that were"
        lines.append(f"left: {papers} already shown on an earlier day ({', '.join(move.paper_id for move in shown)})")
    lines += [f"moved: {line(move)}" for move in changes.moved]
    lines += [difference_in_words(name, *values) for name, values in changes.unnamed.items()]
    return lines or ["nothing has changed"]
