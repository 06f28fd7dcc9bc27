"""Test ratings: the latest rating counts, and erasing removes all of them (SPEC L1)."""

import os
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest

from paper_assets.errors import InvalidArxivId, InvalidInput, InvalidProfile, PaperNotFound
from paper_assets.learning.ratings import (
    Rated,
    change_forgotten,
    erase_ratings,
    rate,
    ratings_by_id,
    ratings_version,
    training_inputs,
)
from paper_assets.stores.feedback import (
    WITHDRAWN,
    NewRating,
    append_ratings,
    last_ratings,
    rating_history,
)
from paper_assets.stores.paper_merging import replace_day
from paper_assets.stores.rankings import ranking_schema, replace_ranking
from paper_assets.stores.warehouse import Warehouse
from paper_assets.weights import DIMENSIONS
from tests.invented_papers import MONDAY, TUESDAY, papers_of, process

NOW = datetime(2026, 1, 7, 8, 30, tzinfo=UTC)
FIRST, SECOND = "2601.05000", "2601.05001"


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    """Two stored papers, and the profiles `lab` and `other`."""
    found = Warehouse(tmp_path / "warehouse.duckdb", deadline=30)
    replace_day(found, MONDAY, papers_of(MONDAY, 2))
    for name in ("lab", "other"):
        folder = tmp_path / "profiles" / name
        folder.mkdir(parents=True)
        (folder / "profile.json").write_text('{"interests": {"primary": ["graphs"]}}', encoding="utf-8")
    return found


def say(warehouse: Warehouse, paper_id: str, word: str | None, *, profile: str = "lab", minute: int = 0) -> Rated:
    now, folder = NOW + timedelta(minutes=minute), warehouse.path.parent / "profiles"
    return rate(warehouse, profile, paper_id, word or "undo", given_in="command line", now=now, profiles_dir=folder)


def test_the_last_rating_of_a_paper_counts(warehouse: Warehouse) -> None:
    assert say(warehouse, FIRST, "worth").before is None
    assert say(warehouse, f"arXiv:{FIRST}v3", "no", minute=1).before == "worth"
    say(warehouse, SECOND, "later", minute=2)
    assert ratings_by_id(warehouse, "lab") == {FIRST: "no", SECOND: "later"}


def test_a_rating_given_twice_is_kept_once(warehouse: Warehouse) -> None:
    assert say(warehouse, FIRST, "worth").changed
    assert not say(warehouse, FIRST, "worth", minute=1).changed
    history = rating_history(warehouse, "lab")
    assert [each.rated_at for each in history] == [NOW]


def test_a_withdrawn_rating_leaves_the_paper_unrated_and_stays_in_the_history(warehouse: Warehouse) -> None:
    say(warehouse, FIRST, "worth")
    assert say(warehouse, FIRST, None, minute=1).before == "worth"
    assert not say(warehouse, FIRST, None, minute=2).changed
    assert last_ratings(warehouse, "lab") == []
    history = rating_history(warehouse, "lab")
    assert [each.rating for each in history] == ["worth", WITHDRAWN]


def test_the_same_last_words_have_the_same_version_however_they_came(warehouse: Warehouse) -> None:
    def version() -> str:
        return ratings_version(last_ratings(warehouse, "lab"))

    nothing = version()
    say(warehouse, FIRST, "worth")
    once = version()
    say(warehouse, FIRST, "no", minute=1)
    assert len({nothing, once, version()}) == 3
    say(warehouse, FIRST, "worth", minute=2)
    assert version() == once
    say(warehouse, FIRST, None, minute=3)
    assert version() == nothing


def test_a_rating_notes_the_newest_ranking_that_showed_the_paper(warehouse: Warehouse) -> None:
    for day, inputs, shown in ((MONDAY, "monday", [FIRST, SECOND]), (TUESDAY, "tuesday", [FIRST])):
        rows = [
            {**dict.fromkeys(DIMENSIONS, 0.5), "rank": at + 1, "shown": each in shown, "paper_id": each, "final": 0.5}
            | {"bonus": 0.0, "soft_penalty": 0.0, "diversity_penalty": 0.0, "penalty_keywords": [], "tags": []}
            | {"evaluation_method": "embedding"}
            for at, each in enumerate((FIRST, SECOND))
        ]
        table = pa.Table.from_pylist(rows, schema=ranking_schema())
        replace_ranking(warehouse, day, "lab", table, {}, inputs=inputs)
    for paper_id in (FIRST, SECOND):
        say(warehouse, paper_id, "worth")
        say(warehouse, paper_id, "worth", profile="other")
    assert [(each.ranking_day, each.ranking_inputs) for each in last_ratings(warehouse, "lab")] == [
        (TUESDAY, "tuesday"),
        (MONDAY, "monday"),
    ]
    assert [each.ranking_day for each in last_ratings(warehouse, "other")] == [None, None]


