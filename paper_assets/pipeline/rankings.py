"""Rank one profile's day: filter the candidates, build the task for the ranking core, store rows and JSON file."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from paper_assets.errors import ModelUnavailable, NotComputed
from paper_assets.learning.questions import FEW_RATINGS, first_set, questions
from paper_assets.models.embedder import FEW, Embedder
from paper_assets.paper import embedded_text, papers_from_table
from paper_assets.pipeline.day_inputs import (
    CODE_VERSION,
    EarlierList,
    ProfileDay,
    earlier_list,
    profile_queries,
    query_vectors,
    ranking_version,
)
from paper_assets.pipeline.preferences import current_preferences, preferences_inputs
from paper_assets.profile import Profile
from paper_assets.ranking.filters import FilterCriteria, filter_papers, shown_before
from paper_assets.ranking.fingerprints import ranking_fingerprint, wishes_fingerprint
from paper_assets.ranking.preferences import Preferences
from paper_assets.ranking.rank import (
    KEYWORD,
    Ranking,
    RankingTask,
    Vectors,
    rank,
    with_vectors,
)
from paper_assets.ranking.relevance import InterestQueries
from paper_assets.ranking.result import Reader, ranking_result
from paper_assets.ranking.unmatched import (
    DAYS,
    category_sentence,
    contradictions,
    preferences_of,
    sentences,
    unmatched_categories,
    unmatched_preferences,
)
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import vectors_of
from paper_assets.stores.feedback import last_ratings
from paper_assets.stores.papers import columns_between, papers_between, papers_by_id
from paper_assets.stores.ranking_files import save_once, saved_file
from paper_assets.stores.rankings import (
    StoredRanking,
    candidates,
    candidates_inputs,
    note_output,
    passed_ids,
    ranking,
    ranking_inputs,
    replace_candidates,
    replace_ranking,
)
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class Judged:
    """The papers of a window, the rows that say which passed (`candidate_schema()`), and the fingerprint of both."""

    papers: pa.Table
    rows: pa.Table
    inputs: str


def new_candidates(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> Judged | None:
    """Filter the window's papers; None if the stored candidates have the same inputs. Stores nothing."""
    if candidates_inputs(warehouse, day.as_of, day.profile.name) == day.inputs:
        return None
    papers = _papers_of_window(warehouse, day)
    return Judged(papers, _judged(papers, day, settings=settings), day.inputs)


