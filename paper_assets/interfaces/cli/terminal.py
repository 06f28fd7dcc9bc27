"""What a person sees in a terminal: tables and progress on a narrow or piped one, JSON for programs.

Nothing that is shown steers the terminal or turns its text round, whoever wrote it (SPEC 8).
Rich is imported where it draws: who asks for JSON need not wait for it.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from paper_assets.interfaces.json_values import numbers_or_null
from paper_assets.progress import Progress
from paper_assets.text.cleaning import without_controls


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
