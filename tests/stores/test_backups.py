"""A backup is a whole copy, restoring loses nothing that was there, and a damaged database gives what it still has."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from paper_assets.errors import InvalidInput, StoreError, StoreVersion
from paper_assets.stores.backups import (
    KEPT,
    Home,
    back_up,
    back_up_into_folder,
    backups,
    damaged_tables,
    repair,
    restore,
    restore_entered,
    time_of,
)
from paper_assets.stores.feedback import NewRating, append_ratings, last_ratings, mark_seen, seen_papers
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import process
from tests.stores.invented_warehouse import stored_warehouse

NOW = datetime(2026, 3, 2, 1, 30, tzinfo=UTC)
_HEAD, _BLOCK = 3 * 4096, 262_144


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """Return a home with rows in every table, a profile and a setting."""
    home = home_at(tmp_path / "home")
    stored_warehouse(home.warehouse.path)
    folder = home.profiles_dir / "lab"
    folder.mkdir(parents=True)
    (folder / "profile.json").write_text('{"interests": {"primary": ["graphs"]}}', "utf-8")
    (folder / "pdf").mkdir()
    (folder / "pdf" / "own.pdf").write_bytes(b"%PDF-1.7\xff")
    (home.folder / "morning.env").write_text("PAPER_ASSETS_FETCH_AT=07:15\n", "utf-8")
    return home


def home_at(folder: Path) -> Home:
    warehouse = Warehouse(folder / "warehouse.duckdb", deadline=20)
    return Home(warehouse=warehouse, folder=folder, profiles_dir=folder / "profiles")


def rows_of(path: Path) -> dict[str, list[Any]]:
    with duckdb.connect(f"{path}", read_only=True) as connection:
        names = connection.execute("select table_name from duckdb_tables()").fetchall()
        return {name: sorted(map(repr, connection.table(name).fetchall())) for (name,) in names}


def test_a_backup_restored_in_another_home_has_every_row_and_file(home: Home, tmp_path: Path) -> None:
    file, before = tmp_path / "elsewhere" / "copy", rows_of(home.warehouse.path)
    back_up(home, file)
    assert file.stat().st_mode & 0o777 == 0o600
    other = home_at(tmp_path / "other")
    restore(other, file, now=NOW)
    assert rows_of(other.warehouse.path) == before
    for name in ("profiles/lab/profile.json", "profiles/lab/pdf/own.pdf", "morning.env"):
        assert (other.folder / name).read_bytes() == (home.folder / name).read_bytes()
    assert not list(tmp_path.rglob("*unfinished*"))
    with pytest.raises(InvalidInput, match="exists already"):
        back_up(home, file)


def test_what_a_restored_backup_replaces_is_kept_and_what_it_lacks_stays(home: Home, tmp_path: Path) -> None:
    back_up(home, tmp_path / "copy")
    mark_seen(home.warehouse, "lab", ["2601.00004"], now=NOW)
    later, edited = rows_of(home.warehouse.path), '{"interests": {"primary": ["frogs"]}}'
    (home.profiles_dir / "lab" / "profile.json").write_text(edited, "utf-8")
    (home.profiles_dir / "new").mkdir()
    (home.profiles_dir / "new" / "profile.json").write_text("{}", "utf-8")
    aside, replaced = restore(home, tmp_path / "copy", now=NOW)
    assert "2601.00004" not in seen_papers(home.warehouse, "lab")
    assert replaced == ["profiles/lab/profile.json"]
    assert (aside / replaced[0]).read_text("utf-8") == edited
    assert rows_of(aside / "warehouse.duckdb") == later
    assert (home.profiles_dir / "new" / "profile.json").exists()


def mark_and_mark(answers: object, path: Path) -> None:
    for number in range(200):
        mark_seen(Warehouse(path, deadline=30), "lab", [f"a{number}", f"b{number}"], now=NOW)


def test_backups_taken_while_another_process_writes_are_whole(home: Home, tmp_path: Path) -> None:
    with process(mark_and_mark, home.warehouse.path) as (writer, _):
        for number in range(3):
            back_up(home, tmp_path / f"copy-{number}")
        writer.kill()
    for number in range(3):
        names = [row for row in rows_of(tmp_path / f"copy-{number}")["seen_papers"] if "'a" in row or "'b" in row]
        assert len(names) % 2 == 0, "a transaction is in the backup as a whole"


def test_the_last_seven_backups_are_kept_and_one_is_due_a_day_later(home: Home) -> None:
    for day in range(KEPT + 2):
        assert back_up_into_folder(home, now=NOW + timedelta(days=day), only_due=True)
    assert back_up_into_folder(home, now=NOW + timedelta(days=KEPT + 1, hours=3), only_due=True) is None
    kept = backups(home.folder)
    assert [time_of(file) for file in kept] == [NOW + timedelta(days=day) for day in range(KEPT + 1, 1, -1)]


@pytest.mark.parametrize("name", ["profiles/../../outside", "home/../../outside", "/outside", "home/other.txt", ""])
def test_a_foreign_file_in_a_backup_is_written_nowhere(home: Home, tmp_path: Path, name: str) -> None:
    back_up(home, tmp_path / "copy")
    with duckdb.connect(f"{tmp_path / 'copy'}") as connection:
        connection.execute("insert into backup_files values (?, ?)", [name, b"bad"])
    before = {file for file in tmp_path.rglob("*") if file.is_file()}
    aside, _ = restore(home, tmp_path / "copy", now=NOW)
    new = {file for file in tmp_path.rglob("*") if file.is_file()} - before
    assert {file for file in new if aside not in file.parents and file.suffix != ".lock"} == set()


def test_what_is_no_whole_backup_changes_nothing(home: Home, tmp_path: Path) -> None:
    file, before = tmp_path / "copy", rows_of(home.warehouse.path)
    back_up(home, file)
    whole = file.read_bytes()
    for damaged, error in (
        (b"not a database", StoreError),
        (whole[: len(whole) // 2], StoreError),
        (flipped(whole, _HEAD + _BLOCK // 2), StoreError),
    ):
        file.write_bytes(damaged)
        with pytest.raises(error):
            restore(home, file, now=NOW)
    with duckdb.connect(f"{tmp_path / 'foreign'}") as connection:
        connection.execute("create table meta (schema_version integer); insert into meta values (9999)")
    with pytest.raises(StoreVersion, match="update paper_assets"):
        restore(home, tmp_path / "foreign", now=NOW)
    assert rows_of(home.warehouse.path) == before
    assert not (home.folder / "replaced").exists()


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 0x40]) + content[place + 1 :]


@pytest.mark.parametrize(
    ("text", "table", "also"),
    [
        (b"Is the road open?", "kept_answers", set()),
        (b"On 2601.00001", "papers", {"day_listings"}),  # their days are fetched again
    ],
)
def test_a_damaged_block_costs_its_rows_only_and_repair_names_them(
    home: Home, text: bytes, table: str, also: set[str]
) -> None:
    path, before = home.warehouse.path, rows_of(home.warehouse.path)
    content = path.read_bytes()
    path.write_bytes(flipped(content, content.index(text)))
    assert set(damaged_tables(home.warehouse)) == {table}
    aside, saved, _ = repair(home, now=NOW)
    assert {each.name for each in saved if each.lost} == {table}
    assert (aside / path.name).exists() and damaged_tables(home.warehouse) == {}
    after = rows_of(path)
    assert {name for name in before if after[name] != before[name]} == {table} | also


def test_entries_that_repair_could_not_read_are_added_again_from_a_backup(home: Home, tmp_path: Path) -> None:
    path, before = home.warehouse.path, rows_of(home.warehouse.path)
    back_up(home, tmp_path / "backup")
    content = path.read_bytes()
    path.write_bytes(flipped(content, content.index(b"Is the road open?")))
    repair(home, now=NOW)
    append_ratings(home.warehouse, "lab", [NewRating(paper_id="2601.00009", rating="no")], given_in="page", now=NOW)
    assert rows_of(path)["kept_answers"] == []
    added = restore_entered(home, tmp_path / "backup")
    assert {name: count for name, count in added.items() if count} == {"answers": len(before["kept_answers"])}
    after = rows_of(path)
    assert after["kept_answers"] == before["kept_answers"]
    assert len(after["ratings"]) == len(before["ratings"]) + 1, "what was entered since stays"
    (home.profiles_dir / "lab" / "profile.json").unlink()
    assert {name: count for name, count in restore_entered(home, tmp_path / "backup").items() if count} == {
        "profiles": 1
    }
    assert not list(home.folder.glob(".unfinished*"))


def test_lists_with_a_lost_row_are_emptied_so_that_they_are_computed_again(home: Home) -> None:
    path = home.warehouse.path
    content = path.read_bytes()
    path.write_bytes(flipped(content, content.index(b"VERY_RECENT", _HEAD + _BLOCK)))
    [lost] = damaged_tables(home.warehouse)
    _, saved, _ = repair(home, now=NOW)
    emptied = {each.name for each in saved if each.emptied}
    assert lost in emptied and {f"{lost.removesuffix('s')}_sets"} < emptied
    assert all(rows_of(path)[name] == [] for name in emptied)


def test_a_database_that_cannot_be_opened_is_left_for_a_backup(home: Home) -> None:
    content = home.warehouse.path.read_bytes()
    home.warehouse.path.write_bytes(flipped(content, _HEAD + 1_000))
    with pytest.raises(StoreError, match="paper-assets repair"):
        damaged_tables(home.warehouse)
    with pytest.raises(StoreError, match="paper-assets restore"):
        repair(home, now=NOW)
    assert home.warehouse.path.exists()


def test_a_damaged_log_loses_the_last_changes_only(home: Home) -> None:
    rated = last_ratings(home.warehouse, "lab")
    log = home.warehouse.path.with_name("warehouse.duckdb.wal")
    with duckdb.connect(f"{home.warehouse.path}") as connection:
        connection.execute("pragma disable_checkpoint_on_shutdown")
        connection.execute("insert into forgotten select 'lab', 'word', 'w' || range, now()::timestamp from range(99)")
    log.write_bytes(flipped(log.read_bytes(), log.stat().st_size // 2))
    with pytest.raises(StoreError, match="paper-assets repair"):
        last_ratings(home.warehouse, "lab")
    aside, saved, lost_log = repair(home, now=NOW)
    assert lost_log and (aside / log.name).exists()
    assert not any(each.lost for each in saved)
    assert last_ratings(home.warehouse, "lab") == rated
