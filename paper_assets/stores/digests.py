"""Store digests as files for people and feed readers, and record which digest was sent where.

Files are `<profile>/<day>.html`, `.md`, and one `feed.atom` per profile. A file appears complete or not at all, and
equal content does not touch it. A removed profile keeps its digests.

Deliveries are an outbox: each digest is sent at most once (Z3). A row is written before anything is sent. A process
killed between sending and recording leaves the row as `sending`: whether the message arrived is unknown, so the row is
reported in that state and never sent again automatically.
"""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Literal

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.profile import PROFILE_NAME
from paper_assets.stores.locks import store_lock
from paper_assets.stores.warehouse import Warehouse, read_time, stored_time

FEED = "feed.atom"
_PAGE = re.compile(r"(\d{4}-\d{2}-\d{2})\.html")
_UNFINISHED = ".unfinished-"  # prefix of a file being written; a killed writer leaves it behind


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
    """Check whether the profile's feed matches its pages; without pages there is no feed. Raises InvalidProfile,
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


def feed_state(folder: Path, profile: str, *, latest: int) -> str:
    """Return a text that changes with every file that `feed_is_current` reads. Raises InvalidProfile."""
    target = digest_path(folder, profile, date.min, "html").parent
    states = []
    for name in (FEED, *(f"{day}.html" for day in days_with_pages(target)[-latest:])):
        with suppress(OSError):
            found = (target / name).stat()
            states.append((name, found.st_ino, found.st_size, found.st_ctime_ns))
    return f"{states}"


def unfinished_profiles(folder: Path) -> set[str]:
    """Return the profiles whose folder holds files of a killed writer; the next `keep_digest` removes them."""
    return {left.parent.name for left in folder.glob(f"*/{_UNFINISHED}*")}


def _newest(target: Path, latest: int) -> list[tuple[date, str]]:
    """Read the HTML pages of the `latest` days that have one, ascending."""
    days = days_with_pages(target)[-latest:]
    return [(each, (target / f"{each}.html").read_text(encoding="utf-8", errors="replace")) for each in days]


def days_with_pages(target: Path) -> list[date]:
    """Return the days for which a profile's folder holds a page, ascending; empty without a folder."""
    found = []
    for path in target.glob("*.html"):
        if named := _PAGE.fullmatch(path.name):
            with suppress(ValueError):  # a user's file such as 2026-99-99.html
                found.append(date.fromisoformat(named[1]))
    return sorted(found)


def _put(path: Path, content: bytes) -> bool:
    """Write a complete file under its name in one step; return False if it already has this content."""
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


State = Literal["sending", "sent", "failed"]
_LONGEST_REASON = 300  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """Represent the state of a digest on one channel. `sending`: in progress or unknown; `reason` explains it."""

    profile: str
    day: date
    channel: str
    state: State
    reason: str | None
    tried_at: datetime


def claim(warehouse: Warehouse, profile: str, day: date, channel: str, *, now: datetime, again: bool = False) -> bool:
    """Claim a delivery so that no other process sends it; False if it was sent, is in progress, or its outcome is
    unknown.

    `again`: an operator requested sending it whatever the state.
    """
    with warehouse.writing() as connection:
        rows = connection.execute(
            "select state from digest_deliveries where profile = ? and day = ? and channel = ?", [profile, day, channel]
        ).fetchall()
        if rows and rows[0][0] != "failed" and not again:
            return False
        connection.execute(
            "insert or replace into digest_deliveries values (?, ?, ?, 'sending', null, ?)",
            [profile, day, channel, stored_time(now)],
        )
    return True


def note(
    warehouse: Warehouse, profile: str, day: date, channel: str, state: State, reason: str | None, *, now: datetime
) -> None:
    """Record the outcome of a claimed delivery."""
    with warehouse.writing() as connection:
        connection.execute(
            """
            update digest_deliveries
            set state = $state, reason = $reason, tried_at = $tried_at
            where profile = $profile and day = $day and channel = $channel
            """,
            {
                "state": state,
                "reason": reason and reason[:_LONGEST_REASON],
                "tried_at": stored_time(now),
                "profile": profile,
                "day": day,
                "channel": channel,
            },
        )


def deliveries(warehouse: Warehouse, profiles: Sequence[str], *, since: date) -> list[Delivery]:
    """Return the delivery attempts for these profiles' days from `since` on, by profile, day and channel."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select profile, day, channel, state, reason, tried_at
            from digest_deliveries
            where profile in (select unnest($profiles::varchar[])) and day >= $since
            order by profile, day, channel
            """,
            {"profiles": list(profiles), "since": since},
        ).fetchall()
    return [
        Delivery(profile=row[0], day=row[1], channel=row[2], state=row[3], reason=row[4], tried_at=read_time(row[5]))
        for row in rows
    ]
