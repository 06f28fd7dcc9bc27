"""A surprise in one profile is reported with its name and leaves the results of the others as they are."""

from pathlib import Path

import pytest

from paper_assets.pipeline.profiles import find_profiles
from tests.faults.surprises import (
    CALLS,
    NEIGHBOUR,
    SMALL,
    SMALL_BY_DAGSTER,
    SOFT,
    VICTIM,
    VIEWS,
    Outcome,
    fill,
    planted,
    run_desk,
    run_pipeline,
)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_pipeline(fill(tmp_path_factory.mktemp("undisturbed")))
    assert outcome.stopped is None and outcome.failures == {}
    assert len(outcome.neighbour) == 2 + 5 + 2, "rows, pages with a feed, ranking files"
    return outcome


@pytest.mark.parametrize("plant", SMALL)
def test_a_surprise_in_one_profile_leaves_its_neighbour_byte_for_byte(
    tmp_path: Path, undisturbed: Outcome, plant: str
) -> None:
    desk = fill(tmp_path)
    with planted(plant) as raised:
        outcome = run_pipeline(desk)
    assert raised, "the planted function was never called for the victim"
    assert outcome.stopped is None
    assert outcome.neighbour == undisturbed.neighbour
    assert all(partition.profile == VICTIM for _, partition in outcome.failures)
    if plant not in SOFT:
        assert any("unexpected Surprise: planted" in reason for reason in outcome.failures.values())


@pytest.fixture(scope="module")
def undisturbed_desk(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    outcome = run_desk(fill(tmp_path_factory.mktemp("undisturbed_desk")))
    assert outcome.stopped is None and outcome.failures == {}
    assert len(outcome.neighbour) == 2 + 5 + 2 + len(VIEWS) + 2 + len(CALLS) + 1, "and page, all profiles, MCP, status"
    answers = [answer for name, answer in outcome.neighbour.items() if name.startswith(("page", "MCP"))]
    assert all(answer.startswith(b"200 ") and b'"error' not in answer for answer in answers)
    return outcome


@pytest.mark.parametrize("plant", SMALL_BY_DAGSTER)
def test_dagster_page_mcp_status_and_digests_of_the_neighbour_are_the_same_beside_a_surprise(
    tmp_path: Path, undisturbed_desk: Outcome, plant: str
) -> None:
    desk = fill(tmp_path)
    with planted(plant) as raised:
        outcome = run_desk(desk)
    assert raised and outcome.stopped is None
    assert outcome.neighbour == undisturbed_desk.neighbour
    assert all(partition.profile == VICTIM for _, partition in outcome.failures)
    if plant not in SOFT:
        assert any("unexpected Surprise: planted" in reason for reason in outcome.failures.values())


def test_a_surprise_in_one_profile_folder_hides_no_other(tmp_path: Path) -> None:
    desk = fill(tmp_path)
    with planted("profile is loaded"):
        found = find_profiles(desk.folder / "profiles")
    assert list(found.readable) == [NEIGHBOUR]
    assert "unexpected" in found.faults[VICTIM] or "Surprise" in found.faults[VICTIM]
