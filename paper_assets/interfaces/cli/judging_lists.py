"""`evaluate --lists`: final lists on judged ones, their relevance alone, and baselines."""

from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

from paper_assets.evaluation import list_quality
from paper_assets.evaluation.final_lists import newest_judged_day
from paper_assets.evaluation.judged_lists import JudgedLists, papers_or_home
from paper_assets.interfaces.cli.arguments import open_warehouse
from paper_assets.interfaces.cli.figures import difference, number
from paper_assets.interfaces.cli.terminal import print_json, print_table, progress_bar, say
from paper_assets.interfaces.embedding import remembering_embedder
from paper_assets.settings import EvaluationConfig, Settings


def show_lists(
    judged: JudgedLists,
    papers: Path | None,
    as_of: date | None,
    names: list[str],
    purposes: list[str],
    against: str | None,
    top_k: int | None,
    settings: Settings,
    *,
    leave_one_out: bool,
    as_json: bool,
) -> None:
    """Judge the lists of `as_of` (None: the newest judged paper's day), each against one of them (None: the first)."""
    judging, home = EvaluationConfig(), open_warehouse()
    with (
        papers_or_home(papers, home, deadline=settings.store_deadline) as warehouse,
        progress_bar("judging lists") as progress,
    ):
        newest, unknown = newest_judged_day(warehouse, judged)
        figures = list_quality.judge_lists(
            warehouse,
            judged,
            names=names,
            purposes=purposes,
            as_of=as_of or newest,
            embed=remembering_embedder(settings, home),
            scoring=settings.scoring,
            top_k=top_k,
            leave_one_out=leave_one_out,
            progress=progress,
        )
    basis = against or figures.keys[0][0]
    pairs = list_quality.against(figures, basis, judging=judging)
    calibration = list_quality.calibration(figures, figures.keys[0])
    if as_json:
        return print_json(_lists_json(judged, figures, basis, pairs, calibration, unknown, judging))
    if unknown:
        say(f"left out: {unknown} judged papers that are not known here")
    header, rows = list_quality.figures_table(figures, judging=judging)
    print_table(f"{judged.name}: {len(judged.profiles)} profiles, {figures.as_of}{_held_out(figures)}", header, rows)
    print_table(
        f"minus {basis}, paired by profile",
        ["list", "purpose", *list_quality.QUALITY],
        [(*key, *(difference(found[metric]) for metric in list_quality.QUALITY)) for key, found in pairs.items()],
    )
    name, of = figures.keys[0]
    outcome = figures.outcomes[name, of]
    print_table(
        f"{name}, purpose {of}, by profile",
        ["profile", *list_quality.METRICS],
        [
            (profile, *(number(value) for value in values))
            for profile, values in zip(outcome.query_ids, outcome.values, strict=True)
        ],
    )
    if calibration:
        print_table(
            f"{name}: relevance as a probability; Brier {calibration.brier:.4f}, "
            f"log loss {calibration.log_loss:.4f}, calibration error {calibration.error:.4f}",
            ["relevance", "papers", "judged", "mean", "on topic", "of judged"],
            [
                (
                    f"{one.low:g}-{one.high:g}",
                    one.papers,
                    one.judged,
                    *map(number, (one.mean, one.on_topic, one.of_judged)),
                )
                for one in calibration.bins
            ],
        )


def _held_out(figures: list_quality.Figures) -> str:
    return ", each by coefficients fitted to the others" if figures.held_out else ""


def _lists_json(
    judged: JudgedLists,
    figures: list_quality.Figures,
    basis: str,
    pairs: Any,
    calibration: list_quality.CalibrationReport | None,
    unknown: int,
    judging: EvaluationConfig,
) -> dict[str, Any]:
    summary = list_quality.together(figures, judging=judging)
    return {
        "set": judged.name,
        "as_of": f"{figures.as_of}",
        "unknown": unknown,
        "held_out": figures.held_out,
        "lists": [
            {
                "list": name,
                "purpose": purpose,
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
            {"list": name, "purpose": purpose, **{metric: asdict(pair) for metric, pair in found.items()}}
            for (name, purpose), found in pairs.items()
        ],
        "calibration": asdict(calibration) if calibration else None,
    }
