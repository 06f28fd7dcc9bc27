"""What stands above a paper's text: its title, its authors, and where it and its code can be read."""

from collections.abc import Sequence
from dataclasses import dataclass

from paper_assets.digests.plain_text import web_address
from paper_assets.paper import Paper
from paper_assets.sources.table import html_of, page_of, source_of
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable

_MOST_AUTHORS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    label: str
    url: str


def title_line(title: str, paper_id: str) -> str:
    """The title as a reader sees it; the id of a paper that has none."""
    return readable(one_line(title)) or one_line(paper_id)


def authors_line(names: Sequence[str]) -> str:
    """The first authors, the others counted."""
    known = [name for each in names if (name := one_line(each))]
    if len(known) <= _MOST_AUTHORS:
        return ", ".join(known)
    return f"{', '.join(known[: _MOST_AUTHORS - 1])} and {len(known) - _MOST_AUTHORS + 1} others"


def links_of(paper: Paper) -> tuple[Link, ...]:
    """Where the paper and its code can be read, the page at its source first."""
    source = source_of(paper.paper_id)
    named = (
        (source.title if source else "", page_of(paper.paper_id)),
        ("PDF", paper.pdf_url),
        ("HTML", html_of(paper.paper_id)),
        ("Code", paper.github_url),
    )
    return tuple(Link(label=label, url=url) for label, given in named if (url := web_address(given)))
