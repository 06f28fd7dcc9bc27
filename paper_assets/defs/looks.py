"""One look every few seconds: what people have said is told to Dagster, then it is asked what is due.

A sensor for each of them cost Dagster's own work for a tick four times, and an edit waited for two: now its ranking is
asked for in the tick that sees it. Belongs here: what one look does. Not here: what is due (automation.py).
"""

from typing import Any

import dagster as dg
from dagster._core.definitions.sensor_definition import SensorExecutionData

from paper_assets.defs import environment
from paper_assets.defs.dead_runs import under_way
from paper_assets.defs.kept_cursor import keep_cursor, kept_cursor
from paper_assets.defs.nothing_new import files_of, remember_quiet, state_of, was_quiet
from paper_assets.defs.partitions import profiles
from paper_assets.defs.profiles import report_profiles
from paper_assets.defs.ratings import report_ratings
from paper_assets.defs.run_chunks import in_chunks
from paper_assets.errors import InvalidProfile, StoreError
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.pipeline.workspace import Workspace

_told: set[str] = set()  # what is wrong with profiles, as the last look said it


class Looks(dg.AutomationConditionSensorDefinition):
    """Conditions evaluated in the code server, after the news of profiles and ratings; their runs go in chunks."""

    @property
    def required_resource_keys(self) -> set[str]:
        return {"workspace"}

    def evaluate_tick(self, context: dg.SensorEvaluationContext) -> Any:  # Dagster's own type of a tick is private
        of_home = environment.settings
        state = state_of(of_home.profiles_dir, *files_of(of_home.warehouse_path))
        if was_quiet(self.name, state and (state, context.cursor)):
            return SensorExecutionData(skip_message="nothing has happened since the last look", cursor=context.cursor)
        instance = context.instance
        if context.cursor is None:
            context._cursor = kept_cursor(instance)
        asked = tell_news(instance, context.resources.workspace, context.log)
        tick = super().evaluate_tick(context)
        keep_cursor(instance, str((context.log_key or [""])[-1]), began=context.cursor, ended=tick.cursor)
        if asked and not tick.run_requests and not under_way(instance):
            # Quiet only if it is so twice: what a look finds may depend on what the one before it found.
            same = was_quiet(f"{self.name}, once", state)
            remember_quiet(self.name, state and (state, tick.cursor) if same else None, instance)
            remember_quiet(f"{self.name}, once", state, instance)
        return SensorExecutionData(
            run_requests=in_chunks(tick.run_requests or (), instance.get_dynamic_partitions(str(profiles.name))),
            skip_message=tick.skip_message,
            cursor=tick.cursor,
            log_key=tick.log_key,
            automation_condition_evaluations=tick.automation_condition_evaluations,
        )

    def with_attributes(self, *, jobs: Any = None, metadata: Any = None) -> "Looks":
        """A copy of the same kind; Dagster's own would be one that only asks what is due."""
        return Looks(
            self.name,
            target=self._sensor_target,
            description=self.description,
            metadata=self._metadata if metadata is None else metadata,
            default_status=self.default_status,
            minimum_interval_seconds=self.minimum_interval_seconds,
            emit_backfills=self.emit_backfills,
            use_user_code_server=True,
        )


def tell_news(instance: dg.DagsterInstance, workspace: Workspace, log: Any) -> bool:
    """Tell Dagster of profiles that came, changed or went, and of new ratings (A1, L6); whether the store was there.

    A profile that cannot be read changes nothing and is said in the log, once.
    """
    try:
        found = find_profiles(workspace.settings.profiles_dir)
        for name in report_profiles(instance, found).removed:
            instance.delete_dynamic_partition(str(profiles.name), name)
        faults = {f"{fault}; its last good ranking stays" for fault in found.faults.values()}
    except InvalidProfile as fault:
        faults = {f"{fault}"}
    for line in sorted(faults - _told):
        log.warning(line)
    _told.clear()
    _told.update(faults)
    try:
        report_ratings(instance, workspace)
    except StoreError as busy:
        log.warning(f"{busy}")
        return False
    return True
