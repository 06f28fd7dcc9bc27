"""Analyze one paper with a language model: `summary`, `detailed` or `comparison`, stored by content (SPEC I1, I5).

A text that does not fit into one prompt is read in parts, and the notes on the parts are then read as one text. Each
answer is stored as it arrives, so a call that runs out of time continues there when it is repeated. The prompts and the
shapes of the answers come first.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import BaseModel, Field

from paper_assets.errors import (
    InvalidArxivId,
    InvalidInput,
    LLMConfigError,
    LLMError,
    ModelUnavailable,
    PaperNotFound,
    RateLimited,
    SourceError,
    StoreBusy,
    StoreError,
)
from paper_assets.interpreting.clients import Clients
from paper_assets.interpreting.lookup import FetchedPaper, with_content
from paper_assets.interpreting.papers import fetch_paper, fetched_from_mapping, fetched_to_mapping
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.models.llm import LanguageModel, upper_bound
from paper_assets.models.llm_config import Budget, LLMConfig, Usage, cost, llm_config
from paper_assets.models.llm_providers import prompt_room
from paper_assets.paper import Paper
from paper_assets.progress import Progress
from paper_assets.retrieval.stance_judges import support_judge
from paper_assets.settings import Settings
from paper_assets.sources.source import SecondsLeft
from paper_assets.sources.table import source_of
from paper_assets.stores.llm_answers import StoredAnswers
from paper_assets.text.cleaning import introduced
from paper_assets.text.numbers import NOTHING_PAID, cost_in_words
from paper_assets.text.prompts import AskModel, prompt
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.support import Statement, check, evidence, longest_questions, settled, similarities_of

AnalysisType = Literal["summary", "detailed", "comparison"]
ANALYSIS_TYPES: tuple[AnalysisType, ...] = get_args(AnalysisType)

_MOST_AUTHORS = 30
_LONGEST_TITLE, _LONGEST_ABSTRACT = 500, 6_000  # characters; arXiv allows 1,920 for an abstract

_FROM_NOTES = (
    "You are shown notes on the parts of the paper, in their order. Write as if you had read the paper itself."
)

Line = Annotated[str, Field(max_length=600)]
Lines = Annotated[list[Line], Field(max_length=12)]


class Reading(BaseModel):
    """The analysis as the model gives it (I1)."""

    summary: Annotated[str, Field(min_length=1, max_length=6_000)]
    key_contributions: Lines
    methodology: Annotated[str, Field(max_length=4_500)]
    limitations: Lines
    related_work: Lines


NoteLines = Annotated[list[Annotated[str, Field(max_length=300)]], Field(max_length=10)]


class Notes(BaseModel):
    """What the model notes about one part."""

    content: NoteLines
    contributions: NoteLines
    methods: NoteLines
    results: NoteLines
    limitations: NoteLines
    related_work: NoteLines


_LABELS = frozenset((*Reading.model_fields, "title", "authors", "abstract"))  # small models answer with them alone


def reading_task(kind: AnalysisType, *, from_notes: bool) -> str:
    """Return the instructions for the analysis."""
    return "\n\n".join([prompt(f"analyse_{kind}"), *([_FROM_NOTES] if from_notes else [])])


def head_of(paper: Paper) -> str:
    """Return title, authors and abstract as the opening lines of a text."""
    authors = ", ".join(" ".join(name.split())[:100] for name in paper.authors[:_MOST_AUTHORS])
    if len(paper.authors) > _MOST_AUTHORS:
        authors += f" and {len(paper.authors) - _MOST_AUTHORS} others"
    lines = {
        "Title": " ".join(paper.title.split())[:_LONGEST_TITLE],
        "Authors": authors,
        "Abstract": " ".join(paper.abstract.split())[:_LONGEST_ABSTRACT],
    }
    return "\n".join(f"{name}: {text}" for name, text in lines.items() if text)


_PAUSES = (b"\n\n", b".\n", b". ", b"\n", b" ")


def parts_of(text: str, *, most_bytes: int) -> list[str]:
    """Split the text into parts of at most `most_bytes` (from 4) UTF-8 bytes; only white space is lost at the cuts.

    A part ends at the last paragraph, sentence, line or word that leaves it at least half full, in this order of
    preference.
    """
    data = text.strip().encode("utf-8", "replace")
    parts: list[str] = []
    start = 0
    while start < len(data):
        end = start + most_bytes
        if end < len(data):
            end = _cut(data, start, end)
        part = data[start:end].decode("utf-8").strip()
        parts += [part] if part else []
        start = end
    return parts


def _cut(data: bytes, start: int, end: int) -> int:
    for pause in _PAUSES:
        place = data.rfind(pause, start + (end - start) // 2, end)
        if place >= 0:
            return place + len(pause)
    while data[end] & 0b1100_0000 == 0b1000_0000:  # do not cut inside a character
        end -= 1
    return end


IDENTIFIERS = ("arxiv_id", "url", "pdf_url", "title")  # I2: in this order

_AROUND = 2_200  # tokens of a prompt beside head and text: instructions, schema, fences, a repair
_LEAST_TOKENS = 500  # tokens of text; with fewer a paper would need hundreds of parts
_MOST_PARTS = 60
_MOST_ROUNDS = 3  # of notes on notes
_LONGEST_NOTES = 20_000  # bytes of the notes on a part
_SHARE_OF_A_TEXT = 0.5  # of the time of a call, where the abstract can be read instead

Value = TypeVar("Value", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analysis, the model, what was read, what it could cost and did, and the usage (none if it was stored).

    It holds what the text supports. `not_checked`: what the model also wrote and could not be checked, each with its
    part and the nearest words of the text; `dropped`: how many sentences the text does not support.
    """

    summary: str
    key_contributions: tuple[str, ...]
    methodology: str
    limitations: tuple[str, ...]
    related_work: tuple[str, ...]
    analysis_type: AnalysisType
    read: Literal["full text", "abstract"]
    parts: int  # number of parts the text was split into
    model: str
    at_most: str
    paid: str
    usage: Usage
    not_checked: tuple[Mapping[str, str], ...] = ()
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """A paper with its analysis, or with the reason for its absence: {"code", "message"} (I5)."""

    paper: FetchedPaper
    analysis: Analysis | None
    analysis_error: Mapping[str, str] | None = None


