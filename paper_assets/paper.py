"""Define the paper record that the whole package uses, one at a time (`Paper`) or by the thousand (Arrow).

A single paper is a frozen dataclass; many papers are one `pyarrow.Table` with the columns of `paper_schema()`, in the
same order everywhere.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime
from functools import cache
from hashlib import sha256
from typing import Any

import pyarrow as pa

from paper_assets.errors import InvalidArxivId, InvalidPaper
from paper_assets.paper_id import split_paper_id
from paper_assets.text.cleaning import without_controls


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """One work in its newest known version (SPEC 0). Times are aware and in UTC; an unknown value is `None`.

    `paper_id` is the stored form of a `PaperId`.
    """

    paper_id: str
    title: str
    abstract: str
    authors: tuple[str, ...]
    version: int = 1
    published: datetime | None = None
    updated: datetime | None = None
    categories: tuple[str, ...] = ()
    primary_category: str | None = None
    comment: str | None = None
    doi: str | None = None
    journal_ref: str | None = None
    pdf_url: str | None = None
    github_url: str | None = None
    affiliations: tuple[str, ...] = ()
    withdrawn: bool = False

    @property
    def day(self) -> date | None:
        """Return the day of first submission in UTC: the partition that the paper belongs to."""
        return self.published.date() if self.published else None


def embedded_text(title: str, abstract: str) -> str:
    """Return the text that is embedded for a paper: title, blank line, abstract (SPEC 1)."""
    return f"{title}\n\n{abstract}"


def text_hash(text: str) -> str:
    """Return 32 hex digits that identify a text; equal texts are embedded once."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def parse_instant(text: str) -> datetime:
    """Return an ISO 8601 date or date-time as an aware UTC datetime (a bare date is its midnight). Raises
    ValueError.
    """
    instant = datetime.fromisoformat(text.strip())
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


# The most characters of a field, or of one entry of a list: several times what the longest real papers have.
LONGEST_FIELDS = {
    "paper_id": 300,
    "title": 2_000,
    "abstract": 50_000,
    "comment": 10_000,
    "journal_ref": 2_000,
    "primary_category": 200,
    "doi": 1_000,
    "pdf_url": 4_000,
    "github_url": 4_000,
    "authors": 1_000,
    "categories": 200,
    "affiliations": 2_000,
}
MOST_ENTRIES = 10_000  # of a list; the largest collaborations list half as many authors
_TEXT_FIELDS = ("primary_category", "comment", "doi", "journal_ref", "pdf_url", "github_url")
_LIST_FIELDS = ("authors", "categories", "affiliations")
_INSTANT_FIELDS = ("published", "updated")
OTHER_NAMES = {"paper_id": "arxiv_id", "published": "published_date"}  # under which a record may have a field


def paper_from_mapping(record: object, *, position: int | None = None) -> Paper:
    """Read a paper given as JSON (G2): `paper_id, title, abstract, authors` required, the rest optional.

    `OTHER_NAMES` are accepted; keys that are not a paper's are ignored. `position` (from 0) helps to name a record
    without id. Sizes are not limited here: callers refuse (`oversized_fields`) or shorten (`cut_to_limits`) what is too
    large.
    Raises InvalidPaper with the record and the field.
    """
    if not isinstance(record, Mapping):
        raise InvalidPaper(f"{_named(None, position)} is {_kind(record)}, expected an object with paper_id, title, ...")
    for name, other in OTHER_NAMES.items():
        if other in record and record.get(name) is None:
            record = {**record, name: record[other]}
    paper_id = record.get("paper_id")
    if not isinstance(paper_id, str) or not paper_id.strip():
        raise InvalidPaper(f"{_named(None, position)}: paper_id must be a non-empty text, got {_kind(paper_id)}")
    paper_id = _cleaned(paper_id, "paper_id", _named(None, position))
    named = _named(paper_id, position)
    values: dict[str, Any] = {}
    for name in ("title", "abstract"):
        values[name] = record.get(name)
        if not isinstance(values[name], str):
            raise InvalidPaper(f"{named}: {name} must be a text, got {_kind(values[name])}")
        values[name] = _cleaned(values[name], name, named)
    if not values["title"].strip():
        raise InvalidPaper(f"{named}: title is empty")
    if "authors" not in record:
        raise InvalidPaper(f"{named}: authors must be a list of texts, got nothing")
    for name in _LIST_FIELDS:
        value = record.get(name)
        if value is None and name != "authors":
            value = []
        if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
            raise InvalidPaper(f"{named}: {name} must be a list of texts, got {_kind(value)}")
        values[name] = tuple(_cleaned(entry, name, named) for entry in value)
    for name in _TEXT_FIELDS:
        value = record.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidPaper(f"{named}: {name} must be a text, got {_kind(value)}")
        values[name] = _cleaned(value or "", name, named) or None
    for name in _INSTANT_FIELDS:
        values[name] = _instant_field(record.get(name), name, named)
    identifier, version = _split_id(paper_id)
    if record.get("version") is not None:
        version = record["version"]
    if isinstance(version, str) and re.fullmatch(r"v?\d{1,4}", version):
        version = int(version.removeprefix("v"))
    if not isinstance(version, int) or isinstance(version, bool) or not 1 <= version <= 9999:
        raise InvalidPaper(
            f"{named}: version must be a whole number from 1 to 9999, got {str(record.get('version'))[:40]!r}"
        )
    withdrawn = record.get("withdrawn", False)
    if not isinstance(withdrawn, bool):
        raise InvalidPaper(f"{named}: withdrawn must be true or false, got {_kind(withdrawn)}")
    return Paper(paper_id=identifier, version=version, withdrawn=withdrawn, **values)


