"""Test that a process is identified without confusion with another one."""

import subprocess
import sys
from dataclasses import replace

import pytest

from paper_assets.stores.locks import command_of, is_gone, parse_process, this_process


def test_this_process_is_not_gone_and_its_name_can_be_read_back() -> None:
    here = this_process()
    assert not is_gone(here)
    assert parse_process(str(here)) == here


def test_a_process_that_was_killed_is_gone_before_anybody_waits_for_it() -> None:
    tell = "from paper_assets.stores.locks import this_process as t; print(t(), flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", tell], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True) as it:
        assert it.stdout
        named = parse_process(it.stdout.readline())
        assert named and named.pid == it.pid
        assert not is_gone(named)
        assert "from paper_assets.stores" in command_of(it.pid)
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
