"""Ask a real small model from every part that uses one (`make llm-test`), and test what the product promises of any.

A model of 135 million parameters understands little: it invents sentences, copies wrongly, loops and leaves entries
out. Whatever it writes, nothing unsupported is shown as a fact, nothing is paid twice, no bound is exceeded, and what
goes wrong is one line.
"""

import gzip
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest
from pydantic import BaseModel

from paper_assets.errors import LLMError, LLMUnreachable
from paper_assets.interpreting.analysis import analysis_to_mapping, analyze_paper
from paper_assets.interpreting.lookup import FetchedPaper
from paper_assets.models.embedder import load_embedder
from paper_assets.models.llm import LanguageModel
from paper_assets.models.llm_config import Budget, llm_config
from paper_assets.models.llm_providers import server_context
from paper_assets.paper import Paper, paper_from_mapping, papers_to_table
from paper_assets.pipeline.desk_answers import (
    AnsweringContext,
    QuestionOptions,
    answer_as_markdown,
    answer_question,
    prepare_question,
)
from paper_assets.profile import Interests
from paper_assets.ranking.verifier import grade_papers, open_verifier, reader_of
from paper_assets.retrieval.stance import Passage
from paper_assets.retrieval.stance_judges import open_llm_judge
from paper_assets.rewriting.policy import Level
from paper_assets.rewriting.prompts import Critique, critic_question, total
from paper_assets.rewriting.writing import new_item, open_writer, write_attempt
from paper_assets.settings import RewritingConfig, ScoringConfig, load_settings
from paper_assets.text.support import Statement, check, refusal, similarities_of
from tests.conftest import ROOT
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
INVENTED = "Do cover crops raise the yield of maize?", (CROPS, DRY)
REAL = "Does pruning make models faster?", ("2603.08065", "2603.09480", "2603.04308")
FIELDS = ("title", "abstract", "authors", "categories", "published")


@pytest.fixture(scope="module")
def read() -> tuple[str, tuple[Paper, ...]]:
    """Return a question and papers that answer it: recorded real ones, or invented ones where there are none."""
    file = ROOT.parent / "shared" / "data" / "arxiv_papers" / "papers.jsonl.gz"
    if not file.exists():
        return INVENTED
    question, ids = REAL
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        all_of_them = (json.loads(line) for line in lines)
        records = {each["id"]: {name: each[name] for name in FIELDS} for each in all_of_them if each["id"] in ids}
    return question, tuple(paper_from_mapping({"paper_id": each, **records[each]}) for each in ids)


class Note(BaseModel):
    text: str
    kind: str


def not_contradicted_by_code(text: str, cited: str, source: str) -> bool:
    """Return whether code alone would not drop a sentence."""
    [found] = check([Statement(text=text, cited=cited, source=source)], similarities_of(load_embedder()))
    return found != "unsupported"


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


def test_an_answer_shows_nothing_unsupported_costs_at_most_what_was_said_and_is_paid_once(
    model_server: ModelServer, tmp_path: Path, read: tuple[str, tuple[Paper, ...]]
) -> None:
    question, papers = read
    context = AnsweringContext(
        settings=load_settings({}, tmp_path),
        environ=model_server.environ(),
        warehouse=corpus_of(tmp_path, papers, {}).warehouse,
        embedder=load_embedder(),
    )
    prepared = prepare_question(context, question, QuestionOptions())
    answer = answer_question(context, prepared, QuestionOptions())
    model_server.shown += [answer_as_markdown(answer, context.warehouse, bibtex=False), *answer.notes]
    assert (answer.calls, answer.input_tokens) <= (prepared.estimate.calls, prepared.estimate.input_tokens)
    assert answer.output_tokens <= prepared.estimate.output_tokens and len(model_server.exchanges) <= answer.calls
    source = " ".join([question, *(f"{each.title} {each.abstract}" for each in papers)])
    for sentence in answer.sentences:
        assert all(each.quote in source for each in sentence.citations) and refusal(sentence.text) is None
        cited = " ".join(each.quote for each in sentence.citations)
        assert not sentence.checked or not_contradicted_by_code(sentence.text, cited, source)
    assert answer.kind == "written" or any("without a language model" in note for note in answer.notes)
    if answer.kind == "written":
        again = answer_question(context, prepared, QuestionOptions())
        assert again.sentences == answer.sentences and again.calls <= answer.calls


