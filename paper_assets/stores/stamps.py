"""Store stamps of commands that changed nothing: the files each answer depended on, and the answer.

As with make: while none of those files was touched, the same question has the same answer, and neither stores nor graph
need to be opened. Where this cannot be determined there is no stamp, and the command checks everything. Stamps are
stored beside the warehouse and removed with it; erasing a paper for good also removes them, because they mention
papers.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal, get_args

Command = Literal["run", "status"]
_NOT_READ = "__pycache__"
_MOST_FILES = 200_000  # files of a stamp; checking more takes longer than it saves
_MOST_BYTES = 50_000_000  # the lists of a thousand profiles have 7


def file_states(roots: Sequence[Path]) -> dict[str, str] | None:
    """Return, for each root (a file, or a folder and everything below it), 32 hex digits that change with any of its
    files; None where this cannot be determined.
    """
    try:
        return {str(root): _state(root) for root in roots}
    except (OSError, RecursionError):
        return None


def keep_stamp(warehouse: Path, command: Command, question: str, states: Mapping[str, str], answer: Any) -> None:
    """Store the answer (JSON values) of a command that changed nothing, valid while the roots match `states`.

    A stamp that cannot be written is omitted.
    """
    file, content = _stamp(warehouse, command), {"question": question, "states": dict(states), "answer": answer}
    new = file.with_name(f"{file.name}.new")
    with suppress(OSError, ValueError):
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as stream:
            json.dump(content, stream, default=str, allow_nan=False)
        new.replace(file)


def stamped_answer(warehouse: Path, command: Command, question: str) -> Any | None:
    """Return the stored answer to this question; None unless everything that it depended on is unchanged."""
    file = _stamp(warehouse, command)
    try:
        if file.stat().st_size > _MOST_BYTES:
            return None
        kept = json.loads(file.read_text(encoding="utf-8"))
        # Root by root: most changes are in the first ones, and the last ones have ten thousand files.
        if kept["question"] == question and all(_state(Path(root)) == kept["states"][root] for root in kept["states"]):
            return kept["answer"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        pass
    return None


def forget_stamps(warehouse: Path) -> None:
    """Remove every command's stamp and what is remembered of digests, if there is any."""
    for file in (*(_stamp(warehouse, command) for command in get_args(Command)), digests_file(warehouse)):
        with suppress(OSError):
            file.unlink()


def digests_file(warehouse: Path) -> Path:
    """Return the path of what is remembered of digests (stores/digests.py), beside the warehouse."""
    return warehouse.with_name(f"{warehouse.name}.digests")


def _stamp(warehouse: Path, command: Command) -> Path:
    return warehouse.with_name(f"{warehouse.name}.{command}")


def _state(root: Path) -> str:
    digest = sha256()
    for number, (name, state) in enumerate(_files(root)):
        if number > _MOST_FILES:
            raise OSError("too many files to look at")
        digest.update(f"{name}\0{state}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:32]


def _files(root: Path) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Return name and state of the root and of every file below it, in a fixed order. Raises OSError.

    The inode and the time of its last change distinguish a file from one that replaced it with the old date.
    """
    try:
        found = root.stat()
    except FileNotFoundError:
        return
    if root.is_dir():
        yield from _below(f"{root}")
    elif found.st_size:  # a database's log appears and disappears; an empty one counts as absent
        yield f"{root}", _state_of(found)


def _below(folder: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield a folder and everything below it, without a Path for each of ten thousand files. Raises OSError."""
    yield folder, ()
    with os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if not entry.is_dir():
            with suppress(FileNotFoundError):  # a broken link, or removed since
                yield entry.path, _state_of(entry.stat())
        elif entry.name != _NOT_READ:
            yield from _below(entry.path)


def _state_of(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns
