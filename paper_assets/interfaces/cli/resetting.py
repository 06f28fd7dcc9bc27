"""`reset`: begin again, so that neither the stores nor Dagster remember anything that the other does not."""

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from paper_assets.defs.dead_runs import end_dead_runs, under_way
from paper_assets.defs.history_files import HISTORY
from paper_assets.defs.instance import open_instance
from paper_assets.errors import InvalidInput, StoreBusy, StoreError, StoreUnwritable
from paper_assets.interfaces.cli.arguments import dagster_home, open_warehouse, read_settings
from paper_assets.interfaces.cli.terminal import say

_HEARTBEAT_SECONDS = 60  # a daemon that runs has been heard of since; it beats every 30


def reset(
    history: Annotated[bool, typer.Option("--history", help="Only Dagster's runs and events; papers stay.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove papers, results and Dagster's history; profiles and settings stay."""
    settings = read_settings()
    home = dagster_home()
    stores = [
        *settings.home.glob(f"{settings.warehouse_path.name}*"),
        *settings.home.glob(f"{settings.vectors_path.name}*"),
        settings.output_dir / "rankings",
        settings.output_dir / "digests",
    ]
    doomed = [home / name for name in HISTORY] + ([] if history else stores)
    doomed = [path for path in doomed if path.exists()]
    if not doomed:
        return say("nothing to remove")
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(f"reset removes {', '.join(map(str, doomed))} for good; say --yes")
        typer.confirm(f"Remove {', '.join(map(str, doomed))} for good?", abort=True)
    _nobody_is_at_work(home)
    if not history and settings.warehouse_path.exists():
        with open_warehouse().writing():  # nobody else has it open
            pass
    for path in doomed:
        try:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError as fault:
            raise StoreUnwritable(f"{path} cannot be removed: {fault.strerror}; check permissions") from None
    say(f"removed {', '.join(map(str, doomed))}")


def _nobody_is_at_work(home: Path) -> None:
    """Raises StoreBusy if a run or the daemon would go on writing what is being removed."""
    try:
        instance = open_instance(home)
    except StoreError:  # damaged: a good reason to remove it
        return
    end_dead_runs(instance)
    if busy := under_way(instance):
        raise StoreBusy(f"{busy} is under way; let it finish or stop it, then reset")
    beats = [beat.timestamp for beat in instance.get_daemon_heartbeats().values()]
    if max(beats, default=0.0) > datetime.now(UTC).timestamp() - _HEARTBEAT_SECONDS:
        raise StoreBusy("Dagster's daemon uses this history; stop it (`make dev`), wait a minute, then reset")
