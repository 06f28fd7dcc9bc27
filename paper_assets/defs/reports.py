"""Reports of the pipeline as Dagster metadata, drawn so that a person can judge a partition without a database.

Belongs here: tables, small plots and counts, and the events that carry them. Not here: what is shown of which asset
(pipeline/).
"""

import base64
import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg

from paper_assets.defs.stacked_bars import stacked_bars
from paper_assets.errors import ClusterUnavailable, DoubtfulDay, PaperAssetsError, SourceError, StoreBusy
from paper_assets.pipeline.report import Bars, Columns, Link, Markdown, Report, Scatter, StackedBars, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ATTENDED = "paper_assets/attended"  # tag of a run that a person waits for at a terminal
_CELL = 90  # characters of a table cell; the UI wraps longer ones badly


def materializations(
    asset: str, reports: Mapping[str, Report], check_results: Sequence[dg.AssetCheckResult] = ()
) -> Iterator[Any]:
    """Events of one asset for all partitions of a run (by key), each with its own data version.

    Dagster gives all partitions of one output the same data version, so that a chunk of days would look changed
    wherever one day changed. Therefore a run over several partitions reports each of them once more, afterwards.
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
    yield dg.MaterializeResult(asset_key=asset, check_results=checks)
    yield from separately(asset, reports)


def separately(asset: str, reports: Mapping[str, Report]) -> Iterator[dg.AssetMaterialization]:
    """One event a partition, outside the step's own output."""
    for key, report in reports.items():
        yield dg.AssetMaterialization(
            asset_key=asset,
            partition=key,
            metadata=metadata_of(report),
            tags={"dagster/data_version": report.data_version},
        )


def metadata_of(report: Report) -> dict[str, Any]:
    """A report's values as Dagster shows them."""
    return {name: _drawn(value) for name, value in report.values.items()}


def _drawn(value: Value) -> Any:
    match value:
        case Table(header, rows):
            return markdown_table(header, rows)
        case Columns(named):
            return columns(*named)
        case Bars(counts, title):
            return bars(counts, title=title)
        case StackedBars(rows, parts, title):
            return dg.MetadataValue.md(stacked_bars(rows, parts, title=title))
        case Scatter(points, groups, title):
            return scatter(points, groups, title=title)
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
    """Let what a user can cause fail the run with its one line instead of a stack trace (SPEC 8).

    The asset's retry policy holds only for what may mend itself, and only where nobody is waiting for the run.
    """
    try:
        yield
    except (dg.DagsterExecutionInterruptedError, KeyboardInterrupt):
        # Dagster's retry policy takes a stop for a failure and starts the step again. The run is over: cancelled if it
        # was terminated, else failed, and tried again by the daemon (run_retries).
        raise dg.Failure(description="stopped from outside", allow_retries=False) from None
    except PaperAssetsError as error:
        lasts = isinstance(error, DoubtfulDay)  # for an hour, or until a person has looked
        mends_itself = (
            isinstance(error, SourceError | StoreBusy | ClusterUnavailable)
            and not lasts
            and ATTENDED not in context.run.tags
        )
        raise dg.Failure(description=f"{error.code}: {error}", allow_retries=mends_itself) from None


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> dg.MarkdownMetadataValue:
    """A preview as a Markdown table; cells are cut and cannot break the table or smuggle in markup."""
    lines = ["| " + " | ".join(header) + " |", "|" + " --- |" * len(header)]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def columns(*named: tuple[str, str, str]) -> dg.TableSchemaMetadataValue:
    """Table schema from (name, type, description)."""
    return dg.MetadataValue.table_schema(
        dg.TableSchema([dg.TableColumn(name, kind, description=text) for name, kind, text in named])
    )


def bars(values: Mapping[str, int], *, title: str) -> dg.MarkdownMetadataValue:
    """Counts as bars of text, in the given order: an import reports hundreds of days, and a picture takes 0.1 s."""
    most = max([1, *values.values()])
    lines = [f"{name[:28]:<28} {'█' * round(40 * value / most)} {value}" for name, value in values.items()]
    return dg.MetadataValue.md("\n".join([title, "```", *lines, "```"]))


def scatter(points: Any, groups: Sequence[str], *, title: str) -> dg.MarkdownMetadataValue:
    """Points (n, 2) coloured by group; only the five largest groups have a colour of their own."""
    largest = sorted(set(groups), key=lambda group: (-groups.count(group), group))[:5]
    figure, axes = _plot(2.6, inside=(0.02, 0.02, 0.96, 0.88))
    for group in [*largest, None]:
        chosen = [i for i, name in enumerate(groups) if (name == group if group else name not in largest)]
        if chosen:
            axes.scatter(points[chosen, 0], points[chosen, 1], s=6, label=group or "other")
    axes.legend(fontsize=6, frameon=False)
    axes.set_xticks([])
    axes.set_yticks([])
    return _picture(figure, title)


def _plot(inches: float, *, inside: tuple[float, float, float, float]) -> tuple["Figure", "Axes"]:
    """A small figure of this height whose axes fill `inside` (left, bottom, width, height as shares)."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, inches), dpi=80)
    axes = figure.add_axes(inside)
    axes.tick_params(labelsize=7)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return figure, axes


def _picture(figure: "Figure", title: str) -> dg.MarkdownMetadataValue:
    """The figure's PNG as a data address, small enough for the event log (about 10 kB)."""
    figure.text(0.02, 0.985, title, fontsize=8, va="top")
    png = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a title in a script the font lacks shows boxes
        figure.savefig(png, format="png")
    return dg.MetadataValue.md(f"![{title}](data:image/png;base64,{base64.b64encode(png.getvalue()).decode('ascii')})")


def _cell(value: object) -> str:
    text = f"{value:.3f}" if isinstance(value, float) else str(value)
    text = " ".join(text.split())
    text = text if len(text) <= _CELL else text[: _CELL - 1] + "…"
    for mark in "\\|`[]<>*_$!":
        text = text.replace(mark, f"\\{mark}" if mark not in "<>" else {"<": "&lt;", ">": "&gt;"}[mark])
    return text
