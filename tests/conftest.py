"""Fixtures that every room uses: the recorded real data where it lies beside the checkout."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A slow machine is no failure of the code; nothing is kept between runs.
settings.register_profile("here", deadline=None, database=None)
settings.load_profile("here")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the recorded real data; a test that asks for it is skipped where it is absent."""
    folder = Path(os.environ.get("PAPER_ASSETS_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the recorded real data does not lie beside this checkout")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium with the network shut, one for a module: while it is there, no other test of the process can have an
    event loop of its own.
    """
    from playwright.sync_api import expect, sync_playwright  # only tests of the page pay for it

    from tests.page.browser import PATIENCE, chromium

    program = chromium()
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        shut = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", shut])
        yield opened
        opened.close()
