"""Show reports of the pipeline as Dagster metadata, so that a person can judge a partition without a database.

Belongs here: Dagster's values, and the events that carry them. Not here: what is shown of which asset
(pipeline/).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dagster as dg

from paper_assets.defs.due import FAILURE, LASTING, PASSING
from paper_assets.errors import ClusterUnavailable, DoubtfulDay, PaperAssetsError, SourceError, StoreBusy
from paper_assets.pipeline.step import Columns, Link, Markdown, Report, Table, Value

ATTENDED = "paper_assets/started_by"  # tag: a person waits for the run at a terminal


_CELL = 90  # characters of a table cell; the UI wraps longer ones badly


def materializations(
    asset: str, reports: Mapping[str, Report], check_results: Sequence[dg.AssetCheckResult] = (), *, last: bool = False
) -> Iterator[Any]:
    """Yield the events of one asset for all partitions of a run (by key), each with its own data version.

    Dagster gives all partitions of one output the same data version, so that a chunk of days would look changed
    wherever one day changed. Therefore a run over several partitions reports each of them again, afterwards.
    `last`: nothing in the run depends on this output, so each partition is reported once only.
    """
    checks = list(check_results)
    if len(reports) == 1:
        (report,) = reports.values()
        yield dg.MaterializeResult(
            asset_key=asset,
            metadata=metadata_of(report),
            data_version=dg.DataVersion(report.data_version) if report.data_version else None,
            check_results=checks,
        )
        return
    if not last:
        yield dg.MaterializeResult(asset_key=asset, check_results=checks)
    yield from separate_events(asset, reports)
    if last:
        yield from checks


def separate_events(asset: str, reports: Mapping[str, Report]) -> Iterator[dg.AssetMaterialization]:
    """Yield one event for each partition, outside the output of the step."""
    for key, report in reports.items():
        yield dg.AssetMaterialization(
            asset_key=asset,
            partition=key,
            metadata=metadata_of(report),
            tags={"dagster/data_version": report.data_version},
        )


def metadata_of(report: Report) -> dict[str, Any]:
    """Return a report's values as Dagster shows them."""
    return {name: _drawn(value) for name, value in report.values.items()}


def _drawn(value: Value) -> Any:
    match value:
        case Table(header, rows):  # the UI hides long Markdown behind a button, but no table
            records = [dg.TableRecord(dict(zip(header, map(_cell, row), strict=True))) for row in rows]
            return dg.MetadataValue.table(records, schema=dg.TableSchema([dg.TableColumn(name) for name in header]))
        case Columns(named):
            columns = [dg.TableColumn(name, kind, description=text) for name, kind, text in named]
            return dg.MetadataValue.table_schema(dg.TableSchema(columns))
        case Markdown(text):
            return dg.MetadataValue.md(text)
        case Link(url):
            return dg.MetadataValue.url(url)
        case Path():
            return dg.MetadataValue.path(value)
        case _:
            return value


@contextmanager
def user_errors_as_failures(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Fail the run with one line instead of a stack trace for errors that a user can cause.

    A run is never repeated in its place among the runs. Its tag says whether the same error would come again.
    """
    try:
        yield
    except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
        raise dg.Failure(description="stopped from outside", allow_retries=False) from None
    except PaperAssetsError as error:
        # a doubtful day lasts for an hour, or until a person has checked it
        passes = isinstance(error, SourceError | StoreBusy | ClusterUnavailable) and not isinstance(error, DoubtfulDay)
        context.instance.add_run_tags(context.run.run_id, {FAILURE: PASSING if passes else LASTING})
        raise dg.Failure(description=f"{error.code}: {error}", allow_retries=False) from None
    except Exception:
        context.instance.add_run_tags(context.run.run_id, {FAILURE: LASTING})
        raise


def _cell(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"
