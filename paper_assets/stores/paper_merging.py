"""Merge records of papers, in a stream of any length, into the table of papers.

Of two records of one paper, this order decides which is kept: the higher version; at the same version, the API's record
over a file's; otherwise the later record. Within one stream the order of the lines does not matter.

A day of papers can also be replaced by what a source now lists for it: papers that are missing from the list are
removed if they may be.

Rows travel as a stream of Arrow record batches that can be read more than once: a scratch file when the papers are
many, memory when they are few.
"""

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, fields
from datetime import date, datetime
from functools import cache
from hashlib import sha256
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import IO, Literal

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import StoreUnwritable
from paper_assets.paper import Paper, embedded_text, paper_schema, papers_to_table, text_hash
from paper_assets.paper_id import ARXIV
from paper_assets.stores.warehouse import Warehouse, value_of
from paper_assets.stores.word_index import count_words

_BATCH = 2_000  # papers in memory at once
_JUDGED = ("position", "paper_id", "version", "day", "content_hash")  # the columns that decide which record is kept


@cache
def row_schema() -> pa.Schema:
    """Return the columns of the table without `origin`, and `position`, the number of the record in its stream.

    Times are in UTC and stored without a zone, which DuckDB leaves unchanged in every time zone of the machine.
    """
    of_paper = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field for field in paper_schema()
    ]
    added = [("day", pa.date32()), ("text_hash", pa.string()), ("content_hash", pa.string()), ("position", pa.int64())]
    return pa.schema([*of_paper, *(pa.field(name, kind) for name, kind in added)])


def write_rows(papers: Iterable[Paper], stream: IO[bytes], *, progress: Callable[[int], None] | None = None) -> None:
    """Write the papers as rows; `progress` receives the number so far.

    Raises StoreUnwritable if the disk refuses, and what `papers` raises.
    """
    source, read = iter(papers), 0
    writer = pa.ipc.new_stream(stream, row_schema(), options=pa.ipc.IpcWriteOptions(compression="zstd"))
    while batch := list(islice(source, _BATCH)):
        rows = _rows(batch, first_position=read)
        with _refusals():
            writer.write_table(rows)
        read += len(batch)
        if progress is not None:
            progress(read)
    with _refusals():
        writer.close()
        stream.flush()


@contextmanager
def _scratch_file(folder: Path) -> Iterator[IO[bytes]]:
    """Open a file without a name: it disappears when closed or when the process is killed."""
    with _refusals():
        stream = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    try:
        yield stream
    finally:
        with suppress(OSError):  # closing retries the write that the disk refused
            stream.close()


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreUnwritable(
            f"no temporary copy beside the warehouse: {error.strerror}; free space on its disk"
        ) from None


def judged_rows(stream: IO[bytes]) -> pa.RecordBatchReader:
    """Read all rows, but only the columns that decide which record of a paper is kept."""
    return _reader(stream, [row_schema().get_field_index(name) for name in _JUDGED])


def chosen_rows(stream: IO[bytes], keep: np.ndarray) -> pa.RecordBatchReader:
    """Read the rows whose position is true in `keep`, bool (number of rows,)."""
    batches = (batch.filter(pa.array(keep[batch["position"].to_numpy()])) for batch in _reader(stream, None))
    return pa.RecordBatchReader.from_batches(row_schema(), batches)


def _reader(stream: IO[bytes], columns: list[int] | None) -> pa.RecordBatchReader:
    stream.seek(0)
    return pa.ipc.open_stream(stream, options=pa.ipc.IpcReadOptions(included_fields=columns))


def _rows(papers: Sequence[Paper], *, first_position: int) -> pa.Table:
    table = papers_to_table(papers)
    added = (
        [paper.day for paper in papers],
        [text_hash(embedded_text(paper.title, paper.abstract)) for paper in papers],
        [content_hash(paper) for paper in papers],
        np.arange(first_position, first_position + len(papers)),
    )
    for column, values in zip(list(row_schema())[-len(added) :], added, strict=True):
        table = table.append_column(column, pa.array(values, column.type))
    return table.cast(row_schema())


def content_hash(paper: Paper) -> str:
    """Return 32 hex digits over every field of the paper."""
    values = [getattr(paper, field.name) for field in fields(Paper)]
    return sha256(json.dumps(values, default=datetime.isoformat).encode("ascii")).hexdigest()[:32]


