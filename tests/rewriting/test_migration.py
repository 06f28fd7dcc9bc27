"""Test copying an archive to another version: each entry once, ids kept, also after a kill (B1)."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import chromadb
import pytest

from paper_assets.errors import IndexUnusable, InvalidInput
from paper_assets.rewriting.best_practices import Archive, sync_archive
from paper_assets.rewriting.migration import Migrated, migrate
from paper_assets.settings import RewritingConfig
from paper_assets.stores.best_practices import best_practices, ids_of
from tests.chroma_folder import entries
from tests.invented_papers import process
from tests.rewriting.invented_archive import fill, invented_archive, invented_embedder, practice

V1, V2 = "optim_best_practices_v1", "optim_best_practices_v2"
EXAMPLE_ID = practice(1).id


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return invented_archive(tmp_path)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A Chroma folder as an older program has left it: seven entries that are good, four that are not."""
    folder = tmp_path / "older program"
    client = chromadb.PersistentClient(folder)
    rows = client.create_collection(V1)
    good = [practice(number) for number in range(7)]
    metadatas: list[dict[str, Any]] = [
        {
            "original_text": each.original_text if at else "Call 010-1234-5678 about paper 0.",
            "score": each.score,
            "target_level": each.target_level,
            "keywords": ", ".join(each.keywords),
            "timestamp": each.made_at.isoformat(),
            "model_version": each.model_version,
        }
        for at, each in enumerate(good)
    ]
    faulty = [{"score": 101}, {"target_level": "child"}, {"timestamp": "yesterday"}, {"original_text": " "}]
    rows.add(
        ids=[*(each.id for each in good), "bad0", "bad1", "bad2", "bad3"],
        documents=[*(each.text for each in good), *["text"] * 4],
        embeddings=[[1.0, 0.0, 0.0]] * 11,
        metadatas=[*metadatas, *({**metadatas[1], **fault} for fault in faulty)],
    )
    client.close()
    return folder


def test_a_table_is_carried_over_with_its_ids_and_nothing_is_embedded_again(archive: Archive) -> None:
    fill(archive, [practice(number) for number in range(30)])
    sync_archive(archive)
    to = replace(archive, collection=V2, embedder=invented_embedder())  # one that has embedded nothing yet
    assert migrate(to, V1) == Migrated(copied=30, embedded=0)
    assert to.embedder is not None and to.embedder.cache_info().misses == 0
    assert best_practices(to.warehouse, V2) == best_practices(to.warehouse, V1)
    assert len(entries(to.index, V2)) == len(entries(to.index, V1)) == 30
    assert entries(to.index, V2)[EXAMPLE_ID].document == practice(1).text
    assert migrate(to, V1) == Migrated(copied=0, embedded=0), "twice is once"


def test_unmasked_entries_are_masked_when_copied_to_a_masked_collection(archive: Archive) -> None:
    texts = {"text": "Call 010-1234-5678.", "original_text": "ada@example.edu wrote."}
    bare = practice(1, **texts, keywords=("ada@example.edu", "frogs"))
    fill(archive, [bare])
    migrate(replace(archive, collection=V2), V1)
    [found] = best_practices(archive.warehouse, V2)
    assert found == replace(bare, text="Call ***.", original_text="*** wrote.", keywords=("***", "frogs"))
    assert entries(archive.index, V2)[bare.id].document == "Call ***."
    migrate(replace(archive, collection="bare_v3", config=RewritingConfig(mask_pii=False)), V1)
    assert best_practices(archive.warehouse, "bare_v3") == [bare]


def test_another_model_embeds_each_original_once(archive: Archive) -> None:
    fill(archive, [practice(number) for number in range(5)])
    sync_archive(archive)
    assert archive.embedder is not None
    to = replace(archive, collection=V2, embedder=invented_embedder(name="other"))
    assert migrate(to, V1) == Migrated(copied=5, embedded=5)
    assert migrate(to, V1) == Migrated(copied=0, embedded=0)


def test_an_older_programs_chroma_folder_is_read_masked_and_left_as_it_was(archive: Archive, old: Path) -> None:
    before = {file: file.read_bytes() for file in old.rglob("*") if file.is_file()}
    done = migrate(replace(archive, collection=V2), V1, folder=old)
    assert (done.copied, done.embedded, len(done.faults)) == (7, 7, 4)
    assert [fault.split(":")[0] for fault in done.faults] == ["bad0", "bad1", "bad2", "bad3"]
    assert "score must be a number from 0 to 100, got 101" in done.faults[0]
    found = {each.id: each for each in best_practices(archive.warehouse, V2)}
    assert found[practice(0).id].original_text == "Call *** about paper 0."
    assert found[practice(4).id] == practice(4, paper_id="", category=None)
    assert {file: file.read_bytes() for file in old.rglob("*") if file.is_file()} == before
    assert not list(old.parent.glob(".chroma-copy-*"))


