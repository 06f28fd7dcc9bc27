"""The table of papers, one row per paper id, its newest known version: read by day, by id, by title."""

from collections.abc import Sequence
from datetime import date

import numpy as np
import pyarrow as pa

from paper_assets.paper import Paper, paper_schema, papers_from_table
from paper_assets.paper_id import unversioned
from paper_assets.stores.warehouse import Warehouse, value_of


def papers_between(
    warehouse: Warehouse, first: date | None, last: date | None, *, categories: Sequence[str] | None = None
) -> pa.Table:
    """Papers of the days first..last (None: open; both None: undated ones too), ordered by id, `paper_schema()`.

    With `categories`, those that carry any of them.
    """
    found = columns_between(warehouse, first, last, paper_schema().names, categories=categories)
    return found.cast(paper_schema())


def columns_between(
    warehouse: Warehouse,
    first: date | None,
    last: date | None,
    columns: Sequence[str],
    *,
    categories: Sequence[str] | None = None,
) -> pa.Table:
    """Only these columns of the papers that `papers_between` gives."""
    with warehouse.reading() as connection:
        found = connection.sql(
            """
            from papers
            where ($first::date is null or day >= $first)
                and ($last::date is null or day <= $last)
                and ($categories::varchar[] is null or list_has_any(categories, $categories))
            order by paper_id
            """,
            params={"first": first, "last": last, "categories": None if categories is None else list(categories)},
        )
        return found.select(*columns).to_arrow_table()


def papers_by_id(warehouse: Warehouse, ids: Sequence[str]) -> pa.Table:
    """The papers with these ids in the order of `ids`; unknown ones are left out. Columns of `paper_schema()`."""
    wanted = pa.table({"paper_id": pa.array(ids, pa.string()), "position": np.arange(len(ids))})
    with warehouse.reading() as connection:
        connection.register("wanted", wanted)
        found = connection.sql(
            """
            select papers.* exclude (day, text_hash, content_hash, origin)
            from papers
            join wanted using (paper_id)
            order by position
            """
        )
        return found.to_arrow_table().cast(paper_schema())


def submission_days(warehouse: Warehouse, ids: Sequence[str]) -> dict[str, date]:
    """The day of first submission of those of the papers that are stored and dated."""
    wanted = pa.table({"paper_id": pa.array(ids, pa.string())})
    with warehouse.reading() as connection:
        connection.register("wanted", wanted)
        rows = connection.execute(
            "select paper_id, day from papers join wanted using (paper_id) where day is not null"
        ).fetchall()
    return dict(rows)


def find_paper(warehouse: Warehouse, paper_id: str) -> Paper | None:
    """The paper with this id, given with or without version."""
    found = papers_from_table(papers_by_id(warehouse, [unversioned(paper_id)]))
    return found[0] if found else None


def paper_titled(warehouse: Warehouse, title: str) -> Paper | None:
    """The paper whose title has the same letters and digits, whatever lies between them; the newest of several."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            r"""
            select paper_id
            from papers
            where regexp_replace(lower(title), '[^\p{L}\p{N}]', '', 'g')
                = regexp_replace(lower($title), '[^\p{L}\p{N}]', '', 'g')
            order by published desc nulls last, paper_id
            limit 1
            """,
            {"title": title},
        ).fetchall()
    return find_paper(warehouse, rows[0][0]) if rows else None


def papers_with_words(warehouse: Warehouse, words: Sequence[str], *, most: int) -> list[tuple[str, str]]:
    """(id, title) of the newest papers whose title holds every one of the words, in any case and without accents."""
    with warehouse.reading() as connection:
        rows: list[tuple[str, str]] = connection.execute(
            """
            select paper_id, title
            from papers
            where len(list_filter($words, lambda word: not contains(lower(strip_accents(title)), word))) = 0
            order by published desc nulls last, paper_id
            limit $most
            """,
            {"words": [word.lower() for word in words], "most": most},
        ).fetchall()
    return rows


def paper_counts(warehouse: Warehouse) -> dict[date, int]:
    """Number of papers of every day that has any, in ascending order."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select day, count(*) from papers where day is not null group by day order by day"
        ).fetchall()
    return dict(rows)


def latest_day(warehouse: Warehouse, *, until: date | None = None) -> date | None:
    """The newest day that has papers, not after `until`."""
    with warehouse.reading() as connection:
        newest: date | None = value_of(
            connection, "select max(day) from papers where $until::date is null or day <= $until", {"until": until}
        )
    return newest


def day_fingerprints(warehouse: Warehouse, first: date | None, last: date | None) -> dict[date, str]:
    """A hash of the content of every day with papers; equal papers give equal hashes, however they came in."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select day, sha256(string_agg(content_hash, ',' order by content_hash))[:32]
            from papers
            where day is not null and ($first::date is null or day >= $first) and ($last::date is null or day <= $last)
            group by day
            order by day
            """,
            {"first": first, "last": last},
        ).fetchall()
    return dict(rows)
