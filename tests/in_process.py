"""Run a command in this process and read what it printed."""

import sys

import pytest

from paper_assets.interfaces.cli.app import main


def run_command(
    *arguments: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[str, str, int]:
    """Return standard output, standard error and the exit code of `paper-assets` with these arguments."""
    monkeypatch.setattr(sys, "argv", ["paper-assets", *map(str, arguments)])
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return printed.out, printed.err, code
