"""Everything that was imported is embedded, newest first, in steps of which each is kept."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.pipeline import embeddings
from paper_assets.pipeline.embeddings import embed_unpartitioned, steps_newest_first
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import days_without_vectors, unembedded_count
from paper_assets.stores.paper_merging import merge_papers
from tests.invented_papers import paper

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Embedder:
    """Return arbitrary unit vectors; a call can be interrupted."""

    name, dimension = "invented", 3

    def __init__(self, *, stops_at: int = 0) -> None:
        self.asked: list[list[str]] = []
        self.stops_at = stops_at

    def encode(self, texts: Sequence[str], *, progress: Any = None) -> np.ndarray:
        if list(texts) == ["paper"]:
            return np.eye(1, 3, dtype=np.float32)
        self.asked.append([text.split("\n")[0] for text in texts])
        if len(self.asked) == self.stops_at:
            raise KeyboardInterrupt
        return np.tile(np.eye(1, 3, dtype=np.float32), (len(texts), 1))


def workspace_in(folder: Path, embedder: Embedder) -> Workspace:
    workspace = open_workspace(Settings(home=folder, first_day=date(2026, 1, 1)), {}, clock=lambda: NOW)
    return replace(workspace, load_embedder=lambda: embedder)


def test_steps_are_within_a_month_and_the_newest_comes_first() -> None:
    days = [date(2026, 3, 9), date(2025, 1, 1), date(2026, 3, 1), date(2026, 2, 6), date(2026, 2, 5)]
    assert list(steps_newest_first(days)) == [
        [date(2026, 3, 1), date(2026, 3, 9)],
        [date(2026, 2, 5), date(2026, 2, 6)],
        [date(2025, 1, 1)],
    ]
    assert list(steps_newest_first([])) == []


def test_papers_that_no_partition_holds_are_embedded_newest_first_and_undated_ones_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embeddings, "_TEXTS_IN_A_STEP", 2)
    stopped = Embedder(stops_at=2)
    workspace = workspace_in(tmp_path, stopped)
    merge_papers(
        workspace.warehouse,
        [
            paper("1901.00001", date(2019, 1, 1), title="of 2019"),
            paper("1801.00001", date(2018, 1, 1), title="of 2018"),
            paper("2501.00001", date(2025, 1, 1), title="of 2025"),
            paper("1701.00001", None, title="undated"),
            paper("2601.00001", date(2026, 1, 5), title="of a partition"),
            paper("2601.00002", NOW.date() + timedelta(days=1), title="of tomorrow"),
        ],
    )
    with pytest.raises(KeyboardInterrupt):
        embed_unpartitioned(workspace)
    assert stopped.asked[0] == ["of tomorrow", "of 2025"]
    assert unembedded_count(workspace.warehouse, None, None, model="invented") == 4, "the first step is kept"
    going_on = Embedder()
    assert embed_unpartitioned(workspace_in(tmp_path, going_on)) == 3
    assert going_on.asked == [["of 2019", "of 2018"], ["undated"]]
    assert days_without_vectors(workspace.warehouse, model="invented") == {date(2026, 1, 5)}
    assert embed_unpartitioned(workspace_in(tmp_path, going_on)) == 0