def keep_candidates(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> bool:
    """Filter the window's papers and store the outcome; False if the stored candidates have the same inputs."""
    judged = new_candidates(warehouse, day, settings=settings)
    if judged:
        replace_candidates(warehouse, day.as_of, day.profile.name, judged.rows, inputs=judged.inputs)
    return judged is not None


def judged_papers(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> pa.Table:
    """Return the window's papers, each passed or removed with its reason (`candidate_schema()`); stores nothing."""
    return _judged(_papers_of_window(warehouse, day), day, settings=settings)


def _papers_of_window(warehouse: Warehouse, day: ProfileDay) -> pa.Table:
    return papers_between(warehouse, day.first, day.as_of, categories=day.profile.content.feed.categories)


def _judged(papers: pa.Table, day: ProfileDay, *, settings: Settings) -> pa.Table:
    content = day.profile.content
    criteria = FilterCriteria(
        content=content,
        options=content.ranking,
        scoring=settings.scoring,
        read_ids=day.profile.read_ids.union(day.liked),
        shown_ids=day.shown,
        implementation_needs_code=False,
    )
    return filter_papers(papers, criteria)


def day_task(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    judged: pa.Table,
    *,
    papers: pa.Table | None = None,
    queries: InterestQueries,
    preferences: Preferences | None,
    earlier: EarlierList | None,
    settings: Settings,
) -> RankingTask:
    """Build the task to score and order the `judged` papers that passed, still without vectors.

    `papers`: those of the window, None to read them. `earlier`: the last list for the same wishes, whose candidates had
    their chance.
    """

    def papers_of(ids: list[str]) -> pa.Table:
        if papers is None:
            return papers_by_id(warehouse, ids)
        return papers.filter(pc.is_in(papers.column("paper_id"), pa.array(ids, pa.string())))

    shown = shown_before(judged)
    return RankingTask(
        candidates=papers_of(judged.filter(judged.column("passed")).column("paper_id").to_pylist()),
        profile=profile,
        options=profile.content.ranking,
        as_of=as_of,
        scoring=settings.scoring,
        queries=queries,
        pdf_names=profile.pdf_names,
        preferences=preferences,
        shown_before=papers_of(shown).select(["title", "abstract"]) if shown else None,
        considered=passed_ids(warehouse, earlier.day, profile.name) if earlier else frozenset(),
    )


def with_stored_vectors(
    warehouse: Warehouse, profile: Profile, task: RankingTask, embedder: Embedder | None, *, keep: bool = True
) -> RankingTask:
    """Add the stored vectors of the papers and the vectors of the queries, which are stored too (`keep`).

    Raises NotComputed if any are missing.
    """
    return with_vectors(task, partial(_vectors, warehouse, profile, embedder, keep))


def warnings_of(warehouse: Warehouse, profile: Profile, task: RankingTask) -> list[str]:
    """Return a warning for each preference and category without a paper in the last month or against an excluded
    keyword.
    """
    warnings, first, categories = list[str](), task.as_of - timedelta(days=DAYS - 1), None
    if followed := profile.content.feed.categories:
        categories = followed
        if unmatched := unmatched_categories(followed, task.candidates):
            month = columns_between(warehouse, first, task.as_of, ["categories"])
            unmatched = unmatched_categories(unmatched, month) if month.num_rows else ()
        warnings += [category_sentence(unmatched)] if len(unmatched) == len(set(followed)) else []
    warnings += contradictions(profile.content)
    if left := unmatched_preferences(preferences_of(profile.content), task.candidates):
        warnings += sentences(left, columns_between(warehouse, first, task.as_of, left.columns, categories=categories))
    return warnings


def _vectors(
    warehouse: Warehouse,
    profile: Profile,
    embedder: Embedder | None,
    keep: bool,
    papers: pa.Table,
    queries: InterestQueries,
) -> Vectors:
    """Return the papers' stored vectors and those of `queries.texts`.

    Raises NotComputed if vectors are missing, ModelUnavailable if the model fails (which may be why they are missing).
    """
    if embedder is None:
        raise ModelUnavailable("the embedding model cannot be loaded; `paper-assets doctor` says why")
    vectors, found = vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=embedder.name)
    if not found.all():
        unembedded = papers_from_table(papers.filter(~found).slice(0, FEW))
        embedder.encode([embedded_text(paper.title, paper.abstract) for paper in unembedded])
        days = sorted({paper.day for paper in papers_from_table(papers.filter(~found)) if paper.day})
        raise NotComputed(
            f"{int((~found).sum())} candidates of {profile.name!r} have no vector; "
            f"materialize paper_embeddings for {days[0]} to {days[-1]}"
        )
    compared = query_vectors(warehouse, queries, embedder, keep=keep)
    return Vectors(papers=vectors, queries=compared, model=embedder.name)


_UNFINISHED = " unfinished"  # ends the fingerprint of a ranking whose LLM check failed, so that it is made again


@dataclass(frozen=True, slots=True)
class RankingWork:
    """A ranking to compute, here or elsewhere: all but vectors is read (`with_stored_vectors`); `store` writes it."""

    task: RankingTask
    store: Callable[[Warehouse, RankingTask, Ranking], None]


def keep_ranking(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    embedder: Embedder | None,
    verifier: Verifier,
    settings: Settings,
    now: datetime,
) -> bool:
    """Score the stored candidates and store the ranking and its JSON file; False if its inputs are unchanged.

    Without an embedder, or with one that fails, keyword matching is used (G6). Raises NotComputed if candidates or
    vectors are missing.
    """
    work = ranking_work(warehouse, profile, as_of, embedder=embedder, llm=verifier.model, settings=settings, now=now)
    if work is None:
        keep_file(warehouse, profile, as_of, settings=settings)
        return False
    task = with_stored_vectors(warehouse, profile, work.task, embedder)
    work.store(warehouse, task, rank(task, verifier=verifier))
    return True


def ranking_work(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    judged: Judged | None = None,
    embedder: Embedder | None,
    llm: str | None,
    settings: Settings,
    now: datetime,
) -> RankingWork | None:
    """Read what the ranking of the candidates is made from; None if the stored ranking has the same inputs.

    `judged`: the candidates, None for the stored ones. `llm`: the name of the language model, if one is used.
    """
    name, model = profile.name, embedder.name if embedder else None
    candidate_inputs = judged.inputs if judged else candidates_inputs(warehouse, as_of, name)
    if candidate_inputs is None:
        raise NotComputed(f"no candidates for profile {name!r} on {as_of}; materialize filtered_candidates")
    queries = profile_queries(warehouse, profile, settings=settings)
    earlier = earlier_list(warehouse, profile, as_of)
    fingerprint = partial(
        ranking_fingerprint,
        candidate_inputs,
        options=profile.content.ranking,
        texts=queries.texts,
        llm=llm,
        code_version=ranking_version(),
        preferences=preferences_inputs(warehouse, name),
        considered=earlier.fingerprint if earlier else None,
    )
    if ranking_inputs(warehouse, as_of, name) == fingerprint(model=model):
        return None
    rows = judged.rows if judged else candidates(warehouse, as_of, name)
    preferences, evidence = current_preferences(warehouse, profile, model=model)
    task = day_task(
        warehouse,
        profile,
        as_of,
        rows,
        papers=judged.papers if judged else None,
        queries=queries,
        preferences=preferences,
        earlier=earlier,
        settings=settings,
    )
    warnings = warnings_of(warehouse, profile, task)
    rated = {each.paper_id for each in last_ratings(warehouse, name)}

    def store(warehouse: Warehouse, task: RankingTask, found: Ranking) -> None:
        # The model failed. As if there were none: with one that works again the ranking is out of date.
        failed = embedder and found.rows.num_rows and found.header["evaluation_method"] == KEYWORD
        used = None if failed else model
        inputs = fingerprint(model=used) + (_UNFINISHED if llm and found.header["llm_failed"] else "")
        if not inputs.endswith(_UNFINISHED) and ranking_inputs(warehouse, as_of, name) == inputs:
            return  # another process made it in the meantime
        header = {
            **found.header,
            "wishes": wishes_fingerprint(profile),
            "model": used,
            "learning": evidence.sentence if evidence else None,
            **_questions(warehouse, profile, found, task, model=used, rated=rated),
            "code_version": CODE_VERSION,
            "generated_at": now.isoformat(timespec="seconds"),
            "warnings": [*task.warnings, *warnings, *found.header["notes"]],
            "output_path": None,
        }
        stored = replace_ranking(warehouse, as_of, name, found.rows, header, inputs=inputs)
        shown = pc.is_in(
            task.candidates.column("paper_id"), pa.array([row["paper_id"] for row in stored.listed], pa.string())
        )
        _write_file(warehouse, profile, stored, rows, task.candidates.filter(shown), settings=settings)

    return RankingWork(task, store)


def _questions(
    warehouse: Warehouse,
    profile: Profile,
    ranked: Ranking,
    task: RankingTask,
    *,
    model: str | None,
    rated: Collection[str],
) -> dict[str, list[str]]:
    """Return the papers to ask the reader about (`questions`), and for a new reader a first set to rate (`teach`).

    Both are empty if learning is off, without a model, and if the ranking has no probabilities.
    """
    asked: dict[str, list[str]] = {"questions": [], "teach": []}
    if not task.vectors or not model or profile.content.ranking.learning == "off" or ranked.header["threshold"] is None:
        return asked
    vectors = dict(zip(task.candidates.column("paper_id").to_pylist(), task.vectors.papers, strict=True))
    if elsewhere := sorted(each for each in rated if each not in vectors):
        known, found = vectors_of(warehouse, elsewhere, model=model)
        vectors |= {paper_id: vector for paper_id, vector, have in zip(elsewhere, known, found, strict=True) if have}
    rows = ranked.rows.to_pylist()
    asked["questions"] = questions(rows, rated, vectors=vectors)
    if len(rated) < FEW_RATINGS:
        asked["teach"] = first_set(rows, rated, vectors=vectors)
    return asked


def keep_file(warehouse: Warehouse, profile: Profile, as_of: date, *, settings: Settings) -> None:
    """Write the stored ranking's JSON file if it is missing: the table is authoritative, the file follows.

    A process killed between the two leaves a ranking without file; the next run writes it.
    """
    stored = ranking(warehouse, as_of, profile.name)
    if saved_file(settings.rankings_dir, profile.name, stored.header["output_path"]):
        return
    shown = papers_by_id(warehouse, [row["paper_id"] for row in stored.listed])
    judged = candidates(warehouse, as_of, profile.name)
    _write_file(warehouse, profile, stored, judged, shown, settings=settings)


def _write_file(
    warehouse: Warehouse,
    profile: Profile,
    stored: StoredRanking,
    judged: pa.Table,
    shown: pa.Table,
    *,
    settings: Settings,
) -> None:
    now = datetime.fromisoformat(stored.header["generated_at"])
    result = ranking_result(
        Ranking(rows=stored.rows, header=stored.header),
        Reader(
            profile=profile,
            profile_used=profile.name,
            pdf_dir=profile.path / "pdf" if profile.path else None,
            pdf_names=profile.pdf_names,
        ),
        papers={paper.paper_id: paper for paper in papers_from_table(shown)},
        candidates=judged,
        now=now,
        warnings=stored.header["warnings"],
    )
    path = save_once(settings.rankings_dir, profile.name, result, now=now)
    note_output(warehouse, stored.day, profile.name, path)
