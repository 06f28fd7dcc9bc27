"""Concurrent and killed processes on one warehouse, and a full disk, lose and double nothing."""

import os
import random
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from paper_assets.errors import StoreBusy, StoreUnwritable
from paper_assets.paper import Paper
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers, replace_day
from paper_assets.stores.papers import day_fingerprints, paper_counts, papers_between, summary
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import MONDAY, TUESDAY, allow_files_of, listing, paper, papers_of, process, stored

KILLS = 8


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "home" / "w.duckdb", deadline=60)


def write_days(answers, warehouse: Warehouse, writer: int) -> None:  # type: ignore[no-untyped-def]
    """Write two days of this process, and a paper that all writers write; read in between."""
    answers.send("ready")
    answers.recv()
    for number in range(2):
        day = MONDAY + timedelta(days=10 * writer + number)
        replace_day(warehouse, day, papers_of(day, 20))
        assert papers_between(warehouse, day, day).num_rows == 20
        merge_papers(warehouse, [paper("shared", None, version=10 * writer + number + 1)])
    answers.send("done")


def test_four_processes_that_create_the_warehouse_at_once_lose_nothing(warehouse: Warehouse) -> None:
    with ExitStack() as running:
        writers = [running.enter_context(process(write_days, warehouse, writer))[1] for writer in range(4)]
        assert [answers.recv() for answers in writers] == ["ready"] * 4
        for answers in writers:
            answers.send("go")
        assert [answers.recv() for answers in writers] == ["done"] * 4
    papers = stored(warehouse)
    assert len(papers) == 4 * 2 * 20 + 1
    assert papers["shared"].version == 32
    assert listing(warehouse.path.parent) == {warehouse.path.name}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_what_changes_between_looking_at_the_file_and_locking_it_is_not_lost(
    warehouse: Warehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB reads the head of the file before it locks it; here so slowly that another process always intervenes."""
    source, library = Path(__file__).with_name("slow_lock.c"), tmp_path / "slow_lock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    assert summary(warehouse).papers == 0
    monkeypatch.setenv("LD_PRELOAD", str(library))
    with ExitStack() as running:
        writers = [running.enter_context(process(write_days, warehouse, writer))[1] for writer in range(3)]
        assert [answers.recv() for answers in writers] == ["ready"] * 3
        for answers in writers:
            answers.send("go")
        assert [answers.recv() for answers in writers] == ["done"] * 3
    assert len(stored(warehouse)) == 3 * 2 * 20 + 1


def hold(answers, warehouse: Warehouse, writes: bool) -> None:  # type: ignore[no-untyped-def]
    with warehouse.writing() if writes else warehouse.reading():
        answers.send("holding")
        answers.recv()


def test_the_holder_of_the_warehouse_is_named_at_the_deadline(warehouse: Warehouse) -> None:
    hasty = Warehouse(warehouse.path, deadline=0.3)
    with process(hold, warehouse, True) as (holder, answers):
        assert answers.recv() == "holding"
        for use in (hasty.reading, hasty.writing):
            with pytest.raises(StoreBusy) as refused, use():
                pass
            assert f"pid {holder.pid}" in str(refused.value)
            assert "forkserver" in str(refused.value) or not Path("/proc").exists()  # from its command line
            assert "PAPER_ASSETS_STORE_DEADLINE" in str(refused.value)
            assert "\n" not in str(refused.value)
    assert summary(hasty).papers == 0  # a killed holder holds nothing


def test_readers_read_together_and_a_writer_waits_for_them(warehouse: Warehouse) -> None:
    assert summary(warehouse).papers == 0
    with process(hold, warehouse, False) as (holder, answers):
        assert answers.recv() == "holding"
        assert summary(Warehouse(warehouse.path, deadline=0)).papers == 0
        with pytest.raises(StoreBusy, match=f"pid {holder.pid}"), Warehouse(warehouse.path, deadline=0.1).writing():
            pass
        answers.send("leave")
        assert replace_day(warehouse, MONDAY, [paper()]).added == 1


ONE, OTHER = (
    [*papers_of(MONDAY, 800, title=title), paper("moves", day)] for title, day in (("One", MONDAY), ("Other", TUESDAY))
)


def rewrite_for_ever(answers, warehouse: Warehouse) -> None:  # type: ignore[no-untyped-def]
    """Change every row of a day back and forth, a paper of another day with it."""
    answers.send("ready")
    while True:
        for papers in (OTHER, ONE):
            replace_day(warehouse, MONDAY, papers)


def test_a_writer_killed_at_any_moment_leaves_the_old_day_or_the_new_one(warehouse: Warehouse) -> None:
    whole = []
    for papers in (OTHER, ONE):
        replace_day(warehouse, MONDAY, papers)
        whole.append(day_fingerprints(warehouse, None, None))
    chance = random.Random(5)
    for _ in range(KILLS):
        with process(rewrite_for_ever, warehouse) as (writer, answers):
            assert answers.recv() == "ready"
            writer.join(chance.uniform(0, 0.5))
            writer.kill()
            writer.join()
        assert len(stored(warehouse)) == 801
        assert day_fingerprints(warehouse, None, None) in whole
    assert replace_day(warehouse, MONDAY, ONE).removed == 0
    assert stored(warehouse) == {each.paper_id: each for each in ONE}


def import_and_halt(answers, warehouse: Warehouse, halt_after: int) -> None:  # type: ignore[no-untyped-def]
    def source() -> Iterator[Paper]:
        for position, each in enumerate(papers_of(MONDAY, 3_000)):
            if position == halt_after:
                answers.send("halted")
                answers.recv()
            yield each

    if halt_after < 0:
        answers.send("ready")
    merge_papers(warehouse, source())


def test_an_import_killed_while_it_reads_leaves_no_trace(warehouse: Warehouse) -> None:
    replace_day(warehouse, TUESDAY, papers_of(TUESDAY, 3))
    before = stored(warehouse)
    with process(import_and_halt, warehouse, 2_500) as (_, answers):
        assert answers.recv() == "halted"
        assert stored(warehouse) == before  # and the warehouse is free meanwhile
    assert stored(warehouse) == before
    assert listing(warehouse.path.parent) == {warehouse.path.name}


def test_an_import_killed_at_any_moment_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    chance = random.Random(6)
    for number in range(KILLS // 2):
        warehouse = Warehouse(tmp_path / str(number) / "w.duckdb", deadline=60)
        replace_day(warehouse, MONDAY, [paper("first")])
        with process(import_and_halt, warehouse, -1) as (importer, answers):
            assert answers.recv() == "ready"
            importer.join(chance.uniform(0.3, 1.0))
        assert paper_counts(warehouse) in ({MONDAY: 1}, {MONDAY: 3_001})
        assert merge_papers(warehouse, papers_of(MONDAY, 3_000)).read == 3_000
        assert paper_counts(warehouse) == {MONDAY: 3_001}
        assert {name for name in listing(warehouse.path.parent) if not name.startswith("w.duckdb")} == set()


def work_on_a_full_disk(answers, warehouse: Warehouse, free: int) -> None:  # type: ignore[no-untyped-def]
    allow_files_of(free)
    vectors = np.eye(400, dtype=np.float32)
    for work in (
        lambda: merge_papers(warehouse, papers_of(TUESDAY, 6_000, abstract=os.urandom(200).hex())),
        lambda: replace_day(warehouse, MONDAY, papers_of(MONDAY, 6_000, abstract=os.urandom(200).hex())),
        lambda: keep_vectors(warehouse, [f"h{number}" for number in range(400)], vectors, model="m"),
    ):
        try:
            work()
            answers.send("done")
        except StoreUnwritable as refused:
            answers.send(str(refused))


@pytest.mark.parametrize("free", [100, 20_000, 400_000])
def test_a_full_disk_is_reported_in_one_line_and_loses_nothing(warehouse: Warehouse, free: int) -> None:
    replace_day(warehouse, MONDAY, [paper()])
    with process(work_on_a_full_disk, warehouse, free) as (_, answers):
        outcomes = [answers.recv() for _ in range(3)]
    refused = [line for line in outcomes if line != "done"]
    assert refused
    assert all("free space" in line and "\n" not in line for line in refused)
    assert set(stored(warehouse)) == {paper().paper_id}
    assert replace_day(warehouse, TUESDAY, papers_of(TUESDAY, 10)).added == 10


def read_for_ever(answers, warehouse: Warehouse) -> None:  # type: ignore[no-untyped-def]
    """Read repeatedly, each time for longer than the next reader needs to arrive."""
    while True:
        with warehouse.reading() as connection:
            connection.execute("select count(*) from papers").fetchall()
            answers.send("reads")
            answers.poll(0.1)


def test_a_writer_gets_its_turn_among_readers_that_keep_the_file_open(warehouse: Warehouse) -> None:
    replace_day(warehouse, MONDAY, [paper()])
    with ExitStack() as running:
        readers = [running.enter_context(process(read_for_ever, warehouse))[1] for _ in range(4)]
        assert [answers.recv() for answers in readers] == ["reads"] * 4
        for number in range(5):
            assert replace_day(warehouse, TUESDAY, papers_of(TUESDAY, 1, title=f"{number}")).unchanged == 0
        for answers in readers:  # and every process got its turn
            while answers.poll():
                answers.recv()
            assert answers.recv() == "reads"
