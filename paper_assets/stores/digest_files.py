"""Store digests as files for people and feed readers.

Files are `<profile>/<day>.html`, `.md`, and one `feed.atom` per profile. A file appears complete or not at all, and
equal content does not touch it. A removed profile keeps its digests.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from hashlib import sha256
from pathlib import Path

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.profile import PROFILE_NAME
from paper_assets.small_files import UNFINISHED, remove_unfinished, write_file

FEED = "feed.atom"
IN_FEED = 30  # digests
_PAGE = re.compile(r"(\d{4}-\d{2}-\d{2})\.html")


def digest_path(folder: Path, profile: str, day: date, ending: str) -> Path:
    """Return the path of a day's page. Raises InvalidProfile for a name that cannot name a folder."""
    if not PROFILE_NAME.fullmatch(profile):
        raise InvalidProfile(f"profile name {profile!r} cannot name a folder; use a-z, 0-9, _ and -")
    return folder / profile / f"{day.isoformat()}.{ending}"


def read_page(folder: Path, profile: str, day: date, ending: str) -> bytes | None:
    """Read a day's page, or None if there is none. Raises InvalidProfile, StoreUnwritable."""
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
    """Write the day's `pages` (by ending, `html` among them) and the profile's feed; return False if nothing changed.

    `feed` builds the feed from the HTML pages of the `latest` days that have one, ascending. Processes take turns, so
    that no day is missing from the feed. Raises StoreBusy, StoreUnwritable, InvalidProfile.
    """
    target = digest_path(folder, profile, day, "html").parent
    try:
        with store_lock(target / ".writing", deadline=deadline):
            remove_unfinished(target)
            files = {target / f"{day.isoformat()}.{ending}": content for ending, content in pages.items()}
            changed = [path for path, content in files.items() if _differs(path, content)]
            mark = target / f"{UNFINISHED}{FEED}-mark"  # the feed may not match the pages
            if changed:
                mark.touch(mode=0o600)
            for path in changed:
                write_file(path, files[path])
            days = _newest_days(target, latest)
            whole = feed([(each, (target / f"{each}.html").read_text("utf-8", "replace")) for each in days])
            if _differs(target / FEED, whole):
                changed.append(target / FEED)
                write_file(target / FEED, whole)
            mark.unlink(missing_ok=True)
    except OSError as fault:
        raise StoreUnwritable(
            f"{target} cannot take the digest: {fault.strerror}; free space, check permissions or set OUTPUT_DIR"
        ) from None
    return bool(changed)


def feed_is_complete(folder: Path, profile: str) -> bool:
    """Check whether the profile has a feed, and no writer was killed between a page and the feed."""
    target = digest_path(folder, profile, date.min, "html").parent
    return (target / FEED).exists() and not any(target.glob(f"{UNFINISHED}*"))


def unfinished_profiles(folder: Path) -> set[str]:
    """Return the profiles whose folder holds files of a killed writer; the next `keep_digest` removes them."""
    return {left.parent.name for left in folder.glob(f"*/{UNFINISHED}*")}


def days_with_pages(target: Path) -> list[date]:
    """Return the days that have a page in a profile's folder, ascending; empty without a folder."""
    return _newest_days(target, None)


def _newest_days(target: Path, latest: int | None) -> list[date]:
    """Return the `latest` days with a page (None: all), ascending; files with other names are ignored."""
    names: list[str] = []
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(target) as entries:
        names = sorted((entry.name for entry in entries), reverse=True)
    found: list[date] = []
    for name in names:
        if len(found) == latest:
            break
        if named := _PAGE.fullmatch(name):
            with suppress(ValueError):  # a user's file such as 2026-99-99.html
                found.append(date.fromisoformat(named[1]))
    return found[::-1]


def _differs(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() != content
    except FileNotFoundError:
        return True


def version_of_pages(pages: Sequence[bytes]) -> str:
    """Return the fingerprint of a day's pages."""
    return sha256(b"\0".join(pages)).hexdigest()[:32]


def stored_version(folder: Path, profile: str, day: date) -> str | None:
    """Return the fingerprint of a day's stored pages; None if one is missing."""
    pages = [read_page(folder, profile, day, ending) for ending in ("html", "md")]
    whole = [page for page in pages if page is not None]
    return version_of_pages(whole) if len(whole) == len(pages) else None
