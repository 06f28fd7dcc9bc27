"""The query language of the desk's search: words, "phrases" and filters such as `author:` and `from:`.

A minus before any of them excludes what it matches.

To add a filter, add a line to `FILTERS` and its field to `SearchQuery`; the page, the command line and MCP read the
query through this parser, so that all three accept the same queries and print the same errors.
"""

import calendar
import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import date
from difflib import get_close_matches
from typing import Any, Literal, get_args

from paper_assets.errors import InvalidInput
from paper_assets.stores.documents import DataType
from paper_assets.text.cleaning import without_controls

State = Literal["worth", "later", "no", "shown", "unseen"]
Feature = Literal["code", "pdf"]

LONGEST_QUERY = 1_000  # characters
_TOKEN = re.compile(r'(?P<minus>-(?=[^\s-]))?(?:(?P<key>[A-Za-z]+):)?(?P<value>"[^"]*"?|[^\s"]+)')
_QUOTES = str.maketrans({"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "：": ":"})
_DATE = re.compile(r"(\d{4})(?:-(\d{1,2}))?(?:-(\d{1,2}))?")
_CATEGORY = re.compile(r"[A-Za-z][A-Za-z-]*(?:\.[A-Za-z-]+)?")
_PROFILE = re.compile(r"[a-z0-9][a-z0-9_-]*")
_ELSEWHERE = {  # filters of arXiv's search and others, and what to write instead
    **dict.fromkeys(
        ("title", "ti", "abstract", "abs", "all"), '"{}" in quotation marks: title or abstract must have it'
    ),
    "au": 'author:"{}"',
    "cat": "category:{}",
    "year": "from:{0} to:{0}",
}
_COLLECTIONS: dict[str, DataType] = {"abstracts": "abstract", "fulltexts": "fulltext", "rewrites": "rewrite"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Chip:
    """A filter as a person typed it, and the query without it: what a removable chip on the page needs."""

    text: str
    without: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A parsed query; conditions of different kinds must all hold.

    `words` is the text to rank by (phrases included). Every phrase must occur in the title or abstract. All authors
    must match, any of the categories, any of the states, all of the features. `first` and `last` are days of first
    submission, both included. A paper that matches one of the `excluded` is not found.
    """

    words: str = ""
    phrases: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    first: date | None = None
    last: date | None = None
    states: tuple[State, ...] = ()
    features: tuple[Feature, ...] = ()
    profile: str | None = None
    data_types: tuple[DataType, ...] = ("abstract",)
    excluded: "tuple[SearchQuery, ...]" = ()
    chips: tuple[Chip, ...] = field(default=(), compare=False)


_Draft = defaultdict[str, list[Any]]  # what has been read so far, by the field of `SearchQuery`


def _query(draft: _Draft) -> SearchQuery:
    """Return the query that has been read."""
    read: dict[str, Any] = {name: tuple(dict.fromkeys(values)) for name, values in draft.items()}
    latest = {"first": max(read.get("first", ()), default=None), "last": min(read.get("last", ()), default=None)}
    one = {"words": " ".join(draft["words"]), "profile": next(iter(draft["profile"]), None)}
    return SearchQuery(**{**read, **latest, **one})


def parse_search_query(text: str) -> SearchQuery:
    """Parse a query. Raises InvalidInput: one line that names the filter, its position from 1, and what is allowed."""
    text = without_controls(text).translate(_QUOTES)
    if len(text) > LONGEST_QUERY:
        raise InvalidInput(f"search: the query has {len(text)} characters; use at most {LONGEST_QUERY}")
    draft: _Draft = defaultdict(list)
    spans: list[tuple[int, int]] = []  # of the filters
    excluded: list[_Draft] = []
    later_day = ""  # filter and place of the day that was read last
    for token in _TOKEN.finditer(text):
        key, value, at = token["key"], token["value"], token.start("value") + 1
        quoted = value.startswith('"')
        if quoted and (len(value) < 2 or not value.endswith('"')):
            raise InvalidInput(f"search: the quotation mark at character {at} is not closed; add a second one")
        inner = value.strip('"').strip() if quoted else value
        read = FILTERS.get(key.lower()) if key else None
        part: _Draft = defaultdict(list) if token["minus"] else draft
        if token["minus"]:
            excluded.append(part)
        if token["minus"] or read:
            spans.append(token.span())
        if read is not None:
            where = f"{key.lower()}: at character {token.start() + 1}"
            if token["minus"] and read is _read_place and inner.lower() != "profile":
                raise InvalidInput(f"search: {where}: only in:profile can be excluded")
            later_day = where if read in (_read_first, _read_last) else later_day
            read(part, inner, where)
        elif key and (near := get_close_matches(key.lower(), FILTERS, n=1, cutoff=0.75)):
            raise InvalidInput(
                f"search: {key}: at character {token.start() + 1} is unknown; did you mean {near[0]}:? "
                f'(use {", ".join(f"{name}:" for name in FILTERS)}; put "{key}:" in quotation marks to search for it)'
            )
        elif key and key.lower() in _ELSEWHERE and inner:
            instead = _ELSEWHERE[key.lower()].format(inner)
            raise InvalidInput(f"search: {key}: at character {token.start() + 1} is not a filter here; write {instead}")
        elif quoted:
            part["words"] += [each for each in (key, inner) if each]
            part["phrases"] += [inner] if inner else []
        else:
            bare = token[0].strip().removeprefix("-" if token["minus"] else "")
            if bare in {f"{name}:" for name in FILTERS}:
                raise InvalidInput(f"search: {bare} at character {token.start() + 1} has no value; write {bare}VALUE")
            part["words"].append(bare)
            part["phrases"] += [bare] if token["minus"] else []
    query = _query(draft)
    if query.first and query.last and query.first > query.last:
        raise InvalidInput(f"search: {later_day}: from:{query.first} is after to:{query.last}; exchange the two days")
    chips = (
        Chip(text=text[start:end], without=" ".join(f"{text[:start]} {text[end:]}".split())) for start, end in spans
    )
    return replace(query, excluded=tuple(map(_query, excluded)), chips=tuple(chips))


def _values(value: str, where: str) -> list[str]:
    """Return the alternatives of `a|b`. Raises InvalidInput where there are none."""
    found = [part.strip() for part in value.split("|") if part.strip()]
    if not found:
        raise InvalidInput(f"search: {where} has no value")
    return found


def _among(value: str, allowed: tuple[str, ...], where: str) -> str:
    if value.lower() not in allowed:
        raise InvalidInput(f"search: {where}: {value[:40]!r} is unknown; use {', '.join(allowed)}")
    return value.lower()


def _read_author(draft: _Draft, value: str, where: str) -> None:
    if not any(letter.isalnum() for letter in value):
        raise InvalidInput(f'search: {where} needs a name, for example author:Vaswani or author:"Ashish Vaswani"')
    draft["authors"].append(value)


def _read_category(draft: _Draft, value: str, where: str) -> None:
    for each in _values(value, where):
        if not _CATEGORY.fullmatch(each):
            raise InvalidInput(f"search: {where}: {each[:40]!r} is not a category; write one like cs.CL or stat")
        draft["categories"].append(each)


def _day_of(value: str, where: str, *, end: bool) -> date:
    """Return a day; a year or a month is its first day, or its last one with `end`."""
    found = _DATE.fullmatch(value)
    try:
        if found:
            year, month = int(found[1]), int(found[2] or (12 if end else 1))
            day = int(found[3] or (calendar.monthrange(year, month)[1] if end else 1))
            return date(year, month, day)
    except (ValueError, calendar.IllegalMonthError):
        pass
    raise InvalidInput(f"search: {where}: {value[:40]!r} is not a date; write 2026-03-31, 2026-03 or 2026")


def _read_first(draft: _Draft, value: str, where: str) -> None:
    draft["first"].append(_day_of(value, where, end=False))


def _read_last(draft: _Draft, value: str, where: str) -> None:
    draft["last"].append(_day_of(value, where, end=True))


def _read_state(draft: _Draft, value: str, where: str) -> None:
    draft["states"] += [_among(each, get_args(State), where) for each in _values(value, where)]


def _read_feature(draft: _Draft, value: str, where: str) -> None:
    draft["features"] += [_among(each, get_args(Feature), where) for each in _values(value, where)]


def _read_place(draft: _Draft, value: str, where: str) -> None:
    for each in _values(value, where):
        if each.lower() in _COLLECTIONS:
            draft["data_types"].append(_COLLECTIONS[each.lower()])
        elif not _PROFILE.fullmatch(each):
            raise InvalidInput(
                f"search: {where}: {each[:40]!r} is neither a profile's name nor one of {', '.join(_COLLECTIONS)}"
            )
        elif draft["profile"] not in ([], [each]):
            raise InvalidInput(f"search: {where}: only one profile can be named, {draft['profile'][0]!r} or {each!r}")
        else:
            draft["profile"] = [each]


FILTERS: dict[str, Callable[[_Draft, str, str], None]] = {
    "author": _read_author,
    "category": _read_category,
    "from": _read_first,
    "to": _read_last,
    "is": _read_state,
    "has": _read_feature,
    "in": _read_place,
}
