"""Store digests as files for people and feed readers, what each was made from, and which was sent where.

Files are `<profile>/<day>.html`, `.md`, and one `feed.atom` per profile. A file appears complete or not at all, and
equal content does not touch it. A removed profile keeps its digests.

Inputs: a fingerprint covers every stored row that a digest reads, and some that it does not, so that a current digest
is recognized without making it again: with an equal fingerprint the pages are equal, with another one they may be. The
file of fingerprints is beside the warehouse and can be removed at any time; then digests are compared by making them
once. To add something that a digest reads, add its rows to `_ROWS`.

Deliveries are an outbox: each digest is sent at most once (Z3). A row is written before anything is sent. A process
killed between sending and recording leaves the row as `sending`: whether the message arrived is unknown, so the row is
reported in that state and never sent again automatically.
"""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Literal

from paper_assets.errors import InvalidProfile, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.profile import PROFILE_NAME
from paper_assets.settings import Settings
from paper_assets.small_files import UNFINISHED, file_state, remove_unfinished, write_file
from paper_assets.stores.stamps import digests_file
from paper_assets.stores.warehouse import Warehouse, read_time, stored_time

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


def pages_state(folder: Path, profile: str, *, latest: int, day: date | None = None) -> str:
    """Return a text that changes with every file that `feed_is_current` reads, and with the pages of `day`.

    Raises InvalidProfile.
    """
    target = digest_path(folder, profile, date.min, "html").parent
    names = [FEED, *(f"{each}.html" for each in _newest_days(target, latest))]
    names += [f"{day}.html", f"{day}.md"] if day else []
    return f"{file_state(target / name for name in names)}"


def unfinished_profiles(folder: Path) -> set[str]:
    """Return the profiles whose folder holds files of a killed writer; the next `keep_digest` removes them."""
    return {left.parent.name for left in folder.glob(f"*/{UNFINISHED}*")}


def _newest(target: Path, latest: int) -> list[tuple[date, str]]:
    """Read the HTML pages of the `latest` days that have one, ascending."""
    days = _newest_days(target, latest)
    return [(each, (target / f"{each}.html").read_text(encoding="utf-8", errors="replace")) for each in days]


def days_with_pages(target: Path) -> list[date]:
    """Return the days for which a profile's folder holds a page, ascending; empty without a folder."""
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


def _put(path: Path, content: bytes) -> bool:
    """Write a complete file under its name in one step; return False if it already has this content."""
    with suppress(FileNotFoundError):
        if path.read_bytes() == content:
            return False
    write_file(path, content)
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


Key = tuple[str, date]  # profile and day
_PATIENCE = 5.0  # seconds for another writer, which takes milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestInputs:
    """What a digest was made from: the fingerprint of its rows, the papers it names and the fingerprint of those."""

    rows: str
    named: tuple[str, ...]
    papers: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestMade:
    """A digest that was made from `inputs`, with the version of its pages."""

    inputs: DigestInputs
    version: str


