"""Provide fixtures for all tests: the recorded real data beside the checkout, and a browser."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A slow machine must not fail a test; nothing is kept between runs. Each run has a few examples: new ones at a desk, in
# CI the same in each run, so that chance does not refuse a change. `make nightly` generates twenty times as many.
settings.register_profile(
    "here",
    deadline=None,
    database=None,
    max_examples=10,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("here"), max_examples=200, derandomize=False, print_blob=True)
settings.load_profile("here")


def _say_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# Libraries (Hypothesis, for the garbage collector) keep references from outside Python, so that DuckDB's module is
# never freed, and nanobind reports forty "leaks" after the last line of pytest. Registered first, it is done last.
atexit.register(_say_no_more)

# Temporary files are kept in memory where there is room: Dagster's histories and DuckDB's files are flushed to the disk
# a thousand times in one run of a command. The processes of pytest-xdist and all commands inherit this.
_MEMORY = Path("/dev/shm")
if "TMPDIR" not in os.environ and os.access(_MEMORY, os.W_OK) and shutil.disk_usage(_MEMORY).free > 4 << 30:
    os.environ["TMPDIR"] = tempfile.tempdir = str(_MEMORY)

# Compiled modules are kept, also where the environment forbids it: otherwise each process compiles all of them again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# One thread of linear algebra in each process: four processes share the cores, and threads of one that wait for each
# other take eight times as much processor time. Read when NumPy is imported, by commands too.
os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

# Commands started under nohup ignore SIGHUP; the tests expect commands of a terminal.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

ROOT = Path(__file__).parent.parent


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Import modules without garbage collection: this halves what each process costs before its first test."""
    from paper_assets.interfaces.cli.process import importing

    with importing():
        return (yield)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files beside the folders: some of their tests take a minute, which no other process shares."""
    items.sort(key=lambda item: item.path.parent != ROOT / "tests")


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
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu", shut])
        yield opened
        opened.close()
