"""Digests as files for people and feed readers: `<profile>/<day>.html`, `.md`, and one `feed.atom` a profile.

Whole or not there; the same content does not touch its file. A removed profile keeps its digests.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from pathlib import Path

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.profile import PROFILE_NAME
from paper_assets.stores.lock import store_lock

FEED = "feed.atom"

_PAGE = re.compile(r"(\d{4}-\d{2}-\d{2})\.html")
_UNFINISHED = ".unfinished-"  # begins the name of a file being written; a killed writer leaves it


def digest_path(folder: Path, profile: str, day: date, ending: str) -> Path:
    """Where a day's page lies. Raises InvalidProfile for a name that cannot name a folder."""
    if not PROFILE_NAME.fullmatch(profile):
        raise InvalidProfile(f"profile name {profile!r} cannot name a folder; use a-z, 0-9, _ and -")
    return folder / profile / f"{day.isoformat()}.{ending}"


def read_page(folder: Path, profile: str, day: date, ending: str) -> bytes | None:
    """A day's page, or None if there is none. Raises InvalidProfile, StoreUnwritable."""
    path = digest_path(folder, profile, day, ending)
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as fault:
        raise StoreUnwritable(f"{path} cannot be read: {fault.strerror}; check permissions") from None


def keep_digest(
    folder: Path,
    profile: str,
    day: date,
    pages: Mapping[str, bytes],
    *,
    feed: Callable[[Sequence[tuple[date, str]]], bytes],
    latest: int,
    deadline: float,
) -> bool:
    """Write the day's `pages` (by ending, `html` among them) and the profile's feed; False if all of it lay there.

    `feed` makes the feed from the HTML pages of the `latest` days that have one, ascending. Processes take turns, so
    that no day is missing in the feed. Raises StoreBusy, StoreUnwritable, InvalidProfile.
    """
    target = digest_path(folder, profile, day, "html").parent
    try:
        with store_lock(target / ".writing", deadline=deadline):
            for left in target.glob(f"{_UNFINISHED}*"):
                left.unlink()
            written = [_put(target / f"{day.isoformat()}.{ending}", content) for ending, content in pages.items()]
            written.append(_put(target / FEED, feed(_newest(target, latest))))
    except OSError as fault:
        raise StoreUnwritable(
            f"{target} cannot take the digest: {fault.strerror}; free space, check permissions or set OUTPUT_DIR"
        ) from None
    return any(written)


def feed_is_current(
    folder: Path, profile: str, *, feed: Callable[[Sequence[tuple[date, str]]], bytes], latest: int
) -> bool:
    """Whether the profile's feed is what its pages make; no feed is made of none. Raises InvalidProfile,
    StoreUnwritable.
    """
    target = digest_path(folder, profile, date.min, "html").parent
    try:
        pages = _newest(target, latest)
        return bool(pages) and (target / FEED).read_bytes() == feed(pages)
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise StoreUnwritable(f"{target} cannot be read: {fault.strerror}; check permissions") from None


def unfinished_profiles(folder: Path) -> set[str]:
    """The profiles in whose folder a killed writer has left something; the next `keep_digest` sweeps it away."""
    return {left.parent.name for left in folder.glob(f"*/{_UNFINISHED}*")}


def _newest(target: Path, latest: int) -> list[tuple[date, str]]:
    """The HTML pages of the `latest` days that have one, ascending."""
    days = days_with_pages(target)[-latest:]
    return [(each, (target / f"{each}.html").read_text(encoding="utf-8", errors="replace")) for each in days]


def days_with_pages(target: Path) -> list[date]:
    """The days of which a profile's folder holds a page, ascending; none where there is no folder."""
    found = []
    for path in target.glob("*.html"):
        if named := _PAGE.fullmatch(path.name):
            with suppress(ValueError):  # somebody's own 2026-99-99.html
                found.append(date.fromisoformat(named[1]))
    return sorted(found)


def _put(path: Path, content: bytes) -> bool:
    """The finished file under its name in one step; False if the same lies there."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    unfinished = path.with_name(f"{_UNFINISHED}{path.name}")
    with unfinished.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    unfinished.replace(path)
    return True
