"""After a writer is killed in the middle of any write, the warehouse opens with the old day or the new one."""

import ctypes
import os
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from paper_assets.small_files import UNFINISHED
from paper_assets.stores.checkpoint import backup_path
from paper_assets.stores.paper_merging import replace_day
from paper_assets.stores.warehouse import Warehouse
from tests.faults.storm.victims import compiled_killer
from tests.invented_papers import MONDAY, listing, papers_of, process, stored

OLD, NEW = papers_of(MONDAY, 40, title="Old"), papers_of(MONDAY, 40, title="New")


@pytest.fixture
def killer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    library = compiled_killer(tmp_path)
    if library is None:
        pytest.skip("no C compiler")
    monkeypatch.setenv("LD_PRELOAD", str(library))
    yield


def write_and_die(answers: Connection, warehouse: Warehouse) -> None:
    """Write the new day in forks, each killed at a given write; return whether it was."""
    while True:
        at = answers.recv()
        child = os.fork()
        if child == 0:
            ctypes.CDLL(None).storm_arm(str(warehouse.path.parent).encode(), ctypes.c_long(at))
            replace_day(warehouse, MONDAY, NEW)
            os._exit(0)
        answers.send(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


@pytest.mark.usefixtures("killer")
def test_a_writer_killed_at_any_of_its_writes_leaves_a_warehouse_that_opens(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "home" / "w.duckdb", deadline=60)
    mended = kept = 0
    with process(write_and_die, warehouse) as (_, answers):
        for at in range(1, 100):
            replace_day(warehouse, MONDAY, OLD)
            assert not backup_path(warehouse.path).exists()
            answers.send(at)
            code = answers.recv()
            mended += backup_path(warehouse.path).exists()
            found = {each.title for each in stored(warehouse).values()}
            assert found in ({"Old"}, {"New"}), f"killed at write {at}"
            assert not list(warehouse.path.parent.glob(f"{UNFINISHED}*")), f"left over by a kill at write {at}"
            kept += found == {"New"}
            if code == 0:
                break
    assert code == 0, "the writer never came to its end"
    assert listing(warehouse.path.parent) == {warehouse.path.name}
    assert mended >= 3, "no checkpoint was killed"
    assert kept >= 3, "nothing was kept by a commit whose checkpoint was killed"
