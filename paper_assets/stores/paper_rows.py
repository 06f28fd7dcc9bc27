"""Papers as rows of the table `papers`, written one after another to a stream that can be read more than once.

The stream is a scratch file when the papers are many, memory when they are few; Arrow record batches either way.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from functools import cache
from hashlib import sha256
from itertools import islice
from typing import IO

import numpy as np
import pyarrow as pa

from paper_assets.paper import Paper, embedded_text, paper_schema, papers_to_table, text_hash
from paper_assets.stores.scratch import scratch_refusals

_BATCH = 2_000  # papers in memory at once
_JUDGED = ("position", "paper_id", "version", "day", "content_hash")  # what decides which record stays


@cache
def row_schema() -> pa.Schema:
    """The columns of the table without `origin`, and `position`, the number of the record in its stream.

    The times are UTC already; without the mark DuckDB keeps them as they are, whatever zone the machine is in.
    """
    of_paper = [
        field.with_type(pa.timestamp("us")) if pa.types.is_timestamp(field.type) else field for field in paper_schema()
    ]
    added = [("day", pa.date32()), ("text_hash", pa.string()), ("content_hash", pa.string()), ("position", pa.int64())]
    return pa.schema([*of_paper, *(pa.field(name, kind) for name, kind in added)])


def write_rows(papers: Iterable[Paper], stream: IO[bytes], *, progress: Callable[[int], None] | None = None) -> None:
    """Write the papers as rows; `progress` gets how many so far.

    Raises StoreUnwritable if the disk refuses, and what `papers` raises.
    """
    source, read = iter(papers), 0
    writer = pa.ipc.new_stream(stream, row_schema(), options=pa.ipc.IpcWriteOptions(compression="zstd"))
    while batch := list(islice(source, _BATCH)):
        rows = _rows(batch, first_position=read)
        with scratch_refusals():
            writer.write_table(rows)
        read += len(batch)
        if progress is not None:
            progress(read)
    with scratch_refusals():
        writer.close()
        stream.flush()


def judged_rows(stream: IO[bytes]) -> pa.RecordBatchReader:
    """All rows, but only the columns that decide which record of a paper stays."""
    return _reader(stream, [row_schema().get_field_index(name) for name in _JUDGED])


def chosen_rows(stream: IO[bytes], keep: np.ndarray) -> pa.RecordBatchReader:
    """The rows whose position is true in `keep`, bool (number of rows,)."""
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
    for field, values in zip(list(row_schema())[-len(added) :], added, strict=True):
        table = table.append_column(field, pa.array(values, field.type))
    return table.cast(row_schema())


def content_hash(paper: Paper) -> str:
    """32 hex digits over every field of the paper."""
    values = [getattr(paper, field.name) for field in fields(Paper)]
    return sha256(json.dumps(values, default=datetime.isoformat).encode("ascii")).hexdigest()[:32]
