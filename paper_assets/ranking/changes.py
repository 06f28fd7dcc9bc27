"""Compare two rankings of a profile: which papers entered, left or moved, and the largest cause of each (SPEC G16).

`ratings_effect` compares a ranking with the one that it would be without the reader's ratings.

The cause of a move is the first of these that applies:

1. The paper is no longer a candidate, because it was already shown, was removed by a filter or left the window; or it
   is a candidate for the first time.
2. Its own part: the number that orders the list changed in the direction of the move, and this is the part of it that
   changed most in that direction. The part is attributed to an edit of the profile or another model if there was one,
   to a new version of the paper, to a verdict of a language model or to the reader's ratings; else it is named alone.
3. An edit that can change the list without a change of scores, such as the number of places.
4. Others came or went.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from paper_assets.profile import Profile, profile_to_mapping
from paper_assets.ranking.explain import FOR_ALL, LEARNED, PARTS_IN_WORDS, order_parts, order_value, removed_in_words
from paper_assets.ranking.final_list import match_of, points_on_topic
from paper_assets.ranking.levels import LIKELY, learned_of, probability_of
from paper_assets.text.numbers import percent

NOTICED = 0.005  # points of match or score: half of what is displayed
_LLM = "embedding+llm"
_NAMED = 3  # entries of a list that are named; the others are counted
# Keys of a profile that decide only which papers are candidates or what follows the list.
_NO_LIST = ("feed", "read", "constraints", "keywords.exclude.hard", "questions", "rewriting")
_RULES = ("top_k", "threshold", "include_contrastive", "contrastive_type")
_OPTIONS = ("purpose", "ranking_mode", "interest_mode", "enable_llm_verification", "weights", *_RULES)
_MODELS = {
    "model": "another embedding model",
    "calibration": "another calibration",
    "code_version": "another version of the ranking",
}
# What a ranking depends on, by key of the header, and its name for readers.
_LINEAGE = {
    "profile_hash": "profile",
    "model": "embedding model",
    "preferences": "preferences",
    "calibration": "calibration",
    "llm_model": "language model",
    "llm_prompt": "prompt",
    "code_version": "version of the ranking",
    "as_of": "as of",
    "purpose": "purpose",
    "ranking_mode": "ranking mode",
    "interest_mode": "interest mode",
    "top_k": "places in the list",
    "threshold": "lowest probability",
    "quiet": "quiet day",
}
# Sentences for keys whose values are hashes, which are not shown.
_HASHES = {
    "profile_hash": "the profile was edited",
    "preferences": "what the ratings teach has changed",
    "calibration": "the calibration of relevance has changed",
    "llm_prompt": "the prompt of the language model has changed",
}

Row = Mapping[str, Any]
Header = Mapping[str, Any]
Kind = Literal["shown", "removed", "window", "new", "edit", "model", "version", "verdict", "ratings", "part", "others"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A paper whose place differs.

    Attributes:
        before, after: its places; None: not in the list.
        score_before, score_after: the number that orders the list (`order_value`); None: not a candidate.
        parts: by how much each part of that number differs, by name; empty unless the paper was a candidate of both.
        kind: the kind of cause.
        part: the part of the paper's own number that is the cause, if one is.
        reason: the cause in words.
    """

    paper_id: str
    before: int | None
    after: int | None
    score_before: float | None
    score_after: float | None
    parts: Mapping[str, float]
    kind: Kind
    part: str | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The papers whose place differs.

    Papers that left are in the order of the earlier ranking, all others in that of the later one. `lineage` has what
    the rankings were computed from, where it differs: (earlier, later) by key of the header. `edits` has in words what
    was edited in the profile (empty: nothing, or it is not known).
    """

    entered: tuple[Move, ...]
    left: tuple[Move, ...]
    moved: tuple[Move, ...]
    lineage: Mapping[str, tuple[Any, Any]]
    edits: tuple[str, ...]

    @property
    def moves(self) -> tuple[Move, ...]:
        """All papers whose place differs."""
        return (*self.entered, *self.left, *self.moved)


def changes_between(
    before: pa.Table,
    after: pa.Table,
    *,
    headers: tuple[Header, Header],
    removed: Mapping[str, str],
    edits: Mapping[str, str] | None = None,
) -> Changes:
    """Compare two rankings of a profile, given their rows (`ranking_schema()`) and their headers (earlier, later).

    `removed` has the filter reasons of the later ranking by paper id. `edits` is what was edited in the profile in
    between (`profile_edits`; None: not known).
    """
    old, new = ({row["paper_id"]: row for row in table.to_pylist()} for table in (before, after))
    then, now = ({each: row["rank"] for each, row in rows.items() if row["shown"]} for rows in (old, new))

    def move(paper_id: str) -> Move:
        rows, places = (old.get(paper_id), new.get(paper_id)), (then.get(paper_id), now.get(paper_id))
        parts = _differences(rows[0], rows[1], headers) if rows[0] and rows[1] else {}
        up = places[0] is None or (places[1] is not None and places[1] < places[0])
        kind, part, reason = _cause(rows, parts, headers, up=up, reason=removed.get(paper_id), edits=edits)
        scores = [order_value(row, header) if row else None for row, header in zip(rows, headers, strict=True)]
        return Move(
            paper_id=paper_id,
            before=places[0],
            after=places[1],
            score_before=scores[0],
            score_after=scores[1],
            parts=parts,
            kind=kind,
            part=part,
            reason=reason,
        )

    return Changes(
        entered=tuple(move(each) for each in now if each not in then),
        left=tuple(move(each) for each in then if each not in now),
        moved=tuple(move(each) for each in now if each in then and then[each] != now[each]),
        lineage={
            name: (headers[0].get(name), headers[1].get(name))
            for name in _LINEAGE
            if headers[0].get(name) != headers[1].get(name)
        },
        edits=tuple((edits or {}).values()),
    )


def _cause(
    rows: tuple[Row | None, Row | None],
    parts: Mapping[str, float],
    headers: tuple[Header, Header],
    *,
    up: bool,
    reason: str | None,
    edits: Mapping[str, str] | None,
) -> tuple[Kind, str | None, str]:
    """Return the kind of cause, the paper's own part, and the words. `reason`: that of the filter that removed it."""
    old, new = rows
    if new is None:
        if reason is None:
            return "window", None, "no longer in the window"
        words = removed_in_words(reason)
        return ("shown" if reason == "ALREADY_SHOWN" else "removed"), None, words
    same_day = headers[0].get("as_of") == headers[1].get("as_of")
    edited = _edited(headers, edits, same_day=same_day)
    if old is None:
        return ("edit", None, "your edit") if edited and same_day else ("new", None, "new among the candidates")
    if part := largest_own_part(parts, up=up):
        words = f"{PARTS_IN_WORDS[part]} {parts[part]:+.2f}"
        models = [name for key, name in _MODELS.items() if headers[0].get(key) != headers[1].get(key)]
        versions = old.get("version"), new.get("version")
        if edited and part not in ("recency", LEARNED):
            return "edit", part, f"{edited}: {words}"
        if models and part not in ("recency", LEARNED):
            return "model", part, f"{' and '.join(models)}: {words}"
        if part == LEARNED:
            return "ratings", part, words
        if part != "recency" and None not in versions and versions[0] != versions[1]:
            return "version", part, f"a new version of the paper (v{versions[0]} → v{versions[1]}): {words}"
        if part == "semantic_relevance" and _LLM in (old["evaluation_method"], new["evaluation_method"]):
            return "verdict", part, f"a language model's verdict: {words}"
        return "part", part, words
    if edited and (same_day or any(headers[0].get(key) != headers[1].get(key) for key in _RULES)):
        return "edit", None, edited
    return "others", None, "others came or went"


