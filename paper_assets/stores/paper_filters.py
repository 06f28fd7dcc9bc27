"""Which stored papers meet the filters of a search: authors, categories, ratings, code and full texts.

Belongs here: filters that need the papers' table, ratings or rankings. Filters on the fields of one document (date,
category, access) are compiled in document_filters.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.words import words_in


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFilters:
    """Conditions that must all hold; an empty one holds for every paper.

    `authors`: all names must match, word by word and from the start of each word, without accents.
    `categories`: any of them, or any of an archive (`stat`). `states` are alternatives for `profile`: its rating
    `worth`, `later` or `no`; `shown` on a list; `unseen`: neither shown nor rated. `ranked_for`: papers that passed
    that profile's filters.
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
        """Whether any condition is set."""
        return self != PaperFilters(profile=self.profile)


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
    where profile = $profile and shown and not coalesce(below_line, false)
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
        or len(list_filter(categories, lambda category: list_contains($categories, category)
            or list_contains($categories, split_part(category, '.', 1)))) > 0
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
        or contains(lower(strip_accents(array_to_string(authors, ' '))), $longest)
        and len(list_filter($authors, lambda wanted: len(list_filter(authors, lambda author: len(list_filter(
            wanted, lambda word: not contains(' ' || replace(lower(strip_accents(author)), '-', ' '), ' ' || word)
        )) = 0)) = 0)) = 0
    )
order by published desc nulls last, paper_id
"""


def matching_papers(warehouse: Warehouse, filters: PaperFilters) -> pa.Array:
    """Ids of the stored papers that meet the filters, newest first, then by id; withdrawn papers never do."""
    authors = [words_in(author) for author in filters.authors]
    longest = max((word for words in authors for word in words), key=len, default="")
    with warehouse.reading() as connection:
        found = connection.sql(
            _SQL,
            params={
                "profile": filters.profile,
                "first": filters.first,
                "last": filters.last,
                "categories": list(filters.categories),
                "has_code": filters.has_code,
                "has_pdf": filters.has_pdf,
                "ranked_for": filters.ranked_for,
                "states": list(filters.states),
                "authors": authors,
                "longest": longest,
            },
        ).to_arrow_table()
    return found["paper_id"].combine_chunks()
