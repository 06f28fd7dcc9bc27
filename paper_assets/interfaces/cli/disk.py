"""What the disk refuses, or has kept badly, wherever in a command that happens, in one line (SPEC 8).

The stores name their own files. Here is what is left: Dagster's databases, which are SQLite behind several layers, and
files that other libraries write.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator

_REFUSALS = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO))
_SQLITE = ("disk I/O error", "disk is full", "readonly database", "unable to open", "malformed", "not a database")


def refusal_of_the_disk(error: BaseException) -> str | None:
    """The line for an error that the disk, or a damaged database of Dagster's, is behind; None for any other."""
    home = os.environ.get("DAGSTER_HOME", "DAGSTER_HOME")
    for each in _chain(error):
        # Known by name: neither is imported where no command needs it.
        if type(each).__module__.partition(".")[0] == "yaml" or type(each).__name__ == "DagsterInvalidConfigError":
            reason = " ".join(str(each).split())[:300]
            return (
                f"{home}/dagster.yaml cannot be used: {reason}; mend it, or put back the one that came with the project"
            )
        if isinstance(each, sqlite3.Error) and any(sign in str(each) for sign in _SQLITE):
            return (
                f"Dagster's history in {home} cannot be used: {each}; free space and check permissions, then the same "
                "command again; a damaged one may be moved away without dagster.yaml, nothing of the desk is in it"
            )
        if isinstance(each, OSError) and each.errno in _REFUSALS:
            return (
                f"{each.filename or 'the disk'}: {each.strerror}; free space and check permissions, then the same "
                "command again"
            )
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what it came from."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        yield found
        found = found.__cause__ or found.__context__
