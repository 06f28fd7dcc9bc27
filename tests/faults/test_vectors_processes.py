"""Concurrent and killed processes on one index, and a full disk, lose nothing permanently."""

import random
import subprocess
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from paper_assets.errors import StoreBusy
from paper_assets.stores.vectors import VectorIndex, count
from tests.invented_vectors import COLLECTION, VectorProcess, all_ids, ids_of, vector_process


@pytest.fixture(scope="module")
def survivor() -> Iterator[VectorProcess]:
    """Return a process that survives the whole test."""
    with vector_process() as process:
        yield process


def test_two_processes_writing_different_days_at_once_lose_nothing(survivor: VectorProcess, tmp_path: Path) -> None:
    days = [f"2025-01-0{number}" for number in range(1, 7)]
    truth: dict[str, Sequence[str]] = {day: ids_of(day, 60) for day in days}
    survivor.do(tmp_path, truth={day: [] for day in days})

    def write(process: VectorProcess, mine: Sequence[str]) -> None:
        for day in mine:
            assert process.do(tmp_path, truth=truth, names=[day])["upserted"] == 60

    with vector_process() as other, ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(write, survivor, days[0::2]), pool.submit(write, other, days[1::2])]:
            done.result()
        for process in (survivor, other):
            answer = process.do(tmp_path, truth=truth, find=all_ids(truth))
            assert (answer["upserted"], answer["rebuilt"]) == (0, None)
            assert answer["found"] == all_ids(truth)


def test_a_long_lived_process_sees_what_others_wrote(survivor: VectorProcess, tmp_path: Path) -> None:
    survivor.do(tmp_path, truth={"day": ["a"]}, find=["a"])
    with vector_process() as other:
        for number in range(3):
            truth = {"day": ["a", f"new{number}"]}
            assert other.do(tmp_path, truth=truth)["rebuilt"] is None
            answer = survivor.do(tmp_path, truth=truth, find=[f"new{number}", "a"])
            assert answer["upserted"] == 0
            assert answer["found"] == [f"new{number}", "a"]


@pytest.mark.parametrize("filled", [False, True], ids=["in a rebuild", "in an update"])
def test_a_process_killed_between_two_days_leaves_an_index_that_is_made_again(
    survivor: VectorProcess, tmp_path: Path, filled: bool
) -> None:
    truth = {"one": ids_of("one", 300), "two": ids_of("two", 300)}
    store = tmp_path / COLLECTION
    if filled:
        survivor.do(tmp_path, truth={"one": ["x"], "two": ["y"]})
    with vector_process() as victim:
        victim.begin(tmp_path, truth=truth, stall="two")
        assert victim.answer() == "stalled"
        with pytest.raises(StoreBusy, match=str(victim.process.pid)):
            count(VectorIndex(tmp_path, deadline=0.1), COLLECTION)
        victim.kill()
    assert bool(list(store.rglob("OPEN"))) == filled
    answer = survivor.do(tmp_path, truth=truth, names=["one"], find=all_ids(truth))
    assert answer["rebuilt"] is not None
    assert answer["found"] == all_ids(truth)
    assert len(list(store.glob("index-*"))) == 1


def test_a_process_killed_in_a_rebuild_leaves_the_pointer_as_it_was(survivor: VectorProcess, tmp_path: Path) -> None:
    truth = {"one": ids_of("one", 50), "two": ids_of("two", 50)}
    store = tmp_path / COLLECTION
    survivor.do(tmp_path, truth=truth)
    pointer = (store / "CURRENT").read_text(encoding="utf-8")
    (store / pointer / "OPEN").touch()
    with vector_process() as victim:
        victim.begin(tmp_path, truth=truth, names=["one"], stall="two")
        assert victim.answer() == "stalled"
        victim.kill()
    assert (store / "CURRENT").read_text(encoding="utf-8") == pointer
    assert len(list(store.glob("index-*"))) == 2
    answer = survivor.do(tmp_path, truth=truth, names=["two"], find=all_ids(truth))
    assert answer["found"] == all_ids(truth)
    assert len(list(store.glob("index-*"))) == 1


def test_kills_at_any_moment_of_a_write_are_repaired(survivor: VectorProcess, tmp_path: Path) -> None:
    moments = random.Random(7)
    steady = {"steady": ids_of("steady", 200)}
    survivor.do(tmp_path, truth={**steady, "day": []})
    for attempt in range(4):
        truth = {**steady, "day": [f"{attempt}.{number}" for number in range(1500)]}
        with vector_process() as victim:
            victim.begin(tmp_path, truth=truth, names=["day"], stall="day")
            assert victim.answer() == "stalled"
            victim.go_on()
            with suppress(subprocess.TimeoutExpired):  # it does not end: kill it at some moment of the write
                victim.process.wait(timeout=moments.uniform(0, 0.5))
            victim.kill()
        answer = survivor.do(tmp_path, truth=truth, find=all_ids(truth))
        assert answer.get("found") == all_ids(truth), answer


def test_a_full_disk_is_one_clear_line_and_is_repaired_once_there_is_space(
    survivor: VectorProcess, tmp_path: Path
) -> None:
    truth = {"day": ids_of("day", 1500)}
    with vector_process(largest_file=300_000) as cramped:
        answer = cramped.do(tmp_path, truth=truth)
    assert answer["fault"] == "StoreUnwritable", answer
    assert "space" in answer["text"]
    assert "\n" not in answer["text"]
    assert not list((tmp_path / COLLECTION).glob("index-*"))
    assert survivor.do(tmp_path, truth=truth, find=all_ids(truth))["found"] == all_ids(truth)
