"""What people entered survives a round trip through text files, and two homes can be merged."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from duckdb import DuckDBPyConnection

from paper_assets.errors import InvalidInput
from paper_assets.stores.entered import Merged, export_entered, import_entered
from paper_assets.stores.feedback import NewRating, append_ratings, last_ratings
from paper_assets.stores.kept_answers import keep_answer, kept_answers
from paper_assets.stores.migrations.upgrade import MIGRATIONS, Migration
from paper_assets.stores.warehouse import Warehouse
from tests.stores.invented_warehouse import fill, stored_warehouse

NOW = datetime(2026, 3, 2, 8, 30, tzinfo=UTC)
FIRST, SECOND = "2601.00001", "2601.00002"


class Home:
    """A home with its profiles."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.profiles = folder, folder / "profiles"
        self.warehouse = Warehouse(folder / "warehouse.duckdb", deadline=20)
        self.exports = 0

    def rate(self, paper_id: str, rating: str, hour: int) -> None:
        given = [NewRating(paper_id=paper_id, rating=rating)]
        append_ratings(self.warehouse, "lab", given, given_in="page", now=NOW + timedelta(hours=hour))

    def profile(self, file: str, content: object) -> Path:
        path = self.profiles / "lab" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    def export(self) -> Path:
        self.exports += 1
        export_entered(self.warehouse, self.profiles, self.folder / f"export-{self.exports}")
        return self.folder / f"export-{self.exports}"

    def take(self, export: Path) -> Merged:
        return import_entered(self.warehouse, self.folder, self.profiles, export, aside=self.folder / "replaced")


@pytest.fixture
def homes(tmp_path: Path) -> tuple[Home, Home]:
    """Return two empty homes."""
    return Home(tmp_path / "one"), Home(tmp_path / "two")


def lines(export: Path) -> dict[str, list[str]]:
    return {file.name: sorted(file.read_text("utf-8").splitlines()) for file in export.iterdir()}


def test_a_round_trip_loses_nothing_and_a_second_import_adds_nothing(homes: tuple[Home, Home]) -> None:
    one, two = homes
    stored_warehouse(one.warehouse.path)
    one.profile("profile.json", {"interests": {"primary": ["wärme"]}})
    one.profile("questions.json", [{"rewritten_question": "why"}])
    one.profile("broken.json", "{not json")
    export = one.export()
    added = two.take(export).added
    assert set(added.values()) == {1, 3} and added["profiles"] == 3
    assert lines(two.export()) == lines(export)
    assert set(two.take(export).added.values()) == {0}
    assert set(one.take(two.export()).added.values()) == {0}
    assert "wärme" in (export / "profiles.jsonl").read_text("utf-8")


def test_two_homes_that_import_each_other_end_equal_and_the_later_rating_counts(homes: tuple[Home, Home]) -> None:
    one, two = homes
    one.rate(FIRST, "worth", hour=3)
    two.rate(FIRST, "no", hour=1)
    two.rate(SECOND, "later", hour=2)
    for home, minutes in ((one, 0), (two, 5)):
        keep_answer(home.warehouse, f"why {minutes}", options={}, answer={"sentences": []}, now=NOW)
    one.profile("read_papers.json", ["2501.00001"])
    two.profile("read_papers.json", ["2501.00002"])
    exports = one.export(), two.export()
    two.take(exports[0])
    one.take(exports[1])
    assert {each.paper_id: each.rating for each in last_ratings(one.warehouse, "lab")} == {
        FIRST: "worth",
        SECOND: "later",
    }
    first, second = lines(one.export()), lines(two.export())
    profiles = [json.loads(each.pop("profiles.jsonl")[0])["content"] for each in (first, second)]
    assert first == second
    assert [sorted(content) for content in profiles] == [["2501.00001", "2501.00002"]] * 2
    assert [answer.question for answer in kept_answers(one.warehouse)] == ["why 0", "why 5"]


def test_of_two_edits_of_a_profile_the_later_counts_and_the_other_is_kept(homes: tuple[Home, Home]) -> None:
    one, two = homes
    early = one.profile("profile.json", {"interests": {"primary": ["a"]}})
    late = two.profile("profile.json", {"interests": {"primary": ["b"]}})
    os.utime(early, (NOW.timestamp(), NOW.timestamp()))
    exports = one.export(), two.export()
    assert two.take(exports[0]).notes == ("lab/profile.json differs and was edited later here: it stays",)
    [note] = one.take(exports[1]).notes
    assert "edited later there" in note
    assert json.loads(early.read_text("utf-8")) == json.loads(late.read_text("utf-8"))
    assert '["a"]' in (one.folder / "replaced" / "lab" / "profile.json").read_text("utf-8")
    assert one.take(exports[1]).notes == ()


Change = Callable[[dict[str, Any]], object]


