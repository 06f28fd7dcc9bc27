"""Write rankings as JSON files for people and other programs: complete or not at all, never overwritten (SPEC G15)."""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.profile import PROFILE_NAME
from paper_assets.small_files import is_present, make_private_folder, remove_unfinished, write_file

NO_PROFILE = "no_profile"
KEPT_FILES = 100  # of a profile: files of `rank` and of rankings that an edit replaced
_DEADLINE = 60.0  # seconds to wait for another writer, which takes milliseconds


def save_ranking(folder: Path, profile: str | None, result: Mapping[str, Any], *, now: datetime) -> Path:
    """Write `folder/<profile>/YYYY-MM-DD_HHMMSS_ranked.json` and return its path, which the file also contains.

    A second ranking in the same second gets `_2`, also from another process. Raises StoreUnwritable.
    """
    name = NO_PROFILE if profile is None else profile
    if not PROFILE_NAME.fullmatch(name):
        raise InvalidProfile(f"profile name {name!r} cannot name a folder; use a-z, 0-9, _ and -")
    target = folder / name
    with _writing(target):
        return _save(target, result, now=now)


def saved_file(folder: Path, profile: str, noted: str | None) -> Path | None:
    """Return the existing file of a ranking: in `folder`, which may have moved since it was noted, or as noted."""
    if noted is None:
        return None
    places = (folder / profile / Path(noted).name, Path(noted))
    return next((place for place in places if place.exists()), None)


def save_once(folder: Path, profile: str, result: Mapping[str, Any], *, now: datetime) -> Path:
    """Call `save_ranking` unless a file with this result exists; several processes agree on one file."""
    target = folder / profile
    with _writing(target):
        return find_saved(folder, profile, result, now=now) or _save(target, result, now=now)


def find_saved(folder: Path, profile: str, result: Mapping[str, Any], *, now: datetime) -> Path | None:
    """Return the file that `save_ranking` wrote for this result, if there is one."""
    for path in sorted((folder / profile).glob(f"{now:%Y-%m-%d_%H%M%S}_ranked*.json")):
        if path.read_bytes() == _encoded({**result, "output_path": str(path)}):
            return path
    return None


def remove_superseded(folder: Path, current: Collection[str]) -> None:
    """Remove the files of each profile that are not `current` (names), except the newest `KEPT_FILES` of them."""
    for target in (each for each in _listed(folder) if each.is_dir()):
        old = sorted(file for file in _listed(target) if file.name.endswith(".json") and file.name not in current)
        for file in old[:-KEPT_FILES]:
            with suppress(OSError):
                file.unlink()


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _encoded(result: Mapping[str, Any]) -> bytes:
    text = json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    # Half a surrogate pair, which UTF-8 cannot hold, becomes its JSON escape.
    return text.encode("utf-8", "backslashreplace")


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """Be the only writer of a profile's folder. Raises StoreBusy, StoreUnwritable."""
    try:
        make_private_folder(target)
        with store_lock(target.with_name(f".{target.name}"), deadline=_DEADLINE):
            remove_unfinished(target)
            yield
    except OSError as error:
        raise StoreUnwritable(
            f"{target} cannot take the ranking: {error.strerror}; free space, check permissions or set OUTPUT_DIR"
        ) from None


def _save(target: Path, result: Mapping[str, Any], *, now: datetime) -> Path:
    names = (f"{now:%Y-%m-%d_%H%M%S}_ranked{f'_{number}' if number > 1 else ''}.json" for number in count(1))
    path = next(target / name for name in names if not is_present(target / name))
    write_file(path, _encoded({**result, "output_path": str(path)}))
    return path
