"""Fingerprint what digests are made from, and store the fingerprint from which each was made.

A fingerprint covers every stored row that a digest reads, and some that it does not: with an equal fingerprint the
pages are equal, with another one they may be, and making them again touches no file. To add something that a digest
reads, add its rows to `_PARTS`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256

import pyarrow as pa

from paper_assets.settings import Settings
from paper_assets.stores.warehouse import Key, Warehouse

CODE_VERSION = "19"  # raise it when the pages change, so that the newest ones are made again


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestMade:
    """What a digest was made from, as a fingerprint, the papers that it names, and the version of its pages."""

    inputs: str
    papers: tuple[str, ...]
    version: str


# Tables by profile and day. A digest compares its list with the one before and with the one that it replaced.
_OF_BOTH_DAYS = {1: "ranking_sets", 2: "rankings", 3: "candidates", 4: "candidate_sets"}
_OF_DAY = {5: "previous_ranking_sets", 6: "previous_rankings", 8: "retrieval_sets", 9: "rewrite_sets"}
_OF_ITEM = {10: "rewrite_items", 11: "rewrite_attempts", 12: "rewrite_decisions"}
_PARTS = (
    *(
        f"""
        select reads.day, reads.profile, {part} as part, hash(stored) as value
        from reads
        join {table} as stored on stored.profile = reads.profile and stored.day = of_day
        """  # noqa: S608  # names of ours
        for part, table in _OF_BOTH_DAYS.items()
    ),
    *(
        f"select day, profile, {part}, hash(stored) from asked join {table} as stored using (day, profile)"  # noqa: S608
        for part, table in _OF_DAY.items()
    ),
    *(
        f"select day, profile, {part}, hash(stored) from items join {table} as stored using (item)"  # noqa: S608
        for part, table in _OF_ITEM.items()
    ),
    """
    select asked.day, asked.profile, 7, hash(arg_max(content, place) ->> '$.keywords.exclude.hard')
    from asked
    join profile_versions as stored on stored.profile = asked.profile
    group by asked.day, asked.profile
    having coalesce(arg_max(content, place) ->> '$.keywords.exclude.hard', '[]') <> '[]'
    """,
    """
    select items.day, items.profile, 13, hash(stored)
    from items
    join rewrite_items using (item)
    join accepted_claims as stored using (paper_id)
    """,
    "select ids.day, ids.profile, 14, value from ids join hashed using (paper_id)",
    """
    select distinct asked.day, asked.profile, 15, 1::ubigint
    from asked
    semi join day_listings on day_listings.day = asked.day and day_listings.papers is not null
    """,
)
_ROWS = f"""
    with keys as (select unnest($days::date[]) as day, unnest($profiles::varchar[]) as profile),
    asked as (from keys semi join ranking_sets using (day, profile)),
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
    ids as (
        select unnest($named_days::date[]) as day, unnest($named_profiles::varchar[]) as profile,
            unnest($named::varchar[]) as paper_id
    ),
    hashed as (select paper_id, hash(papers) as value from papers semi join ids using (paper_id)),
    parts as ({" union all ".join(_PARTS)})
    select profile, day, part, count(*), sum(value::hugeint)::varchar
    from parts
    group by profile, day, part
    order by profile, day, part
"""  # noqa: S608


def inputs_of_digests(
    warehouse: Warehouse, named: Mapping[Key, Sequence[str]], *, settings: Settings
) -> dict[Key, str]:
    """Return fingerprints of all that digests are made from, by key, each with the papers that its pages name.

    Nothing for a day without a ranking.
    """
    pairs = [(key, paper_id) for key, ids in named.items() for paper_id in ids]
    papers = {
        "named_days": [day for (_, day), _ in pairs],
        "named_profiles": [profile for (profile, _), _ in pairs],
        "named": [paper_id for _, paper_id in pairs],
    }
    rows = warehouse.rows(_ROWS, {**_key_columns([*named]), **papers})
    found: dict[Key, list[object]] = {}
    for profile, day, *values in rows:
        found.setdefault((profile, day), [CODE_VERSION, repr(settings.rewriting), settings.desk_url]).append(values)
    return {key: sha256(json.dumps(values).encode()).hexdigest()[:32] for key, values in found.items()}


def digests_made(warehouse: Warehouse, keys: Sequence[Key]) -> dict[Key, DigestMade]:
    """Return how these digests were made last."""
    query = """
        select profile, day, inputs, papers, version
        from digest_sets
        semi join (select unnest($days::date[]) as day, unnest($profiles::varchar[]) as profile) using (day, profile)
    """
    rows = warehouse.rows(query, _key_columns(keys))
    return {
        (profile, day): DigestMade(inputs=inputs, papers=tuple(papers), version=version)
        for profile, day, inputs, papers, version in rows
    }


def keep_digests_made(warehouse: Warehouse, made: Mapping[Key, DigestMade]) -> None:
    """Store how digests were made. Raises StoreBusy."""
    if not made or made == digests_made(warehouse, [*made]):
        return
    rows = [
        {"day": day, "profile": profile, "inputs": each.inputs, "papers": [*each.papers], "version": each.version}
        for (profile, day), each in made.items()
    ]
    with warehouse.writing() as connection:
        connection.register("made", pa.Table.from_pylist(rows, _SCHEMA))
        connection.execute("insert or replace into digest_sets by name select * from made")


_SCHEMA = pa.schema(
    [
        ("day", pa.date32()),
        ("profile", pa.string()),
        ("inputs", pa.string()),
        ("papers", pa.list_(pa.string())),
        ("version", pa.string()),
    ]
)


def _key_columns(keys: Sequence[Key]) -> dict[str, list[object]]:
    return {"days": [day for _, day in keys], "profiles": [profile for profile, _ in keys]}
