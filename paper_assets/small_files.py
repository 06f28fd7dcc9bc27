"""Read small files within limits, write a file in one step, and detect changed files.

Reading: files and JSON come from users or other people. A file must be a regular file of limited size, or it is refused
before a byte is read: opening a pipe would wait forever, and a device never ends. Numbers and nesting in JSON are
limited, so that no other code meets a number of 5,000 digits or lists nested 1,000 deep. Files of any length (bulk
files, PDFs) are read elsewhere.

Writing: `write_file` writes beside the file and then replaces it, so that a reader or a killed process never leaves
half a file. What we write is private to its user (SPEC 8).

Changes: `file_state` is the one answer to "has this changed since?", and `StateCache` keeps a value until its state
changes.
"""

import errno
import json
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import uuid4

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from paper_assets.errors import InvalidInput

T = TypeVar("T")
MOST_BYTES = 5_000_000  # a hundred times the largest profile, history or plan that is plausible
_MOST_DIGITS = 100  # of a number; 17 are significant in a float
_MOST_NESTING = 64  # lists and objects within each other; our own files have 6
_KINDS = (
    (stat.S_ISDIR, "a folder; name a file in it"),
    (stat.S_ISFIFO, "a pipe, not a file; save what it gives to a file first"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISCHR, "a device, not a file"),
    (stat.S_ISBLK, "a device, not a file"),
)


def is_present(path: Path) -> bool:
    """Return whether anything has this name, also a broken link; True where that cannot be determined.

    "Cannot be read" does not mean "missing": reading the file then gives the reason.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def is_folder(path: Path) -> bool:
    """Return whether this is a folder; False, not an error, for an impossible name or a place without access."""
    try:
        return path.is_dir()
    except OSError:
        return False


def is_broken_link(path: Path) -> bool:
    """Return whether this is a link to a missing file, or one that cannot be followed."""
    try:
        return path.is_symlink() and not path.exists()
    except OSError:
        return True


def read_small(file: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the bytes of a regular file. Raises InvalidInput with the file and what is wrong with it."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        missing = "is a broken link; repair or remove it" if is_present(file) else "does not exist"
        raise InvalidInput(f"{_named(file)} {missing}") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise InvalidInput(f"{_named(file)} is a socket, not a file") from None
        raise InvalidInput(f"{_named(file)} cannot be read: {_reason(error)}") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            kind = next((words for is_one, words in _KINDS if is_one(found.st_mode)), "not a regular file")
            raise InvalidInput(f"{_named(file)} is {kind}")
        with os.fdopen(handle, "rb", closefd=False) as stream:
            content = b"" if found.st_size > most_bytes else stream.read(most_bytes + 1)
    except OSError as error:
        raise InvalidInput(f"{_named(file)} cannot be read: {_reason(error)}") from None
    finally:
        os.close(handle)
    if max(len(content), found.st_size) > most_bytes:
        raise InvalidInput(f"{_named(file)} is larger than {most_bytes / 1e6:g} MB, too large for what it should hold")
    return content


def read_text(file: Path, *, most_bytes: int = MOST_BYTES) -> str:
    """Return the text of a small file. Raises InvalidInput."""
    return _text(read_small(file, most_bytes=most_bytes), file)


def read_json(file: Path, *, most_bytes: int = MOST_BYTES, unique_keys: bool = False) -> object:
    """Return the value in a JSON file; `-` is standard input. Raises InvalidInput with the file and the wrong line."""
    if str(file) == "-":
        content = sys.stdin.buffer.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise InvalidInput(
                f"standard input is larger than {most_bytes / 1e6:g} MB, too large for what it should hold"
            )
        return parse_json(_text(content, Path("standard input")), source="standard input", unique_keys=unique_keys)
    return parse_json(read_text(file, most_bytes=most_bytes), source=_named(file), unique_keys=unique_keys)


def parse_json(text: str | bytes, *, source: str, unique_keys: bool = False) -> object:
    """Parse JSON with limited numbers and nesting. Raises InvalidInput with `source` and what is wrong.

    With `unique_keys` an object that has a key twice is refused; without it the last value counts.
    """
    try:
        value: object = json.loads(
            text,
            parse_int=partial(_number, kind=int),
            parse_float=partial(_number, kind=float),
            object_pairs_hook=_unique if unique_keys else None,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"{source}: not valid JSON at {where}: {error.msg}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{source}: not valid JSON: not UTF-8 text") from None
    except ValueError as error:
        raise InvalidInput(f"{source}: {error}") from None
    except RecursionError:
        raise _nested(source) from None
    if _too_deep(value):
        raise _nested(source)
    return value


def unpacked(content: bytes, *, source: str, most_bytes: int) -> bytes:
    """Decompress gzip data up to `most_bytes`. Raises InvalidInput: damaged, cut off, or too large."""
    unpacking, whole = zlib.decompressobj(wbits=31), b""
    try:
        while content and len(whole) <= most_bytes:
            whole += unpacking.decompress(content, most_bytes + 1 - len(whole))
            content = unpacking.unconsumed_tail or unpacking.unused_data.lstrip(b"\0")
            if unpacking.eof and content:
                unpacking = zlib.decompressobj(wbits=31)
    except zlib.error:
        raise InvalidInput(f"{source}: the gzip data is damaged; fetch the file again") from None
    if len(whole) > most_bytes:
        raise InvalidInput(f"{source} holds more than {most_bytes / 1e6:g} MB, too large for what it should hold")
    if not unpacking.eof:
        raise InvalidInput(f"{source}: the gzip data is cut off; fetch the file again")
    return whole


def _nested(source: str) -> InvalidInput:
    return InvalidInput(f"{source}: nested too deeply; at most {_MOST_NESTING} lists and objects within each other")


def _number(digits: str, kind: Callable[[str], float]) -> float:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"it has a number of {len(digits)} digits; at most {_MOST_DIGITS} are accepted")
    return kind(digits)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    record: dict[str, object] = {}
    for key, value in pairs:
        if key in record:
            raise ValueError(f"the key {key[:60]!r} appears twice in one object; merge the two values or remove one")
        record[key] = value
    return record


def _too_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MOST_NESTING):
        inner = (node.values() if isinstance(node, dict) else node for node in level if isinstance(node, dict | list))
        level = [child for children in inner for child in children if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _text(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{_named(file)} is not UTF-8 text; save it as UTF-8") from None


def _named(file: Path) -> str:
    """Return the file's name, shortened in the middle if it is too long for a line."""
    name = str(file)
    name = name if name.isprintable() else repr(name)[1:-1]
    return name if len(name) <= 300 else f"{name[:140]}…{name[-140:]}"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "no file can have this name"