def analyze_paper(
    clients: Clients,
    paper: FetchedPaper,
    *,
    analysis_type: str = "summary",
    provider: str | None = None,
    model: str | None = None,
) -> Analysis:
    """Analyze the paper's text, or its abstract if there is none.

    Raises InvalidInput (analysis type, nothing to read, far too long), LLMConfigError, LLMError, StoreError.
    """
    kind = checked_type(analysis_type)
    config = llm_config(clients.environ, provider=provider, model=model)
    return _analysis(clients.of_one_call(), paper, kind, config=config, left=clients.started())


def interpret_paper(
    clients: Clients,
    query: Mapping[str, Any],
    *,
    analysis_type: str = "summary",
    provider: str | None = None,
    model: str | None = None,
    found: Callable[[FetchedPaper], None] = lambda _: None,
) -> Interpretation:
    """Fetch and analyze a paper; `query` has `arxiv_id`, `url`, `pdf_url` or `title`.

    If the language model or the store of answers fails, the paper is returned without analysis (I5). `found` is called
    with the paper before the analysis. If the PDF is not available, the abstract is read and a warning added. Raises
    what `fetch_paper` raises, and InvalidInput for an unknown analysis type or key.
    """
    kind, identifiers = checked_type(analysis_type), _identifiers(query)
    clients, left = clients.of_one_call(), clients.started()
    # One step for the paper, one for its PDF, then those of the analysis.
    paper = fetch_paper(_from_step(clients, 0, of=1), **identifiers, include_pdf_content=False)
    found(paper)
    return _interpreted(clients, paper, kind, provider=provider, model=model, found=found, left=left)