def largest_own_part(parts: Mapping[str, float], *, up: bool) -> str | None:
    """Return the part that changed most in the direction of the move; None if the parts together did not change so."""
    own = {name: by if up else -by for name, by in parts.items() if name != FOR_ALL}
    largest = max(own, key=lambda name: (own[name], name), default=None)
    return largest if largest and sum(own.values()) > NOTICED < own[largest] else None


def _differences(old: Row, new: Row, headers: tuple[Header, Header]) -> dict[str, float]:
    """Return by how much the parts of the number that orders the list differ; empty if it is not the same number."""
    if (headers[0].get("preference_weight") is None) != (headers[1].get("preference_weight") is None):
        return {}
    then, now = _parts(old, headers[0]), _parts(new, headers[1])
    differences = {name: now.get(name, 0.0) - then.get(name, 0.0) for name in {**now, **then}}
    return {name: by for name, by in differences.items() if by}


def _parts(row: Row, header: Header) -> dict[str, float]:
    """Return the parts of the number that orders the list; of a match with the ratings apart."""
    parts = {name: points for name, _, points in order_parts(row, header)}
    if header.get("preference_weight") is not None:
        by_formula = points_on_topic(row, header, learned=False)
        parts |= {"semantic_relevance": by_formula, LEARNED: parts["semantic_relevance"] - by_formula}
    return parts


