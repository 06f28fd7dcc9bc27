"""Test Tab completion, and what the program says without a command."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.desk import COMMAND
from tests.in_process import run_command


def program(folder: Path, *arguments: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*COMMAND, *arguments], cwd=folder, env={**os.environ, **environ}, capture_output=True, text=True, check=False
    )


def test_without_a_command_it_points_a_newcomer_at_start(tmp_path: Path) -> None:
    output = program(tmp_path)
    assert "`paper-assets start` opens the desk" in output.stdout
    assert "Find and ask:" in output.stdout


@pytest.mark.parametrize(
    ("typed", "hint"), [("toady", "did you mean today"), ("bibtex", "did you mean cite"), ("zzz", "--help` lists them")]
)
def test_an_unknown_command_is_answered_with_the_one_that_was_meant(
    typed: str, hint: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, err, code = run_command(typed, monkeypatch=monkeypatch, capsys=capsys)
    assert code == 2 and f"there is no command '{typed}'" in err and hint in err


@pytest.mark.skipif(not shutil.which("bash"), reason="no bash on this machine")
@pytest.mark.parametrize(
    ("words", "expected"),
    [("pro", ["profile"]), ("profile re", ["read", "remove", "restore"]), ("start --d", ["--days"])],
)
def test_bash_completes_commands_and_options(tmp_path: Path, words: str, expected: list[str]) -> None:
    """Source the script in a real bash and complete a line, as Tab does."""
    start = tmp_path / "paper-assets"
    start.write_text(f"#!{sys.executable}\n{COMMAND[2]}\n", encoding="utf-8")
    start.chmod(0o755)
    typed = ["paper-assets", *words.split(" ")]
    line = " ".join(f"'{word}'" for word in typed)
    script = (
        f'eval "$(paper-assets --show-completion)"; COMP_WORDS=({line}); COMP_CWORD={len(typed) - 1}; '
        '_paper_assets_completion paper-assets; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    output = subprocess.run(
        ["bash", "--norc", "-c", script], env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True
    )
    assert sorted(output.stdout.split()) == expected
