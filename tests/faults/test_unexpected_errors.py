"""A bug ends in one line with the place of its traceback, and other profiles are still reported."""

import json
import os
import sys
from pathlib import Path

import pytest

from paper_assets.interfaces.cli.app import main
from paper_assets.pipeline import staleness
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
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


def test_status_reports_a_profile_that_cannot_be_compared_as_out_of_date_and_the_others_as_they_are(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def state_of(profile: str) -> str:
        assert called(monkeypatch, "status", "--json") == 0
        found: str = json.loads(capsys.readouterr().out)["current"][profile]
        return found

    usable, before = staleness.usable_profile, state_of("speech")

    def broken(workspace: Workspace, name: str) -> Profile:
        if name == "traffic":
            raise IndexError("list index out of range")
        return usable(workspace, name)

    monkeypatch.setattr(staleness, "usable_profile", broken)
    assert "gatekeeper" in state_of("traffic") and state_of("speech") == before


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
