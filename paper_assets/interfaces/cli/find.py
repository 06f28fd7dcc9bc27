"""Search the stored papers: `paper-assets find`."""

from collections.abc import Sequence
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput, PaperNotFound
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    embedder_or_none,
    open_warehouse,
    print_json,
    read_settings,
    say,
    warn,
)
from paper_assets.learning.ratings import check_profile
from paper_assets.paper_id import split_paper_id
from paper_assets.retrieval.desk_search import (
    FoundPaper,
    SearchPage,
    hit_record,
    search_desk,
    shown_authors,
    similar_papers,
)
from paper_assets.retrieval.search import open_corpus
from paper_assets.retrieval.search_query import parse_search_query
from paper_assets.stores.papers import find_paper
from paper_assets.stores.profiles import people_file, read_people, same_person
from paper_assets.text.cleaning import without_controls
from paper_assets.text.tex import readable


def find(
    query: Annotated[
        list[str] | None,
        typer.Argument(
            help='Words, "phrases", author:NAME, category:cs.LG, from:/to:2026-03-31, is:worth|later|shown|unseen, '
            "has:code|pdf, in:PROFILE, in:fulltexts, in:rewrites."
        ),
    ] = None,
    profile: Annotated[str | None, typer.Option(help="The profile whose ratings and lists is: refers to.")] = None,
    like: Annotated[
        str | None, typer.Option(metavar="PAPER_ID", help="Papers like this one, instead of a query.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Papers on a page.")] = 20,
    page: Annotated[int, typer.Option(min=1, max=1000, help="Page, from 1.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Search the stored papers by meaning and words, with filters."""
    settings = read_settings()
    text = " ".join(query or ()).strip()
    if bool(text) == bool(like):
        raise InvalidInput(
            "find needs either a query or --like PAPER_ID; for example: paper-assets find state space models"
        )
    warehouse, parsed = open_warehouse(), parse_search_query(text)
    ranked_for = parsed.profile if parsed.profile != "profile" else None
    for name in filter(None, (profile, ranked_for)):
        check_profile(warehouse, name, settings.profiles_dir)
    embedder = embedder_or_none(settings.embedding_model, consequence="only words are compared")
    corpus = open_corpus(settings, warehouse, embedder, once=True)
    if like:
        known_as = str(split_paper_id(like)[0])
        paper = find_paper(corpus.warehouse, known_as)
        if paper is None:
            raise PaperNotFound(f"{known_as} is not stored; check the id, or fetch its day first")
        similar = similar_papers(corpus, paper, limit=limit + 1, offset=(page - 1) * limit)
        result = SearchPage(papers=similar[:limit], matching=0, more=len(similar) > limit, notes=())
    else:
        if profile and ranked_for and not same_person(read_people(people_file(settings.home)), profile, ranked_for):
            raise InvalidInput(f"search: in:{ranked_for} is not a profile of those who have {profile}")
        result = search_desk(corpus, parsed, profile=profile, offset=(page - 1) * limit, limit=limit)
    papers = result.papers
    if as_json:
        print_json(
            {
                "papers": [hit_record(paper_found) for paper_found in papers],
                "more": result.more,
                "ways": list(result.ways),
                "notes": list(result.notes),
            }
        )
    else:
        for number, paper_found in enumerate(papers, (page - 1) * limit + 1):
            _print_paper(number, paper_found, wanted=parsed.authors)
        if not papers and page > 1:
            say(f"There is no page {page}; begin with --page 1.")
        elif not papers:
            remedy = "fewer filters" if parsed.chips else "other words"
            say(f"No stored paper matches. Try {remedy}, or fetch more days.")
        if result.more:
            say(f"More: add --page {page + 1}")
    for note in result.notes:
        warn(f"note: {note}")


def _print_paper(number: int, paper: FoundPaper, *, wanted: Sequence[str]) -> None:
    """Print title, source and date, authors, and the best sentence, with the words of the query in bold."""
    from rich.console import Console
    from rich.text import Text

    first, more = shown_authors(paper.authors, wanted=wanted)
    authors = ", ".join(first) + (f" and {more} more" if more else "")
    day = f"{paper.published:%Y-%m-%d}" if paper.published else "no date"
    lines = Text(f"{number}. ")
    lines.append(without_controls(readable(paper.title)), style="bold")
    lines.append(f"\n   {paper.paper_id} · {day} · {', '.join(paper.categories)}\n   {without_controls(authors)}\n   ")
    passage = Text(without_controls(readable(paper.passage)))
    passage.highlight_words({hit.text for hit in paper.hits}, style="bold", case_sensitive=True)
    lines.append_text(passage)
    Console(highlight=False, soft_wrap=True).print(lines)
