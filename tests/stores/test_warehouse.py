"""Test that the warehouse is created on first use, that processes take turns, and that faults are one line."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from textwrap import dedent

import duckdb
import numpy as np
import pytest

from paper_assets.errors import PaperAssetsError, StoreBusy, StoreError, StoreUnwritable, StoreVersion
from paper_assets.profile import Profile, profile_content
from paper_assets.small_files import UNFINISHED
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.migrations.upgrade import MIGRATIONS
from paper_assets.stores.paper_merging import replace_day
from paper_assets.stores.papers import latest_day, paper_counts, papers_by_id, summary
from paper_assets.stores.profiles import keep_profile, last_good_profile, profile_version
from paper_assets.stores.rankings import ranking_schema, replace_ranking
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import MONDAY, TUESDAY, allow_files_of, listing, paper, papers_of, process
from tests.stores.invented_warehouse import fill


def refusal(path: Path) -> PaperAssetsError:
    """What reading and writing say, which must be the same single line."""
    warehouse = Warehouse(path, deadline=0)
    with pytest.raises(PaperAssetsError) as reading, warehouse.reading():
        pass
    with pytest.raises(PaperAssetsError) as writing, warehouse.writing():
        pass
    assert type(reading.value) is type(writing.value)
    assert str(path) in str(reading.value)
    assert "\n" not in str(reading.value)
    return reading.value


def test_the_first_use_makes_folder_and_tables_even_if_it_only_reads(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "new" / "home" / "warehouse.duckdb", deadline=5)
    assert summary(warehouse).papers == 0
    assert listing(warehouse.path.parent) == {"warehouse.duckdb"}


def test_what_a_killed_creator_has_left_is_swept_away(tmp_path: Path) -> None:
    (tmp_path / f"{UNFINISHED}warehouse.duckdb-0123").write_bytes(b"half a database")
    assert summary(Warehouse(tmp_path / "warehouse.duckdb", deadline=5)).papers == 0
    assert listing(tmp_path) == {"warehouse.duckdb"}


def test_a_block_that_raises_leaves_nothing(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    with pytest.raises(ZeroDivisionError), warehouse.writing() as connection:
        connection.execute("insert into candidate_sets values ('2026-01-05', 'p', 'x')")
        raise ZeroDivisionError
    with warehouse.reading() as connection:
        assert connection.execute("select * from candidate_sets").fetchall() == []


def test_a_rewritten_warehouse_holds_the_same_in_the_same_place_with_the_same_mode(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    summary(Warehouse(disk / "w.duckdb", deadline=5))
    warehouse.path.symlink_to(disk / "w.duckdb")
    (disk / ".w.duckdb.rewritten").write_bytes(b"half a copy")
    replace_day(warehouse, MONDAY, papers_of(MONDAY, 2))
    (disk / "w.duckdb").chmod(0o640)

    def held() -> list[object]:
        with warehouse.reading() as connection:
            tables = connection.execute("select table_name, sql from duckdb_tables() order by table_name").fetchall()
            views = connection.execute("select view_name, sql from duckdb_views() order by view_name").fetchall()
            return [tables, views, *(connection.execute(f"from {name}").fetchall() for name, _ in tables)]

    before = held()
    warehouse.rewrite()
    assert held() == before
    assert warehouse.path.is_symlink() and (disk / "w.duckdb").stat().st_mode & 0o777 == 0o640
    assert listing(disk) == {"w.duckdb"}


def test_reading_cannot_write(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    with pytest.raises(duckdb.InvalidInputException), warehouse.reading() as connection:
        connection.execute("delete from papers")


def test_a_fault_in_a_query_is_not_dressed_up_as_a_fault_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(duckdb.CatalogException), Warehouse(tmp_path / "w.duckdb", deadline=5).reading() as connection:
        connection.execute("select * from no_such_table")


def test_threads_of_one_process_take_turns(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=30)

    def count_up(number: int) -> None:
        with warehouse.reading() as connection:
            connection.execute("select count(*) from candidate_sets").fetchall()
        with warehouse.writing() as connection:
            known = connection.execute("select count(*) from candidate_sets").fetchall()[0][0]
            connection.execute("insert into candidate_sets values ('2026-01-05', ?, 'x')", [str(known)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(count_up, range(16)))
    with warehouse.reading() as connection:
        assert connection.execute("select count(*) from candidate_sets").fetchall() == [(16,)]


def test_a_thread_that_waits_too_long_learns_that_its_own_process_holds_the_warehouse(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=0.05)
    entered, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with warehouse.writing():
            entered.set()
            leave.wait(30)

    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(hold)
        entered.wait(30)
        with pytest.raises(StoreBusy, match="another thread of this process"), warehouse.reading():
            pass
        leave.set()
        held.result()
    assert summary(warehouse).papers == 0


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    assert isinstance(refusal(tmp_path), StoreError)


def test_a_file_in_place_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert isinstance(refusal(tmp_path / "file" / "w.duckdb"), StoreUnwritable)
    assert isinstance(refusal(tmp_path / "file" / "deeper" / "w.duckdb"), StoreUnwritable)


@pytest.mark.parametrize("content", ["", "not a database", "x" * 100_000])
def test_a_file_that_is_not_a_database_is_left_unchanged(tmp_path: Path, content: str) -> None:
    path = tmp_path / "w.duckdb"
    path.write_text(content, encoding="utf-8")
    assert "not a valid DuckDB database" in str(refusal(path))
    assert path.read_text(encoding="utf-8") == content


@pytest.mark.parametrize("table", ["create table cats (name varchar)", "create table meta (name varchar)"])
def test_a_database_of_another_program_is_left_unchanged(tmp_path: Path, table: str) -> None:
    path = tmp_path / "w.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(table)
    before = path.read_bytes()
    assert "is not a paper_assets database" in str(refusal(path))
    assert path.read_bytes() == before


def test_a_newer_warehouse_is_refused_with_both_numbers_and_left_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    newest = MIGRATIONS[-1].number
    with Warehouse(path, deadline=5).writing() as connection:
        connection.execute("update meta set schema_version = ?", [newest + 1])
    before = path.read_bytes()
    refused = refusal(path)
    assert isinstance(refused, StoreVersion)
    assert f"schema version {newest + 1}" in str(refused)
    assert f"version {newest}" in str(refused)
    assert "update paper_assets" in str(refused)
    assert path.read_bytes() == before
    assert listing(tmp_path) == {"w.duckdb"}


def test_a_new_home_is_private_to_its_user_and_an_existing_folder_stays_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    path = tmp_path / "data" / "home" / "w.duckdb"
    assert summary(Warehouse(path, deadline=5)).papers == 0
    assert [entry.stat().st_mode & 0o777 for entry in (path, *path.parents[:3])] == [0o600, 0o700, 0o700, 0o755]


def test_a_damaged_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "w.duckdb"
    assert summary(Warehouse(path, deadline=5)).papers == 0
    content = bytearray(path.read_bytes())
    content[12_288:] = bytes(255 - byte for byte in content[12_288:])
    path.write_bytes(content)
    assert "Corrupt" in str(refusal(path))


def _create_on_a_full_disk(answers, path: Path, free: int) -> None:  # type: ignore[no-untyped-def]
    allow_files_of(free)
    try:
        summary(Warehouse(path, deadline=5))
    except StoreUnwritable as refused:
        answers.send(str(refused))


@pytest.mark.parametrize("free", [1_000, 60_000, 150_000, 250_000])
def test_a_full_disk_leaves_no_half_made_warehouse(tmp_path: Path, free: int) -> None:
    path = tmp_path / "w.duckdb"
    with process(_create_on_a_full_disk, path, free) as (_, answers):
        assert "free space" in answers.recv()
    assert listing(tmp_path) == set()
    assert summary(Warehouse(path, deadline=5)).papers == 0


def test_the_summary_counts_what_is_there(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    replace_day(warehouse, MONDAY, [paper("a", MONDAY), paper("b", TUESDAY), paper("c", None)])
    [of_paper] = warehouse.column("select text_hash from papers where paper_id = 'a'")
    keep_vectors(warehouse, [of_paper, "of an interest"], np.array([[1.0, 0.0], [0.0, 1.0]]), model="m")
    for day in (MONDAY, TUESDAY):
        replace_ranking(warehouse, day, "vision", ranking_schema().empty_table(), {}, inputs="x")
    found = summary(warehouse)
    assert (found.papers, found.undated, found.days) == (3, 1, 2)
    assert (found.first_day, found.last_day) == (MONDAY, TUESDAY)
    assert (found.vectors, found.rankings, found.last_ranking) == ({"m": 1}, {"vision": 2}, {"vision": TUESDAY})


def test_a_held_warehouse_is_opened_once_and_each_write_is_still_whole(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=0)
    insert, count = "insert into candidate_sets values ('2026-01-05', ?, 'x')", "select count(*) from candidate_sets"

    def elsewhere() -> None:
        with pytest.raises(StoreBusy), warehouse.reading():
            pass

    with warehouse.held():
        with warehouse.writing() as connection:
            connection.execute(insert, ["kept"])
        with pytest.raises(ZeroDivisionError), warehouse.writing() as connection:
            connection.execute(insert, ["rolled back"])
            raise ZeroDivisionError
        with warehouse.held(), warehouse.reading() as again:
            assert again.execute(count).fetchall() == [(1,)]
        with ThreadPoolExecutor(1) as threads:
            threads.submit(elsewhere).result()
    with ThreadPoolExecutor(1) as threads, warehouse.reading() as after:
        assert after.execute(count).fetchall() == [(1,)]


def test_units_of_work_share_an_opening_until_its_time_is_over_and_others_come_in_afterwards(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=0)

    def refused() -> bool:
        try:
            with warehouse.reading():
                return False
        except StoreBusy:
            return True

    for seconds, shared in ((3600.0, True), (-1.0, False)):
        with ThreadPoolExecutor(1) as threads, warehouse.held_in_turns(seconds) as hold:
            assert not threads.submit(refused).result(), "nothing is opened before the first unit"
            hold()
            with warehouse.reading() as first:
                pass
            hold()
            with warehouse.reading() as second:
                assert (second is first) == shared
            assert threads.submit(refused).result()
        assert not refused()


def test_a_question_that_many_share_is_answered_once_while_the_file_is_locked(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "w.duckdb", deadline=5)
    asked: list[str] = []

    def answer(word: str) -> str:
        asked.append(word)
        return word

    with warehouse.read_together() as opened, opened.read_together() as again:
        assert [each.once("q", lambda: answer("first")) for each in (opened, again, opened)] == ["first"] * 3
        assert opened.once("other", lambda: answer("other")) == "other"
    with warehouse.read_together() as later:
        assert later.once("q", lambda: answer("later")) == "later"
    with warehouse.held(), warehouse.read_together() as may_write:
        assert [may_write.once("q", lambda: answer("anew")) for _ in range(2)] == ["anew"] * 2
    assert [warehouse.once("q", lambda: answer("alone")) for _ in range(2)] == ["alone"] * 2
    assert asked == ["first", "other", "later", "anew", "anew", "alone", "alone"]


# All reads of one opening see one state and cannot write


def test_many_questions_are_asked_in_one_opening_and_none_of_them_writes(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)
    fill(warehouse)
    with warehouse.read_together() as opened:
        assert latest_day(opened) == max(paper_counts(opened))
        with pytest.raises(RuntimeError, match="for reading only"), opened.writing():
            pass
    with warehouse.writing() as connection:  # closed again
        connection.execute("select 1").fetchall()


def test_a_profile_asked_for_in_between_leaves_the_opening_to_the_next_question(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)
    kept = Profile(name="ann", content=profile_content({"interests": {"primary": ["graphs"]}}, source="test"))
    keep_profile(warehouse, kept)
    with warehouse.read_together() as opened:
        assert last_good_profile(opened, "ann") == kept
        assert papers_by_id(opened, ["2603.00001"]).num_rows == 0
        assert profile_version(opened, "ann", kept.content_hash) == kept
        assert papers_by_id(opened, ["2603.00001"]).num_rows == 0


def test_ctrl_c_during_a_query_ends_the_work_and_is_no_fault_of_a_paper(tmp_path: Path) -> None:
    """DuckDB raises RuntimeError for it, after which a loop over papers would go on."""
    code = """
    import os, signal, sys, threading
    from pathlib import Path
    from paper_assets.stores.warehouse import Warehouse

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's is ignored
    warehouse = Warehouse(Path(sys.argv[1]), deadline=60)
    try:
        with warehouse.reading() as connection:
            threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
            connection.execute("select sum(a.range * b.range) from range(20000) a, range(20000) b").fetchall()
        threading.Event().wait(60)  # DuckDB notices a signal in a query now and then, Python certainly here
    except Exception as fault:
        print(repr(fault))
    except KeyboardInterrupt:
        print("ended")
    """
    done = subprocess.run(
        [sys.executable, "-c", dedent(code), str(tmp_path / "w.duckdb")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "ended\n"
