"""Ask a real model server: every part of the desk that uses a language model, and what goes wrong with one.

The weights are random, so an answer means nothing: asserted are its shape, the one line of an error, the counts of
calls and tokens, and that the server keeps running.
"""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import BaseModel, Field, create_model

from paper_assets.errors import LLMError, LLMUnreachable
from paper_assets.interpreting.analysis import analyze_paper
from paper_assets.interpreting.lookup import FetchedPaper
from paper_assets.models.embedder import load_embedder
from paper_assets.models.llm import Completion, LanguageModel
from paper_assets.models.llm_config import Budget, llm_config
from paper_assets.paper import papers_to_table
from paper_assets.pipeline.desk_answers import AnsweringContext, QuestionOptions, answer_question, prepare_question
from paper_assets.profile import Interests
from paper_assets.ranking.verifier import check_relevance, open_verifier
from paper_assets.retrieval.stance import Passage
from paper_assets.retrieval.stance_judges import open_llm_judge
from paper_assets.rewriting.faithfulness import unsupported
from paper_assets.rewriting.prompts import Critique, critic_question
from paper_assets.rewriting.writing import new_item, open_writer, write_attempt
from paper_assets.settings import RewritingConfig, ScoringConfig, load_settings
from tests.interpreting.outside import outside, titled
from tests.llm_server.conftest import CONTEXT, ModelServer
from tests.retrieval.invented_corpus import corpus_of
from tests.rewriting.scripted import PAPER

TRIES = 12  # questions until a random answer is in the range that its schema demands


class Note(BaseModel):
    """A nested answer without bounds: every answer that keeps to the schema is valid."""

    text: str
    lines: list[str]
    kind: Literal["fact", "guess"]


class Notes(BaseModel):
    notes: list[Note]
    count: int
    sure: bool


class Bounded(BaseModel):
    score: Annotated[int, Field(ge=0, le=20)]
    words: list[str]


FIELDS: dict[str, Any] = {f"field_{number}": (str, ...) for number in range(150)}
Long = create_model("Long", **FIELDS)  # whose answer takes the server about a second


def asked(
    server: ModelServer, schema: type[BaseModel], *, words: str = "", budget: Budget | None = None
) -> Completion[BaseModel]:
    model = LanguageModel(config=llm_config(server.environ()), budget=budget)
    return model.ask(system="You take notes.", user=f"Take notes. {words}", schema=schema)


def test_the_server_keeps_to_the_schema_and_counts_tokens(model_server: ModelServer) -> None:
    valid = 0
    for number in range(TRIES):
        budget = Budget()
        try:
            answer = asked(model_server, Notes, words=str(number), budget=budget)
        except LLMError as error:  # an empty answer, or one that never ends
            assert "\n" not in str(error)
            continue
        valid += 1
        assert isinstance(answer.value, Notes)
        assert all(note.kind in ("fact", "guess") for note in answer.value.notes)
        assert answer.usage.input_tokens > 100 and answer.usage.output_tokens > 5
        assert answer.usage == budget.usage
        assert answer.usage.calls == 2  # this server refuses `json_schema` and takes the schema beside `json_object`
    assert valid >= TRIES // 2


def test_a_value_out_of_range_is_repaired_or_refused_in_one_line(model_server: ModelServer) -> None:
    for number in range(TRIES):
        budget = Budget()
        try:
            answer = asked(model_server, Bounded, words=str(number), budget=budget)
            assert isinstance(answer.value, Bounded) and 0 <= answer.value.score <= 20
        except LLMError as error:
            assert "\n" not in str(error) and error.usage == budget.usage
        assert 2 <= budget.usage.calls <= 3


def test_a_prompt_longer_than_the_context_is_one_clear_error_without_another_try(model_server: ModelServer) -> None:
    budget = Budget()
    with pytest.raises(LLMError, match="maximum context length is 16384 tokens") as refused:
        asked(model_server, Notes, words="z" * 2 * CONTEXT, budget=budget)
    assert not isinstance(refused.value, LLMUnreachable)
    assert "\n" not in str(refused.value) and "400" in str(refused.value)
    assert budget.usage.calls == 2


def test_an_answer_that_fills_the_context_is_called_incomplete(model_server: ModelServer) -> None:
    """Leave less space than the shortest answer needs."""
    with pytest.raises(LLMError) as cut:
        for length in range(CONTEXT - 400, CONTEXT, 20):  # the rest of the prompt takes some hundred tokens
            asked(model_server, Notes, words="z" * length)
    assert "cut off" in str(cut.value) or "context length" in str(cut.value)
    assert "\n" not in str(cut.value)


def test_a_slow_answer_ends_at_the_timeout_and_the_server_serves_the_next(model_server: ModelServer) -> None:
    """Also a client that leaves: at the timeout the connection is closed while the server still writes."""
    hurried = llm_config(model_server.environ(PAPER_ASSETS_LLM_TIMEOUT="0.2", PAPER_ASSETS_LLM_DEADLINE="3"))
    with pytest.raises(LLMUnreachable, match=r"no answer within 0\.2 s") as late:
        LanguageModel(config=hurried).ask(system="You take notes.", user="Take long notes.", schema=Long)
    assert "\n" not in str(late.value) and late.value.usage.calls >= 2
    assert _answers(model_server)


def test_questions_at_once_are_all_answered_though_one_client_leaves(model_server: ModelServer) -> None:
    hurried = llm_config(model_server.environ(PAPER_ASSETS_LLM_TIMEOUT="0.2", PAPER_ASSETS_LLM_DEADLINE="0.5"))

    def leave() -> str:
        with pytest.raises(LLMError) as late:
            LanguageModel(config=hurried).ask(system="You take notes.", user="Take long notes.", schema=Long)
        return str(late.value)

    with ThreadPoolExecutor(4) as pool:
        left = pool.submit(leave)
        others = [pool.submit(_answers, model_server) for _ in range(3)]
        assert all(each.result() for each in others)
        assert left.result()


