"""Test that a store has one named holder at a time, and that a process is not confused with another."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from filelock import FileLock

from paper_assets.errors import StoreBusy, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.processes import command_of, is_gone, parse_process, this_process

HOLD = """
import sys
from pathlib import Path
from paper_assets.locks import store_lock
with store_lock(Path(sys.argv[1]), deadline=5):
    print("held", flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holder(store: Path) -> Iterator["subprocess.Popen[str]"]:
    """Another process that holds the store."""
    command = [sys.executable, "-c", HOLD, str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def dead_pid() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


def test_a_held_store_is_refused_and_its_holder_named(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with holder(store) as process:
        with (
            pytest.raises(StoreBusy, match=rf"pid {process.pid} \(.*python") as refused,
            store_lock(store, deadline=0.1),
        ):
            pass
        assert "try again" in str(refused.value)
        assert "\n" not in str(refused.value)


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with holder(store) as process:
        process.kill()
        process.wait()
        with store_lock(store, deadline=5):
            holder_named = json.loads((tmp_path / "store.lock").read_text(encoding="utf-8"))
            assert holder_named["pid"] == os.getpid()


def test_the_note_of_a_dead_holder_is_not_believed(tmp_path: Path) -> None:
    store, dead = tmp_path / "store", dead_pid()
    (tmp_path / "store.lock").write_text(f"{replace(this_process(), pid=dead)}", encoding="utf-8")
    with FileLock(tmp_path / "store.lock"), pytest.raises(StoreBusy) as refused, store_lock(store, deadline=0.1):
        pass
    assert str(dead) not in str(refused.value)
    assert "another process" in str(refused.value)


@pytest.mark.parametrize("note", ["", "{", "[]", '{"pid": "x", "command": 1}', "\x00"])
def test_an_unreadable_note_does_no_harm(tmp_path: Path, note: str) -> None:
    (tmp_path / "store.lock").write_text(note, encoding="utf-8")
    with (
        FileLock(tmp_path / "store.lock"),
        pytest.raises(StoreBusy, match="another process"),
        store_lock(tmp_path / "store", deadline=0.1),
    ):
        pass


def test_a_lock_within_itself_is_a_clear_mistake_not_a_wait(tmp_path: Path) -> None:
    store = tmp_path / "store"
    with store_lock(store, deadline=60):
        with pytest.raises(RuntimeError, match="never nested"), store_lock(tmp_path / "." / "store", deadline=60):
            pass
        with store_lock(tmp_path / "other", deadline=1):  # another store does not count as nesting
            pass
    with store_lock(store, deadline=1):
        pass


def test_another_thread_waits_its_turn(tmp_path: Path) -> None:
    store = tmp_path / "store"
    outcomes: list[str] = []

    def refused() -> None:
        try:
            with store_lock(store, deadline=0.1):
                outcomes.append("in")
        except StoreBusy as busy:
            outcomes.append(str(busy))

    with store_lock(store, deadline=1):
        thread = threading.Thread(target=refused)
        thread.start()
        thread.join()
    assert "another thread of this process" in outcomes[0]
    refused()
    assert outcomes[1] == "in"


def test_the_lock_is_free_after_an_error_inside(tmp_path: Path) -> None:
    with pytest.raises(KeyError), store_lock(tmp_path / "store", deadline=1):
        raise KeyError
    with store_lock(tmp_path / "store", deadline=1):
        pass


def test_a_lock_that_cannot_be_made_says_where(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    with pytest.raises(StoreUnwritable, match="file/store"), store_lock(tmp_path / "file" / "store", deadline=1):
        pass


# Processes


def test_this_process_is_not_gone_and_its_name_can_be_read_back() -> None:
    here = this_process()
    assert not is_gone(here)
    assert parse_process(str(here)) == here


def test_a_process_that_was_killed_is_gone_before_anybody_waits_for_it() -> None:
    tell = "from paper_assets.processes import this_process as t; print(t(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", tell], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as it:
        assert it.stdout
        named = parse_process(it.stdout.readline())
        assert named and named.pid == it.pid
        assert not is_gone(named)
        assert "from paper_assets.processes" in command_of(it.pid)
        it.kill()
        it.wait()
        assert is_gone(named)


def test_another_process_with_the_same_number_is_not_taken_for_it() -> None:
    here = this_process()
    assert is_gone(replace(here, started="1"))
    assert is_gone(replace(here, boot="of the boot before"))
    assert is_gone(replace(here, space="of a container that was started again"))


def test_a_process_of_another_machine_is_of_unknown_state() -> None:
    assert not is_gone(replace(this_process(), host="elsewhere.example", boot="other", pid=1))


@pytest.mark.parametrize("text", [None, "", "4711", "{}", '{"pid": "x"}', "[1]"])
def test_a_text_that_names_no_process_is_not_one(text: str | None) -> None:
    assert parse_process(text) is None
