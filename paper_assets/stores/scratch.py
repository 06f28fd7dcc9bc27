"""Temporary files beside the warehouse, for what does not fit into memory, and what the disk may answer."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from paper_assets.errors import StoreUnwritable


@contextmanager
def scratch_file(folder: Path) -> Iterator[IO[bytes]]:
    """A temporary file without a name: gone when closed, or the process killed. Raises StoreUnwritable."""
    stream = open_scratch(folder)
    try:
        yield stream
    finally:
        with suppress(OSError):  # closing tries once more to write what the disk has refused
            stream.close()


def open_scratch(folder: Path) -> IO[bytes]:
    """The same, for who closes it himself. Raises StoreUnwritable."""
    with scratch_refusals():
        return tempfile.TemporaryFile(dir=folder)


@contextmanager
def scratch_refusals() -> Iterator[None]:
    """Say in one line what the disk refused while a scratch file was written; raises StoreUnwritable."""
    try:
        yield
    except OSError as error:
        raise StoreUnwritable(
            f"no temporary copy beside the warehouse: {error.strerror}; free space on its disk"
        ) from None
