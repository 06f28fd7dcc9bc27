"""Create temporary files beside the warehouse for data larger than memory, and report what the disk refuses."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

import pyarrow as pa

from paper_assets.errors import StoreUnwritable
from paper_assets.stores.warehouse import Warehouse


@contextmanager
def scratch_file(folder: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file without a name: it disappears when closed or when the process is killed. Raises
    StoreUnwritable.
    """
    stream = open_scratch(folder)
    try:
        yield stream
    finally:
        with suppress(OSError):  # closing retries the write that the disk refused
            stream.close()


def open_scratch(folder: Path) -> IO[bytes]:
    """Open a scratch file that the caller closes. Raises StoreUnwritable."""
    with scratch_refusals():
        return tempfile.TemporaryFile(dir=folder)


@contextmanager
def scratch_refusals() -> Iterator[None]:
    """Report in one line what the disk refused while a scratch file was written; raises StoreUnwritable."""
    try:
        yield
    except OSError as error:
        raise StoreUnwritable(
            f"no temporary copy beside the warehouse: {error.strerror}; free space on its disk"
        ) from None


_BATCH = 10_000  # rows in memory at once; vectors of 384 dimensions are 15 MB


def copied_batches(warehouse: Warehouse, query: str, params: Mapping[str, object]) -> Iterator[pa.RecordBatch]:
    """Yield the results of the query, without empty batches. Raises StoreBusy, StoreUnwritable.

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
