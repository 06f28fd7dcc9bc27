"""Make the lists that the evaluation judges: final lists, the order by relevance alone, and baselines.

`judged_day` filters the papers of a profile's day and `final_list` ranks the candidates. Both call the functions that
the assets and `rank_and_filter_papers` call, so that the judged list is the list that a reader gets. The name of a list
is its interest mode (`hybrid`), the mode and `:relevance` for the same rows in the order of stored relevance, or the
name of a baseline.

To add a baseline: add a function to `list_baselines.py` and a line to its `LIST_BASELINES`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from benchmarks.evaluation.judged_lists import JudgedLists, JudgedProfile
from benchmarks.evaluation.list_baselines import LIST_BASELINES
from benchmarks.evaluation.metrics import Bools, Floats
from paper_assets.errors import InvalidInput
from paper_assets.paper import embedded_text, papers_from_table
from paper_assets.profile import InterestMode, RankingOptions
from paper_assets.ranking.calibration import Calibration
from paper_assets.ranking.filters import FilterCriteria, ages_in_days, filter_papers, has_project_page, has_repository
from paper_assets.ranking.gatekeeper import Embed, ranking_options
from paper_assets.ranking.keywords import keywords_in, paper_texts
from paper_assets.ranking.levels import LIKELY
from paper_assets.ranking.rank import SURVEY_TITLES, Ranking, RankingTask, Vectors, rank
from paper_assets.ranking.relevance import interest_queries, liked_ids
from paper_assets.ranking.scoring import best_first
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import ScoringConfig
from paper_assets.stores.papers import papers_between, papers_by_id
from paper_assets.stores.warehouse import Warehouse

MODES: tuple[str, ...] = get_args(InterestMode)
RELEVANCE = ":relevance"
TRAITS = ("with code", "surveys", "age", "spread")
OWN = "own"  # the purpose that the profile itself names


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDay:
    """The candidates of a judged profile on one day.

    `candidates` are the n papers that passed the filters, `vectors` (n, d) their unit vectors by `model` (None: the
    model is not known).
    """

    judged: JudgedProfile
    as_of: date
    options: RankingOptions
    candidates: pa.Table
    vectors: NDArray[np.float32]
    model: str | None
    known: Mapping[str, tuple[str, str]]  # title and abstract of liked papers, by id


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedList:
    """A list of n papers, best first.

    Attributes:
        paper_ids: the papers.
        shown: (n,) which of them the reader sees.
        grades: (n,) their grades, UNJUDGED for papers without one.
        relevance: (n,) stored relevance; NaN for a baseline.
        within_reach: (n,) which are shown or likely, and so one step away; None: relevance is no probability.
        traits: TRAITS of the shown papers.
    """

    paper_ids: tuple[str, ...]
    shown: Bools
    grades: NDArray[np.int64]
    relevance: Floats
    within_reach: Bools | None = None
    traits: Mapping[str, float] = field(default_factory=dict)

    @property
    def calibrated(self) -> bool:
        """Whether relevance is a probability."""
        return self.within_reach is not None


def newest_judged_day(warehouse: Warehouse, lists: JudgedLists) -> tuple[date, int]:
    """Return the newest day of first submission of the judged papers, and the number of them not in the warehouse.

    Raises InvalidInput if none of them is in the warehouse with a date.
    """
    known = papers_from_table(papers_by_id(warehouse, lists.paper_ids))
    days = [paper.day for paper in known if paper.day]
    if not days:
        raise InvalidInput(
            f"none of the {len(lists.paper_ids)} papers judged in {lists.name} is known here; "
            "name the file that holds them with --papers"
        )
    return max(days), len(lists.paper_ids) - len(known)


def judged_day(
    warehouse: Warehouse,
    judged: JudgedProfile,
    *,
    as_of: date,
    purpose: str,
    embed: Embed,
    scoring: ScoringConfig,
    model: str | None = None,
    top_k: int | None = None,
) -> JudgedDay:
    """Return the candidates of the window that ends on `as_of`, filtered as the assets do, as if nothing was shown yet.

    `purpose` (OWN: the profile's) and `top_k` (None: the profile's) replace those of the profile. Grades of papers of
    other days are left out, because no list of this day could show them.
    """
    profile = judged.profile
    content = profile.content
    options = ranking_options(profile, {"purpose": None if purpose == OWN else purpose, "top_k": top_k})
    first = as_of - timedelta(days=content.feed.window_days - 1)
    graded = papers_from_table(papers_by_id(warehouse, sorted(judged.grades)))
    days = {paper.paper_id: paper.day for paper in graded if paper.day}
    in_window = {paper: grade for paper, grade in judged.grades.items() if first <= days.get(paper, as_of) <= as_of}
    papers = papers_between(warehouse, first, as_of, categories=content.feed.categories)
    liked = liked_ids(content.interests)
    criteria = FilterCriteria(
        content=content,
        options=options,
        scoring=scoring,
        read_ids=profile.read_ids.union(liked),
        implementation_needs_code=False,
    )
    candidates = papers.filter(filter_papers(papers, criteria).column("passed"))
    texts = zip(candidates.column("title").to_pylist(), candidates.column("abstract").to_pylist(), strict=True)
    known = papers_from_table(papers_by_id(warehouse, liked))
    return JudgedDay(
        judged=replace(judged, grades=in_window),
        as_of=as_of,
        options=options,
        candidates=candidates,
        vectors=embed([embedded_text(*text) for text in texts]),
        model=model,
        known={paper.paper_id: (paper.title, paper.abstract) for paper in known},
    )


def final_list(
    day: JudgedDay,
    *,
    mode: str,
    embed: Embed,
    scoring: ScoringConfig,
    calibration: Calibration | None = None,
    verifier: Verifier | None = None,
) -> Ranking:
    """Return the day's ranking in an interest mode, as the assets compute it; `verifier`: the language model, if any.

    `calibration` replaces that of the package, to judge coefficients that were fitted without this profile.
    """
    profile = day.judged.profile
    options = day.options.model_copy(update={"interest_mode": mode})
    queries = interest_queries(profile.content.interests, options=options, scoring=scoring, known=day.known)
    return rank(
        RankingTask(
            candidates=day.candidates,
            profile=profile,
            options=options,
            as_of=day.as_of,
            scoring=scoring,
            queries=queries,
            vectors=Vectors(papers=day.vectors, queries=embed(queries.texts), model=day.model),
        ),
        verifier=verifier,
        calibration=calibration,
    )


def list_names(lists: JudgedLists) -> list[str]:
    """Return the names of all lists, that of the default mode first; `library` only if a profile likes papers."""
    default = RankingOptions().interest_mode
    modes = [default, *(mode for mode in MODES if mode != default)]
    if not any(judged.profile.content.interests.papers for judged in lists.profiles):
        modes.remove("library")
    return [name for mode in modes for name in (mode, mode + RELEVANCE)] + list(LIST_BASELINES)


def judged_lists_of(
    day: JudgedDay,
    names: Sequence[str],
    *,
    embed: Embed,
    scoring: ScoringConfig,
    calibration: Calibration | None = None,
) -> dict[str, JudgedList]:
    """Return the named lists of one day, by name.

    Baselines and the order by relevance alone show their first `top_k` papers.
    """
    rankings: dict[str, Ranking] = {}
    lists = {}
    for name in names:
        if name in LIST_BASELINES:
            lists[name] = _baseline(day, LIST_BASELINES[name](day, embed) if day.candidates.num_rows else np.zeros(0))
            continue
        mode = name.removesuffix(RELEVANCE)
        if mode not in rankings:
            rankings[mode] = final_list(day, mode=mode, embed=embed, scoring=scoring, calibration=calibration)
        lists[name] = _of_ranking(day, rankings[mode], by_relevance=name != mode)
    return lists


def _of_ranking(day: JudgedDay, ranking: Ranking, *, by_relevance: bool) -> JudgedList:
    rows = ranking.rows
    ids = rows.column("paper_id").to_pylist()
    relevance = rows.column("semantic_relevance").to_numpy()
    shown = rows.column("shown").to_numpy(zero_copy_only=False)
    if by_relevance:  # a stable sort: equal relevance keeps the order of the final list
        order = np.argsort(-relevance, kind="stable")
        ids, relevance = [ids[row] for row in order], relevance[order]
        shown = _first(day, len(ids))
    return JudgedList(
        paper_ids=tuple(ids),
        shown=shown,
        grades=day.judged.grades_of(ids),
        relevance=relevance,
        within_reach=None if ranking.header.get("threshold") is None else shown | (relevance >= LIKELY),
        traits=traits_of(day, [paper_id for paper_id, seen in zip(ids, shown, strict=True) if seen]),
    )


def traits_of(day: JudgedDay, shown: Sequence[str]) -> dict[str, float]:
    """Return TRAITS of the shown papers; NaN if too few are shown.

    These are the share with code, the share of surveys, the mean age in days, and the spread: 1 minus the mean cosine
    of two of the papers.
    """
    rows = pc.index_in(pa.array(shown, pa.string()), value_set=day.candidates.column("paper_id").combine_chunks())
    papers, vectors = day.candidates.take(rows), day.vectors[rows.to_numpy(zero_copy_only=False).astype(np.int64)]
    count, repository = len(shown), has_repository(papers)
    if not count:
        return dict.fromkeys(TRAITS, float("nan"))
    alike = vectors.astype(np.float64) @ vectors.T.astype(np.float64)
    return {
        "with code": float((repository | has_project_page(papers, among=~repository)).mean()),
        "surveys": float(keywords_in(paper_texts(papers), SURVEY_TITLES, title_only=True).any(axis=1).mean()),
        "age": float(np.nanmean(ages_in_days(papers, day.as_of))),
        "spread": float(1 - (alike.sum() - count) / (count * (count - 1))) if count > 1 else float("nan"),
    }


def _baseline(day: JudgedDay, scores: Floats) -> JudgedList:
    column = day.candidates.column("paper_id")
    order = best_first(scores, -ages_in_days(day.candidates, day.as_of), column)
    ids = column.take(order).to_pylist()
    return JudgedList(
        paper_ids=tuple(ids),
        shown=_first(day, len(ids)),
        grades=day.judged.grades_of(ids),
        relevance=np.full(len(ids), np.nan),
    )


def _first(day: JudgedDay, count: int) -> Bools:
    return np.arange(count) < day.options.top_k
