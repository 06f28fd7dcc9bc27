"""Show what is stored, what is out of date, and what is wrong: `status`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any, TypeVar

import typer

from paper_assets.announcements import in_words
from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.cli.process import importing, log_unexpected
from paper_assets.interfaces.cli.run import comparing_workspace
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
    warn,
)
from paper_assets.interfaces.values import late_in_words
from paper_assets.pipeline.open_days import recent_days
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.profile import Profile
from paper_assets.settings import Settings
from paper_assets.sources.id_prefixes import prefixes_of_fetched_sources
from paper_assets.stores.backups import backups, damaged_tables, time_of
from paper_assets.stores.entered import ENTERED_TABLES
from paper_assets.stores.feedback import model_inputs
from paper_assets.stores.harvests import MissingDays, day_troubles, missing_days
from paper_assets.stores.papers import summary
from paper_assets.stores.rankings import ranking_header
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import count_of

T = TypeVar("T")
_GOOD = "good"  # the state of a profile that can be read
_MAX_SPANS = 20  # spans of missing days that are shown, the latest ones


def status(as_json: AsJson = False) -> None:
    """Show what is stored, what is out of date, and which profiles cannot be read."""
    settings = read_settings()
    # What people entered is a moment's reading; `doctor` and every backup read all.
    damaged = damaged_tables(open_warehouse(), ENTERED_TABLES)
    with open_warehouse().read_together() as opened:
        held, missing, late = _collected(settings, opened)
    held["damaged"], kept = list(damaged), backups(settings.home)
    held["newest_backup"] = kept[0] if kept else None
    if as_json:
        print_json(held)
        raise typer.Exit(1 if damaged else 0)
    before = len(missing) - _MAX_SPANS
    print_table(
        f"{settings.home}",
        ["what", "value"],
        [
            *_stored_papers(held),
            *(tuple(day.split(": ", 1)) for day in held["recent_days"]),
            *((_span(days), str(days)) for days in missing[-_MAX_SPANS:]),
            *([("earlier missing days", f"{count_of(before, 'span')}, see --json")] if before > 0 else []),
            *((f"vectors of {model}", count) for model, count in held["vectors"].items()),
            ("backups", f"{len(kept)}, the newest of {time_of(kept[0]):%Y-%m-%d}" if kept else "none yet"),
            *([] if held["profiles"] else [("profiles", "none yet; `paper-assets profile new` makes one")]),
        ],
    )
    if names := sorted(held["profiles"].keys() | held["rankings"].keys()):
        rows = [(name, *_lists_of(held, name), _state_of(held, late, name)) for name in names]
        print_table("", ["profile", "lists", "newest", "state"], rows)
    if late:
        print("`paper-assets run` computes what is out of date.")
    for table, fault in damaged.items():
        warn(f"error: {table} is damaged: {fault}")
    if damaged:
        raise typer.Exit(1)


def _lists_of(held: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return how many lists of a profile are stored, and the day of the newest one."""
    count = held["rankings"].get(name, 0)
    return f"{count}", f"{held['last_ranking'].get(name, '')}"


def _state_of(held: Mapping[str, Any], late: Mapping[str, Sequence[str]], name: str) -> str:
    """Say what is wrong with a profile or out of date, and how much its ratings count."""
    state = held["profiles"].get(name, "removed; its lists are kept")
    if state == _GOOD:
        state = "current" if name in held["current"] else "no list yet"
        if steps := late.get(name):
            state = f"{late_in_words(steps)} out of date"
    return "; ".join(filter(None, (state, held["unrefined"].get(name), held["learning"].get(name))))


def _stored_papers(held: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the rows about papers and their days, or how to get the first papers."""
    if not held["papers"]:
        before = "" if held["profiles"] else "after making a profile, "
        return [("papers", f"none yet; {before}`paper-assets start --days 7` fetches and ranks the last week")]
    days = f"{held['days']}, {held['first_day']} to {held['last_day']}" if held["days"] else "none; no paper has a date"
    return [("papers", f"{held['papers']}"), ("without a date", f"{held['undated']}"), ("days", days)]


def _collected(
    settings: Settings, warehouse: Warehouse
) -> tuple[dict[str, Any], list[MissingDays], dict[str, tuple[str, ...]]]:
    """Return the status as JSON values, the spans of missing days, and what is out of date by profile."""
    held = asdict(summary(warehouse))
    folders = find_profiles(settings.profiles_dir) if settings.profiles_dir.exists() else ProfilesFound({}, {})
    held["profiles"] = {**dict.fromkeys(folders.readable, _GOOD), **folders.faults}
    held["recent_days"] = [in_words(day) for day in recent_days(warehouse, settings, datetime.now(UTC))]
    missing = missing_days(day_troubles(warehouse, sources=prefixes_of_fetched_sources(settings)))
    held["days_to_repair"] = [asdict(days) for days in missing]
    last = {name: held["last_ranking"][name] for name in sorted(folders.readable.keys() & held["last_ranking"].keys())}
    late = _late(warehouse, last) if last else {}
    held["current"] = {name: _sentence(late.get(name, ())) for name in last}
    headers = {name: ranking_header(warehouse, day, name) for name, day in last.items()}
    # Without a configured model nothing is missing.
    held["unrefined"] = {
        name: each["llm_note"] for name, each in headers.items() if each.get("llm_model") and each.get("llm_note")
    }
    learned = model_inputs(warehouse)
    held["learning"] = {
        name: _isolated(f"checking what {name} has learned", _learning, warehouse, profile)
        for name, profile in sorted(folders.readable.items())
        if name in learned
    }
    return held, missing, late


def _sentence(late: Sequence[str]) -> str:
    return f"out of date: {', '.join(late)}; run `paper-assets run`" if late else "current"


def _span(days: MissingDays) -> str:
    return f"{days.first}" if days.days == 1 else f"{days.first} to {days.last}"


def _learning(warehouse: Warehouse, profile: Profile) -> str | None:
    """Return how much the profile's ratings count, and why."""
    from paper_assets.pipeline.preferences import evidence_of  # imports the learning package

    evidence = evidence_of(warehouse, profile)
    return evidence.sentence if evidence else None


def _late(warehouse: Warehouse, last: Mapping[str, date]) -> dict[str, tuple[str, ...]]:
    """Map profiles to the assets of their newest list that are out of date, or cannot be compared."""
    with importing():
        from paper_assets.pipeline.staleness import late_assets  # with the modules below, a tenth of a second
        from paper_assets.pipeline.step import Partition

    workspace = replace(comparing_workspace(), warehouse=warehouse)
    late = late_assets(workspace, [Partition(day, name) for name, day in last.items()])
    return {partition.of_profile: steps for partition, steps in late.items() if steps}


def _isolated(what: str, check: Callable[..., T], *arguments: Any) -> T | str:
    """Return the result of a check; an unexpected error becomes one line, so that other profiles are still shown."""
    try:
        return check(*arguments)
    except PaperAssetsError:
        raise
    except Exception as error:
        return log_unexpected(error, what=what)
