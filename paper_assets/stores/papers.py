"""Query the table of papers: one row per paper id, its newest known version; by day, id, title or filter.

`PaperFilters` are the filters that need the papers' table, ratings or rankings. Filters on the fields of one document
(date, category, access) are compiled in documents.py. `summary` counts the warehouse's content for status pages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import numpy as np
import pyarrow as pa

from paper_assets.paper import Paper, paper_schema, papers_from_table
from paper_assets.paper_id import unversioned
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.words import words_in


def papers_between(
    warehouse: Warehouse, first: date | None, last: date | None, *, categories: Sequence[str] | None = None
) -> pa.Table:
    """Return the papers of the days first..last (None: open; both None: undated ones too), by id, `paper_schema()`.

    With `categories`, only those in any of them.
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
    """Return only these columns of the papers of `papers_between`."""
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
    """Return the papers with these ids in the order of `ids`; unknown ones are omitted. Columns of `paper_schema()`."""
    requested = pa.table({"paper_id": pa.array(ids, pa.string()), "position": np.arange(len(ids))})
    with warehouse.reading() as connection:
        connection.register("requested", requested)
        # Ids first, then whole rows by their place: joined at once, the texts of all papers are read for ten of them.
        found = connection.sql(
            """
            with places as materialized (
                select papers.rowid as place, position
                from papers
                join requested using (paper_id)
            )
            select papers.* exclude (day, text_hash, content_hash, origin)
            from papers
            join places on papers.rowid = place
            order by position
            """
        )
        return found.to_arrow_table().cast(paper_schema())


def find_paper(warehouse: Warehouse, paper_id: str) -> Paper | None:
    """Return the paper with this id, given with or without version."""
    papers = papers_from_table(papers_by_id(warehouse, [unversioned(paper_id)]))
    return papers[0] if papers else None


def paper_titled(warehouse: Warehouse, title: str) -> Paper | None:
    """Return the paper whose title has the same letters and digits, ignoring everything else; the newest of several."""
    found = papers_with_titles(warehouse, [title])
    return find_paper(warehouse, found[title]) if found else None


def papers_with_titles(warehouse: Warehouse, titles: Sequence[str]) -> dict[str, str]:
    """Map each title that a stored paper has, compared as in `paper_titled`, to the id of that paper."""
    rows = warehouse.rows(
        r"""
        with asked as (
            select title, regexp_replace(lower(title), '[^\p{L}\p{N}]', '', 'g') as letters
            from unnest($titles::varchar[]) as given (title)
        ),
        stored as (
            select paper_id, published, regexp_replace(lower(title), '[^\p{L}\p{N}]', '', 'g') as letters
            from papers
        )
        select asked.title, first(stored.paper_id order by stored.published desc nulls last, stored.paper_id)
        from asked
        join stored using (letters)
        group by all
        """,
        {"titles": list(titles)},
    )
    return dict(rows)


def papers_with_dois(warehouse: Warehouse, dois: Sequence[str]) -> dict[str, str]:
    """Map the DOIs that stored papers have, in lower case, to the ids of these papers."""
    rows = warehouse.rows(
        "select lower(doi), min(paper_id) from papers where lower(doi) in (select unnest($dois)) group by all",
        {"dois": [doi.lower() for doi in dois]},
    )
    return dict(rows)


def papers_with_words(warehouse: Warehouse, words: Sequence[str], *, most: int) -> list[tuple[str, str]]:
    """Return (id, title) of the newest papers whose title contains all the words, ignoring case and accents."""
    return warehouse.rows(
        """
        select paper_id, title
        from papers
        where len(list_filter($words, lambda word: not contains(lower(strip_accents(title)), word))) = 0
        order by published desc nulls last, paper_id
        limit $most
        """,
        {"words": [word.lower() for word in words], "most": most},
    )


def paper_counts(warehouse: Warehouse) -> dict[date, int]:
    """Return the number of papers of every day that has any, in ascending order."""
    return dict(warehouse.rows("select day, count(*) from papers where day is not null group by day order by day"))


def latest_day(warehouse: Warehouse, *, until: date | None = None) -> date | None:
    """Return the newest day with papers, not after `until`."""
    return warehouse.value("select max(day) from papers where $until::date is null or day <= $until", {"until": until})


def day_fingerprints(warehouse: Warehouse, first: date | None, last: date | None) -> Mapping[date, str]:
    """Return a hash of the content of every day with papers; equal papers give equal hashes, whatever their origin."""
    return warehouse.once(("day_fingerprints", first, last), lambda: _day_fingerprints(warehouse, first, last))


