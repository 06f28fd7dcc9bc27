"""The whole text of a paper that anybody may read, as its public passages in `documents` hold it (SPEC R1, M3)."""

from dataclasses import dataclass

from paper_assets.stores.warehouse import Warehouse

PARTED_BY = "\n\n"  # what stands between two passages of a text put together again


@dataclass(frozen=True, slots=True, kw_only=True)
class Fulltext:
    """A paper's text in one version."""

    version: int
    text: str


def public_fulltext(warehouse: Warehouse, paper_id: str) -> Fulltext | None:
    """The text kept of a paper; passages of somebody's own PDF of it are not looked at."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select version, string_agg(text, $between order by place)
            from documents
            where data_type = 'fulltext' and access_level = 'public' and origin = $origin
            group by version
            order by version desc
            """,
            {"origin": f"paper:{paper_id}", "between": PARTED_BY},
        ).fetchall()
    return Fulltext(version=rows[0][0], text=rows[0][1]) if rows else None
