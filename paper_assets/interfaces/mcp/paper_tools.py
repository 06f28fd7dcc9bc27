"""Tools that find and read one paper: search, related papers, its text, a model's analysis (SPEC I1, I9)."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import ConfigDict, Field, WithJsonSchema
from typing_extensions import TypedDict

from paper_assets.errors import LLMError, NetworkError, PaperAssetsError, SourceError
from paper_assets.interfaces.mcp.calls import MOST_CHARACTERS, call_key, paged, text_page, within
from paper_assets.interfaces.mcp.tool_set import (
    READS_OUTSIDE,
    STORES_OR_PAYS,
    GivenPaper,
    Offset,
    ToolSet,
    Words,
    served,
)
from paper_assets.progress import Progress

if TYPE_CHECKING:
    from paper_assets.interpreting.analysis import Interpretation
    from paper_assets.interpreting.clients import Clients
    from paper_assets.interpreting.lookup import FetchedPaper


class LLMChoice(TypedDict, total=False):
    """The language model to ask, if not the one that the server is set up for."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    provider: Literal["openai", "anthropic", "ollama"]
    model: Words


# Described in words: seldom given, and its schema would cost as many tokens as the rest of a tool.
GivenChoice = Annotated[
    LLMChoice, WithJsonSchema({"type": "object", "description": "{provider: openai|anthropic|ollama, model}"})
]


class PaperQuery(TypedDict, total=False):
    """One paper; of several identifiers the first counts, in this order."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    arxiv_id: Words
    url: Words
    pdf_url: Words
    title: Words


# In words for the same reason as `GivenChoice`.
GivenQuery = Annotated[
    PaperQuery, WithJsonSchema({"type": "object", "description": "{arxiv_id}, {url}, {pdf_url} or {title}."})
]

AnalysisKind = Literal["summary", "detailed", "comparison"]
_MOST_TEXT = 50_000  # characters of one page of a text


class PaperTools(ToolSet):
    """The tools over arXiv, Semantic Scholar and the language model; `clients` is made when a tool first needs it."""

    @served("Search papers", READS_OUTSIDE, networked=True)
    def search_papers(
        self,
        progress: Progress,
        query: Words,
        author: Words | None = None,
        category: Annotated[Words | None, Field(description="Such as cs.CL.")] = None,
        max_results: Annotated[int, Field(ge=1, le=100, description="In all.")] = 10,
        offset: Offset = 0,
    ) -> Mapping[str, Any]:
        """Search arXiv and Semantic Scholar, best first."""
        from paper_assets.interpreting.papers import search_papers, search_to_mapping

        answer = search_to_mapping(
            search_papers(self._clients(progress), query, author=author, category=category, max_results=max_results)
        )
        papers = answer.pop("papers")
        return paged(answer, "papers", papers, offset=offset)

    @served("Papers beside a paper", READS_OUTSIDE, networked=True)
    def related_papers(
        self,
        progress: Progress,
        arxiv_id: Annotated[Words, Field(description="2501.12345")],
        relation: Literal["similar", "cites", "cited_by"] = "similar",
        max_results: Annotated[int, Field(ge=1, le=100, description="In all.")] = 10,
        offset: Offset = 0,
    ) -> Mapping[str, Any]:
        """Find papers like a paper, cited by it or citing it (Semantic Scholar)."""
        from paper_assets.interpreting.papers import related, search_to_mapping

        clients = self._clients(progress)
        answer = search_to_mapping(related(clients, paper_id=arxiv_id, relation=relation, max_results=max_results))
        papers = answer.pop("papers")
        return paged(answer, "papers", papers, offset=offset)

    @served("Get a paper and its text", STORES_OR_PAYS)
    async def fetch_paper(
        self,
        ctx: Context,
        arxiv_id: Annotated[Words | None, Field(description="2501.12345")] = None,
        url: Annotated[Words | None, Field(description="Its page.")] = None,
        include_pdf_content: Annotated[bool, Field(description="Also its text.")] = True,
        offset: Offset = 0,
        limit: Annotated[int, Field(ge=1, le=_MOST_TEXT, description="Characters.")] = MOST_CHARACTERS,
    ) -> CallToolResult:
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
            except SourceError as error:  # of its text, if the paper is known
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
        paper: Annotated[GivenPaper, GivenQuery, Field(description="{paper_id}, or as fetch_paper gives it.")],
        llm_config: GivenChoice | None = None,
        analysis_type: AnalysisKind = "summary",
    ) -> CallToolResult:
        """Let an LLM read a paper."""
        from paper_assets.interpreting.analysis import interpret_record

        return await self._interpreted(ctx, "analyze_paper", interpret_record, paper, llm_config, analysis_type)

    @served("Find a paper and let a model read it", STORES_OR_PAYS)
    async def interpret_paper(
        self,
        ctx: Context,
        query: GivenQuery,
        llm_config: GivenChoice | None = None,
        analysis_type: AnalysisKind = "summary",
    ) -> CallToolResult:
        """Find a paper and let an LLM read it."""
        from paper_assets.interpreting.analysis import interpret_paper

        return await self._interpreted(ctx, "interpret_paper", interpret_paper, query, llm_config, analysis_type)

    async def _interpreted(
        self,
        ctx: Context,
        tool: str,
        interpret: "Callable[..., Interpretation]",
        named: Mapping[str, Any],
        llm_config: GivenChoice | None,
        analysis_type: AnalysisKind,
    ) -> CallToolResult:
        """Answer with the paper and its analysis; with the paper as far as it is known if the time is over before."""
        from paper_assets.interpreting.analysis import Interpretation, interpretation_to_mapping

        fetched_so_far: list[FetchedPaper] = []

        def answered(interpretation: "Interpretation") -> Mapping[str, Any]:
            answer = interpretation_to_mapping(interpretation)
            del answer["paper"]["content"]
            return answer

        def work(progress: Progress) -> Mapping[str, Any]:
            clients = replace(self._clients(progress, models_go_on=True), announce=lambda line: progress(0, None, line))
            chosen = {**(llm_config or {}), "analysis_type": analysis_type, "found": fetched_so_far.append}
            return answered(interpret(clients, named, **chosen))

        def meanwhile(reason: str) -> Mapping[str, Any] | None:
            if not fetched_so_far:
                return None
            error = {"code": LLMError.code, "message": reason}
            return answered(Interpretation(paper=fetched_so_far[-1], analysis=None, analysis_error=error))

        key = call_key(named, llm_config, analysis_type)
        return await self.calls.answer(ctx, tool, work, joined_as=key, meanwhile=meanwhile)

    @cached_property
    def _shared_clients(self) -> "Clients":
        from paper_assets.interpreting.clients import open_clients

        deadline = self.calls.work_deadline
        return open_clients(self.settings, self._patient, warehouse=self._warehouse, deadline=deadline)

    def _clients(self, progress: Progress, *, models_go_on: bool = False) -> "Clients":
        return replace(self._shared_clients.of_one_call(), progress=progress, models_go_on=models_go_on)


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
