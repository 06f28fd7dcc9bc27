"""How good final lists are: figures with intervals, differences between lists, and calibration (SPEC G17)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

import numpy as np

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.final_lists import (
    OWN,
    JudgedList,
    judged_day,
    judged_lists_of,
    list_names,
    newest_judged_day,
)
from paper_assets.evaluation.fitting import held_out_fits, parts_of
from paper_assets.evaluation.judged_lists import (
    ON_TOPIC,
    UNJUDGED,
    JudgedLists,
    JudgedProfile,
    load_judged_lists,
    scratch_warehouse,
)
from paper_assets.evaluation.metrics import (
    Comparison,
    Evaluation,
    Floats,
    Mean,
    compare,
    exponential_gain,
    means,
    ndcg,
    precision,
)
from paper_assets.evaluation.rankers import shipped_lists
from paper_assets.profile import Purpose
from paper_assets.ranking.calibration import Calibration
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.settings import EvaluationConfig, ScoringConfig
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.warehouse import Warehouse

PURPOSES: tuple[str, ...] = (OWN, *get_args(Purpose))
QUALITY = ("precision@5", "precision@10", "ndcg@10", "on_topic")  # what two lists are compared by
COUNTS = ("shown", "shown_unjudged", "unjudged@10")
METRICS = (*QUALITY, *COUNTS)

_BIN_EDGES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
_NEARLY_SURE = 1e-9  # log loss takes no probability for certain


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """All lists of a set: `outcomes` by (list, purpose), the lists themselves, and what was fixed for them."""

    outcomes: Mapping[tuple[str, str], Evaluation]
    lists: Mapping[tuple[str, str], Mapping[str, JudgedList]]  # by profile
    as_of: date
    held_out: bool  # each profile was ranked with coefficients fitted without it

    @property
    def keys(self) -> list[tuple[str, str]]:
        return list(self.outcomes)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """Candidates by relevance. `on_topic` takes unjudged papers for off topic, `of_judged` leaves them out."""

    low: float
    high: float
    papers: int
    judged: int
    mean: float
    on_topic: float
    of_judged: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """How well relevance is a probability: `error` is the expected calibration error over the bins."""

    bins: tuple[CalibrationBin, ...]
    brier: float
    log_loss: float
    error: float


def list_figures(listed: JudgedList, judged: JudgedProfile) -> Floats:
    """The METRICS of one list. Papers without a grade count as not relevant, except in `on_topic`, and are counted.

    `on_topic` is the share of relevant ones among the judged papers that are shown, NaN where there is none.
    """
    grades = listed.grades
    relevant, unjudged = grades >= ON_TOPIC, grades == UNJUDGED
    gains = exponential_gain(grades.astype(np.float64))
    pool = exponential_gain(np.array(list(judged.grades.values()), dtype=np.float64))
    shown_judged = listed.shown & ~unjudged
    on_topic = relevant[shown_judged].mean() if shown_judged.any() else np.nan
    return np.array(
        [
            precision(relevant, k=5),
            precision(relevant, k=10),
            ndcg(gains, pool, k=10),
            on_topic,
            listed.shown.sum(),
            (listed.shown & unjudged).sum(),
            unjudged[:10].sum(),
        ]
    )


def judge_lists(
    warehouse: Warehouse,
    lists: JudgedLists,
    *,
    names: Sequence[str],
    purposes: Sequence[str],
    as_of: date,
    embed: Embed,
    scoring: ScoringConfig,
    top_k: int | None = None,
    leave_one_out: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Figures:
    """Make and judge the named lists (none: all) for each purpose. Raises InvalidInput for a name that is none.

    With `leave_one_out` each profile is ranked with coefficients that were fitted to all the others.
    """
    known = list_names(lists)
    for name in names:
        if name not in known:
            raise InvalidInput(f"no list {name!r} for this set; choose among {', '.join(known)}")
    for purpose in purposes:
        if purpose not in PURPOSES:
            raise InvalidInput(f"no purpose {purpose!r}; choose among {', '.join(PURPOSES)}")
    wanted, asked = list(dict.fromkeys(names)) or known, list(dict.fromkeys(purposes)) or [OWN]
    made: dict[tuple[str, str], dict[str, JudgedList]] = {(name, of): {} for of in asked for name in wanted}
    fits: Mapping[str, Calibration] = {}
    if leave_one_out:
        each = (
            (judged.name, judged_day(warehouse, judged, as_of=as_of, purpose="general", embed=embed, scoring=scoring))
            for judged in lists.profiles
        )
        fits = held_out_fits({name: parts_of(day, embed=embed, scoring=scoring) for name, day in each})
    done, total = 0, len(asked) * len(lists.profiles)
    for purpose in asked:
        for judged in lists.profiles:
            progress(done, total)
            day = judged_day(warehouse, judged, as_of=as_of, purpose=purpose, embed=embed, scoring=scoring, top_k=top_k)
            found = judged_lists_of(day, wanted, embed=embed, scoring=scoring, calibration=fits.get(judged.name))
            for name, listed in found.items():
                made[name, purpose][judged.name] = listed
            done += 1
    by_name = {judged.name: judged for judged in lists.profiles}
    outcomes = {
        key: Evaluation(
            metrics=METRICS,
            query_ids=tuple(by_profile),
            values=np.array([list_figures(listed, by_name[name]) for name, listed in by_profile.items()]),
        )
        for key, by_profile in made.items()
    }
    return Figures(outcomes=outcomes, lists=made, as_of=as_of, held_out=leave_one_out)


def together(figures: Figures, *, judging: EvaluationConfig) -> dict[tuple[str, str], dict[str, Mean]]:
    """Each list's mean over the profiles with its bootstrap interval, by metric."""
    return {
        key: {mean.metric: mean for mean in means(outcome, judging=judging)}
        for key, outcome in figures.outcomes.items()
    }