def _edited(headers: tuple[Header, Header], edits: Mapping[str, str] | None, *, same_day: bool) -> str:
    """Return in words that an edit, or other options of a run, can have changed the order; empty if none did."""
    if headers[0].get("profile_hash") != headers[1].get("profile_hash") and (
        same_day or edits is None or any(not key.startswith(_NO_LIST) for key in edits)
    ):
        return "your edit"
    return "other options" if any(headers[0].get(name) != headers[1].get(name) for name in _OPTIONS) else ""


def profile_edits(before: Profile | None, after: Profile | None) -> dict[str, str] | None:
    """Return the differences of two profiles in words, by key such as `ranking.top_k`; None if one is not known."""
    if before is None or after is None:
        return None
    then, now = _leaves(profile_to_mapping(before)), _leaves(profile_to_mapping(after))
    return {key: _edit(key, then.get(key), now.get(key)) for key in [*now, *then] if then.get(key) != now.get(key)}


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


def difference_in_words(name: str, before: object, after: object, *, edits: Sequence[str] = ()) -> str:
    """Return an item of `Changes.lineage` in words; `edits`: what was edited in the profile."""
    if name == "profile_hash" and edits:
        return f"{_HASHES[name]}: {'; '.join(edits)}"
    values = (
        percent(each) if name == "threshold" and isinstance(each, float) else _entry(each) for each in (before, after)
    )
    return _HASHES.get(name) or f"{_LINEAGE[name]}: {' → '.join(values)}"


def sentences(changes: Changes, titles: Mapping[str, str]) -> list[str]:
    """Return the changes in words: a line for each paper, then the differences in what the rankings depend on.

    `titles` are by paper id. Papers that left because they were already shown are one line together.
    """

    def line(move: Move) -> str:
        places = f"{move.before or '–'} → {move.after or '–'}"
        return f"{places}  {move.paper_id} {titles.get(move.paper_id, '')} ({move.reason})"

    lines = [f"entered: {line(move)}" for move in changes.entered]
    lines += [f"left: {line(move)}" for move in changes.left if move.kind != "shown"]
    if shown := [move.paper_id for move in changes.left if move.kind == "shown"]:
        papers = "1 paper that was" if len(shown) == 1 else f"{len(shown)} papers that were"
        lines.append(f"left: {papers} already shown on an earlier day ({', '.join(shown)})")
    lines += [f"moved: {line(move)}" for move in changes.moved]
    lines += [difference_in_words(name, *each, edits=changes.edits) for name, each in changes.lineage.items()]
    return lines or ["nothing has changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedMove:
    """A paper that the ratings moved into or out of a list: its probability `without` and `with_ratings`, and by which
    words and rated papers.

    A word begins with + or -, as in the stored ranking. A rated paper is not named as near itself.
    """

    paper_id: str
    without: float
    with_ratings: float
    words: tuple[str, ...]
    near: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsEffect:
    """The papers shown only because of the ratings (`came`), and those not shown because of them (`went`)."""

    came: tuple[RatedMove, ...] = ()
    went: tuple[RatedMove, ...] = ()


def ratings_effect(rows: Sequence[Row], header: Mapping[str, Any]) -> RatingsEffect | None:
    """Compare the list of a stored ranking with the papers that would match best without the reader's ratings.

    Returns None if nothing learned counts in it.
    """
    if not any(learned_of(row) for row in rows):
        return None
    weight = header["weights"]["semantic_relevance"]

    def place(row: Row) -> tuple[bool, float, int]:
        unlearned = {**row, "learned": None, "final": row["final"] - weight * learned_of(row)}
        match = match_of(unlearned, header)
        order = unlearned["final"] if match is None else match
        return match is not None and row["semantic_relevance"] < LIKELY, -order, row["rank"]

    shown = sum(row["shown"] for row in rows)
    without = [row["paper_id"] for row in sorted(rows, key=place)[:shown]]
    return RatingsEffect(
        came=tuple(_rated_move(row) for row in rows if row["shown"] and row["paper_id"] not in without),
        went=tuple(_rated_move(row) for row in rows if not row["shown"] and row["paper_id"] in without),
    )


def _rated_move(row: Row) -> RatedMove:
    return RatedMove(
        paper_id=row["paper_id"],
        without=row["semantic_relevance"],
        with_ratings=probability_of(row),
        words=tuple(row.get("learned_words") or ()),
        near=tuple(each for each in row.get("learned_near") or () if each != row["paper_id"]),
    )
