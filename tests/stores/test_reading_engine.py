"""Test that readers, and writers after each other, share only an engine: no open file, no setting and no fault."""

import os
from pathlib import Path

import duckdb
import pytest

from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse, attached, attached_to_write
from tests.stores.invented_warehouse import fill


def _made(path: Path) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table kept as select 42 as answer")
    return path


def _open_files() -> set[str]:
    return {os.path.realpath(entry) for entry in Path("/proc/self/fd").iterdir()}


def test_a_file_is_released_at_the_end_and_read_again_with_the_changes_of_others(tmp_path: Path) -> None:
    file = _made(tmp_path / "it's.duckdb")
    with attached(file) as connection:
        assert connection.execute("select answer from kept").fetchall() == [(42,)]
        assert str(file) in _open_files()
        connection.execute("select * from range(300000)").fetchone()  # not read to its end
    assert str(file) not in _open_files()
    with duckdb.connect(str(file)) as connection:
        connection.execute("update kept set answer = 43")
    with attached(file) as connection:
        assert connection.execute("select answer from kept").fetchall() == [(43,)]


def test_two_files_are_read_side_by_side_and_neither_is_written(tmp_path: Path) -> None:
    first, second = _made(tmp_path / "a.duckdb"), _made(tmp_path / "b.duckdb")
    with attached(first) as one, attached(second) as other:
        assert one.execute("from kept").fetchall() == other.execute("from kept").fetchall()
        assert one.execute("select table_name from information_schema.tables where table_catalog = current_database()")
        with pytest.raises(duckdb.InvalidInputException, match="read-only"):
            other.execute("insert into kept values (1)")


def test_a_file_that_cannot_be_read_does_not_affect_the_others(tmp_path: Path) -> None:
    bad = tmp_path / "bad.duckdb"
    bad.write_bytes(b"no database " * 1000)
    for _ in range(2):
        with pytest.raises(duckdb.IOException, match="not a valid DuckDB database"), attached(bad):
            pass
        with attached(_made(tmp_path / f"good{_}.duckdb")) as connection:
            assert connection.execute("from kept").fetchall() == [(42,)]
            with pytest.raises(duckdb.CatalogException):
                connection.execute("from nothing")


def test_settings_of_one_reader_are_not_those_of_the_next(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)
    fill(warehouse)
    with warehouse.reading(own_settings=True) as connection:
        connection.execute("set memory_limit = '123MB'")
    with warehouse.reading() as connection:
        [(limit,)] = connection.execute("select current_setting('memory_limit')").fetchall()
    assert not limit.startswith(("117", "123"))


def test_data_beyond_the_memory_is_spilled_to_the_systems_folder_and_not_to_the_current_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, system = tmp_path / "here", tmp_path / "system"
    here.mkdir()
    system.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("tempfile.tempdir", str(system))
    monkeypatch.setattr("paper_assets.stores.warehouse._ENGINES", {})
    with attached(_made(tmp_path / "kept.duckdb")) as connection:
        connection.execute("set memory_limit = '60MB'")
        connection.execute("set threads = 1")  # several of them may pin more than that at the same moment
        connection.execute(
            "select sum(length(text)) from (select repeat('x', 100) as text, hash(range) as key "
            "from range(1500000) order by key desc)"
        ).fetchall()
        connection.execute("create temp table many as select repeat('x', 100) || range as text from range(1500000)")
    assert list(system.iterdir()) and not list(here.iterdir())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_reads_with_a_separate_engine(tmp_path: Path) -> None:
    file = _made(tmp_path / "kept.duckdb")
    with attached(file):
        pass
    child = os.fork()
    if child == 0:
        with attached(file) as connection:
            os._exit(0 if connection.execute("from kept").fetchall() == [(42,)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_writers_share_no_file_no_temporary_table_and_no_failed_transaction(tmp_path: Path) -> None:
    first, second = _made(tmp_path / "a.duckdb"), _made(tmp_path / "b.duckdb")
    for file in (first, second):
        with attached_to_write(file) as connection:
            connection.execute("create temp table noted as select 1")
            connection.execute("update kept set answer = answer + 1")
            assert str(file) in _open_files()
        assert str(file) not in _open_files()
    with pytest.raises(duckdb.ConstraintException), attached_to_write(first) as connection:
        connection.execute("begin")
        connection.execute("create table once (number integer primary key)")
        for _ in range(2):
            connection.execute("insert into once values (1)")
    assert str(first) not in _open_files()
    for file in (first, second):
        with attached_to_write(file) as connection:
            assert connection.execute("from kept").fetchall() == [(43,)]
            assert connection.execute("select table_name from duckdb_tables()").fetchall() == [("kept",)]


def test_two_threads_write_two_files_at_once(tmp_path: Path) -> None:
    first, second = _made(tmp_path / "a.duckdb"), _made(tmp_path / "b.duckdb")
    with attached_to_write(first) as one, attached_to_write(second) as other:
        for connection in (one, other):
            connection.execute("insert into kept values (1)")
    for file in (first, second):
        with attached(file) as connection:
            assert connection.execute("select count(*) from kept").fetchall() == [(2,)]


def test_a_merge_of_papers_leaves_the_memory_limit_of_the_next_writer(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "warehouse.duckdb", deadline=5)

    def limit() -> object:
        with warehouse.writing() as connection:
            return connection.execute("select current_setting('memory_limit')").fetchall()

    before = limit()
    merge_papers(warehouse, [])
    assert limit() == before
