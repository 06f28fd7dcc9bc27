"""Write rankings as JSON files for people and other programs: complete or not at all, never overwritten (SPEC G15)."""

import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.profile import PROFILE_NAME
from paper_assets.stores.locks import folder_locked, make_private_folder

NO_PROFILE = "no_profile"
_MARK = 16  # random characters that distinguish the unfinished files of one name


def save_ranking(folder: Path, profile: str | None, result: Mapping[str, Any], *, now: datetime) -> Path:
    """Write `folder/<profile>/YYYY-MM-DD_HHMMSS_ranked.json` and return its path, which the file also contains.

    A second ranking in the same second gets `_2`, also from another process. Raises StoreUnwritable.
    """
    name = NO_PROFILE if profile is None else profile
    if not PROFILE_NAME.fullmatch(name):
        raise InvalidProfile(f"profile name {name!r} cannot name a folder; use a-z, 0-9, _ and -")
    target, number = folder / name, 1
    try:
        make_private_folder(target)
        while True:
            suffix = "" if number == 1 else f"_{number}"
            path = target / f"{now:%Y-%m-%d_%H%M%S}_ranked{suffix}.json"
            if _appeared(path, {**result, "output_path": str(path)}):
                return path
            number += 1
    except OSError as error:
        raise StoreUnwritable(
            f"{target} cannot take the ranking: {error.strerror}; free space, check permissions or set OUTPUT_DIR"
        ) from None


def saved_file(folder: Path, profile: str, noted: str | None) -> Path | None:
    """Return the existing file of a ranking: in `folder`, which may have moved since it was noted, or as noted."""
    if noted is None:
        return None
    places = (folder / profile / Path(noted).name, Path(noted))
    return next((place for place in places if place.exists()), None)


def save_once(folder: Path, profile: str, result: Mapping[str, Any], *, now: datetime) -> Path:
    """Call `save_ranking` unless a file with this result exists; several processes agree on one file."""
    make_private_folder(folder / profile)
    with folder_locked(folder / profile):
        return find_saved(folder, profile, result, now=now) or save_ranking(folder, profile, result, now=now)


def sweep_rankings(folder: Path) -> None:
    """Remove the files that killed writers left in the profiles' folders; active writers keep their files locked."""
    for left in folder.glob(f"*/.*_ranked*.json-{'?' * _MARK}"):
        with suppress(OSError), left.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            left.unlink()


def find_saved(folder: Path, profile: str, result: Mapping[str, Any], *, now: datetime) -> Path | None:
    """Return the file that `save_ranking` wrote for this result, if there is one."""
    for path in sorted((folder / profile).glob(f"{now:%Y-%m-%d_%H%M%S}_ranked*.json")):
        if path.read_bytes() == _encoded({**result, "output_path": str(path)}):
            return path
    return None


def _encoded(result: Mapping[str, Any]) -> bytes:
    text = json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # Half a surrogate pair, which UTF-8 cannot hold, becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


def _appeared(path: Path, result: Mapping[str, Any]) -> bool:
    """Put the complete file under its name in one step; return False if the name has been taken in the meantime."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(_MARK // 2)}")
    content = _encoded(result)
    try:
        with temporary.open("xb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX)  # until it is closed: no sweep removes a file that is being written
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
            os.link(temporary, path)  # unlike a rename, a link fails if the name is taken
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True