def first_fault(error: ValidationError, *, most: int = 1) -> str:
    """Return what is wrong with a record, as `key: what`, of the first keys that are wrong.

    A refused value is shown, but not that of an unknown key, nor the objects around a missing key: they may hold
    anything, a secret too.
    """
    return "; ".join(map(_fault_in_words, error.errors(include_url=False)[:most]))


def _fault_in_words(fault: ErrorDetails) -> str:
    key = ".".join(str(part) for part in fault["loc"])
    if fault["type"] == "extra_forbidden":
        return f"{key}: unknown key; remove it or correct its spelling"
    message = fault["msg"].removeprefix("Value error, ")
    message = message[0].lower() + message[1:]
    if not key:
        return message
    if fault["type"] == "missing":
        return f"{key}: {message}"
    shown = repr(fault["input"])
    return f"{key}: {message}, got {shown if len(shown) <= 60 else shown[:57] + '...'}"


UNFINISHED = ".unfinished-"  # prefix of a file being written; a killed writer leaves it behind
_OTHERS = 0o077


def write_file(file: Path, content: str | bytes | Iterable[bytes]) -> None:
    """Write the whole file in one step and flush it to disk; its folder must exist. Raises OSError.

    An existing file keeps its permissions, a new one is readable by its user only.
    """
    unfinished = file.with_name(f"{UNFINISHED}{file.name[:100]}-{uuid4().hex}")
    mode = 0o600
    with suppress(FileNotFoundError):
        mode = file.stat().st_mode & 0o777
    content = content.encode() if isinstance(content, str) else content
    try:
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.writelines([content] if isinstance(content, bytes) else content)
            os.fchmod(stream.fileno(), mode)
            stream.flush()
            os.fsync(stream.fileno())
        unfinished.replace(file)
    finally:
        unfinished.unlink(missing_ok=True)


def remove_unfinished(folder: Path, name: str = "*", *, before: datetime | None = None) -> None:
    """Remove what killed writers left of the files with this name (a pattern), or only what is older than `before`.

    The caller holds the lock of these files, or names a moment whose writers have ended.
    """
    for left in folder.glob(f"{UNFINISHED}{name}-*"):
        with suppress(OSError):
            if before is None or left.stat().st_mtime < before.timestamp():
                left.unlink()


def make_files_private() -> None:
    """Make all files that this process and its children create from now on readable by its user only."""
    os.umask(_OTHERS)


def make_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents, each readable by its user only. Raises OSError."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        make_private_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)


_NOT_COUNTED = (".lock", "__pycache__")  # endings of names
_MOST_FILES = 200_000  # files whose state is compared; more takes longer than it saves


def file_state(paths: Iterable[Path], *, below: bool = True) -> str | None:
    """Return 32 hex digits that change with any of these files or folders; None where this cannot be determined.

    A folder counts with everything below it except locks, or without `below` only with the names of its entries. A
    missing or empty file counts as absent: a database's log appears and disappears. No file is opened.
    """
    digest = sha256()
    try:
        for number, (name, state) in enumerate(entry for path in paths for entry in _states(path, below=below)):
            if number > _MOST_FILES:
                return None
            digest.update(f"{name}\0{state}\0".encode("utf-8", "surrogateescape"))
    except (OSError, RecursionError):
        return None
    return digest.hexdigest()[:32]


def _states(path: Path, *, below: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield name and state of a file, or of a folder and what is below it, in a fixed order. Raises OSError.

    The inode and the time of its last change distinguish a file from one that replaced it with the old date.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    if not stat.S_ISDIR(status.st_mode):
        if status.st_size:
            yield f"{path}", _state(status)
    elif below:
        yield from _states_below(f"{path}")
    else:
        yield f"{path}", (status.st_dev, status.st_ino, status.st_mtime_ns)


def _states_below(folder: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a folder and everything below it, without a Path for each of ten thousand files. Raises OSError."""
    yield folder, ()
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        if entry.name.endswith(_NOT_COUNTED):
            continue
        if entry.is_dir():
            yield from _states_below(entry.path)
        else:
            with suppress(FileNotFoundError):  # a broken link, or removed since
                yield entry.path, _state(entry.stat())


def _state(status: os.stat_result) -> tuple[int, ...]:
    return status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


class StateCache:
    """The cache of a process: values by name, each valid while the states that it was made from are the same."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[tuple[object, ...], Any]] = {}

    def get(self, name: str, make: Callable[[], T], *states: object) -> T:
        """Return the last value of this name if its states are the same and none is None (unknown); else make it."""
        cached = self._values.get(name)
        if cached is None or cached[0] != states or None in states:
            cached = self._values[name] = (states, make())
        return cast("T", cached[1])