def interpret_record(
    clients: Clients,
    record: Mapping[str, Any],
    *,
    analysis_type: str = "summary",
    provider: str | None = None,
    model: str | None = None,
    found: Callable[[FetchedPaper], None] = lambda _: None,
) -> Interpretation:
    """Analyze a paper that is given as `fetch_paper` returns it, or by its id alone.

    A whole text is read as it is given. Otherwise the text is fetched, else the abstract is read; a part of a text is
    never taken for the whole. Raises what `interpret_paper` raises.
    """
    kind = checked_type(analysis_type)
    clients, left = clients.of_one_call(), clients.started()
    paper = _given_paper(_from_step(clients, 0, of=1), record)
    found(paper)
    fetchable = source_of(paper.paper.paper_id) is not None or record.get("content_is_part")
    return _interpreted(
        clients, paper, kind, provider=provider, model=model, found=found, left=left, fetch=bool(fetchable)
    )


def _given_paper(clients: Clients, record: Mapping[str, Any]) -> FetchedPaper:
    """Return the paper of a record without a part of a text; looked up by its id unless its whole text is given."""
    part = record.get("content_is_part")
    known = {**record, "content": None if part else record.get("content"), "content_is_part": False}
    named = str(record.get("paper_id") or record.get("arxiv_id") or "")
    if known["content"] or not named:
        if not record.get("title"):
            raise InvalidInput("paper: give its paper_id, or its title with content or abstract")
        return fetched_from_mapping(known)
    try:
        return fetch_paper(clients, arxiv_id=named, include_pdf_content=False)
    except (InvalidArxivId, PaperNotFound, SourceError) as failure:
        if not record.get("title"):
            raise
        paper = fetched_from_mapping(known)
        return replace(paper, warnings=(f"the record is used as given: {failure}",))


def _interpreted(
    clients: Clients,
    paper: FetchedPaper,
    kind: AnalysisType,
    *,
    provider: str | None,
    model: str | None,
    found: Callable[[FetchedPaper], None],
    left: SecondsLeft,
    fetch: bool = True,
) -> Interpretation:
    """Analyze a known paper: its text, which is fetched if it can be, else its abstract."""
    try:
        config = llm_config(clients.environ, provider=provider, model=model)
    except LLMConfigError as error:  # without a model the text is not needed
        return Interpretation(paper=paper, analysis=None, analysis_error=error_of_analysis(error))
    if paper.content is None and fetch:
        clients.progress(1, 3, "reading its text")
        try:
            share = _SHARE_OF_A_TEXT if paper.paper.abstract.strip() else 1.0
            paper = with_content(clients, paper, replace(clients, deadline=share * left()).started())
        except SourceError as failure:
            if not paper.paper.abstract.strip():
                raise
            paper = replace(paper, warnings=(*paper.warnings, f"only the abstract was read: {failure}"))
    found(paper)
    try:
        analysis = _analysis(_from_step(clients, 2), paper, kind, config=config, left=left)
    except (LLMError, StoreError) as error:
        return Interpretation(paper=paper, analysis=None, analysis_error=error_of_analysis(error))
    return Interpretation(paper=paper, analysis=analysis)


def error_of_analysis(error: LLMError | StoreError) -> dict[str, str]:
    """Return why there is no analysis, as {"code", "message"}."""
    code = error.code if isinstance(error, LLMError) else LLMError.code  # I4 has no code for a failing store,
    code = RateLimited.code if isinstance(error, StoreBusy) else code  # but one for "retry later"
    return {"code": code, "message": f"{error}"}


def checked_type(analysis_type: str) -> AnalysisType:
    """Validate an analysis type. Raises InvalidInput."""
    chosen = next((kind for kind in ANALYSIS_TYPES if kind == analysis_type), None)
    if chosen is None:
        raise InvalidInput(f"analysis_type must be one of {', '.join(ANALYSIS_TYPES)}, got {analysis_type[:40]!r}")
    return chosen


def analysis_to_mapping(analysis: Analysis) -> dict[str, Any]:
    """Return `{summary, key_contributions[], methodology, limitations[], related_work[]}` (I1) and how it was made.

    The costs are left out: they differ between a new and a stored answer, and the answer must not (I5).
    """
    values = {name: value for name, value in asdict(analysis).items() if name not in ("at_most", "paid", "usage")}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def interpretation_to_mapping(interpretation: Interpretation) -> dict[str, Any]:
    """Return `{paper, analysis, analysis_error, at_most, paid}`, JSON-ready."""
    analysis, error = interpretation.analysis, interpretation.analysis_error
    return {
        "paper": fetched_to_mapping(interpretation.paper),
        "analysis": None if analysis is None else analysis_to_mapping(analysis),
        "analysis_error": None if error is None else dict(error),
        "at_most": analysis and analysis.at_most,
        "paid": analysis and analysis.paid,
    }


