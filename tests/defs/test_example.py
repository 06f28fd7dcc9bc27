"""Example to copy: test an asset in a folder of your own, with your own papers, in an instance that leaves nothing.

docs/testing-assets.md explains it.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.definitions import defs
from paper_assets.defs.assets import scored_rankings
from paper_assets.defs.partitions import grid_key
from paper_assets.defs.resources import WorkspaceResource
from paper_assets.errors import ModelUnavailable
from paper_assets.paper import Paper
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import ranking

DAY = date(2026, 3, 2)


@pytest.fixture
def mine(tmp_path: Path) -> Workspace:
    """A workspace with one profile and two papers, which ranks by keywords because no model is loaded."""
    profile = tmp_path / "profiles" / "ponds" / "profile.json"
    profile.parent.mkdir(parents=True)
    profile.write_text(json.dumps({"interests": {"primary": ["frogs"]}}), encoding="utf-8")
    settings = load_settings({"PAPER_ASSETS_FIRST_DAY": "2026-01-01"}, tmp_path)

    def no_model() -> None:
        raise ModelUnavailable("not in this test")

    opened = open_workspace(settings, {}, clock=lambda: datetime(2026, 3, 5, tzinfo=UTC))
    published = datetime(2026, 3, 2, 9, tzinfo=UTC)
    merge_papers(
        opened.warehouse,
        [
            Paper(
                paper_id=f"2603.0000{at}",
                version=1,
                title=title,
                abstract=title,
                authors=("A. Author",),
                published=published,
            )
            for at, title in enumerate(["Frogs of the city", "Stars of the north"], start=1)
        ],
    )
    return replace(opened, load_embedder=no_model)  # type: ignore[arg-type]


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        opened.add_dynamic_partitions("profile", ["ponds"])
        yield opened


def test_my_paper_is_ranked_first(mine: Workspace, instance: dg.DagsterInstance) -> None:
    done = dg.materialize(
        [scored_rankings],
        resources={"workspace": mine},
        instance=instance,
        partition_key=grid_key(DAY, "ponds"),
    )
    assert done.success and all(check.passed for check in done.get_asset_check_evaluations())
    assert ranking(mine.warehouse, DAY, "ponds").rows.column("paper_id").to_pylist()[0] == "2603.00001"


def test_an_asset_can_be_taken_out_of_the_definitions(mine: Workspace, instance: dg.DagsterInstance) -> None:
    embeddings = defs.resolve_assets_def("paper_embeddings")
    done = dg.materialize([embeddings], resources={"workspace": mine}, instance=instance, partition_key=f"{DAY}")
    assert done.success


def test_another_folder_is_another_resource(tmp_path: Path, instance: dg.DagsterInstance) -> None:
    resource = WorkspaceResource(home=str(tmp_path / "home"), profiles=str(tmp_path / "profiles"))
    archive = defs.resolve_assets_def("best_practice_archive")
    assert dg.materialize([archive], resources={"workspace": resource}, instance=instance).success
