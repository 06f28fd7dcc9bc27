"""Rows of the warehouse, too many for memory, copied beside it and read from there batch by batch."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pyarrow as pa

from paper_assets.stores.scratch import scratch_file, scratch_refusals
from paper_assets.stores.warehouse import Warehouse

_BATCH = 10_000  # rows in memory at once; vectors of 384 dimensions are 15 MB


def copied_batches(warehouse: Warehouse, query: str, params: Mapping[str, object]) -> Iterator[pa.RecordBatch]:
    """What the query finds, without empty batches. Raises StoreBusy, StoreUnwritable.

    The warehouse is held only until the first batch: the rest waits in an unnamed file, however long the caller takes.
    """
    with ExitStack() as kept:
        with warehouse.reading() as connection:
            reader = connection.sql(query, params=params).to_arrow_reader(_BATCH)
            stream = kept.enter_context(scratch_file(warehouse.path.parent))
            with scratch_refusals(), pa.ipc.new_stream(stream, reader.schema) as writer:
                for batch in reader:
                    writer.write_batch(batch)
        stream.seek(0)
        for batch in pa.ipc.open_stream(stream):
            if len(batch):
                yield batch
