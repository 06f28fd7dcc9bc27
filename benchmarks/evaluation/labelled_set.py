"""Read a labelled set: documents, queries, and which documents are relevant to each query.

A folder contains `docs.jsonl`, `queries.jsonl` or `profiles.jsonl`, and `qrels.tsv`, each also as `.gz`. Published
sets use different names for files and keys; all usual names are accepted. Anything else is an error that names file and
line, because a set that is read wrongly would still give figures.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.paper import embedded_text, parse_instant
from paper_assets.profile import Interests
from paper_assets.ranking.relevance import interest_text
from paper_assets.settings import ScoringConfig
from paper_assets.small_files import is_folder, parse_json, read_small, unpacked

_MOST_BYTES = 500_000_000  # of a labelled set, unpacked; it is held in memory whole
_SUFFIXES = (".jsonl", ".json", ".tsv", ".txt", ".csv", ".trec")

# Usual column names of judgements.
_QUERY = frozenset(["query_id", "query-id", "query", "qid", "profile_id", "profile", "topic", "topic_id"])
_DOC = frozenset(["doc_id", "corpus-id", "corpus_id", "docid", "docno", "doc", "paper_id", "paper", "document_id"])
_GRADE = frozenset(["relevance", "score", "rel", "grade", "label", "judgement", "judgment"])
_INTEREST = frozenset(["interest", "lane", "aspect", "subtopic", "side"])


class Judgement(NamedTuple):
    """The grade that a document has for a query, or for one interest of it (None: for the query as a whole)."""

    query_id: str
    doc_id: str
    grade: float
    interest: str | None


def found_file(folder: Path, names: Sequence[str]) -> Path:
    """Return the first file of these names with a known suffix, or a folder of profiles of that name.

    Raises InvalidInput if there is none.
    """
    for name in names:
        for suffix in _SUFFIXES:
            for packed in ("", ".gz"):
                if (file := folder / f"{name}{suffix}{packed}").is_file():
                    return file
        if any((folder / name).glob("*/profile.json")):
            return folder / name
    raise InvalidInput(f"{folder}: found no {' or '.join(f'{name}.*' for name in names)}")


def read_records(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the objects of a .jsonl file, of a .json list or of a folder of profiles, each with its place for messages.

    Raises InvalidInput naming the place.
    """
    if file.is_dir():
        for inner in sorted(file.glob("*/profile.json")):
            yield str(inner), {**_object(parse_json(_text(inner), source=str(inner)), inner), "id": inner.parent.name}
    elif ".json" in file.suffixes:
        records = parse_json(_text(file), source=str(file))
        if not isinstance(records, list):
            raise InvalidInput(f"{file}: expected a list of objects")
        for position, record in enumerate(records, 1):
            place = f"{file}: entry {position}"
            yield place, _object(record, place)
    else:
        for number, line in enumerate(_text(file).split("\n"), 1):
            if line.strip():
                place = f"{file}:{number}"
                yield place, _object(parse_json(line, source=place), place)


def read_qrels(file: Path) -> Iterator[Judgement]:
    """Yield the judgements of a file whose columns are separated by tabs, commas or blanks.

    With a header the columns may have any order; without one they are `query doc [grade [interest]]`, or TREC's
    `query 0 doc grade`, which is recognized by its second column. A missing grade is 1; a grade below 0 is 0. Raises
    InvalidInput naming the line.
    """
    rows = [(f"{file}:{number}", line) for number, line in enumerate(_text(file).split("\n"), 1) if line.strip()]
    if not rows:
        raise InvalidInput(f"{file} is empty")
    separator = "\t" if "\t" in rows[0][1] else "," if file.suffixes[:1] == [".csv"] else None
    cells = [(place, [cell.strip() for cell in line.split(separator)]) for place, line in rows]
    header = [cell.lower() for cell in cells[0][1]]
    if header[0] in _QUERY | _DOC:
        columns = [_column(header, names) for names in (_QUERY, _DOC, _GRADE, _INTEREST)]
        if None in columns[:2]:
            raise InvalidInput(f"{cells[0][0]}: expected columns named like query_id and doc_id")
        cells = cells[1:]
    elif len(header) == 4 and {row[1].lower() for _, row in cells if len(row) > 1} <= {"0", "q0"}:
        columns = [0, 2, 3, None]
    else:
        columns = [0, 1, *(position if position < len(header) else None for position in (2, 3))]
    for place, row in cells:
        query_id, doc_id, grade, interest = (
            row[column] if column is not None and column < len(row) else None for column in columns
        )
        if not query_id or not doc_id:
            raise InvalidInput(f"{place}: expected a query, a document and a grade")
        try:
            value = float(grade or 1)
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            raise InvalidInput(f"{place}: the grade must be a number, got {grade!r}")
        yield Judgement(query_id, doc_id, max(value, 0.0), interest or None)


