"""The command that judges rankings: relevance on labelled sets, final lists on judged lists, days as they are read."""

from pathlib import Path
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.judged_lists import load_judged_lists
from paper_assets.evaluation.rankers import shipped_lists
from paper_assets.interfaces.cli.arguments import AsJson, read_settings
from paper_assets.interfaces.cli.judging_lists import show_lists
from paper_assets.interfaces.cli.judging_relevance import show_relevance
from paper_assets.interfaces.cli.replaying import show_replay
from paper_assets.interfaces.days import parse_day

_REPLAY_DAYS, _REPLAY_K = 14, 5
_MOST_DAYS, _MOST_K = 400, 1000


def evaluate(
    labelled: Annotated[
        Path | None, typer.Argument(help="Folder with docs, queries or profiles, and qrels; default: the shipped set.")
    ] = None,
    lists: Annotated[
        Path | None, typer.Option(help="Judge final lists: a folder with profiles.json and grades.json.")
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Rank consecutive days as a subscriber sees them; default: shipped lists.")
    ] = False,
    papers: Annotated[
        Path | None, typer.Option(help="Bulk file of the papers of --lists; default: the warehouse.")
    ] = None,
    as_of: Annotated[
        str | None,
        typer.Option(metavar="YYYY-MM-DD", help="Day of the lists; default: the newest judged paper's."),
    ] = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="A mode, list or baseline; may be repeated; default: all.")
    ] = None,
    purpose: Annotated[
        list[str] | None, typer.Option(help="A purpose, or own: the profile's; may be repeated; default: own.")
    ] = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with this one, paired; of lists NAME or NAME@PURPOSE.")
    ] = None,
    leave_one_out: Annotated[
        bool, typer.Option("--leave-one-out", help="Rank each profile by coefficients fitted to the other ones.")
    ] = False,
    days: Annotated[int | None, typer.Option(help=f"Days to replay; default: {_REPLAY_DAYS}.")] = None,
    k: Annotated[
        int | None, typer.Option("--k", help=f"Papers shown; default: the profile's, in a replay {_REPLAY_K}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure relevance on a labelled set, or the lists that a reader gets. The latter with --lists or --replay."""
    listing = {
        "--papers": papers,
        "--as-of": as_of,
        "--purpose": purpose,
        "--leave-one-out": leave_one_out or None,
        "--days": days,
        "--k": k,
    }
    if not (lists or replay):
        if misplaced := next((option for option, value in listing.items() if value is not None), None):
            raise InvalidInput(f"{misplaced} belongs to --lists DIR or --replay; give one of them")
        return show_relevance(labelled, mode or [], against, as_json=as_json)
    if labelled:
        raise InvalidInput(f"{labelled}: a labelled set is judged without --lists and --replay")
    for option, value, most in (("--days", days, _MOST_DAYS), ("--k", k, _MOST_K)):
        if value is not None and not 1 <= value <= most:
            raise InvalidInput(f"{option} must be a whole number from 1 to {most}, got {value}")
    if not replay and days is not None:
        raise InvalidInput("--days belongs to --replay; give both")
    if replay and (against or purpose or leave_one_out or len(mode or []) > 1):
        raise InvalidInput(
            "--replay takes the profiles as they are and one --mode; it knows no --against, --purpose, --leave-one-out"
        )
    settings = read_settings()
    if lists is None:
        lists, shipped = shipped_lists()
        papers = papers or shipped
    judged = load_judged_lists(lists)
    day = parse_day(as_of, "--as-of") if as_of else None
    if replay:
        only = mode[0] if mode else None
        return show_replay(judged, papers, day, only, days or _REPLAY_DAYS, k or _REPLAY_K, settings, as_json=as_json)
    show_lists(
        judged,
        papers,
        day,
        mode or [],
        purpose or [],
        against,
        k,
        settings,
        leave_one_out=leave_one_out,
        as_json=as_json,
    )
