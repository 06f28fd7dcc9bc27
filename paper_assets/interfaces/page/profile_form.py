"""Convert a profile to form values and back. Keys of the file that the form does not show are kept.

The profile's schema validates the result; `field_faults` assigns its errors to the fields they are about. To add a
field, add a line to `GROUPS`.
"""

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, get_args

from pydantic import ValidationError

from paper_assets.digests.entry import LEVELS_IN_WORDS
from paper_assets.profile import ContrastiveType, ProfileContent, Purpose, RankingMode
from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.rewriting.policy import LEVELS
from paper_assets.weights import DIMENSIONS

Kind = Literal["lines", "number", "real", "switch", "choice", "several"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: its key in the file (with dots), its label, a hint, and its kind."""

    key: str
    label: str
    kind: Kind
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    default: Any = None

    @property
    def name(self) -> str:
        """The name of the field in the form."""
        return self.key.replace(".", "-")


def _choices(of: Any) -> tuple[tuple[str, str], ...]:
    return tuple((value, value.replace("_", " ")) for value in get_args(of))


_ONE_A_LINE = "one per line"
GROUPS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    (
        "Interests",
        (
            Field(key="interests.primary", label="Main interests", kind="lines", hint=_ONE_A_LINE),
            Field(key="interests.secondary", label="Secondary", kind="lines", hint=_ONE_A_LINE),
            Field(key="interests.exploratory", label="Exploratory", kind="lines", hint=_ONE_A_LINE),
        ),
    ),
    (
        "Keywords",
        (
            Field(
                key="keywords.must_include",
                label="Preferred keywords",
                kind="lines",
                hint="one per line; GPT-4* matches every word that starts with GPT-4, title:word matches titles only",
            ),
            Field(
                key="keywords.exclude.soft",
                label="Avoided keywords",
                kind="lines",
                hint="one per line; each in a title lowers the score; abstract:word looks in abstracts too",
            ),
            Field(
                key="keywords.exclude.hard",
                label="Excluded keywords",
                kind="lines",
                hint="one per line; each removes the paper",
            ),
        ),
    ),
    (
        "Authors and institutions",
        (
            Field(key="preferred_authors", label="Preferred authors", kind="lines", hint=_ONE_A_LINE),
            Field(key="preferred_institutions", label="Preferred institutions", kind="lines", hint=_ONE_A_LINE),
        ),
    ),
    (
        "The list",
        (
            Field(key="ranking.top_k", label="Papers per day", kind="number", default=5),
            Field(key="feed.window_days", label="Window in days", kind="number", default=7),
            Field(key="ranking.purpose", label="Purpose", kind="choice", choices=_choices(Purpose), default="general"),
            Field(
                key="ranking.ranking_mode",
                label="Ranking mode",
                kind="choice",
                choices=_choices(RankingMode),
                default="balanced",
            ),
            Field(
                key="ranking.include_contrastive",
                label="Give the last place to a contrasting paper",
                kind="switch",
                default=False,
            ),
            Field(
                key="ranking.contrastive_type",
                label="Contrast in",
                kind="choice",
                choices=_choices(ContrastiveType),
                default="method",
            ),
            Field(key="constraints.min_year", label="Earliest year", kind="number"),
            Field(key="constraints.require_code", label="Only papers with code", kind="switch", default=False),
            Field(key="feed.repeat", label="Repeat papers on later days", kind="switch", default=False),
            Field(
                key="feed.categories",
                label="arXiv categories",
                kind="lines",
                hint="one per line; empty for all stored categories",
            ),
        ),
    ),
    (
        "Rewrites",
        (
            Field(
                key="rewriting.target_levels",
                label="Rewrite the best papers for",
                kind="several",
                choices=tuple((level, LEVELS_IN_WORDS[level].removeprefix("for ")) for level in LEVELS),
                default=[],
            ),
            Field(key="rewriting.papers", label="Papers to rewrite per day", kind="number", default=3),
        ),
    ),
)
WEIGHTS: tuple[Field, ...] = tuple(
    Field(key=f"ranking.weights.{name}", label=DIMENSIONS_IN_WORDS[name], kind="real") for name in DIMENSIONS
)
OWN_WEIGHTS = "own-weights"


def form_values(record: Mapping[str, Any], *, weights: Mapping[str, float]) -> dict[str, Any]:
    """Return the values of the form's fields for a record. `weights` are those in force without own weights."""
    typed: dict[str, Any] = {}
    for field in _fields():
        value = _at(record, field.key)
        value = field.default if value is None else value
        if field.kind == "lines":
            typed[field.name] = "\n".join(map(str, value or ()))
        elif field.kind in ("switch", "several"):
            typed[field.name] = value or ([] if field.kind == "several" else False)
        else:
            typed[field.name] = "" if value is None else f"{value}"
    own = _at(record, "ranking.weights")
    typed[OWN_WEIGHTS] = bool(own)
    for field, name in zip(WEIGHTS, DIMENSIONS, strict=True):
        typed[field.name] = f"{(own or weights).get(name, ''):g}" if isinstance(own or weights, Mapping) else ""
    return typed


def submitted_values(form: Any) -> dict[str, Any]:
    """Return the values of the form's fields as they were submitted."""
    typed: dict[str, Any] = {OWN_WEIGHTS: form.get(OWN_WEIGHTS) == "on"}
    for field in (*_fields(), *WEIGHTS):
        if field.kind == "several":
            typed[field.name] = form.getlist(field.name)
        else:
            typed[field.name] = (
                form.get(field.name) == "on" if field.kind == "switch" else str(form.get(field.name, ""))
            )
    return typed


def edited_record(record: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file's record with the submitted values; defaults that the file did not contain are not added."""
    edited = deepcopy(dict(record))
    for field in _fields():
        value = _value(field, typed[field.name])
        if _at(record, field.key) is None and value in (field.default, [], None):
            continue
        _put(edited, field.key, value)
    if typed[OWN_WEIGHTS]:
        _put(edited, "ranking.weights", {f.key.rpartition(".")[2]: _value(f, typed[f.name]) for f in WEIGHTS})
    elif _at(edited, "ranking.weights") is not None:
        del edited["ranking"]["weights"]
    return edited


def field_faults(record: Mapping[str, Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Validate an edited record: messages by form field, and those that belong to no field of the form."""
    try:
        ProfileContent.model_validate_json(json.dumps(record))
    except ValidationError as error:
        names = {field.key: field.name for field in (*_fields(), *WEIGHTS)}
        by_field: dict[str, str] = {}
        other = []
        for fault in error.errors(include_url=False):
            path = ".".join(str(part) for part in fault["loc"] if not isinstance(part, int))
            place = names.get(path) or (OWN_WEIGHTS if path.startswith("ranking.weights") else None)
            message = _message(dict(fault))
            if not path and message.startswith("interests: "):
                place, message = names["interests.primary"], "Enter at least one interest."
            if place:
                by_field.setdefault(place, message)
            else:
                other.append(f"{path}: {message}")
        return by_field, tuple(other)
    return {}, ()


def _message(fault: Mapping[str, Any]) -> str:
    """A schema's error in the words of a form."""
    kind, limits = str(fault["type"]), fault.get("ctx") or {}
    if kind.startswith("int_"):
        return "Enter a whole number."
    if kind.startswith("float_") or kind == "finite_number":
        return "Enter a number."
    for name, words in (("ge", "at least"), ("le", "at most"), ("gt", "more than"), ("lt", "less than")):
        if name in limits:
            return f"Enter a number of {words} {limits[name]:g}."
    if kind == "missing":
        return "Enter a value."
    message = str(fault["msg"]).removeprefix("Value error, ")
    return f"{message[:1].upper()}{message[1:]}."


def _fields() -> tuple[Field, ...]:
    return tuple(field for _, fields in GROUPS for field in fields)


def _value(field: Field, typed: Any) -> Any:
    """The value for JSON; text that is not a number stays text, for the schema to refuse."""
    if field.kind == "lines":
        lines = [line.strip() for line in typed.splitlines() if line.strip()]
        return lines or (None if field.key == "feed.categories" else [])
    if field.kind in ("number", "real"):
        text = typed.strip()
        try:
            return (int(text) if field.kind == "number" else float(text)) if text else None
        except ValueError:
            return text
    return list(typed) if field.kind == "several" else typed


def _at(record: Mapping[str, Any], key: str) -> Any:
    found: Any = record
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _put(record: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        if not isinstance(record.get(part), dict):
            record[part] = {}
        record = record[part]
    record[last] = value
