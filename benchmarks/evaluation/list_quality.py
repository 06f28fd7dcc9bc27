"""Measure final lists: metrics with intervals, differences between lists, and calibration (SPEC G17).

`judge_lists` makes and measures the lists, `together`, `against` and `calibration` summarize them, and the functions
that end in `_table` return a header and rows for readers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from typing import Any, get_args

import numpy as np

from benchmarks.evaluation.final_lists import (
    OWN,
    TRAITS,
    JudgedList,
    judged_day,
    judged_lists_of,
    list_names,
)
from benchmarks.evaluation.fitting import held_out_fits, parts_of
from benchmarks.evaluation.judged_lists import (
    GRADES,
    ON_TOPIC,
    UNJUDGED,
    JudgedLists,
    JudgedProfile,
)
from benchmarks.evaluation.metrics import (
    Comparison,
    Evaluation,
    EvaluationConfig,
    Floats,
    Mean,
    compare,
    exponential_gain,
    means,
    ndcg,
    precision,
)
from paper_assets.errors import InvalidInput
from paper_assets.profile import Purpose
from paper_assets.ranking.calibration import Calibration
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.settings import ScoringConfig
from paper_assets.stores.warehouse import Warehouse

PURPOSES: tuple[str, ...] = (OWN, *get_args(Purpose))
QUALITY = ("precision@5", "precision@10", "ndcg@5", "ndcg@10", "on_topic")  # in which two lists are compared
COUNTS = ("shown", "right", "shown_unjudged", "empty")
RECALL = "top_grade_reached"
METRICS = (*QUALITY, RECALL, *COUNTS)

_BIN_EDGES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
ALL_KINDS = "all"
_ENOUGH = 20  # bins with fewer papers are not shown
_NEARLY_SURE = 1e-9  # log loss limits probabilities to this distance from 0 and 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The lists of a set of profiles, and their metrics.

    Attributes:
        outcomes: METRICS of each profile, by (list, purpose).
        lists: the lists by profile, by (list, purpose).
        kinds: the kind of reader, by profile.
        days: the day of its lists, by profile.
        held_out: whether each profile was ranked with coefficients that were fitted without it.
    """

    outcomes: Mapping[tuple[str, str], Evaluation]
    lists: Mapping[tuple[str, str], Mapping[str, JudgedList]]
    kinds: Mapping[str, str]
    days: Mapping[str, date]
    held_out: bool

    @property
    def keys(self) -> list[tuple[str, str]]:
        """Return the keys of `outcomes`, in their order."""
        return list(self.outcomes)

    @property
    def day(self) -> str:
        """The days of the lists, in words."""
        return " and ".join(f"{day}" for day in sorted(set(self.days.values())))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListChoice:
    """Which lists to judge.

    Attributes:
        names: names of lists; empty means all.
        purposes: purposes; empty means the profile's own.
        top_k: number of places; None: as in the profile.
        leave_one_out: whether each profile is ranked with coefficients that were fitted to the other sets, or to the
            other profiles of the only set.
    """

    names: Sequence[str] = ()
    purposes: Sequence[str] = ()
    top_k: int | None = None
    leave_one_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBin:
    """The candidates with a relevance from `low` to `high`, and their mean relevance `mean`.

    `on_topic` is the share of papers on topic, unjudged ones counted as off topic; `of_judged` is the share among
    judged papers.
    """

    low: float
    high: float
    papers: int
    judged: int
    mean: float
    on_topic: float
    of_judged: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationReport:
    """How well relevance agrees with the grades; `error` is the expected calibration error over the bins."""

    bins: tuple[CalibrationBin, ...]
    brier: float
    log_loss: float
    error: float


