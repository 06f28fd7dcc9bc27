"""A bug ends in one line with the place of its traceback, and other profiles are still reported."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paper_assets.interfaces.cli.app import main
from paper_assets.pipeline import staleness
from paper_assets.pipeline.step import Partition
from tests.desk import Desk
from tests.mcp.ranked_desk import ranked_desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    desk = ranked_desk(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    return desk


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Call the command in this process; return its exit code."""
    monkeypatch.setattr(sys, "argv", ["paper-assets", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_status_names_the_profile_that_cannot_be_checked_and_shows_the_others(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(workspace: Any, partitions: Sequence[Partition]) -> dict[Partition, tuple[str, ...]]:
        if any(each.profile == "traffic" for each in partitions):
            raise IndexError("list index out of range")
        return dict.fromkeys(partitions, ("reading_digests",))

    monkeypatch.setattr(staleness, "late_assets", broken)
    assert called(monkeypatch, "status", "--json") == 0
    current = json.loads(capsys.readouterr().out)["current"]
    assert current["traffic"].startswith(
        "checking the newest list of traffic failed unexpectedly: IndexError: list index out of range at test_"
    )
    assert current["speech"].startswith("out of date: reading_digests")
    log = (desk.folder / "data" / "errors.log").read_text("utf-8")
    assert "Traceback" in log and "IndexError" in log


def test_a_bug_in_a_command_is_one_line_and_its_traceback_is_in_the_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError(f"key {os.environ['OPENAI_API_KEY']}\nand more")

    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef0123")
    monkeypatch.setattr("paper_assets.interfaces.cli.ranking.explanation", broken)
    assert called(monkeypatch, "explain", "traffic", "2603.00201") == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("error: the command failed unexpectedly: RuntimeError: key ")
    assert line.endswith(f"the traceback is in {desk.folder / 'data' / 'errors.log'}")
    log = (desk.folder / "data" / "errors.log").read_text("utf-8")
    assert "explain traffic" in log
    assert "sk-0123456789abcdef0123" not in line + log
