"""`status`: what is stored, for which days and profiles, what is out of date, and what is wrong.

What the stamp of a `run` or of an earlier `status` says is current is not looked at again: to make a page in order to
compare it takes longer than all else here, and to import what makes it as long as reading twenty profiles. Where a
daemon makes the lists, nobody calls `run`.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any

from paper_assets.defs.history_files import is_at_rest
from paper_assets.interfaces.cli.stamp import stamp_files, stamp_key
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    dagster_home,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
)
from paper_assets.interfaces.missing_days import MissingDays, missing_days
from paper_assets.models import minilm
from paper_assets.pipeline.partition import Partition
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.profile import Profile
from paper_assets.settings import Settings
from paper_assets.sources.table import sources_of_days
from paper_assets.stores.day_listings import day_troubles
from paper_assets.stores.preference_models import model_inputs
from paper_assets.stores.stamps import file_states, keep_stamp, stamped_answer
from paper_assets.stores.summary import summary
from paper_assets.stores.warehouse import Warehouse

_MOST_SPANS = 20  # of days to mend that are shown, the latest


def status(as_json: AsJson = False) -> None:
    """Show what is stored for which days and profiles, what is out of date, and which profile cannot be read."""
    settings = read_settings()
    stamped = _stamped_days(settings)
    with open_warehouse().read_together() as opened:
        held, mend = _looked_at(settings, opened, stamped)
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


def _stamped_days(settings: Settings) -> dict[str, str]:
    """By profile the day that the last `run` found to be current, if nothing was touched since."""
    asked = stamp_key(None, None, None)
    stands = stamped_answer(settings.warehouse_path, "run", asked) if is_at_rest(dagster_home()) else None
    return {each["profile"]: each["day"] for each in stands or ()}


def _looked_at(
    settings: Settings, warehouse: Warehouse, stamped: Mapping[str, str]
) -> tuple[dict[str, Any], list[MissingDays]]:
    """What is told as JSON, and the days to mend of it."""
    held = asdict(summary(warehouse))
    found = find_profiles(settings.profiles_dir)
    held["profiles"] = {**dict.fromkeys(found.readable, "good"), **found.faults}
    sources = [source.prefix for source in sources_of_days(settings) if source.prefix]
    mend = missing_days(day_troubles(warehouse, sources=sources))
    held["days_to_mend"] = [asdict(days) for days in mend]
    last = {name: held["last_ranking"][name] for name in sorted(found.readable.keys() & held["last_ranking"].keys())}
    unknown = {name: day for name, day in last.items() if stamped.get(name) != f"{day}"}
    late = _late(settings, warehouse, unknown) if unknown else {}
    held["current"] = {name: late.get(name, "current") for name in last}
    learned = model_inputs(warehouse)
    held["learning"] = {
        name: _learning(warehouse, profile) for name, profile in sorted(found.readable.items()) if name in learned
    }
    return held, mend


def _span(days: MissingDays) -> str:
    return f"{days.first}" if days.days == 1 else f"{days.first} to {days.last}"


def _learning(warehouse: Warehouse, profile: Profile) -> str | None:
    """Whether what the profile's ratings teach takes part, and why."""
    from paper_assets.pipeline.preferences import proof_of  # with all that learns

    proof = proof_of(warehouse, profile)
    return proof.sentence if proof else None


def _late(settings: Settings, warehouse: Warehouse, last: Mapping[str, date]) -> dict[str, str]:
    """By profile which assets of its last ranked day are not made from what is there now; kept while that stands."""
    asked = f"{stamp_key(None, None, None)} {json.dumps(last, default=str)}"
    kept: dict[str, str] | None = stamped_answer(settings.warehouse_path, "status", asked)
    if kept is not None:
        return kept
    roots = stamp_files(settings)
    before = file_states(roots)
    late = _looked_at_late(settings, warehouse, last)
    if roots and before:
        keep_stamp(settings.warehouse_path, "status", asked, before, late)
    return late


def _looked_at_late(settings: Settings, warehouse: Warehouse, last: Mapping[str, date]) -> dict[str, str]:
    from paper_assets.pipeline.health import late_assets  # with all that makes them
    from paper_assets.pipeline.workspace import open_workspace

    workspace = open_workspace(settings, os.environ, clock=lambda: datetime.now(UTC))
    named = minilm.NAME if settings.embedding_model == minilm.NAME else None
    workspace = replace(workspace, warehouse=warehouse, assumed_model=named)
    late = {name: ", ".join(late_assets(workspace, Partition(day, name))) for name, day in last.items()}
    return {name: f"out of date: {names}; `paper-assets run` makes it again" for name, names in late.items() if names}
