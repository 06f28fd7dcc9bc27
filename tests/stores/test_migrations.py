"""Test that older warehouses are upgraded without loss, whatever interrupts the upgrade."""

import gzip
import os
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import duckdb
import pytest
from duckdb import DuckDBPyConnection

from paper_assets.errors import StoreBusy, StoreError, StoreUnwritable, StoreVersion
from paper_assets.stores.best_practices import best_practices
from paper_assets.stores.llm_answers import known_answers
from paper_assets.stores.migrations import upgrade
from paper_assets.stores.migrations.upgrade import FIRST, MIGRATIONS, Migration
from paper_assets.stores.profiles import last_good_profile
from paper_assets.stores.rankings import previous_ranking, ranking
from paper_assets.stores.rewrite_progress import decided_items
from paper_assets.stores.rewrites import rewrite_items
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import MONDAY, allow_files_of, listing, process, stored
from tests.stores.invented_warehouse import ARCHIVE, PROFILE, WAREHOUSES, fill

FROZEN = "5ce44fd0153ed535df67b3fee059dc649d2814e85adde3dfddf66426e0fb6d9a"
NEWEST = MIGRATIONS[-1].number
STORED = sorted(WAREHOUSES.glob("version-*.duckdb.gz"))
NAME = "warehouse.duckdb"
COPY = f"{NAME}.before-{NEWEST + 1:04}"

Rows = dict[str, list[dict[str, Any]]]


def unpacked(file: Path, folder: Path) -> Path:
    path = folder / NAME
    with gzip.open(file) as stream, path.open("wb") as to:
        shutil.copyfileobj(stream, to)
    return path


def rows_of(path: Path) -> Rows:
    """Return the rows of a database, by table."""
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute("select table_name from duckdb_tables() order by table_name").fetchall()
        return {name: connection.table(name).to_arrow_table().to_pylist() for (name,) in tables}


def shape_of(path: Path) -> list[tuple[Any, ...]]:
    """Every column and constraint of a database, and its views."""
    with duckdb.connect(str(path), read_only=True) as connection:
        return [
            *connection.execute(
                """
                select table_name, column_name, data_type, is_nullable
                from duckdb_columns()
                where not internal
                order by all
                """
            ).fetchall(),
            *connection.execute(
                "select table_name, constraint_type, constraint_text from duckdb_constraints() order by all"
            ).fetchall(),
            *connection.execute("select view_name, sql from duckdb_views() where not internal order by all").fetchall(),
        ]


def version_of(path: Path) -> int:
    with duckdb.connect(str(path), read_only=True) as connection:
        [(version,)] = connection.execute("select schema_version from meta").fetchall()
    assert isinstance(version, int)
    return version


def is_held(before: Rows, after: Rows) -> bool:
    """Check that `after` contains every row and value of `before`; it may have more columns and tables."""
    return all(
        any({name: row[name] for name in old} == old for row in after[table])
        for table, rows in before.items()
        if table != "meta"
        for old in rows
    )


def test_migrations_are_numbered_without_gaps() -> None:
    assert [migration.number for migration in MIGRATIONS] == list(range(FIRST, NEWEST + 1))


def test_the_first_released_schema_does_not_change() -> None:
    """A table is changed by a migration; the warehouse of this schema in `warehouses/` is never written again."""
    schema = (Path(upgrade.__file__).with_name("schema.sql")).read_bytes()
    assert sha256(schema).hexdigest() == FROZEN


def test_every_version_has_a_stored_warehouse() -> None:
    assert {int(re.findall(r"\d+", file.name)[0]) for file in STORED} == set(range(FIRST, NEWEST + 1))


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.name)
def test_a_stored_warehouse_opens_with_every_row_it_had(file: Path, tmp_path: Path) -> None:
    path = unpacked(file, tmp_path)
    version, before = version_of(path), rows_of(path)
    assert all(before.values()), "a table without rows proves nothing"
    warehouse = Warehouse(path, deadline=5)
    assert len(stored(warehouse)) == 4
    assert is_held(before, rows_of(path))
    assert version_of(path) == NEWEST
    assert decided_items(warehouse, since=datetime(2000, 1, 1, tzinfo=UTC)) == ["waiting"]
    assert [item.outcome for item in rewrite_items(warehouse, ["waiting", "done"])] == [None, "passed"]
    assert [practice.score for practice in best_practices(warehouse, ARCHIVE)] == [97]
    assert known_answers(warehouse, ["key"]) == {"key": '{"score": 1}'}
    assert ranking(warehouse, MONDAY, PROFILE).rows["final"].to_pylist() == [0.6]
    assert previous_ranking(warehouse, MONDAY, PROFILE).rows["final"].to_pylist() == [0.5]
    assert last_good_profile(warehouse, PROFILE) is not None
    if version < NEWEST:
        assert rows_of(tmp_path / f"{NAME}.before-{version + 1:04}") == before


