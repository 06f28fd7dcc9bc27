"""Compare two stored rankings of a profile."""

from collections.abc import Sequence
from datetime import date, timedelta

import pyarrow as pa

from paper_assets.errors import NotComputed, NothingEarlier
from paper_assets.profile import Profile
from paper_assets.ranking.changes import Changes, changes_between, profile_edits
from paper_assets.stores.profiles import profile_version
from paper_assets.stores.rankings import StoredRanking, candidates, latest_ranking_day, previous_ranking, ranking
from paper_assets.stores.warehouse import Key, Warehouse


def days_before(warehouse: Warehouse, keys: Sequence[Key]) -> list[Key]:
    """Return, for profiles' days, the ranked days before them with which their lists are compared."""
    ranked = [(profile, latest_ranking_day(warehouse, profile, until=day - timedelta(days=1))) for profile, day in keys]
    return [(profile, before) for profile, before in ranked if before is not None]


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
        earlier_days = [(profile, before)] if before else days_before(warehouse, [(profile, day)])
        if not earlier_days:
            raise NothingEarlier(f"profile {profile!r} has no ranking before {day}; nothing to compare")
        earlier = ranking(warehouse, earlier_days[0][1], profile)
    return changes_since(warehouse, earlier, after)


def changes_since(
    warehouse: Warehouse,
    earlier: StoredRanking,
    after: StoredRanking,
    *,
    judged: pa.Table | None = None,
    profile: Profile | None = None,
) -> Changes:
    """Compare a ranking with a later one of the same profile.

    `judged` (the later one's candidates) and `profile` are needed if the later one is not stored.
    """
    contents = [
        profile_version(warehouse, after.profile, stored.header.get("profile_hash") or "")
        for stored in (earlier, after)
    ]
    return changes_between(
        earlier.rows,
        after.rows,
        headers=(earlier.header, after.header),
        removed=_removed(warehouse, after) if judged is None else _reasons(judged),
        edits=profile_edits(contents[0], profile or contents[1]),
    )


def _removed(warehouse: Warehouse, stored: StoredRanking) -> dict[str, str]:
    """Return the filter reasons of the ranking's day by paper id; empty if they are not stored."""
    try:
        return _reasons(candidates(warehouse, stored.day, stored.profile))
    except NotComputed:
        return {}


def _reasons(judged: pa.Table) -> dict[str, str]:
    removed = judged.filter(judged.column("reason").is_valid())
    return dict(zip(removed.column("paper_id").to_pylist(), removed.column("reason").to_pylist(), strict=True))
