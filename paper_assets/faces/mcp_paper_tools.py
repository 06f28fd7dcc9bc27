"""Tools that find and read one paper: search_papers, fetch_paper, analyze_paper, interpret_paper (SPEC I1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from paper_assets.errors import InvalidArxivId, InvalidInput, PdfFetchFailed
from paper_assets.faces.mcp_calls import MOST_CHARACTERS, Calls, Progress, page, text_page, within
from paper_assets.faces.mcp_shapes import (
    AnalyzeAnswer,
    FetchAnswer,
    GivenPaper,
    InterpretAnswer,
    LLMChoice,
    Offset,
    PaperQuery,
    SearchAnswer,
    TextLimit,
    Words,
)

if TYPE_CHECKING:
    from paper_assets.interpreting.papers import FetchedPaper
    from paper_assets.interpreting.reach import Reach


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperTools:
    """The tools over arXiv, Semantic Scholar and the language model; `reach` is made when a tool first needs it."""

    calls: Calls
    reach: Callable[[], "Reach"]

    async def search_papers(
        self,
        ctx: Context,
        query: Annotated[Words, Field(description="Words of title, abstract or subject.")],
        author: Annotated[Words | None, Field(description="Only papers by this author.")] = None,
        category: Annotated[Words | None, Field(description="Only this arXiv category, such as cs.CL.")] = None,
        max_results: Annotated[int, Field(ge=1, le=100)] = 10,
        offset: Offset = 0,
    ) -> Annotated[CallToolResult, SearchAnswer]:
        """Search arXiv and Semantic Scholar for papers; best matches first, one entry per paper.

        If next_offset is not null, more papers of this search did not fit: ask again with it as offset.
        """

        def work(progress: Progress) -> Mapping[str, Any]:
            from paper_assets.interpreting.papers import search_papers, search_to_mapping

            found = search_to_mapping(
                search_papers(self._reach(progress), query, author=author, category=category, max_results=max_results)
            )
            shown = page(found["papers"], offset=offset)
            return {**found, "papers": shown.items, "total": shown.total, "next_offset": shown.next_offset}

        return await self.calls.answer(ctx, "search_papers", work)

    async def fetch_paper(
        self,
        ctx: Context,
        arxiv_id: Annotated[Words | None, Field(description="Such as 2501.12345, with or without version.")] = None,
        url: Annotated[Words | None, Field(description="https address on a known host, where there is no id.")] = None,
        include_pdf_content: Annotated[bool, Field(description="Also the text of its PDF.")] = True,
        offset: Offset = 0,
        limit: TextLimit = MOST_CHARACTERS,
    ) -> Annotated[CallToolResult, FetchAnswer]:
        """Get one paper: its metadata and a page of the text of its PDF.

        The whole text has `total` characters; go on with offset = next_offset until that is null.
        """

        def work(progress: Progress) -> Mapping[str, Any]:
            from paper_assets.interpreting.papers import fetch_paper

            fetched = fetch_paper(
                self._reach(progress), arxiv_id=arxiv_id, url=url, include_pdf_content=include_pdf_content
            )
            return _paged(fetched, offset=offset, limit=limit)

        return await self.calls.answer(ctx, "fetch_paper", work, most=None)

    async def analyze_paper(
        self,
        ctx: Context,
        paper: Annotated[
            GivenPaper,
            Field(description="A paper as fetch_paper gives it. With an arXiv id and no content its text is fetched."),
        ],
        llm_config: LLMChoice | None = None,
        analysis_type: Literal["summary", "detailed", "comparison"] = "summary",
    ) -> Annotated[CallToolResult, AnalyzeAnswer]:
        """Let a language model read a paper: summary, key contributions, methodology, limitations, related work.

        {"paper_id": "2501.12345"} is enough; there is no need to send the text that fetch_paper gave.
        """

        def work(progress: Progress) -> Mapping[str, Any]:
            from paper_assets.interpreting.analysis import analysis_to_mapping, analyze_paper

            reach = self._reach(progress)
            chosen = llm_config or {}
            analysis = analyze_paper(
                reach,
                _whole(reach, paper),
                analysis_type=analysis_type,
                provider=chosen.get("provider"),
                model=chosen.get("model"),
            )
            return {"analysis": analysis_to_mapping(analysis)}

        return await self.calls.answer(ctx, "analyze_paper", work)

    async def interpret_paper(
        self,
        ctx: Context,
        query: PaperQuery,
        llm_config: LLMChoice | None = None,
        analysis_type: Literal["summary", "detailed", "comparison"] = "summary",
    ) -> Annotated[CallToolResult, InterpretAnswer]:
        """Find a paper, get its text and let a language model read it, in one call.

        If the language model fails, the paper is there all the same: analysis is null, analysis_error says why.
        The paper comes without its text, which fetch_paper gives.
        """

        def work(progress: Progress) -> Mapping[str, Any]:
            from paper_assets.interpreting.analysis import interpret_paper, interpretation_to_mapping

            chosen = llm_config or {}
            found = interpretation_to_mapping(
                interpret_paper(
                    self._reach(progress),
                    query,
                    analysis_type=analysis_type,
                    provider=chosen.get("provider"),
                    model=chosen.get("model"),
                )
            )
            without_text = {name: value for name, value in found["paper"].items() if name != "content"}
            return {**found, "paper": without_text}

        return await self.calls.answer(ctx, "interpret_paper", work)

    def _reach(self, progress: Progress) -> "Reach":
        return replace(self.reach(), progress=progress)


def _paged(fetched: "FetchedPaper", *, offset: int, limit: int) -> dict[str, Any]:
    """The paper with one page of its text; `content_is_part` lets analyze_paper know that there is more."""
    from paper_assets.interpreting.papers import fetched_to_mapping

    paper = within(fetched_to_mapping(replace(fetched, content=None)), MOST_CHARACTERS)
    if fetched.content is None:
        return {"paper": paper, "total": 0, "offset": 0, "next_offset": None}
    part = text_page(fetched.content, offset=offset, limit=limit)
    [content] = part.items
    paper |= {"content": content, "content_is_part": len(content) < part.total}
    return {"paper": paper, "total": part.total, "offset": offset, "next_offset": part.next_offset}


def _whole(reach: "Reach", record: Mapping[str, Any]) -> "FetchedPaper":
    """The paper that is meant: as given if it brings all of its text or has no id, else fetched by its id.

    Without a PDF to be had, an abstract that was given has to do.
    """
    from paper_assets.interpreting.papers import fetch_paper, fetched_from_mapping
    from paper_assets.paper import split_arxiv_id

    if record.get("content") and not record.get("content_is_part"):
        return fetched_from_mapping(record)
    named = str(record.get("paper_id") or record.get("arxiv_id") or "")
    if not named and not record.get("title"):
        raise InvalidInput("paper: give its paper_id, or its title with content or abstract")
    try:
        split_arxiv_id(named)
        return fetch_paper(reach, arxiv_id=named)
    except (InvalidArxivId, PdfFetchFailed):
        if not record.get("title"):
            raise
        return fetched_from_mapping(record)
