"""Test that a desk with a Chroma server finds the same as one with a Chroma folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.pipeline import embeddings
from paper_assets.pipeline.step import Check, Partition
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.paper_merging import merge_papers
from tests.chroma_folder import entries
from tests.desk import GRAPHS, Desk, week
from tests.scale import invented
from tests.scale.servers import FULL, chroma_server
from tests.scale.test_dask import NOW

DAYS, PAPERS = (5, 200) if FULL else (2, 30)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("chroma")) as found:
        yield found


def workspace(folder: Path, address: str = "") -> Workspace:
    environment = {
        "PAPER_ASSETS_HOME": str(folder),
        "PAPER_ASSETS_FIRST_DAY": "2026-01-01",
        "PAPER_ASSETS_CHROMA_URL": address,
    }
    return open_workspace(load_settings(environment, folder), {}, clock=lambda: NOW)


def embedded(workspace: Workspace) -> Any:
    """The days embedded, indexed, and every check asked."""
    merge_papers(workspace.warehouse, invented.papers(DAYS, PAPERS))
    days = [Partition(day) for day in invented.days_from_first(DAYS)]
    made = embeddings.STEP.make(workspace, days, embeddings.STEP.makes)
    checks: list[Check] = [check for product in embeddings.STEP.products for check in product.checks]
    assert {check.name: check.holds(workspace, days, made).passed for check in checks} == {
        check.name: True for check in checks
    }
    return made


def test_the_vectors_of_a_server_are_those_of_a_folder(address: str, tmp_path: Path) -> None:
    here, there = workspace(tmp_path / "here"), workspace(tmp_path / "there", address)
    embedded(here)
    embedded(there)
    assert not (tmp_path / "there" / "chroma").exists(), "no file of the index is in a folder"
    one, other = (entries(each.vector_index, embeddings.COLLECTION) for each in (here, there))
    assert len(one) == DAYS * PAPERS and one.keys() == other.keys()
    worst = max(float(np.abs(one[each].vector - other[each].vector).max()) for each in one)
    assert worst < 1e-6, f"{worst}"  # searches score again with the vectors in DuckDB


def test_a_desk_runs_and_resets_with_its_vectors_on_the_server(address: str, tmp_path: Path) -> None:
    desk, with_server = Desk(tmp_path), {"PAPER_ASSETS_CHROMA_URL": address}
    desk.profile("graphs", GRAPHS)
    desk.run("import", str(desk.papers("papers.jsonl", week(("2026-03-02", "2026-03-03")))), **with_server)
    desk.run("run", **with_server)
    index = workspace(tmp_path / "other", address).vector_index
    assert len(entries(index, embeddings.COLLECTION)) > 0
    message = desk.run("reset", "--yes", **with_server)
    assert f"{address} abstract" in message
    message = desk.refused("run", PAPER_ASSETS_CHROMA_URL="ftp://127.0.0.1:1")
    assert "PAPER_ASSETS_CHROMA_URL must be an address like http://host:8000" in message
