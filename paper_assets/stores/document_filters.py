"""Filters on the fields of documents: Chroma's grammar, checked, and compiled to SQL with bound parameters (SPEC R5).

    {"date_int": {"$gte": 20260301}}                                one field, one operator
    {"primary_category": "cs.CL"}                                   a bare value is $eq
    {"categories": {"$contains": "cs.LG"}}                          a list holds the value
    {"$and": [...]}, {"$or": [...]}                                 filters joined

They mean what they mean to Chroma: a document without a value differs from every value ($ne, $nin, $not_contains
hold) and is neither more nor less than any. Beyond Chroma, several fields in one filter, or several operators on one
field, must all hold, a list may have one entry, and null with $eq or $ne asks whether there is a value.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from paper_assets.errors import InvalidInput

Where = Mapping[str, Any]

_NUMBERS = frozenset(["date_int", "version"])
_LISTS = frozenset(["categories"])
_TEXTS = frozenset([
    "paper_id", "title", "primary_category", "topic_id", "data_type", "access_level", "language", "url", "owner",
])  # fmt: skip

_EQUAL = {"$eq": "is not distinct from", "$ne": "is distinct from"}
_ORDER = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}
_AMONG = {"$in": "", "$nin": "not "}
_HOLDS = {"$contains": "", "$not_contains": "not "}
_JOINED = {"$and": " and ", "$or": " or "}

_DEEPEST = 16  # filters within filters; a plan needs three
_LARGEST = 2**31 - 1  # an integer of the warehouse


class Condition(NamedTuple):
    """A condition on the columns of documents, never null, and the values of its `?` in their order."""

    sql: str
    parameters: list[Any]


def condition_of(where: Where | None) -> Condition:
    """The filter as SQL; None and the empty filter hold for every document. Raises InvalidInput."""
    parameters: list[Any] = []
    return Condition(_all_of(where, parameters, depth=0) if where else "true", parameters)


def _all_of(where: object, parameters: list[Any], *, depth: int) -> str:
    """One filter; its parameters are appended in the order of their marks."""
    if not isinstance(where, Mapping) or not where:
        raise InvalidInput(f"a filter must be an object with a field, $and or $or, got {_shown(where)}")
    if depth > _DEEPEST:
        raise InvalidInput(f"a filter holds filters more than {_DEEPEST} deep; write it flatter")
    parts: list[str] = []
    for name, asked in where.items():
        if name in _JOINED:
            if not isinstance(asked, Sequence) or isinstance(asked, str) or not asked:
                raise InvalidInput(f"{name} needs a list of filters, got {_shown(asked)}")
            inner = [_all_of(each, parameters, depth=depth + 1) for each in asked]
            parts.append(f"({_JOINED[name].join(inner)})")
        elif name in _NUMBERS or name in _LISTS or name in _TEXTS:
            parts.extend(_of_field(name, asked, parameters))
        elif str(name).startswith("$"):
            raise InvalidInput(f"{_shown(name)} cannot stand where a field does; expected a field, $and or $or")
        else:
            known = ", ".join(sorted(_NUMBERS | _LISTS | _TEXTS))
            raise InvalidInput(f"{_shown(name)} is no field of documents; expected one of {known}")
    return " and ".join(parts)


def _of_field(field: str, asked: object, parameters: list[Any]) -> Iterator[str]:
    """What must hold of one field, one condition an operator. `field` is one of ours, never a user's text."""
    operators: Mapping[str, Any] = asked if isinstance(asked, Mapping) else {"$eq": asked}
    if not operators:
        raise InvalidInput(f"{field}: no operator; expected one like {{'$eq': ...}}")
    fitting = _fitting(field)
    for operator, value in operators.items():
        if operator not in fitting:
            raise InvalidInput(f"{field}: {_shown(operator)} does not fit it; expected one of {', '.join(fitting)}")
        if operator in _AMONG:
            if not isinstance(value, Sequence) or isinstance(value, str) or not value:
                raise InvalidInput(f"{field}: {operator} needs a list of values, got {_shown(value)}")
            parameters.append([_checked(field, each) for each in value])
            yield f"{_AMONG[operator]}coalesce(list_contains(?, {field}), false)"
        elif value is None and operator in _EQUAL and isinstance(asked, Mapping):
            yield f"{field} is {'not ' if operator == '$ne' else ''}null"
        else:
            parameters.append(_checked(field, value))
            if operator in _HOLDS:
                yield f"{_HOLDS[operator]}coalesce(list_contains({field}, ?), false)"
            elif operator in _EQUAL:
                yield f"{field} {_EQUAL[operator]} ?"
            else:
                yield f"coalesce({field} {_ORDER[operator]} ?, false)"


def _fitting(field: str) -> tuple[str, ...]:
    """The operators that make sense of a field."""
    if field in _LISTS:
        return tuple(_HOLDS)
    return (*_EQUAL, *_AMONG, *(_ORDER if field in _NUMBERS else ()))


def _checked(field: str, value: object) -> str | int:
    if field in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) > _LARGEST:
            kind = "a day as a whole number like 20260301" if field == "date_int" else "a whole number"
            raise InvalidInput(f"{field}: expected {kind}, got {_shown(value)}")
        return value
    if not isinstance(value, str):
        raise InvalidInput(f"{field}: expected a text, got {_shown(value)}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidInput(f"{field}: {_shown(value)} is no valid Unicode text") from None
    return value


def _shown(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 60 else text[:57] + "..."
