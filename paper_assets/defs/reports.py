"""Show reports of the pipeline as Dagster metadata, so that a person can judge a partition without a database.

Belongs here: tables, small plots and counts, and the events that carry them. Not here: what is shown of which asset
(pipeline/).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import dagster as dg

from paper_assets.defs.due import FAILURE, LASTING, PASSING
from paper_assets.errors import ClusterUnavailable, DoubtfulDay, PaperAssetsError, SourceError, StoreBusy, named_error
from paper_assets.pipeline.step import Bars, Columns, Link, Markdown, Report, StackedBars, Table, Value

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
    """Return a report's values as Dagster shows them; for one that cannot be drawn, a line names the error."""
    return {name: _drawn_or_fault(name, value) for name, value in report.values.items()}


def _drawn_or_fault(name: str, value: Value) -> Any:
    """Draw a value; an error in a picture must not fail the run that made the data."""
    try:
        return _drawn(value)
    except Exception as error:
        return f"{named_error(error, name)}"


def _drawn(value: Value) -> Any:
    match value:
        case Table(header, rows):
            return table(header, rows)
        case Columns(named):
            return columns(*named)
        case Bars(counts, title):
            return bars(counts, title=title)
        case StackedBars(rows, parts, title):
            return stacked_bars(rows, parts, title=title)
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


def table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> dg.TableMetadataValue:
    """Return a preview; long cells are cut. The UI hides long Markdown behind a button, but no table."""
    return dg.MetadataValue.table(
        [dg.TableRecord(dict(zip(header, map(_cell, row), strict=True))) for row in rows],
        schema=dg.TableSchema([dg.TableColumn(name) for name in header]),
    )


def columns(*named: tuple[str, str, str]) -> dg.TableSchemaMetadataValue:
    """Return a table schema from (name, type, description)."""
    return dg.MetadataValue.table_schema(
        dg.TableSchema([dg.TableColumn(name, kind, description=text) for name, kind, text in named])
    )


def bars(values: Mapping[str, int], *, title: str) -> dg.MarkdownMetadataValue:
    """Draw counts as bars of text in the given order: an import reports hundreds of days, and a picture takes 0.1 s."""
    most = max([1, *values.values()])
    lines = [f"{name[:28]:<28} {'█' * round(40 * value / most)} {value}" for name, value in values.items()]
    return dg.MetadataValue.md("\n".join([title, "```", *lines, "```"]))


def _cell(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    return text if len(text) <= _CELL else text[: _CELL - 1] + "…"


_MARKS = "█▓▒░▚▤▥▧●◆"  # one for each part, repeated after ten
_BAR = 24  # characters of the longest bar


def stacked_bars(rows: Sequence[str], parts: Mapping[str, Sequence[float]], *, title: str) -> dg.TableMetadataValue:
    """Return a table with a bar of text for each row; its header names the parts, and a minus precedes negative ones.

    Parts that are 0 in every row are left out. Names of rows come last: the UI cuts wide tables at the right.
    """
    used = {name: sizes for name, sizes in parts.items() if any(sizes)}
    marks = dict(zip(used, cycle(_MARKS), strict=False))
    longest = max((sum(abs(sizes[at]) for sizes in used.values()) for at in range(len(rows))), default=0.0) or 1.0

    def bar(at: int, sign: int) -> str:
        drawn, end = "", 0.0
        for name, sizes in used.items():
            end += max(sign * sizes[at], 0.0)
            drawn += marks[name] * (round(_BAR * end / longest) - len(drawn))
        return drawn

    lines = []
    for at, row in enumerate(rows):
        total, negative = sum(sizes[at] for sizes in used.values()), bar(at, -1)
        lines.append((f"{total:.3g}", bar(at, 1) + (f" −{negative}" if negative else ""), row))
    return table(["sum", ", ".join(f"{mark} {name}" for name, mark in marks.items()) or "parts", title], lines)
