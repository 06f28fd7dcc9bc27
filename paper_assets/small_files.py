"""Read small files and JSON that come from users or other people, within limits, and explain invalid records.

A file must be a regular file of limited size, or it is refused before a byte is read: opening a pipe would wait
forever, and a device never ends. Numbers and nesting in JSON are limited, so that no other code meets a number of 5,000
digits or lists nested 1,000 deep. Files of any length (bulk files, PDFs) are read elsewhere.
"""

import errno
import json
import os
import stat
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from paper_assets.errors import InvalidInput

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


def first_fault(error: ValidationError) -> str:
    """Return what is wrong with a record, as `key: what`, of the first key that is wrong.

    A refused value is shown, but not the objects around a missing key: they may hold anything, a secret too.
    """
    fault = error.errors(include_url=False, include_input=True)[0]
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
