"""`status`: what is stored, for which days and profiles, what is out of date, and what is wrong."""

import os
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any

from paper_assets.interfaces.cli.arguments import AsJson, read_settings
from paper_assets.interfaces.cli.terminal import print_json, print_table
from paper_assets.interfaces.days_to_mend import DaysToMend, days_to_mend
from paper_assets.models import minilm
from paper_assets.pipeline.health import late_assets
from paper_assets.pipeline.partition import Partition
from paper_assets.pipeline.preferences import proof_of
from paper_assets.pipeline.profiles import find_profiles, usable_profile
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.sources.table import sources_of_days
from paper_assets.stores.day_listings import day_troubles
from paper_assets.stores.summary import summary

_MOST_SPANS = 20  # of days to mend that are shown, the latest


def status(as_json: AsJson = False) -> None:
    """Show what is stored for which days and profiles, what is out of date, and which profile cannot be read."""
    settings = read_settings()
    workspace = open_workspace(settings, os.environ, clock=lambda: datetime.now(UTC))
    if settings.embedding_model == minilm.NAME:
        workspace = replace(workspace, assumed_model=minilm.NAME)
    with workspace.warehouse.read_together() as opened:
        held, mend = _looked_at(replace(workspace, warehouse=opened))
    if as_json:
        return print_json(held)
    before = len(mend) - _MOST_SPANS
    print_table(
        f"{settings.home}",
        ["what", "value"],
        [
            ("papers", held["papers"]),
            ("without a date", held["undated"]),
            ("days", f"{held['days']}, {held['first_day'] or '–'} to {held['last_day'] or '–'}"),
            *((_span(days), str(days)) for days in mend[-_MOST_SPANS:]),
            *([("days to mend before", f"{before} spans, see --json")] if before > 0 else []),
            *((f"vectors of {model}", count) for model, count in held["vectors"].items()),
            *(
                (f"rankings of {name}", f"{count}, the last of {held['last_ranking'][name]}")
                for name, count in held["rankings"].items()
            ),
            *((f"last day of {name}", state) for name, state in held["current"].items()),
            *((f"learning of {name}", told) for name, told in held["learning"].items()),
            *((f"profile {name}", state) for name, state in sorted(held["profiles"].items())),
        ],
    )


def _looked_at(workspace: Workspace) -> tuple[dict[str, Any], list[DaysToMend]]:
    """What is told as JSON, and the days to mend of it."""
    settings = workspace.settings
    held = asdict(summary(workspace.warehouse))
    found = find_profiles(settings.profiles_dir)
    held["profiles"] = {**dict.fromkeys(found.readable, "good"), **found.faults}
    sources = [source.prefix for source in sources_of_days(settings) if source.prefix]
    mend = days_to_mend(day_troubles(workspace.warehouse, sources=sources))
    held["days_to_mend"] = [asdict(days) for days in mend]
    held["current"] = {
        name: _currency(workspace, name, held["last_ranking"][name])
        for name in sorted(found.readable.keys() & held["last_ranking"].keys())
    }
    held["learning"] = {name: told for name in sorted(found.readable) if (told := _learning(workspace, name))}
    return held, mend


def _span(days: DaysToMend) -> str:
    return f"{days.first}" if days.days == 1 else f"{days.first} to {days.last}"


def _learning(workspace: Workspace, profile: str) -> str | None:
    """Whether what the profile's ratings teach takes part, and why; None where nothing was ever learned."""
    proof = proof_of(workspace.warehouse, usable_profile(workspace, profile))
    return proof.sentence if proof else None


def _currency(workspace: Workspace, profile: str, day: date) -> str:
    """Which assets of the profile's last ranked day are not made from what is there now."""
    late = ", ".join(late_assets(workspace, Partition(day, profile)))
    return f"out of date: {late}; `paper-assets run` makes it again" if late else "current"
