"""Provide fixtures for all tests: the recorded real data beside the checkout, and a browser."""

import atexit
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from hypothesis import HealthCheck, settings

from paper_assets.locks import store_lock
from paper_assets.small_files import make_private_folder
from paper_assets.stores import warehouse
from paper_assets.stores.migrations.upgrade import MIGRATIONS, Migration, create_if_missing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A slow machine must not fail a test; nothing is kept between runs. Each run has a few examples: new ones at a desk, in
# CI the same in each run, so that chance does not refuse a change. `make nightly` generates ten times as many.
settings.register_profile(
    "here",
    deadline=None,
    database=None,
    max_examples=20,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("nightly", settings.get_profile("here"), max_examples=200, derandomize=False, print_blob=True)
settings.load_profile("here")


def _say_no_more() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# Libraries (Hypothesis, for the garbage collector) keep references from outside Python, so that DuckDB's module is never
# freed; nanobind then reports forty "leaks" after the last line of pytest. Registered first, so it is done last.
atexit.register(_say_no_more)

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
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu", shut])
        yield opened
        opened.close()


# They are about how a warehouse comes into being.
_CREATE_EACH = (ROOT / "tests" / "stores", ROOT / "tests" / "faults")


@pytest.fixture(scope="session")
def empty_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a warehouse without rows, created once in each process of tests."""
    file = tmp_path_factory.mktemp("empty") / "warehouse.duckdb"
    create_if_missing(file, MIGRATIONS)
    return file


@pytest.fixture(autouse=True)
def new_warehouses_are_copies(request: pytest.FixtureRequest, empty_warehouse: Path) -> Iterator[None]:
    """Copy an empty warehouse where this process would create one, which takes 130 ms of its processor."""

    def copy(path: Path, migrations: Sequence[Migration]) -> None:
        if path.exists() or migrations is not MIGRATIONS:
            return create_if_missing(path, migrations)
        try:
            make_private_folder(path.parent)
            with store_lock(path, deadline=60):
                if not path.exists():
                    new = path.with_name(f".{path.name}.new")
                    shutil.copyfile(empty_warehouse, new)
                    new.chmod(0o600)
                    new.rename(path)
        except OSError:
            create_if_missing(path, migrations)  # explains what is wrong

    if any(folder in request.path.parents for folder in _CREATE_EACH):
        yield
    else:
        with mock.patch.object(warehouse, "create_if_missing", copy):
            yield
