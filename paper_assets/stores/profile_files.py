"""The files of a profile's folder as a program edits them: whole or not at all, and never over somebody else's edit."""

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.stores.lock import store_lock

_DEADLINE = 10.0  # seconds to wait for another editor; writing takes milliseconds


class ProfileEdited(InvalidProfile):
    """The file has changed since it was read: somebody else's edit would be lost."""


def file_version(file: Path) -> str:
    """A word for what stands in the file now; of one that does not exist too. Raises InvalidProfile."""
    try:
        return sha256(file.read_bytes()).hexdigest()[:16]
    except FileNotFoundError:
        return "none"
    except OSError as fault:
        raise InvalidProfile(f"{file} cannot be read: {fault.strerror}") from None


def write_json(file: Path, record: Mapping[str, Any] | Sequence[Any], *, version: str, turns: Path) -> None:
    """Replace the file in one step, if it still is what `version` said; `turns` names the lock of those who edit.

    Raises ProfileEdited, StoreBusy, StoreUnwritable.
    """
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    try:
        with store_lock(turns, deadline=_DEADLINE):
            if file_version(file) != version:
                raise ProfileEdited(f"{file} was edited elsewhere meanwhile; nothing was saved")
            handle, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
            unfinished = Path(name)
            try:
                with os.fdopen(handle, "w", encoding="utf-8") as stream:
                    stream.write(text)
                    stream.flush()
                    os.fsync(stream.fileno())
                unfinished.chmod(file.stat().st_mode & 0o777 if file.exists() else 0o600)
                unfinished.replace(file)
            finally:
                with suppress(FileNotFoundError):
                    unfinished.unlink()
    except OSError as fault:
        raise StoreUnwritable(f"{file} cannot be written: {fault.strerror}; check permissions and free space") from None
