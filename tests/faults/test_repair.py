"""The next run repairs what a killed process left, and a reset leaves nothing behind (A4)."""

import json
import os
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.defs.external_assets import known_versions
from paper_assets.defs.instance import open_instance
from paper_assets.pipeline.health import repair
from paper_assets.pipeline.staleness import RANKINGS
from paper_assets.pipeline.step import Partition, stale
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.settings import load_settings
from tests.desk import GRAPHS, PATIENCE, Desk, week

DAYS = ("2026-03-02", "2026-03-03")


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk with two ranked days of a profile, with files and pages."""
    desk = Desk(tmp_path_factory.mktemp("ranked"))
    desk.profile("graphs", GRAPHS)
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))))
    desk.run("run", "--since", DAYS[0])
    return desk


def output(desk: Desk) -> dict[str, bytes]:
    folder = desk.folder / "data" / "output"
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and file.suffix != ".lock"
    }


def test_a_run_brings_back_the_files_pages_and_feed_that_lack_and_sweeps_away_what_was_not_finished(
    ranked: Desk,
) -> None:
    whole, digests = output(ranked), ranked.folder / "data" / "output" / "digests" / "graphs"
    assert {name.rpartition("/")[2] for name in whole} >= {"feed.atom", f"{DAYS[0]}.html", f"{DAYS[1]}.md"}
    first = min((ranked.folder / "data" / "output" / "rankings" / "graphs").iterdir())
    # A ranking whose file was never written, a page of an earlier day, a feed that was never renamed.
    first.rename(first.with_name(f".unfinished-{first.name}-1"))
    (digests / f"{DAYS[0]}.html").unlink()
    (digests / "feed.atom").rename(digests / ".unfinished-feed.atom-1")
    left = [ranked.folder / folder / ".unfinished-a.pdf-1" for folder in ("data/pdfs", "profiles/graphs")]
    for file in left:
        file.parent.mkdir(exist_ok=True)
        file.touch()
        os.utime(file, (0, 0))
    ranked.run("run")
    assert not any(file.exists() for file in left)
    assert output(ranked) == whole

    shutil.rmtree(ranked.folder / "data" / "output")
    _, messages = ranked.start("run").communicate(timeout=PATIENCE)
    assert "2 ranking files or pages missing; writing again" in messages
    assert output(ranked) == whole


def test_a_home_that_is_moved_names_its_files_where_they_are_and_writes_none_again(
    ranked: Desk, tmp_path: Path
) -> None:
    whole, moved = output(ranked), Desk(tmp_path / "moved")
    ranked.folder.rename(moved.folder)
    try:
        [shown] = json.loads(moved.run("today", "--json"))
        assert Path(shown["file"]).is_relative_to(moved.folder) and Path(shown["file"]).exists()
        settings = load_settings(moved.environment, moved.folder)
        workspace = open_workspace(settings, moved.environment, clock=lambda: datetime(2026, 3, 5, tzinfo=UTC))
        assert stale(RANKINGS, workspace, [Partition(date.fromisoformat(day), "graphs") for day in DAYS]) == []
        repair(workspace)
        assert output(moved) == whole
    finally:
        moved.folder.rename(ranked.folder)


def test_dagster_hears_of_what_was_stored_before_a_run_was_killed(
    ranked: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def heard() -> dict[str, dict[str, str]]:
        with open_instance(ranked.folder / "dagster_home") as instance:
            return {name: known_versions(instance, name) for name in assets}

    monkeypatch.setenv("DAGSTER_HOME", str(ranked.folder / "dagster_home"))
    assets = ("arxiv_papers", "paper_embeddings", "filtered_candidates", "scored_rankings", "reading_digests")
    before = heard()
    assert [len(versions) for versions in before.values()] == [2] * 5
    with open_instance(ranked.folder / "dagster_home") as instance:
        instance.wipe_assets([dg.AssetKey(name) for name in assets])
    assert [len(versions) for versions in heard().values()] == [0] * 5
    ranked.run("run", "--since", DAYS[0])
    assert heard() == before


def test_a_reset_leaves_neither_papers_nor_partitions_and_keeps_the_profiles(ranked: Desk, tmp_path: Path) -> None:
    desk = Desk(tmp_path / "copy")
    shutil.copytree(ranked.folder, desk.folder)
    assert "--yes" in desk.refused("reset")
    desk.run("reset", "--yes")
    left = {path.name for path in (desk.folder / "data").rglob("*") if path.is_file()}
    assert not {name for name in left if not name.endswith(".lock")}
    assert (desk.folder / "profiles" / "graphs" / "profile.json").exists()
    assert "no papers yet" in desk.refused("run")
    desk.run("import", str(desk.papers("later.jsonl", week(["2026-02-02"]))))
    with open_instance(desk.folder / "dagster_home") as instance:
        assert instance.get_materialized_partitions(dg.AssetKey("arxiv_papers")) == {"2026-02-02"}
