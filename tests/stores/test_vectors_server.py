"""Test the index on a Chroma server: a URL instead of a folder."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from paper_assets.errors import IndexUnusable, StoreError
from paper_assets.stores.vectors import VectorIndex, count, drop, fetch, mark_for_rebuild, self_check
from tests.invented_vectors import COLLECTION, all_ids, found, ids_of, put, vectors_of
from tests.loopback import free_port, listens, refusing_port
from tests.waiting import until


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real Chroma server on loopback."""
    chroma, port = Path(sys.executable).with_name("chroma"), free_port()
    folder = tmp_path_factory.mktemp("server")
    command = [str(chroma), "run", "--path", str(folder), "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: listens(port) or process.poll() is not None)
            assert process.poll() is None, "the Chroma server did not start"
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def test_a_server_holds_what_a_folder_holds(address: str) -> None:
    index = VectorIndex(address, deadline=10)
    with pytest.raises(IndexUnusable, match="materialize"):
        count(index, COLLECTION)
    truth = {"one": ids_of("a", 30), "two": ids_of("b", 20)}
    assert put(index, truth, "one").upserted == 50
    asked: list[str] = []
    assert put(index, truth, before=asked.append).rebuilt is None
    assert asked == []
    truth["two"] = [*truth["two"][2:], "new"]
    report = put(index, truth)
    assert (report.upserted, report.removed, report.rebuilt) == (1, 2, None)
    assert found(index, all_ids(truth)) == all_ids(truth)
    assert self_check(index, COLLECTION, all_ids(truth), vectors_of(all_ids(truth))) == []
    assert fetch(index, COLLECTION, ["new", "gone"]).ids == ["new"]
    assert put(index, truth, "one", model="another").upserted == 49
    mark_for_rebuild(index, COLLECTION)
    assert put(index, truth, "one").upserted == 49
    drop(index, COLLECTION)
    drop(index, COLLECTION)
    with pytest.raises(IndexUnusable):
        count(index, COLLECTION)


def test_no_server_is_one_clear_line() -> None:
    refused = pytest.raises(StoreError, match=r"no Chroma server answers at http://127\.0\.0\.1")
    with refusing_port() as port, refused as raised:
        count(VectorIndex(f"http://127.0.0.1:{port}", deadline=1), COLLECTION)
    assert "\n" not in str(raised.value)
