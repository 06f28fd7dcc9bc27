"""Parse plans: the question, its sides, its conditions (SPEC R1, R4); also those of a profile's `questions.json`."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from hashlib import sha256
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from paper_assets.errors import InvalidInput, InvalidProfile
from paper_assets.profile import Profile
from paper_assets.retrieval.merge import access
from paper_assets.retrieval.stance import Stance
from paper_assets.settings import RetrievalConfig, Settings
from paper_assets.small_files import first_fault
from paper_assets.stores.documents import DataType, Where
from paper_assets.text.words import words_in

SideField = Literal["primary_category", "categories", "topic_id", "language", "paper_id", "data_type", "version"]

MOST_SIDES = 50
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")

Words = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=2000)]


def _with_words(text: str) -> str:
    """Refuse a text without a letter or digit: every document would be equally near to it."""
    if not words_in(text):
        raise ValueError("a question needs words")
    return text


Question = Annotated[Words, AfterValidator(_with_words)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)  # unread fields are ignored


class Side(_Part):
    """A group that is treated like the others: its condition (None: none), its own wording, or its stance (R7)."""

    name: Words
    where: dict[str, Any] | None = None
    query: Question | None = None
    stance: Stance | None = None

    @model_validator(mode="after")
    def _of_one_kind(self) -> Self:
        if self.stance and (self.where or self.query):
            raise ValueError("a side with a stance cannot have where or query: all stances share one search")
        if not (self.where or self.query or self.stance):
            raise ValueError("give the side a stance, a where or a query beside its name")
        return self


def _expanded(entry: object, given: ValidationInfo) -> object:
    """Return the side of a value of `side_field`, and any other entry as it is."""
    if not isinstance(entry, str | int) or isinstance(entry, bool):
        return entry
    field, name = given.data.get("side_field", "primary_category"), str(entry).strip()
    operator = "$contains" if field == "categories" else "$eq"
    return {"name": name, "where": {field: {operator: entry if field == "version" else name}}}


_Sides = Annotated[list[Annotated[Side, BeforeValidator(_expanded)]], Field(max_length=MOST_SIDES)]


class _Parameters(_Part):
    k: int | None = Field(None, ge=1, le=1000)
    k_per_side: int | None = Field(None, ge=1, le=100)
    max_per_source: int | None = Field(None, ge=1, le=1000)
    max_tokens: int | None = Field(None, ge=1)
    language: Words | None = None


class _Filters(_Part):
    side_field: SideField = "primary_category"  # before the sides, which are read by it
    sides: _Sides | None = None
    party: _Sides | None = None
    startdate: Any = None  # an invalid day is reported, not refused (R4)
    enddate: Any = None
    topic_id: str | list[Words] | None = None

    @model_validator(mode="after")
    def _one_name_for_sides(self) -> Self:
        if self.sides is not None and self.party is not None:
            raise ValueError("sides and party are two names of one thing; give one of them")
        repeated = [name for name, count in Counter(side.name for side in self.asked).items() if count > 1]
        if repeated:
            raise ValueError(f"side {repeated[0]!r} is given twice; give each side a different name")
        stances = [side.stance for side in self.asked if side.stance]
        if stances and len(stances) < len(self.asked):
            raise ValueError("some sides have a stance and some have none; ask for them in two plans")
        if len(stances) > len(set(stances)):
            raise ValueError(f"two sides are to have the stance {stances[0]}; a document can be on one side only")
        return self

    @property
    def asked(self) -> list[Side]:
        return self.sides or self.party or []


class _Record(_Part):
    """The schema of a plan (R1)."""

    rewritten_question: Question
    question: Question | None = None
    parameters: _Parameters = _Parameters()
    filters: _Filters = _Filters()
    data_type: list[DataType] = Field(["abstract"], min_length=1)
    generation_required: bool = False
    answer: bool = False

    @model_validator(mode="after")
    def _sides_of_an_answer(self) -> Self:
        if self.answer and any(side.stance is None for side in self.filters.asked):
            raise ValueError("answer: an answer has no sides but stances; leave out the sides, or answer")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A validated plan with all defaults filled in. `notes` list the conditions that could not be read and were left
    out. `answer`: it is answered in sentences with quotations (`question_answering.py`), instead of documents by side.
    """

    question: str  # as asked: evidence is graded, and stances judged, against it
    rewritten_question: str  # the search query
    sides: tuple[Side, ...]
    first: date | None
    last: date | None
    topics: tuple[str, ...]
    language: str | None
    data_types: tuple[DataType, ...]
    k: int
    k_per_side: int
    max_per_source: int
    max_tokens: int
    generation_required: bool
    notes: tuple[str, ...]
    answer: bool = False
    by_party: bool = False  # its sides were named by `party`; the answer has `documents_by_party` too

    @property
    def asks_for_stances(self) -> bool:
        """Return whether its sides are stances; then all of them are."""
        return any(side.stance for side in self.sides)

    @property
    def content_hash(self) -> str:
        """Return 32 hex digits over everything that can change an answer; equal plans have equal hashes."""
        values = {name: value for name, value in asdict(self).items() if name not in ("answer", "by_party") or value}
        values["sides"] = [side.model_dump() for side in self.sides]
        return sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()[:32]