Origin = Literal["arxiv", "file"]  # from a source's list of a day, from a file
# Bytes DuckDB may use for a merge; without a limit it takes most of the machine's. The index of ids has to fit:
# 2.7 million short rows fail under 192 MB and pass under 256 MB, 200,000 whole papers pass under 128 MB.
_MEMORY, _MEMORY_PER_ROW = 192_000_000, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeReport:
    """Report what an import did. read = repeated + added + updated + unchanged; `days` counts changed papers by day."""

    read: int
    repeated: int
    added: int
    updated: int
    unchanged: int
    undated: int  # papers read whose date is unknown: stored, but in no partition
    days: dict[date, int]


def merge_papers(
    warehouse: Warehouse, papers: Iterable[Paper], *, progress: Callable[[int], None] | None = None
) -> MergeReport:
    """Add a stream of papers of any length in one transaction with constant memory.

    The stream is first copied beside the warehouse: the warehouse is not held while it is read, and nothing remains if
    it raises or the process is killed. `progress` receives the number of papers read so far.
    """
    with warehouse.reading():
        pass  # fail before an hour of reading if the warehouse cannot be used
    with _scratch_file(warehouse.path.parent) as stream:
        write_rows(papers, stream, progress=progress)
        with warehouse.writing(own_settings=True) as connection:
            return merge_rows(connection, stream, origin="file")


def merge_rows(connection: DuckDBPyConnection, stream: IO[bytes], *, origin: Origin) -> MergeReport:
    """Compare the incoming rows by their narrow columns, then write only the chosen ones. Leaves `verdicts`.

    The connection needs its own settings (`Warehouse.writing`).
    """
    read = _judge(connection, stream, origin=origin)
    undated = value_of(connection, "select count(*) from verdicts where day is null")
    counts = dict(connection.execute("select verdict, count(*) from verdicts group by verdict").fetchall())
    days = _changed_by_day(connection)
    _write_chosen(connection, stream, read, origin=origin)
    return MergeReport(
        read=read,
        repeated=read - sum(counts.values()),
        added=counts.get("added", 0),
        updated=counts.get("updated", 0),
        unchanged=counts.get("unchanged", 0),
        undated=undated,
        days=days,
    )


def _judge(connection: DuckDBPyConnection, stream: IO[bytes], *, origin: Origin) -> int:
    """Create the table `verdicts`: one incoming row for each paper, and whether it is to be written.

    Returns the number of incoming rows.
    """
    connection.register("incoming", judged_rows(stream))
    connection.execute("create temp table seen as select * from incoming")
    read = value_of(connection, "select count(*) from seen")
    rows = read + value_of(connection, "select count(*) from papers")
    connection.execute(f"set memory_limit = '{_MEMORY + _MEMORY_PER_ROW * rows} B'")
    connection.execute(
        """
        create temp table verdicts as
        with newest as (
            from seen
            qualify row_number() over (partition by paper_id order by version desc, content_hash desc, position) = 1
        )
        select
            newest.position,
            newest.paper_id,
            newest.day,
            papers.day as day_before,
            case
                when papers.paper_id is null then 'added'
                when newest.version < papers.version then 'unchanged'
                when newest.content_hash = papers.content_hash then 'unchanged'
                when newest.version = papers.version and papers.origin = 'arxiv' and $origin = 'file' then 'unchanged'
                else 'updated'
            end as verdict
        from newest
        left join papers using (paper_id)
        """,
        {"origin": origin},
    )
    return int(read)


def _changed_by_day(connection: DuckDBPyConnection) -> dict[date, int]:
    """Count the added and updated papers by day; one that moves to another day counts in both."""
    rows = connection.execute(
        """
        select day, count(distinct paper_id)
        from (
            select day, paper_id from verdicts where verdict != 'unchanged'
            union all
            select day_before, paper_id from verdicts where verdict = 'updated'
        )
        where day is not null
        group by day
        order by day
        """
    ).fetchall()
    return dict(rows)