def _answers(server: ModelServer) -> bool:
    """Ask until an answer is valid: the server serves."""
    for number in range(TRIES):
        try:
            return bool(asked(server, Notes, words=f"again {number}").usage.output_tokens)
        except LLMUnreachable:
            raise
        except LLMError:
            continue
    return False


def test_the_verifier_keeps_the_embedding_scores_that_the_model_did_not_judge(model_server: ModelServer) -> None:
    verifier = open_verifier(model_server.environ())
    relevance = np.array([0.5, 0.6, 0.9])
    papers = [PAPER, titled(2, "Folding Caches"), titled(3, "Sheep")]
    checked = check_relevance(
        papers_to_table(papers),
        relevance,
        Interests(primary=["counting sheep"]),
        verifier=verifier,
        scoring=ScoringConfig(),
    )
    assert checked.doubtful == 2 and checked.usage.calls >= 2 and checked.usage.input_tokens > 500
    assert (checked.relevance[~checked.verified] == relevance[~checked.verified]).all()
    assert ((checked.relevance >= 0) & (checked.relevance <= 1)).all()
    assert checked.verified.sum() == 2 or (checked.warning and "\n" not in checked.warning)


def test_stances_without_a_quotation_are_not_evidence(model_server: ModelServer) -> None:
    judge = open_llm_judge(model_server.environ())
    labels = judge.label(
        "sheep are easy to count", [Passage(text=PAPER.abstract), Passage(text="Sheep cannot be counted.")]
    )
    assert len(labels.labels) == 2
    for label, text in zip(labels.labels, (PAPER.abstract, "Sheep cannot be counted."), strict=True):
        assert label is None or label.stance == "neutral" or (label.sentence and label.sentence in text)
    assert all(labels.labels) or labels.reasons  # a passage without a label has its reason


def test_actor_and_critic_make_an_attempt_or_one_line(model_server: ModelServer) -> None:
    writer = open_writer(
        model_server.environ(),
        archive=None,
        cache=None,
        clock=lambda: datetime(2026, 3, 5, tzinfo=UTC),
        config=RewritingConfig(),
    )
    made = 0
    item = new_item(PAPER, "public")
    for _ in range(TRIES):
        try:
            attempt = write_attempt(writer, item, [])
        except LLMError as error:
            assert "\n" not in str(error) and error.usage.calls >= 1
            continue
        made += 1
        assert 0 <= attempt.score <= 100 and attempt.text and attempt.input_tokens > 1000
        assert attempt.stopped  # nonsense never passes the gate
    item = new_item(PAPER, "student")
    question = critic_question(item, PAPER.abstract, unsupported(PAPER.abstract, PAPER.abstract))
    for number in range(TRIES):
        try:
            model = LanguageModel(config=llm_config(model_server.environ()))
            judged = model.ask(system=question.system, user=f"{question.user}\n{number}", schema=Critique)
        except LLMError as error:
            assert "\n" not in str(error)
            continue
        made += 1
        assert all(0 <= points <= 20 for points in judged.value.subscores)
    assert made


def test_a_paper_is_interpreted_or_the_error_is_one_line(model_server: ModelServer, tmp_path: Path) -> None:
    text = "We fold the cache once and measure it. " * 40
    with outside(tmp_path) as world:
        clients = world.clients(**model_server.environ())
        for number in range(TRIES):
            paper = FetchedPaper(
                paper=titled(number, "Folding Caches"), content=f"{number} {text}", content_source=None, url=None
            )
            try:
                analysis = analyze_paper(clients, paper)
            except LLMError as error:
                assert "\n" not in str(error)
                continue
            assert analysis.usage.calls >= 2 and analysis.read == "full text"
            again = analyze_paper(clients, paper)
            assert (again.summary, again.usage.calls) == (analysis.summary, 0)  # stored
            return
    pytest.fail(f"no analysis in {TRIES} questions")


def test_a_paper_too_long_for_the_models_context_is_one_line(model_server: ModelServer, tmp_path: Path) -> None:
    with outside(tmp_path) as world:
        clients = world.clients(**model_server.environ())
        paper = FetchedPaper(
            paper=titled(1, "Folding Caches"), content="We fold zzz caches. " * 5_000, content_source=None, url=None
        )
        with pytest.raises(LLMError, match="maximum context length is 16384 tokens") as refused:
            analyze_paper(clients, paper)
    assert "\n" not in str(refused.value)


def test_a_question_is_answered_with_quotations_only(model_server: ModelServer, tmp_path: Path) -> None:
    embedder = load_embedder()
    warehouse = corpus_of(tmp_path, [PAPER, titled(2, "Folding Caches")], {}).warehouse
    settings, environ = load_settings({}, tmp_path), model_server.environ()
    options = QuestionOptions(sides=True)
    context = AnsweringContext(settings=settings, environ=environ, warehouse=warehouse, embedder=embedder)
    prepared = prepare_question(context, "Is the memory for counting sheep small?", options)
    answer = answer_question(context, prepared, options)
    assert answer.calls >= 2 and answer.input_tokens > 500
    for sentence in answer.sentences:
        assert all(each.quote in PAPER.abstract or "old" in each.quote for each in sentence.citations)
        assert sentence.citations
    assert answer.kind == "written" or any("without a language model" in note for note in answer.notes)
