"""The eight scenarios of SPEC 4 by their names: the real archive, warehouse and model, a scripted actor and critic."""

from dataclasses import replace
from pathlib import Path

import pytest

from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.rewriting.best_practices import Archive, retrieve_best_practices
from paper_assets.rewriting.loop import OptimizerState, rewriting, state_of
from paper_assets.settings import RewritingConfig
from paper_assets.stores.best_practices import best_practices
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.rewrites import RewriteItem, rewrite_item
from paper_assets.stores.warehouse import Warehouse
from tests.loopback_llm import LoopbackLLM, loopback_llm
from tests.rewriting.invented_archive import fill, practice
from tests.rewriting.scripted import PAPER, Play, inside, is_critic, opened, writer_of, writing

SHEEP = "We count sheep by a new sieve that needs little memory."  # near to the paper


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    return load_embedder("all-MiniLM-L6-v2")


@pytest.fixture
def archive(tmp_path: Path, embedder: Embedder) -> Archive:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=30)
    return Archive(warehouse, VectorIndex(tmp_path / "chroma", deadline=30), embedder)


def play(archive: Archive, *scores: int, decision: str | None = None) -> tuple[RewriteItem, list[OptimizerState]]:
    """Rewrite the paper for the public with these scores, and give `decision` whenever one is required."""
    [item] = opened(archive.warehouse)
    states = []
    with loopback_llm(Play(*scores)) as server:
        steps = rewriting(archive.warehouse, writer_of(server, archive=archive), item.item)
        answer = None
        while True:
            try:
                states.append(steps.send(answer))  # type: ignore[arg-type]
            except StopIteration:
                return rewrite_item(archive.warehouse, item.item), states
            answer = decision if states[-1].decision_required else None


def kept(archive: Archive) -> list[int]:
    return [practice.score for practice in best_practices(archive.warehouse, archive.collection)]


def test_tc1_a_first_attempt_of_96_passes_and_is_archived(archive: Archive) -> None:
    item, [state] = play(archive, 96)
    assert (state.status, state.current_score, state.decision_required) == ("PASS", 96, False)
    assert (item.outcome, item.kept, kept(archive)) == ("passed", 1, [96])
    [practice] = best_practices(archive.warehouse, archive.collection)
    assert (practice.text, practice.original_text) == (state.current_text, PAPER.abstract)
    assert (practice.target_level, practice.paper_id, practice.category) == ("public", PAPER.paper_id, "cs.LG")
    assert (practice.keywords, practice.model_version) == (("sheep", "memory"), "llama3.2")
    assert item.note == f"archived as {practice.id}"


def test_tc2_a_first_attempt_of_88_that_is_accepted_is_kept_and_not_archived(archive: Archive) -> None:
    item, states = play(archive, 88, decision="accept")
    assert [state.status for state in states] == ["WAIT_CONFIRM", "PASS"]
    assert (item.outcome, item.kept, kept(archive)) == ("accepted", 1, [])


def test_tc3_a_fifth_attempt_of_92_is_kept_and_not_archived(archive: Archive) -> None:
    item, states = play(archive, 60, 70, 80, 84, 92)
    assert [state.status for state in states] == ["FAIL"] * 4 + ["PASS"]
    assert (item.outcome, item.kept, kept(archive)) == ("passed", 5, [])


@pytest.mark.parametrize(("score", "archived"), [(94, []), (95, [95])])
def test_tc3_only_from_95_on_a_rewrite_is_archived(archive: Archive, score: int, archived: list[int]) -> None:
    item, _ = play(archive, score)
    assert (item.outcome, kept(archive)) == ("passed", archived)


def test_tc4_five_attempts_under_75_are_followed_by_three_more(archive: Archive) -> None:
    item, states = play(archive, 74, 74, 60, 60, 60, 70, 76, 74)
    assert [state.max_retries for state in states] == [5] * 4 + [8] * 5
    assert (len(item.attempts), item.outcome, item.kept) == (8, "best", 7)


def test_tc5_still_under_75_the_best_is_kept_with_a_warning(archive: Archive) -> None:
    item, states = play(archive, 60, 74, 60, 60, 60, 60, 74, 60)
    assert (item.outcome, item.kept, kept(archive)) == ("best_with_warning", 7, [])
    assert states[-1].feedback.startswith("quality warning")
    assert state_of(item, config=RewritingConfig()) == states[-1]


def actors(server: LoopbackLLM) -> list[str | None]:
    """The example blocks that the actors were given."""
    return [inside("examples", request.turns[0]) for request in writing(server) if not is_critic(request)]


def test_tc6_where_nothing_is_recalled_the_prompt_has_no_example_block(archive: Archive) -> None:
    fill(archive, [practice(1, score=91, original_text=SHEEP)])  # below what is recalled
    [item] = opened(archive.warehouse)
    with loopback_llm(Play(60, 90)) as server:
        list(rewriting(archive.warehouse, writer_of(server, archive=archive), item.item))
        assert actors(server) == [None, None]


def test_tc7_the_same_text_a_second_time_is_not_embedded_again(archive: Archive, embedder: Embedder) -> None:
    fill(archive, [practice(1, target_level="public", original_text=SHEEP)])
    text = f"{PAPER.abstract} Only here."
    before = embedder.cache_info()
    assert retrieve_best_practices(archive, text, "public")
    once = embedder.cache_info()
    assert retrieve_best_practices(archive, text, "public")
    twice = embedder.cache_info()
    assert once.misses > before.misses
    assert (twice.misses, twice.hits) == (once.misses, once.hits + 1)


def test_tc8_a_level_without_best_practices_is_helped_by_those_of_other_levels(archive: Archive) -> None:
    fill(
        archive,
        [
            practice(number, target_level=level, original_text=f"{SHEEP} In {place}.")
            for number, level, place in ((4, "expert", "valleys"), (5, "student", "meadows"))
        ],
    )
    [item] = opened(archive.warehouse)
    with loopback_llm(Play(90)) as server:
        list(rewriting(archive.warehouse, writer_of(server, archive=archive), item.item))
        [shown] = actors(server)
    assert shown is not None and "paper 4 says" in shown and "paper 5 says" in shown
    fill(archive, [practice(3, target_level="public", original_text=f"{SHEEP} On hills.")])
    [other] = opened(archive.warehouse, replace(PAPER, version=2))
    with loopback_llm(Play(90)) as server:
        list(rewriting(archive.warehouse, writer_of(server, archive=archive), other.item))
        [shown] = actors(server)
    assert shown is not None and "paper 3 says" in shown and "paper 4 says" not in shown
