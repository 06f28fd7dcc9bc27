"""The Chroma folder holds what the database holds, for any program, and is filled again on any doubt."""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from paper_assets.errors import InvalidInput, StoreError
from paper_assets.locks import store_lock
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.documents import remove_documents
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.vectors import drop, mark_for_rebuild, nearest, self_check, update
from paper_assets.stores.warehouse import Warehouse
from tests.chroma_folder import MODEL, client_of, entries, fill, passage, store, vector_of
from tests.invented_papers import TUESDAY, paper
from tests.loopback import refusing_port
from tests.scale.servers import chroma_server
from tests.stores.test_embeddings import embed


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "w.duckdb", deadline=10)


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return VectorIndex(tmp_path / "chroma", deadline=10)


def reason(index: VectorIndex, warehouse: Warehouse, *, model: str = MODEL) -> str | None:
    """Why a search cannot ask Chroma."""
    with warehouse.reading() as connection:
        return nearest(index, connection, "fulltext", vector_of("text of p0"), k=3, model=model).reason


FOREIGN = """
import chromadb, sys
client = chromadb.PersistentClient(sys.argv[1])
papers = client.get_collection("abstract")
found = papers.query(query_embeddings=[eval(sys.argv[2])], n_results=2)
print([each.name for each in client.list_collections()], found["ids"], found["metadatas"][0][0]["title"])
"""


def test_a_script_that_knows_only_chromadb_opens_the_folder_and_finds_papers(
    warehouse: Warehouse, index: VectorIndex
) -> None:
    merge_papers(warehouse, [paper("2601.00001"), paper("2601.00002", TUESDAY), paper("2601.00003", withdrawn=True)])
    embed(warehouse, None, None)
    assert update(index, warehouse, ["abstract"], model="m").upserted == 2
    asked = list(entries(index, "abstract")["2601.00002"].vector.tolist())
    script = [sys.executable, "-c", FOREIGN, str(index.place), repr(asked)]
    seen = subprocess.run(script, capture_output=True, text=True, check=True).stdout.strip()
    assert seen == "['abstract'] [['2601.00002', '2601.00001']] On 2601.00002"
    assert entries(index, "abstract")["2601.00002"].metadata == {
        "paper_id": "2601.00002",
        "title": "On 2601.00002",
        "date_int": 20260106,
        "primary_category": "cs.CL",
        "categories": ["cs.CL"],
        "topic_id": "cs",
        "data_type": "abstract",
        "access_level": "public",
        "language": "en",
        "version": 1,
        "url": "https://arxiv.org/abs/2601.00002",
    }


def test_one_changed_document_costs_one_and_private_ones_are_not_in_it(
    warehouse: Warehouse, index: VectorIndex
) -> None:
    whole = [passage(f"p{number}", categories=("cs.CL",)) for number in range(20)]
    store(warehouse, [*whole, passage("mine", access_level="private", owner="me")])
    assert fill(index, warehouse).upserted == 20
    assert set(entries(index, "fulltext")) == {each.doc_id for each in whole}
    store(warehouse, [passage("p0", "another text"), *whole[1:]])
    store(warehouse, [passage("new")], origin="second")
    report = fill(index, warehouse)
    assert (report.upserted, report.removed, report.rebuilt) == (2, 0, None)
    held = entries(index, "fulltext")
    np.testing.assert_allclose(held["p0"].vector, vector_of("another text"), atol=1e-6)
    assert "categories" not in held["p0"].metadata, "Chroma takes no empty list, and forgets what is gone"
    remove_documents(warehouse, "fulltext", origins=["second"])
    report = fill(index, warehouse)
    assert (report.upserted, report.removed) == (0, 1)
    report = fill(index, warehouse)
    assert (report.upserted, report.removed, report.rebuilt) == (0, 0, None)


