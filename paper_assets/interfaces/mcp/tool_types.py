"""Define the arguments and answers of the tools, as an assistant sees them in their schemas."""

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


class Continued(TypedDict):
    """An answer in pages."""

    next_offset: int | None


class Paged(Continued):
    total: int


class SearchAnswer(Continued):
    papers: list[dict[str, Any]]
    total_count: Annotated[int, Field(description="Papers that the sources have for the query.")]
    total: Annotated[int, Field(description="Papers of this search, over all pages.")]
    warnings: list[str]


class FetchAnswer(Continued):
    paper: Annotated[
        dict[str, Any], Field(description="Metadata and content: the characters offset to offset + limit of its text.")
    ]
    content_error: Annotated[
        dict[str, Any] | None, Field(description="Why there is no text now, though there is a paper.")
    ]
    total: Annotated[int, Field(description="Characters of the whole text; 0 if there is none.")]
    offset: int


class ReadAnswer(TypedDict):
    paper: dict[str, Any]
    analysis: Annotated[
        dict[str, Any] | None, Field(description="summary, key_contributions, methodology, limitations, related_work.")
    ]
    analysis_error: Annotated[
        dict[str, Any] | None, Field(description="Why there is no analysis, though there is a paper.")
    ]
    at_most: str | None
    paid: str | None


class RankAnswer(Paged):
    success: bool
    error: str | None
    summary: dict[str, Any]
    ranked_papers: list[dict[str, Any]]
    contrastive_paper: dict[str, Any] | None
    comparison_notes: list[dict[str, Any]]
    filtered_by_reason: Annotated[dict[str, int], Field(description="How many papers each filter removed.")]
    filtered_papers: Annotated[list[dict[str, Any]], Field(description="The first of those removed, with reasons.")]
    output_path: str | None
    generated_at: str


class TodaysRanking(Paged):
    profile: str
    day: str
    scored: Annotated[int, Field(description="Papers that were scored, shown or not.")]
    headline: Annotated[str, Field(description="The list in a sentence.")]
    is_probability: Annotated[bool, Field(description="Whether relevance is a probability and papers have a level.")]
    learning: Annotated[str | None, Field(description="How much the reader's ratings count, and why.")]
    questions: Annotated[list[dict[str, str]], Field(description="Papers about which a rating would teach most.")]
    url: Annotated[str, Field(description="Address of each paper that names no other.")]
    papers: Annotated[list[dict[str, Any]], Field(description="summary: a sentence of the abstract. why: the match.")]
    more_likely: Annotated[list[dict[str, Any]], Field(description="Likely papers that follow the list.")]
    by_people: Annotated[list[dict[str, Any]], Field(description="Other papers by followed authors.")]
    warnings: list[str]


class RankExplained(TypedDict):
    profile: str
    day: str
    paper_id: str
    why: list[str]
    score: Annotated[dict[str, Any] | None, Field(description="Its row of the ranking; null if it was removed.")]
    candidate: dict[str, Any] | None


class PaperRated(TypedDict):
    profile: str
    paper_id: str
    title: str | None
    rating: Annotated[str | None, Field(description="worth, later or no; null: withdrawn.")]
    before: str | None


class CitationsExported(Continued):
    text: str
    total: Annotated[int, Field(description="Characters of the whole text.")]


class ProfilesListed(Paged):
    profiles: Annotated[
        list[dict[str, Any]],
        Field(description="name, interests, liked_papers, last_ranking, last_digest, rewrites_waiting, error."),
    ]


class DigestRead(Continued):
    profile: str
    day: str
    text: Annotated[str, Field(description="Markdown.")]
    total: Annotated[int, Field(description="Characters of the whole text.")]


class RewritesListed(Paged):
    profile: str
    rewrites: Annotated[
        list[dict[str, Any]],
        Field(description="paper_id, title, level, standing, score, attempts, text and what speaks against it."),
    ]


class PracticesListed(Paged):
    practices: Annotated[list[dict[str, Any]], Field(description="Rewrites beside their originals, newest first.")]


class WhatChanged(Paged):
    profile: str
    day: str
    changes: Annotated[list[dict[str, Any]], Field(description="Papers that entered, left or moved, and what did it.")]
    lineage: Annotated[dict[str, Any], Field(description="What the two rankings were computed from, where it differs.")]
    note: Annotated[str | None, Field(description="Why there is nothing to compare with.")]


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


class RetrieveStandardAnswer(Paged):
    documents: Annotated[list[dict[str, Any]], Field(description="doc_id, page_content, metadata and score of each.")]
    matching: Annotated[int, Field(description="Documents that meet the filter.")]
    filter: dict[str, Any] | None
    warnings: Annotated[list[str], Field(description="What was compared by words only, cut, undated or weak.")]
    shortfall: str | None
    error: str | None
    notes: list[str]


class RetrieveBalancedAnswer(Continued):
    sides: Annotated[
        list[dict[str, Any]],
        Field(description="For each: side, documents (of a stance with the sentence), shortfall, error, warnings."),
    ]
    stance: Annotated[dict[str, Any] | None, Field(description="How many were examined, by whom; judge null: none.")]
    total: Annotated[int, Field(description="Number of sides.")]
    notes: list[str]


class SearchDeskAnswer(Continued):
    papers: Annotated[list[dict[str, Any]], Field(description="With the passage that fits best.")]
    total: Annotated[int, Field(description="Papers in this answer; next_offset: there are more.")]
    compared: Annotated[int | None, Field(description="Papers that meet the filters and were compared.")]
    ways: list[str]
    notes: list[str]


class AskDeskAnswer(TypedDict):
    question: str
    answered: bool
    kind: Annotated[str, Field(description="written by a language model, or extractive: quoted.")]
    sentences: Annotated[
        list[dict[str, Any]],
        Field(description="text unless it is the quote, stance, checked, citations: paper_id, title, quote."),
    ]
    dropped_sentences: Annotated[int, Field(description="Left out: not supported by a quotation.")]
    examined_passages: int
    model: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cost: Annotated[float | None, Field(description="At the configured prices.")]
    at_most: Annotated[str | None, Field(description="The bound before the answer.")]
    notes: list[str]
    nearest: Annotated[list[dict[str, Any]], Field(description="Quotations where a model found no answer.")]
