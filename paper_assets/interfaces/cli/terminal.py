"""Options, settings and output that the commands share."""

import json
import os
import shlex
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paper_assets.errors import InvalidInput, ModelUnavailable
from paper_assets.interfaces.values import numbers_or_null, parse_day
from paper_assets.progress import Progress
from paper_assets.settings import Settings, dagster_folder, default_folder, load_settings, variables, wrong_settings
from paper_assets.stores.kept_settings import KeptEnvironment, kept_environment
from paper_assets.text.cleaning import without_controls

if TYPE_CHECKING:
    from paper_assets.models.embedder import Embedder
    from paper_assets.stores.warehouse import Warehouse


def day_option(option: str, text: str) -> Any:
    """Return an option whose value is a day, given as YYYY-MM-DD."""
    return typer.Option(option, metavar="YYYY-MM-DD", parser=partial(parse_day, option=option), help=text)


def command_group(name: str, text: str) -> typer.Typer:
    """Return a command that has commands; without one of them it shows its help."""
    return typer.Typer(name=name, help=text, no_args_is_help=True, rich_markup_mode=None)


PROGRAM = "paper-assets"
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]
ProfileName = Annotated[str, typer.Argument(metavar="PROFILE", help="Name of the profile.")]
ListDay = Annotated[date | None, day_option("--day", "Day of the list; default: the newest.")]
PaperId = Annotated[str, typer.Argument(metavar="PAPER_ID", help="Id of the paper, such as 2501.12345.")]


def read_settings() -> Settings:
    """Read the settings from this process's environment, and behind it from the files of the data folder."""
    return load_settings(environment(), Path.cwd(), default_folder=default_folder(os.environ, Path.cwd()))


def read_usable_settings() -> tuple[Settings, dict[str, str]]:
    """Read the settings with the default for each value that cannot be used; return the reasons too, by variable."""
    environ, here = environment(), Path.cwd()
    wrong = wrong_settings(environ, here)
    usable = {variable: environ.get(variable, "") for variable in variables() if variable not in wrong}
    return load_settings(usable, here, default_folder=default_folder(os.environ, here)), wrong


def environment() -> KeptEnvironment:
    """Return this process's environment, and behind it what was chosen on the page or by `llm set`."""
    folder = os.environ.get("PAPER_ASSETS_HOME", "").strip()
    home = Path(folder).expanduser() if folder else default_folder(os.environ, Path.cwd()) / "data"
    return kept_environment(os.environ, home.absolute(), lambda: datetime.now(UTC))


def dagster_home() -> Path:
    """Find the folder of Dagster's instance for this process."""
    return dagster_folder(os.environ, Path.cwd())


def program_as_called() -> str:
    """Return how this program was called, for commands to copy: `.venv/bin/paper-assets` in a checkout.

    It is the plain name where the shell finds that program by its name, or where the call was not by a file.
    """
    called = Path(sys.argv[0])
    if called.name != PROGRAM or not called.is_file():
        return PROGRAM
    by_name = which(PROGRAM)
    if by_name and Path(by_name).samefile(called):
        return PROGRAM
    with suppress(ValueError):
        called = called.absolute().relative_to(Path.cwd())
    return shlex.quote(f"{called}")


def open_warehouse() -> "Warehouse":
    """Create the warehouse object of this process's settings; no file is opened yet."""
    from paper_assets.stores.warehouse import Warehouse  # imports DuckDB

    settings = read_settings()
    return Warehouse(settings.warehouse_path, deadline=settings.store_deadline)


def checked_warehouse(profile: str) -> "Warehouse":
    """Create the warehouse object, if the profile exists or something is stored of it. Raises InvalidProfile."""
    from paper_assets.learning.ratings import check_profile

    warehouse = open_warehouse()
    check_profile(warehouse, profile, read_settings().profiles_dir)
    return warehouse


def stored_list(profile: str, day: date | None) -> "tuple[Warehouse, date]":
    """Return the warehouse and the day of the requested list. Raises InvalidProfile, NotComputed."""
    from paper_assets.interfaces.ranking_answers import list_day

    warehouse = checked_warehouse(profile)
    return warehouse, list_day(warehouse, profile, day, settings=read_settings())


def embedder_or_none(model: str, *, consequence: str = "") -> "Embedder | None":
    """Load the embedding model; if it cannot be used, warn with the reason and the consequence and return None."""
    from paper_assets.models.embedder import load_embedder  # imports numpy

    try:
        return load_embedder(model)
    except ModelUnavailable as fault:
        warn(f"warning: {fault}; {consequence}" if consequence else f"warning: {fault}")
        return None


def print_json(value: Any) -> None:
    """Print JSON that every parser accepts: NaN becomes null."""
    text = json.dumps(numbers_or_null(value), ensure_ascii=False, indent=2, default=str, allow_nan=False)
    print(without_controls(text))


def say(text: str) -> None:
    """Print a line for people; to stderr where stdout carries JSON."""
    print(without_controls(text), file=sys.stderr if "--json" in sys.argv else sys.stdout)


def warn(text: str) -> None:
    """Print an error or a warning to stderr."""
    print(without_controls(text), file=sys.stderr)


def warn_of_each(faults: Sequence[str], *, what: str) -> None:
    """Print the first of many faults as warnings, and how many more there are."""
    for fault in faults[:_MOST_FAULTS]:
        warn(f"{what}: {fault}")
    if len(faults) > _MOST_FAULTS:
        warn(f"{what}: {len(faults) - _MOST_FAULTS} more")


def confirm(what: str, *, yes: bool) -> None:
    """Ask at a terminal whether to do `what`, unless `yes`. Raises InvalidInput without consent."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidInput(f"this would {what}; confirm with --yes")
    if not typer.confirm(f"{what[0].upper()}{what[1:]}?", err=True):
        raise InvalidInput("nothing was changed")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a title and, unless there are no rows, a table that fits the terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    # Not the title of the rich table, which would be wrapped at the width of the table.
    console.print(escape(without_controls(title)), style="italic", highlight=False, soft_wrap=True)
    if not rows:
        return
    table = Table()
    for name in header:
        table.add_column(name, overflow="fold")  # in a narrow terminal nothing is cut off
    for row in rows:
        table.add_row(*(escape(without_controls(str(value))) for value in row))
    console.print(table)


_MOST_FAULTS = 20  # that are printed
_LINE_EVERY = 10.0  # seconds between two lines of progress in a log


@contextmanager
def progress_bar(label: str) -> Iterator[Progress]:
    """Show a progress bar on stderr; calling the yielded function updates it. Print lines in a log or a pipe."""
    if not sys.stderr.isatty():
        yield _lines_of_progress(label)
        return
    from rich import progress as bars
    from rich.console import Console

    columns = (bars.TextColumn("{task.description}"), bars.MofNCompleteColumn(), bars.TimeElapsedColumn())
    with bars.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(label, total=None)
        yield lambda done, total, what="": bar.update(
            task, completed=done, total=total, description=f"{label} {without_controls(what)}".strip()
        )


def _lines_of_progress(label: str) -> Progress:
    last = time.monotonic()

    def count(done: int, total: int | None, what: str = "") -> None:
        nonlocal last
        if time.monotonic() - last >= _LINE_EVERY:
            last = time.monotonic()
            warn(f"{f'{label} {what}'.strip()}: {done:,}{f' of {total:,}' if total else ''}")

    return count
