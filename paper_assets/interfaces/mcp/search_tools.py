"""Tools that search the stored papers and answer questions from them, in sentences or by passages (SPEC R2, R3, Q).

No caller counts as the owner of a private text here: such texts are neither searched nor quoted (M3).
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field, WithJsonSchema

from paper_assets.errors import InvalidInput, PaperNotFound
from paper_assets.interfaces.mcp.calls import call_key, paged
from paper_assets.interfaces.mcp.tool_set import READS, STORES_OR_PAYS, Offset, Profile, ToolSet, Words, served
from paper_assets.paper_id import split_paper_id
from paper_assets.progress import Progress

if TYPE_CHECKING:
    from paper_assets.retrieval.desk_search import FoundPaper
    from paper_assets.stores.warehouse import Warehouse


# In words: its schema would cost as many tokens as the rest of the tool. The plan made of it is checked.
GivenSides = Annotated[
    list[Any] | None,
    Field(max_length=20),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"anyOf": [{"type": "string"}, {"type": "object"}]},
            "description": "Values of side_field; or {name} with stance: supports|contradicts, "
            'or query, or where: {"primary_category": {"$eq": "cs.CL"}}.',
        }
    ),
]

Question = Annotated[Words, Field(min_length=1, max_length=2_000)]
Days = Annotated[str | None, Field(max_length=40, description="YYYY-MM-DD.")]
Topic = Annotated[Words | None, Field(description="Archive: cs, math.")]
DataTypes = Annotated[list[Literal["abstract", "fulltext", "rewrite"]] | None, Field(description="Default abstract.")]
_NOT_FOR_AND_AGAINST = (
    'the sides are values of side_field; for and against a claim: sides=[{"name": "for", "stance": "supports"}, '
    '{"name": "against", "stance": "contradicts"}], or ask_desk with for_and_against'
)
Graded = Annotated[bool, Field(description="Passages, not links.")]


class SearchTools(ToolSet):
    """The tools over everything that is stored."""

    @served("Search the stored papers", READS)
    def search_desk(
        self,
        progress: Progress,
        query: Annotated[
            Words | None,
            Field(description='Words, "phrases", author:, -category:, from:, to:, is:worth, has:code, in:PROFILE.'),
        ] = None,
        like: Annotated[Words | None, Field(description="Instead: id of a paper.")] = None,
        profile: Profile = None,
        limit: Annotated[int, Field(ge=1, le=100, description="Papers in an answer.")] = 10,
        offset: Offset = 0,
    ) -> Mapping[str, Any]:
        """Search the stored papers, best first, each with its best sentence."""
        from paper_assets.retrieval.desk_search import search_desk, similar_papers
        from paper_assets.retrieval.search_query import parse_search_query
        from paper_assets.stores.papers import find_paper

        if bool((query or "").strip()) == bool((like or "").strip()):
            raise InvalidInput("search_desk: give either query or like")
        progress(0, None, "searching")
        corpus = self._corpus()
        if like:
            known_as = str(split_paper_id(like)[0])
            paper = find_paper(corpus.warehouse, known_as)
            if paper is None:
                raise PaperNotFound(f"{known_as} is not stored; search_papers looks at arXiv itself")
            similar = similar_papers(corpus, paper, limit=limit)
            return paged(
                {"compared": None, "ways": [], "notes": []},
                "papers",
                [paper_row(paper_like_it) for paper_like_it in similar],
                offset=offset,
            )
        parsed = parse_search_query(query or "")
        self._check(corpus.warehouse, parsed.profile, profile, parsed.data_types)
        result = search_desk(corpus, parsed, profile=profile, offset=offset, limit=limit, private=False)
        papers = [paper_row(paper_found, authors=parsed.authors) for paper_found in result.papers]
        rows = paged({"compared": result.matching, "ways": list(result.ways)}, "papers", papers, offset=0)
        end = offset + len(rows["papers"])
        more = result.more or len(rows["papers"]) < len(result.papers)
        return {**rows, "next_offset": end if more else None, "notes": list(result.notes)}

    @served("Ask the stored papers", STORES_OR_PAYS)
    async def ask_desk(
        self,
        ctx: Context,
        question: Annotated[Words, Field(min_length=1, max_length=2_000)],
        for_and_against: Annotated[bool, Field(description="Answer for and against apart.")] = False,
        fetch: Annotated[int, Field(ge=0, le=20, description="Full texts to fetch first.")] = 0,
        extractive: Annotated[bool, Field(description="Quote only; no language model.")] = False,
        again: Annotated[bool, Field(description="Use no earlier answer of the model.")] = False,
    ) -> CallToolResult:
        """Answer a question from the stored papers, every sentence with a verbatim quote."""

        def work(progress: Progress) -> Mapping[str, Any]:
            from paper_assets.pipeline.desk_answers import (
                AnsweringContext,
                QuestionOptions,
                answer_question,
                prepare_question,
            )
            from paper_assets.retrieval.cited_answer import answer_record

            options = QuestionOptions(sides=for_and_against, fetch=fetch, extractive=extractive, again=again)
            corpus = self._corpus()
            context = AnsweringContext(
                settings=self.settings,
                environ=self._patient,
                warehouse=corpus.warehouse,
                embedder=corpus.embedder,
                fetching=self.calls.limit / 2,  # then there is time to answer without them
            )
            progress(0, None, "gathering passages")
            prepared = prepare_question(context, question, options, progress=progress)
            step = count(1)
            answer = answer_question(context, prepared, options, progress=lambda what: progress(next(step), None, what))
            record = {**answer_record(answer), "at_most": prepared.bound or None}
            for sentence in record["sentences"]:  # a quotation is not sent twice
                if [cited["quote"] for cited in sentence["citations"]] == [sentence["text"]]:
                    del sentence["text"]
            return record

        if extractive and not fetch:
            return await self.calls.answer(ctx, "ask_desk", work)
        key = call_key(question, for_and_against, fetch, extractive, again)
        return await self.calls.answer(ctx, "ask_desk", work, joined_as=key)

    @served("Evidence for a question", READS)
    def retrieve_standard(
        self,
        progress: Progress,
        question: Question,
        k: Annotated[int | None, Field(ge=1, le=100, description="Default 10.")] = None,
        startdate: Days = None,
        enddate: Days = None,
        topic_id: Topic = None,
        data_type: DataTypes = None,
        generation_required: Graded = False,
        offset: Offset = 0,
    ) -> Mapping[str, Any]:
        """Find the stored documents that answer a question best."""
        answer = self._answered(
            progress,
            question,
            parameters={"k": k},
            filters={"startdate": startdate, "enddate": enddate, "topic_id": topic_id},
            data_type=data_type,
            generation_required=generation_required,
            balanced=False,
        )
        [single_side] = answer.pop("sides")
        documents = answer.pop("documents")
        del single_side["documents"]
        return paged({**answer, **single_side}, "documents", documents, offset=offset)

    @served("Evidence for a question, the same for each side", STORES_OR_PAYS)
    async def retrieve_balanced(
        self,
        ctx: Context,
        question: Question,
        sides: GivenSides = None,
        side_field: Literal["primary_category", "categories", "topic_id", "language", "data_type"] = "primary_category",
        k_per_side: Annotated[int | None, Field(ge=1, le=20, description="Default 2.")] = None,
        profile: Annotated[Words | None, Field(description="Sides: its categories.")] = None,
        startdate: Days = None,
        enddate: Days = None,
        topic_id: Topic = None,
        data_type: DataTypes = None,
        generation_required: Graded = False,
        offset: Offset = 0,
    ) -> CallToolResult:
        """Find as many documents for each side of a question.

        For and against a claim: two sides with a stance.
        """

        def work(progress: Progress) -> Mapping[str, Any]:
            answer = self._answered(
                progress,
                question,
                parameters={"k_per_side": k_per_side},
                filters={
                    "sides": sides,
                    "side_field": side_field,
                    "startdate": startdate,
                    "enddate": enddate,
                    "topic_id": topic_id,
                },
                data_type=data_type,
                generation_required=generation_required,
                profile=profile,
                balanced=True,
            )
            answered_sides = answer.pop("sides")
            if sides is None:
                answer["notes"] = [*answer["notes"], _NOT_FOR_AND_AGAINST]
            return paged(answer, "sides", answered_sides, offset=offset)

        if not any(isinstance(side, dict) and side.get("stance") for side in sides or ()):
            return await self.calls.answer(ctx, "retrieve_balanced", work)
        filters = (side_field, profile, startdate, enddate, topic_id, data_type)
        key = call_key(sorted(self.only or ()), question, sides, k_per_side, filters, generation_required, offset)
        return await self.calls.answer(ctx, "retrieve_balanced", work, joined_as=key)

    def _answered(
        self,
        progress: Progress,
        question: str,
        *,
        parameters: Mapping[str, Any],
        filters: Mapping[str, Any],
        data_type: list[Any] | None,
        generation_required: bool,
        balanced: bool,
        profile: str | None = None,
    ) -> dict[str, Any]:
        """Answer the plan that the arguments make. Raises InvalidInput."""
        from paper_assets.interfaces.python import answer_plan

        def go_on() -> None:
            """Stop before the next question to the model if no caller is left; it has no limit but the model's."""
            progress(0, None, "judging stances")

        folder = self._profile_folder(profile)
        if self.only is not None and "rewrite" in (data_type or ()):
            raise InvalidInput(
                "data_type: rewrites belong to profiles and are not searched here; list_rewrites has yours"
            )
        record = {
            "rewritten_question": question,
            "parameters": {name: value for name, value in parameters.items() if value is not None},
            "filters": {name: value for name, value in filters.items() if value is not None},
            "data_type": data_type or ["abstract"],
            "generation_required": generation_required,
        }
        progress(0, None, "searching")
        answer = answer_plan(
            record,
            balanced=balanced,
            desk=self._desk(progress, environ=self._patient, deadline=go_on),
            profile=str(folder) if folder else None,
            private=False,
            source="the question",
        )
        faults = [side["error"] for side in answer["sides"]]
        if all(faults):
            raise InvalidInput(f"nothing could be searched: {faults[0]}")
        return answer

    def _check(
        self, warehouse: "Warehouse", ranked_for: str | None, reader: str | None, data_types: tuple[str, ...]
    ) -> None:
        """Refuse profiles that do not exist, and those of other people. Raises InvalidInput."""
        for name in (ranked_for if ranked_for != "profile" else None, reader):
            if name is not None:
                self._check_exists(warehouse, name)
        if self.only is not None and "rewrite" in data_types:
            raise InvalidInput("in:rewrites: rewrites belong to profiles and are not searched here")


def paper_row(paper: "FoundPaper", *, authors: Sequence[str] = ()) -> dict[str, Any]:
    """Return what an assistant needs to choose; fetch_paper has the abstract. `authors`: those of the query."""
    from paper_assets.retrieval.desk_search import shown_authors

    first, more = shown_authors(paper.authors, wanted=authors)
    return {
        "paper_id": paper.paper_id,
        "title": paper.title,
        "authors": [*first, *([f"and {more} more"] if more else [])],
        "published": paper.published.date().isoformat() if paper.published else None,
        "categories": list(paper.categories),
        "score": None if paper.score is None else round(paper.score, 3),
        "passage": paper.passage,
    }
