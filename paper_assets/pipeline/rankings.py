"""Rank one profile's day: filter the candidates, build the task for the ranking core, store rows and JSON file."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pyarrow as pa

from paper_assets.errors import ModelUnavailable, NotComputed
from paper_assets.learning.preference_model import Evidence
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


def keep_candidates(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> bool:
    """Filter the window's papers and store the outcome; False if the stored candidates have the same inputs."""
    if candidates_inputs(warehouse, day.as_of, day.profile.name) == day.inputs:
        return False
    rows = judged_papers(warehouse, day, settings=settings)
    replace_candidates(warehouse, day.as_of, day.profile.name, rows, inputs=day.inputs)
    return True


def judged_papers(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> pa.Table:
    """Return the window's papers, each passed or removed with its reason (`candidate_schema()`); stores nothing."""
    content = day.profile.content
    papers = papers_between(warehouse, day.first, day.as_of, categories=content.feed.categories)
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
    queries: InterestQueries,
    preferences: Preferences | None,
    earlier: EarlierList | None,
    settings: Settings,
) -> RankingTask:
    """Build the task to score and order the `judged` papers that passed, still without vectors.

    `earlier`: the last list for the same wishes, whose candidates had their chance.
    """
    shown = shown_before(judged)
    return RankingTask(
        candidates=papers_by_id(warehouse, judged.filter(judged.column("passed")).column("paper_id").to_pylist()),
        profile=profile,
        options=profile.content.ranking,
        as_of=as_of,
        scoring=settings.scoring,
        queries=queries,
        pdf_names=profile.pdf_names,
        preferences=preferences,
        shown_before=papers_by_id(warehouse, shown).select(["title", "abstract"]) if shown else None,
        considered=passed_ids(warehouse, earlier.day, profile.name) if earlier else frozenset(),
    )


def with_stored_vectors(
    warehouse: Warehouse, profile: Profile, task: RankingTask, embedder: Embedder | None
) -> RankingTask:
    """Add the stored vectors of the papers and the vectors of the queries. Raises NotComputed if any are missing."""
    return with_vectors(task, partial(_vectors, warehouse, profile, embedder))


def warnings_of(warehouse: Warehouse, profile: Profile, task: RankingTask) -> list[str]:
    """Return the task's warnings, and one for each preference and category without a paper in the last month or against
    an excluded keyword.
    """
    warnings, first, categories = list(task.warnings), task.as_of - timedelta(days=DAYS - 1), None
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
    warehouse: Warehouse, profile: Profile, embedder: Embedder | None, papers: pa.Table, queries: InterestQueries
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
    return Vectors(papers=vectors, queries=query_vectors(warehouse, queries, embedder), model=embedder.name)


_UNFINISHED = " unfinished"  # ends the fingerprint of a ranking whose LLM check failed, so that it is made again


@dataclass(frozen=True, slots=True)
class RankingWork:
    """A ranking to compute, here or elsewhere: everything is read; `store` does all writing."""

    task: RankingTask
    store: Callable[[Ranking], None]


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
    if work:
        work.store(rank(work.task, verifier=verifier))
    return work is not None


def ranking_work(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    embedder: Embedder | None,
    llm: str | None,
    settings: Settings,
    now: datetime,
) -> RankingWork | None:
    """Read what the ranking of the stored candidates is made from; None if the stored ranking has the same inputs.

    `llm`: the name of the language model, if one is used.
    """
    name, model = profile.name, embedder.name if embedder else None
    candidate_inputs = candidates_inputs(warehouse, as_of, name)
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
        keep_file(warehouse, profile, as_of, settings=settings)
        return None
    preferences, evidence = current_preferences(warehouse, profile, model=model)
    task = day_task(
        warehouse,
        profile,
        as_of,
        candidates(warehouse, as_of, name),
        queries=queries,
        preferences=preferences,
        earlier=earlier,
        settings=settings,
    )
    task = with_stored_vectors(warehouse, profile, task, embedder)

    def store(found: Ranking) -> None:
        # The model failed. As if there were none: with one that works again the ranking is out of date.
        failed = embedder and found.rows.num_rows and found.header["evaluation_method"] == KEYWORD
        used = None if failed else model
        inputs = fingerprint(model=used) + (_UNFINISHED if llm and found.header["llm_failed"] else "")
        header = _stored_header(warehouse, profile, found, task, model=used, evidence=evidence, now=now)
        replace_ranking(warehouse, as_of, name, found.rows, header, inputs=inputs)
        keep_file(warehouse, profile, as_of, settings=settings)

    return RankingWork(task, store)


def _stored_header(
    warehouse: Warehouse,
    profile: Profile,
    found: Ranking,
    task: RankingTask,
    *,
    model: str | None,
    evidence: Evidence | None,
    now: datetime,
) -> dict[str, Any]:
    """Return the ranking's header with what only the stores know: questions to the reader, versions and warnings."""
    return {
        **found.header,
        "wishes": wishes_fingerprint(profile),
        "model": model,
        "learning": evidence.sentence if evidence else None,
        **_questions(warehouse, profile, found, task, model=model),
        "code_version": CODE_VERSION,
        "generated_at": now.isoformat(timespec="seconds"),
        "warnings": [*warnings_of(warehouse, profile, task), *found.header["notes"]],
        "output_path": None,
    }


def _questions(
    warehouse: Warehouse, profile: Profile, ranked: Ranking, task: RankingTask, *, model: str | None
) -> dict[str, list[str]]:
    """Return the papers to ask the reader about (`questions`), and for a new reader a first set to rate (`teach`).

    Both are empty if learning is off, without a model, and if the ranking has no probabilities.
    """
    asked: dict[str, list[str]] = {"questions": [], "teach": []}
    if not task.vectors or not model or profile.content.ranking.learning == "off" or ranked.header["threshold"] is None:
        return asked
    rated = {each.paper_id for each in last_ratings(warehouse, profile.name)}
    vectors = dict(zip(task.candidates.column("paper_id").to_pylist(), task.vectors.papers, strict=True))
    elsewhere = sorted(rated - vectors.keys())
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
    header = stored.header
    if saved_file(settings.rankings_dir, profile.name, header["output_path"]):
        return
    shown = papers_by_id(warehouse, stored.rows.filter(stored.rows.column("shown")).column("paper_id").to_pylist())
    now = datetime.fromisoformat(header["generated_at"])
    result = ranking_result(
        Ranking(rows=stored.rows, header=header),
        Reader(
            profile=profile,
            profile_used=profile.name,
            pdf_dir=profile.path / "pdf" if profile.path else None,
            pdf_names=profile.pdf_names,
        ),
        papers={paper.paper_id: paper for paper in papers_from_table(shown)},
        candidates=candidates(warehouse, as_of, profile.name),
        now=now,
        warnings=header["warnings"],
    )
    folder = settings.rankings_dir
    path = save_once(folder, profile.name, result, now=now)
    note_output(warehouse, as_of, profile.name, path)
