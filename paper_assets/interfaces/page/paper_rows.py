"""Show papers as rows to decide by: on Today, in search results and on the shelf in the same way."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from paper_assets.digests.entry import PaperLink, links_of
from paper_assets.interfaces.page.desk import Desk, may_see, profile_of
from paper_assets.interfaces.page.display import readable_title, with_mathml, with_parts
from paper_assets.learning.ratings import ratings_by_id
from paper_assets.paper import Paper, papers_from_table
from paper_assets.retrieval.desk_search import FoundPaper
from paper_assets.retrieval.search import Corpus, open_corpus
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse
from paper_assets.stores.word_index import words_of_many
from paper_assets.text.abstracts import result_sentence
from paper_assets.text.cleaning import one_line
from paper_assets.text.words import stem, stems_in, words_in

_MOST_AUTHORS = 8  # in an open row; the paper's own page names all
_NAMED_AUTHORS = 3  # in a closed row
_LONGEST_SENTENCE = 120  # characters
Stems = Mapping[str, bool]  # of an interest, and whether each is specific
_SUFFIXES = {"jr", "jr.", "sr", "sr.", "ii", "iii", "iv"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperRow:
    """A paper in a list. `name` is its title as plain text; title, sentence and abstract have MathML and marks.

    `sentence` fits the search best, or states the result. `byline` has the family names of the first and the last
    author. `interest`: the one that the paper serves; `level` and `dots`: how likely the paper is on topic. `score`:
    how similar it is to what was searched for.
    """

    paper_id: str
    name: str
    title: Markup
    byline: str
    authors: tuple[str, ...]
    more_authors: int
    published: date | None
    categories: tuple[str, ...]
    sentence: Markup
    abstract: Markup
    links: tuple[PaperLink, ...]
    has_code: bool
    rank: int | None = None
    interest: str = ""
    level: str = ""
    dots: int = 0
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


def telling_stems(warehouse: Warehouse, interests: Iterable[str]) -> dict[str, Stems]:
    """Return for each interest its stems, and whether each is specific: "models", which many stored papers have,
    is marked beside a telling word only.
    """
    words = {interest: words_in(interest) for interest in {*interests}}
    with warehouse.reading() as connection:
        usual = words_of_many(connection, sorted({word for found in words.values() for word in found}))
    telling = {
        interest: set(stems_in(" ".join(word for word in found if word not in usual)))
        for interest, found in words.items()
    }
    return {interest: {each: each in telling[interest] for each in stems_in(interest)} for interest in words}


def row_of(
    paper: Paper, *, hit: FoundPaper | None = None, about: Mapping[str, bool] = MappingProxyType({})
) -> PaperRow:
    """Return the row of a paper; `hit` is what a search says of it, `about` the stems of an interest, to be marked."""
    hits = hit.hits if hit else ()
    title = hit.title if hit else one_line(paper.title) or paper.paper_id
    abstract = hit.abstract if hit else one_line(paper.abstract)
    sentence = hit.passage if hit else result_sentence(abstract, _LONGEST_SENTENCE)
    found = {each.text for each in hits}

    def marked(text: str, field: str) -> list[tuple[int, int]]:
        if hit:
            return [(each.start, each.end) for each in hits if each.field == field]
        return spans_about(text, about)

    return PaperRow(
        paper_id=paper.paper_id,
        name=readable_title(paper.title) or paper.paper_id,
        title=with_mathml(title, marked(title, "title")),
        byline=byline(paper.authors),
        authors=tuple(one_line(name) for name in paper.authors[:_MOST_AUTHORS]),
        more_authors=max(len(paper.authors) - _MOST_AUTHORS, 0),
        published=paper.day,
        categories=paper.categories,
        sentence=with_mathml(sentence, spans_of_words(sentence, found.__contains__)),
        abstract=with_parts(abstract, marked(abstract, "abstract")),
        links=links_of(paper),
        has_code=bool(paper.github_url),
        score=hit.score if hit else None,
    )


def byline(names: Sequence[str]) -> str:
    """Name the authors by their family names: "Li, Wang, … Luo (9)"."""
    families = [family_name(name) for name in names if any(map(str.isalpha, name))]  # ":" follows a collaboration
    if len(families) <= _NAMED_AUTHORS:
        return ", ".join(families)
    return f"{', '.join(families[: _NAMED_AUTHORS - 1])}, … {families[-1]} ({len(families)})"


def family_name(name: str) -> str:
    """Return the family name of "Ashish van der Vaswani Jr." or "Vaswani, Ashish", with its particles."""
    before, comma, _ = one_line(name).partition(",")
    words = before.split()
    if comma or not words:
        return before
    while len(words) > 1 and words[-1].lower() in _SUFFIXES:
        words.pop()
    first = len(words) - 1
    while first > 1 and words[first - 1].islower():
        first -= 1
    return " ".join(words[first:])


def rows_found(desk: Desk, papers: Iterable[FoundPaper]) -> list[PaperRow]:
    """Return the rows of a search's papers, in its order."""
    by_id = {paper_found.paper_id: paper_found for paper_found in papers}
    return [row_of(paper, hit=by_id[paper.paper_id]) for paper in stored_papers(desk, list(by_id))]


def spans_about(text: str, about: Stems) -> list[tuple[int, int]]:
    """Return where the words of a text are that have one of the stems, in groups of neighbours with a telling one."""
    groups: list[list[tuple[int, int]]] = []
    for span in spans_of_words(text, lambda word: stem(word.lower()) in about) if about else ():
        if groups and text[groups[-1][-1][1] : span[0]] in (" ", "-"):
            groups[-1].append(span)
        else:
            groups.append([span])
    return [
        span for group in groups if any(about[stem(text[slice(*each)].lower())] for each in group) for span in group
    ]


def spans_of_words(text: str, is_marked: Callable[[str], bool]) -> list[tuple[int, int]]:
    """Return where the words of a text are that `is_marked` accepts."""
    spans, start = [], None
    for position, letter in enumerate(f"{text} "):
        if letter.isalnum():
            start = position if start is None else start
        elif start is not None:
            if is_marked(text[start:position]):
                spans.append((start, position))
            start = None
    return spans
