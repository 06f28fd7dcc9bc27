"""Test the files for systemd, launchd and GitHub with the readers of these programs."""

import plistlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from paper_assets.setup.service_files import (
    github_workflow,
    launchd_agent,
    launchd_path,
    systemd_path,
    systemd_unit,
)
from tests.desk import Desk

ENVIRONMENT = {"PAPER_ASSETS_HOME": '/tmp/a "b" 100%/c$d', "DAGSTER_HOME": "/tmp/x"}


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    file = tmp_path / "paper-assets.service"
    file.write_text(systemd_unit([sys.executable, "up"], ENVIRONMENT, folder=tmp_path), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={"XDG_RUNTIME_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    warnings = [line for line in done.stderr.splitlines() if file.name in line]
    assert warnings == []
    assert 'Environment="PAPER_ASSETS_HOME=/tmp/a \\"b\\" 100%%/c$d"' in file.read_text("utf-8")


def test_launchd_reads_the_agent_as_it_was_meant(tmp_path: Path) -> None:
    agent: dict[str, Any] = plistlib.loads(
        launchd_agent(["/bin/paper-assets", "up"], ENVIRONMENT, folder=tmp_path, log=tmp_path / "log")
    )
    assert agent["ProgramArguments"] == ["/bin/paper-assets", "up"]
    assert agent["EnvironmentVariables"] == ENVIRONMENT
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert launchd_path(tmp_path).name == f"{agent['Label']}.plist"


def test_the_unit_is_where_systemd_looks_for_it() -> None:
    assert systemd_path(Path("/home/ada")) == Path("/home/ada/.config/systemd/user/paper-assets.service")
    assert systemd_path(Path("/home/ada"), "/cfg") == Path("/cfg/systemd/user/paper-assets.service")


def test_the_workflow_keeps_the_desk_between_runs_and_calls_commands_that_exist() -> None:
    workflow = yaml.safe_load(github_workflow(package="paper-assets==1.0", minute=30, hour=5, weekdays="1-5", days=3))
    assert workflow[True]["schedule"] == [{"cron": "30 5 * * 1-5"}]  # YAML reads `on` as true
    steps = workflow["jobs"]["digest"]["steps"]
    used = [step.get("uses", "") for step in steps]
    assert used.index("actions/cache/restore@v4") < used.index("actions/cache/save@v4")
    home = workflow["jobs"]["digest"]["env"]["PAPER_ASSETS_HOME"].removeprefix("${{ github.workspace }}/")
    assert home.removeprefix("${{ github.workspace }}/").startswith(
        steps[used.index("actions/cache/save@v4")]["with"]["path"]
    )
    assert any("paper-assets start --days 3" in step.get("run", "") for step in steps)


def test_the_published_pages_begin_with_an_index_of_the_digests_newest_first(tmp_path: Path) -> None:
    workflow = yaml.safe_load(github_workflow(package="paper-assets", minute=30, hour=5, weekdays="*", days=3))
    [collect] = [step["run"] for step in workflow["jobs"]["digest"]["steps"] if step.get("name") == "Collect the pages"]
    (tmp_path / "profiles" / "frogs").mkdir(parents=True)
    (tmp_path / "profiles" / "new").mkdir()  # without a digest so far
    digests = tmp_path / "desk" / "home" / "output" / "digests" / "frogs"
    digests.mkdir(parents=True)
    for name in ("2026-03-02.html", "2026-03-03.html", "2026-03-03.md", ".writing.lock"):
        (digests / name).touch()
    subprocess.run(["bash", "-e", "-c", collect], cwd=tmp_path, check=True)
    index = (tmp_path / "site" / "index.html").read_text("utf-8")
    assert re.findall("href='(.*?)'", index) == ["frogs/2026-03-03.html", "frogs/2026-03-02.html"]
    assert "<h1>new</h1>" in index
    assert not (tmp_path / "site" / "frogs" / ".writing.lock").exists()


def test_the_service_is_installed_shown_and_removed(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    where = {"XDG_CONFIG_HOME": str(tmp_path / "cfg"), "PATH": "/nowhere", "PAPER_ASSETS_SMTP_PASSWORD": "hidden"}
    file = systemd_path(tmp_path, str(tmp_path / "cfg"))
    assert f"wrote {file}" in desk.run("service", "install", **where)
    assert "hidden" not in file.read_text("utf-8")
    assert str(tmp_path / "data") in file.read_text("utf-8")
    assert f"removed {file}" in desk.run("service", "remove", **where)
    assert not file.exists()
    assert "nothing to remove" in desk.run("service", "remove", **where)


def test_the_workflow_is_written_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run("service", "github-actions")
    assert 'cron: "30 1 * * ' in (tmp_path / ".github/workflows/paper-assets.yml").read_text("utf-8")
    assert "--replace overwrites it" in desk.refused("service", "github-actions")
