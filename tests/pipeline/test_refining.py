"""The list comes first without the language model, and is refined when its verdicts arrive (SPEC G5)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paper_assets.models.embedder import load_embedder
from paper_assets.pipeline.gatekeeper import CANDIDATES, RANKINGS, STEP
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.stores.embeddings import keep_vectors, texts_without_vector
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import ranking_header
from tests.answering_models import passages_of
from tests.desk import Desk
from tests.loopback_llm import Request, Step, fault, loopback_llm, says
from tests.pipeline.test_rankings import TOPICS, paper
from tests.ranking.invented import AS_OF, NOW


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found, embedder = Desk(tmp_path), load_embedder()
    found.profile("ann", {"interests": {"primary": ["frogs in a marsh"]}})
    merge_papers(found.warehouse, [paper(number, title) for number, title in enumerate(TOPICS, 1)])
    hashes, texts = texts_without_vector(found.warehouse, None, None, model=embedder.name)
    keep_vectors(found.warehouse, hashes, embedder.encode(texts), model=embedder.name)
    return found


def ranked(desk: Desk, answer: Callable[[Request], Step]) -> dict[str, Any]:
    """Make the day's list with a model that answers so; return the header of the list."""
    with loopback_llm(answer) as server:
        environ = {**desk.environment, **server.environ("openai")}
        workspace = open_workspace(desk.settings, environ, clock=lambda: NOW)
        made = STEP.make(workspace, [Partition(AS_OF, "ann")], frozenset({CANDIDATES, RANKINGS}))
    assert not made.failures
    return dict(ranking_header(desk.warehouse, AS_OF, "ann"))


def test_the_list_is_stored_before_the_model_is_asked_and_refined_by_its_verdicts(desk: Desk) -> None:
    first: list[str] = []

    def judge(request: Request) -> Step:
        first.append(ranking_header(desk.warehouse, AS_OF, "ann")["llm_note"])
        return says({"papers": [{"number": each["number"], "grade": 3} for each in passages_of(request)]})

    refined = ranked(desk, judge)
    assert len(first) == 1 and "has not judged them yet" in first[0]
    assert (refined["llm_note"], refined["llm_calls_made"]) == (None, 1)


def test_status_says_why_a_list_was_not_refined(desk: Desk) -> None:
    header = ranked(desk, lambda request: fault(400, "the engine is cold"))
    assert header["llm_failed"] and "the engine is cold" in desk.run("status")
