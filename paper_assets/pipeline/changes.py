"""Compare two stored rankings of a profile, with every cause that the stores know."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import date, timedelta
from hashlib import sha256
from typing import Any

import pyarrow as pa

from paper_assets.errors import NotComputed, NothingEarlier
from paper_assets.profile import Profile
from paper_assets.ranking.changes import Changes, changes_between
from paper_assets.ranking.two_rankings import profile_edits
from paper_assets.stores.papers import submission_days
from paper_assets.stores.profiles import profile_version
from paper_assets.stores.rankings import StoredRanking, candidates, latest_ranking_day, previous_ranking, ranking
from paper_assets.stores.warehouse import Warehouse

# Comparisons by a hash of their inputs: a page shows the same one at each opening, and computing it takes 0.1 s.
_COMPARED: dict[bytes, Changes] = {}
_MOST_COMPARED = 128


def changes_of(
    warehouse: Warehouse, profile: str, day: date, *, before: date | None = None, edit: bool = False
) -> Changes:
    """Compare a profile's list of a day with that of `before` (None: the ranked day before), or with `edit` the ranking
    of the same day that an edit or new papers replaced.

    Raises NotComputed if there is nothing to compare with.
    """
    after = ranking(warehouse, day, profile)
    if edit:
        earlier = previous_ranking(warehouse, day, profile)
    else:
        before = before or latest_ranking_day(warehouse, profile, until=day - timedelta(days=1))
        if before is None:
            raise NothingEarlier(f"profile {profile!r} has no ranking before {day}; nothing to compare")
        earlier = ranking(warehouse, before, profile)
    return changes_since(warehouse, earlier, after)


def changes_since(
    warehouse: Warehouse,
    earlier: StoredRanking,
    after: StoredRanking,
    *,
    judged: pa.Table | None = None,
    profile: Profile | None = None,
) -> Changes:
    """Compare a ranking with a later one of the same profile, with all that is known of the causes.

    `judged` and `profile` are those of the later one if it is not stored. The reasons for removals are not kept for a
    ranking that was replaced on its own day.
    """
    ids = {each for stored in (earlier, after) for each in stored.rows.column("paper_id").to_pylist()}
    contents = [
        profile_version(warehouse, after.profile, stored.header.get("profile_hash") or "")
        for stored in (earlier, after)
    ]
    causes: dict[str, Any] = {
        "headers": (earlier.header, after.header),
        "removed": (_removed(warehouse, after) or {}) if judged is None else _reasons(judged),
        "removed_before": _removed(warehouse, earlier) if earlier.day != after.day else None,
        "days": submission_days(warehouse, sorted(ids)),
        "edits": profile_edits(contents[0], profile or contents[1]),
    }
    key = _content_hash(earlier.rows, after.rows, causes)
    found = _COMPARED.get(key)
    if found is None:
        found = _COMPARED[key] = changes_between(earlier.rows, after.rows, **causes)
        while len(_COMPARED) > _MOST_COMPARED:
            with suppress(StopIteration, KeyError, RuntimeError):  # another thread may remove one at the same time
                del _COMPARED[next(iter(_COMPARED))]
    return found


def _content_hash(before: pa.Table, after: pa.Table, causes: Mapping[str, Any]) -> bytes:
    """Hash all that a comparison depends on."""
    made = sha256(repr(causes).encode())
    for table in (before, after):
        written = pa.BufferOutputStream()
        with pa.ipc.new_stream(written, table.schema) as stream:
            stream.write_table(table)
        made.update(written.getvalue())
    return made.digest()


def _removed(warehouse: Warehouse, stored: StoredRanking) -> dict[str, str] | None:
    """Return the filter reasons of the ranking's day by paper id; None if they are not stored."""
    try:
        return _reasons(candidates(warehouse, stored.day, stored.profile))
    except NotComputed:
        return None


def _reasons(judged: pa.Table) -> dict[str, str]:
    removed = judged.filter(judged.column("reason").is_valid())
    return dict(zip(removed.column("paper_id").to_pylist(), removed.column("reason").to_pylist(), strict=True))
