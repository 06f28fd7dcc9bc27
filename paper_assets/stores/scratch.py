"""Create temporary files beside the warehouse for data larger than memory, and report what the disk refuses."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from paper_assets.errors import StoreUnwritable


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
