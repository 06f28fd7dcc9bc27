"""A profile that is deleted for good leaves nothing of it in the home, and the history stays within its limits."""

import shutil
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from paper_assets.defs import history_files
from paper_assets.interfaces import removal
from paper_assets.interfaces.removal import remove_expired
from paper_assets.setup import profile_editing
from paper_assets.setup.profile_editing import (
    Place,
    profile_names,
    remove_profile,
    removed_profiles,
    restore_profile,
)
from paper_assets.stores.ranking_files import KEPT_FILES, remove_superseded
from paper_assets.stores.warehouse import Warehouse
from tests.desk import GRAPHS, Desk, week

NAME, WORDS = "zebrafish-lab", ("zebrafish", "quokka optics")
NOW = datetime(2026, 3, 9, tzinfo=UTC)


def places_of(folder: Path, words: tuple[str, ...]) -> list[str]:
    """Return the files below the folder whose bytes contain one of the words, and the tables whose rows do."""
    found = []
    for file in (file for file in folder.rglob("*") if file.is_file()):
        if any(word.encode() in file.read_bytes() or word in file.name for word in words):
            found.append(f"{file.relative_to(folder)}")
        if file.suffix == ".duckdb":
            with duckdb.connect(f"{file}", read_only=True) as connection:
                tables = [name for (name,) in connection.execute("select table_name from duckdb_tables()").fetchall()]
                for table in tables:
                    if any(word in repr(connection.table(table).fetchall()) for word in words):
                        found.append(table)
    return found


@pytest.fixture(scope="module")
def ranked(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk with lists of two profiles, one with words that nothing else has."""
    desk = Desk(tmp_path_factory.mktemp("ranked"))
    desk.profile("graphs", GRAPHS)
    desk.profile(NAME, {"interests": {"primary": ["quokka optics", "graphs"]}})
    desk.run("import", str(desk.papers("papers.jsonl", week(("2026-03-02",)))))
    desk.run("run")
    (desk.folder / "data" / "up.log").write_text(f"ponds are ranked\n{NAME} is ranked\n", "utf-8")
    return desk


def test_a_profile_deleted_with_everything_leaves_none_of_its_words_in_the_home(ranked: Desk) -> None:
    assert {"profile_versions", "rankings"} <= set(places_of(ranked.folder, WORDS)), "the search finds what is there"
    assert "confirm with --yes" in ranked.refused("profile", "remove", NAME, "--everything")
    assert "Everything of" in ranked.run("profile", "remove", NAME, "--everything", "--yes")
    assert places_of(ranked.folder, WORDS) == []
    of_no_paper = "select text_hash from embeddings anti join papers using (text_hash)"
    assert ranked.warehouse.column(of_no_paper) == [], "vectors of its interests"
    assert "ponds are ranked" in (ranked.folder / "data" / "up.log").read_text("utf-8")
    status = ranked.run("status")
    assert "graphs" in status and NAME not in status
    assert "no profile" in ranked.refused("profile", "remove", NAME, "--everything", "--yes")
    ranked.run("run")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a desk with the list of the profile that is deleted."""
    desk = Desk(tmp_path_factory.mktemp("alone"))
    desk.profile(NAME, {"interests": {"primary": ["quokka optics"]}})
    desk.run("import", str(desk.papers("papers.jsonl", week(("2026-03-02",)))))
    desk.run("run")
    (desk.folder / "data" / "up.log").write_text(f"{NAME} is ranked\n", "utf-8")
    return desk.folder


@pytest.mark.parametrize("part", ["delete_stored_profile", "forget_job", "_without_lines", "forget_profile"])
def test_a_deletion_that_is_killed_is_completed_by_the_same_command_or_on_the_next_day(
    alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    desk = Desk(tmp_path / "desk")

    def killed() -> None:
        shutil.rmtree(desk.folder, ignore_errors=True)
        shutil.copytree(alone, desk.folder)
        module = profile_editing if part == "delete_stored_profile" else removal
        real = getattr(module, part)

        def ended(*given: Any) -> None:
            if part == "delete_stored_profile":
                real(*given)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(module, part, ended)
            if part == "delete_stored_profile":  # after the rows, before the file is rewritten
                patch.setattr(Warehouse, "rewrite", lambda _: None)
            with pytest.raises(KeyboardInterrupt):
                removal.remove_everything(desk.settings, desk.environment, NAME)

    killed()
    place = Place(profiles_dir=desk.folder / "profiles", home=desk.folder / "data", warehouse=desk.warehouse)
    assert profile_names(place) == [] and removed_profiles(place, now=NOW) == [], "it is ranked no more"
    assert places_of(desk.folder, WORDS) != []
    desk.run("profile", "remove", NAME, "--everything", "--yes")
    assert places_of(desk.folder, WORDS) == []
    killed()
    assert remove_expired(desk.settings, desk.environment, now=NOW) == [NAME]
    assert places_of(desk.folder, WORDS) == []


def test_a_removed_profile_goes_with_its_ratings_after_thirty_days_unless_it_came_back(ranked: Desk) -> None:
    ranked.profile("early", GRAPHS)
    ranked.profile("back", GRAPHS)
    place = Place(profiles_dir=ranked.settings.profiles_dir, home=ranked.settings.home, warehouse=ranked.warehouse)
    with place.warehouse.writing() as connection:
        for name in ("early", "back"):
            connection.execute("insert into seen_papers values (?, '2603.00001', ?)", [name, NOW.replace(tzinfo=None)])
            remove_profile(place, name, now=NOW)
    restore_profile(place, "back", now=NOW + timedelta(days=29))
    for days, expected in ((29, []), (31, ["early"]), (32, [])):
        assert remove_expired(ranked.settings, ranked.environment, now=NOW + timedelta(days=days)) == expected
    assert {*profile_names(place)} - {NAME} == {"back", "graphs"}  # NAME: of the test before
    assert place.warehouse.rows("select profile from seen_papers") == [("back",)]


def test_the_history_keeps_its_newest_events_and_shrinks(ranked: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    home = ranked.folder / "dagster_home"
    index = home / history_files.INDEX

    def rows(table: str) -> list[int]:
        with closing(sqlite3.connect(index)) as file:
            return [number for (number,) in file.execute(f"select id from {table} order by id")]

    before = rows("event_logs")
    with closing(sqlite3.connect(index)) as file, file:
        columns = "run_id, event, dagster_event_type, timestamp, step_key, asset_key, partition"
        file.execute(f"create temp table one as select {columns} from event_logs limit 1")
        file.execute(
            f"insert into event_logs ({columns}) "
            "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000) "
            f"select {columns} from one, n"
        )
    size = index.stat().st_size
    monkeypatch.setattr(history_files, "MOST_EVENTS", 100)
    history_files.prune_history(home)
    assert rows("event_logs") == list(range(before[-1] + 1901, before[-1] + 2001))
    assert index.stat().st_size < size / 2
    ranked.run("run")


def test_of_replaced_ranking_files_the_newest_are_kept_and_the_current_ones_all(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    names = [f"2026-03-02_{number:06}_ranked.json" for number in range(KEPT_FILES + 20)]
    for name in names:
        (tmp_path / "lab" / name).touch()
    remove_superseded(tmp_path, {names[0]})
    assert sorted(file.name for file in (tmp_path / "lab").iterdir()) == [names[0], *names[-KEPT_FILES:]]
