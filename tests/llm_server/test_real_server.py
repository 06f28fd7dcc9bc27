"""Ask a real small model from every part that uses one (`make llm-test`), and test what the product promises of any.

A model of 135 million parameters understands little: it invents sentences, copies wrongly, loops and leaves entries
out. Whatever it writes, nothing unsupported is shown as a fact, nothing is paid twice, no bound is exceeded, and what
goes wrong is one line.
"""

from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from paper_assets.errors import LLMError, LLMUnreachable
from paper_assets.interpreting.analysis import Analysis, analyze_paper
from paper_assets.interpreting.lookup import FetchedPaper
from paper_assets.models.embedder import load_embedder
from paper_assets.models.llm import LanguageModel
from paper_assets.models.llm_config import Budget, llm_config
from paper_assets.models.llm_providers import server_context
from paper_assets.paper import papers_to_table
from paper_assets.pipeline.desk_answers import AnsweringContext, QuestionOptions, answer_question, prepare_question
from paper_assets.profile import Interests
from paper_assets.ranking.verifier import grade_papers, open_verifier, reader_of
from paper_assets.retrieval.stance import Passage
from paper_assets.retrieval.stance_judges import open_llm_judge
from paper_assets.rewriting.writing import new_item, open_writer, write_attempt
from paper_assets.settings import RewritingConfig, ScoringConfig, load_settings
from paper_assets.text.support import Statement, check, refusal, similarities_of
from tests.interpreting.outside import outside
from tests.invented_papers import paper
from tests.llm_server.conftest import CONTEXT, ModelServer
from tests.retrieval.invented_corpus import corpus_of

CROPS = paper(
    "2603.00011",
    date(2026, 3, 2),
    title="Cover crops in eleven maize trials",
    abstract="Soil is tired. Across eleven trials, cover crops raised the yield of maize by 12 percent. We share data.",
)
DRY = paper(
    "2603.00012",
    date(2026, 3, 2),
    title="Dry years and cover crops",
    abstract="Water is short. In dry years cover crops lowered the yield of maize, as they drink first.",
)
SHEEP = paper(
    "2603.00013",
    date(2026, 3, 2),
    title="Counting Sheep with Half the Memory",
    abstract="We count 1,000 sheep with a sieve. It needs 50% of the memory of the FlockNet baseline.",
)
QUESTION = "Do cover crops raise the yield of maize?"


class Note(BaseModel):
    text: str
    kind: str


def not_contradicted_by_code(text: str, cited: str, source: str) -> bool:
    """Return whether code alone would not drop a sentence."""
    [found] = check([Statement(text=text, cited=cited, source=source)], similarities_of(load_embedder()))
    return found.verdict != "unsupported"


def test_the_servers_context_is_read_and_a_longer_prompt_is_refused_before_it_is_sent(
    model_server: ModelServer,
) -> None:
    config = llm_config(model_server.environ())
    assert server_context(config.base_url, config.api_key or "", config.model) == CONTEXT
    budget = Budget()
    with pytest.raises(LLMError, match="too long for openai") as refused:
        LanguageModel(config=config, budget=budget).ask(system="s", user="word " * 20_000, schema=Note)
    assert budget.usage.calls == 0 and "PAPER_ASSETS_LLM_CONTEXT" in str(refused.value)


def test_a_slow_answer_is_asked_for_once(model_server: ModelServer) -> None:
    hurried = llm_config(model_server.environ(PAPER_ASSETS_LLM_TIMEOUT="0.1"))
    with pytest.raises(LLMUnreachable, match="no answer within") as late:
        LanguageModel(config=hurried).ask(system="Write a long story.", user="Begin.", schema=Note)
    assert late.value.usage.calls == 1


