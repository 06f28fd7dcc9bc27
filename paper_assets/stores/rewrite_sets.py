"""Which rewrites a profile's day asks for, best paper first."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from paper_assets.stores.rewrite_progress import begin
from paper_assets.stores.rewrites import NewItem, RewriteItem, no_such_rewrite, read_items
from paper_assets.stores.warehouse import Warehouse, value_of


def replace_set(warehouse: Warehouse, day: date, profile: str, items: Sequence[NewItem], *, now: datetime) -> bool:
    """Say which rewrites the profile's day asks for, best paper first, and begin those that are not there yet.

    False if it was so already.
    """
    key, names = {"day": day, "profile": profile}, [item.item for item in items]
    if items_of(warehouse, day, profile) == names:
        return False
    with warehouse.writing() as connection:
        if items:
            begin(connection, items, now=now)
        connection.execute("delete from rewrite_sets where day = $day and profile = $profile", key)
        connection.execute("insert into rewrite_sets values ($day, $profile, $items)", {**key, "items": names})
    return True


def items_of(warehouse: Warehouse, day: date, profile: str) -> list[str] | None:
    """The rewrites that the profile's day asks for; None if it was never asked."""
    with warehouse.reading() as connection:
        found: list[str] | None = value_of(
            connection, "select items from rewrite_sets where day = ? and profile = ?", [day, profile]
        )
    return found


def rewrites_of(warehouse: Warehouse, *, profile: str, day: date | None = None) -> list[RewriteItem]:
    """What a profile asked for on `day` (None: on any), in the order of the ranking, newest day first; each once."""
    with warehouse.reading() as connection:
        sets = connection.execute(
            """
            select items
            from rewrite_sets
            where profile = $profile and ($day::date is null or day = $day)
            order by day desc
            """,
            {"profile": profile, "day": day},
        ).fetchall()
        return read_items(connection, dict.fromkeys(item for (items,) in sets for item in items))


def rewrite_asked_for(warehouse: Warehouse, item: str, profile: str) -> RewriteItem:
    """One item, if the profile asked for it. Raises NotComputed."""
    for each in rewrites_of(warehouse, profile=profile):
        if each.item == item:
            return each
    raise no_such_rewrite(item)


def papers_asked_for(warehouse: Warehouse, profiles: Iterable[str]) -> set[tuple[str, str]]:
    """Paper and level of every rewrite that one of these profiles asked for."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select distinct paper_id, target_level
            from rewrite_items
            where item in (
                select unnest(items) from rewrite_sets where profile in (select unnest($profiles::varchar[]))
            )
            """,
            {"profiles": sorted(profiles)},
        ).fetchall()
    return {(paper_id, level) for paper_id, level in rows}