@pytest.mark.parametrize(
    ("file", "change", "fault"),
    [
        ("ratings.jsonl", lambda row: row.update(rating="best"), "line 1: rating is one of worth, later, no, none"),
        ("ratings.jsonl", lambda row: row.update(rated_at="soon"), "line 1: rated_at cannot be 'soon'"),
        ("ratings.jsonl", lambda row: row.pop("paper_id"), "line 1: paper_id is missing"),
        ("ratings.jsonl", lambda row: row.update(paper_id="../x"), r"line 1: paper_id cannot be '\.\./x'"),
        ("seen.jsonl", lambda row: row.update(seen_at="often"), "line 1: seen_at cannot be 'often'"),
        ("seen.jsonl", lambda row: row.update(profile="../lab"), "cannot be the name of a profile"),
        ("profiles.jsonl", lambda row: row.update(file="../profile.json"), "cannot be a file of a profile"),
        ("profiles.jsonl", lambda row: row.update(profile=".removed"), "cannot be the name of a profile"),
        ("about.json", lambda row: row.update(version=99), "newer paper_assets"),
    ],
)
def test_an_export_that_is_wrong_is_refused_by_line_and_changes_nothing(
    homes: tuple[Home, Home], file: str, change: Change, fault: str
) -> None:
    one, two = homes
    stored_warehouse(one.warehouse.path)
    one.profile("profile.json", {"interests": {"primary": ["graphs"]}})
    export = one.export()
    record = json.loads((export / file).read_text("utf-8"))
    change(record)
    (export / file).write_text(json.dumps(record) + "\n", "utf-8")
    with pytest.raises(InvalidInput, match=fault):
        two.take(export)
    assert not two.profiles.exists() and last_ratings(two.warehouse, "lab") == []


def test_a_round_trip_between_three_versions_of_the_store_loses_nothing(tmp_path: Path) -> None:
    """The first format, as it is frozen; today's; and one that a later migration has changed."""

    def add_a_column(connection: DuckDBPyConnection) -> None:
        connection.execute("alter table ratings add column invented varchar default 'x'")

    later = (*MIGRATIONS, Migration(MIGRATIONS[-1].number + 1, "invented", add_a_column))
    exports, empty = [], [Home(tmp_path / f"empty-{at}") for at in range(9)]
    for version, migrations in (("first", MIGRATIONS), ("today", MIGRATIONS), ("later", later)):
        home = Home(tmp_path / version)
        home.warehouse = replace(home.warehouse, migrations=migrations)
        home.profile("profile.json", {"interests": {"primary": ["graphs"]}})
        if version == "first":
            stored_warehouse(home.warehouse.path)
        else:
            fill(home.warehouse)
        exports.append(home.export())
    given = [lines(export) for export in exports]
    assert [set(each) for each in given] == [set(given[0])] * 3 and all(all(each.values()) for each in given)
    for home, (export, migrations) in zip(empty, product(exports, (MIGRATIONS, MIGRATIONS, later)), strict=True):
        home.warehouse = replace(home.warehouse, migrations=migrations)
        home.take(export)
        assert comparable(lines(home.export())) == comparable(lines(export))


def comparable(rows: dict[str, list[str]]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows without the column that only the later version has."""
    return {
        name: [{key: value for key, value in json.loads(row).items() if key != "invented"} for row in each]
        for name, each in rows.items()
    }


def test_an_older_export_without_a_column_or_a_file_is_read(homes: tuple[Home, Home]) -> None:
    one, two = homes
    one.rate(FIRST, "worth", hour=0)
    export = one.export()
    record = json.loads((export / "ratings.jsonl").read_text("utf-8"))
    del record["abstract"], record["ranking_inputs"]
    (export / "ratings.jsonl").write_text(json.dumps(record) + "\n", "utf-8")
    (export / "claims.jsonl").unlink()
    (export / "about.json").write_text('{"version": 19}', "utf-8")
    assert two.take(export).added["ratings"] == 1


def test_the_export_of_a_program_from_before_the_first_release_is_read(homes: tuple[Home, Home]) -> None:
    one, _ = homes
    export = one.folder / "old"
    export.mkdir(parents=True)
    rating = {"paper_id": f"{FIRST}v2", "rating": "worth", "rated_at": NOW.isoformat(), "given_in": "page"}
    record = {
        "profile": "lab",
        "ratings": [rating, {**rating, "rating": None, "paper_id": SECOND}],
        "forgotten": {"words": ["graph"], "papers": []},
    }
    (export / "lab.json").write_text(json.dumps(record), "utf-8")
    for expected in (2, 0):
        assert one.take(export).added["ratings"] == expected
    assert [each.paper_id for each in last_ratings(one.warehouse, "lab")] == [FIRST]


def test_a_folder_that_is_no_export_and_one_that_is_not_empty_are_refused(homes: tuple[Home, Home]) -> None:
    one, _ = homes
    export = one.export()
    with pytest.raises(InvalidInput, match="not an empty folder"):
        export_entered(one.warehouse, one.profiles, export)
    with pytest.raises(InvalidInput, match="is not an export"):
        one.take(one.folder)
