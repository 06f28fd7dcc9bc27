"""Make invalid values, bytes and files from a given random generator.

Adding one: a line in `VALUES`, `DAMAGES` or `FILES`.
"""

import gzip
import json
import os
import random
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

Dice = random.Random

HUGE_NUMBER = json.dumps("7" * 5_000).strip('"')  # goes into JSON by name: Python itself refuses to write it
_NUMBER_MARK, _DEEP_MARK = "\x02number\x02", "\x02deep\x02"

# Replacements for any value of a JSON document.
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    10**40,
    -(2**63) - 1,
    1e308,
    float("nan"),
    float("-inf"),
    "",
    " ",
    "\x00",
    "\ud800",
    "\u202ereversed\u202c",
    "\x1b[31mred\x07",
    "line\nbreak\rand\u2028more",
    "2026-02-30",
    "9999-12-31T23:59:59.999999+14:00",
    "0001-01-01T00:00:00-14:00",
    "../../etc/passwd",
    "~nobody-of-this-name/x",
    "${HOME} $(id) `id` '; drop table papers; --",
    "<script>alert(1)</script>&amp;&#0;",
    "arXiv:2501.12345v99999",
    "한국어 עברית ﷽ 🏳️‍🌈",
    "n" * 300,
    "a" * 70_000,
    "e\u0301" * 5_000,
    [],
    {},
    [[]],
    [None],
    {"": ""},
    {"$where": "1"},
    ["same", "same"],
    [{"paper_id": "2501.12345"}] * 3,
    list(range(2_000)),
    _NUMBER_MARK,
    _DEEP_MARK,
)


def odd_json(value: Any, dice: Dice) -> bytes:
    """A JSON document like `value`, with one to three places that are odd, as bytes that may be damaged too."""
    for _ in range(dice.choice((1, 1, 1, 2, 3))):
        value = _with_an_odd_place(value, dice)
    text = json.dumps(value, ensure_ascii=dice.random() < 0.5)
    text = text.replace(
        json.dumps(_NUMBER_MARK), dice.choice((HUGE_NUMBER, f"-{HUGE_NUMBER}", f"1.{HUGE_NUMBER}", "1e9999"))
    )
    depth = dice.choice((100, 990, 100_000))
    text = text.replace(
        json.dumps(_DEEP_MARK), dice.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))
    )
    content = text.encode("utf-8", "surrogatepass")
    return odd_bytes(content, dice) if dice.random() < 0.2 else content


def _with_an_odd_place(value: Any, dice: Dice) -> Any:
    if not isinstance(value, dict | list) or not value or dice.random() < 0.15:
        return dice.choice(VALUES)
    if isinstance(value, list):
        copy, at = list(value), dice.randrange(len(value))
        match dice.random():
            case chance if chance < 0.1:
                copy.pop(at)
            case chance if chance < 0.2:
                copy.insert(at, copy[at])
            case _:
                copy[at] = _with_an_odd_place(copy[at], dice)
        return copy
    copied, key = dict(value), dice.choice(sorted(value))
    match dice.random():
        case chance if chance < 0.1:
            del copied[key]
        case chance if chance < 0.2:
            copied[dice.choice(("unknown", key.upper(), f"{key} ", "__class__", ""))] = copied[key]
        case _:
            copied[key] = _with_an_odd_place(copied[key], dice)
    return copied


def _flip(content: bytes, dice: Dice) -> bytes:
    at = dice.randrange(len(content) or 1)
    return content[:at] + bytes([dice.randrange(256)]) + content[at + 1 :]


def _insert(content: bytes, dice: Dice) -> bytes:
    at = dice.randrange(len(content) + 1)
    odd = dice.choice(
        (b"\0", b"\xff", b"\xed\xa0\x80", b"\x1b]0;", b"\n\n", b"]]>", b"<a" * 50_000, b"[" * 50_000, b"9" * 5_000)
    )
    return content[:at] + odd + content[at:]


def _repeat(content: bytes, dice: Dice) -> bytes:
    start, end = sorted(dice.randrange(len(content) + 1) for _ in range(2))
    return content[:end] + content[start:end] * dice.choice((1, 2, 30)) + content[end:]


# What may happen to the bytes of any document.
DAMAGES: tuple[Callable[[bytes, Dice], bytes], ...] = (
    lambda content, dice: b"",
    lambda content, dice: content[: dice.randrange(len(content) + 1)],
    lambda content, dice: content[dice.randrange(len(content) + 1) :],
    lambda content, dice: content.decode("utf-8", "replace").encode(dice.choice(("utf-16", "utf-7", "utf-32"))),
    lambda content, dice: b"\xef\xbb\xbf" + content,
    lambda content, dice: gzip.compress(content),
    lambda content, dice: gzip.compress(content)[:-6],
    lambda content, dice: dice.randbytes(dice.choice((1, 100, 10_000))),
    lambda content, dice: content + content,
    lambda content, dice: content.replace(b"\n", b"\r\n").replace(b'"', b"'"),
    _flip,
    _flip,
    _insert,
    _insert,
    _repeat,
)


def odd_bytes(content: bytes, dice: Dice) -> bytes:
    """Return the document damaged once or twice."""
    for _ in range(dice.choice((1, 1, 2))):
        content = dice.choice(DAMAGES)(content, dice)
    return content


def _sparse(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(1 << 36)


def _socket(path: Path) -> None:
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(f"/proc/self/fd/{handle}/{path.name}")  # an address may not be longer than 107 characters
    finally:
        os.close(handle)


def _unreadable(path: Path) -> None:
    path.write_bytes(b"{}")
    path.chmod(0)  # the administrator can read it nevertheless


# Replacements for any small file.
FILES: tuple[Callable[[Path], None], ...] = (
    os.mkfifo,
    Path.mkdir,
    _sparse,
    _socket,
    _unreadable,
    lambda path: path.symlink_to(path),
    lambda path: path.symlink_to(path.with_name("gone")),
    lambda path: path.symlink_to("/dev/zero"),
    lambda path: path.symlink_to("/dev/full"),
    lambda path: path.symlink_to("/proc/self/mem"),
    lambda path: path.symlink_to("/proc/self/environ"),
)


def put(path: Path, content: bytes, dice: Dice, *, odd_file: float = 0.05) -> None:
    """Write the file; sometimes create something else instead of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if dice.random() < odd_file:
        dice.choice(FILES)(path)
    else:
        path.write_bytes(content)
