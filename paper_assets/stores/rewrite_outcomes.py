"""What has come of finished rewrites, with and without examples shown."""

from dataclasses import dataclass

from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcomes:
    """Finished rewrites of one kind: how many, and the means of the kept score and of the attempts it took."""

    rewrites: int
    score: float
    attempts: float


def attempts_by_examples(warehouse: Warehouse) -> dict[bool, Outcomes]:
    """Finished rewrites whose attempts were shown examples (True), and those whose were not; as it came about."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            with finished as (
                select
                    item,
                    max(len(examples)) > 0 as shown,
                    max(score) filter (attempt = kept) as score,
                    count(*) as attempts
                from rewrite_items
                join rewrite_attempts using (item)
                where kept is not null
                group by item
            )
            select shown, count(*), avg(score), avg(attempts)
            from finished
            group by shown
            """
        ).fetchall()
    return {shown: Outcomes(rewrites=count, score=score, attempts=attempts) for shown, count, score, attempts in rows}
