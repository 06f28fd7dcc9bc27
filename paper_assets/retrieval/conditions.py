"""Conditions: a plan's filters as conditions of a search, each with the words that tell of it (SPEC R1, R4)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from paper_assets.retrieval.plan import Plan, Side
from paper_assets.retrieval.policy import access
from paper_assets.stores.document_filters import Where


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """One condition; `words` complete "none …". Those not `asked` for in the plan hold whatever it says.

    `dates`: a document without a date does not meet it.
    """

    where: Where
    words: str
    asked: bool = True
    dates: bool = False


def conditions_of(plan: Plan, side: Side | None, *, as_of: date | None, owner: str | None) -> tuple[Condition, ...]:
    """What a document must meet for a side of the plan (None: for the plan alone).

    Nothing of after `as_of`, and nothing private of anybody but `owner`. A filter that is not given is left out.
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
        found.append(Condition(where=_there_by(as_of, owner), words=f"until {as_of}", asked=False, dates=True))
    found.append(Condition(where=access(owner), words="", asked=False))
    return tuple(found)


def joined(conditions: Iterable[Condition]) -> Where | None:
    """All conditions as one filter, in Chroma's grammar."""
    return _all(condition.where for condition in conditions)


def undated(conditions: Iterable[Condition], *, owner: str | None) -> Where | None:
    """What the documents meet that only the lack of a date shuts out; None where nothing asks for a date."""
    known = list(conditions)
    of_dates = [each for each in known if each.dates]
    if not of_dates:
        return None
    shut_out: list[Where] = [{"date_int": {"$eq": None}}]
    if owner is not None and not any(each.asked for each in of_dates):
        shut_out.append({"owner": {"$ne": owner}})  # one's own were always there (`_there_by`)
    return _all([*(each.where for each in known if not each.dates), *shut_out])


def as_number(day: date) -> int:
    """YYYYMMDD, as days are stored (R4)."""
    return day.year * 10_000 + day.month * 100 + day.day


def _there_by(as_of: date, owner: str | None) -> Where:
    """Dated until the day; a PDF of one's own that nothing dates is taken to have been there always."""
    dated: Where = {"date_int": {"$lte": as_number(as_of)}}
    if owner is None:
        return dated
    return {"$or": [dated, {"$and": [{"owner": {"$eq": owner}}, {"date_int": {"$eq": None}}]}]}


def _all(wheres: Iterable[Where]) -> Where | None:
    """One flat $and; nothing for no condition, the condition itself for one."""
    flat: list[Where] = []
    for where in wheres:
        inner = where.get("$and") if len(where) == 1 else None
        flat.extend(inner if isinstance(inner, list) else [where])
    if len(flat) < 2:
        return flat[0] if flat else None
    return {"$and": flat}


def _value_words(side: Side) -> str:
    """`with primary_category cs.CL` where a value of a field makes the side."""
    where: Mapping[str, Any] = side.where or {}
    if len(where) == 1:
        [(field, asked)] = where.items()
        value = next(iter(asked.values()), None) if isinstance(asked, dict) and len(asked) == 1 else asked
        if not field.startswith("$") and isinstance(value, str | int):
            return f"with {field} {value}"
    return f"that meets the condition of side {side.name!r}"
