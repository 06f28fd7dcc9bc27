"""Answer a reader's question from the stores: gather, fetch full texts where allowed, judge, write, verify.

One function serves the command line, the page and MCP. What a language model answers is kept by content, so that the
same question costs nothing a second time, and a killed run continues from the answers that it has paid for.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from math import inf
from typing import Any

from paper_assets.errors import InvalidInput, LLMConfigError, LLMNotConfigured, PaperAssetsError
from paper_assets.interpreting.clients import open_clients
from paper_assets.interpreting.papers import fetch_paper
from paper_assets.library.formats import write_papers
from paper_assets.models.embedder import Embedder
from paper_assets.models.llm import LanguageModel, upper_bound
from paper_assets.models.llm_config import Budget, LLMConfig, Usage, cost, llm_config
from paper_assets.paper import papers_from_table
from paper_assets.progress import Progress
from paper_assets.retrieval.cited_answer import (
    NEAREST,
    NOT_CHECKED,
    UNANSWERED,
    Answer,
    Citation,
    Footnote,
    NumberedSentence,
    answer_record,
    numbered,
)
from paper_assets.retrieval.merge import Candidate, access
from paper_assets.retrieval.plan import Plan, conditions_of, joined
from paper_assets.retrieval.question_answering import (
    extractive_answer,
    gather_passages,
    questions_of,
    written_answer,
)
from paper_assets.retrieval.search import open_corpus
from paper_assets.retrieval.stance_judges import open_judge, support_judge
from paper_assets.settings import Settings
from paper_assets.sources.source import seconds_from_now
from paper_assets.stores.documents import DataType, Where, embed_documents, text_before
from paper_assets.stores.llm_answers import StoredAnswers
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line
from paper_assets.text.numbers import cost_in_words
from paper_assets.text.sentences import section_of

FETCHING_SECONDS = 300.0  # for all full texts of a question, while the reader waits for the answer
MOST_FETCHED = 20  # full texts of one question; each is a request to arXiv


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """How a question is answered.

    `sides`: for and against apart. `fetch`: full texts fetched of the best papers that have none stored, at most 20.
    `most_calls` and `most_tokens` bound what the language model may use for this question (None: the configured
    budget). `extractive`: quote, and do not ask a language model. `again`: use no answer that the model gave before.
    """

    profile: str | None = None
    sides: bool = False
    fetch: int = 0
    most_calls: int | None = None
    most_tokens: int | None = None
    extractive: bool = False
    again: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.fetch <= MOST_FETCHED:
            raise InvalidInput(f"ask: full texts to fetch must be from 0 to {MOST_FETCHED}, got {self.fetch}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuestion:
    """A question with its passages, before anything is paid for; `config` is missing if no language model will be
    called. `estimate`: the most that the answer can cost, repairs included.

    `no_model`: the note that gives the reason; `configured`: whether a language model is set up at all.
    """

    question: str
    passages: tuple[Candidate, ...]
    config: LLMConfig | None
    estimate: Usage
    notes: tuple[str, ...]
    no_model: str | None = None
    configured: bool = True

    @property
    def bound(self) -> str:
        """Return the most that an answer costs, as people read it."""
        if self.config is None:
            return ""
        return cost_in_words(self.estimate.calls, self.estimate.tokens, cost(self.config, self.estimate))


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweringContext:
    """What questions are answered with: settings, stored documents, an embedding model (None: words alone are
    compared), and the environment, which configures the language model. `fetching`: seconds for all full texts of a
    question (None: no limit).
    """

    settings: Settings
    environ: Mapping[str, str]
    warehouse: Warehouse
    embedder: Embedder | None = None
    fetching: float | None = None

    @property
    def model(self) -> str | None:
        """Return the name of the language model that writes; None if none is configured."""
        try:
            return llm_config(self.environ).model
        except LLMConfigError:
            return None


def prepare_question(
    context: AnsweringContext,
    question: str,
    options: QuestionOptions,
    *,
    progress: Progress = lambda done, total, what="": None,
    where: Where | None = None,
    data_types: Sequence[DataType] = ("abstract", "fulltext"),
) -> PreparedQuestion:
    """Gather the passages, after fetching full texts where `options.fetch` allows it.

    `where`: which documents may be quoted, access included; None: all that the profile may see. A full text that cannot
    be fetched is a note. Raises InvalidInput, StoreError.
    """
    question = one_line(question)
    warehouse, embedder = context.warehouse, context.embedder
    corpus = open_corpus(context.settings, warehouse, embedder)
    allowed = access(options.profile) if where is None else where
    passages = gather_passages(corpus, question, where=allowed, data_types=data_types)
    notes: list[str] = []
    if options.fetch:
        notes += _fetch_full_texts(context, passages, options.fetch, progress)
        if embedder is not None:
            embed_documents(warehouse, "fulltext", encode=embedder.encode, model=embedder.name)
        passages = gather_passages(corpus, question, where=allowed, data_types=data_types)
    config, no_model, configured = None, None, True
    if not options.extractive:
        try:
            config = llm_config(context.environ)
        except LLMConfigError as fault:
            no_model, configured = f"quoted without a language model: {fault}", not isinstance(fault, LLMNotConfigured)
            notes.append(no_model)
    if options.sides and config is None:
        notes.append("for and against are not separated: quotations without a language model are not judged")
    return PreparedQuestion(
        question=question,
        passages=tuple(passages),
        config=config,
        estimate=upper_bound(questions_of(question, passages, sides=options.sides), config=config)
        if config and passages
        else Usage(),
        notes=tuple(notes),
        no_model=no_model,
        configured=configured,
    )


def answer_question(
    context: AnsweringContext,
    prepared: PreparedQuestion,
    options: QuestionOptions,
    *,
    progress: Callable[[str], None] = lambda step: None,
) -> Answer:
    """Answer a prepared question within its budget, using stored answers of the language model where they exist.

    `progress` is called with each step; an exception that it raises cancels the answer.
    """
    warehouse, embedder = context.warehouse, context.embedder
    if prepared.config is None or not prepared.passages:
        answer = extractive_answer(prepared.question, prepared.passages, embedder=embedder)
        return replace(_with_sections(answer, warehouse), notes=prepared.notes)
    budget = Budget(
        calls=min(options.most_calls or inf, prepared.config.budget_calls),
        tokens=min(options.most_tokens or inf, prepared.config.budget_tokens),
    )
    cache = StoredAnswers(warehouse, again=options.again)
    model = LanguageModel(config=prepared.config, purpose="answers to questions", budget=budget, cache=cache)
    answer = written_answer(
        prepared.question,
        prepared.passages,
        ask=model.ask,
        embedder=embedder,
        judge=open_judge(context.settings, context.environ, warehouse, budget=budget) if options.sides else None,
        nli=support_judge(context.settings),
        progress=progress,
    )
    paid = budget.usage
    return replace(
        _with_sections(answer, warehouse),
        calls=paid.calls,
        input_tokens=paid.input_tokens,
        output_tokens=paid.output_tokens,
        cost=cost(prepared.config, paid),
        notes=(*prepared.notes, *answer.notes),
    )


def daily_answer(context: AnsweringContext, plan: Plan, *, as_of: date | None) -> dict[str, Any]:
    """Answer a plan from public documents until a day, within the usual budget: `answer_record`, and whether the model
    failed to write it.

    Digests are sent on, so private documents are not quoted. Raises InvalidInput, StoreError.
    """
    options = QuestionOptions(sides=plan.asks_for_stances)
    where = joined(conditions_of(plan, None, as_of=as_of, owner=None))
    prepared = prepare_question(context, plan.question, options, where=where, data_types=plan.data_types)
    answer = answer_question(context, prepared, options)
    return {**answer_record(answer), "failed": answer.failure is not None}


def _with_sections(answer: Answer, warehouse: Warehouse) -> Answer:
    """Name the section of each quotation of a full text."""

    def located(citation: Citation) -> Citation:
        found = text_before(warehouse, citation.doc_id)
        return replace(citation, section=section_of(*found, citation.quote)) if found else citation

    return replace(
        answer,
        sentences=tuple(
            replace(each, citations=tuple(located(citation) for citation in each.citations))
            for each in answer.sentences
        ),
        nearest=tuple(map(located, answer.nearest)),
    )


def answer_as_markdown(answer: Answer, warehouse: Warehouse, *, bibtex: bool = True) -> str:
    """Write the answer as Markdown: numbered sentences, their quotations, and BibTeX entries of the papers."""
    lines = [f"# {answer.question}", ""]
    shown = numbered(answer)
    if not answer.answered:
        lines += [UNANSWERED, ""]
        if not shown.nearest:
            return "\n".join(lines)
    for side, sentences in shown.sides:
        lines += [f"## {side}", ""] if side else []
        lines += [_line(each) for each in sentences]
        lines.append("")
    quoted = shown.footnotes if answer.answered else shown.nearest
    lines += ["## Quotations" if answer.answered else NEAREST, "", *map(_quotation, quoted)]
    papers = list(dict.fromkeys(note.paper_id for note in quoted))
    if bibtex:
        stored = papers_from_table(papers_by_id(warehouse, papers))
        lines += ["", "## BibTeX", "", "```bibtex", write_papers(stored, "bibtex").rstrip(), "```"]
    return "\n".join([*lines, ""])


def _line(sentence: NumberedSentence) -> str:
    numbers = "".join(f"[{note.number}]" for note in sentence.notes)
    if sentence.checked:
        return f"- {_plain(sentence.text)} {numbers}"
    return f"- “{_plain(sentence.notes[0].quote)}” {numbers}  \n  {NOT_CHECKED}: {_plain(sentence.text)}"


def _plain(text: str) -> str:
    """Escape what Markdown would take for a link, an image or a tag."""
    return re.sub(r"([\[\]<>`])", r"\\\1", text)


def _quotation(note: Footnote) -> str:
    section = f", section {note.section}" if note.section else ""
    return f"{note.number}. “{_plain(note.quote)}” — {_plain(note.title)} ({note.paper_id}{section})"


def _fetch_full_texts(
    context: AnsweringContext, passages: Sequence[Candidate], most: int, progress: Progress
) -> list[str]:
    """Fetch and store the full texts of the best papers that have none; return failures as notes."""
    have = {each.source_id for each in passages if each.metadata.get("data_type") == "fulltext"}
    wanted = [each for each in dict.fromkeys(each.source_id for each in passages) if each not in have][:most]
    left = seconds_from_now(context.fetching, time.monotonic)
    notes = []
    for done, paper_id in enumerate(wanted):
        progress(done, len(wanted), f"reading {paper_id}")
        if left() <= 0:
            notes += [f"{each} was not read: no time was left" for each in wanted[done:]]
            break
        deadline = None if context.fetching is None else left()
        try:
            clients = open_clients(context.settings, context.environ, warehouse=context.warehouse, deadline=deadline)
            fetch_paper(clients, arxiv_id=paper_id)
        except PaperAssetsError as fault:
            notes.append(f"{paper_id} was not read: {fault}")
    return notes
