"""Commands about single papers: search the sources, fetch one with its text, let a language model read it."""

from dataclasses import replace
from typing import Annotated, Any

import typer

from paper_assets.errors import InvalidArxivId, InvalidInput, NetworkError, RateLimited
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    command_group,
    environment,
    open_warehouse,
    print_json,
    print_table,
    progress_bar,
    read_settings,
    say,
    warn,
)
from paper_assets.interpreting import papers
from paper_assets.interpreting.analysis import (
    Analysis,
    interpret_paper,
    interpretation_to_mapping,
)
from paper_assets.interpreting.clients import Clients, open_clients
from paper_assets.interpreting.papers import (
    FetchedPaper,
    SearchResult,
    search_papers,
    search_to_mapping,
)
from paper_assets.interpreting.papers import related as related_papers
from paper_assets.paper_id import split_paper_id
from paper_assets.progress import Progress, ignore_progress
from paper_assets.retrieval.cited_answer import NOT_CHECKED
from paper_assets.text.numbers import count_of

arxiv = command_group("arxiv", "Search arXiv and Semantic Scholar, and show or interpret one paper.")

Named = Annotated[str, typer.Argument(help="arXiv id, address of a paper or of its PDF, or title.")]
Again = Annotated[bool, typer.Option("--again", help="Use no answer that the language model gave before.")]
Provider = Annotated[str | None, typer.Option(help="openai, anthropic or ollama; default: LLM_PROVIDER.")]
Model = Annotated[str | None, typer.Option(help="Model of the provider; default: the environment's.")]
Kind = Annotated[str, typer.Option("--type", help="summary, detailed or comparison.")]