@pytest.mark.parametrize("file", STORED, ids=lambda file: file.name)
def test_a_stored_warehouse_ends_in_the_shape_of_a_new_one(file: Path, tmp_path: Path) -> None:
    path, new = unpacked(file, tmp_path), tmp_path / "new.duckdb"
    for each in (path, new):
        with Warehouse(each, deadline=5).reading():
            pass
    assert shape_of(path) == shape_of(new)


def test_a_warehouse_from_before_the_first_release_is_refused_in_one_line_that_says_how_to_keep_the_ratings(
    tmp_path: Path,
) -> None:
    path = tmp_path / NAME
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table meta (schema_version integer not null)")
        connection.execute("insert into meta values (10)")
    before = path.read_bytes()
    for use in ("reading", "writing"):
        with pytest.raises(StoreVersion) as refused, getattr(Warehouse(path, deadline=5), use)():
            pass
        assert "ratings export" in str(refused.value) and "import FOLDER" in str(refused.value)
        assert "\n" not in str(refused.value)
    assert (path.read_bytes(), listing(tmp_path)) == (before, {NAME})


# Migrations invented for the tests, after the newest real one.


def add_a_column(connection: DuckDBPyConnection) -> None:
    connection.execute("alter table rankings add column below boolean default false")
    connection.execute("alter table previous_rankings add column below boolean default false")


def fail(connection: DuckDBPyConnection) -> None:
    add_a_column(connection)
    connection.execute("create table invented (paper_id varchar)")
    connection.execute("insert into rewrite_decisions from no_such_table")


def die(connection: DuckDBPyConnection) -> None:
    add_a_column(connection)
    connection.execute("delete from rewrite_decisions")
    os.kill(os.getpid(), 9)


