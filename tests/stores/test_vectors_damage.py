"""Test that an untrusted index is rebuilt without being opened."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from paper_assets.errors import IndexUnusable, StoreUnwritable
from paper_assets.stores.vectors import VectorIndex, count
from tests.invented_vectors import COLLECTION, all_ids, found, ids_of, put, query, vectors_of

TRUTH = {"one": ids_of("a", 30), "two": ids_of("b", 20)}


@pytest.fixture
def index(tmp_path: Path) -> VectorIndex:
    return VectorIndex(tmp_path / "chroma", deadline=10)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an index that holds TRUTH; not to be touched."""
    place = tmp_path_factory.mktemp("sound")
    put(VectorIndex(place, deadline=10), TRUTH)
    return place / COLLECTION


@pytest.fixture
def store(index: VectorIndex, sound: Path) -> Path:
    """A copy of it, where `index` looks."""
    assert isinstance(index.place, Path)
    return shutil.copytree(sound, index.place / COLLECTION)


def copy_in_use(store: Path) -> Path:
    return store / (store / "CURRENT").read_text(encoding="utf-8")


def database(store: Path) -> Path:
    return copy_in_use(store) / "database" / "chroma.sqlite3"


def garble(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def change_manifest(store: Path, **changes: object) -> None:
    manifest = copy_in_use(store) / "manifest.json"
    stored = json.loads(manifest.read_text(encoding="utf-8"))
    manifest.write_text(json.dumps({**stored, **changes}), encoding="utf-8")


def foreign(store: Path) -> None:
    shutil.rmtree(store)
    store.mkdir()
    (store / "chroma.sqlite3").write_text("another program's", encoding="utf-8")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "left open": lambda store: (copy_in_use(store) / "OPEN").touch(),
    "CURRENT gone": lambda store: (store / "CURRENT").unlink(),
    "CURRENT empty": lambda store: (store / "CURRENT").write_text("", encoding="utf-8"),
    "CURRENT garbled": lambda store: garble(store / "CURRENT"),
    "CURRENT names what is not there": lambda store: (store / "CURRENT").write_text("index-00", encoding="utf-8"),
    "CURRENT points outside": lambda store: (store / "CURRENT").write_text("../../etc", encoding="utf-8"),
    "copy gone": lambda store: shutil.rmtree(copy_in_use(store)),
    "copy empty": lambda store: [shutil.rmtree(copy_in_use(store)), copy_in_use(store).mkdir()],
    "manifest gone": lambda store: (copy_in_use(store) / "manifest.json").unlink(),
    "manifest garbled": lambda store: garble(copy_in_use(store) / "manifest.json"),
    "manifest cut": lambda store: (copy_in_use(store) / "manifest.json").write_text('{"format": 1, "mod'),
    "manifest no object": lambda store: (copy_in_use(store) / "manifest.json").write_text("[1]"),
    "manifest of another format": lambda store: change_manifest(store, format=99),
    "manifest with odd partitions": lambda store: change_manifest(store, partitions={"one": 5}),
    "manifest that counts wrong": lambda store: change_manifest(store, count=49, partitions={}),
    "database cut": lambda store: database(store).write_bytes(database(store).read_bytes()[:4096]),
    "database gone": lambda store: database(store).unlink(),
    "database garbled": lambda store: [garble(database(store)), change_manifest(store, partitions={})],
    "an index file gone": lambda store: next(copy_in_use(store).rglob("link_lists.bin")).unlink(),
    "store gone": shutil.rmtree,
    "store foreign": foreign,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
def test_a_damaged_index_is_rebuilt_whole(index: VectorIndex, store: Path, damage: Callable[[Path], object]) -> None:
    damage(store)
    report = put(index, TRUTH, "one")
    assert report.rebuilt is not None
    assert report.upserted == 50
    assert found(index, all_ids(TRUTH)) == all_ids(TRUTH)
    assert len(list(store.glob("index-*"))) == 1


@pytest.mark.parametrize("name", ["left open", "CURRENT gone", "manifest garbled", "database cut", "store gone"])
def test_a_question_to_a_damaged_index_says_what_to_do(index: VectorIndex, store: Path, name: str) -> None:
    DAMAGES[name](store)
    with pytest.raises(IndexUnusable, match="materialize the embeddings") as raised:
        query(index, COLLECTION, vectors_of(["a"]), k=1)
    assert "\n" not in str(raised.value)


def test_a_marked_copy_is_not_opened_by_the_rebuild(index: VectorIndex, store: Path) -> None:
    def state() -> dict[str, str]:
        files = [path for path in marked.rglob("*") if path.is_file()]
        return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}

    marked = copy_in_use(store)
    (marked / "OPEN").touch()
    before = state()
    seen: list[dict[str, str]] = []
    put(index, TRUTH, before=lambda _: seen.append(state()))
    assert seen == [before, before]  # opening, even for reading, changes Chroma's files
    assert not marked.exists()


def test_what_a_reader_finds_wrong_the_next_sync_puts_right(index: VectorIndex, store: Path) -> None:
    change_manifest(store, count=49)
    with pytest.raises(IndexUnusable, match="does not hold"):
        count(index, COLLECTION)
    assert put(index, TRUTH, "one").rebuilt is not None
    assert count(index, COLLECTION) == 50


def test_reading_leaves_no_mark(index: VectorIndex, store: Path) -> None:
    assert count(index, COLLECTION) == 50
    assert not list(store.rglob("OPEN"))


def test_an_error_of_the_source_in_mid_write_is_repaired_by_the_next_sync(index: VectorIndex, store: Path) -> None:
    def fail(partition: str) -> None:
        if partition == "two":
            raise OSError("the database went away")

    changed = {"one": ["new"], "two": ["newer"]}
    with pytest.raises(OSError, match="went away"):
        put(index, changed, before=fail)
    assert put(index, changed).rebuilt is not None
    assert found(index, ["new", "newer"]) == ["new", "newer"]
    assert count(index, COLLECTION) == 2


def test_a_rebuild_that_fails_leaves_no_copy_behind(index: VectorIndex, store: Path) -> None:
    def fail(partition: str) -> None:
        if partition == "two":
            raise OSError("the database went away")

    (store / "CURRENT").unlink()
    with pytest.raises(OSError, match="went away"):
        put(index, TRUTH, before=fail)
    assert list(store.glob("index-*")) == []


def test_a_store_that_cannot_be_made_says_where(tmp_path: Path) -> None:
    (tmp_path / "chroma").mkdir()
    (tmp_path / "chroma" / COLLECTION).write_text("a file in the way", encoding="utf-8")
    with pytest.raises(StoreUnwritable, match=COLLECTION):
        put(VectorIndex(tmp_path / "chroma", deadline=1), TRUTH)
