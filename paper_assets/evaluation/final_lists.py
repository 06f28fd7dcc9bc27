"""Make the lists to judge: the final list as the graph makes it, its relevance alone, and the baselines.

`judged_day` filters a profile's papers and `final_list` ranks what is left, by the functions that the graph and the
gatekeeper call, so that what is judged here is what a reader gets. A list is named by its interest mode (`hybrid`), by
the mode and `:relevance` for the same rows in the order of their stored relevance, or by a baseline. Adding a baseline:
a function in `list_baselines`, and a line in its `LIST_BASELINES`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.judged_lists import JudgedLists, JudgedProfile
from paper_assets.evaluation.list_baselines import LIST_BASELINES
from paper_assets.evaluation.metrics import Bools, Floats
from paper_assets.paper import embedded_text, papers_from_table
from paper_assets.profile import InterestMode, RankingOptions
from paper_assets.ranking.calibration import Calibration
from paper_assets.ranking.filters import FilterCriteria, ages_in_days, filter_papers, has_project_page, has_repository
from paper_assets.ranking.gatekeeper import Embed, ranking_options
from paper_assets.ranking.keywords import keywords_in, paper_texts
from paper_assets.ranking.rank import SURVEY_TITLES, Ranking, RankingTask, Vectors, rank
from paper_assets.ranking.relevance import interest_queries, liked_ids
from paper_assets.ranking.scoring import best_first
from paper_assets.settings import ScoringConfig
from paper_assets.stores.papers import papers_between, papers_by_id
from paper_assets.stores.warehouse import Warehouse

MODES: tuple[str, ...] = get_args(InterestMode)
RELEVANCE = ":relevance"
TRAITS = ("with code", "surveys", "age", "spread")
OWN = "own"  # the purpose that the profile itself names


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedDay:
    """One judged profile's day: the candidates (papers that passed the filters) and their unit vectors (n, d) by
    `model`, if it is known.
    """

    judged: JudgedProfile
    as_of: date
    options: RankingOptions
    candidates: pa.Table
    vectors: NDArray[np.float32]
    model: str | None
    known: Mapping[str, tuple[str, str]]  # title and abstract of papers that the profile likes by their id


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedList:
    """A list in its order: paper ids, which of them the reader is shown, and the grades (UNJUDGED where none).

    `relevance` (n,) is the stored relevance of each row, NaN for a baseline. `traits` describe what is shown (TRAITS).
    """

    paper_ids: tuple[str, ...]
    shown: Bools
    grades: NDArray[np.int64]
    relevance: Floats
    above: Bools | None = None  # above the threshold; None: it has none
    traits: Mapping[str, float] = field(default_factory=dict)

    @property
    def calibrated(self) -> bool:
        """Whether relevance is meant as a probability."""
        return self.above is not None


def newest_judged_day(warehouse: Warehouse, lists: JudgedLists) -> tuple[date, int]:
    """Return the newest day of first submission among the judged papers, and how many of these are not known.

    Raises InvalidInput if none of them is.
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
    """Return the profile's window ending on `as_of`, filtered as the graph does it, with nothing shown before."""
    profile = judged.profile
    content = profile.content
    options = ranking_options(profile, {"purpose": None if purpose == OWN else purpose, "top_k": top_k})
    first = as_of - timedelta(days=content.feed.window_days - 1)
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
        judged=judged,
        as_of=as_of,
        options=options,
        candidates=candidates,
        vectors=embed([embedded_text(*text) for text in texts]),
        model=model,
        known={paper.paper_id: (paper.title, paper.abstract) for paper in known},
    )


def final_list(
    day: JudgedDay, *, mode: str, embed: Embed, scoring: ScoringConfig, calibration: Calibration | None = None
) -> Ranking:
    """Return the day's ranking in an interest mode, as the graph makes it without a language model.

    `calibration` takes the place of the package's coefficients, for judging coefficients that have not seen the day.
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
            never_empty=True,
        ),
        calibration=calibration,
    )


def list_names(lists: JudgedLists) -> list[str]:
    """Return every list that can be judged, the default's final list first; `library` if a profile likes papers."""
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
    """Return the named lists of one day. A baseline shows its first K; so does relevance alone, which has no
    threshold.
    """
    rankings: dict[str, Ranking] = {}
    made = {}
    for name in names:
        if name in LIST_BASELINES:
            made[name] = _baseline(day, LIST_BASELINES[name](day, embed) if day.candidates.num_rows else np.zeros(0))
            continue
        mode = name.removesuffix(RELEVANCE)
        if mode not in rankings:
            rankings[mode] = final_list(day, mode=mode, embed=embed, scoring=scoring, calibration=calibration)
        made[name] = _of_ranking(day, rankings[mode], by_relevance=name != mode)
    return made


def _of_ranking(day: JudgedDay, ranking: Ranking, *, by_relevance: bool) -> JudgedList:
    rows = ranking.rows
    ids = rows.column("paper_id").to_pylist()
    relevance = rows.column("semantic_relevance").to_numpy()
    shown = rows.column("shown").to_numpy(zero_copy_only=False)
    above = ~rows.column("below_line").to_numpy(zero_copy_only=False)
    if by_relevance:  # a stable sort: equal relevance keeps the order of the final list
        order = np.argsort(-relevance, kind="stable")
        ids, relevance, above = [ids[row] for row in order], relevance[order], above[order]
        shown = _first(day, len(ids))
    return JudgedList(
        paper_ids=tuple(ids),
        shown=shown,
        grades=day.judged.grades_of(ids),
        relevance=relevance,
        above=None if ranking.header.get("line") is None else above,
        traits=traits_of(day, [paper_id for paper_id, seen in zip(ids, shown, strict=True) if seen]),
    )


def traits_of(day: JudgedDay, shown: Sequence[str]) -> dict[str, float]:
    """Describe the papers shown: the share with code, that of surveys, their mean age in days and how unlike each other
    they are (1 - mean cosine of two of them). NaN where too few are shown.
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
