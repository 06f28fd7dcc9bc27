"""Random invalid input with a fixed seed, and cases that once caused hangs, tracebacks or failures."""

import json
import os
import resource
import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paper_assets.defs.instance import open_instance
from paper_assets.errors import PaperAssetsError, StoreUnwritable
from paper_assets.interfaces.cli.app import app
from tests.desk import COMMAND, GRAPHS, PATIENCE, Desk, imported_desk, paper, week
from tests.faults.storm import inputs
from tests.faults.storm.entry_points import ENTRY_POINTS

DAYS = ("2026-03-02", "2026-03-03")
NAME = "warehouse.duckdb"


@pytest.mark.parametrize(
    ("entry_points", "size"),
    [
        (tuple(name for name, (_, share) in ENTRY_POINTS.items() if share >= 4 and name != "MCP arguments"), 250),
        (("MCP arguments",), 25),
        (("warehouse", "Chroma folder", "PDF"), 12),
    ],
    ids=["files and answers", "MCP", "stores and PDFs"],
)
def test_only_our_own_errors_come_back_in_one_line(tmp_path: Path, entry_points: tuple[str, ...], size: int) -> None:
    counts = inputs.run(seed=20260313, size=size, folder=tmp_path, entry_points=entry_points)
    assert counts.findings == ()
    assert counts.held


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk with two imported days and two profiles, ranked for the newest day."""
    desk = imported_desk(tmp_path_factory.mktemp("desk"), DAYS)
    desk.run("run")
    return desk


@pytest.fixture
def desk(whole: Desk, tmp_path: Path) -> Desk:
    shutil.copytree(whole.folder, tmp_path / "desk")
    return Desk(tmp_path / "desk")


def test_bad_profiles_of_every_kind_stop_neither_status_nor_run_nor_the_good_ones(desk: Desk) -> None:
    folder = desk.folder / "profiles"
    desk.profile("digits", '{"constraints": {"min_year": %s}}' % ("7" * 5_000))
    desk.profile("deep", "[" * 100_000)
    desk.profile("endless", "")
    (folder / "endless" / "profile.json").unlink()
    (folder / "endless" / "profile.json").symlink_to("/dev/zero")
    for name, file in (("pipe", "profile.json"), ("asks", "questions.json"), ("has-read", "read_papers.json")):
        desk.profile(name, GRAPHS)
        (folder / name / file).unlink(missing_ok=True)
        os.mkfifo(folder / name / file)
    (folder / "gone").symlink_to(folder / "nothing")
    (folder / "circle").symlink_to("circle")
    (folder / "linked").symlink_to(folder / "graphs")
    states = json.loads(desk.run("status", "--json"))["profiles"]
    good = {name for name, state in states.items() if state == "good"}
    assert good == {"graphs", "speech", "linked"}
    assert set(states) - good == {"digits", "deep", "endless", "pipe", "asks", "has-read", "gone", "circle"}
    assert all(name in line for name, line in states.items() if name not in good)
    shown = json.loads(desk.run("run", "--json"))
    assert {each["profile"] for each in shown} == good


def test_a_paper_of_an_impossible_day_stops_no_list_and_a_day_to_come_is_not_ranked(tmp_path: Path) -> None:
    """Once `run` failed for ever after one such record, and the empty list of a mistyped year was the newest one."""
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    days = ("2026-03-02", "9999-12-31", "2126-03-02", "0001-01-01")
    records = [
        paper(900 + at, day, f"traffic forecasting on road networks in the year {day[:4]}", title=f"Of {day}")
        for at, day in enumerate(days)
    ]
    file = str(desk.papers("papers.jsonl", [*week(["2026-03-02"]), *records]))
    process = desk.start("import", file)
    _, err = process.communicate(timeout=PATIENCE)
    assert "2 stored papers are dated after today, up to 9999-12-31" in err
    [shown] = json.loads(desk.run("run", "--json"))
    assert shown["day"] == "2026-03-02" and "2603.00900" in {each["paper_id"] for each in shown["papers"]}
    line = desk.refused("run", "--as-of", "2126-03-02")
    assert "2126-03-02" in line and "today" in line
    state = json.loads(desk.run("status", "--json"))
    assert state["last_ranking"] == {"graphs": "2026-03-02"} and state["current"] == {"graphs": "current"}
    assert sum(state["vectors"].values()) == state["papers"], "search finds those papers by meaning too"
    assert "Of 2126-03-02" in desk.run("find", "traffic forecasting", "from:2126")


@pytest.mark.parametrize(
    "command",
    [
        ("rank", "papers.json", "--profile-path", "n" * 300),
        ("rank", "papers.json", "--history-path", "n" * 300),
        ("rank", "papers.json", "--local-pdf-dir", "n" * 300),
        ("rank", "papers.json", "--profile-path", "pipes"),
        ("rank", "pipe"),
        ("rank", "n" * 300),
        ("retrieve", "pipe"),
        ("import", "/dev/zero"),
        ("explain", "n" * 300, "n" * 300),
    ],
    ids=lambda command: " ".join(command)[:40],
)
def test_a_name_that_no_file_has_or_a_pipe_is_refused_in_a_line(
    whole: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    (tmp_path / "pipes").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipes" / "profile.json")
    (tmp_path / "papers.json").write_text("[]", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    refused(whole, monkeypatch, *command)


def refused(desk: Desk, monkeypatch: pytest.MonkeyPatch, *command: str) -> str:
    """Run a command in this process; return the one line in which it must end."""
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    outcome = CliRunner().invoke(app, command)
    assert isinstance(outcome.exception, PaperAssetsError), outcome
    return str(outcome.exception)


def _foreign(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as database:
        database.execute("create table meta (schema_version integer)")


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _lead_nowhere(file: Path) -> None:
    file.unlink()
    file.symlink_to("gone")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda file: os.truncate(file, file.stat().st_size // 2), "cannot be used"),
        (lambda file: os.truncate(file, 0), "cannot be used"),
        (lambda file: file.write_bytes(b"a letter\n" * 3_000), "cannot be used"),
        (_foreign, "cannot be used"),
        (_pipe, "is not a file"),
        (_lead_nowhere, "is a broken link"),
    ],
    ids=["half of it", "empty", "a letter", "SQLite's", "a pipe", "a dangling link"],
)
def test_a_damaged_or_foreign_warehouse_is_named_and_left_as_it_is(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Path], None], message: str
) -> None:
    file = desk.folder / "data" / NAME
    damage(file)
    before = file.read_bytes() if file.is_file() else None
    line = refused(desk, monkeypatch, "status")
    assert str(file) in line and message in line and "download" not in line
    assert before is None or file.read_bytes() == before


@pytest.mark.skipif(
    os.geteuid() == 0 and shutil.which("setpriv") is None, reason="the administrator may read every folder"
)
def test_the_data_folder_of_another_user_is_named_and_no_file_in_it_is_called_broken(desk: Desk) -> None:
    folder = desk.folder / "data"
    mode = folder.stat().st_mode
    folder.chmod(0)
    prefix = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
    try:
        results = {
            command: subprocess.run(
                [*prefix, *COMMAND, *command.split()],
                cwd=desk.folder,
                env={**os.environ, **desk.environment},
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            for command in ("status", "doctor --offline")
        }
    finally:
        folder.chmod(mode)
    file = folder / NAME
    assert results["status"].stderr == (
        f"error: {file} cannot be used: Permission denied; check permissions or set PAPER_ASSETS_HOME\n"
    )
    assert (
        f"problem: database: {file}: Permission denied\n  fix: check permissions" in results["doctor --offline"].stdout
    )


def test_a_deleted_warehouse_counts_as_empty_and_an_import_restores_it(desk: Desk) -> None:
    (desk.folder / "data" / NAME).unlink()
    assert json.loads(desk.run("status", "--json"))["papers"] == 0
    desk.run("import", str(desk.folder / "papers.jsonl"))
    assert json.loads(desk.run("status", "--json"))["papers"] == 12


def test_a_full_disk_is_reported_in_one_line_and_with_free_space_the_same_command_finishes(desk: Desk) -> None:
    started = desk.start("run", "--as-of", DAYS[0])
    # Before Python imports our code: limit the size of files, as on a full disk.
    resource.prlimit(started.pid, resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
    _, errors = started.communicate(timeout=600)
    assert started.returncode != 0
    lines = [line for line in errors.splitlines() if line.strip()]
    assert lines and all(line.startswith("error: ") for line in lines), errors
    undisturbed = json.loads(desk.run("run", "--as-of", DAYS[0], "--json"))
    assert [len(each["papers"]) for each in undisturbed] == [2, 2]
    assert all(Path(each["file"]).exists() and Path(each["digest"]).exists() for each in undisturbed)


def test_damaged_files_of_dagsters_are_a_line_each(desk: Desk) -> None:
    home = desk.folder / "dagster_home"
    settings = (home / "dagster.yaml").read_text(encoding="utf-8")
    (home / "dagster.yaml").write_text("telemetry: {enabled: [", encoding="utf-8")
    assert f"{home}/dagster.yaml cannot be used" in desk.refused("run", "--since", DAYS[0])
    (home / "dagster.yaml").write_text(settings, encoding="utf-8")
    for database in (home / "history").rglob("*.db"):
        database.write_bytes(b"a letter" * 1_000)
    assert f"{home}/history/runs.db is damaged" in desk.refused("run", "--since", DAYS[0])


def test_a_history_that_cannot_be_made_is_named_and_the_settings_are_not_blamed(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("", encoding="utf-8")
    with pytest.raises(StoreUnwritable, match=rf"^{tmp_path}/history.* cannot be used: .*; check permissions"):
        open_instance(tmp_path)


def test_a_typo_in_the_only_profile_is_named_with_its_file_by_run_and_status(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    file = desk.profile("graphs", '{"interests": {"primary": ["graphs"]},}')
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS[:1]))))
    for command in ("run", "run --profile graphs"):
        assert f"{file}: not valid JSON at line 1" in desk.refused(*command.split())
    assert "not valid JSON at line 1" in json.loads(desk.run("status", "--json"))["profiles"]["graphs"]