def test_an_answer_shows_nothing_unsupported_and_costs_at_most_what_was_said(
    model_server: ModelServer, tmp_path: Path
) -> None:
    warehouse = corpus_of(tmp_path, [CROPS, DRY], {}).warehouse
    context = AnsweringContext(
        settings=load_settings({}, tmp_path),
        environ=model_server.environ(),
        warehouse=warehouse,
        embedder=load_embedder(),
    )
    prepared = prepare_question(context, QUESTION, QuestionOptions())
    answer = answer_question(context, prepared, QuestionOptions())
    assert answer.calls <= prepared.estimate.calls
    assert answer.input_tokens <= prepared.estimate.input_tokens
    assert answer.output_tokens <= prepared.estimate.output_tokens
    source = f"{QUESTION} {CROPS.title} {CROPS.abstract} {DRY.title} {DRY.abstract}"
    for sentence in answer.sentences:
        assert all(each.quote in source for each in sentence.citations) and refusal(sentence.text) is None
        cited = " ".join(each.quote for each in sentence.citations)
        assert not sentence.checked or not_contradicted_by_code(sentence.text, cited, source)
    assert answer.kind == "written" or any("without a language model" in note for note in answer.notes)
    if answer.kind == "written":
        again = answer_question(context, prepared, QuestionOptions())
        assert again.sentences == answer.sentences and again.calls <= answer.calls


def test_an_analysis_holds_what_the_text_supports(model_server: ModelServer, tmp_path: Path) -> None:
    with outside(tmp_path) as world:
        clients = world.clients(**model_server.environ())
        for asked in (CROPS, DRY, SHEEP):
            fetched = FetchedPaper(paper=asked, content=None, content_source=None, url=None)
            try:
                analysis = analyze_paper(clients, fetched)
            except LLMError as error:
                assert "\n" not in str(error)
                continue
            source = f"{asked.title} {asked.abstract}"
            assert all(not_contradicted_by_code(text, asked.abstract, source) for text in _shown(analysis))
            assert all(
                each["nearest"] in " ".join(f"Title: {asked.title} Authors: Abstract: {asked.abstract}".split())
                or each["nearest"]
                for each in analysis.not_checked
            )


def _shown(analysis: Analysis) -> list[str]:
    return [*analysis.key_contributions, *analysis.limitations, *analysis.related_work]


def test_grades_move_papers_by_bounded_points_and_what_is_missing_is_said(model_server: ModelServer) -> None:
    store: dict[str, str] = {}
    verifier = open_verifier(
        model_server.environ(),
        known=lambda keys: {key: store[key] for key in keys if key in store},
        keep=lambda verdicts, model: store.update(verdicts),
    )
    table = papers_to_table([CROPS, DRY, SHEEP])
    reader = reader_of(Interests(primary=["counting sheep"]))
    result = grade_papers(table, np.arange(3), reader, verifier=verifier, scoring=ScoringConfig())
    assert (np.abs(result.values) <= 2.5).all() and not result.values[~result.verified].any()
    assert result.verified.all() or (result.warning and "\n" not in result.warning)
    again = grade_papers(table, np.arange(3), reader, verifier=verifier, scoring=ScoringConfig())
    assert again.cached == result.verified.sum()


def test_stances_without_a_quotation_are_not_evidence(model_server: ModelServer) -> None:
    labels = open_llm_judge(model_server.environ()).label(
        QUESTION, [Passage(text=CROPS.abstract), Passage(text=DRY.abstract)]
    )
    for label, text in zip(labels.labels, (CROPS.abstract, DRY.abstract), strict=True):
        assert label is None or label.stance == "neutral" or (label.sentence and label.sentence in text)
    assert all(labels.labels) or labels.reasons


def test_a_rewrite_is_an_attempt_that_the_gate_has_judged_or_one_line(model_server: ModelServer) -> None:
    writer = open_writer(
        model_server.environ(),
        archive=None,
        cache=None,
        clock=lambda: datetime(2026, 3, 5, tzinfo=UTC),
        config=RewritingConfig(),
    )
    for level in ("public", "expert"):
        try:
            attempt = write_attempt(writer, new_item(SHEEP, level), [])  # type: ignore[arg-type]
        except LLMError as error:
            assert "\n" not in str(error)
            continue
        assert 0 <= attempt.score <= 100 and attempt.text
        assert attempt.critic is not None or (attempt.stopped and attempt.score == 0)
