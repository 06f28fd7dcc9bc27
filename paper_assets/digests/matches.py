"""Which of a profile's keywords, authors and institutions a paper meets, by name: a reader wants to know whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from paper_assets.paper import Paper, papers_to_table
from paper_assets.profile import ProfileContent
from paper_assets.ranking.dimensions import same_person
from paper_assets.ranking.keywords import BETWEEN_FIELDS, distinct, keywords_in, paper_texts
from paper_assets.text.cleaning import one_line

_MOST = 3  # names in one line; more are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """What of the profile's wishes one paper meets, as the profile writes it; authors as the paper does."""

    keywords: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    institutions: tuple[str, ...] = ()


def matches_of(content: ProfileContent | None, papers: Sequence[Paper]) -> Mapping[str, Matched]:
    """By paper id; without a profile nothing is known to match."""
    if content is None or not papers:
        return {}
    keywords, institutions = distinct(content.keywords.must_include), distinct(content.preferred_institutions)
    found = keywords_in(paper_texts(papers_to_table(papers)), keywords)
    return {
        paper.paper_id: Matched(
            keywords=_where(found[row].tolist(), keywords),
            authors=_followed(paper.authors, content.preferred_authors),
            institutions=_of(paper.affiliations, institutions),
        )
        for row, paper in enumerate(papers)
    }


def listed(names: Sequence[str]) -> str:
    """Names for a line of prose."""
    shown = [one_line(name) for name in names[:_MOST]]
    more = len(names) - len(shown)
    return (
        f"{', '.join(shown)} and {more} more"
        if more
        else " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    )


def _where(found: Sequence[bool], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name, holds in zip(names, found, strict=True) if holds)


def _followed(authors: Sequence[str], preferred: Sequence[str]) -> tuple[str, ...]:
    return (
        _where(np.asarray(same_person(authors, preferred).any(axis=1)).tolist(), authors)
        if authors and preferred
        else ()
    )


def _of(affiliations: Sequence[str], institutions: Sequence[str]) -> tuple[str, ...]:
    if not (affiliations and institutions):
        return ()
    places = pa.chunked_array([pa.array([BETWEEN_FIELDS.join(affiliations)], pa.string())])
    return _where(list(keywords_in(places, institutions)[0]), institutions)
