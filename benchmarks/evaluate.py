"""Evaluate rankings: relevance on labelled sets, final lists on judged lists, replayed days.

python -m benchmarks.evaluate FOLDER                        # relevance on a labelled set; default: the shipped one
python -m benchmarks.evaluate --lists DIR --papers FILE     # final lists, relevance alone, baselines
python -m benchmarks.evaluate --replay                      # consecutive days as a subscriber sees them
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.evaluation import list_quality
from benchmarks.evaluation.final_lists import newest_judged_day
from benchmarks.evaluation.judged_lists import (
    JudgedLists,
    joined,
    load_judged_lists,
    papers_or_home,
    replay_figures,
    replay_table,
    scratch_warehouse,
    shown_papers,
)
from benchmarks.evaluation.labelled_set import load_labelled_set
from benchmarks.evaluation.metrics import Comparison, EvaluationConfig, compare, means
from benchmarks.evaluation.rankers import outcomes, shipped_lists, shipped_set
from benchmarks.evaluation.replay import ReplayOptions, replayed_days
from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    open_warehouse,
    print_json,
    print_table,
    progress_bar,
    read_settings,
    say,
)
from paper_assets.interfaces.values import parse_day
from paper_assets.models.embedder import known_name, load_embedder
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.ranking_call import remembering_embedder
from paper_assets.settings import Settings
from paper_assets.stores.papers import papers_between, papers_by_id
from paper_assets.stores.warehouse import Warehouse


def number(value: float) -> str:
    """Format a number with at most three decimals, NaN as a dash."""
    return "–" if value != value else f"{value:.3f}".rstrip("0").rstrip(".")


def difference(pair: Comparison) -> str:
    """Return a difference with its interval; a dash where the metric applies to no query of the set."""
    return f"{pair.difference:+.3f} [{pair.low:+.3f}, {pair.high:+.3f}]" if applies(pair) else "–"


def applies(pair: Comparison) -> bool:
    """Return whether the metric applies to any query of the set."""
    return bool(pair.better + pair.worse + pair.equal)


def show_relevance(labelled: Path | None, names: list[str], against: str | None, *, as_json: bool) -> None:
    """Show how the rankers `names` do on the set (None: the shipped one), the first compared with `against`."""
    if against and len(names) != 1:
        raise InvalidInput("--against compares with exactly one --mode; give both")
    settings, judging, warehouse = read_settings(), EvaluationConfig(), open_warehouse()

    known = load_labelled_set(labelled or shipped_set())
    rankers = [*names, *([against] if against else [])]
    judged = outcomes(
        known, rankers, embed=remembering_embedder(settings, warehouse), scoring=settings.scoring, judging=judging
    )
    figures = {name: means(outcome, judging=judging) for name, outcome in judged.items()}
    pairs = compare(judged[against], judged[names[0]], judging=judging) if against else []
    if as_json:
        return print_json(
            {
                "set": known.name,
                "unknown": known.unknown,
                "rankers": {name: [asdict(mean) for mean in metrics] for name, metrics in figures.items()},
                "comparison": [asdict(pair) for pair in pairs],
            }
        )
    if known.unknown:
        say(f"left out: {known.unknown} judgements of documents that the set does not hold")
    metrics = [mean.metric for mean in next(iter(figures.values()))]
    print_table(
        f"{known.name}: {len(known.documents)} documents, {len(known.judged_queries)} judged queries",
        ["ranker", *metrics],
        [(name, *(list_quality.interval(mean) for mean in values)) for name, values in figures.items()],
    )
    if pairs:
        print_table(
            f"{names[0]} minus {against}, paired",
            ["metric", "difference", "p", "better", "worse", "equal"],
            [
                (
                    pair.metric,
                    difference(pair),
                    f"{pair.p_value:.3f}" if applies(pair) else "–",
                    pair.better,
                    pair.worse,
                    pair.equal,
                )
                for pair in pairs
            ],
        )


def show_lists(
    sets: Sequence[JudgedLists],
    papers: Path | None,
    as_of: date | None,
    choice: list_quality.ListChoice,
    against: str | None,
    settings: Settings,
    *,
    as_json: bool,
) -> None:
    """Judge the lists of `as_of` (None: the newest judged paper's day), each against one of them (None: the first)."""
    judging, home = EvaluationConfig(), open_warehouse()
    with (
        papers_or_home(papers, home, deadline=settings.store_deadline) as warehouse,
        progress_bar("judging lists") as progress,
    ):
        days = [newest_judged_day(warehouse, judged_set) for judged_set in sets]
        unknown = sum(missing for _, missing in days)
        judged = joined([(judged_set, as_of or newest) for judged_set, (newest, _) in zip(sets, days, strict=True)])
        figures = list_quality.judge_lists(
            warehouse,
            judged,
            choice,
            as_of=as_of or days[0][0],
            embed=remembering_embedder(settings, home),
            model=known_name(settings.embedding_model),
            scoring=settings.scoring,
            progress=progress,
        )
    basis = against or figures.keys[0][0]
    pairs = list_quality.against(figures, basis, judging=judging)
    calibration = list_quality.calibration(figures, figures.keys[0])
    if as_json:
        return print_json(_lists_json(judged, figures, basis, pairs, calibration, unknown, judging))
    if unknown:
        say(f"left out: {unknown} judged papers that are not known here")
    _print_lists(judged, figures, basis, pairs, judging=judging)
    if calibration:
        _print_calibration(figures, calibration)


def _print_lists(
    judged: JudgedLists,
    figures: list_quality.Figures,
    basis: str,
    pairs: list_quality.Differences,
    *,
    judging: EvaluationConfig,
) -> None:
    """Print the figures of the lists: together, by kind of reader, what is shown, compared, and by profile."""
    header, rows = list_quality.figures_table(figures, judging=judging)
    print_table(f"{judged.name}: {len(judged.profiles)} profiles, {figures.day}{_held_out(figures)}", header, rows)
    print_table("by kind of reader, the list as it is shown", *list_quality.kinds_table(figures))
    print_table("what is shown", *list_quality.traits_table(figures))
    print_table(
        f"minus {basis}, paired by profile",
        ["list", "purpose", *list_quality.QUALITY],
        [
            (*key, *(difference(differences[metric]) for metric in list_quality.QUALITY))
            for key, differences in pairs.items()
        ],
    )
    name, purpose = figures.keys[0]
    outcome = figures.outcomes[name, purpose]
    print_table(
        f"{name}, purpose {purpose}, by profile",
        ["profile", *list_quality.METRICS],
        [
            (profile, *(number(value) for value in values))
            for profile, values in zip(outcome.query_ids, outcome.values, strict=True)
        ],
    )


def _print_calibration(figures: list_quality.Figures, calibration: list_quality.CalibrationReport) -> None:
    """Print how well the relevance in the first list agrees with the grades, overall and by kind of reader."""
    name, _ = figures.keys[0]
    print_table(
        f"{name}: relevance as a probability; Brier {calibration.brier:.4f}, "
        f"log loss {calibration.log_loss:.4f}, calibration error {calibration.error:.4f}",
        ["relevance", "papers", "judged", "mean", "on topic", "of judged"],
        [
            (
                f"{calibration_bin.low:g}-{calibration_bin.high:g}",
                calibration_bin.papers,
                calibration_bin.judged,
                *map(number, (calibration_bin.mean, calibration_bin.on_topic, calibration_bin.of_judged)),
            )
            for calibration_bin in calibration.bins
        ],
    )
    reports = list_quality.calibration_by_kind(figures, figures.keys[0])
    print_table("relevance as a probability, by kind of reader", *list_quality.reliability_table(reports))


def _held_out(figures: list_quality.Figures) -> str:
    return ", each by coefficients fitted to the others" if figures.held_out else ""


def _lists_json(
    judged: JudgedLists,
    figures: list_quality.Figures,
    basis: str,
    pairs: list_quality.Differences,
    calibration: list_quality.CalibrationReport | None,
    unknown: int,
    judging: EvaluationConfig,
) -> dict[str, Any]:
    summary, kinds = list_quality.together(figures, judging=judging), list_quality.by_kind(figures)
    return {
        "set": judged.name,
        "as_of": figures.day,
        "unknown": unknown,
        "held_out": figures.held_out,
        "lists": [
            {
                "list": name,
                "purpose": purpose,
                "kinds": {kind: figures_of_kind[name, purpose] for kind, figures_of_kind in kinds.items()},
                "together": {metric: asdict(mean) for metric, mean in summary[name, purpose].items()},
                "profiles": {
                    profile: {
                        **dict(zip(outcome.metrics, values.tolist(), strict=True)),
                        "papers": list_quality.first_places(figures.lists[name, purpose][profile]),
                    }
                    for profile, values in zip(outcome.query_ids, outcome.values, strict=True)
                },
            }
            for (name, purpose), outcome in figures.outcomes.items()
        ],
        "against": basis,
        "comparisons": [
            {"list": name, "purpose": purpose, **{metric: asdict(pair) for metric, pair in differences.items()}}
            for (name, purpose), differences in pairs.items()
        ],
        "calibration": asdict(calibration) if calibration else None,
    }


def show_replay(
    judged: JudgedLists,
    papers: Path | None,
    last: date | None,
    options: ReplayOptions,
    settings: Settings,
    *,
    as_json: bool,
) -> None:
    """Rank the days up to `last` (None: the newest judged paper's) and show what a subscriber would have seen."""
    home = open_warehouse()
    with _days_to_write(papers, home, judged, last, deadline=settings.store_deadline) as (warehouse, day):
        with progress_bar("replaying days") as progress:
            replayed = replayed_days(
                warehouse,
                judged,
                options,
                last=day,
                embedder=load_embedder(settings.embedding_model),
                embed=remembering_embedder(settings, home),
                settings=settings,
                progress=progress,
            )
        shown = sorted(
            {paper_id for days in replayed.values() for replayed_day in days for paper_id in replayed_day.shown}
        )
        titles = {paper.paper_id: paper.title for paper in papers_from_table(papers_by_id(warehouse, shown))}
    figures = [replay_figures(profile, replayed[profile.name]) for profile in judged.profiles]
    if as_json:
        return print_json(
            {
                "set": judged.name,
                "last": f"{day}",
                "days": options.days,
                "k": options.top_k,
                "profiles": [
                    {
                        **asdict(profile_figures),
                        "share": profile_figures.share,
                        "lists": shown_papers(profile, replayed[profile.name], titles),
                    }
                    for profile, profile_figures in zip(judged.profiles, figures, strict=True)
                ],
            }
        )
    header, rows = replay_table(figures)
    title = f"{judged.name}: {options.days} days up to {day}, {options.top_k} papers a day, none twice"
    print_table(title, header, rows)


@contextmanager
def _days_to_write(
    papers: Path | None, home: Warehouse, judged: JudgedLists, last: date | None, *, deadline: float
) -> Iterator[tuple[Warehouse, date]]:
    """Yield a warehouse to write rankings to, and the last day: the given one, else the newest judged paper's."""
    with papers_or_home(papers, home, deadline=deadline) as warehouse:
        day = last or newest_judged_day(warehouse, judged)[0]
        if papers is not None:
            yield warehouse, day
            return
        stored = papers_from_table(papers_between(warehouse, None, day))
    with scratch_warehouse(stored, deadline=deadline) as copy:
        yield copy, day


def _check_list_options(listing: Mapping[str, Any], *, replay: bool, comparing: bool) -> None:
    """Raise InvalidInput for a number out of range, and for options that do not go with --replay, or only with it."""
    for option, most in (("--days", _MOST_DAYS), ("--k", _MOST_K)):
        if listing[option] is not None and not 1 <= listing[option] <= most:
            raise InvalidInput(f"{option} must be a whole number from 1 to {most}, got {listing[option]}")
    if not replay and listing["--days"] is not None:
        raise InvalidInput("--days belongs to --replay; give both")
    if replay and (comparing or listing["--purpose"] or listing["--leave-one-out"]):
        raise InvalidInput(
            "--replay takes the profiles as they are and one --mode; it knows no --against, --purpose, --leave-one-out"
        )


def _lists_to_judge(folders: Sequence[Path] | None, papers: Path | None) -> tuple[list[JudgedLists], Path | None]:
    """Load the judged lists, or else the shipped ones, whose papers are shipped too."""
    if folders:
        return [load_judged_lists(folder) for folder in folders], papers
    folder, shipped = shipped_lists()
    return [load_judged_lists(folder)], papers or shipped


_REPLAY_DAYS, _REPLAY_K = 14, 5
_MOST_DAYS, _MOST_K = 400, 1000

Labelled = Annotated[
    Path | None, typer.Argument(help="Folder with docs, queries or profiles, and qrels; default: the shipped set.")
]
JudgedFolders = Annotated[
    list[Path] | None,
    typer.Option(help="Judge final lists: a folder with profiles.json and grades.json; may be repeated."),
]
Replay = Annotated[
    bool, typer.Option("--replay", help="Rank consecutive days as a subscriber sees them; default: shipped lists.")
]
DayOfLists = Annotated[
    str | None,
    typer.Option(metavar="YYYY-MM-DD", help="Day of the lists; default: the newest judged paper's."),
]
Purposes = Annotated[
    list[str] | None, typer.Option(help="A purpose, or own: the profile's; may be repeated; default: own.")
]
LeaveOneOut = Annotated[
    bool,
    typer.Option(
        "--leave-one-out", help="Rank each profile by coefficients fitted to the other sets (of one set: profiles)."
    ),
]


def evaluate(
    labelled: Labelled = None,
    lists: JudgedFolders = None,
    replay: Replay = False,
    papers: Annotated[
        Path | None, typer.Option(help="Bulk file of the papers of --lists; default: the warehouse.")
    ] = None,
    as_of: DayOfLists = None,
    mode: Annotated[
        list[str] | None, typer.Option(help="A mode, list or baseline; may be repeated; default: all.")
    ] = None,
    purpose: Purposes = None,
    against: Annotated[
        str | None, typer.Option(help="Compare with this one, paired; of lists NAME or NAME@PURPOSE.")
    ] = None,
    leave_one_out: LeaveOneOut = False,
    days: Annotated[int | None, typer.Option(help=f"Days to replay; default: {_REPLAY_DAYS}.")] = None,
    k: Annotated[
        int | None, typer.Option("--k", help=f"Papers shown; default: the profile's, in a replay {_REPLAY_K}.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure relevance on a labelled set, or the quality of final lists. Lists: --lists or --replay."""
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
    _check_list_options(listing, replay=replay, comparing=bool(against) or len(mode or []) > 1)
    settings = read_settings()
    sets, papers = _lists_to_judge(lists, papers)
    day = parse_day(as_of, "--as-of") if as_of else None
    if replay:
        if len(sets) > 1:
            raise InvalidInput("--replay takes one --lists")
        options = ReplayOptions(
            days=days or _REPLAY_DAYS, top_k=k or _REPLAY_K, interest_mode=mode[0] if mode else None
        )
        return show_replay(sets[0], papers, day, options, settings, as_json=as_json)
    choice = list_quality.ListChoice(names=mode or (), purposes=purpose or (), top_k=k, leave_one_out=leave_one_out)
    show_lists(sets, papers, day, choice, against, settings, as_json=as_json)


def main() -> None:
    """Run the command; an error ends in one line on stderr and exit code 1."""
    command = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    command.command()(evaluate)
    try:
        command()
    except PaperAssetsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
