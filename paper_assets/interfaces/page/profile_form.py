"""A profile as a form and back: what can be edited on the page; every other key of the file stays as it is.

Nothing is judged here: what was typed becomes a record, which the profile's own schema accepts or refuses in its words.
Adding a field: a line in `FIELDS`.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, get_args

from paper_assets.profile import ContrastiveType, Purpose, RankingMode
from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.rewriting.policy import LEVELS
from paper_assets.weights import DIMENSIONS

Kind = Literal["lines", "number", "real", "switch", "choice", "several"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field: the key in the file with dots, what it is called, a hint, and how it is typed."""

    key: str
    label: str
    kind: Kind
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    default: Any = None

    @property
    def name(self) -> str:
        return self.key.replace(".", "-")


def _choices(of: Any) -> tuple[tuple[str, str], ...]:
    return tuple((value, value.replace("_", " ")) for value in get_args(of))


_ONE_A_LINE = "one a line"
GROUPS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    (
        "Interests",
        (
            Field(key="interests.primary", label="Most of all", kind="lines", hint=_ONE_A_LINE),
            Field(key="interests.secondary", label="Also", kind="lines", hint=_ONE_A_LINE),
            Field(key="interests.exploratory", label="Curious about", kind="lines", hint=_ONE_A_LINE),
        ),
    ),
    (
        "Keywords",
        (
            Field(
                key="keywords.must_include",
                label="Should hold",
                kind="lines",
                hint="one a line; GPT-4* finds all that begins so, title:word looks at titles only",
            ),
            Field(key="keywords.exclude.soft", label="Rather not", kind="lines", hint="lowers the score"),
            Field(key="keywords.exclude.hard", label="Never", kind="lines", hint="removes the paper"),
        ),
    ),
    (
        "People and places",
        (
            Field(key="preferred_authors", label="Authors you follow", kind="lines", hint=_ONE_A_LINE),
            Field(key="preferred_institutions", label="Institutions you follow", kind="lines", hint=_ONE_A_LINE),
        ),
    ),
    (
        "The list",
        (
            Field(key="ranking.top_k", label="Papers a day", kind="number", default=5),
            Field(key="feed.window_days", label="Days looked at", kind="number", default=7),
            Field(key="ranking.purpose", label="Purpose", kind="choice", choices=_choices(Purpose), default="general"),
            Field(
                key="ranking.ranking_mode",
                label="Mode",
                kind="choice",
                choices=_choices(RankingMode),
                default="balanced",
            ),
            Field(
                key="ranking.include_contrastive",
                label="The last place for a paper that differs",
                kind="switch",
                default=False,
            ),
            Field(
                key="ranking.contrastive_type",
                label="Differs in",
                kind="choice",
                choices=_choices(ContrastiveType),
                default="method",
            ),
            Field(key="constraints.min_year", label="No older than the year", kind="number"),
            Field(key="constraints.require_code", label="Only with code", kind="switch", default=False),
            Field(key="feed.repeat", label="Show a paper again on later days", kind="switch", default=False),
            Field(
                key="feed.categories",
                label="arXiv categories",
                kind="lines",
                hint="one a line; empty for all that are stored",
            ),
        ),
    ),
    (
        "Rewrites",
        (
            Field(
                key="rewriting.target_levels",
                label="Rewrite the best papers",
                kind="several",
                choices=tuple((level, f"for {level}") for level in LEVELS),
                default=[],
            ),
            Field(key="rewriting.papers", label="So many papers a day", kind="number", default=3),
        ),
    ),
)
WEIGHTS: tuple[Field, ...] = tuple(
    Field(key=f"ranking.weights.{name}", label=DIMENSIONS_IN_WORDS[name], kind="real") for name in DIMENSIONS
)
OWN_WEIGHTS = "own-weights"


def form_values(record: Mapping[str, Any], *, weights: Mapping[str, float]) -> dict[str, Any]:
    """What stands in the form's fields for a record: text, or for a switch whether it is on. `weights`: in force."""
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
    """The same, as somebody has typed it."""
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
    """The file's record with what was typed put in; a default that the file did not state is not written."""
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


def _fields() -> tuple[Field, ...]:
    return tuple(field for _, fields in GROUPS for field in fields)


def _value(field: Field, typed: Any) -> Any:
    """As JSON has it; what is no number stays text, so that the schema says what is wrong with it."""
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
