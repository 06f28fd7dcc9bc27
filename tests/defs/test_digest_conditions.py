"""Test when a digest is requested: the real conditions of the real assets, driven by reported events."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.defs.assets import ASSETS
from paper_assets.defs.automation import conditions
from paper_assets.defs.partitions import grid_key
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.settings import load_settings
from tests.defs.conditions import evaluated, materialized
from tests.desk import no_clock

DIGESTS = "reading_digests"
DEFINITIONS = dg.Definitions(
    assets=ASSETS,
    sensors=[conditions],
    resources={"workspace": open_workspace(load_settings({}, Path("/nowhere")), {}, clock=no_clock)},
)


class Desk:
    """An instance on which materializations are reported instead of run, and conditions ticked by hand."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        self.instance = instance
        self.cursor: object = None
        self.asked: dict[str, set[str]] = {}
        self.reports = 0

    def report(self, asset: str, partition: str, version: str | None = None) -> None:
        """A new version, unless one is given."""
        self.reports += 1
        materialized(self.instance, asset, partition, version or f"{self.reports}")

    def tick(self) -> dict[str, set[str]]:
        result = evaluated(DEFINITIONS, self.instance, cursor=self.cursor)
        self.cursor = result.cursor
        names = ("paper_embeddings", "scored_rankings", "balanced_retrievals", "paper_rewrites", DIGESTS)
        found = {name: result.get_requested_partitions(dg.AssetKey(name)) for name in names}
        self.asked = {name: {str(key) for key in keys} for name, keys in found.items() if keys}
        return self.asked

    def carry_out(self, *, but: str = "") -> None:
        """Report what was asked for as done, except for one asset."""
        for asset, keys in self.asked.items():
            for key in keys if asset != but else ():
                self.report(asset, grid(key) if "|" in key else key)

    def settle(self) -> None:
        while self.tick():
            self.carry_out()


def grid(key: str) -> str:
    day, _, profile = key.partition("|")
    return grid_key(date.fromisoformat(day), profile)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """One profile, two days; everything that the conditions request is made."""
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("profile", ["ann"])
        desk = Desk(instance)
        desk.report("research_profile", "ann")
        for day in ("2026-03-01", "2026-03-02"):
            desk.report("arxiv_papers", day)
        desk.settle()
        yield desk


def test_a_digest_is_requested_once_after_all_its_parts(desk: Desk) -> None:
    desk.report("research_profile", "ann")
    order = []
    while asked := desk.tick():
        order.append(set(asked))
        desk.carry_out()
    assert order[-1] == {DIGESTS}
    assert sum(DIGESTS in asked for asked in order) == 1


def test_a_digest_does_not_wait_for_what_was_asked_for_and_not_made(desk: Desk) -> None:
    desk.report("research_profile", "ann")
    asked: dict[str, set[str]] = {}
    for _ in range(6):
        asked = desk.tick() or asked
        desk.carry_out(but="paper_rewrites")
    assert asked == {DIGESTS: {"2026-03-02|ann"}}


def test_a_ranking_or_rewrite_of_an_old_day_is_followed_there_and_one_that_says_the_same_is_not(desk: Desk) -> None:
    old = grid("2026-03-01|ann")
    desk.report("scored_rankings", old, "one")
    assert desk.tick() == {DIGESTS: {"2026-03-01|ann"}}
    desk.carry_out()
    desk.report("scored_rankings", old, "one")
    assert desk.tick() == {}
    desk.report("paper_rewrites", old)
    assert desk.tick() == {DIGESTS: {"2026-03-01|ann"}}


def test_rankings_stored_before_the_first_start_get_pages_and_days_without_one_get_none() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions("profile", ["ann"])
        desk = Desk(instance)
        desk.report("scored_rankings", grid("2026-03-01|ann"))
        desk.report("scored_rankings", grid("2026-03-02|ann"))
        assert desk.tick() == {DIGESTS: {"2026-03-01|ann", "2026-03-02|ann"}}


def test_nothing_is_asked_for_that_rests_on_a_ranking_whose_own_check_failed(desk: Desk) -> None:
    def checked(passed: bool) -> None:
        desk.instance.report_runless_asset_event(
            dg.AssetCheckEvaluation(
                asset_key=dg.AssetKey("scored_rankings"),
                check_name="scores_are_in_range_and_recomputable",
                passed=passed,
                metadata={},
                blocking=True,
            )
        )

    checked(False)
    desk.report("scored_rankings", grid("2026-03-02|ann"))
    assert desk.tick() == {}
    checked(True)
    assert set(desk.tick()) == {"paper_rewrites"}
