"""Stamp the answers of `run` and `status`, so that an unchanged desk is answered without Dagster."""

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from paper_assets.defs.history_files import is_idle
from paper_assets.interfaces.cli.terminal import dagster_home, environment, read_settings
from paper_assets.models import minilm
from paper_assets.settings import Settings
from paper_assets.stores.stamps import stamped_answer

# Variables that differ between two calls and that we do not read: the terminal's, and those that libraries set.
_IGNORED = {"_", "COLUMNS", "LINES", "OLDPWD", "PWD", "SHLVL", "TERM", "KMP_DUPLICATE_LIB_OK", "DAGSTER_HOME"}


def stamp_key(profile: str | None, first: date | None, last: date | None) -> str:
    """Hash the arguments of a run and whatever else its answer depends on that is not in a file.

    That is settings, environment and today's date. A hash, because API keys are among them.
    """
    environ = {name: value for name, value in environment().items() if name not in _IGNORED}
    parts = [profile, first, last, datetime.now(UTC).date(), repr(read_settings()), f"{dagster_home()}", environ]
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode("utf-8", "surrogateescape")).hexdigest()


def stamped_lists(key: str) -> list[dict[str, Any]] | None:
    """Return the lists that the last `run` with this key found current; None if a file has changed since, a run is in
    progress, or papers are due.
    """
    settings = read_settings()
    answer = stamped_answer(settings.warehouse_path, "run", key) if is_idle(dagster_home()) else None
    if answer is None or (answer["until"] and datetime.now(UTC) >= datetime.fromisoformat(answer["until"])):
        return None
    lists: list[dict[str, Any]] = answer["lists"]
    return lists


def stamp_files(settings: Settings, dagster_files: Sequence[Path] = ()) -> list[Path]:
    """List the files that an answer depends on: stores, results, profiles, `dagster_files`, our own code.

    Returns none where files do not show a change: another embedding model, a Chroma server.
    """
    if settings.embedding_model != minilm.NAME or settings.chroma_url:
        return []
    warehouse, package = settings.warehouse_path, Path(__file__).parents[2]
    stores = [warehouse, warehouse.with_name(f"{warehouse.name}.wal"), minilm.packaged_folder()]
    return [*stores, settings.profiles_dir, settings.rankings_dir, settings.digests_dir, *dagster_files, package]
