"""Let every feature ask a model that cheats or fails: nothing false is shown as a fact, and every failure is one line.

The model is a real server on loopback. It gives the right answer, with one false sentence in it (FALSE), answers in a
wrong form (FORMS), or fails (FAULTS). As the judge of its own sentences it says yes to everything.
`TEST_ARTEFACTS=FOLDER` keeps the table: what became of each cheat in each feature.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.errors import LLMError
from paper_assets.interpreting.analysis import analyze_paper
from paper_assets.interpreting.lookup import FetchedPaper
from paper_assets.models.embedder import load_embedder
from paper_assets.models.llm import LanguageModel
from paper_assets.models.llm_config import llm_config
from paper_assets.paper import papers_to_table
from paper_assets.pipeline.desk_answers import AnsweringContext, QuestionOptions, answer_question, prepare_question
from paper_assets.profile import Interests
from paper_assets.ranking.verifier import grade_papers, open_verifier, reader_of
from paper_assets.retrieval.cited_answer import paid_in_words
from paper_assets.retrieval.stance import Passage
from paper_assets.retrieval.stance_judges import open_llm_judge
from paper_assets.rewriting.best_practices import Archive
from paper_assets.rewriting.gate import hold_reasons
from paper_assets.rewriting.prompts import SUBSCORES
from paper_assets.rewriting.writing import new_item, open_writer, write_attempt
from paper_assets.settings import RewritingConfig, ScoringConfig, load_settings
from paper_assets.setup.model_reading import read_by_model
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import cost_in_words
from paper_assets.text.statements import read_statement
from paper_assets.text.support import missing
from tests.answering_models import LOWERED, QUESTION, RAISED, RAISED_SENTENCE, passages_of, sentence, yes_to_all
from tests.interpreting.outside import Outside, outside
from tests.loopback_llm import Kept, Request, Step, fault, hang, loopback_llm, says
from tests.retrieval.invented_corpus import corpus_of

RETOLD = "In eleven trials the yield of maize rose by 12 percent with cover crops, and the authors share their data."

FALSE: Mapping[str, Sequence[str]] = {
    "contradicts": ["Across eleven trials, cover crops lowered the yield of maize by 12 percent."],
    "denies": ["Across eleven trials, cover crops never raised the yield of maize."],
    "exchanges what is compared": ["The yield of maize raised cover crops by 12 percent across eleven trials."],
    "invents": [
        "Drinking bleach cures cancer, as shown in a large trial.",
        "Doctors use it in hospitals, where it saves lives.",
    ],
    "invents numbers": ["Cover crops raised the yield of maize by 99.9 percent."],
    "invents names": ["Monsanto raised the yield of maize with cover crops."],
    "retracts": ["The authors retract all their claims."],
    "other language": ["Los cultivos de cobertura elevan el rendimiento del maíz en once ensayos."],
    "links": ["Cover crops: see maize.example.org now.", "[Cover crops](javascript:alert(1)) help."],
    "markup": ["<script>alert('cover crops')</script>", "Cover crops <b onclick=x>help</b>."],
    "orders": ["You should visit the farm to win a prize.", "Please plant cover crops."],
    "one passage for all": [
        "In dry years cover crops lowered the yield of maize.",
        "Water is short in dry years.",
        "Cover crops drink first.",
        "Soil water decides the yield of maize.",
    ],
}
NEAR_THE_TRUTH = ("contradicts", "denies", "exchanges what is compared", "one passage for all")  # questions for a model
FAULTS: Mapping[str, Callable[[], Step]] = {
    "loops": lambda: says('{"text": "' + "the yield of the yield of " * 200, ended="cut off", output_tokens=2_000),
    "refuses": lambda: says("I cannot help with that.", ended="refused"),
    "answers nothing": lambda: says({}),
    "flaky": lambda: fault(503, retry_after="0"),
    "slow": hang,
    "too short a context": lambda: fault(400, "the request exceeds the available context size"),
}
FORMS = ("copies ids", "leaves out", "answers twice", "out of range")
SOURCE = " ".join((QUESTION, RAISED.title, RAISED.abstract, LOWERED.title, LOWERED.abstract))


def cheating(cheat: str) -> Callable[[Request], Step]:
    """Return a model that answers in every schema, with the false sentences or the wrong form of a cheat."""
    false = list(FALSE.get(cheat, ()))
    written = [RAISED_SENTENCE, *false]

    def entries(shown: Sequence[Mapping[str, Any]], **values: Any) -> list[dict[str, Any]]:
        made = [{"number": each["number"], **values} for each in shown]
        if cheat == "copies ids":
            return [{**each, "number": paper.paper_id} for each, paper in zip(made, (RAISED, LOWERED), strict=False)]
        if cheat == "answers twice":
            return [*made, *({**each, **{name: _other(value) for name, value in values.items()}} for each in made)]
        return made[1:] if cheat == "leaves out" else made

    def respond(request: Request) -> Step:
        fields = (request.schema or {}).get("properties", {})
        shown = passages_of(request)
        high = 1_000 if cheat == "out of range" else None
        if "pairs" in fields:
            return says({"pairs": [yes_to_all(each) for each in shown]})
        if "passages" in fields:
            return says({"passages": entries(shown, relevance=high or 9)})
        if "papers" in fields:
            return says({"papers": entries(shown, grade=high or 3)})
        if "labels" in fields:
            quote = false[0] if false else RAISED_SENTENCE
            return says({"labels": entries(shown, stance="certain" if high else "supports", sentence=quote)})
        if "sentences" in fields:
            number: int | str = next((each["number"] for each in shown if RAISED_SENTENCE in each["text"]), 1)
            number = RAISED.paper_id if cheat == "copies ids" else 99 if high else number
            return says(
                {"answered": True, "sentences": [sentence(each, (number, RAISED_SENTENCE)) for each in written]}
            )
        if "primary" in fields:
            topics = {"primary": ["maize", *false], "avoid": false, "authors": false}
            return says({**topics, **{name: [] for name in ("secondary", "exploratory", "less")}})
        if "faults" in fields:
            return says({"faults": [], **dict.fromkeys(SUBSCORES, 20), "advice": ""})
        if "keywords" in fields:
            return says({"text": " ".join((RETOLD, *false)), "keywords": ["maize"]})
        lists = {"key_contributions": written, "limitations": false, "related_work": false}
        return says({"summary": " ".join(written), "methodology": " ".join(false), **lists})

    return respond


def _other(value: Any) -> Any:
    return "contradicts" if value == "supports" else 0 if isinstance(value, int) else value


@dataclass(frozen=True, kw_only=True)
class Shown:
    """What a reader sees: sentences as facts, sentences as the model's words, and the note of a failure."""

    facts: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    note: str = ""

    def row(self) -> str:
        held = f"{len(self.unchecked)} as the model's words" if self.unchecked else ""
        return "; ".join(filter(None, (f"{len(self.facts)} shown", held, self.note))) or "nothing"