def _write_chosen(connection: DuckDBPyConnection, stream: IO[bytes], read: int, *, origin: Origin) -> None:
    """Write the added and updated rows; what a source lists is its own from then on, even if a file had it first."""
    positions = connection.execute("select position from verdicts where verdict != 'unchanged'").fetchnumpy()
    chosen = np.zeros(read, dtype=bool)
    chosen[positions["position"]] = True
    if chosen.any():
        connection.execute(
            "delete from papers where paper_id in (select paper_id from verdicts where verdict = 'updated')"
        )
        connection.register("chosen", chosen_rows(stream, chosen))
        connection.execute(
            "insert into papers by name select * exclude (position), $origin as origin from chosen", {"origin": origin}
        )
        for batch in chosen_rows(stream, chosen):
            titles, abstracts = batch["title"].to_pylist(), batch["abstract"].to_pylist()
            texts = [embedded_text(*each) for each in zip(titles, abstracts, strict=True)]
            count_words(connection, pa.table({"text_hash": batch["text_hash"], "text": pa.array(texts, pa.string())}))
    if origin == "arxiv":
        connection.execute(
            "update papers set origin = 'arxiv' where origin = 'file' and paper_id in (select paper_id from verdicts)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DayChange:
    """Report what writing a day did; `unchanged` counts records that were known in the same or a newer version.

    `other_days` counts the added or updated papers that belong to other days.
    """

    added: int
    updated: int
    removed: int
    unchanged: int
    other_days: Mapping[date, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """Describe what an answer would remove: papers, of those that the source listed for the day or in it."""

    stored: int
    removed: int


def replace_day(
    warehouse: Warehouse,
    day: date,
    papers: Iterable[Paper],
    *,
    source: str = ARXIV,
    may_remove: Callable[[DuckDBPyConnection, Removal], bool] = lambda connection, removal: True,
) -> DayChange:
    """Replace the papers that a source gave for `day`: those that it gave before and that are missing now are removed.

    `source` is that of its ids (`PaperId.source`). Rows from files or other sources are kept. Every paper is stored
    under its day of submission, even if the source lists it for another day: its list may then lack it.
    `may_remove` decides, inside the transaction.
    """
    stream = BytesIO()
    write_rows(papers, stream)
    about = {"day": day, "prefix": "" if source == ARXIV else source}
    with warehouse.writing(own_settings=True) as connection:
        report = merge_rows(connection, stream, origin="arxiv")
        _remember_lists(connection, about)
        missing, unlisted = _find_missing(connection, about), _find_unlisted(connection, about)
        stored = missing + unlisted + value_of(connection, "select count(*) from verdicts where verdict != 'added'")
        removed = 0
        if may_remove(connection, Removal(stored=stored, removed=missing + unlisted)):
            connection.execute("delete from listed_elsewhere where paper_id in (select paper_id from unlisted)")
            if missing:
                removed = value_of(connection, "delete from papers where paper_id in (select paper_id from missing)")
    return DayChange(
        added=report.added,
        updated=report.updated,
        unchanged=report.unchanged,
        removed=removed,
        other_days={other: count for other, count in report.days.items() if other != day},
    )


def _find_missing(connection: DuckDBPyConnection, about: Mapping[str, object]) -> int:
    """Collect in `missing` the stored papers of the day that the source no longer lists; return how many."""
    connection.execute(
        """
        create temp table missing as
        select paper_id
        from papers
        where
            day = $day
            and origin = 'arxiv'
            and regexp_extract(paper_id, '^([A-Za-z][A-Za-z0-9_-]*):', 1) = $prefix
            and paper_id not in (select paper_id from verdicts)
            and paper_id not in (select paper_id from listed_elsewhere)
        """,
        about,
    )
    return value_of(connection, "select count(*) from missing")


def _find_unlisted(connection: DuckDBPyConnection, about: Mapping[str, object]) -> int:
    """Collect in `unlisted` the papers of other days that the source listed for the day until now; return how many.

    They count as removed, because the next answer for their own day may remove them once no list protects them.
    """
    connection.execute(
        """
        create temp table unlisted as
        select paper_id
        from listed_elsewhere
        where
            listed_on = $day
            and regexp_extract(paper_id, '^([A-Za-z][A-Za-z0-9_-]*):', 1) = $prefix
            and paper_id not in (select paper_id from verdicts)
        """,
        about,
    )
    return value_of(connection, "select count(*) from unlisted")


def _remember_lists(connection: DuckDBPyConnection, about: Mapping[str, object]) -> None:
    """Record which papers the source lists for another day than theirs; their own day decides about the others."""
    connection.execute(
        """
        delete from listed_elsewhere
        where paper_id in (select paper_id from verdicts join papers using (paper_id) where papers.day = $day)
        """,
        {"day": about["day"]},
    )
    connection.execute(
        """
        insert or replace into listed_elsewhere
        select paper_id, $day
        from verdicts
        join papers using (paper_id)
        left join listed_elsewhere using (paper_id)
        where papers.day is distinct from $day and listed_on is distinct from $day
        """,
        {"day": about["day"]},
    )
