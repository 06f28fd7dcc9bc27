"""What a person sees in a terminal: tables and progress on a narrow or piped one, JSON for programs."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


def print_json(value: Any) -> None:
    """On stdout, as JSON that every parser takes: what is no number (NaN) becomes null."""
    print(json.dumps(numbers_or_null(value), ensure_ascii=False, indent=2, default=str, allow_nan=False))


def numbers_or_null(value: Any) -> Any:
    """The value as JSON has it: what is no number (NaN) becomes null."""
    if isinstance(value, dict):
        return {key: numbers_or_null(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [numbers_or_null(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(text: str) -> None:
    """For people: on stderr where stdout carries JSON."""
    print(text, file=sys.stderr if "--json" in sys.argv else sys.stdout)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=escape(title), title_justify="left")
    for name in header:
        table.add_column(name)
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row))
    Console().print(table)


@contextmanager
def progress_bar(label: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on stderr; the yielded function takes (done, total), total None if unknown."""
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