def test_erasing_leaves_nothing_of_the_profile_and_all_of_the_others(warehouse: Warehouse) -> None:
    say(warehouse, FIRST, "worth")
    say(warehouse, FIRST, "no", minute=1)
    say(warehouse, FIRST, "worth", profile="other")
    folder = warehouse.path.parent / "profiles"
    assert erase_ratings(warehouse, "lab", profiles_dir=folder) == 2
    assert rating_history(warehouse, "lab") == []
    assert ratings_by_id(warehouse, "other") == {FIRST: "worth"}


def test_erasing_ratings_erases_what_was_forgotten_too(warehouse: Warehouse) -> None:
    folder = warehouse.path.parent / "profiles"
    say(warehouse, FIRST, "worth")
    kept = change_forgotten(warehouse, "lab", "word", "graph", now=NOW, profiles_dir=folder)
    assert kept.words == ("graph",)
    assert erase_ratings(warehouse, "lab", profiles_dir=folder) == 1
    assert training_inputs(warehouse, "lab").version == ratings_version([])


def test_what_is_forgotten_can_be_remembered_again(warehouse: Warehouse) -> None:
    folder, before = warehouse.path.parent / "profiles", training_inputs(warehouse, "lab")
    change_forgotten(warehouse, "lab", "paper", FIRST, now=NOW, profiles_dir=folder)
    assert training_inputs(warehouse, "lab").version != before.version
    change_forgotten(warehouse, "lab", "paper", FIRST, again=True, now=NOW, profiles_dir=folder)
    assert training_inputs(warehouse, "lab") == before
    with pytest.raises(InvalidInput, match="a word or a paper"):
        change_forgotten(warehouse, "lab", "author", "Ann", now=NOW, profiles_dir=folder)


def test_what_cannot_be_rated_is_refused_by_name_and_leaves_nothing(warehouse: Warehouse) -> None:
    with pytest.raises(InvalidInput, match="worth, later, no, got 'great'"):
        say(warehouse, FIRST, "great")
    with pytest.raises(InvalidArxivId, match="no-paper"):
        say(warehouse, "no-paper", "worth")
    with pytest.raises(PaperNotFound, match=r"2601\.99999 is not stored"):
        say(warehouse, "2601.99999", "worth")
    for profile in ("nobody", "../lab", ""):
        with pytest.raises(InvalidProfile, match="no profile"):
            say(warehouse, FIRST, "worth", profile=profile)
    assert last_ratings(warehouse, "lab") == []


def test_an_imported_paper_that_is_not_stored_can_be_rated_again(warehouse: Warehouse) -> None:
    known = NewRating(paper_id="doi:10.1000/xyz", rating="worth", title="On graphs", abstract="We study graphs.")
    assert append_ratings(warehouse, "lab", [known], given_in="import", now=NOW) == ["doi:10.1000/xyz"]
    assert append_ratings(warehouse, "lab", [known], given_in="import", now=NOW) == []
    say(warehouse, "doi:10.1000/xyz", "no")
    [found] = last_ratings(warehouse, "lab")
    assert (found.rating, found.title, found.abstract) == ("no", "On graphs", "We study graphs.")


def rate_and_die(answers: object, path: Path) -> None:
    warehouse = Warehouse(path, deadline=30)
    say(warehouse, FIRST, "worth")
    with warehouse.writing() as connection:
        connection.execute("update ratings set rating = 'no'")
        os.kill(os.getpid(), 9)


def test_a_process_killed_half_way_leaves_the_last_stored_rating(warehouse: Warehouse) -> None:
    with process(rate_and_die, warehouse.path) as (child, _):
        child.join()
    assert ratings_by_id(warehouse, "lab") == {FIRST: "worth"}


def rate_by_turns(answers: object, path: Path, word: str) -> None:
    warehouse = Warehouse(path, deadline=60)
    for minute in range(10):
        say(warehouse, FIRST, (word, None)[minute % 2])
        say(warehouse, SECOND, word)


def test_two_processes_that_rate_at_once_lose_no_rating(warehouse: Warehouse) -> None:
    with (
        process(rate_by_turns, warehouse.path, "worth") as (one, _),
        process(rate_by_turns, warehouse.path, "no") as (two, _),
    ):
        one.join()
        two.join()
    assert (one.exitcode, two.exitcode) == (0, 0)
    history = rating_history(warehouse, "lab")
    ratings_given: dict[str, list[str | None]] = {FIRST: [None], SECOND: [None]}
    for each in history:
        ratings_given[each.paper_id].append(None if each.rating == WITHDRAWN else each.rating)
    assert all(before != after for words in ratings_given.values() for before, after in pairwise(words))
    assert ratings_given[FIRST][-1] is None and len(ratings_given[SECOND]) > 1
