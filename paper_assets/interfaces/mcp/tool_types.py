"""Define the arguments and answers of the tools, as an assistant sees them in their schemas."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Required

from pydantic import AfterValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema
from typing_extensions import TypedDict

MOST_TEXT = 50_000  # characters of one page of a text
MOST_VALUES = 200  # in the condition of a side, which the answer repeats

# Arguments with a clear name have no description: next_offset is in the answer, and the error for a missing profile
# names the existing ones.
Offset = Annotated[int, Field(ge=0)]
TextLimit = Annotated[int, Field(ge=1, le=MOST_TEXT, description="Characters.")]
Day = Annotated[str | None, Field(description="YYYY-MM-DD, or newest.", max_length=40)]
Profile = Annotated[str | None, Field(max_length=200)]
Words = Annotated[str, Field(max_length=10_000)]


class LLMChoice(TypedDict, total=False):
    """The language model to ask, if not the one that the server is set up for."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    provider: Literal["openai", "anthropic", "ollama"]
    model: Words


# Described in words: seldom given, and its schema would cost as many tokens as the rest of a tool.
GivenChoice = Annotated[
    LLMChoice,
    WithJsonSchema({"type": "object", "description": "{provider: openai|anthropic|ollama, model}"}),
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
    PaperQuery,
    WithJsonSchema({"type": "object", "description": "{arxiv_id}, {url}, {pdf_url} or {title}."}),
]


class PaperRecord(TypedDict, total=False):
    """A paper as search_papers and fetch_paper give it; keys that are not a paper's are ignored."""

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    paper_id: str
    title: str
    abstract: str
    authors: list[Any]
    published: str | None
    categories: list[str]
    content: str | None


# A host's model has seen such a record before it gives one: its keys need not be repeated in every conversation.
GivenPaper = Annotated[PaperRecord, WithJsonSchema({"type": "object"})]


def _few_values(where: dict[str, Any]) -> dict[str, Any]:
    """Return the condition, if it has no more values, on any depth, than an answer can repeat. Raises ValueError."""
    count, open_ones = 0, list[Any]([where])
    while open_ones:
        inner = open_ones.pop()
        entries = list(inner.values()) if isinstance(inner, dict) else inner
        count += len(entries)
        if count > MOST_VALUES:
            raise ValueError(f"a condition may have {MOST_VALUES} values, this one has more")
        open_ones += [entry for entry in entries if isinstance(entry, dict | list)]
    return where


class SideGiven(TypedDict, total=False):
    """A side by a free name and one of the others; `query` is searched instead of the question."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]

    name: Required[Words]
    where: Annotated[dict[str, Any], AfterValidator(_few_values)]
    query: Words
    stance: Literal["supports", "contradicts"]


# By the form that was given, so that an error names the faults of that form only.
_TextOrSide = Annotated[
    Annotated[str, Tag("text")] | Annotated[SideGiven, Tag("side")],
    Discriminator(lambda given: "side" if isinstance(given, dict) else "text"),
]

# In words for the same reason as `GivenChoice`.
GivenSides = Annotated[
    list[_TextOrSide] | None,
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


def _answer(names: str, **meanings: str) -> Mapping[str, str]:
    return {**dict.fromkeys(names.split(), ""), **meanings}


_FOUND = _answer(
    "next_offset papers warnings",
    total_count="Papers that the sources have for the query.",
    total="Papers of this search, over all pages.",
)
_READ = _answer(
    "paper at_most paid",
    analysis="summary, key_contributions, methodology, limitations, related_work.",
    analysis_error="Why there is no analysis, though there is a paper.",
)
# The names in each tool's answer, with the meaning of those that do not say it.
ANSWERS: Mapping[str, Mapping[str, str]] = {
    "list_profiles": _answer(
        "next_offset total",
        profiles="name, interests, liked_papers, last_ranking, last_digest, rewrites_waiting, error.",
    ),
    "read_digest": _answer(
        "next_offset profile day",
        text="Markdown.",
        total="Characters of the whole text.",
    ),
    "list_rewrites": _answer(
        "next_offset total profile",
        rewrites="paper_id, title, level, standing, score, attempts, text and what speaks against it.",
    ),
    "best_practices": _answer(
        "next_offset total",
        practices="Rewrites beside their originals, newest first.",
    ),
    "rank_and_filter_papers": _answer(
        "success error summary ranked_papers contrastive_paper comparison_notes output_path generated_at",
        total="Papers of the ranking.",
        next_offset="Null: this is the last page.",
        filtered_by_reason="How many papers each filter removed.",
        filtered_papers="The first of those removed, with reasons.",
    ),
    "todays_ranking": _answer(
        "next_offset total profile day warnings",
        scored="Papers that were scored, shown or not.",
        headline="The list in a sentence.",
        is_probability="Whether relevance is a probability and papers have a level.",
        learning="How much the reader's ratings count, and why.",
        questions="Papers about which a rating would teach most.",
        url="Address of each paper that names no other.",
        papers="summary: a sentence of the abstract. why: the match.",
        more_likely="Likely papers that follow the list.",
        by_people="Other papers by followed authors.",
    ),
    "explain_rank": _answer(
        "profile day paper_id why candidate",
        score="Its row of the ranking; null if it was removed.",
    ),
    "rate_paper": _answer(
        "profile paper_id title before",
        rating="worth, later or no; null: withdrawn.",
    ),
    "export_citations": _answer(
        "next_offset text",
        total="Characters of the whole text.",
    ),
    "what_changed": _answer(
        "next_offset total profile day",
        changes="Papers that entered, left or moved, and what did it.",
        lineage="What the two rankings were computed from, where it differs.",
        note="Why there is nothing to compare with.",
    ),
    "search_desk": _answer(
        "next_offset ways notes",
        papers="With the passage that fits best.",
        total="Papers in this answer; next_offset: there are more.",
        compared="Papers that meet the filters and were compared.",
    ),
    "ask_desk": _answer(
        "question answered examined_passages model calls input_tokens output_tokens notes",
        kind="written by a language model, or extractive: quoted.",
        sentences="text unless it is the quote, stance, checked, citations: paper_id, title, quote.",
        dropped_sentences="Left out: not supported by a quotation.",
        cost="At the configured prices.",
        at_most="The bound before the answer.",
        nearest="Quotations where a model found no answer.",
    ),
    "retrieve_standard": _answer(
        "next_offset total filter shortfall error notes",
        documents="doc_id, page_content, metadata and score of each.",
        matching="Documents that meet the filter.",
        warnings="What was compared by words only, cut, undated or weak.",
    ),
    "retrieve_balanced": _answer(
        "next_offset notes",
        sides="For each: side, documents (of a stance with the sentence), shortfall, error, warnings.",
        stance="How many were examined, by whom; judge null: none.",
        total="Number of sides.",
    ),
    "search_papers": _FOUND,
    "related_papers": _FOUND,
    "fetch_paper": _answer(
        "next_offset offset",
        paper="Metadata and content: the characters offset to offset + limit of its text.",
        content_error="Why there is no text now, though there is a paper.",
        total="Characters of the whole text; 0 if there is none.",
    ),
    "analyze_paper": _READ,
    "interpret_paper": _READ,
}
