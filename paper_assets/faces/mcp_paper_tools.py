"""Tools that find and read one paper: search_papers, fetch_paper, analyze_paper, interpret_paper (SPEC I1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from paper_assets.errors import InvalidArxivId, InvalidInput, PaperAssetsError, PaperNotFound, PdfFetchFailed
from paper_assets.faces.mcp_calls import MOST_CHARACTERS, Calls, Progress, paged, text_page, within
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
    from paper_assets.interpreting.reach import Reach, SecondsLeft

_LEAST_SECONDS = 0.1  # of a step, in which it says that the time is over


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
            papers = found.pop("papers")
            return paged(found, "papers", papers, offset=offset)

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
            return _with_text(fetched, offset=offset, limit=limit)

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

        {"paper_id": "2501.12345"} is enough; there is no need to send the text that fetch_paper gave. `read` of the
        answer says what was read: the full text, or the abstract where no more could be had.
        """

        def work(progress: Progress) -> Mapping[str, Any]:
            from paper_assets.interpreting.analysis import analysis_to_mapping, analyze_paper

            reach, chosen = self._reach(progress), llm_config or {}
            left = reach.started()
            whole = _whole(reach, paper, left)
            analysis = analyze_paper(
                _going_on(reach, left),
                whole,
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
        return replace(self.reach().of_one_call(), progress=progress)


def _with_text(fetched: "FetchedPaper", *, offset: int, limit: int) -> dict[str, Any]:
    """The paper with one page of its text; `content_is_part` lets analyze_paper know that there is more."""
    from paper_assets.interpreting.papers import fetched_to_mapping

    paper = within(fetched_to_mapping(replace(fetched, content=None)), MOST_CHARACTERS)
    if fetched.content is None:
        return {"paper": paper, "total": 0, "offset": 0, "next_offset": None}
    part = text_page(fetched.content, offset=offset, limit=limit)
    [content] = part.items
    paper |= {"content": content, "content_is_part": len(content) < part.total}
    return {"paper": paper, "total": part.total, "offset": offset, "next_offset": part.next_offset}


def _going_on(reach: "Reach", left: "SecondsLeft") -> "Reach":
    """The reach for a further step of a call, which may take what the steps before it have left."""
    return replace(reach, deadline=max(left(), _LEAST_SECONDS))


def _whole(reach: "Reach", record: Mapping[str, Any], left: "SecondsLeft") -> "FetchedPaper":
    """The paper that is meant: as given if it brings all of its text, else fetched by its id or its PDF's address.

    Without a text to be had, an abstract that was given has to do; a part of a text is never taken for it.
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
        return fetch_paper(_going_on(reach, left), arxiv_id=named)
    except (InvalidArxivId, PdfFetchFailed) as error:
        if not record.get("title"):
            raise
        failure: PaperAssetsError = error
    part = bool(record.get("content_is_part"))
    given = fetched_from_mapping({**record, "content": None, "content_is_part": False} if part else record)
    if isinstance(failure, InvalidArxivId) and part and isinstance(address := record.get("pdf_url"), str):
        try:
            text = fetch_paper(_going_on(reach, left), pdf_url=address).content
            return replace(given, content=text)
        except (InvalidInput, PaperNotFound, PdfFetchFailed) as error:
            failure = error
    if part and not given.paper.abstract.strip():
        raise failure
    return given