def list_figures(listed: JudgedList, judged: JudgedProfile) -> Floats:
    """Compute the METRICS of one list from the papers that are shown; an empty place counts as a paper off topic.

    Papers without a grade count as off topic, except in `on_topic`. `on_topic` is the share of relevant papers among
    the judged papers shown, NaN if none is judged. `top_grade_reached` is the share of candidates with the highest
    grade that are shown or among the likely papers after the list. `empty` is 1 if nothing is shown although a
    candidate is relevant.
    """
    grades, shown = listed.grades, listed.shown
    relevant, unjudged = (grades >= ON_TOPIC) & shown, grades == UNJUDGED
    gains = exponential_gain(np.where(shown, grades, 0).astype(np.float64))
    pool = exponential_gain(np.array(list(judged.grades.values()), dtype=np.float64))
    shown_judged = shown & ~unjudged
    on_topic = relevant[shown_judged].mean() if shown_judged.any() else np.nan
    best = grades == max(GRADES)
    reached = shown if listed.within_reach is None else listed.within_reach
    return np.array(
        [
            precision(relevant, k=5),
            precision(relevant, k=10),
            ndcg(gains, pool, k=5),
            ndcg(gains, pool, k=10),
            on_topic,
            reached[best].mean() if best.any() else np.nan,
            shown.sum(),
            relevant.sum(),
            (shown & unjudged).sum(),
            not shown.any() and (grades >= ON_TOPIC).any(),
        ]
    )


