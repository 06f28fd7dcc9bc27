"""The files of a labelled set as records and judgements, whatever their usual variant: .jsonl, .json, .tsv, .gz."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from paper_assets.errors import InvalidInput
from paper_assets.small_files import parse_json, read_small, unpacked

_MOST_BYTES = 500_000_000  # of a labelled set, unpacked; it is held in memory whole
_SUFFIXES = (".jsonl", ".json", ".tsv", ".txt", ".csv", ".trec")

# Column names of judgements, as people write them.
_QUERY = frozenset(["query_id", "query-id", "query", "qid", "profile_id", "profile", "topic", "topic_id"])
_DOC = frozenset(["doc_id", "corpus-id", "corpus_id", "docid", "docno", "doc", "paper_id", "paper", "document_id"])
_GRADE = frozenset(["relevance", "score", "rel", "grade", "label", "judgement", "judgment"])
_INTEREST = frozenset(["interest", "lane", "aspect", "subtopic", "side"])


class Judgement(NamedTuple):
    query_id: str
    doc_id: str
    grade: float
    interest: str | None


def found_file(folder: Path, names: Sequence[str]) -> Path:
    """The first of `names` that lies in the folder under a known suffix, or as a folder of profiles."""
    for name in names:
        for suffix in _SUFFIXES:
            for packed in ("", ".gz"):
                if (file := folder / f"{name}{suffix}{packed}").is_file():
                    return file
        if any((folder / name).glob("*/profile.json")):
            return folder / name
    raise InvalidInput(f"{folder}: found no {' or '.join(f'{name}.*' for name in names)}")


def read_records(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The objects of a .jsonl, of a .json list, or of a folder of profiles, each with its place for messages."""
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
    """Judgements, tab, comma or blank separated: with a header in any order, else `query doc [grade [interest]]`.

    TREC's `query 0 doc grade` is known by its second column. No grade is 1; a grade below 0 counts as 0.
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
