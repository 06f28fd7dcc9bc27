"""Rankings do not wait for backlog work: queues, priorities, and what the daemon's queue takes from them."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.defs.instance import open_instance
from paper_assets.defs.run_queue import BACKLOG, DAILY, QUEUE, RANKING, queue_tags
from tests.desk import Desk

TODAY = date(2026, 3, 31)
ROOT = Path(__file__).parents[2]


def embedding(last: str) -> dict[str, str]:
    return queue_tags({"paper_embeddings"}, {"dagster/asset_partition_range_end": last}, today=TODAY)


def test_each_run_has_a_queue_and_a_priority() -> None:
    ranking = queue_tags(
        {"filtered_candidates", "scored_rankings", "balanced_retrievals"},
        {"dagster/partition": "2026-03-30|ann"},
        today=TODAY,
    )
    old, older, recent = embedding("2025-12-31"), embedding("2025-06-30"), embedding("2026-03-30")
    assert [each[QUEUE] for each in (ranking, recent, old, older)] == [RANKING, DAILY, BACKLOG, BACKLOG]
    priorities = [int(each["dagster/priority"]) for each in (ranking, recent, old, older)]
    assert priorities == sorted(priorities, reverse=True)
    assert queue_tags((), {}, today=TODAY)[QUEUE] == DAILY, "whole graph"


@pytest.fixture
def instance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    with open_instance(tmp_path) as instance:
        yield instance


def test_the_limits_of_the_settings_name_the_queues(instance: dg.DagsterInstance) -> None:
    limits = instance.get_concurrency_config().run_queue_config.tag_concurrency_limits
    assert {limit["value"]: limit["limit"] for limit in limits} == {RANKING: 2, DAILY: 2, BACKLOG: 1}
    assert {limit["key"] for limit in limits} == {QUEUE}
    assert instance.get_concurrency_config().run_queue_config.max_concurrent_runs == -1


def test_edited_settings_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    file = tmp_path / "dagster.yaml"
    edited = b"telemetry:\n  enabled: false\n"
    file.write_bytes(edited)
    with open_instance(tmp_path):
        assert file.read_bytes() == edited


def test_the_settings_of_the_checkout_are_those_of_the_package() -> None:
    ours = (ROOT / "paper_assets" / "defs" / "dagster.yaml").read_bytes()
    assert (ROOT / "dagster_home" / "dagster.yaml").read_bytes() == ours


_A_BACKLOG = """
import json, os, sys, time
from datetime import UTC, date, datetime
from pathlib import Path
from dagster._daemon.types import DaemonHeartbeat
from paper_assets.defs import runs
from paper_assets.defs.instance import open_instance
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.stores.paper_merging import merge_papers
from tests.desk import Desk, week
from paper_assets.paper import paper_from_mapping

def niceness(folder, papers, age):
    desk = Desk(folder)
    (folder / "dagster_home").mkdir(parents=True)
    merge_papers(desk.warehouse, [paper_from_mapping(each) for each in week(["2026-03-02"], each=papers)])
    workspace = open_workspace(desk.settings, {}, clock=lambda: datetime.now(UTC))
    with open_instance(desk.folder / "dagster_home") as instance:
        if age >= 0:
            instance.add_daemon_heartbeat(DaemonHeartbeat(time.time() - age, "SENSOR", "one", []))
        runs._yield_to_daemon(instance, workspace, [Partition(date(2026, 3, 2))])
    return os.nice(0)

runs._BACKLOG = 10
for name, papers, age in json.loads(sys.argv[2]):
    if child := os.fork():  # a priority cannot be raised again
        assert os.waitpid(child, 0)[1] == 0
    else:
        print(name, niceness(Path(sys.argv[1], name), papers, age), flush=True)
        os._exit(0)
"""


def test_a_command_with_a_backlog_lowers_its_priority_beside_a_daemon(tmp_path: Path) -> None:
    cases = [("backlog", 12, 5), ("daemon-ended", 12, 600), ("no-daemon", 12, -1), ("few-papers", 6, 5)]
    done = subprocess.run(
        [sys.executable, "-c", _A_BACKLOG, str(tmp_path), json.dumps(cases)],
        env={**os.environ, **Desk(tmp_path).environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    before = os.nice(0)
    lower = min(before + 10, 19) if before < 10 else before
    assert dict(line.split() for line in done.stdout.splitlines()) == {
        name: f"{lower if name == 'backlog' else before}" for name, *_ in cases
    }
