"""The command that catches up: months of papers by OAI-PMH, as arXiv asks of who wants many."""

from dataclasses import asdict
from typing import Annotated

import typer

from paper_assets.defs import runs
from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.cli.arguments import AsJson
from paper_assets.interfaces.cli.graph import open_desk
from paper_assets.interfaces.cli.terminal import print_json, progress_bar, say, warn
from paper_assets.interfaces.days import parse_day
from paper_assets.pipeline.harvest import Harvest
from paper_assets.pipeline.harvest import harvest as bring_in
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.arxiv_oai import sets_of

_SHOWN = 20  # records that are no papers


def harvest(
    first: Annotated[str, typer.Option("--from", metavar="YYYY-MM-DD", help="First day.")],
    until: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Last day of changes; default: now. Later revisions then lack."),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", help="One of arXiv's sets, like cs:cs:CL; default: those of the followed categories."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Bring in months of papers by arXiv's OAI-PMH; stopped at any moment, the same command goes on from there."""
    from_day, last = parse_day(first, "--from"), parse_day(until, "--until") if until else None
    with open_desk() as (workspace, instance), progress_bar("harvesting") as count:
        if not from_day <= (last or from_day) <= workspace.clock().date():
            raise InvalidInput("--from and --until must lie before today or on it, in this order")
        asked = Harvest(first=from_day, last=last, sets=tuple(sets or sets_of(workspace.settings.categories)))
        if not asked.sets:
            raise InvalidInput("no category to harvest; set PAPER_ASSETS_CATEGORIES, or give --set")
        try:
            done = bring_in(workspace, ARXIV, asked, progress=lambda read: count(read, None))
        except PaperAssetsError:
            runs.report_papers(instance, workspace)  # what was kept is there to be used
            raise
        days = runs.report_papers(instance, workspace)
    for fault in done.faults[:_SHOWN]:
        warn(f"left out: {fault}")
    if len(done.faults) > _SHOWN:
        warn(f"left out: {len(done.faults) - _SHOWN} more")
    outcome = {**asdict(done), "faults": len(done.faults), "days_reported": days}
    if as_json:
        return print_json(outcome)
    say(", ".join(f"{name.replace('_', ' ')} {value}" for name, value in outcome.items() if value or name == "read"))
