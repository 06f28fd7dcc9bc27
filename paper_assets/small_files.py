"""Small files that a person has written or been given, and JSON of strangers: one way to read them (SPEC 8).

A file is a regular one of bounded size, or it is refused before a byte of it is read: opening a pipe would wait for
ever, a device never ends. JSON has bounded numbers and bounded nesting, so that nothing behind it meets a number of
5,000 digits or a list in a list in a list. Files of any length (bulk files, PDFs) have readers of their own.
"""

import errno
import json
import os
import stat
import sys
import zlib
from pathlib import Path

from paper_assets.errors import InvalidInput

MOST_BYTES = 5_000_000  # the largest profile, history or plan that anybody would write has a hundredth
_MOST_DIGITS = 100  # of a number; a float has 17 that mean anything
_MOST_NESTING = 64  # lists and objects within each other; what we read has 6
_KINDS = (
    (stat.S_ISDIR, "a folder; name a file in it"),
    (stat.S_ISFIFO, "a pipe, not a file; save what it gives to a file first"),
    (stat.S_ISSOCK, "a socket, not a file"),
    (stat.S_ISCHR, "a device, not a file"),
    (stat.S_ISBLK, "a device, not a file"),
)


def lies_there(path: Path) -> bool:
    """Whether anything of this name lies there, be it a link to nothing; True where that cannot be found out.

    "Cannot be read" is not "not there": whoever reads it then says what is wrong.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def is_folder(path: Path) -> bool:
    """Whether a folder lies there; False, not an error, for a name that none can have or a place nobody may look at."""
    try:
        return path.is_dir()
    except OSError:
        return False


def leads_nowhere(path: Path) -> bool:
    """Whether it is a link to what is not there, or not there today."""
    try:
        return path.is_symlink() and not path.exists()
    except OSError:
        return True


def read_small(file: Path, *, most_bytes: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file. Raises InvalidInput naming the file and what is wrong with it."""
    try:
        handle = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        gone = "is a link to nothing; mend or remove it" if lies_there(file) else "does not exist"
        raise InvalidInput(f"{_named(file)} {gone}") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise InvalidInput(f"{_named(file)} is a socket, not a file") from None
        raise InvalidInput(f"{_named(file)} cannot be read: {_reason(error)}") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            kind = next((words for is_one, words in _KINDS if is_one(found.st_mode)), "no file")
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
    """The text of a small file. Raises InvalidInput."""
    return _text(read_small(file, most_bytes=most_bytes), file)


def read_json(file: Path, *, most_bytes: int = MOST_BYTES) -> object:
    """What a JSON file holds; `-` is standard input. Raises InvalidInput naming the file and the line that is wrong."""
    if str(file) == "-":
        content = sys.stdin.buffer.read(most_bytes + 1)
        if len(content) > most_bytes:
            raise InvalidInput(
                f"standard input is larger than {most_bytes / 1e6:g} MB, too large for what it should hold"
            )
        return parse_json(_text(content, Path("standard input")), source="standard input")
    return parse_json(read_text(file, most_bytes=most_bytes), source=_named(file))


def parse_json(text: str | bytes, *, source: str) -> object:
    """A JSON text of bounded numbers and nesting as values. Raises InvalidInput with `source` and what is wrong."""
    try:
        value: object = json.loads(text, parse_int=_whole_number, parse_float=_number)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidInput(f"{source}: not valid JSON at {where}: {error.msg}") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{source}: not valid JSON: no UTF-8 text") from None
    except ValueError as error:
        raise InvalidInput(f"{source}: {error}") from None
    except RecursionError:
        raise _nested(source) from None
    if _too_deep(value):
        raise _nested(source)
    return value


def unpacked(content: bytes, *, source: str, most_bytes: int) -> bytes:
    """The content of gzip data, no more than so much of it. Raises InvalidInput: damaged, cut off, or a bomb."""
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


def _whole_number(digits: str) -> int:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits stands in it; no value that is asked for has so many")
    return int(digits)


def _number(digits: str) -> float:
    if len(digits) > _MOST_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits stands in it; no value that is asked for has so many")
    return float(digits)


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
    """The file's name as it is, shortened in the middle where it is longer than a line should be."""
    name = str(file)
    name = name if name.isprintable() else repr(name)[1:-1]
    return name if len(name) <= 300 else f"{name[:140]}…{name[-140:]}"


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "no file can have this name"