def with_next(apply: Callable[[DuckDBPyConnection], None], path: Path, *, deadline: float = 30) -> Warehouse:
    return Warehouse(path, deadline=deadline, migrations=(*MIGRATIONS, Migration(NEWEST + 1, "invented", apply)))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse of the newest real version with something in every table."""
    path = tmp_path_factory.mktemp("filled") / NAME
    fill(Warehouse(path, deadline=5))
    return path


@pytest.fixture
def path(filled: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(filled, tmp_path))


def test_there_is_a_row_for_every_table_of_the_present_version(filled: Path) -> None:
    assert [table for table, rows in rows_of(filled).items() if not rows] == []


@pytest.mark.parametrize("use", ["reading", "writing"])
def test_a_reader_as_a_writer_migrates_once_and_leaves_a_private_copy(path: Path, use: str) -> None:
    before = rows_of(path)
    warehouse = with_next(add_a_column, path)
    for _ in range(2):
        with getattr(warehouse, use)() as connection:
            assert connection.execute("select below from rankings").fetchall() == [(False,)]
    assert version_of(path) == NEWEST + 1
    assert listing(path.parent) == {NAME, COPY}
    copy = path.with_name(COPY)
    assert rows_of(copy) == before
    assert copy.stat().st_mode & 0o777 == 0o600


def test_what_a_killed_process_left_in_the_log_is_in_the_copy_too(path: Path) -> None:
    before = rows_of(path)
    with process(write_and_die, path) as (child, _):
        child.join()
    assert path.with_name(f"{NAME}.wal").exists()
    with with_next(add_a_column, path).reading():
        pass
    found = rows_of(path.with_name(COPY))
    assert len(found["llm_answers"]) == len(before["llm_answers"]) + 1


def write_and_die(_: object, path: Path) -> None:
    connection = duckdb.connect(str(path))
    connection.execute("insert into llm_answers values ('paid', 'm', '{}', 1, 1)")
    os.kill(os.getpid(), 9)


def test_a_failing_migration_leaves_everything_as_it_was_and_is_reported_in_one_line(path: Path) -> None:
    before, shape = rows_of(path), shape_of(path)
    for use in ("reading", "writing"):
        with pytest.raises(StoreError) as failed, getattr(with_next(fail, path), use)():
            pass
        message = str(failed.value)
        assert f"could not be upgraded to schema version {NEWEST + 1} (invented)" in message
        assert "no_such_table" in message and str(path.with_name(COPY)) in message and "\n" not in message
    assert (rows_of(path), shape_of(path), rows_of(path.with_name(COPY))) == (before, shape, before)
    Warehouse(path, deadline=5).run("delete from llm_answers")


def test_after_a_failure_the_migrations_before_it_stay(path: Path) -> None:
    good = with_next(add_a_column, path)
    two = Warehouse(path, deadline=5, migrations=(*good.migrations, Migration(NEWEST + 2, "failing", fail)))
    with pytest.raises(StoreError, match=f"version {NEWEST + 2}"), two.reading():
        pass
    assert version_of(path) == NEWEST + 1
    assert good.rows("select below from rankings") == [(False,)]


def open_once(answers: Any, apply: Callable[[DuckDBPyConnection], None], path: Path) -> None:
    answers.send("ready")
    answers.recv()
    answers.send(with_next(apply, path).rows("select below from rankings"))


def test_a_migration_killed_in_the_middle_leaves_version_and_copy_and_the_next_start_continues(path: Path) -> None:
    before = rows_of(path)
    for _ in range(2):
        with process(open_once, die, path) as (child, answers):
            assert answers.recv() == "ready"
            answers.send("go")
            child.join()
            assert child.exitcode == -9
        assert version_of(path) == NEWEST
        assert rows_of(path.with_name(COPY)) == before
    with with_next(add_a_column, path).writing():
        pass
    assert is_held(before, rows_of(path))
    assert version_of(path) == NEWEST + 1


def test_the_remains_of_a_killed_copy_are_removed(path: Path) -> None:
    path.with_name(f".unfinished-{COPY}-1").write_bytes(b"half a copy")
    with with_next(add_a_column, path).reading():
        pass
    assert listing(path.parent) == {NAME, COPY}


def add_a_column_once(connection: DuckDBPyConnection) -> None:
    add_a_column(connection)
    connection.execute("insert into llm_answers values ('migrated', 'm', '{}', 1, 1)")  # a second time is refused


def test_processes_that_open_at_once_migrate_once(path: Path) -> None:
    with ExitStack() as running:
        openers = [running.enter_context(process(open_once, add_a_column_once, path))[1] for _ in range(3)]
        assert [answers.recv() for answers in openers] == ["ready"] * 3
        for answers in openers:
            answers.send("go")
        assert [answers.recv() for answers in openers] == [[(False,)]] * 3
    assert [row["key"] for row in rows_of(path)["llm_answers"]] == ["key", "migrated"]


def hold(answers: Any, path: Path) -> None:
    with Warehouse(path, deadline=5).reading():
        answers.send("holding")
        answers.recv()


def test_a_migration_waits_for_a_reader_of_the_earlier_program_and_names_it_at_the_deadline(path: Path) -> None:
    before = path.read_bytes()
    with process(hold, path) as (holder, answers):
        assert answers.recv() == "holding"
        with pytest.raises(StoreBusy, match=f"pid {holder.pid}"), with_next(add_a_column, path, deadline=0.3).reading():
            pass
        assert path.read_bytes() == before
        assert listing(path.parent) == {NAME}
    with with_next(add_a_column, path).reading():
        pass
    assert version_of(path) == NEWEST + 1


def test_the_earlier_program_refuses_what_a_later_one_has_migrated(path: Path) -> None:
    with with_next(add_a_column, path).reading():
        pass
    with pytest.raises(StoreVersion, match="update paper_assets"), Warehouse(path, deadline=5).reading():
        pass


def test_the_newest_two_copies_are_kept(path: Path) -> None:
    steps = MIGRATIONS
    for number in range(NEWEST + 1, NEWEST + 4):
        steps = (*steps, Migration(number, "nothing", nothing))
        with Warehouse(path, deadline=5, migrations=steps).reading():
            pass
    assert listing(path.parent) == {NAME, *(f"{NAME}.before-{number:04}" for number in (NEWEST + 2, NEWEST + 3))}


def nothing(connection: DuckDBPyConnection) -> None:
    pass


def migrate_on_a_full_disk(answers: Any, path: Path) -> None:
    allow_files_of(100_000)
    try:
        with with_next(add_a_column, path).reading():
            answers.send("done")
    except StoreUnwritable as refused:
        answers.send(str(refused))


def test_without_space_for_the_copy_nothing_is_changed(path: Path) -> None:
    before = rows_of(path)
    with process(migrate_on_a_full_disk, path) as (_, answers):
        answer = answers.recv()
    assert "the copy cannot be written" in answer and "MB" in answer and "\n" not in answer
    assert (version_of(path), rows_of(path)) == (NEWEST, before)
    assert listing(path.parent) == {NAME}
