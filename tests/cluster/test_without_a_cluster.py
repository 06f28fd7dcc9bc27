"""Test decisions made before Dask is used: compatible workers, what is sent, and the message without Dask."""

import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from paper_assets.cluster import Cluster, _Sent, connected, difference, identity, rank_sent, snapshot_of, spread
from paper_assets.errors import ClusterUnavailable, InvalidInput
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import papers_to_table
from paper_assets.ranking.rank import Ranking, RankingTask, Vectors, rank
from paper_assets.ranking.relevance import interest_queries
from paper_assets.settings import ScoringConfig, load_settings
from tests.ranking.invented import unit_vectors
from tests.scale import invented

SCORING = ScoringConfig()


def test_without_dask_a_named_cluster_is_one_line_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    reason = 'PAPER_ASSETS_DASK is set, but Dask is not installed; pip install "paper-assets[cluster]"'
    with (
        pytest.raises(ClusterUnavailable, match=reason.replace("[", r"\[")),
        connected(Cluster(address="tcp://127.0.0.1:1"), model=None),
    ):
        pytest.fail("nothing is computed")


def test_dask_is_imported_only_if_a_cluster_is_configured() -> None:
    code = "import sys, paper_assets.pipeline.steps; print([n for n in ('dask', 'distributed') if n in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("given", ["127.0.0.1:8786", "tcp://host", "http://host:8786", "tcp://a b:1"])
def test_an_invalid_url_is_refused_with_the_name_of_its_variable(given: str) -> None:
    with pytest.raises(InvalidInput, match="PAPER_ASSETS_DASK must be an address like tcp://host:8786"):
        load_settings({"PAPER_ASSETS_DASK": given}, Path("/"))


def test_an_address_is_kept_as_it_is() -> None:
    assert load_settings({"PAPER_ASSETS_DASK": "tcp://127.0.0.1:8786/"}, Path("/")).dask == "tcp://127.0.0.1:8786"
    assert load_settings({}, Path("/")).dask == ""


def test_another_package_processor_or_version_of_ours_is_detected() -> None:
    mine = identity("all-MiniLM-L6-v2")
    assert difference(mine, mine) is None
    assert difference(mine, identity("all-MiniLM-L6-v2")) is None
    assert difference(mine, {**mine, "numpy": "1.0"}) == f"numpy 1.0, here {mine['numpy']}"
    assert difference(mine, {**mine, "python": "3.9"}) == f"python 3.9, here {mine['python']}"
    assert difference(mine, {**mine, "paper_assets": "0"}) == "another version of paper_assets"
    assert "other vectors" in (difference(mine, {**mine, "vectors of a sample": "0"}) or "")
    without = {name: value for name, value in mine.items() if name != "pyarrow"}
    assert difference(mine, without) == f"pyarrow missing, here {mine['pyarrow']}"


def test_batches_computed_one_by_one_in_any_order_are_the_vectors_of_the_whole_call() -> None:
    embedder, texts = load_embedder(), sorted(invented.texts(150))
    assert embedder.batches_of and embedder.of_batch
    rows = np.zeros((len(texts), embedder.dimension), np.float32)
    for batch in reversed(embedder.batches_of(texts)):
        rows[batch] = embedder.of_batch([texts[i] for i in batch])
    assert rows.tobytes() == embedder.encode(texts).tobytes()


def test_a_call_of_few_texts_asks_no_cluster() -> None:
    nowhere = Cluster(address="tcp://127.0.0.1:1")
    texts = invented.texts(40)
    alone = load_embedder().encode(texts)
    assert spread(load_embedder(), nowhere, model="all-MiniLM-L6-v2").encode(texts).tobytes() == alone.tobytes()


def tasks() -> list[RankingTask]:
    """Three profiles' tasks over papers that overlap; the last one without vectors."""
    table = papers_to_table(invented.papers(1, 30))
    vectors = unit_vectors(30, seed=3)
    found = []
    for profile, rows in zip(invented.profiles(3), (slice(0, 20), slice(10, 30), slice(5, 9)), strict=True):
        queries = interest_queries(profile.content.interests, options=profile.content.ranking, scoring=SCORING)
        found.append(
            RankingTask(
                candidates=table.slice(rows.start, rows.stop - rows.start),
                profile=profile,
                options=profile.content.ranking,
                as_of=date(2026, 3, 2),
                scoring=SCORING,
                queries=queries,
                vectors=Vectors(papers=vectors[rows], queries=unit_vectors(len(queries.texts), seed=9)),
            )
        )
    return [*found[:2], replace(found[2], vectors=None)]


def test_a_task_put_together_again_from_the_days_snapshot_gives_the_same_ranking() -> None:
    asked = tasks()
    snapshot, rows = snapshot_of(asked)
    assert snapshot.papers.num_rows == 30, "each paper travels once"
    for task, own in zip(asked, rows, strict=True):
        lean = replace(
            task,
            candidates=task.candidates.slice(0, 0),
            vectors=task.vectors and replace(task.vectors, papers=task.vectors.papers[:0]),
        )
        found, alone = rank_sent(_Sent(task=lean, rows=own, verifier=None), snapshot), rank(task)
        assert isinstance(found, Ranking)
        assert found.rows.equals(alone.rows)
        assert found.header == alone.header