@dataclass(frozen=True, kw_only=True)
class World:
    warehouse: Warehouse
    folder: Path
    outside: Outside


def within(paid: str, at_most: str) -> bool:
    """Return whether the calls and tokens that were paid are at most those that were announced."""
    spent, bound = ([int(each.replace(",", "")) for each in re.findall(r"[\d,]*\d", text)] for text in (paid, at_most))
    return all(one <= other for one, other in zip(spent, bound, strict=False))


def asks(world: World, environ: Mapping[str, str]) -> Shown:
    context = AnsweringContext(
        settings=load_settings({}, world.folder), environ=environ, warehouse=world.warehouse, embedder=load_embedder()
    )
    options = QuestionOptions(again=True)
    prepared = prepare_question(context, QUESTION, options)
    answer = answer_question(context, prepared, options)
    assert within(paid_in_words(answer), prepared.bound)
    assert all(cited.quote in SOURCE for each in answer.sentences for cited in each.citations)
    return Shown(
        facts=tuple(each.text for each in answer.sentences if each.checked),
        unchecked=tuple(each.text for each in answer.sentences if not each.checked),
        note="; ".join(answer.notes),
    )


def analyses(world: World, environ: Mapping[str, str]) -> Shown:
    fetched, announced = FetchedPaper(paper=RAISED, content=None, content_source=None, url=None), list[str]()
    clients = replace(world.outside.clients(**environ), again=True, announce=announced.append)
    try:
        read = analyze_paper(clients, fetched)
    except LLMError as error:
        return Shown(note=str(error))
    assert f"at most {read.at_most}" in announced[0] and within(read.paid, read.at_most)
    prose = [read.summary, read.methodology]
    return Shown(
        facts=tuple(filter(None, (*prose, *read.key_contributions, *read.limitations, *read.related_work))),
        unchecked=tuple(each["text"] for each in read.not_checked),
    )


def rewrites(world: World, environ: Mapping[str, str]) -> Shown:
    archive = Archive(world.warehouse, VectorIndex(world.folder / "chroma", deadline=5), load_embedder())
    config = RewritingConfig(examples=0)
    clock = lambda: datetime(2026, 3, 5, tzinfo=UTC)  # noqa: E731
    writer = open_writer(environ, archive=archive, cache=Kept(), clock=clock, config=config)
    item = new_item(RAISED, "expert")
    try:
        attempt = write_attempt(writer, item, [])
    except LLMError as error:
        return Shown(note=str(error))
    assert within(writer.paid, writer.at_most([item]))
    if held := hold_reasons(attempt):
        return Shown(note="; ".join(held))
    unsettled = attempt.unchecked or set(missing(attempt.text, SOURCE)) - set(attempt.disputed)
    return Shown(unchecked=(attempt.text,)) if unsettled else Shown(facts=(attempt.text,))