@arxiv.command()
def search(
    query: Annotated[str, typer.Argument(help='Words; "in quotes" for a phrase.')] = "",
    author: Annotated[str | None, typer.Option(help="Name of an author.")] = None,
    category: Annotated[str | None, typer.Option(help="An arXiv category such as cs.CL.")] = None,
    max_results: Annotated[int, typer.Option(help="Limit of papers.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Search arXiv and Semantic Scholar for papers."""
    try:
        result = search_papers(_clients(), query, author=author, category=category, max_results=max_results)
    except NetworkError as fault:
        raise NetworkError(f"{fault}; `paper-assets find` searches the stored papers") from None
    if as_json:
        return print_json(search_to_mapping(result))
    _show_list(f"{len(result.papers)} of {result.total_count} papers", result)


@arxiv.command()
def related(
    paper: Annotated[str, typer.Argument(help="arXiv id, or address of a paper.")],
    relation: Annotated[str, typer.Option(help="similar, cites (its references) or cited_by.")] = "similar",
    max_results: Annotated[int, typer.Option(help="Limit of papers.")] = 10,
    as_json: AsJson = False,
) -> None:
    """List the papers similar to a paper, its references or its citations. Uses Semantic Scholar."""
    named = _named(paper)
    if "title" in named:
        raise InvalidInput(
            f"{paper[:60]!r} is neither an id nor an address of a paper; find it by `paper-assets arxiv search`"
        )
    result = related_papers(
        _clients(), paper_id=named.get("arxiv_id"), url=named.get("url"), relation=relation, max_results=max_results
    )
    if as_json:
        return print_json(search_to_mapping(result))
    _show_list(f"{paper}, {relation.replace('_', ' ')}: {len(result.papers)} papers", result)


@arxiv.command()
def show(
    paper: Named,
    content: Annotated[bool, typer.Option(help="Fetch the PDF's text too.")] = True,
    as_json: AsJson = False,
) -> None:
    """Show a paper and its text. Looks in the warehouse first, then at arXiv, then at Semantic Scholar.

    If the paper is known and its text cannot be reached, its abstract is shown.
    """
    metadata: list[FetchedPaper] = []
    try:
        with progress_bar("paper") as bar:
            fetched = papers.fetch_paper(
                _clients(bar), **_named(paper), include_pdf_content=content, found=metadata.append
            )
    except (NetworkError, RateLimited) as fault:
        if not metadata:
            raise
        fetched = replace(metadata[-1], warnings=(*metadata[-1].warnings, f"its text was not fetched: {fault}"))
    if as_json:
        return print_json(papers.fetched_to_mapping(fetched))
    _show_paper(fetched)
    say(f"\n{fetched.content or fetched.paper.abstract}")
    _warn(fetched.warnings)


@arxiv.command()
def interpret(
    paper: Named,
    kind: Kind = "summary",
    provider: Provider = None,
    model: Model = None,
    again: Again = False,
    as_json: AsJson = False,
) -> None:
    """Fetch a paper and analyze it with a language model. Without a model the paper is shown with the reason."""
    with progress_bar("interpretation") as bar:
        clients = replace(_clients(bar), again=again)
        interpretation = interpret_paper(clients, _named(paper), analysis_type=kind, provider=provider, model=model)
    if as_json:
        return print_json(interpretation_to_mapping(interpretation))
    _show_paper(interpretation.paper)
    if interpretation.analysis is not None:
        _show_analysis(interpretation.analysis)
    elif interpretation.analysis_error is not None:
        code, reason = interpretation.analysis_error["code"], interpretation.analysis_error["message"]
        say(f"\n{interpretation.paper.paper.abstract}\n\nnot analyzed ({code}): {reason}")
    _warn(interpretation.paper.warnings)


def _show_list(title: str, result: SearchResult) -> None:
    print_table(
        title,
        ["id", "title", "authors", "first", "cited"],
        [
            (
                entry.paper.paper_id if len(entry.paper.paper_id) < 20 else entry.url,
                entry.paper.title,
                _authors(entry.paper.authors),
                f"{entry.paper.day or ''}",
                "" if entry.citation_count is None else entry.citation_count,
            )
            for entry in result.papers
        ],
    )
    _warn(result.warnings)


def _clients(progress: Progress = ignore_progress) -> Clients:
    clients = open_clients(read_settings(), environment(), warehouse=open_warehouse(), progress=progress)
    return replace(clients, announce=warn)


def _named(text: str) -> dict[str, Any]:
    """Read what the user typed as one of the identifiers of I2."""
    if "://" in text:
        return {"url": text}
    try:
        split_paper_id(text)
    except InvalidArxivId:
        if not any(map(str.isspace, text.strip())):  # a single word is a mistyped id rather than a title
            raise
        return {"title": text}
    return {"arxiv_id": text}


def _show_paper(fetched: FetchedPaper) -> None:
    paper = fetched.paper
    lines = {
        "": f"{paper.title}",
        "authors": _authors(paper.authors, most=12),
        "first submitted": f"{paper.day or ''}",
        "categories": " ".join(paper.categories),
        "code": paper.github_url,
        "cited": None if fetched.citation_count is None else f"{fetched.citation_count} times",
        "read it at": fetched.url,
    }
    say("\n".join(f"{name}: {text}" if name else text for name, text in lines.items() if text))


def _show_analysis(analysis: Analysis) -> None:
    say(f"\n{analysis.summary}")
    for name in ("key_contributions", "limitations", "related_work"):
        if name == "limitations" and analysis.methodology:
            say(f"\nMethodology\n  {analysis.methodology}")
        if lines := getattr(analysis, name):
            say(f"\n{name.replace('_', ' ').capitalize()}\n" + "\n".join(f"  - {line}" for line in lines))
    for each in analysis.not_checked:
        say(f"\n“{each['nearest']}”\n  {NOT_CHECKED} ({each['part'].replace('_', ' ')}): {each['text']}")
    if analysis.dropped:
        say(f"\n{count_of(analysis.dropped, 'sentence')} left out: not supported by the text.")
    read = f"the {analysis.read}" + (f" in {analysis.parts} parts" if analysis.parts > 1 else "")
    say(f"\n({analysis.analysis_type} by {analysis.model}, which read {read})")
    warn(f"Paid: {analysis.paid}")


def _authors(names: tuple[str, ...], *, most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _warn(warnings: tuple[str, ...]) -> None:
    for line in warnings:
        say(f"note: {line}")