# A digest compares its list with the one before and with the one that it replaced, so it reads three rankings.
_ROWS = """
    with asked as (select unnest($days::date[]) as day, unnest($profiles::varchar[]) as profile),
    reads as (
        select day, profile, day as of_day from asked
        union all
        select asked.day, asked.profile, max(earlier.day) as of_day
        from asked
        join ranking_sets as earlier on earlier.profile = asked.profile and earlier.day < asked.day
        group by asked.day, asked.profile
    ),
    items as (
        select asked.day, asked.profile, unnest(items) as item
        from asked
        join rewrite_sets using (day, profile)
    ),
    parts as (
        select reads.day, reads.profile, 1 as part, hash(stored) as value
        from reads
        join ranking_sets as stored on stored.profile = reads.profile and stored.day = of_day
        union all
        select reads.day, reads.profile, 2, hash(stored)
        from reads
        join rankings as stored on stored.profile = reads.profile and stored.day = of_day
        union all
        select reads.day, reads.profile, 3, hash(stored)
        from reads
        join candidates as stored on stored.profile = reads.profile and stored.day = of_day
        union all
        select reads.day, reads.profile, 4, hash(stored)
        from reads
        join candidate_sets as stored on stored.profile = reads.profile and stored.day = of_day
        union all
        select asked.day, asked.profile, 5, hash(stored)
        from asked
        join previous_ranking_sets as stored on stored.profile = asked.profile and stored.day = asked.day
        union all
        select asked.day, asked.profile, 6, hash(stored)
        from asked
        join previous_rankings as stored on stored.profile = asked.profile and stored.day = asked.day
        union all
        select asked.day, asked.profile, 7, hash(stored)
        from asked
        join profile_versions as stored on stored.profile = asked.profile
        union all
        select asked.day, asked.profile, 8, hash(stored)
        from asked
        join retrieval_sets as stored on stored.profile = asked.profile and stored.day = asked.day
        union all
        select asked.day, asked.profile, 9, hash(stored)
        from asked
        join rewrite_sets as stored on stored.profile = asked.profile and stored.day = asked.day
        union all
        select items.day, items.profile, 10, hash(stored) from items join rewrite_items as stored using (item)
        union all
        select items.day, items.profile, 11, hash(stored) from items join rewrite_attempts as stored using (item)
        union all
        select items.day, items.profile, 12, hash(stored) from items join rewrite_decisions as stored using (item)
        union all
        select items.day, items.profile, 13, hash(stored)
        from items
        join rewrite_items using (item)
        join accepted_claims as stored using (paper_id)
    )
    select profile, day, part, count(*), sum(value::hugeint)::varchar
    from parts
    group by profile, day, part
    order by profile, day, part
"""
_PAPERS = """
    with asked as (select unnest($days::date[]) as day, unnest($profiles::varchar[]) as profile),
    before as (
        select asked.day, asked.profile, max(earlier.day) as of_day
        from asked
        join ranking_sets as earlier on earlier.profile = asked.profile and earlier.day < asked.day
        group by asked.day, asked.profile
    ),
    ids as (
        select asked.day, asked.profile, paper_id
        from asked
        join rankings using (day, profile)
        union
        select before.day, before.profile, paper_id
        from before
        join rankings on rankings.profile = before.profile and rankings.day = of_day
        union
        select asked.day, asked.profile, paper_id
        from asked
        join previous_rankings using (day, profile)
        union
        select unnest($named_days::date[]), unnest($named_profiles::varchar[]), unnest($named::varchar[])
    ),
    hashed as (select paper_id, hash(papers) as value from papers semi join ids using (paper_id))
    select profile, day, count(*), sum(value::hugeint)::varchar
    from ids
    join hashed using (paper_id)
    group by profile, day
"""


@cache
def code_state() -> str:
    """Return a fingerprint that changes with every file of the package, templates included.

    The result is cached, because this process continues with the code that it has loaded; call it early.
    """
    return f"{file_state([Path(__file__).parents[1]])}"


def settings_of_pages(settings: Settings) -> str:
    """Return what the pages depend on in addition to stored rows: settings and the code of this package."""
    return repr((settings.rewriting, settings.desk_url, code_state()))


def version_of_pages(pages: Sequence[bytes]) -> str:
    """Return the fingerprint of a day's pages."""
    return sha256(b"\0".join(pages)).hexdigest()[:32]


def stored_version(folder: Path, profile: str, day: date) -> str | None:
    """Return the fingerprint of a day's stored pages; None if one is missing."""
    pages = [read_page(folder, profile, day, ending) for ending in ("html", "md")]
    whole = [page for page in pages if page is not None]
    return version_of_pages(whole) if len(whole) == len(pages) else None


