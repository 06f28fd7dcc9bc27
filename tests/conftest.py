"""Provide fixtures for all tests: the recorded real data beside the checkout, and a browser."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A slow machine must not fail a test; nothing is kept between runs.
settings.register_profile("here", deadline=None, database=None)
settings.load_profile("here")

# Commands started under nohup ignore SIGHUP; the tests expect commands of a terminal.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of the recorded real data; skip the test if there is none."""
    folder = Path(os.environ.get("PAPER_ASSETS_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the recorded real data does not lie beside this checkout")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Start Chromium without network, once per module: while it runs, no other test of the process can have its
    event loop.
    """
    from playwright.sync_api import expect, sync_playwright  # only tests of the page need it

    from tests.page.browser import PATIENCE, chromium

    program = chromium()
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        shut = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", shut])
        yield opened
        opened.close()