def test_a_collection_whose_warehouse_was_lost_is_read_from_its_index(archive: Archive) -> None:
    fill(archive, [practice(number) for number in range(4)])
    sync_archive(archive)
    archive.warehouse.path.unlink()
    assert migrate(replace(archive, collection=V2), V1).copied == 4
    assert best_practices(archive.warehouse, V2) == [practice(number) for number in (3, 2, 1, 0)]


def test_unreadable_entries_are_left_out_and_reported(archive: Archive) -> None:
    refusal = practice(1, text="I'm sorry, but I cannot help with that request.")
    copy = practice(2, text=practice(2).original_text)
    fill(archive, [refusal, copy, practice(3)])
    done = migrate(replace(archive, collection=V2), V1)
    assert [each.id for each in best_practices(archive.warehouse, V2)] == [practice(3).id]
    assert {fault.split(":")[0] for fault in done.faults} == {refusal.id, copy.id}
    assert all("held back by the gate" in fault for fault in done.faults)


def test_what_cannot_be_migrated_is_one_clear_line(archive: Archive, old: Path, tmp_path: Path) -> None:
    to = replace(archive, collection=V2)
    with pytest.raises(
        IndexUnusable, match=r"has no collection optim_best_practices_v0; name its folder with --chroma"
    ):
        migrate(to, "optim_best_practices_v0")
    with pytest.raises(IndexUnusable, match="no collection optim_best_practices_v0; check its name"):
        migrate(to, "optim_best_practices_v0", folder=old)
    with pytest.raises(InvalidInput, match="both name"):
        migrate(to, V2)
    with pytest.raises(InvalidInput, match="cannot name a collection"):
        migrate(to, "../../etc")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "chroma.sqlite3").write_text("no database", encoding="utf-8")
    with pytest.raises(IndexUnusable):
        migrate(to, V1, folder=tmp_path / "broken")
    with (old / "chroma.sqlite3-wal").open("wb") as damaged:
        damaged.truncate(10**11)  # takes no space, but reading it takes minutes
    with pytest.raises(IndexUnusable, match=r"holds 100 GB, of which at most \d+ are read"):
        migrate(to, V1, folder=old)
    assert ids_of(archive.warehouse, V2) == []


def migrate_and_halt(answers, folder: Path, source_folder: Path | None) -> None:  # type: ignore[no-untyped-def]
    """Migrate two entries at a time and wait forever as soon as something is written."""

    def progress(done: int, total: int) -> None:
        answers.send((done, total))
        answers.recv()

    to = invented_archive(folder, invented_embedder(name="other"), collection=V2)
    migrate(to, V1, folder=source_folder, progress=progress, at_once=2)


@pytest.mark.parametrize("foreign", [True, False], ids=["from Chroma", "from the table"])
def test_a_migration_killed_half_way_continues_where_it_was(tmp_path: Path, old: Path, foreign: bool) -> None:
    to = invented_archive(tmp_path, invented_embedder(name="other"), collection=V2)
    source = old if foreign else None
    if not foreign:
        fill(replace(to, collection=V1), [practice(number) for number in range(700)])
    with process(migrate_and_halt, tmp_path, source) as (victim, answers):
        assert answers.recv() == ((2, 2) if foreign else (500, 700))
        victim.kill()
        victim.join()
    whole = 7 if foreign else 700
    assert len(ids_of(to.warehouse, V2)) == (2 if foreign else 700)
    done = migrate(to, V1, folder=source, at_once=2)
    assert (done.copied, done.embedded) == ((5, 7) if foreign else (0, 200))
    assert ids_of(to.warehouse, V2) == [practice(number).id for number in range(whole)]
    assert len(entries(to.index, V2)) == whole
    assert migrate(to, V1, folder=source) == replace(done, copied=0, embedded=0)


def test_two_migrations_at_once_carry_everything_over_once(tmp_path: Path, old: Path) -> None:
    to = invented_archive(tmp_path, collection=V2)
    with process(migrate_and_halt, tmp_path, old) as (_, answers):
        assert answers.recv() == (2, 2)
        assert migrate(to, V1, folder=old).copied == 5
    assert ids_of(to.warehouse, V2) == [practice(number).id for number in range(7)]