def _analysis(
    clients: Clients, paper: FetchedPaper, kind: AnalysisType, *, config: LLMConfig, left: SecondsLeft
) -> Analysis:
    head, content = head_of(paper.paper), (paper.content or "").strip()
    if not content and not paper.paper.abstract.strip():
        raise InvalidInput("paper: there is neither content nor abstract to analyze")
    most_bytes = 3 * (prompt_room(config, config.most_prompt_tokens) - _AROUND) - len(head.encode("utf-8", "replace"))
    if most_bytes < (3 * _LEAST_TOKENS if content else 0):
        limit = "OLLAMA_NUM_CTX" if config.provider == "ollama" else "the longest prompt"
        raise LLMConfigError(f"{limit} leaves no space for a paper beside the instructions; set it to 16384 or more")
    budget = Budget(calls=config.budget_calls, tokens=config.budget_tokens)
    cache = StoredAnswers(clients.warehouse, again=clients.again)
    model = LanguageModel(config=config, purpose="analyses of papers", budget=budget, cache=cache)

    parts = parts_of(content, most_bytes=most_bytes)
    if len(parts) > _MOST_PARTS:
        raise InvalidInput(
            f"paper: its text of {len(content):,} characters would be {len(parts)} prompts, more than {_MOST_PARTS}"
        )
    bound = budget.capped(_upper_bound(head, parts, kind, config=config, most_bytes=most_bytes))
    at_most = cost_in_words(bound.calls, bound.tokens, cost(config, bound))
    clients.announce(f"Asking {config.model}: at most {at_most}, repairs included")

    def asked(system: str, text: str, schema: type[Value], what: str, done: int) -> Value:
        seconds = config.deadline if clients.models_go_on else min(config.deadline, left())
        if seconds <= 0:
            raise LLMError(f"the time for this call is over after {done} answers; they are kept: ask again to continue")
        user = introduced(f"{what},", "text", f"{head}\n\n{text}".strip())
        return model.ask(system=system, user=user, schema=schema, deadline=seconds).value

    if len(parts) <= 1:
        clients.progress(0, 1, "asking the language model")
        what = "The full text of the paper" if content else "Title and abstract of the paper"
        reading = asked(reading_task(kind, from_notes=False), content, Reading, what, 0)
    else:
        notes = _notes(partial(asked, prompt("take_notes")), parts, most_bytes=most_bytes, progress=clients.progress)
        task = reading_task(kind, from_notes=True)
        reading = asked(task, notes, Reading, f"Notes on the {len(parts)} parts of the paper", len(parts))
    clients.progress(len(parts), len(parts) + 1, "checking it against the text")
    source = f"{head}\n\n{content}".strip()

    def check_with(**question: Any) -> Any:
        seconds = config.deadline if clients.models_go_on else min(config.deadline, max(left(), 0.1))
        return model.ask(**question, deadline=seconds)

    found = _checked(reading, source, ask=check_with, embedder=_embedder(clients.settings), settings=clients.settings)
    clients.progress(len(parts) + 1, len(parts) + 1, "done")
    used = budget.usage
    return Analysis(
        **found,
        analysis_type=kind,
        read="full text" if content else "abstract",
        parts=max(1, len(parts)),
        model=config.model,
        at_most=at_most,
        paid=cost_in_words(used.calls, used.tokens, cost(config, used)) if used.calls else NOTHING_PAID,
        usage=used,
    )