def against(figures: Figures, other: str, *, judging: EvaluationConfig) -> dict[tuple[str, str], dict[str, Comparison]]:
    """Each list minus another one, paired by profile: `NAME` is that list for the same purpose, `NAME@PURPOSE` for one.

    Raises InvalidInput if it was not judged.
    """
    name, _, purpose = other.partition("@")
    found = {}
    for key, outcome in figures.outcomes.items():
        basis = (name, purpose or key[1])
        if basis not in figures.outcomes:
            told = ", ".join(f"{name}@{of}" for name, of in figures.outcomes)
            raise InvalidInput(f"--against {other}: not among the lists judged: {told}")
        if basis != key:
            pairs = compare(figures.outcomes[basis], outcome, judging=judging)
            found[key] = {pair.metric: pair for pair in pairs if pair.metric in QUALITY}
    return found


def calibration(figures: Figures, key: tuple[str, str]) -> CalibrationReport | None:
    """How a list's relevance, taken for a probability, agrees with the grades; None if it is not meant as one."""
    lists = figures.lists[key].values()
    if not lists or not all(listed.calibrated for listed in lists):
        return None
    return calibration_report(
        np.concatenate([listed.relevance for listed in lists]), np.concatenate([listed.grades for listed in lists])
    )


def calibration_report(probability: Floats, grades: np.ndarray) -> CalibrationReport:
    """Brier score, log loss and reliability by bins (Murphy & Winkler, 1977) of n papers, unjudged ones off topic."""
    relevant, judged = grades >= ON_TOPIC, grades != UNJUDGED
    edges = np.array(_BIN_EDGES)
    number = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, len(edges) - 2)
    bins, error = [], 0.0
    for position in range(len(edges) - 1):
        inside = number == position
        if not inside.any():
            continue
        mean, share = float(probability[inside].mean()), float(relevant[inside].mean())
        known = inside & judged
        bins.append(
            CalibrationBin(
                low=_BIN_EDGES[position],
                high=_BIN_EDGES[position + 1],
                papers=int(inside.sum()),
                judged=int(known.sum()),
                mean=mean,
                on_topic=share,
                of_judged=float(relevant[known].mean()) if known.any() else float("nan"),
            )
        )
        error += inside.mean() * abs(mean - share)
    sure = np.clip(probability, _NEARLY_SURE, 1 - _NEARLY_SURE)
    return CalibrationReport(
        bins=tuple(bins),
        brier=float(np.mean((probability - relevant) ** 2)),
        log_loss=float(-np.mean(np.where(relevant, np.log(sure), np.log1p(-sure)))),
        error=float(error),
    )


def figures_table(figures: Figures, *, judging: EvaluationConfig) -> tuple[list[str], list[tuple[str, ...]]]:
    """Header and rows of the table that people see, in the terminal and on the asset."""
    rows = []
    for (name, purpose), found in together(figures, judging=judging).items():
        outcome = figures.outcomes[name, purpose]
        rows.append(
            (
                name,
                purpose,
                *(interval(found[metric]) for metric in QUALITY),
                *(f"{outcome.of(metric).sum():.0f}" for metric in COUNTS),
            )
        )
    return ["list", "purpose", "P@5", "P@10", "nDCG@10", "on topic of shown", "shown", "unjudged", "of ten"], rows


def shipped_lists_table(
    *, embed: Embed, scoring: ScoringConfig, judging: EvaluationConfig, deadline: float
) -> tuple[list[str], list[tuple[str, ...]]]:
    """The table for the invented lists that come with the project, every list for the profiles' own purposes."""
    folder, papers = shipped_lists()
    lists = load_judged_lists(folder)
    with scratch_warehouse(read_papers(papers), deadline=deadline) as warehouse:
        as_of, _ = newest_judged_day(warehouse, lists)
        figures = judge_lists(warehouse, lists, names=(), purposes=(), as_of=as_of, embed=embed, scoring=scoring)
    return figures_table(figures, judging=judging)


def interval(mean: Mean) -> str:
    """A mean with its interval; a dash where the metric applies to no profile."""
    return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]" if mean.queries else "–"


def first_places(listed: JudgedList, *, places: int = 10) -> list[dict[str, Any]]:
    """The head of a list for reading it by eye; a grade of None is unjudged."""
    return [
        {
            "paper_id": listed.paper_ids[row],
            "grade": None if listed.grades[row] == UNJUDGED else int(listed.grades[row]),
            "shown": bool(listed.shown[row]),
            "relevance": float(listed.relevance[row]),
        }
        for row in range(min(places, len(listed.paper_ids)))
    ]
