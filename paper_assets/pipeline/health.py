"""How the desk stands: days without papers, what is out of date, what the language model took (SPEC V7).

Everything that is wrong comes with the command that mends it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from paper_assets.errors import InvalidProfile, named_error
from paper_assets.pipeline.partition import Grid, Partition
from paper_assets.pipeline.profiles import ProfilesFound, find_profiles
from paper_assets.pipeline.rewrites import waiting_by_profile
from paper_assets.pipeline.step import Step, stale
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace
from paper_assets.sources.table import sources_of_days
from paper_assets.stores.day_listings import DayTrouble, day_troubles
from paper_assets.stores.llm_use import Use, use_since
from paper_assets.stores.summary import Summary, summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`troubles`: days that lack papers; `late`: by profile the assets of its last day that are not made from what is
    there; `faults`: by profile why it cannot be read; `use`: what the language model took since the month began.
    """

    held: Summary
    troubles: Sequence[DayTrouble]
    late: Mapping[str, tuple[str, ...]]
    faults: Mapping[str, str]
    waiting: Mapping[str, int]
    use: Sequence[Use]
    since: date


def health(workspace: Workspace) -> Health:
    """Look at everything, in one opening of the store; makes nothing. Raises StoreBusy."""
    with workspace.warehouse.read_together() as opened:
        return _health(replace(workspace, warehouse=opened))


def _health(workspace: Workspace) -> Health:
    warehouse, settings = workspace.warehouse, workspace.settings
    held = summary(warehouse)
    try:
        found = find_profiles(settings.profiles_dir)
    except InvalidProfile as fault:
        found = ProfilesFound({}, {f"{settings.profiles_dir}": str(fault)})
    sources = [source.prefix for source in sources_of_days(settings) if source.prefix]
    month = workspace.clock().date().replace(day=1)
    return Health(
        held=held,
        troubles=day_troubles(warehouse, sources=sources),
        late={
            name: late_assets(workspace, Partition(held.last_ranking[name], name))
            for name in sorted(found.readable.keys() & held.last_ranking.keys())
        },
        faults=found.faults,
        waiting=waiting_by_profile(warehouse, config=settings.rewriting),
        use=use_since(warehouse, datetime(month.year, month.month, 1)),  # noqa: DTZ001  # stored times are UTC
        since=month,
    )


def late_assets(workspace: Workspace, partition: Partition) -> tuple[str, ...]:
    """Which steps of the partition are not made from what is there now."""
    return tuple(step.name for step in STEPS if step.grid is Grid.PROFILE_DAY and _is_late(step, workspace, partition))


def _is_late(step: Step, workspace: Workspace, partition: Partition) -> bool:
    try:
        return bool(stale(step, workspace, [partition])) and step.waits_for(workspace, partition) is None
    except Exception as error:  # what it is made from is missing, or cannot be read: it is not current
        named_error(error, f"{step.name} of {partition}")
        return True
