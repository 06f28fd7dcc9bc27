"""Tools that find passages which answer a question: retrieve_standard and retrieve_balanced (SPEC R2, R3).

No caller counts as the owner of a private document here, so none is ever shown (M3).
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.mcp.calls import call_key, paged
from paper_assets.interfaces.mcp.tool_set import READS, STORES_OR_PAYS, ToolSet, served
from paper_assets.interfaces.mcp.tool_types import GivenSides, Offset, Words
from paper_assets.progress import Progress

Question = Annotated[Words, Field(min_length=1, max_length=2_000)]
Days = Annotated[str | None, Field(max_length=40, description="YYYY-MM-DD.")]
Topic = Annotated[Words | None, Field(description="Archive: cs, math.")]
DataTypes = Annotated[
    list[Literal["abstract", "fulltext", "rewrite"]] | None,
    Field(description="Default abstract."),
]
SearchMethod = Literal["hybrid", "vector", "lexical"] | None
_NOT_FOR_AND_AGAINST = (
    'the sides are values of side_field; for and against a claim: sides=[{"name": "for", "stance": "supports"}, '
    '{"name": "against", "stance": "contradicts"}], or ask_desk with for_and_against'
)
Graded = Annotated[bool, Field(description="Passages, not links.")]


class EvidenceTools(ToolSet):
    """The tools over the collections of documents."""

    @served("Evidence for a question", READS)
    async def retrieve_standard(
        self,
        ctx: Context,
        question: Question,
        k: Annotated[int | None, Field(ge=1, le=100, description="Default 10.")] = None,
        startdate: Days = None,
        enddate: Days = None,
        topic_id: Topic = None,
        data_type: DataTypes = None,
        method: SearchMethod = None,
        generation_required: Graded = False,
        offset: Offset = 0,
    ) -> CallToolResult:
        """Find the stored documents that answer a question best."""

        def work(progress: Progress) -> Mapping[str, Any]:
            answer = self._answered(
                progress,
                question,
                parameters={"k": k, "method": method},
                filters={"startdate": startdate, "enddate": enddate, "topic_id": topic_id},
                data_type=data_type,
                generation_required=generation_required,
                balanced=False,
            )
            [single_side] = answer.pop("sides")
            documents = answer.pop("documents")
            del single_side["documents"]
            return paged({**answer, **single_side}, "documents", documents, offset=offset)

        return await self.calls.answer(ctx, "retrieve_standard", work)

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
        method: SearchMethod = None,
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
                parameters={"k_per_side": k_per_side, "method": method},
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
        filters = (side_field, profile, startdate, enddate, topic_id, data_type, method)
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
