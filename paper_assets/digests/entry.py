"""One paper of a list, with all that is said of it there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from paper_assets.digests.comparison import Contrast, contrast_of
from paper_assets.digests.contribution import opening_of
from paper_assets.digests.matches import Matched, listed
from paper_assets.digests.paper_head import Link, authors_line, links_of, title_line
from paper_assets.digests.plain_text import lead
from paper_assets.digests.versions import Version
from paper_assets.paper import Paper
from paper_assets.ranking.explain import as_sum, parts_of, why
from paper_assets.ranking.tags import CONTRASTIVE_IN_WORDS, IN_WORDS, SOFT_PENALTY
from paper_assets.stores.rankings import StoredRanking
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable

_LEAD = 480  # characters of an abstract that are always shown; the rest is folded away
_MOST_TEXT = 4_000  # characters of an abstract; arXiv's own limit is 1,920


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What one dimension (or bonus, or penalty) brought to a score; `name` is the column's, `words` a reader's."""

    name: str
    words: str
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One paper of the list. `lead` says what it does; `rest` goes on, or is the whole abstract where background was
    `skipped` (None: that was all). `tags`: (name, words). `order`: why it stands here where the score does not say it.
    """

    rank: int
    paper_id: str
    title: str
    authors: str
    published: date | None
    categories: tuple[str, ...]
    lead: str
    rest: str | None
    skipped: bool
    links: tuple[Link, ...]
    score: float
    sum: str
    order: str | None
    parts: tuple[Part, ...]
    why: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]
    contrast: Contrast | None
    versions: tuple[Version, ...]


def entry_of(
    row: Mapping[str, Any],
    paper: Paper,
    ranking: StoredRanking,
    places: Mapping[str, int],
    *,
    versions: Sequence[Version],
    matched: Matched,
    order: str | None,
) -> Entry:
    """`row`: the paper's in the ranking; `places`: those of all shown papers by id; `order` as of `order_notes`."""
    header = ranking.header
    opening = opening_of(lead(readable(one_line(paper.abstract)), _MOST_TEXT), _LEAD)
    return Entry(
        rank=row["rank"],
        paper_id=one_line(paper.paper_id),
        title=title_line(paper.title, paper.paper_id),
        authors=authors_line(paper.authors),
        published=paper.day,
        categories=tuple(one_line(category) for category in paper.categories),
        lead=opening.lead,
        rest=opening.rest,
        skipped=opening.skipped,
        links=links_of(paper),
        score=row["final"],
        sum=as_sum(row, header["weights"]),
        order=order,
        parts=tuple(Part(name=name, words=words, points=by) for name, words, by in parts_of(row, header["weights"])),
        why=tuple(one_line(line) for line in why(row, header, scored=ranking.rows.num_rows)),
        tags=_tags(row, matched),
        contrast=contrast_of(header, places) if "CONTRASTIVE_PICK" in row["tags"] else None,
        versions=tuple(versions),
    )


def _tags(row: Mapping[str, Any], matched: Matched) -> tuple[tuple[str, str], ...]:
    """Each tag in words, with the name of the interest, the author, the institution or the keyword that it is about."""
    lane = readable(one_line(row["lane"] or ""))
    named = {
        "SEMANTIC_HIGH_MATCH": lane and f"very close to your interest in {lane}",
        "PREFERRED_AUTHOR": matched.authors and f"by {listed(matched.authors)}, whom you follow",
        "PREFERRED_INSTITUTION": matched.institutions and f"from {listed(matched.institutions)}, which you follow",
        "MUST_KEYWORD_MATCH": matched.keywords and f"your keywords: {listed(matched.keywords)}",
    }
    tags = [(one_line(tag), named.get(tag) or _tag(tag)) for tag in row["tags"]]
    if lane and "SEMANTIC_HIGH_MATCH" not in row["tags"]:
        tags.insert(0, ("LANE", f"nearest to your interest in {lane}"))
    return tuple(tags)


def _tag(tag: str) -> str:
    name, _, keyword = tag.partition(":")
    return f"avoided keyword: {one_line(keyword)}" if name == SOFT_PENALTY else (IN_WORDS | CONTRASTIVE_IN_WORDS)[tag]
