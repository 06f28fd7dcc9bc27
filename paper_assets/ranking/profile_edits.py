"""What was edited between two contents of a profile, in words, and what such an edit can change (SPEC G16)."""

from collections.abc import Mapping, Sequence
from typing import Any

from paper_assets.profile import Profile, profile_to_mapping

_NAMED = 3  # entries of a list that are named; the others are counted
# Keys that decide which papers are candidates, and those that decide neither that nor a score.
_CANDIDATES = ("feed", "read", "constraints", "keywords.exclude.hard", "ranking.purpose", "interests.papers")
_NO_SCORE = (
    *("feed", "read", "constraints", "keywords.exclude.hard", "questions", "rewriting"),
    *("ranking.top_k", "ranking.line", "ranking.include_contrastive", "ranking.contrastive_type"),
)
UNKNOWN = "what was edited is not kept"


def profile_edits(before: Profile | None, after: Profile | None) -> dict[str, str] | None:
    """What differs, in words, by key such as `ranking.top_k`; None if one of the contents is not known."""
    if before is None or after is None:
        return None
    then, now = _leaves(profile_to_mapping(before)), _leaves(profile_to_mapping(after))
    return {key: _edit(key, then.get(key), now.get(key)) for key in [*now, *then] if then.get(key) != now.get(key)}


def candidates_edited(edits: Mapping[str, str] | None, keys: Sequence[str] = _CANDIDATES) -> str:
    """The edits that decide which papers are candidates, in words; nothing if there are none."""
    return UNKNOWN if edits is None else "; ".join(words for key, words in edits.items() if key.startswith(tuple(keys)))


def scores_edited(edits: Mapping[str, str] | None) -> str:
    """The edits that can change a score, in words; nothing if there are none."""
    return (
        UNKNOWN if edits is None else "; ".join(words for key, words in edits.items() if not key.startswith(_NO_SCORE))
    )


def _leaves(record: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Values by their keys joined with dots; `content.` is left out."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        name = key if path in ("", "content") else f"{path}.{key}"
        found |= _leaves(value, name) if isinstance(value, Mapping) and value else {name: value}
    return found


def _edit(key: str, then: Any, now: Any) -> str:
    if isinstance(then or [], list) and isinstance(now or [], list) and (then or now):
        come = [each for each in now or [] if each not in (then or [])]
        gone = [each for each in then or [] if each not in (now or [])]
        told = [*(f"+ {_entry(each)}" for each in come), *(f"- {_entry(each)}" for each in gone)]
        more = f", {len(told) - _NAMED} more" if len(told) > _NAMED else ""
        return f"{key}: {', '.join(told[:_NAMED]) or 'another order'}{more}"
    return f"{key}: {_entry(then)} → {_entry(now)}"


def _entry(value: Any) -> str:
    if isinstance(value, Mapping):
        return str(value.get("paper_id") or value.get("title") or value.get("question") or "an entry")
    return {True: "yes", False: "no", None: "none"}[value] if value is None or isinstance(value, bool) else str(value)
