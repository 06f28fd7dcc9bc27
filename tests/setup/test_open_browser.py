"""Test that `start` and `desk` open the browser at a terminal, and not with --no-browser or into a pipe."""

import sys
from collections.abc import Callable

import pytest

from paper_assets.interfaces.cli import servers
from paper_assets.interfaces.cli.app import app
from paper_assets.interfaces.page import app as page_app

ADDRESS = "http://127.0.0.1:8787/"


class TimerWithoutDelay:
    """Call the function when the timer is started."""

    def __init__(self, delay: float, call: Callable[..., object], arguments: list[str]) -> None:
        self.start = lambda: call(*arguments)


@pytest.mark.parametrize("command", ["start", "desk", "review"])
@pytest.mark.parametrize(
    ("options", "terminal", "opened"),
    [([], True, [ADDRESS]), (["--no-browser"], True, []), ([], False, [])],
)
def test_the_browser_opens_at_a_terminal_unless_it_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch, command: str, options: list[str], terminal: bool, opened: list[str]
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(page_app, "serve", lambda *_, port, say: say(f"The desk is at {ADDRESS}"))
    monkeypatch.setattr(servers.webbrowser, "open", seen.append)
    monkeypatch.setattr(servers.threading, "Timer", TimerWithoutDelay)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal, raising=False)
    app([command, *options], standalone_mode=False)
    assert seen == opened
