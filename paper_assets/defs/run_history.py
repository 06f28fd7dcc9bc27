"""The last runs of the instance as plain values, for who wants to know whether all is well."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from paper_assets.defs.instance import open_instance


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRun:
    """One run: what it made (assets, partitions), how it stands, when it began and for how many seconds it ran."""

    run_id: str
    status: str
    assets: tuple[str, ...]
    partition: str | None
    began: datetime | None
    seconds: float | None


def latest_runs(dagster_home: Path, *, most: int) -> list[PastRun]:
    """The newest runs first. Raises StoreUnwritable."""
    instance = open_instance(dagster_home)
    found = []
    for record in instance.get_run_records(limit=most):
        run, tags = record.dagster_run, record.dagster_run.tags
        span = tags.get("dagster/asset_partition_range_start"), tags.get("dagster/asset_partition_range_end")
        found.append(
            PastRun(
                run_id=run.run_id,
                status=run.status.value.lower().replace("_", " "),
                assets=tuple(sorted(key.to_user_string() for key in run.asset_selection or ())),
                partition=tags.get("dagster/partition") or (" to ".join(map(str, span)) if all(span) else None),
                began=datetime.fromtimestamp(record.start_time, UTC) if record.start_time else None,
                seconds=record.end_time - record.start_time if record.end_time and record.start_time else None,
            )
        )
    return found