def _column(header: Sequence[str], names: frozenset[str]) -> int | None:
    return next((position for position, cell in enumerate(header) if cell in names), None)


def _text(file: Path) -> str:
    raw = read_small(file, most_bytes=_MOST_BYTES)
    try:
        raw = unpacked(raw, source=str(file), most_bytes=_MOST_BYTES) if file.suffix == ".gz" else raw
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not UTF-8 text; save it as UTF-8") from None


def _object(record: object, place: str | Path) -> Mapping[str, Any]:
    if not isinstance(record, Mapping):
        raise InvalidInput(f"{place}: expected an object")
    return record


_DOCS = ("docs", "documents", "papers", "corpus")
_ASKED = ("profiles", "queries", "topics")
_QRELS = ("qrels",)

_DOC_ID = ("id", "doc_id", "paper_id", "_id", "docid", "docno", "corpus_id")
_QUERY_ID = ("id", "query_id", "profile_id", "_id", "qid", "topic_id", "name")
_DOC_TEXT = ("abstract", "text", "contents", "content", "body")
_QUERY_TEXT = ("text", "query", "question", "claim", "description", "title")
_DATE = ("published", "date", "year", "updated")
_LIKED = ("papers", "liked", "liked_papers")
_LANES = ("primary", "secondary", "exploratory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A document of the set; `record` is the object in the file."""

    doc_id: str
    title: str
    abstract: str
    published: date | None
    record: Mapping[str, Any]  # as it is in the file

    @property
    def text(self) -> str:
        """Title and abstract in the form in which papers are embedded; only one of them if the other is missing."""
        return embedded_text(self.title, self.abstract) if self.title and self.abstract else self.title + self.abstract


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query: a question, or a profile with `interests`, whose `text` is all interests in one text (SPEC G4)."""

    query_id: str
    text: str
    interests: Interests | None
    liked: tuple[str, ...]  # documents that the profile likes: neither ranked nor counted
    liked_texts: tuple[
        tuple[str, str], ...
    ] = ()  # title and abstract of liked papers that are not documents of the set
    record: Mapping[str, Any]  # as it is in the file


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgements:
    """The n judged documents of one query, with grades from 0 and the labels of interests (None: no label)."""

    positions: NDArray[np.intp]  # (n,) into `documents`
    grades: NDArray[np.float64]  # (n,)
    interests: tuple[str | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledSet:
    """A labelled set. `judgements` has an entry for each query with a relevant document; others cannot be scored."""

    name: str
    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    judgements: Mapping[str, Judgements]
    unknown: int = 0  # number of judgements left out because their document or query is not in the set

    @property
    def judged_queries(self) -> tuple[Query, ...]:
        """Return the queries that have judgements, in the order of the file."""
        return tuple(query for query in self.queries if query.query_id in self.judgements)

    def tie_order(self) -> NDArray[np.uint32]:
        """Return (n,) a hash of each document's id, which orders documents with equal scores.

        A hash, because files and ids are often sorted by topic.
        """
        return np.array([crc32(document.doc_id.encode()) for document in self.documents], dtype=np.uint32)


def load_labelled_set(folder: Path) -> LabelledSet:
    """Read a set from a folder. Raises InvalidInput naming the file and the line or key.

    If a folder has both `profiles` (a file, or a folder of profiles) and `queries`, `profiles` are read.
    """
    if not is_folder(folder):
        raise InvalidInput(f"{folder} is not a folder with docs, queries or profiles, and qrels")
    docs_file, asked_file, qrels_file = (found_file(folder, names) for names in (_DOCS, _ASKED, _QRELS))
    documents = tuple(_document(record, place) for place, record in read_records(docs_file))
    queries = tuple(_query(record, place) for place, record in read_records(asked_file))
    positions = _positions((document.doc_id for document in documents), docs_file)
    if not any(document.text.strip() for document in documents):
        raise InvalidInput(f"{docs_file}: no document has a title or a text ({', '.join(_DOC_TEXT)})")
    asked = set(_positions((query.query_id for query in queries), asked_file))
    judged: dict[str, dict[tuple[int, str | None], float]] = {}
    unknown = 0
    for query_id, doc_id, grade, interest in read_qrels(qrels_file):
        if query_id not in asked or doc_id not in positions:
            unknown += 1
            continue
        grades = judged.setdefault(query_id, {})
        key = positions[doc_id], interest
        grades[key] = max(grade, grades.get(key, grade))
    judgements = {query_id: _judgements(grades) for query_id, grades in judged.items() if any(grades.values())}
    if not judgements:
        raise InvalidInput(f"{qrels_file}: no judgement names both a query of {asked_file.name} and a document")
    return LabelledSet(name=folder.name, documents=documents, queries=queries, judgements=judgements, unknown=unknown)


def _judgements(grades: Mapping[tuple[int, str | None], float]) -> Judgements:
    return Judgements(
        positions=np.array([position for position, _ in grades], dtype=np.intp),
        grades=np.array(list(grades.values()), dtype=np.float64),
        interests=tuple(interest for _, interest in grades),
    )


def _document(record: Mapping[str, Any], place: str) -> Document:
    return Document(
        doc_id=_identifier(record, _DOC_ID, place),
        title=str(record.get("title") or ""),
        abstract=_first_text(record, _DOC_TEXT),
        published=_day(next((record[key] for key in _DATE if record.get(key)), None)),
        record=record,
    )


def _query(record: Mapping[str, Any], place: str) -> Query:
    query_id = _identifier(record, _QUERY_ID, place)
    inner = record.get("profile")
    profile = inner if isinstance(inner, Mapping) else record
    given = profile.get("interests")
    interests = _interests(given, place) if given else None
    text = (
        interest_text(interests, repeats=ScoringConfig().interest_repeats)
        if interests
        else _first_text(record, _QUERY_TEXT)
    )
    if not text:
        raise InvalidInput(
            f"{place}: neither a text nor interests; expected one of {', '.join(_QUERY_TEXT)}, interests"
        )
    places = [given] if isinstance(given, Mapping) else []
    named: object = next((found for where in [*places, profile] for key in _LIKED if (found := where.get(key))), [])
    if not isinstance(named, list):
        raise InvalidInput(f"{place}: the liked papers must be a list of ids, or of objects with title and abstract")
    liked: list[str] = []
    liked_texts: list[tuple[str, str]] = []
    for entry in named:
        if isinstance(entry, Mapping) and not any(entry.get(key) for key in _DOC_ID):
            if not (title := _first_text(entry, ("title",))):
                raise InvalidInput(f"{place}: a liked paper has neither an id nor a title")
            liked_texts.append((title, _first_text(entry, _DOC_TEXT)))
        else:
            liked.append(_identifier(entry if isinstance(entry, Mapping) else {"id": entry}, _DOC_ID, place))
    return Query(
        query_id=query_id,
        text=text,
        interests=interests,
        liked=tuple(liked),
        liked_texts=tuple(liked_texts),
        record=record,
    )


def _interests(given: object, place: str) -> Interests:
    """Return the interests of a profile (G1); a plain list of texts means primary interests."""
    lanes = {lane: given.get(lane) or [] for lane in _LANES} if isinstance(given, Mapping) else {"primary": given}
    for lane, texts in lanes.items():
        if not isinstance(texts, list) or not all(isinstance(text, str) and text.strip() for text in texts):
            raise InvalidInput(f"{place}: interests.{lane} must be a list of texts")
    return Interests(**lanes)


def _identifier(record: Mapping[str, Any], keys: Sequence[str], place: str) -> str:
    for key in keys:
        if isinstance(value := record.get(key), str | int) and str(value).strip():
            return str(value).strip()
    raise InvalidInput(f"{place}: no id; expected one of {', '.join(keys)}")


def _first_text(record: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next((value for key in keys if isinstance(value := record.get(key), str) and value.strip()), "")


def _day(value: object) -> date | None:
    """Return the day of `2026-03-01T…`, or the first day of `1958-12` or `1958`; None for anything else."""
    text = str(value or "").strip()
    for missing in ("", "-01", "-01-01"):
        try:
            return parse_instant(text + missing).date()
        except ValueError:
            continue
    return None


def _positions(ids: Iterable[str], file: Path) -> dict[str, int]:
    positions: dict[str, int] = {}
    for position, identifier in enumerate(ids):
        if positions.setdefault(identifier, position) != position:
            raise InvalidInput(f"{file}: the id {identifier} is there twice")
    if not positions:
        raise InvalidInput(f"{file} is empty")
    return positions
