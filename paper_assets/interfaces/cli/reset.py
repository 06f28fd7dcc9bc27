"""`reset`: delete results and Dagster's history together, so that the two always agree."""

import os
import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from paper_assets.defs.abandoned_runs import fail_abandoned_runs, runs_in_progress
from paper_assets.defs.history_files import HISTORY
from paper_assets.defs.instance import delete_server_history, explained, open_instance, uses_server
from paper_assets.errors import InvalidInput, StoreBusy, StoreError, StoreUnwritable
from paper_assets.interfaces.cli.terminal import dagster_home, open_warehouse, read_settings, say
from paper_assets.pipeline.embeddings import COLLECTION
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.vectors import drop

_ON_SERVER = "Dagster's history on the PostgreSQL server"
_HEARTBEAT_SECONDS = 60  # seconds; a running daemon sends a heartbeat every 30


def reset(
    history: Annotated[bool, typer.Option("--history", help="Only Dagster's runs and events; papers stay.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete papers, results and Dagster's history; profiles and settings are kept."""
    settings = read_settings()
    home = dagster_home()
    stores = [
        *settings.home.glob(f"{settings.warehouse_path.name}*"),
        *settings.home.glob(f"{settings.vectors_path.name}*"),
        settings.rankings_dir,
        settings.digests_dir,
    ]
    doomed = [home / name for name in HISTORY] + ([] if history else stores)
    doomed = [path for path in doomed if path.exists()]
    on_server = uses_server(os.environ)
    vectors = [COLLECTION, settings.archive] if settings.chroma_url and not history else []
    on_servers = [*([_ON_SERVER] if on_server else []), *(f"{settings.chroma_url} {name}" for name in vectors)]
    targets = ", ".join([*map(str, doomed), *on_servers])
    if not targets:
        return say("nothing to remove")
    if not yes:
        if not sys.stdin.isatty():
            raise InvalidInput(f"reset removes {targets} permanently; confirm with --yes")
        typer.confirm(f"Remove {targets} for good?", abort=True)
    instance = _instance_or_none(home, on_server=on_server)
    if not history and settings.warehouse_path.exists():
        with open_warehouse().writing():  # no other process has it open
            pass
    if instance and on_server:
        with explained(home):
            delete_server_history(instance)
    for name in vectors:
        drop(VectorIndex(settings.vectors_place, deadline=settings.store_deadline), name)
    for path in doomed:
        try:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
        except OSError as fault:
            raise StoreUnwritable(f"{path} cannot be removed: {fault.strerror}; check permissions") from None
    say(f"removed {targets}")


def _instance_or_none(home: Path, *, on_server: bool) -> Any:
    """Return Dagster's instance; None if its files are damaged and can only be removed.

    Raises StoreBusy if a run or the daemon is still writing what is being removed.
    """
    try:
        instance = open_instance(home)
        with explained(home):
            fail_abandoned_runs(instance)
            busy = runs_in_progress(instance)
            beats = [beat.timestamp for beat in instance.get_daemon_heartbeats().values()]
    except StoreBusy:
        raise
    except StoreError:
        if on_server:
            raise
        return None
    if busy:
        raise StoreBusy(f"{busy} is running; let it finish or stop it, then reset")
    if max(beats, default=0.0) > datetime.now(UTC).timestamp() - _HEARTBEAT_SECONDS:
        raise StoreBusy("Dagster's daemon uses this history; stop it (`make dev`), wait a minute, then reset")
    return instance