def _upper_bound(head: str, parts: Sequence[str], kind: AnalysisType, *, config: LLMConfig, most_bytes: int) -> Usage:
    """Return what an analysis costs at most: notes on the parts, on the notes, the analysis, and its check."""
    text, count, bound = "x" * (most_bytes if len(parts) > 1 else len("".join(parts).encode())), len(parts), Usage()
    if count > 1:
        notes = upper_bound([(prompt("take_notes") + head + text, Notes)], config=config)
        for _ in range(_MOST_ROUNDS):
            bound += notes * count
            if count * _LONGEST_NOTES <= most_bytes:
                break
            count = -(-2 * count * _LONGEST_NOTES // most_bytes)  # a part may be half full
    reading = (reading_task(kind, from_notes=len(parts) > 1) + head + text, Reading)
    return bound + upper_bound([reading, *longest_questions()], config=config)


def _checked(
    reading: Reading, source: str, *, ask: AskModel, embedder: Embedder | None, settings: Settings
) -> dict[str, Any]:
    """Return the fields of an analysis: the sentences that the text supports, and those that could not be checked."""
    parts = [
        (name, " ".join(text.split()))
        for name, value in reading
        for text in (_sentences(value) if isinstance(value, str) else value)
        if text.strip()
    ]
    similarities = similarities_of(embedder)
    cited = evidence([text for _, text in parts], source, similarities)
    statements = [
        Statement(text=text, cited=words, source=source) for (_, text), words in zip(parts, cited, strict=True)
    ]
    checked = check(statements, similarities)
    outcomes = [
        "dropped" if text.lower().replace(" ", "_").strip(".:_") in _LABELS else each
        for (_, text), each in zip(
            parts, settled(statements, checked, ask=ask, nli=support_judge(settings)), strict=True
        )
    ]
    kept = [(name, text) for (name, text), each in zip(parts, outcomes, strict=True) if each == "supported"]
    return {
        **{name: " ".join(text for of, text in kept if of == name) for name in ("summary", "methodology")},
        **{
            name: tuple(text for of, text in kept if of == name)
            for name in ("key_contributions", "limitations", "related_work")
        },
        "not_checked": tuple(
            {"part": name, "text": text, "nearest": words}
            for (name, text), words, each in zip(parts, cited, outcomes, strict=True)
            if each == "unchecked"
        ),
        "dropped": sum(each == "dropped" for each in outcomes),
    }


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def _embedder(settings: Settings) -> Embedder | None:
    try:
        return load_embedder(settings.embedding_model)
    except ModelUnavailable:
        return None


def _notes(asked: Any, parts: Sequence[str], *, most_bytes: int, progress: Progress) -> str:
    """Return notes on all parts as one text of limited size; if they are longer, notes on the notes."""
    total, done = len(parts) + 1, 0
    for _ in range(_MOST_ROUNDS):
        taken: list[str] = []
        for place, part in enumerate(parts, 1):
            progress(min(done, total - 1), total, f"reading part {place} of {len(parts)}")
            notes: Notes = asked(part, Notes, f"Part {place} of {len(parts)} of the paper", done)
            noted = _written(notes).encode("utf-8", "replace")[:_LONGEST_NOTES].decode("utf-8", "ignore")
            taken.append(f"Part {place}\n{noted}")
            done += 1
        joined = "\n\n".join(taken)
        if len(joined.encode("utf-8", "replace")) <= most_bytes:
            return joined
        parts = parts_of(joined, most_bytes=most_bytes)
    raise LLMError(f"the notes on the paper did not get short enough in {_MOST_ROUNDS} rounds")


def _written(notes: Notes) -> str:
    return "\n".join(
        f"{name.replace('_', ' ')}:\n" + "\n".join(f"- {line}" for line in lines)
        for name, lines in notes.model_dump().items()
        if lines
    )


def _from_step(clients: Clients, first: int, *, of: int = 0) -> Clients:
    """Return clients whose progress starts at step `first`, with `of` further steps after it."""

    def progress(done: int, total: int | None, what: str = "") -> None:
        clients.progress(first + done, None if total is None else first + total + of, what)

    return replace(clients, progress=progress)


def _identifiers(query: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(query, Mapping):
        raise InvalidInput(f"query must be an object with one of {', '.join(IDENTIFIERS)}")
    identifiers = {name: value for name, value in query.items() if value is not None}
    for name, value in identifiers.items():
        if name not in IDENTIFIERS:
            raise InvalidInput(f"query: {name[:40]!r} is unknown; give one of {', '.join(IDENTIFIERS)}")
        if not isinstance(value, str):
            raise InvalidInput(f"query: {name} must be a text")
    return identifiers
