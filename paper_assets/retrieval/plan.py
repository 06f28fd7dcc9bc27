"""Plan: what is asked for, on which sides, under which conditions (SPEC R1, R4)."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from paper_assets.errors import InvalidInput
from paper_assets.retrieval.comparing import Method
from paper_assets.retrieval.stance import Stance
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import DataType
from paper_assets.validation import first_fault

SideField = Literal["primary_category", "categories", "topic_id", "language", "paper_id", "data_type", "version"]

MOST_SIDES = 50
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, defer_build=True
    )  # what is not read costs nothing


class _Side(_Part):
    """By a value of `side_field`, by its own condition, its own wording or both, or by a stance."""

    name: Words
    value: str | int | None = None
    where: dict[str, Any] | None = None
    query: Words | None = None
    stance: Stance | None = None


def _side(entry: object) -> object:
    """A value stands for the side of that name; `value` is ours, not a key of a plan."""
    if isinstance(entry, str | int) and not isinstance(entry, bool):
        return {"name": str(entry), "value": entry}
    if isinstance(entry, dict) and "value" in entry:
        raise ValueError("value: unknown key; remove it or correct its spelling")
    if isinstance(entry, dict):
        if entry.get("stance") and (entry.get("where") or entry.get("query")):
            raise ValueError("a side with a stance has no where and no query of its own: all are judged alike")
        if not (entry.get("where") or entry.get("query") or entry.get("stance")):
            raise ValueError("give the side a stance, a where or a query beside its name")
    return entry


class _Parameters(_Part):
    k: int | None = Field(None, ge=1, le=1000)
    k_per_side: int | None = Field(None, ge=1, le=100)
    method: Method | None = None
    max_per_source: int | None = Field(None, ge=1, le=1000)
    max_tokens: int | None = Field(None, ge=1)
    language: Words | None = None


class _Filters(_Part):
    sides: list[Annotated[_Side, BeforeValidator(_side)]] | None = Field(None, max_length=MOST_SIDES)
    party: list[Annotated[_Side, BeforeValidator(_side)]] | None = Field(None, max_length=MOST_SIDES)
    side_field: SideField = "primary_category"
    startdate: Any = None  # what cannot be read as a day is reported, not refused (R4)
    enddate: Any = None
    topic_id: str | list[Words] | None = None

    @model_validator(mode="after")
    def _one_name_for_sides(self) -> Self:
        if self.sides is not None and self.party is not None:
            raise ValueError("sides and party are two names of one thing; give one of them")
        repeated = [name for name, count in Counter(side.name for side in self.asked).items() if count > 1]
        if repeated:
            raise ValueError(f"side {repeated[0]!r} stands there twice; give each side a name of its own")
        stances = [side.stance for side in self.asked if side.stance]
        if stances and len(stances) < len(self.asked):
            raise ValueError("some sides have a stance and some have none; ask for them in two plans")
        if len(stances) > len(set(stances)):
            raise ValueError(f"two sides are to have the stance {stances[0]}; a document stands on one side only")
        return self

    @property
    def asked(self) -> list[_Side]:
        return self.sides or self.party or []


class _Record(_Part):
    """The schema of a plan (R1)."""

    rewritten_question: Words
    question: Words | None = None
    parameters: _Parameters = _Parameters()
    filters: _Filters = _Filters()
    data_type: list[DataType] = Field(["abstract"], min_length=1)
    generation_required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the groups that are treated alike: its condition (None: none), its own wording, or its stance (R7)."""

    name: str
    where: Mapping[str, Any] | None = None
    query: str | None = None
    stance: Stance | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A validated plan, nothing left open. `notes` say which conditions could not be read and were left out."""

    question: str  # as asked; evidence is graded against it, stances are those on it
    rewritten_question: str  # what is searched for
    sides: tuple[Side, ...]
    first: date | None
    last: date | None
    topics: tuple[str, ...]
    language: str | None
    data_types: tuple[DataType, ...]
    method: Method
    k: int
    k_per_side: int
    max_per_source: int
    max_tokens: int
    generation_required: bool
    notes: tuple[str, ...]

    @property
    def asks_for_stances(self) -> bool:
        """Whether its sides are stances; then all of them are."""
        return any(side.stance for side in self.sides)

    @property
    def content_hash(self) -> str:
        """32 hex digits over everything that can change an answer; a plan that says the same has the same."""
        return sha256(json.dumps(asdict(self), sort_keys=True, default=str).encode()).hexdigest()[:32]


def parse_plan(
    record: object, *, source: str, default_sides: Sequence[str], config: RetrievalConfig | None = None
) -> Plan:
    """The plan that `record` (JSON values) describes; `default_sides` are categories, for a plan without sides.

    Raises InvalidInput: one line with `source`, the key and what is wrong with it. A side's own `where` is looked at
    when the side is searched, so that a broken one does not disturb the others (R3).
    """
    config = config or RetrievalConfig()
    if not isinstance(record, dict):
        raise InvalidInput(f"{source}: expected an object with the key rewritten_question, got {type(record).__name__}")
    try:
        read = _Record.model_validate_json(json.dumps(record))
    except ValidationError as error:
        raise InvalidInput(f"{source}: {first_fault(error)}") from None
    parameters, filters = read.parameters, read.filters
    notes: list[str] = []
    first, last = _day("startdate", filters.startdate, notes), _day("enddate", filters.enddate, notes)
    if first and last and first > last:
        notes.append(f"startdate {first} lies after enddate {last}: no document meets both")
    topics = [filters.topic_id] if isinstance(filters.topic_id, str) else filters.topic_id or []
    sides = tuple(_resolved(side, filters.side_field) for side in filters.asked)
    by_category = (Side(name=category, where={"primary_category": {"$eq": category}}) for category in default_sides)
    return Plan(
        question=read.question or read.rewritten_question,
        rewritten_question=read.rewritten_question,
        sides=sides or tuple(by_category),
        first=first,
        last=last,
        topics=tuple(topic for topic in topics if topic.strip()),
        language=parameters.language,
        data_types=tuple(dict.fromkeys(read.data_type)),
        method=parameters.method or config.method,
        k=parameters.k or config.k,
        k_per_side=parameters.k_per_side or config.k_per_side,
        max_per_source=parameters.max_per_source or config.max_per_source,
        max_tokens=parameters.max_tokens or config.max_tokens,
        generation_required=read.generation_required,
        notes=tuple(notes),
    )


def parse_plans(
    records: Sequence[object], *, source: str, default_sides: Sequence[str], config: RetrievalConfig | None = None
) -> tuple[Plan, ...]:
    """The plans of a list, as `questions.json` holds them. Raises InvalidInput naming the entry, from 1."""
    return tuple(
        parse_plan(record, source=f"{source}: entry {at}", default_sides=default_sides, config=config)
        for at, record in enumerate(records, 1)
    )


def _resolved(side: _Side, field: SideField) -> Side:
    if side.value is None:
        return Side(name=side.name, where=side.where or None, query=side.query, stance=side.stance)
    operator = "$contains" if field == "categories" else "$eq"
    return Side(name=side.name, where={field: {operator: side.value if field == "version" else side.name}})


def _day(key: str, given: object, notes: list[str]) -> date | None:
    """A day as YYYY-MM-DD; anything else is noted and counts as not given."""
    if given is None or given == "":
        return None
    try:
        if isinstance(given, str) and _DAY.fullmatch(given.strip()):
            return date.fromisoformat(given.strip())
    except ValueError:
        pass
    notes.append(f"{key} {given!r} is not a day like 2026-03-01; left out")
    return None
