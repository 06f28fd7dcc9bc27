"""Fingerprint what digests are made from, and remember which were found current.

A fingerprint covers every stored row that a digest reads, and some that it does not, so that a current digest is
recognized without making it again: with an equal fingerprint the pages are equal, with another one they may be. The
file of fingerprints is beside the warehouse and can be removed at any time; then digests are compared by making them
once. To add something that a digest reads, add its rows to `_ROWS`.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path

from paper_assets.settings import Settings
from paper_assets.small_files import file_state
from paper_assets.stores.stamps import digests_file
from paper_assets.stores.warehouse import Warehouse

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


@contextmanager
def _opened(warehouse: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the file. Raises sqlite3.Error, also if it does not exist and `create` is not set."""
    address = f"{digests_file(warehouse).absolute().as_uri()}?mode={'rwc' if create else 'ro'}"
    with closing(sqlite3.connect(address, uri=True, timeout=_PATIENCE)) as connection:
        yield connection
