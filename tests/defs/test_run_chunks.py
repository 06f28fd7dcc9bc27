"""Test which requested partitions are made in one run."""

from collections.abc import Sequence
from datetime import date, timedelta

import dagster as dg

from paper_assets.defs.partitions import grid_key
from paper_assets.defs.sensors import RANGE_END, RANGE_START, merged_requests

ANN_BOB_EVE = ("ann", "bob", "eve")


def ranking(day: int, profile: str) -> dg.RunRequest:
    return dg.RunRequest(
        asset_selection=[dg.AssetKey("filtered_candidates"), dg.AssetKey("scored_rankings")],
        partition_key=grid_key(date(2026, 3, day), profile),
        tags={"dagster/partition": "its own", "sensor": "conditions"},
    )


def embedding(day: date) -> dg.RunRequest:
    return dg.RunRequest(asset_selection=[dg.AssetKey("paper_embeddings")], partition_key=day.isoformat())


def spans(requests: Sequence[dg.RunRequest]) -> list[tuple[str, str]]:
    """First and last partition of each run."""
    return [
        (request.tags.get(RANGE_START, request.partition_key or ""), request.tags.get(RANGE_END, ""))
        for request in requests
    ]


def test_the_profiles_of_a_day_are_one_run_without_the_tags_of_one_partition() -> None:
    [run] = merged_requests([ranking(2, name) for name in ANN_BOB_EVE], ANN_BOB_EVE)
    assert spans([run]) == [("2026-03-02|ann", "2026-03-02|eve")]
    assert run.partition_key is None
    assert "dagster/partition" not in run.tags
    assert run.tags["sensor"] == "conditions"


def test_profiles_that_are_not_neighbours_and_other_days_get_separate_runs() -> None:
    asked = [ranking(3, "eve"), ranking(2, "ann"), ranking(2, "eve")]
    assert spans(merged_requests(asked, ANN_BOB_EVE)) == [
        ("2026-03-02|ann", ""),
        ("2026-03-02|eve", ""),
        ("2026-03-03|eve", ""),
    ]


def test_neighbours_are_those_of_dagsters_order_of_profiles() -> None:
    asked = [ranking(2, "ann"), ranking(2, "eve")]
    assert spans(merged_requests(asked, ("eve", "ann", "bob"))) == [("2026-03-02|eve", "2026-03-02|ann")]


def test_days_in_a_row_are_cut_into_as_many_as_a_run_takes_and_no_day_is_lost() -> None:
    days = [date(2026, 1, 1) + timedelta(days=at) for at in range(40) if at != 20]
    assert spans(merged_requests([embedding(day) for day in days], ())) == [
        ("2026-01-01", "2026-01-14"),
        ("2026-01-15", "2026-01-20"),
        ("2026-01-22", "2026-02-04"),
        ("2026-02-05", "2026-02-09"),
    ]


def test_a_single_partition_a_removed_profile_and_a_step_without_chunks_are_left_as_they_are() -> None:
    archive = dg.RunRequest(asset_selection=[dg.AssetKey("best_practice_archive")])
    asked = [archive, ranking(2, "gone"), ranking(2, "ann")]
    assert merged_requests(asked, ANN_BOB_EVE) == asked
