"""What the commands share: common options, and the settings and stores of this process."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from paper_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    from paper_assets.stores.warehouse import Warehouse

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]


def read_settings() -> Settings:
    """Settings from this process's environment."""
    return load_settings(os.environ, Path.cwd())


def dagster_home() -> Path:
    """Where Dagster's instance lies, for this process."""
    return Path(os.environ.get("DAGSTER_HOME") or Path.cwd() / "dagster_home")


def open_warehouse() -> "Warehouse":
    """The warehouse of this process's settings; nothing is opened yet."""
    from paper_assets.stores.warehouse import Warehouse  # brings DuckDB along

    settings = read_settings()
    return Warehouse(settings.warehouse_path, deadline=settings.store_deadline)
