"""Back up, restore, export and repair what is stored: `backup`, `restore`, `export`, `repair`, `import FOLDER`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput, StoreBusy, StoreError
from paper_assets.interfaces.cli.terminal import (
    Yes,
    confirm,
    environment,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
    say,
    warn,
)
from paper_assets.interfaces.removal import remove_expired
from paper_assets.stores import backups
from paper_assets.stores.entered import ENTERED_TABLES, export_entered, import_entered
from paper_assets.text.numbers import count_of


def backup(
    file: Annotated[
        Path | None, typer.Argument(help="File to write; default: one in the data folder, where the last 7 are kept.")
    ] = None,
    due: Annotated[
        bool, typer.Option("--due", help="Only if the newest is a day old, as `up` does every day.")
    ] = False,
) -> None:
    """Back up papers, results, profiles and settings into one file, while everything runs."""
    home, now = _home(), datetime.now(UTC)
    if file is not None and due:
        raise InvalidInput("--due needs no file; it writes into the data folder")
    if due:
        remove_expired(read_settings(), environment(), now=now)
    if file is not None:
        backups.back_up(home, file)
    else:
        file = backups.back_up_into_folder(home, now=now, only_due=due)
    if file is not None:
        say(f"{file}, {file.stat().st_size / 1e6:,.1f} MB; `paper-assets restore {file}` brings it back")


def restore(
    file: Annotated[Path, typer.Argument(help="What `backup` wrote.")],
    entered: Annotated[
        bool, typer.Option("--entered", help="Replace nothing: add the ratings, answers and profiles that lack here.")
    ] = False,
    yes: Yes = False,
) -> None:
    """Bring back a backup. What it replaces is moved into a folder; profiles that it does not hold stay."""
    home = _home()
    if entered:
        return _show_added(backups.restore_entered(home, file), file)
    if home.warehouse.path.exists():
        confirm(f"replace the papers, lists, ratings and profiles in {home.folder} by those of {file}", yes=yes)
    aside, replaced = backups.restore(home, file, now=datetime.now(UTC))
    say(f"{file} is restored.")
    if aside.exists():
        say(f"What was there before is in {aside}: the database and {count_of(len(replaced), 'other file')}.")
    say("Next: `paper-assets run` writes lists and pages again.")


def repair(yes: Yes = False) -> None:
    """Save what a damaged database still gives, table by table, and name what is lost."""
    home = _home()
    if not home.warehouse.path.exists():
        raise InvalidInput(f"there is no database in {home.folder}")
    try:
        damaged = backups.damaged_tables(home.warehouse)
    except StoreBusy:
        raise
    except StoreError as fault:
        damaged = {"database": f"{fault}"}
    if not damaged:
        return say("The database is whole; nothing was changed.")
    confirm(f"replace the damaged database in {home.folder} by what can be read of it", yes=yes)
    aside, saved, lost_log = backups.repair(home, now=datetime.now(UTC))
    lost = [each for each in saved if each.lost]
    print_table(
        f"{sum(each.saved for each in saved):,} rows of {len(saved)} tables are saved",
        ["table", "saved", "lost", "what to do"],
        [(each.name, f"{each.saved:,}", f"{each.lost:,}", _advice(each)) for each in lost],
    )
    if lost_log:
        say("The log of the last changes was damaged: what was written last is lost.")
    say(f"The damaged database is in {aside}.")
    if newest := next(iter(backups.backups(home.folder)), None):
        say(f"The newest backup is {newest}; `paper-assets restore {newest}` brings it back instead.")
        if any(each.name in ENTERED_TABLES for each in lost):
            say(f"`paper-assets restore {newest} --entered` adds only the entries of readers that are lost.")


def _advice(lost: backups.SavedTable) -> str:
    if lost.emptied or lost.name in _COMPUTED:
        return "none: the next run computes it again"
    return "fetch or import them again" if lost.name == "papers" else "only a backup has it"


_COMPUTED = ("embeddings", "retrieval_sets", "preference_models", "scholar_records", "documents", "day_listings")


def export(folder: Annotated[Path, typer.Argument(help="A new folder.")]) -> None:
    """Write all that you entered as JSON Lines: profiles, ratings, shelf, answers, decisions.

    `paper-assets import FOLDER` adds it to another home.
    """
    settings = read_settings()
    written = export_entered(open_warehouse(), settings.profiles_dir, folder)
    print_table(f"{folder}", ["file", "lines"], list(written.items()))


def import_folder(folder: Path, *, as_json: bool) -> None:
    """Merge what `export` wrote into this home; repeating it changes nothing."""
    settings, now = read_settings(), datetime.now(UTC)
    aside = backups.replaced_folder(settings.home, now)
    merged = import_entered(open_warehouse(), settings.home, settings.profiles_dir, folder, aside=aside)
    for note in merged.notes:
        warn(f"note: {note}")
    if as_json:
        return print_json(merged.added)
    _show_added(merged.added, folder)


def _show_added(added: Mapping[str, int], source: Path) -> None:
    rows = [(name, count) for name, count in added.items() if count]
    print_table(f"{source}: {'added' if rows else 'nothing new'}", ["what", "new"], rows)


def _home() -> backups.Home:
    settings = read_settings()
    return backups.Home(warehouse=open_warehouse(), folder=settings.home, profiles_dir=settings.profiles_dir)