def parse_plan(
    record: object, *, source: str, default_sides: Sequence[str], config: RetrievalConfig | None = None
) -> Plan:
    """Parse the plan in `record` (JSON values); `default_sides` are categories, for a plan without sides.

    Raises InvalidInput: one line with `source`, the key and the fault. A side's own `where` is validated when the side
    is searched, so that an invalid one does not affect the others (R3).
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
        notes.append(f"startdate {first} is after enddate {last}: no document meets both")
    topics = [filters.topic_id] if isinstance(filters.topic_id, str) else filters.topic_id or []
    categories = () if read.answer else default_sides
    by_category = (Side(name=category, where={"primary_category": {"$eq": category}}) for category in categories)
    return Plan(
        question=read.question or read.rewritten_question,
        rewritten_question=read.rewritten_question,
        sides=tuple(filters.asked) or tuple(by_category),
        first=first,
        last=last,
        topics=tuple(topic for topic in topics if topic.strip()),
        language=parameters.language,
        data_types=tuple(dict.fromkeys(read.data_type)),
        k=parameters.k or config.k,
        k_per_side=parameters.k_per_side or config.k_per_side,
        max_per_source=parameters.max_per_source or config.max_per_source,
        max_tokens=parameters.max_tokens or config.max_tokens,
        generation_required=read.generation_required,
        notes=tuple(notes),
        answer=read.answer,
        by_party=bool(filters.party),
    )


def _day(key: str, given: object, notes: list[str]) -> date | None:
    """Parse YYYY-MM-DD; anything else is noted and ignored."""
    if given is None or given == "":
        return None
    try:
        if isinstance(given, str) and _DAY.fullmatch(given.strip()):
            return date.fromisoformat(given.strip())
    except ValueError:
        pass
    notes.append(f"{key} {given!r} is not a day like 2026-03-01; left out")
    return None


def categories_of(profile: Profile | None, settings: Settings) -> tuple[str, ...]:
    """Return the default sides of a plan (R1): the profile's categories, else the fetched ones."""
    own = profile.content.feed.categories if profile else None
    return tuple(dict.fromkeys(own or settings.categories))


