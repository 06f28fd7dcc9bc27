"""Test that profiles are made, renamed, removed and restored whole, and that no data of a reader is lost."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from paper_assets.errors import InvalidInput, InvalidProfile, PaperNotFound
from paper_assets.library.entries import Entry
from paper_assets.paper import paper_from_mapping
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.setup.draft import LikedWork, ProfileDraft
from paper_assets.setup.profile_editing import (
    Place,
    add_to_profile,
    create_profile,
    delete_profile,
    expired_profiles,
    profile_names,
    remove_profile,
    removed_profiles,
    restore_profile,
)
from paper_assets.stores.feedback import last_ratings
from paper_assets.stores.llm_answers import keep_answers, known_answers
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.profiles import (
    delete_stored_profile,
)
from paper_assets.stores.warehouse import Warehouse
from tests.desk import paper
from tests.stores.invented_warehouse import PROFILE, stored_warehouse

NOW = datetime(2026, 3, 5, 8, tzinfo=UTC)
DRAFT = ProfileDraft(name="graphs", interests=("graph learning",))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    home = tmp_path / "home"
    return Place(
        profiles_dir=tmp_path / "profiles", home=home, warehouse=Warehouse(home / "warehouse.duckdb", deadline=10)
    )


def rated(place: Place, profile: str) -> list[str]:
    return [each.paper_id for each in last_ratings(place.warehouse, profile)]


def test_the_first_profile_of_an_empty_home_can_be_used_at_once(place: Place) -> None:
    created = create_profile(place, DRAFT, now=NOW)
    assert created.notes == ()
    found = find_profiles(place.profiles_dir)
    assert list(found.readable) == ["graphs"]
    assert found.faults == {}
    assert found.readable["graphs"].content.interests.primary == ["graph learning"]
    assert sorted(each.name for each in (place.profiles_dir / "graphs").iterdir()) == ["profile.json"]


def test_a_name_that_is_taken_is_refused_and_nothing_changes(place: Place) -> None:
    create_profile(place, DRAFT, now=NOW)
    before = (place.profiles_dir / "graphs" / "profile.json").read_bytes()
    with pytest.raises(InvalidInput, match="already a profile 'graphs'"):
        create_profile(place, ProfileDraft(name="graphs", interests=("other",)), now=NOW)
    assert (place.profiles_dir / "graphs" / "profile.json").read_bytes() == before


def test_a_folder_that_holds_something_else_is_never_replaced(place: Place) -> None:
    (place.profiles_dir / "graphs").mkdir(parents=True)
    (place.profiles_dir / "graphs" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InvalidInput, match="exists already"):
        create_profile(place, DRAFT, now=NOW)
    assert (place.profiles_dir / "graphs" / "notes.txt").read_text("utf-8") == "mine"


def test_a_doi_becomes_the_stored_paper_that_has_it(place: Place) -> None:
    merge_papers(place.warehouse, [paper_from_mapping(paper(1, "2026-03-02", "graphs", doi="10.1000/ABC"))])
    papers = tuple(LikedWork(paper_id=each) for each in ("doi:10.1000/abc", "doi:10.1000/unknown", "2501.12345"))
    created = create_profile(place, ProfileDraft(name="graphs", papers=papers), now=NOW)
    record = json.loads((created.folder / "profile.json").read_text("utf-8"))
    assert record["interests"]["papers"] == ["2603.00001", "doi:10.1000/unknown", "2501.12345"]
    assert "10.1000/unknown" in created.notes[0]
    assert created.notes[1].startswith("not stored yet: 2501.12345;"), "the stored paper is not named"


def test_a_library_alone_makes_a_profile_and_its_works_are_liked(place: Place) -> None:
    works = [
        Entry(where="1", title="Graphs", abstract="They connect."),
        Entry(where="2", arxiv="2501.12345", title="T"),
    ]
    created = create_profile(place, ProfileDraft(name="mine"), now=NOW, library=[*works, Entry(where="entry 3")])
    assert created.imported is not None
    assert len(created.imported.new) == 2
    assert any("entry 3" in note for note in created.notes)
    liked = find_profiles(place.profiles_dir).readable["mine"].content.interests.papers
    assert [(each.paper_id, each.title) for each in liked] == [(None, "Graphs"), ("2501.12345", "T")]


def test_adding_to_a_profile_is_idempotent(place: Place) -> None:
    create_profile(place, DRAFT, now=NOW)
    more = ProfileDraft(name="graphs", interests=("trees",), categories=("cs.DS",))
    for _ in range(2):
        add_to_profile(place, "graphs", more, now=NOW)
    content = find_profiles(place.profiles_dir).readable["graphs"].content
    assert content.interests.primary == ["graph learning", "trees"]
    assert content.feed.categories == ["cs.DS"]


def test_every_table_with_a_profile_is_emptied_of_it(tmp_path: Path) -> None:
    warehouse = stored_warehouse(tmp_path / "warehouse.duckdb")

    def naming(name: str) -> set[str]:
        with warehouse.reading() as connection:
            rows = connection.execute("select table_name from duckdb_tables()").fetchall()
            return {table for (table,) in rows if f"'{name}'" in repr(connection.table(table).fetchall())}

    held = naming(PROFILE)
    assert len(held) > 12
    delete_stored_profile(warehouse, PROFILE, [])
    assert naming(PROFILE) == set()


def test_deleting_a_profile_keeps_paid_answers_that_do_not_repeat_its_own_words(place: Place) -> None:
    merge_papers(place.warehouse, [paper_from_mapping(paper(1, "2026-03-02", "agents for data"))])
    interests = {"graphs": ("agents", "Data", "quokka optics", "graph learning"), "lab": ("graph learning",)}
    for name, topics in interests.items():
        create_profile(place, ProfileDraft(name=name, interests=topics), now=NOW)
    texts = ("Agents read data", "on graph learning", "the balanced list", "Quokka Optics helps", "of graphs")
    keep_answers(place.warehouse, {text: json.dumps(text) for text in texts}, model="m")
    assert "quokka optics" in delete_profile(place, "graphs", ())
    assert set(known_answers(place.warehouse, texts)) == {*texts} - {"Quokka Optics helps"}


def test_a_removed_profile_can_be_restored_for_thirty_days_and_is_then_deleted(place: Place) -> None:
    create_profile(place, DRAFT, now=NOW)
    gone = remove_profile(place, "graphs", now=NOW)
    assert profile_names(place) == []
    assert find_profiles(place.profiles_dir).faults == {}
    later = NOW + timedelta(days=29)
    assert [each.name for each in removed_profiles(place, now=later)] == ["graphs"]
    assert expired_profiles(place, now=later) == []
    restore_profile(place, "graphs", now=later)
    assert profile_names(place) == ["graphs"]
    remove_profile(place, "graphs", now=later)
    assert expired_profiles(place, now=later + timedelta(days=30)) == ["graphs"]
    delete_profile(place, "graphs", ())
    assert not gone.folder.exists()
    with pytest.raises(PaperNotFound, match="no removed profile 'graphs'"):
        restore_profile(place, "graphs", now=later)


def test_restoring_never_replaces_a_profile_made_meanwhile(place: Place) -> None:
    create_profile(place, DRAFT, now=NOW)
    remove_profile(place, "graphs", now=NOW)
    create_profile(place, ProfileDraft(name="graphs", interests=("new",)), now=NOW)
    with pytest.raises(InvalidInput, match="already a profile 'graphs'"):
        restore_profile(place, "graphs", now=NOW)
    restore_profile(place, "graphs", now=NOW, as_name="old-graphs")
    assert profile_names(place) == ["graphs", "old-graphs"]


def test_a_profile_that_does_not_exist_is_answered_with_those_that_do(place: Place) -> None:
    create_profile(place, DRAFT, now=NOW)
    for name in ("grphs", "../graphs", ""):
        with pytest.raises(InvalidProfile, match="profiles: graphs"):
            remove_profile(place, name, now=NOW)
