"""What the warehouse holds, in numbers, for a status line."""

from dataclasses import dataclass
from datetime import date

from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What the warehouse holds: papers (`undated`: of unknown day), vectors by model, rankings by profile."""

    papers: int
    undated: int
    days: int
    first_day: date | None
    last_day: date | None
    vectors: dict[str, int]
    rankings: dict[str, int]
    last_ranking: dict[str, date]


def summary(warehouse: Warehouse) -> Summary:
    """Counts for a status line."""
    with warehouse.reading() as connection:
        [(papers, undated, days, first_day, last_day)] = connection.execute(
            "select count(*), count(*) - count(day), count(distinct day), min(day), max(day) from papers"
        ).fetchall()
        vectors = connection.execute("select model, count(*) from embeddings group by model order by model").fetchall()
        rankings = connection.execute(
            "select profile, count(*), max(day) from ranking_sets group by profile order by profile"
        ).fetchall()
    return Summary(
        papers=papers,
        undated=undated,
        days=days,
        first_day=first_day,
        last_day=last_day,
        vectors=dict(vectors),
        rankings={profile: count for profile, count, _ in rankings},
        last_ranking={profile: last for profile, _, last in rankings},
    )
