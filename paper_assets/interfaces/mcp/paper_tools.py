"""Tools that find and read one paper: search, related papers, its text, a model's analysis (SPEC I1, I9)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from paper_assets.errors import (
    InvalidArxivId,
    InvalidInput,
    LLMError,
    NetworkError,
    PaperAssetsError,
    PaperNotFound,
    PdfFetchFailed,
    RateLimited,
    StoreError,
)
from paper_assets.interfaces.mcp.calls import MOST_CHARACTERS, call_key, paged, text_page, within
from paper_assets.interfaces.mcp.tool_set import READS_OUTSIDE, STORES_OR_PAYS, ToolSet, served
from paper_assets.interfaces.mcp.tool_types import (
    AnalyzeAnswer,
    FetchAnswer,
    GivenChoice,
    GivenPaper,
    GivenQuery,
    InterpretAnswer,
    Offset,
    SearchAnswer,
    TextLimit,
    Words,
)
from paper_assets.paper_id import split_arxiv_id, split_paper_id
from paper_assets.progress import Progress

if TYPE_CHECKING:
    from paper_assets.interpreting.clients import Clients
    from paper_assets.interpreting.lookup import FetchedPaper
    from paper_assets.sources.source import SecondsLeft

AnalysisKind = Literal["summary", "detailed", "comparison"]

_LEAST_SECONDS = 0.1  # of a step; it then reports that the time is over


class PaperTools(ToolSet):
    """The tools over arXiv, Semantic Scholar and the language model; `clients` is made when a tool first needs it."""

    @served("Search papers", READS_OUTSIDE)
    async def search_papers(
        self,
        ctx: Context,
        query: Words,
        author: Words | None = None,
        category: Annotated[Words | None, Field(description="Such as cs.CL.")] = None,
        max_results: Annotated[int, Field(ge=1, le=100, description="In all.")] = 10,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Search arXiv and Semantic Scholar, best first."""
        from paper_assets.interpreting.papers import search_papers, search_to_mapping

        def work(progress: Progress) -> Mapping[str, Any]:
            answer = search_to_mapping(
                search_papers(self._clients(progress), query, author=author, category=category, max_results=max_results)
            )
            papers = answer.pop("papers")
            return paged(answer, "papers", papers, offset=offset)

        return await self.calls.answer(ctx, "search_papers", work, networked=True)

    @served("Papers beside a paper", READS_OUTSIDE)
    async def related_papers(
        self,
        ctx: Context,
        arxiv_id: Annotated[Words, Field(description="2501.12345")],
        relation: Literal["similar", "cites", "cited_by"] = "similar",
        max_results: Annotated[int, Field(ge=1, le=100, description="In all.")] = 10,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Find papers like a paper, cited by it or citing it (Semantic Scholar)."""
        from paper_assets.interpreting.papers import related, search_to_mapping

        def work(progress: Progress) -> Mapping[str, Any]:
            clients = self._clients(progress)
            answer = search_to_mapping(related(clients, paper_id=arxiv_id, relation=relation, max_results=max_results))
            papers = answer.pop("papers")
            return paged(answer, "papers", papers, offset=offset)

        return await self.calls.answer(ctx, "related_papers", work, networked=True)

    @served("Get a paper and its text", STORES_OR_PAYS)
    async def fetch_paper(
        self,
        ctx: Context,
        arxiv_id: Annotated[Words | None, Field(description="2501.12345")] = None,
        url: Annotated[Words | None, Field(description="Its page.")] = None,
        include_pdf_content: Annotated[bool, Field(description="Also its text.")] = True,
        offset: Offset = 0,
        limit: TextLimit = MOST_CHARACTERS,
    ) -> Annotated[CallToolResult, FetchAnswer]:
        """Get a paper and a page of its text of `total` characters; content_error says why there is none."""
        from paper_assets.interpreting.papers import fetch_paper

        fetched_so_far: list[FetchedPaper] = []

        def without_text(error: PaperAssetsError) -> Mapping[str, Any]:
            answer = _with_text(fetched_so_far[-1], offset=0, limit=limit)
            return {**answer, "content_error": {"code": error.code, "message": str(error)}}

        def work(progress: Progress) -> Mapping[str, Any]:
            try:
                fetched = fetch_paper(
                    self._clients(progress),
                    arxiv_id=arxiv_id,
                    url=url,
                    include_pdf_content=include_pdf_content,
                    found=fetched_so_far.append,
                )
            except (NetworkError, RateLimited) as error:  # the source of its text, not of the paper
                if not fetched_so_far:
                    raise
                return without_text(error)
            return _with_text(fetched, offset=offset, limit=limit)

        def meanwhile(reason: str) -> Mapping[str, Any] | None:
            return without_text(NetworkError(reason)) if fetched_so_far else None

        return await self.calls.answer(ctx, "fetch_paper", work, most=None, networked=True, meanwhile=meanwhile)

    @served("Let a model read a paper", STORES_OR_PAYS)
    async def analyze_paper(
        self,
        ctx: Context,
        paper: Annotated[
            GivenPaper,
            GivenQuery,
            Field(description="{paper_id}, or as fetch_paper gives it."),
        ],
        llm_config: GivenChoice | None = None,
        analysis_type: AnalysisKind = "summary",
    ) -> Annotated[CallToolResult, AnalyzeAnswer]:
        """Let an LLM read a paper: summary, contributions, methodology, limitations, related work."""
        from paper_assets.interpreting.analysis import analysis_to_mapping, analyze_paper, error_of_analysis
        from paper_assets.models.llm_config import llm_config as configured

        fetched_so_far: list[FetchedPaper] = []

        def without_analysis(error: Mapping[str, str]) -> Mapping[str, Any]:
            return _without_model(fetched_so_far[-1], error)

        def work(progress: Progress) -> Mapping[str, Any]:
            clients, chosen = self._clients(progress, models_go_on=True), llm_config or {}
            left = clients.started()
            whole_record, stored = _given_whole(paper), _stored_paper(clients, paper)
            fetched_so_far.extend(each for each in (whole_record or stored,) if each)
            try:
                configured(clients.environ, provider=chosen.get("provider"), model=chosen.get("model"))
                whole = whole_record or _complete_paper(clients, paper, left, stored)
                fetched_so_far.append(whole)
                analysis = analyze_paper(
                    _for_next_step(clients, left),
                    whole,
                    analysis_type=analysis_type,
                    provider=chosen.get("provider"),
                    model=chosen.get("model"),
                )
            except (LLMError, StoreError) as error:
                if not fetched_so_far:
                    raise
                return without_analysis(error_of_analysis(error))
            record = analysis_to_mapping(analysis)
            return {"analysis": record, "analysis_error": None, "paper": None, "warnings": list(whole.warnings)}

        def meanwhile(reason: str) -> Mapping[str, Any] | None:
            return without_analysis({"code": LLMError.code, "message": reason}) if fetched_so_far else None

        key = call_key(paper, llm_config, analysis_type)
        return await self.calls.answer(ctx, "analyze_paper", work, joined_as=key, meanwhile=meanwhile)

    @served("Find a paper and let a model read it", STORES_OR_PAYS)
    async def interpret_paper(
        self,
        ctx: Context,
        query: GivenQuery,
        llm_config: GivenChoice | None = None,
        analysis_type: AnalysisKind = "summary",
    ) -> Annotated[CallToolResult, InterpretAnswer]:
        """Find a paper and let an LLM read it; without one, analysis_error says why."""
        from paper_assets.interpreting.analysis import Interpretation, interpret_paper, interpretation_to_mapping

        fetched_so_far: list[FetchedPaper] = []

        def work(progress: Progress) -> Mapping[str, Any]:
            chosen = llm_config or {}
            interpretation = interpret_paper(
                self._clients(progress, models_go_on=True),
                query,
                analysis_type=analysis_type,
                provider=chosen.get("provider"),
                model=chosen.get("model"),
                found=fetched_so_far.append,
            )
            return _without_text(interpretation_to_mapping(interpretation))

        def meanwhile(reason: str) -> Mapping[str, Any] | None:
            if not fetched_so_far:
                return None
            error = {"code": LLMError.code, "message": reason}
            return _without_text(
                interpretation_to_mapping(Interpretation(paper=fetched_so_far[-1], analysis=None, analysis_error=error))
            )

        key = call_key(query, llm_config, analysis_type)
        return await self.calls.answer(ctx, "interpret_paper", work, joined_as=key, meanwhile=meanwhile)

    @cached_property
    def _shared_clients(self) -> "Clients":
        from paper_assets.interpreting.clients import open_clients

        deadline = self.calls.work_deadline
        return open_clients(self.settings, self._patient, warehouse=self._warehouse, deadline=deadline)

    def _clients(self, progress: Progress, *, models_go_on: bool = False) -> "Clients":
        return replace(self._shared_clients.of_one_call(), progress=progress, models_go_on=models_go_on)


def _without_text(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {**answer, "paper": {name: value for name, value in answer["paper"].items() if name != "content"}}


def _with_text(fetched: "FetchedPaper", *, offset: int, limit: int) -> dict[str, Any]:
    """Return the paper with one page of its text; `content_is_part` lets analyze_paper know that there is more."""
    from paper_assets.interpreting.papers import fetched_to_mapping

    paper = within(fetched_to_mapping(replace(fetched, content=None)), MOST_CHARACTERS)
    if fetched.content is None:
        return {"paper": paper, "content_error": None, "total": 0, "offset": 0, "next_offset": None}
    part = text_page(fetched.content, offset=offset, limit=limit)
    [content] = part.items
    paper |= {"content": content, "content_is_part": len(content) < part.total}
    page = {"total": part.total, "offset": offset, "next_offset": part.next_offset}
    return {"paper": paper, "content_error": None, **page}


def _for_next_step(clients: "Clients", left: "SecondsLeft") -> "Clients":
    """Return the clients for a further step of a call, with the time that the earlier steps have left."""
    return replace(clients, deadline=max(left(), _LEAST_SECONDS))


def _without_model(paper: "FetchedPaper", error: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer of analyze_paper for a paper that no model has read."""
    from paper_assets.interpreting.papers import fetched_to_mapping

    record = {name: value for name, value in fetched_to_mapping(paper).items() if name != "content"}
    return {"analysis": None, "analysis_error": dict(error), "paper": record, "warnings": list(paper.warnings)}


def _stored_paper(clients: "Clients", record: Mapping[str, Any]) -> "FetchedPaper | None":
    """Return the paper as stored; None if it is not, or if the store cannot be read now."""
    from paper_assets.interpreting.lookup import FetchedPaper
    from paper_assets.sources.table import page_of
    from paper_assets.stores.papers import find_paper

    named = _given_id(record)
    try:
        paper = find_paper(clients.warehouse, str(split_paper_id(named)[0])) if named else None
    except (InvalidArxivId, StoreError):
        return None
    if paper is None:
        return None
    return FetchedPaper(paper=paper, content=None, content_source=None, url=page_of(paper.paper_id))


def _given_id(record: Mapping[str, Any]) -> str:
    """Return the id that is given; "" for a paper given by its title. Raises InvalidInput without either."""
    named = str(record.get("paper_id") or record.get("arxiv_id") or "")
    if not named and not record.get("title"):
        raise InvalidInput("paper: give its paper_id, or its title with content or abstract")
    return named


def _given_whole(record: Mapping[str, Any]) -> "FetchedPaper | None":
    """Return a paper that is given with its whole text, or without an id; None if it is to be looked up."""
    from paper_assets.interpreting.papers import fetched_from_mapping

    if record.get("content_is_part") or not (record.get("content") or not _given_id(record)):
        return None
    return fetched_from_mapping(record)


def _complete_paper(
    clients: "Clients", record: Mapping[str, Any], left: "SecondsLeft", stored: "FetchedPaper | None" = None
) -> "FetchedPaper":
    """Return the paper, fetched by its id or the URL of its PDF.

    If no text is available, a given or stored abstract is used; a part of a text is never taken for the whole. With a
    stored abstract, the sources get at most half of the call's time.
    """
    from paper_assets.interpreting.papers import fetch_paper, fetched_from_mapping
    from paper_assets.sources.table import source_of

    failure: PaperAssetsError
    named = _given_id(record)
    try:
        if (source := source_of(named)) is None or source.texts is None:
            split_arxiv_id(named)  # raises: no source of this id keeps its text
        readable = stored is not None and bool(stored.paper.abstract.strip())
        share = 0.5 if readable else 1.0
        return fetch_paper(replace(clients, deadline=max(share * left(), _LEAST_SECONDS)), arxiv_id=named)
    except (NetworkError, RateLimited, PaperNotFound, PdfFetchFailed) as error:
        if stored is not None and stored.paper.abstract.strip():
            return replace(stored, warnings=(*stored.warnings, f"only the stored abstract was read: {error}"))
        if not isinstance(error, PdfFetchFailed) or not record.get("title"):
            raise
        failure = error
    except InvalidArxivId as error:
        if not record.get("title"):
            raise
        failure = error
    part = bool(record.get("content_is_part"))
    from_record = fetched_from_mapping({**record, "content": None, "content_is_part": False} if part else record)
    if isinstance(failure, InvalidArxivId) and part and isinstance(address := record.get("pdf_url"), str):
        try:
            text = fetch_paper(_for_next_step(clients, left), pdf_url=address).content
            return replace(from_record, content=text)
        except (InvalidInput, PaperNotFound, PdfFetchFailed) as error:
            failure = error
    if part and not from_record.paper.abstract.strip():
        raise failure
    return from_record
