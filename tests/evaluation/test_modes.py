from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.evaluation.labelled_set import Query, load_labelled_set
from benchmarks.evaluation.metrics import EvaluationConfig, Scorer, judge
from benchmarks.evaluation.rankers import modes
from paper_assets.settings import ScoringConfig
from tests.evaluation.sets import write_set

SCORING, JUDGING = ScoringConfig(), EvaluationConfig(resamples=10)


def embed(texts: list[str]) -> NDArray[np.float32]:
    """About ponds, about frogs, about stones, and a little of anything else."""
    about = [[*(text.lower().count(word) for word in ("pond", "frog", "granite")), 0.1] for text in texts]
    rows = np.array(about, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def first(ranker: Callable[[], Scorer], query: Query) -> str:
    return str(next(iter(ranker()(query))))


def test_every_mode_answers_every_query_with_documents(tmp_path: Path) -> None:
    labelled = load_labelled_set(write_set(tmp_path / "set"))
    rankers = modes(labelled, embed=embed, scoring=SCORING)
    assert list(rankers) == ["seed", "lanes", "hybrid"]
    for ranker in rankers.values():
        assert [first(ranker, query) for query in labelled.judged_queries] == ["d1", "d4"]
        assert judge(labelled, ranker(), judging=JUDGING).of("ndcg@10")[1] == 1.0


def test_a_profile_finds_what_is_like_the_papers_it_likes_and_not_these(tmp_path: Path) -> None:
    profiles = [{"id": "ann", "interests": {"primary": ["granite"], "papers": ["d2"]}}]
    folder = write_set(tmp_path / "set", queries=profiles, asked="profiles", qrels="ann\td3\t1\n")
    labelled = load_labelled_set(folder)
    rankers = modes(labelled, embed=embed, scoring=SCORING)
    (query,) = labelled.judged_queries
    assert list(rankers) == ["seed", "lanes", "library", "hybrid"]
    assert first(rankers["library"], query) == "d3"
    assert first(rankers["seed"], query) == "d4"
    for ranker in rankers.values():
        assert "d2" not in list(ranker()(query))


def test_a_document_id_with_a_version_can_be_liked(tmp_path: Path) -> None:
    docs = [
        {"id": "2501.00001v2", "title": "Frogs"},
        {"id": "2501.00002v1", "title": "Frog"},
        {"id": "x", "title": "Y"},
    ]
    profiles = [{"id": "ann", "interests": {"primary": ["stones"]}, "liked": ["2501.00001v2"]}]
    folder = write_set(tmp_path / "set", docs=docs, queries=profiles, asked="profiles", qrels="ann\t2501.00002v1\t1\n")
    labelled = load_labelled_set(folder)
    (query,) = labelled.judged_queries
    assert first(modes(labelled, embed=embed, scoring=SCORING)["library"], query) == "2501.00002v1"


@pytest.mark.parametrize("mode", ["seed", "lanes", "hybrid"])
def test_the_order_of_the_documents_changes_nothing(tmp_path: Path, mode: str) -> None:
    docs = [{"id": f"d{n}", "title": "Frogs and ponds" if n % 3 else "Granite"} for n in range(12)]
    answers = []
    for name, given in (("a", docs), ("b", docs[::-1])):
        labelled = load_labelled_set(write_set(tmp_path / name, docs=given, qrels="q1\td1\t1\n"))
        (query,) = labelled.judged_queries
        answers.append(list(modes(labelled, embed=embed, scoring=SCORING)[mode]()(query)))
    assert answers[0] == answers[1]


def test_a_liked_paper_that_is_given_by_its_text_has_a_say(tmp_path: Path) -> None:
    liked = {"title": "Granite", "abstract": "Granite is a stone."}
    profiles = [{"id": "ann", "interests": {"primary": ["frogs"], "papers": [liked]}}]
    folder = write_set(tmp_path / "set", queries=profiles, asked="profiles", qrels="ann\td4\t1\n")
    labelled = load_labelled_set(folder)
    (query,) = labelled.judged_queries
    assert first(modes(labelled, embed=embed, scoring=SCORING)["library"], query) == "d4"