def questions_of(profile: Profile, settings: Settings | None = None) -> tuple[Plan, ...]:
    """Parse the profile's `questions.json`; without settings, to check it.

    Raises InvalidProfile naming the file, the entry and the key.
    """
    file = profile.path / "questions.json" if profile.path else f"questions of {profile.name}"
    sides, config = (categories_of(profile, settings), settings.retrieval) if settings else ((), None)
    try:
        return tuple(
            parse_plan(record, source=f"{file}: entry {at}", default_sides=sides, config=config)
            for at, record in enumerate(profile.questions, 1)
        )
    except InvalidInput as fault:
        raise InvalidProfile(str(fault)) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition; `words` complete "none …". Conditions not `asked` in the plan always apply.

    `dates`: a document without a date does not meet it.
    """

    where: Where
    words: str
    asked: bool = True
    dates: bool = False


def conditions_of(plan: Plan, side: Side | None, *, as_of: date | None, owner: str | None) -> tuple[Condition, ...]:
    """Return what a document must meet for a side of the plan (None: for the plan alone).

    Excludes documents after `as_of` and private ones of other owners. A filter that is not given is left out.
    """
    found: list[Condition] = []
    if side and side.where:
        found.append(Condition(where=side.where, words=_value_words(side)))
    days = [({"date_int": {"$gte": as_number(plan.first)}}, f"from {plan.first}")] if plan.first else []
    days += [({"date_int": {"$lte": as_number(plan.last)}}, f"until {plan.last}")] if plan.last else []
    if days:
        words = " ".join(word for _, word in days)
        found.append(Condition(where=_all(where for where, _ in days) or {}, words=words, dates=True))
    if plan.topics:
        among: dict[str, Any] = {"$in": list(plan.topics)} if len(plan.topics) > 1 else {"$eq": plan.topics[0]}
        found.append(Condition(where={"topic_id": among}, words=f"with topic_id {' or '.join(plan.topics)}"))
    if plan.language:
        found.append(Condition(where={"language": {"$eq": plan.language}}, words=f"in the language {plan.language!r}"))
    if as_of and not (plan.last and plan.last <= as_of):
        found.append(Condition(where=_dated_until(as_of, owner), words=f"until {as_of}", asked=False, dates=True))
    found.append(Condition(where=access(owner), words="", asked=False))
    return tuple(found)


def joined(conditions: Iterable[Condition]) -> Where | None:
    """Join all conditions to one filter, in Chroma's grammar."""
    return _all(condition.where for condition in conditions)


def undated(conditions: Iterable[Condition], *, owner: str | None) -> Where | None:
    """Return the filter of documents that only lack a date; None if no condition needs one."""
    known = list(conditions)
    of_dates = [each for each in known if each.dates]
    if not of_dates:
        return None
    shut_out: list[Where] = [{"date_int": {"$eq": None}}]
    if owner is not None and not any(each.asked for each in of_dates):
        shut_out.append({"owner": {"$ne": owner}})  # the owner's undated PDFs pass anyway (`_dated_until`)
    return _all([*(each.where for each in known if not each.dates), *shut_out])


def as_number(day: date) -> int:
    """Return YYYYMMDD, as days are stored (R4)."""
    return day.year * 10_000 + day.month * 100 + day.day


def _dated_until(as_of: date, owner: str | None) -> Where:
    """Filter documents dated until the day; the owner's undated PDFs always pass."""
    dated: Where = {"date_int": {"$lte": as_number(as_of)}}
    if owner is None:
        return dated
    return {"$or": [dated, {"$and": [{"owner": {"$eq": owner}}, {"date_int": {"$eq": None}}]}]}


def _all(wheres: Iterable[Where]) -> Where | None:
    """Join with one flat $and; None without conditions, the condition itself for one."""
    flat: list[Where] = []
    for where in wheres:
        inner = where.get("$and") if len(where) == 1 else None
        flat.extend(inner if isinstance(inner, list) else [where])
    if len(flat) < 2:
        return flat[0] if flat else None
    return {"$and": flat}


def _value_words(side: Side) -> str:
    """Return `with primary_category cs.CL` for a side by a value of a field."""
    where: Mapping[str, Any] = side.where or {}
    if len(where) == 1:
        [(field, asked)] = where.items()
        value = next(iter(asked.values()), None) if isinstance(asked, dict) and len(asked) == 1 else asked
        if not field.startswith("$") and isinstance(value, str | int):
            return f"with {field} {value}"
    return f"that meets the condition of side {side.name!r}"
