"""What changed between two rankings of a profile: who entered, left or moved, and what moved them (SPEC G16)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paper_assets.ranking.explain import DIMENSIONS_IN_WORDS
from paper_assets.settings import DIMENSIONS

if TYPE_CHECKING:
    import pyarrow as pa

ADDED = ("bonus", "soft_penalty", "diversity_penalty")  # parts of a score that have no weight
_SAME = 1e-9  # a part that differs by less has not moved
_LINEAGE = (
    "profile_hash",
    "model",
    "llm_model",
    "llm_prompt",
    "code_version",
    "as_of",
    "purpose",
    "ranking_mode",
    "interest_mode",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One paper's places (None: not in the list) and scores before and after, and by how much each part moved it."""

    paper_id: str
    before: int | None
    after: int | None
    score_before: float | None
    score_after: float | None
    parts: Mapping[str, float]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """Papers of either list whose place differs, and what the two rankings were computed from, where that differs."""

    entered: tuple[Move, ...]
    left: tuple[Move, ...]
    moved: tuple[Move, ...]
    lineage: Mapping[str, tuple[Any, Any]]


def changes_between(
    before: "pa.Table",
    after: "pa.Table",
    *,
    headers: tuple[Mapping[str, Any], Mapping[str, Any]],
    removed: Mapping[str, str],
) -> Changes:
    """Compare two rankings' rows (`ranking_schema()`) with their headers; `removed` gives the filter reasons of the
    later day, by paper id. Lists are in the order of the later ranking, papers that left in that of the earlier.
    """
    old = {row["paper_id"]: row for row in before.to_pylist()}
    new = {row["paper_id"]: row for row in after.to_pylist()}
    moves = {
        paper_id: _move(paper_id, old.get(paper_id), new.get(paper_id), headers, removed)
        for paper_id in [*(p for p, row in new.items() if row["shown"]), *(p for p, row in old.items() if row["shown"])]
    }
    return Changes(
        entered=tuple(move for move in moves.values() if move.before is None),
        left=tuple(move for move in moves.values() if move.after is None),
        moved=tuple(move for move in moves.values() if move.before and move.after and move.before != move.after),
        lineage={
            name: (headers[0].get(name), headers[1].get(name))
            for name in _LINEAGE
            if headers[0].get(name) != headers[1].get(name)
        },
    )


def _move(
    paper_id: str,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    headers: tuple[Mapping[str, Any], Mapping[str, Any]],
    removed: Mapping[str, str],
) -> Move:
    parts: dict[str, float] = {}
    if old and new:
        brought = [_parts(row, header["weights"]) for row, header in zip((old, new), headers, strict=True)]
        parts = {name: brought[1][name] - brought[0][name] for name in brought[1]}
        parts = {name: by for name, by in parts.items() if abs(by) > _SAME}
    return Move(
        paper_id=paper_id,
        before=old["rank"] if old and old["shown"] else None,
        after=new["rank"] if new and new["shown"] else None,
        score_before=old["final"] if old else None,
        score_after=new["final"] if new else None,
        parts=parts,
        reason=_reason(paper_id, old, new, parts, removed),
    )


def _parts(row: Mapping[str, Any], weights: Mapping[str, float]) -> dict[str, float]:
    return {**{name: weights[name] * row[name] for name in DIMENSIONS}, **{name: row[name] for name in ADDED}}


def _reason(
    paper_id: str,
    old: Mapping[str, Any] | None,
    new: Mapping[str, Any] | None,
    parts: Mapping[str, float],
    removed: Mapping[str, str],
) -> str:
    """In words: the part that moved the score most; without one, that the others moved."""
    if old is None:
        return "new among the candidates"
    if new is None:
        return f"removed: {removed[paper_id]}" if paper_id in removed else "no longer in the window"
    if not parts:
        return "its score is the same; others came or went"
    name = max(parts, key=lambda part: (abs(parts[part]), part))
    return f"{DIMENSIONS_IN_WORDS.get(name, name.replace('_', ' '))} {parts[name]:+.3f}"


def sentences(changes: Changes, titles: Mapping[str, str]) -> list[str]:
    """The changes in words, one line a paper, and last what the rankings were computed from, where that differs."""

    def line(move: Move) -> str:
        places = f"{move.before or '–'} → {move.after or '–'}"
        return f"{places}  {move.paper_id} {titles.get(move.paper_id, '')} ({move.reason})"

    told = [f"entered: {line(move)}" for move in changes.entered]
    told += [f"left: {line(move)}" for move in changes.left]
    told += [f"moved: {line(move)}" for move in changes.moved]
    told += [f"{name.replace('_', ' ')}: {old} → {new}" for name, (old, new) in changes.lineage.items()]
    return told or ["nothing has changed"]