def test_a_changed_title_reaches_the_folder_without_a_new_vector(warehouse: Warehouse, index: VectorIndex) -> None:
    store(warehouse, [passage("a"), passage("b")])
    fill(index, warehouse)
    store(warehouse, [passage("a", title="Another"), passage("b")])
    assert fill(index, warehouse).upserted == 1
    assert entries(index, "fulltext")["a"].metadata["title"] == "Another"


def test_what_has_no_vector_yet_is_not_in_the_folder(warehouse: Warehouse, index: VectorIndex) -> None:
    store(warehouse, [passage("a")], model="another")
    assert fill(index, warehouse).upserted == 0
    store(warehouse, [passage("a")])
    assert fill(index, warehouse).upserted == 1


def _with(place: Path, work: Callable[[object], object]) -> None:
    client = client_of(place)
    work(client)
    client.close()


def _cut(place: Path, pattern: str) -> None:
    [file] = place.rglob(pattern)
    os.truncate(file, file.stat().st_size // 2)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "removed": lambda place: subprocess.run(["rm", "-r", str(place)], check=True),
    "a mark": lambda place: place.with_name("chroma.unfinished").touch(),
    "half a database": lambda place: _cut(place, "chroma.sqlite3"),
    "half of the names": lambda place: _cut(place, "index_metadata.pickle"),
    "no names": lambda place: next(place.rglob("index_metadata.pickle")).unlink(),
    "no links": lambda place: next(place.rglob("link_lists.bin")).unlink(),
    "an entry less": lambda place: _with(place, lambda client: client.get_collection("fulltext").delete(ids=["p3"])),  # type: ignore[attr-defined]
    "no collection": lambda place: _with(place, lambda client: client.delete_collection("fulltext")),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_on_any_doubt_a_search_does_not_ask_and_the_next_update_fills_all_again(
    warehouse: Warehouse, index: VectorIndex, damage: Callable[[Path], object]
) -> None:
    store(warehouse, [passage(f"p{number}") for number in range(250)])
    fill(index, warehouse)
    assert reason(index, warehouse) is None
    assert isinstance(index.place, Path)
    damage(index.place)
    assert reason(index, warehouse) is not None
    report = fill(index, warehouse)
    if report.rebuilt is None:  # nothing that an update looks at: the self check finds it
        mark_for_rebuild(index)
        report = fill(index, warehouse)
    assert report.upserted == 250 and report.rebuilt
    assert len(entries(index, "fulltext")) == 250
    assert reason(index, warehouse) is None
    assert index.mark and not index.mark.exists()


def test_another_model_replaces_every_vector_of_every_collection(warehouse: Warehouse, index: VectorIndex) -> None:
    merge_papers(warehouse, [paper("2601.00001")])
    embed(warehouse, None, None)
    update(index, warehouse, ["abstract"], model="m")
    store(warehouse, [passage("a")], model="n")
    assert reason(index, warehouse, model="n") == "the Chroma folder is not filled yet"
    report = fill(index, warehouse, model="n")
    assert report.upserted == 1
    merge_papers(warehouse, [paper("2601.00002")])
    report = update(index, warehouse, ["abstract"], model="n")
    assert report.rebuilt and "holds vectors of m" in report.rebuilt
    assert (entries(index, "abstract"), set(entries(index, "fulltext"))) == ({}, {"a"})


def test_a_search_says_why_it_does_not_ask(warehouse: Warehouse, index: VectorIndex) -> None:
    store(warehouse, [passage("a")])
    assert reason(index, warehouse) == "the Chroma folder is not filled yet"
    fill(index, warehouse)
    store(warehouse, [passage("a"), passage("b")])
    assert reason(index, warehouse) == "the Chroma folder does not hold the newest changes yet"
    fill(index, warehouse)
    script = (
        "import sys, time; from pathlib import Path; from paper_assets.locks import store_lock\n"
        "with store_lock(Path(sys.argv[1]), deadline=5): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(index.place)], stdout=subprocess.PIPE) as other:
        assert other.stdout and other.stdout.readline()
        start = time.monotonic()
        assert reason(index, warehouse) == "the Chroma folder is in use by another process"
        assert time.monotonic() - start < 5, "it does not wait"
        other.kill()
    assert reason(index, warehouse) is None


def test_a_killed_reader_leaves_a_mark(warehouse: Warehouse, index: VectorIndex) -> None:
    """A damaged folder can crash the process that opens it: that happens once."""
    store(warehouse, [passage(f"p{number}") for number in range(250)])
    fill(index, warehouse)
    assert isinstance(index.place, Path)
    for pattern in ("data_level0.bin", "link_lists.bin"):
        [file] = index.place.rglob(pattern)
        file.write_bytes(b"\xa7" * file.stat().st_size)
    script = (
        "import sys; from pathlib import Path; from tests.stores.test_vectors import *\n"
        "print(reason(VectorIndex(Path(sys.argv[1]), deadline=1), Warehouse(Path(sys.argv[2]), deadline=5)))"
    )
    command = [sys.executable, "-c", script, str(index.place), str(warehouse.path)]
    first = subprocess.run(command, capture_output=True, text=True)
    assert first.returncode < 0 or "Chroma" in first.stdout, "it crashes or reports the damage"
    assert reason(index, warehouse) is not None


def test_the_self_check_names_what_is_missing_or_different_and_forgives_twins(
    warehouse: Warehouse, index: VectorIndex
) -> None:
    store(warehouse, [passage("a"), passage("twin", "text of a"), passage("b")])
    fill(index, warehouse)
    vectors = np.array([vector_of("text of a"), vector_of("text of a"), vector_of("text of b"), vector_of("x")])
    assert self_check(index, "fulltext", ["a", "twin", "b"], vectors[:3]) == []
    assert self_check(index, "fulltext", ["a", "b", "gone"], vectors[1:]) == ["gone"]
    assert self_check(index, "fulltext", ["b"], vectors[3:]) == ["b"]
    mark_for_rebuild(index)
    assert fill(index, warehouse).rebuilt


def test_one_thread_cannot_take_the_lock_twice_and_a_name_is_checked(warehouse: Warehouse, index: VectorIndex) -> None:
    store(warehouse, [passage("a")])
    assert isinstance(index.place, Path)
    with store_lock(index.place, deadline=1), pytest.raises(RuntimeError, match="never nested"):
        fill(index, warehouse)
    with pytest.raises(InvalidInput, match="cannot name a collection"):
        update(index, warehouse, ["a/b"], model=MODEL)


def test_a_server_holds_what_a_folder_holds(warehouse: Warehouse, tmp_path: Path) -> None:
    store(warehouse, [passage(f"p{number}") for number in range(30)])
    with chroma_server(tmp_path) as address:
        index = VectorIndex(address, deadline=10)
        assert reason(index, warehouse) == "the Chroma folder is not filled yet"
        assert fill(index, warehouse).upserted == 30
        assert reason(index, warehouse) is None
        store(warehouse, [passage(f"p{number}") for number in range(1, 31)])
        report = fill(index, warehouse)
        assert (report.upserted, report.removed, report.rebuilt) == (1, 1, None)
        assert set(entries(address, "fulltext")) == {f"p{number}" for number in range(1, 31)}
        drop(index, "fulltext")
        assert reason(index, warehouse) is not None
        report = fill(index, warehouse)
        assert report.upserted == 30 and report.rebuilt
        mark_for_rebuild(index)
        assert fill(index, warehouse).upserted == 30
    assert reason(index, warehouse) is not None, "a server that is gone is a reason too"


def test_no_server_is_one_clear_line(warehouse: Warehouse) -> None:
    store(warehouse, [passage("a")])
    with refusing_port() as port, pytest.raises(StoreError, match="no Chroma server answers at") as raised:
        fill(VectorIndex(f"http://127.0.0.1:{port}", deadline=1), warehouse)
    assert "\n" not in str(raised.value)
    with suppress(StoreError):
        drop(VectorIndex(f"http://127.0.0.1:{port}", deadline=1), "fulltext")