def _day_fingerprints(warehouse: Warehouse, first: date | None, last: date | None) -> dict[date, str]:
    rows = warehouse.rows(
        """
        select day, sha256(string_agg(content_hash, ',' order by content_hash))[:32]
        from papers
        where day is not null and ($first::date is null or day >= $first) and ($last::date is null or day <= $last)
        group by day
        order by day
        """,
        {"first": first, "last": last},
    )
    return dict(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFilters:
    """Define conditions that must all hold; an empty one matches every paper.

    `authors`: all names must match, word by word and from the start of each word, without accents. `categories`: any of
    them, or any of an archive (`stat`). `states` are alternatives for `profile`: its rating `worth`, `later` or `no`;
    `shown` on a list; `unseen`: neither shown nor rated. `ranked_for`: papers that passed that profile's filters.
    """

    authors: Sequence[str] = ()
    categories: Sequence[str] = ()
    first: date | None = None
    last: date | None = None
    states: Sequence[str] = ()
    profile: str | None = None
    has_code: bool = False
    has_pdf: bool = False
    ranked_for: str | None = None

    @property
    def restrict(self) -> bool:
        """Return whether any condition is set."""
        return self != PaperFilters(profile=self.profile)


# The words of a name as `text.words.words_in` has them: letters without case and accents, other signs one space.
_FOLDED_NAME = r"""
create or replace temp macro folded_name(name) as regexp_replace(translate(
    replace(replace(replace(replace(strip_accents(lower(name)), 'ß', 'ss'), 'æ', 'ae'), 'œ', 'oe'), 'þ', 'th'),
    'øłđðħı', 'olddhi'
), '[^\p{L}\p{N}]+', ' ', 'g')
"""

_SQL = r"""
with
rated as (
    select paper_id, arg_max(rating, place) as rating
    from ratings
    where profile = $profile
    group by paper_id
),
shown as (
    select distinct paper_id
    from rankings
    where profile = $profile and shown
),
with_text as (
    select distinct paper_id
    from documents
    where data_type = 'fulltext' and (access_level = 'public' or owner = $profile)
)
select paper_id
from papers
left join rated using (paper_id)
where not withdrawn
    and ($first::date is null or day >= $first)
    and ($last::date is null or day <= $last)
    and (
        len($categories) = 0
        or len(list_filter(categories, lambda category: list_contains($categories, lower(category))
            or list_contains($categories, lower(split_part(category, '.', 1))))) > 0
    )
    and (not $has_code or github_url is not null)
    and (not $has_pdf or paper_id in (select paper_id from with_text))
    and (
        $ranked_for::varchar is null
        or paper_id in (select paper_id from candidates where profile = $ranked_for and passed)
    )
    and (
        len($states) = 0
        or list_contains($states, coalesce(rated.rating, 'none'))
        or (list_contains($states, 'shown') and paper_id in (select paper_id from shown))
        or (
            list_contains($states, 'unseen')
            and coalesce(rated.rating, 'none') = 'none'
            and paper_id not in (select paper_id from shown)
        )
    )
    and (
        len($authors) = 0
        -- Folding every name takes most of the time: names in ASCII are compared in lower case first.
        or (
            contains(lower(array_to_string(authors, ' ')), $longest)
            or strlen(array_to_string(authors, '')) > length(array_to_string(authors, ''))
        )
        and len(list_filter($authors, lambda name: len(list_filter(authors, lambda author: len(list_filter(
            name, lambda word: not contains(' ' || folded_name(author), ' ' || word)
        )) = 0)) = 0)) = 0
    )
order by published desc nulls last, paper_id
"""


def matching_papers(warehouse: Warehouse, filters: PaperFilters) -> pa.Array:
    """Return ids of the stored papers that match the filters, newest first, then by id; never withdrawn papers."""
    authors = [words_in(author) for author in filters.authors]
    longest = max((word for words in authors for word in words), key=len, default="")
    with warehouse.reading() as connection:
        connection.execute(_FOLDED_NAME)
        found = connection.sql(
            _SQL,
            params={
                "profile": filters.profile,
                "first": filters.first,
                "last": filters.last,
                "categories": [category.lower() for category in filters.categories],
                "has_code": filters.has_code,
                "has_pdf": filters.has_pdf,
                "ranked_for": filters.ranked_for,
                "states": list(filters.states),
                "authors": authors,
                "longest": longest,
            },
        ).to_arrow_table()
    return found["paper_id"].combine_chunks()


def unknown_categories(warehouse: Warehouse, categories: Sequence[str]) -> list[str]:
    """Return those that no stored paper has; an archive (`stat`) counts as known with any of its categories."""
    return warehouse.column(
        """
        with known as (select distinct lower(unnest(categories)) as category from papers)
        select asked
        from unnest($asked::varchar[]) as given (asked)
        where not exists (
            from known where category = lower(asked) or starts_with(category, lower(asked) || '.')
        )
        """,
        {"asked": list(categories)},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Report the warehouse's content: papers (`undated`: of no known day), those with a vector by model, rankings by
    profile.
    """

    papers: int
    undated: int
    days: int
    first_day: date | None
    last_day: date | None
    vectors: dict[str, int]
    rankings: dict[str, int]
    last_ranking: dict[str, date]


def summary(warehouse: Warehouse) -> Summary:
    """Return counts for a status line."""
    with warehouse.reading() as connection:
        [(papers, undated, days, first_day, last_day)] = connection.execute(
            "select count(*), count(*) - count(day), count(distinct day), min(day), max(day) from papers"
        ).fetchall()
        vectors = connection.execute(
            "select model, count(*) from papers join embeddings using (text_hash) group by model order by model"
        ).fetchall()
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
