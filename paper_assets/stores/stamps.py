"""Store stamps of commands that changed nothing: the files each answer depended on, and the answer.

As with make: while none of those files was touched, the same question has the same answer, and neither stores nor graph
need to be opened. Where this cannot be determined there is no stamp, and the command checks everything. Stamps are
stored beside the warehouse and removed with it; erasing a paper for good also removes them, because they mention
papers.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, get_args

from paper_assets.small_files import file_state, remove_unfinished, write_file

Command = Literal["run", "status"]
_MOST_BYTES = 50_000_000  # the lists of a thousand profiles have 7


def keep_stamp(
    warehouse: Path, command: Command, question: str, files: Sequence[Path], state: str | None, answer: Any
) -> None:
    """Store the answer (JSON values) of a command that changed nothing, valid while `files` have this `file_state`.

    Without a state, or where it cannot be written, there is no stamp.
    """
    content = {"question": question, "files": [str(file) for file in files], "state": state, "answer": answer}
    if state:
        file = _stamp(warehouse, command)
        # Another process that writes it at this moment loses its stamp and checks everything once more.
        remove_unfinished(file.parent, file.name)
        with suppress(OSError, ValueError):
            write_file(file, json.dumps(content, default=str, allow_nan=False))


def stamped_answer(warehouse: Path, command: Command, question: str) -> Any | None:
    """Return the stored answer to this question; None unless everything that it depended on is unchanged."""
    file = _stamp(warehouse, command)
    try:
        if file.stat().st_size > _MOST_BYTES:
            return None
        stamp = json.loads(file.read_text(encoding="utf-8"))
        if stamp["question"] == question and file_state(map(Path, stamp["files"])) == stamp["state"]:
            return stamp["answer"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        pass
    return None


def forget_stamps(warehouse: Path) -> None:
    """Remove every command's stamp and what is remembered of digests, if there is any."""
    for file in (*(_stamp(warehouse, command) for command in get_args(Command)), digests_file(warehouse)):
        remove_unfinished(file.parent, file.name)
        with suppress(OSError):
            file.unlink()


def digests_file(warehouse: Path) -> Path:
    """Return the path of what is remembered of digests (stores/digest_inputs.py), beside the warehouse."""
    return warehouse.with_name(f"{warehouse.name}.digests")


def _stamp(warehouse: Path, command: Command) -> Path:
    return warehouse.with_name(f"{warehouse.name}.{command}")