def judge_lists(
    warehouse: Warehouse,
    lists: JudgedLists,
    choice: ListChoice,
    *,
    as_of: date,
    embed: Embed,
    scoring: ScoringConfig,
    model: str | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Figures:
    """Make and judge the chosen lists of each profile on its day, or on `as_of` if it has none.

    `model` is the name of the model behind `embed`; `progress` is called with the number done and the total.
    Raises InvalidInput for an unknown name or purpose.
    """
    names, purposes = _checked_choice(choice, list_names(lists))
    lists_by_key: dict[tuple[str, str], dict[str, JudgedList]] = {
        (name, wanted_purpose): {} for wanted_purpose in purposes for name in names
    }
    fits = _held_out(warehouse, lists, as_of=as_of, embed=embed, scoring=scoring) if choice.leave_one_out else {}
    by_name = {}  # with the grades of the day alone
    for done, (purpose, judged) in enumerate(product(purposes, lists.profiles)):
        progress(done, len(purposes) * len(lists.profiles))
        day = judged_day(
            warehouse,
            judged,
            as_of=judged.as_of or as_of,
            purpose=purpose,
            embed=embed,
            scoring=scoring,
            model=model,
            top_k=choice.top_k,
        )
        day_lists = judged_lists_of(day, names, embed=embed, scoring=scoring, calibration=fits.get(judged.name))
        for name, listed in day_lists.items():
            lists_by_key[name, purpose][judged.name] = listed
        by_name[judged.name] = day.judged
    outcomes = {
        key: Evaluation(
            metrics=METRICS,
            query_ids=tuple(by_profile),
            values=np.array([list_figures(listed, by_name[name]) for name, listed in by_profile.items()]),
        )
        for key, by_profile in lists_by_key.items()
    }
    return Figures(
        outcomes=outcomes,
        lists=lists_by_key,
        kinds={judged.name: judged.kind for judged in lists.profiles},
        days={judged.name: judged.as_of or as_of for judged in lists.profiles},
        held_out=choice.leave_one_out,
    )


def _checked_choice(choice: ListChoice, known: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the names and purposes to judge. Raises InvalidInput for an unknown one."""
    for name in choice.names:
        if name not in known:
            raise InvalidInput(f"no list {name!r} for this set; choose among {', '.join(known)}")
    for purpose in choice.purposes:
        if purpose not in PURPOSES:
            raise InvalidInput(f"no purpose {purpose!r}; choose among {', '.join(PURPOSES)}")
    return list(dict.fromkeys(choice.names)) or [*known], list(dict.fromkeys(choice.purposes)) or [OWN]


def _held_out(
    warehouse: Warehouse, lists: JudgedLists, *, as_of: date, embed: Embed, scoring: ScoringConfig
) -> Mapping[str, Calibration]:
    """Return by profile the calibration that was fitted to all other sets, or to all other profiles of one set."""
    parts = {}
    for judged in lists.profiles:
        today = judged.as_of or as_of
        day = judged_day(warehouse, judged, as_of=today, purpose="general", embed=embed, scoring=scoring)
        parts[judged.name] = parts_of(day, embed=embed, scoring=scoring)
    return held_out_fits(parts, groups={judged.name: judged.part or judged.name for judged in lists.profiles})


def together(figures: Figures, *, judging: EvaluationConfig) -> dict[tuple[str, str], dict[str, Mean]]:
    """Return for each list the means over the profiles with bootstrap intervals, by metric."""
    return {
        key: {mean.metric: mean for mean in means(outcome, judging=judging)}
        for key, outcome in figures.outcomes.items()
    }


Differences = Mapping[tuple[str, str], Mapping[str, Comparison]]  # by (list, purpose), by metric


def against(figures: Figures, other: str, *, judging: EvaluationConfig) -> Differences:
    """Return for each list the differences to the list `other`, paired by profile, by metric of QUALITY.

    `other` is `NAME`, the list of the same purpose, or `NAME@PURPOSE`. Raises InvalidInput if it was not judged.
    """
    name, _, purpose = other.partition("@")
    comparisons = {}
    for key, outcome in figures.outcomes.items():
        basis = (name, purpose or key[1])
        if basis not in figures.outcomes:
            available = ", ".join(f"{name}@{of}" for name, of in figures.outcomes)
            raise InvalidInput(f"--against {other}: not among the lists judged: {available}")
        if basis != key:
            pairs = compare(figures.outcomes[basis], outcome, judging=judging)
            comparisons[key] = {pair.metric: pair for pair in pairs if pair.metric in QUALITY}
    return comparisons


def calibration(figures: Figures, key: tuple[str, str]) -> CalibrationReport | None:
    """Return how the relevance of a list agrees with the grades; None if relevance is not a probability."""
    lists = figures.lists[key].values()
    if not lists or not all(listed.calibrated for listed in lists):
        return None
    return calibration_report(
        np.concatenate([listed.relevance for listed in lists]), np.concatenate([listed.grades for listed in lists])
    )


def calibration_report(probability: Floats, grades: np.ndarray) -> CalibrationReport:
    """Return Brier score, log loss and reliability by bins (Murphy & Winkler, 1977) of n papers.

    `probability` and `grades` are (n,). Unjudged papers count as off topic.
    """
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


def by_kind(figures: Figures) -> dict[str, dict[tuple[str, str], dict[str, float]]]:
    """Return the figures of each list for each kind of reader, and for all of them under ALL_KINDS.

    Metrics are means over the profiles to which they apply, counts are sums over the profiles. `precision` is the
    share of papers on topic among all judged papers shown.
    """
    kinds = [*dict.fromkeys(figures.kinds.values())]
    by_kind_of_reader: dict[str, dict[tuple[str, str], dict[str, float]]] = {}
    for kind in [*kinds, ALL_KINDS] if len(kinds) > 1 else [ALL_KINDS]:
        by_kind_of_reader[kind] = {}
        for key, outcome in figures.outcomes.items():
            rows = np.array([kind in (ALL_KINDS, figures.kinds[name]) for name in outcome.query_ids])
            values = {metric: outcome.of(metric)[rows] for metric in METRICS}
            known = {metric: column[~np.isnan(column)] for metric, column in values.items()}
            judged = values["shown"].sum() - values["shown_unjudged"].sum()
            by_kind_of_reader[kind][key] = {
                "readers": float(rows.sum()),
                **{metric: float(known[metric].mean()) if len(known[metric]) else np.nan for metric in QUALITY},
                RECALL: float(known[RECALL].mean()) if len(known[RECALL]) else np.nan,
                **{metric: float(values[metric].sum()) for metric in COUNTS},
                "precision": float(values["right"].sum() / judged) if judged else np.nan,
            }
    return by_kind_of_reader


def kinds_table(figures: Figures) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return the header and the rows of the figures by kind of reader."""
    rows = [
        (
            kind,
            f"{figures_of_list['readers']:.0f}",
            *key,
            *(_number(figures_of_list[metric]) for metric in ("precision@5", "ndcg@5", "ndcg@10", RECALL)),
            f"{figures_of_list['right']:.0f} of {figures_of_list['shown']:.0f}",
            _number(figures_of_list["precision"]),
            f"{figures_of_list['empty']:.0f}",
        )
        for kind, lists in by_kind(figures).items()
        for key, figures_of_list in lists.items()
    ]
    figures_shown = ["P@5", "nDCG@5", "nDCG@10", "grade 3 reached", "right of shown", "share", "empty"]
    return ["kind", "readers", "list", "purpose", *figures_shown], rows


def calibration_by_kind(figures: Figures, key: tuple[str, str]) -> dict[str, CalibrationReport]:
    """Return the calibration of a list for each kind of reader; empty if relevance is not a probability."""
    lists = figures.lists[key]
    if not all(listed.calibrated for listed in lists.values()):
        return {}
    return {
        kind: calibration_report(
            np.concatenate([lists[name].relevance for name in names]),
            np.concatenate([lists[name].grades for name in names]),
        )
        for kind in dict.fromkeys(figures.kinds.values())
        for names in ([name for name in lists if figures.kinds[name] == kind],)
    }


def reliability_table(reports: Mapping[str, CalibrationReport]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return header and rows: mean probability, share on topic and difference of each bin with enough papers."""
    rows = [
        (
            kind,
            f"{calibration_bin.low:g}-{calibration_bin.high:g}",
            f"{calibration_bin.papers}",
            *(
                _number(value)
                for value in (
                    calibration_bin.mean,
                    calibration_bin.on_topic,
                    calibration_bin.mean - calibration_bin.on_topic,
                )
            ),
        )
        for kind, report in reports.items()
        for calibration_bin in report.bins
        if calibration_bin.papers >= _ENOUGH
    ]
    return ["kind", "probability", "papers", "mean", "right", "difference"], rows


def traits_table(figures: Figures) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return header and rows: TRAITS of what each list shows, as means over the profiles."""
    rows = []
    for key, lists in figures.lists.items():
        values = np.array([[listed.traits.get(name, np.nan) for name in TRAITS] for listed in lists.values()])
        columns = [column[~np.isnan(column)] for column in values.T]
        if any(len(column) for column in columns):
            rows.append((*key, *(_number(float(column.mean())) if len(column) else "–" for column in columns)))
    return ["list", "purpose", *TRAITS], rows


def _number(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.3f}"


def figures_table(figures: Figures, *, judging: EvaluationConfig) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return header and rows of the main table, which `python -m benchmarks.evaluate` shows."""
    rows = []
    for (name, purpose), by_metric in together(figures, judging=judging).items():
        outcome = figures.outcomes[name, purpose]
        rows.append(
            (
                name,
                purpose,
                *(interval(by_metric[metric]) for metric in QUALITY),
                *(f"{outcome.of(metric).sum():.0f}" for metric in COUNTS),
            )
        )
    counts = ["shown", "right", "unjudged", "empty"]
    return ["list", "purpose", "P@5", "P@10", "nDCG@5", "nDCG@10", "on topic of shown", *counts], rows


def interval(mean: Mean) -> str:
    """Return a mean with its interval as text; a dash if the metric applies to no query or profile."""
    return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]" if mean.queries else "–"


def first_places(listed: JudgedList, *, places: int = 10) -> list[dict[str, Any]]:
    """Return the first papers of a list, to be read by a person; a grade of None means unjudged."""
    return [
        {
            "paper_id": listed.paper_ids[row],
            "grade": None if listed.grades[row] == UNJUDGED else int(listed.grades[row]),
            "shown": bool(listed.shown[row]),
            "relevance": float(listed.relevance[row]),
        }
        for row in range(min(places, len(listed.paper_ids)))
    ]
