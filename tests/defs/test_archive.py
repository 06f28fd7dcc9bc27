"""`best_practice_archive`: the collection follows the table, its checks, and what makes it due."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from paper_assets.errors import ModelUnavailable
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.rewriting.best_practices import Archive, archive_of, remove
from paper_assets.rewriting.loop import advance
from paper_assets.settings import load_settings
from paper_assets.stores.best_practices import best_practices
from paper_assets.stores.rewrites import rewrite_item
from tests.chroma_folder import entries
from tests.defs.in_dagster import latest, made
from tests.loopback_llm import loopback_llm
from tests.rewriting.invented_archive import fill, invented_embedder, practice
from tests.rewriting.scripted import Play, opened, writer_of

MONDAY = datetime(2026, 3, 2, tzinfo=UTC).date()
ASSET = "best_practice_archive"


class Home:
    """The real asset over one folder and one instance."""

    def __init__(self, folder: Path, instance: dg.DagsterInstance) -> None:
        settings = load_settings({"PAPER_ASSETS_FIRST_DAY": "2026-01-01"}, folder)
        self.instance = instance
        self.workspace = replace(
            open_workspace(settings, {}, clock=lambda: datetime(2026, 3, 5, tzinfo=UTC)),
            load_embedder=invented_embedder,
        )
        stores = self.workspace.warehouse, self.workspace.vector_index
        self.archive: Archive = archive_of(settings, *stores, invented_embedder())

    def materialize(self) -> dict[str, bool]:
        """Outcomes of the checks."""
        return {check.check_name: check.passed for check in self.checked()}

    def checked(self) -> list[dg.AssetCheckEvaluation]:
        return made(self.instance, self.workspace, ASSET).get_asset_check_evaluations()

    def latest(self) -> tuple[str, dict[str, Any]]:
        """Data version and metadata of the last materialization."""
        return latest(self.instance, ASSET)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Home(tmp_path, instance)


def test_the_collection_follows_the_table_and_the_ui_shows_its_content(home: Home) -> None:
    fill(home.archive, [practice(number) for number in range(12)])
    assert set(home.materialize().values()) == {True}
    assert len(entries(home.archive.index, "optim_best_practices_v1")) == 12
    version, metadata = home.latest()
    assert metadata["dagster/row_count"] == 12
    newest = metadata["newest"].records[0].data
    shown = [newest[name] for name in ("id", "paper", "level", "score")]
    assert shown == [practice(11).id, "2603.00011", "expert", "100"]
    home.materialize()
    assert home.latest()[0] == version, "the same archive again has the same version"
    fill(home.archive, [practice(12)])
    home.materialize()
    assert home.latest()[0] != version


def test_an_empty_archive_is_not_a_fault(home: Home) -> None:
    assert set(home.materialize().values()) == {True}
    assert home.latest()[1]["dagster/row_count"] == 0


def test_an_archive_of_one_level_or_one_category_is_a_warning(home: Home) -> None:
    spread = "archive_is_spread_over_levels_and_categories"
    fill(home.archive, [practice(3 * number) for number in range(9)])
    assert home.materialize()[spread], "nine say nothing"
    fill(home.archive, [practice(1, category="cs.CL")])
    assert not home.materialize()[spread]
    fill(home.archive, [practice(number, category=f"cs.{number}") for number in range(50, 70)])
    assert home.materialize()[spread]


def test_an_unmasked_phone_is_found_and_not_shown(home: Home) -> None:
    mails = practice(2, original_text="ada@example.edu wrote."), practice(3, keywords=("sheep", "bo@example.edu"))
    fill(home.archive, [practice(1, text="Call 010-1234-5678."), *mails])
    [found] = [each for each in home.checked() if each.check_name == "no_unmasked_pii"]
    assert not found.passed
    assert found.metadata["unmasked"].value == {practice(3).id: "mail", practice(2).id: "mail", practice(1).id: "phone"}


def test_an_index_that_holds_other_vectors_is_noticed_and_made_again(home: Home) -> None:
    fill(home.archive, [practice(number) for number in range(6)])
    home.materialize()
    home.archive.warehouse.run("update embeddings set vector = list_reverse(vector)")
    assert not home.materialize()["vectors_find_themselves"]
    assert home.materialize()["vectors_find_themselves"]


def test_without_a_model_the_archive_is_shown_and_its_vectors_are_a_warning(home: Home) -> None:
    def unavailable() -> None:
        raise ModelUnavailable("model files are gone; install again")

    fill(home.archive, [practice(number) for number in range(3)])
    home.workspace = replace(home.workspace, load_embedder=unavailable)
    assert home.materialize() == {
        "archive_is_spread_over_levels_and_categories": True,
        "no_unmasked_pii": True,
        "vectors_find_themselves": False,
    }
    assert home.latest()[1]["dagster/row_count"] == 3


def test_a_rewrite_that_no_model_could_judge_is_taken_in_later_and_a_removed_one_stays_away(home: Home) -> None:
    warehouse, collection = home.archive.warehouse, home.archive.collection
    [item] = opened(warehouse)
    with loopback_llm(Play(96)) as server:
        kept = advance(warehouse, writer_of(server, archive=replace(home.archive, embedder=None)), item.item)
    assert kept.note == "not archived: there is no embedding model to compare it with what is kept"
    home.materialize()
    [found] = best_practices(warehouse, collection)
    assert (found.paper_id, found.score, found.made_at) == ("2603.00001", 96, kept.attempts[0].made_at)
    assert rewrite_item(warehouse, item.item).note == f"archived as {found.id}"
    remove(home.archive, found.id)
    home.materialize()
    assert best_practices(warehouse, collection) == []
