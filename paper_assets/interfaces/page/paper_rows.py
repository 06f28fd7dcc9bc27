"""Show stored papers as rows: in search results, on the shelf and among similar papers in the same way."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from paper_assets.digests.entry import PaperLink, links_of
from paper_assets.interfaces.page.desk import Desk, may_see, profile_of
from paper_assets.interfaces.page.display import readable_title, with_mathml, with_parts
from paper_assets.learning.ratings import ratings_by_id
from paper_assets.paper import Paper, papers_from_table
from paper_assets.retrieval.desk_search import FoundPaper, Hit
from paper_assets.retrieval.search import Corpus, open_corpus
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.abstracts import key_sentence
from paper_assets.text.cleaning import one_line

CHOICES = (("worth", "Worth reading", "w"), ("later", "Later", "l"), ("no", "Not for me", "n"))
_MOST_AUTHORS = 8  # in a row; the paper's own page names all


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRow:
    """A paper in a list. `name` is its title as plain text; title, sentence and abstract have MathML and marks.

    `sentence` fits the search best, or can be read alone. Without a comparison there is no `score`.
    """

    paper_id: str
    name: str
    title: Markup
    authors: tuple[str, ...]
    more_authors: int
    published: date | None
    categories: tuple[str, ...]
    sentence: Markup
    abstract: Markup
    links: tuple[PaperLink, ...]
    score: float | None = None


def reader_of(request: Request) -> str | None:
    """Return the profile in the address; None in a view without one. Raises PaperNotFound."""
    return profile_of(request) if "profile" in request.path_params else None


def in_only_profile(request: Request, desk: Desk) -> Response | None:
    """Redirect a view without a profile to the only one that the reader may see; None where there are several."""
    if "profile" in request.path_params or not desk.settings.profiles_dir.is_dir():
        return None
    names = [name for name in desk.profiles() if may_see(request, name)]
    address = f"{request.url.path}?{request.url.query}"
    return RedirectResponse(f"/p/{names[0]}{address}", status_code=303) if len(names) == 1 else None


def base_of(profile: str | None) -> str:
    """Return the start of the addresses of a profile's views; empty without a profile."""
    return f"/p/{profile}" if profile else ""


def corpus_of(desk: Desk) -> Corpus:
    """Return what searches need; without an embedding model only words are compared.

    A search opens the warehouse itself, so it may not run inside `desk.read_together`.
    """
    return open_corpus(desk.settings, desk.workspace.warehouse, desk.workspace.embedder())


def rated_by(desk: Desk, profile: str | None) -> dict[str, str]:
    """Return the profile's ratings by paper id; none without a profile."""
    return ratings_by_id(desk.warehouse, profile) if profile else {}


def stored_papers(desk: Desk, ids: Sequence[str]) -> list[Paper]:
    """Return the stored papers with these ids, in the order of `ids`."""
    return list(papers_from_table(papers_by_id(desk.warehouse, list(ids))))


def titles_of(warehouse: Warehouse, ids: Iterable[str]) -> dict[str, str]:
    """Return by id the titles of the papers that are stored."""
    rows = papers_by_id(warehouse, list(dict.fromkeys(ids))).select(["paper_id", "title"]).to_pylist()
    return {row["paper_id"]: readable_title(row["title"]) for row in rows}


def row_of(paper: Paper, *, hit: FoundPaper | None = None) -> PaperRow:
    """Return the row of a paper; `hit` is what a search says of it."""
    hits = hit.hits if hit else ()
    abstract = one_line(paper.abstract) if not hit else hit.abstract
    sentence = hit.passage if hit else key_sentence(abstract)
    words = {hit.text for hit in hits}
    return PaperRow(
        paper_id=paper.paper_id,
        name=readable_title(paper.title) or paper.paper_id,
        title=with_mathml(hit.title if hit else one_line(paper.title) or paper.paper_id, _spans(hits, "title")),
        authors=tuple(one_line(name) for name in paper.authors[:_MOST_AUTHORS]),
        more_authors=max(len(paper.authors) - _MOST_AUTHORS, 0),
        published=paper.day,
        categories=paper.categories,
        sentence=with_mathml(sentence, spans_of_words(sentence, words)),
        abstract=with_mathml(abstract, _spans(hits, "abstract")) if hits else with_parts(abstract),
        links=links_of(paper),
        score=hit.score if hit else None,
    )


def rows_found(desk: Desk, papers: Iterable[FoundPaper]) -> list[PaperRow]:
    """Return the rows of a search's papers, in its order."""
    by_id = {paper_found.paper_id: paper_found for paper_found in papers}
    return [row_of(paper, hit=by_id[paper.paper_id]) for paper in stored_papers(desk, list(by_id))]


def spans_of_words(text: str, words: Iterable[str]) -> list[tuple[int, int]]:
    """Return where any of the words occur in a text, as whole words."""
    marked = set(words)
    spans, start = [], None
    for position, letter in enumerate(f"{text} "):
        if letter.isalnum():
            start = position if start is None else start
        elif start is not None:
            if text[start:position] in marked:
                spans.append((start, position))
            start = None
    return spans


def _spans(hits: Iterable[Hit], field: str) -> list[tuple[int, int]]:
    return [(hit.start, hit.end) for hit in hits if hit.field == field]
