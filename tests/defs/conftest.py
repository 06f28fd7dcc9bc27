"""Keep the tests away from the data of the checkout, although loading the graph reads its settings."""

from pathlib import Path

import pytest

import tests.dagster_migrations  # noqa: F401
from paper_assets.defs import resources
from paper_assets.settings import load_settings


@pytest.fixture(autouse=True)
def no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "settings", load_settings({}, tmp_path / "nobody-lives-here"))
