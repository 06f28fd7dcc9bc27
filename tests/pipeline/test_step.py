"""What is stale, and what a failure stops: the rules that hold for every step."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from paper_assets.errors import InvalidProfile, RateLimited
from paper_assets.pipeline.staleness import TRACKED
from paper_assets.pipeline.step import Grid, Made, Partition, Step, Tracked, failure_of, make_each, stale
from paper_assets.pipeline.steps import STEPS

DAYS = [date(2026, 3, day) for day in (2, 3, 4)]
ANN, BOB = ([Partition(day, name) for day in DAYS] for name in ("ann", "bob"))


def step(stored: Mapping[Partition, str], **more: Any) -> Tracked:
    """A step whose partitions should all be made from "new"."""
    return Tracked(
        name="invented",
        grid=Grid.PROFILE_DAY,
        inputs=lambda workspace, partitions: dict.fromkeys(partitions, "new"),
        stored=lambda workspace, partitions: {each: stored.get(each) for each in partitions},
        **more,
    )


def stale_of(found: Tracked, partitions: Sequence[Partition]) -> list[Partition]:
    nothing: Any = None  # these steps open no workspace
    return stale(found, nothing, partitions)


def test_what_is_missing_or_made_from_something_else_is_stale() -> None:
    stored = {ANN[0]: "new", ANN[1]: "old"}
    assert stale_of(step(stored), [*reversed(ANN)]) == ANN[1:]
    assert stale_of(step(dict.fromkeys(ANN, "new")), ANN) == []


def test_in_order_every_later_day_of_the_same_profile_is_stale_too_and_no_other() -> None:
    stored = {**dict.fromkeys([*ANN, *BOB], "new"), ANN[1]: "old", BOB[2]: "old"}
    assert stale_of(step(stored), [*ANN, *BOB]) == [ANN[1], BOB[2]]
    assert set(stale_of(step(stored, in_order=True), [*ANN, *BOB])) == {ANN[1], ANN[2], BOB[2]}


def test_a_partition_that_fails_stops_only_what_rests_on_it() -> None:
    def make(partition: Partition) -> bool:
        if partition == ANN[0]:
            raise InvalidProfile("ann/profile.json: broken")
        return True

    new, failures = make_each([*BOB, *ANN], make)
    assert set(new) == {*ANN[1:], *BOB} and set(failures) == {ANN[0]}
    new, failures = make_each([*BOB, *ANN], make, in_order=True)
    assert set(new) == {*BOB} and set(failures) == {ANN[0]}


def test_nothing_more_is_asked_of_a_source_that_asks_to_slow_down() -> None:
    asked = []

    def make(partition: Partition) -> bool:
        asked.append(partition)
        raise RateLimited("wait")

    make_each(ANN, make)
    assert asked == ANN[:1]


def test_a_failure_of_several_partitions_says_how_many_and_why_and_keeps_its_kind() -> None:
    made = Made(new={ANN[1]: True}, failures={ANN[0]: RateLimited("wait 60 s")})
    failure = failure_of(made, ANN)
    assert isinstance(failure, RateLimited)
    assert str(failure) == "2 of 3 partitions not made; 2026-03-02 ann: wait 60 s"
    assert failure_of(Made(new=dict.fromkeys(ANN, True)), ANN) is None


@pytest.mark.parametrize("one", STEPS, ids=lambda one: one.name)
def test_every_product_rests_on_what_is_made_before_it(one: Step) -> None:
    before = {"research_profile", "reader_ratings"}
    for earlier in STEPS[: STEPS.index(one)]:
        before |= earlier.makes
    assert {dep for product in one.products for dep in product.deps} <= before | one.makes


def test_run_status_and_the_daemon_ask_for_every_step_of_every_grid() -> None:
    assert [step.tracked for step in STEPS] == [*TRACKED]


def test_a_step_without_inputs_or_stored_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"inputs.*stored"):
        Tracked(name="invented", grid=Grid.DAY)  # type: ignore[call-arg]