def rows_of_digests(warehouse: Warehouse, keys: Sequence[Key], *, settings: str) -> dict[Key, str]:
    """Return fingerprints of `settings` and the rows, except papers, that the digest of each key is made from."""
    with warehouse.reading() as connection:
        rows = connection.execute(_ROWS, _key_columns(keys)).fetchall()
    found: dict[Key, list[object]] = {key: [settings] for key in keys}
    for profile, day, *values in rows:
        found[profile, day].append(values)
    return {key: _hash(values) for key, values in found.items()}


def papers_of_digests(warehouse: Warehouse, named: Mapping[Key, Sequence[str]]) -> dict[Key, str]:
    """Return fingerprints of the papers of each key's rankings and of those that its digest names (`named`)."""
    pairs = [(key, paper_id) for key, ids in named.items() for paper_id in ids]
    more = {
        "named_days": [day for (_, day), _ in pairs],
        "named_profiles": [profile for (profile, _), _ in pairs],
        "named": [paper_id for _, paper_id in pairs],
    }
    with warehouse.reading() as connection:
        rows = connection.execute(_PAPERS, {**_key_columns([*named]), **more}).fetchall()
    found = {(profile, day): _hash(values) for profile, day, *values in rows}
    return {key: found.get(key, _hash([])) for key in named}


def _key_columns(keys: Sequence[Key]) -> dict[str, list[object]]:
    return {"days": [day for _, day in keys], "profiles": [profile for profile, _ in keys]}


def _hash(values: Sequence[object]) -> str:
    return sha256(json.dumps(values).encode()).hexdigest()[:32]


def digests_made(warehouse: Path, keys: Sequence[Key]) -> dict[Key, DigestMade]:
    """Return what is remembered of these digests; empty if the file is missing or cannot be read."""
    found = {}
    with suppress(sqlite3.Error, ValueError, TypeError, LookupError), _opened(warehouse) as connection:
        wanted = {(profile, day.isoformat()): (profile, day) for profile, day in keys}
        names = json.dumps(sorted({profile for profile, _ in keys}))
        query = "select profile, day, made from digests where profile in (select value from json_each(?))"
        for profile, day, made in connection.execute(query, [names]):
            if (key := wanted.get((profile, day))) is not None:
                rows, named, papers, version = json.loads(made)
                inputs = DigestInputs(rows=rows, named=tuple(named), papers=papers)
                found[key] = DigestMade(inputs=inputs, version=version)
    return found


def remember_digests(warehouse: Path, made: Mapping[Key, DigestMade]) -> None:
    """Remember digests; where the file cannot be written they are compared by making them."""
    values = [
        (
            profile,
            day.isoformat(),
            json.dumps([each.inputs.rows, each.inputs.named, each.inputs.papers, each.version]),
        )
        for (profile, day), each in made.items()
    ]
    with suppress(sqlite3.Error), _opened(warehouse, create=True) as connection, connection:
        connection.execute("create table if not exists digests (profile, day, made, primary key (profile, day))")
        connection.executemany("insert or replace into digests values (?, ?, ?)", values)


def current_feed(warehouse: Path, profile: str) -> str | None:
    """Return the state of the profile's feed and pages when the feed was last found current; None if unknown."""
    with suppress(sqlite3.Error), _opened(warehouse) as connection:
        rows = connection.execute("select state from feeds where profile = ?", [profile]).fetchall()
        return rows[0][0] if rows else None
    return None


def remember_feed(warehouse: Path, profile: str, state: str) -> None:
    """Remember that the profile's feed is current in this state of its files."""
    with suppress(sqlite3.Error), _opened(warehouse, create=True) as connection, connection:
        connection.execute("create table if not exists feeds (profile primary key, state)")
        connection.execute("insert or replace into feeds values (?, ?)", [profile, state])


@contextmanager
def _opened(warehouse: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the file. Raises sqlite3.Error, also if it does not exist and `create` is not set."""
    address = f"{digests_file(warehouse).absolute().as_uri()}?mode={'rwc' if create else 'ro'}"
    with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
        yield connection
