"""Another embedding model is used once the papers of the newest lists have its vectors, and not before."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.pipeline.embeddings import embed_window
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.kept_settings import EMBEDDING_MODEL
from paper_assets.stores.paper_merging import merge_papers
from tests.desk import Desk
from tests.invented_embedder import tiny_embedder
from tests.invented_papers import paper

PROFILE = {"interests": {"primary": ["kelp forests"]}, "feed": {"window_days": 2}}
NOW = datetime(2026, 3, 3, 7, tzinfo=UTC)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path)
    made.profile("sea", PROFILE)
    days = (date(2026, 2, 1), date(2026, 3, 1), date(2026, 3, 2))
    merge_papers(made.warehouse, [paper(f"2603.0000{at}", day, title=f"kelp {at}") for at, day in enumerate(days)])
    return made


def models(desk: Desk) -> dict[str, tuple[bool, int]]:
    return {each["name"]: (each["in_use"], each["vectors"]) for each in json.loads(desk.run("model", "list", "--json"))}


def test_a_model_is_used_when_the_window_has_its_vectors_and_can_be_left(desk: Desk) -> None:
    folder = tiny_embedder(desk.folder, ["kelp", "forests", "fish"])
    assert "2 papers embedded" in desk.run("model", "use", str(folder)), "the paper of February waits for the next run"
    assert models(desk) == {"model": (True, 2), "all-MiniLM-L6-v2": (False, 0), "all-mpnet-base-v2": (False, 0)}
    assert desk.run("model", "use", "all-MiniLM-L6-v2")
    assert models(desk)["model"] == (False, 2), "changing back costs nothing"


def test_a_model_that_cannot_be_loaded_changes_nothing(desk: Desk) -> None:
    assert "neither" in desk.refused("model", "use", "no such model!", HF_HUB_OFFLINE="1")
    assert models(desk)["all-MiniLM-L6-v2"] == (True, 0)
    assert "replaces the choice" in desk.refused(
        "model", "use", "all-MiniLM-L6-v2", PAPER_ASSETS_EMBEDDING_MODEL="another"
    )


def test_an_interrupted_change_keeps_the_days_that_are_done_and_the_model_in_use(desk: Desk) -> None:
    class Stopping:
        name, calls = "invented (3)", 0

        def encode(self, texts: list[str], **_: Any) -> np.ndarray:
            self.calls += 1
            if self.calls == 2:
                raise KeyboardInterrupt
            return np.tile(np.eye(1, 3, dtype=np.float32), (len(texts), 1))

    stopping: Any = Stopping()
    workspace = replace(open_workspace(desk.settings, {}, clock=lambda: NOW), load_embedder=lambda: stopping)
    with pytest.raises(KeyboardInterrupt):
        embed_window(workspace)
    newest = date(2026, 3, 2)
    assert unembedded_count(desk.warehouse, newest, newest, model=stopping.name) == 0, "the newest day comes first"
    assert not (desk.settings.home / EMBEDDING_MODEL.name).exists()
    assert embed_window(workspace) == 1
