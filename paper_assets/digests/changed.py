"""What changed since an earlier ranking, for a reader: who is new, who moved, who left and why (SPEC G16)."""

from collections.abc import Mapping
from dataclasses import dataclass

from paper_assets.digests.paper_head import title_line
from paper_assets.ranking.changes import Changes, Move
from paper_assets.text.cleaning import one_line

_BEFORE_THE_REASON = ("removed: ", "already shown: ")  # of a paper that is gone; that it is, stands there already
_NOT_TOLD = ("as_of", "quiet")  # the page's own date and headline say so
# What a ranking was computed from, in words; the other names speak for themselves.
_LINEAGE = {
    "model": "embedding model",
    "llm_model": "language model",
    "llm_prompt": "prompt of the language model",
    "code_version": "version of the ranking",
    "top_k": "places in the list",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """The changes since one earlier ranking, which `since` names; who came or went for one reason stands together.

    `entered`: why, and the places that they have; `moved`: title, places before and after, why; `left`: why, and
    (title, place that it had) of each; `otherwise`: a profile edited, another model.
    """

    since: str
    entered: tuple[tuple[str, tuple[int, ...]], ...]
    moved: tuple[tuple[str, int, int, str], ...]
    left: tuple[tuple[str, tuple[tuple[str, int], ...]], ...]
    otherwise: tuple[str, ...]


def change_set(changes: Changes, *, since: str, titles: Mapping[str, str]) -> ChangeSet | None:
    """The changes in a reader's words, or None if nothing that a reader would notice has changed."""

    def title(move: Move) -> str:
        return title_line(titles.get(move.paper_id, ""), move.paper_id)

    entered: dict[str, list[int]] = {}
    for move in changes.entered:
        entered.setdefault(_why(move), []).append(move.after or 0)
    left: dict[str, list[tuple[str, int]]] = {}
    for move in changes.left:
        left.setdefault(_why_gone(move), []).append((title(move), move.before or 0))
    found = ChangeSet(
        since=since,
        entered=tuple((reason, tuple(places)) for reason, places in entered.items()),
        moved=tuple((title(move), move.before or 0, move.after or 0, _why(move)) for move in changes.moved),
        left=tuple((reason, tuple(papers)) for reason, papers in left.items()),
        otherwise=tuple(
            "the profile was edited" if name == "profile_hash" else f"{_in_words(name)}: {_told(old)} → {_told(new)}"
            for name, (old, new) in changes.lineage.items()
            if name not in _NOT_TOLD
        ),
    )
    return found if found.entered or found.moved or found.left or found.otherwise else None


def _why(move: Move) -> str:
    """What decided, without the ids of other papers: a reader knows them by their titles."""
    return one_line(" and ".join(cause.words for cause in move.causes[: move.decisive]))


def _why_gone(move: Move) -> str:
    why = _why(move)
    for start in _BEFORE_THE_REASON:
        why = why.removeprefix(start)
    return why


def _in_words(name: str) -> str:
    return _LINEAGE.get(name, name.replace("_", " "))


def _told(value: object) -> str:
    return "none" if value is None else one_line(str(value))