def test_an_analysis_holds_what_the_text_supports(
    model_server: ModelServer, tmp_path: Path, read: tuple[str, tuple[Paper, ...]]
) -> None:
    with outside(tmp_path) as world:
        clients = replace(world.clients(**model_server.environ()), announce=model_server.shown.append)
        for asked in read[1][:2]:
            try:
                analysis = analyze_paper(clients, FetchedPaper(paper=asked, content=None, url=None))
            except LLMError as error:
                model_server.shown.append(str(error))
                assert "\n" not in str(error)
                continue
            model_server.shown.append(json.dumps(analysis_to_mapping(analysis), indent=2, ensure_ascii=False))
            parts = (*analysis.key_contributions, *analysis.limitations, *analysis.related_work)
            source = f"{asked.title} {asked.abstract}"
            assert all(not_contradicted_by_code(text, asked.abstract, source) for text in parts)
            assert all(each["nearest"] for each in analysis.not_checked)


def test_grades_move_papers_by_bounded_points_and_what_is_missing_is_said(
    model_server: ModelServer, read: tuple[str, tuple[Paper, ...]]
) -> None:
    store: dict[str, str] = {}
    verifier = open_verifier(
        model_server.environ(),
        known=lambda keys: {key: store[key] for key in keys if key in store},
        keep=lambda verdicts, model: store.update(verdicts),
    )
    table = papers_to_table(read[1])
    reader = reader_of(Interests(primary=[read[0].rstrip("?")]))
    rows = np.arange(len(read[1]))
    result = grade_papers(table, rows, reader, verifier=verifier, scoring=ScoringConfig())
    model_server.shown.append(f"points {result.values.tolist()}, {result.warning or 'all judged'}")
    assert (np.abs(result.values) <= 2.5).all() and not result.values[~result.verified].any()
    assert result.verified.all() or (result.warning and "\n" not in result.warning)
    again = grade_papers(table, rows, reader, verifier=verifier, scoring=ScoringConfig())
    assert again.cached == result.verified.sum()


def test_stances_without_a_quotation_are_not_evidence(
    model_server: ModelServer, read: tuple[str, tuple[Paper, ...]]
) -> None:
    texts = [each.abstract for each in read[1]]
    labels = open_llm_judge(model_server.environ()).label(read[0], [Passage(text=text) for text in texts])
    model_server.shown.append(f"{labels.labels}\n{labels.reasons}")
    for label, text in zip(labels.labels, texts, strict=True):
        assert label is None or label.stance == "neutral" or (label.sentence and label.sentence in text)
    assert all(labels.labels) or labels.reasons


@pytest.mark.parametrize("level", ["public", "expert"])
def test_a_rewrite_is_an_attempt_that_gate_and_critic_have_judged_or_one_line(
    model_server: ModelServer, read: tuple[str, tuple[Paper, ...]], level: Level
) -> None:
    writer = open_writer(
        model_server.environ(),
        archive=None,
        cache=None,
        clock=lambda: datetime(2026, 3, 5, tzinfo=UTC),
        config=RewritingConfig(),
    )
    item = new_item(read[1][0], level)
    model_server.shown.append(f"at most {writer.at_most([item])}")
    try:
        attempt = write_attempt(writer, item, [])
    except LLMError as error:
        model_server.shown.append(str(error))
        assert "\n" not in str(error)
        return
    model_server.shown.append(f"{attempt}\npaid {writer.paid}")
    assert 0 <= attempt.score <= 100 and attempt.text
    assert attempt.critic is not None or (attempt.stopped and attempt.score == 0)


def test_the_critic_of_best_practices_answers_in_numbers_that_count_or_in_one_line(
    model_server: ModelServer, read: tuple[str, tuple[Paper, ...]]
) -> None:
    config, item = llm_config(model_server.environ()), new_item(read[1][0], "expert")
    asked = critic_question(item, read[1][0].abstract)
    try:
        judged = LanguageModel(config=config).ask(system=asked.system, user=asked.user, schema=Critique).value
    except LLMError as error:
        model_server.shown.append(str(error))
        assert "\n" not in str(error)
    else:
        model_server.shown.append(f"{total(judged)} of 100: {judged}")
        assert 0 <= total(judged) <= 100