def grades(world: World, environ: Mapping[str, str]) -> Shown:
    reader, announced = reader_of(Interests(primary=["maize"])), list[str]()
    verifier = replace(open_verifier(environ), report=announced.append)
    table = papers_to_table([RAISED, LOWERED])
    result = grade_papers(table, np.arange(2), reader, verifier=verifier, scoring=ScoringConfig())
    assert (np.abs(result.values) <= 2.5).all() and not result.values[~result.verified].any()
    assert result.verified.all() or result.warning
    paid = cost_in_words(result.usage.calls, result.usage.tokens, None)
    assert within(paid, announced[0].partition("at most ")[2])
    return Shown(note=result.warning or "")


def stances(world: World, environ: Mapping[str, str]) -> Shown:
    found = open_llm_judge(environ).label(QUESTION, [Passage(text=RAISED.abstract), Passage(text=LOWERED.abstract)])
    assert all(found.labels) or found.reasons
    return Shown(
        facts=tuple(each.sentence for each in found.labels if each and each.sentence), note="; ".join(found.reasons)
    )


STATEMENT = "I read about maize and its yield, but not about roads."


def readings(world: World, environ: Mapping[str, str]) -> Shown:
    """Topics, which the reader is shown in a form to be corrected."""
    ask = LanguageModel(config=llm_config(environ), purpose="readings of statements").ask  # nothing is kept
    try:
        read = read_by_model(STATEMENT, read_statement(STATEMENT), ask=ask)
    except LLMError as error:
        return Shown(note=str(error))
    assert not read.authors, "the statement names nobody"
    return Shown(unchecked=(*read.primary, *read.avoid))


FEATURES = {
    "Ask": asks,
    "analyses": analyses,
    "rewrites": rewrites,
    "grades of the list": grades,
    "stances": stances,
    "readings of statements": readings,
}
Table = dict[str, dict[str, str]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("cheats")
    with outside(folder) as around:
        yield World(warehouse=corpus_of(folder, [RAISED, LOWERED], {}).warehouse, folder=folder, outside=around)


@pytest.fixture(scope="module")
def table() -> Iterator[Table]:
    rows: Table = {}
    yield rows
    if folder := os.environ.get("TEST_ARTEFACTS"):
        lines = [f"| cheat | {' | '.join(FEATURES)} |", "|---" * (len(FEATURES) + 1) + "|"]
        lines += [f"| {cheat} | {' | '.join(row.get(name, '') for name in FEATURES)} |" for cheat, row in rows.items()]
        Path(folder, "cheats.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("cheat", [*FALSE, *FORMS])
def test_what_a_model_makes_up_is_never_shown_as_a_fact(world: World, table: Table, cheat: str, feature: str) -> None:
    with loopback_llm(cheating(cheat)) as server:
        shown = FEATURES[feature](world, server.environ("openai"))
    table.setdefault(cheat, {})[feature] = shown.row()
    for false in FALSE.get(cheat, ()):
        assert not any(false in fact for fact in shown.facts)
    if feature != "rewrites" and cheat not in NEAR_THE_TRUTH:
        assert not any(false in words for false in FALSE.get(cheat, ()) for words in shown.unchecked)
    assert all(fact in f"{SOURCE} {RETOLD}" for fact in shown.facts)


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("failure", FAULTS)
def test_a_model_that_fails_ends_in_one_line(world: World, table: Table, failure: str, feature: str) -> None:
    obeys, asked = cheating(""), list[Request]()

    def failing(request: Request) -> Step:
        asked.append(request)
        return obeys(request) if failure == "flaky" and len(asked) % 2 == 0 else FAULTS[failure]()

    with loopback_llm(failing) as server:
        patience = {"PAPER_ASSETS_LLM_TIMEOUT": "0.3"} if failure == "slow" else {}
        shown = FEATURES[feature](world, {**server.environ("openai"), **patience})
    table.setdefault(failure, {})[feature] = shown.row()
    if failure == "flaky":
        assert shown.facts or shown.unchecked or not shown.note
    else:
        assert shown.note and "\n" not in shown.note and "Traceback" not in shown.note
        assert all(fact in SOURCE for fact in shown.facts)
        assert len(asked) <= 4, "what failed for good is not asked again"
