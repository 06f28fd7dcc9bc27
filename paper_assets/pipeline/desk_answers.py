"""Answer a reader's question from the stores: gather, fetch full texts where allowed, judge, write, verify.

One function serves the command line, the page and MCP. What a language model answers is kept by content, so that the
same question costs nothing a second time, and a run that was killed goes on with what it has paid for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paper_assets.errors import InvalidInput, LLMConfigError, PaperAssetsError
from paper_assets.interpreting.clients import open_clients
from paper_assets.interpreting.papers import fetch_paper
from paper_assets.library.formats import write_papers
from paper_assets.models import llm
from paper_assets.models.embedder import Embedder
from paper_assets.models.llm import Completion
from paper_assets.models.llm_config import Budget, LLMConfig, llm_config
from paper_assets.paper import papers_from_table
from paper_assets.progress import Progress
from paper_assets.retrieval.merge import Candidate
from paper_assets.retrieval.question_answering import (
    UNANSWERED,
    Answer,
    AskModel,
    Estimate,
    Value,
    estimate_cost,
    extractive_answer,
    gather_passages,
    written_answer,
)
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.stance_judges import open_judge
from paper_assets.settings import Settings
from paper_assets.stores.llm_records import StoredAnswers
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse

MOST_FETCHED = 20  # full texts of one question; each is a request to arXiv


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """How a question is answered.

    `sides`: for and against apart. `fetch`: full texts fetched of the best papers that have none stored, at most 20.
    `most_calls` and `most_tokens` bound what the language model may use for this question (None: the configured
    budget). `extractive`: quote, and do not ask a language model.
    """

    profile: str | None = None
    sides: bool = False
    fetch: int = 0
    most_calls: int | None = None
    most_tokens: int | None = None
    extractive: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.fetch <= MOST_FETCHED:
            raise InvalidInput(f"ask: full texts to fetch must be from 0 to {MOST_FETCHED}, got {self.fetch}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuestion:
    """A question with its passages, before anything is paid for; `config` is missing if no language model will be
    called.
    """

    question: str
    passages: tuple[Candidate, ...]
    config: LLMConfig | None
    estimate: Estimate
    notes: tuple[str, ...]


def prepare_question(
    settings: Settings,
    environ: Mapping[str, str],
    warehouse: Warehouse,
    question: str,
    options: QuestionOptions,
    *,
    embedder: Embedder | None,
    progress: Progress = lambda done, total, what="": None,
) -> PreparedQuestion:
    """Gather the passages, after fetching full texts where `options.fetch` allows it.

    A full text that cannot be fetched is a note. Raises InvalidInput, StoreError.
    """
    question = " ".join(question.split())
    corpus = Corpus(warehouse=warehouse, embedder=embedder, config=settings.retrieval)
    passages = gather_passages(corpus, question, owner=options.profile)
    notes: list[str] = []
    if options.fetch:
        notes += _fetch_full_texts(settings, environ, warehouse, passages, options.fetch, progress)
        passages = gather_passages(corpus, question, owner=options.profile)
    config = None
    if not options.extractive:
        try:
            config = llm_config(environ)
        except LLMConfigError as fault:
            notes.append(f"quoted without a language model: {fault}")
    return PreparedQuestion(
        question=question,
        passages=tuple(passages),
        config=config,
        estimate=estimate_cost(question, passages, sides=options.sides)
        if config
        else Estimate(calls=0, input_tokens=0),
        notes=tuple(notes),
    )


def answer_question(
    prepared: PreparedQuestion,
    settings: Settings,
    environ: Mapping[str, str],
    warehouse: Warehouse,
    options: QuestionOptions,
    *,
    embedder: Embedder | None,
) -> Answer:
    """Answer a prepared question within its budget, using stored answers of the language model where they exist."""
    if prepared.config is None or not prepared.passages:
        answer = extractive_answer(prepared.question, prepared.passages, embedder=embedder)
        return replace(answer, notes=prepared.notes)
    budget = _budget(prepared.config, options)
    answer = written_answer(
        prepared.question,
        prepared.passages,
        ask=_model(prepared.config, warehouse, budget),
        embedder=embedder,
        judge=open_judge(settings, environ, warehouse, budget=budget) if options.sides else None,
    )
    paid = budget.usage
    return replace(
        answer,
        calls=paid.calls,
        input_tokens=paid.input_tokens,
        output_tokens=paid.output_tokens,
        notes=(*prepared.notes, *answer.notes),
    )


def answer_as_markdown(answer: Answer, warehouse: Warehouse, *, bibtex: bool = True) -> str:
    """Write the answer as Markdown: numbered sentences, their quotations, and BibTeX entries of the papers."""
    lines = [f"# {answer.question}", ""]
    if not answer.answered:
        return "\n".join([*lines, UNANSWERED, ""])
    papers: list[str] = []
    for sentence in answer.sentences:
        marks = []
        for citation in sentence.citations:
            if citation.paper_id not in papers:
                papers.append(citation.paper_id)
            marks.append(f"[{papers.index(citation.paper_id) + 1}]")
        side = f"*{sentence.stance}:* " if sentence.stance else ""
        lines.append(f"- {side}{sentence.text} {''.join(dict.fromkeys(marks))}")
        lines += [f"  > “{citation.quote}” — {citation.title} ({citation.paper_id})" for citation in sentence.citations]
    lines += ["", "## Papers", ""]
    titles = {each.paper_id: each.title for sentence in answer.sentences for each in sentence.citations}
    lines += [f"{number}. {titles[paper_id]} ({paper_id})" for number, paper_id in enumerate(papers, 1)]
    if bibtex:
        stored = papers_from_table(papers_by_id(warehouse, papers))
        lines += ["", "## BibTeX", "", "```bibtex", write_papers(stored, "bibtex").rstrip(), "```"]
    return "\n".join([*lines, ""])


def _budget(config: LLMConfig, options: QuestionOptions) -> Budget:
    def least(one: int | None, other: int | None) -> int | None:
        return min((each for each in (one, other) if each is not None), default=None)

    return Budget(
        calls=least(options.most_calls, config.budget_calls), tokens=least(options.most_tokens, config.budget_tokens)
    )


def _model(config: LLMConfig, warehouse: Warehouse, budget: Budget) -> AskModel:
    kept = StoredAnswers(warehouse)

    def ask(*, system: str, user: str, schema: type[Value]) -> Completion[Value]:
        return llm.ask(config, system=system, user=user, schema=schema, budget=budget, cache=kept)

    return ask


def _fetch_full_texts(
    settings: Settings,
    environ: Mapping[str, str],
    warehouse: Warehouse,
    passages: Sequence[Candidate],
    most: int,
    progress: Progress,
) -> list[str]:
    """Fetch and store the full texts of the best papers that have none; return failures as notes."""
    have = {each.source_id for each in passages if each.metadata.get("data_type") == "fulltext"}
    wanted = [each for each in dict.fromkeys(each.source_id for each in passages) if each not in have][:most]
    clients = open_clients(settings, environ, warehouse=warehouse)
    notes = []
    for done, paper_id in enumerate(wanted):
        progress(done, len(wanted), f"reading {paper_id}")
        try:
            fetch_paper(clients, arxiv_id=paper_id)
        except PaperAssetsError as fault:
            notes.append(f"{paper_id} was not read: {fault}")
    return notes
