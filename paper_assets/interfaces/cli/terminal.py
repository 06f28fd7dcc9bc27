"""Options, settings and output that the commands share."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paper_assets.interfaces.values import numbers_or_null
from paper_assets.progress import Progress
from paper_assets.settings import Settings, load_settings
from paper_assets.text.cleaning import without_controls

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


def print_json(value: Any) -> None:
    """On stdout, as JSON that every parser takes: what is no number (NaN) becomes null."""
    text = json.dumps(numbers_or_null(value), ensure_ascii=False, indent=2, default=str, allow_nan=False)
    print(without_controls(text))


def say(text: str) -> None:
    """For people: on stderr where stdout carries JSON."""
    print(without_controls(text), file=sys.stderr if "--json" in sys.argv else sys.stdout)


def warn(text: str) -> None:
    """For people, always on stderr: errors, warnings, what was left out."""
    print(without_controls(text), file=sys.stderr)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(without_controls(title)), title_justify="left")
    for name in header:
        table.add_column(name)
    for row in rows:
        table.add_row(*(escape(without_controls(str(value))) for value in row))
    Console().print(table)


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """A progress bar on stderr; what is yielded moves it."""
    from rich import progress as bars
    from rich.console import Console

    columns = (bars.TextColumn("{task.description}"), bars.MofNCompleteColumn(), bars.TimeElapsedColumn())
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total, what="": bar.update(task, completed=done, total=total)