def oversized_fields(paper: Paper) -> list[str]:
    """Describe each field beyond its limit, such as `title has 9,000 characters, at most 2,000`; empty if none is."""
    found = []
    for name, most in LONGEST_FIELDS.items():
        value = getattr(paper, name)
        if not value:
            continue
        if isinstance(value, str):
            if len(value) > most:
                found.append(f"{name} has {len(value):,} characters, at most {most:,}")
        elif len(value) > MOST_ENTRIES:
            found.append(f"{name} has {len(value):,} entries, at most {MOST_ENTRIES:,}")
        elif (longest := max(map(len, value))) > most:
            found.append(f"an entry of {name} has {longest:,} characters, at most {most:,}")
    return found


def cut_to_limits(paper: Paper) -> Paper:
    """Shorten every field beyond the limits and note it at the start of the comment; other papers stay unchanged.

    For papers from feeds, which the user cannot correct. Raises InvalidPaper for an id beyond the limit: a cut id would
    name another paper.
    """
    excess = oversized_fields(paper)
    if not excess:
        return paper
    if len(paper.paper_id) > LONGEST_FIELDS["paper_id"]:
        raise InvalidPaper(f"{_named(paper.paper_id, None)}: {excess[0]}")
    values: dict[str, Any] = {}
    for name, most in LONGEST_FIELDS.items():
        value = getattr(paper, name)
        if isinstance(value, tuple):
            values[name] = tuple(_cut(entry, most) for entry in value[:MOST_ENTRIES])
        elif value:
            values[name] = _cut(value, most)
    for name in ("pdf_url", "github_url", "doi"):  # a shortened URL would not work
        if values.get(name) != getattr(paper, name):
            values[name] = None
    note = f"[Cut at import: {'; '.join(excess)}]"
    values["comment"] = _cut(f"{note} {values.get('comment') or ''}".strip(), LONGEST_FIELDS["comment"])
    return replace(paper, **values)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def paper_to_mapping(paper: Paper) -> dict[str, Any]:
    """Return the paper as JSON-ready values, instants in ISO 8601; `paper_from_mapping` reads it back."""
    values = asdict(paper)
    for name in _INSTANT_FIELDS:
        values[name] = values[name].isoformat() if values[name] else None
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@cache
def paper_schema() -> pa.Schema:
    """Return the columns of a table of papers, in the order of the fields of `Paper`; pyarrow is imported on first
    use.
    """
    kinds: dict[str, pa.DataType] = {
        "version": pa.int32(),
        "withdrawn": pa.bool_(),
        **dict.fromkeys(_INSTANT_FIELDS, pa.timestamp("us", tz="UTC")),
        **dict.fromkeys(_LIST_FIELDS, pa.list_(pa.string())),
    }
    return pa.schema([(field.name, kinds.get(field.name, pa.string())) for field in fields(Paper)])


def papers_to_table(papers: Iterable[Paper]) -> pa.Table:
    """Return many papers as one Arrow table with `paper_schema()`."""
    rows = list(papers)
    names = [field.name for field in fields(Paper)]
    columns = [[getattr(paper, name) for paper in rows] for name in names]
    return pa.Table.from_arrays(
        [
            pa.array(column, type=kind)
            for column, kind in zip(columns, (field.type for field in paper_schema()), strict=True)
        ],
        schema=paper_schema(),
    )


def papers_from_table(table: pa.Table) -> list[Paper]:
    """Return the rows of an Arrow table with `paper_schema()` as papers."""
    names = [field.name for field in fields(Paper)]
    columns = [table.column(name).to_pylist() for name in names]
    papers = []
    for row in zip(*columns, strict=True):
        values = dict(zip(names, row, strict=True))
        for name in _LIST_FIELDS:
            values[name] = tuple(values[name] or ())
        for name in _INSTANT_FIELDS:
            values[name] = values[name].astimezone(UTC) if values[name] else None
        papers.append(Paper(**values))
    return papers


def _split_id(paper_id: str) -> tuple[str, Any]:
    """Return the stored form and the version that the text names, 1 if none; unknown forms of ids are kept."""
    try:
        identifier, version = split_paper_id(paper_id)
    except InvalidArxivId:
        return paper_id.strip(), 1
    return str(identifier), version or 1


def _instant_field(value: object, name: str, named: str) -> datetime | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise InvalidPaper(f"{named}: {name} must be a date as text, got {_kind(value)}")
    try:
        return parse_instant(value)
    except (ValueError, OverflowError):
        raise InvalidPaper(f"{named}: {name} must be a date like 2026-03-01, got {value[:40]!r}") from None


def _cleaned(text: str, name: str, named: str) -> str:
    """Return the text as `without_controls` leaves it (SPEC 8). Raises InvalidPaper for a NUL or a lone surrogate."""
    if "\0" in text:
        raise InvalidPaper(f"{named}: {name} contains a NUL character; remove it")
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InvalidPaper(
                f"{named}: {name} holds half a surrogate pair at character {error.start}; save the text as proper UTF-8"
            ) from None
    return without_controls(text)


def _named(paper_id: str | None, position: int | None) -> str:
    place = "" if position is None else f" {position + 1}"
    return f"paper{place}" if paper_id is None else f"paper{place} ({paper_id.strip()[:60]})"


def _kind(value: object) -> str:
    names = {type(None): "nothing", dict: "an object", list: "a list", str: "a text", bool: "true/false"}
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    return names.get(type(value), type(value).__name__)
