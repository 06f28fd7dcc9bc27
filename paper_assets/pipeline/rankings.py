"""One profile's day from the stores and back: load, ask the core, keep.

Days must be made in ascending order: a day's candidates lack what earlier days of the window have shown.
"""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path

import pyarrow as pa

from paper_assets.errors import ModelUnavailable, NotComputed, NothingEarlier
from paper_assets.learning.questions import questions
from paper_assets.models.embedder import FEW, Embedder
from paper_assets.paper import embedded_text, papers_from_table
from paper_assets.pipeline.preferences import current_preferences, preferences_inputs
from paper_assets.pipeline.queries import liked_by, profile_queries, query_vectors
from paper_assets.profile import Profile
from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.changes import Changes, changes_between
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.ranking.fingerprint import candidate_fingerprint, ranking_fingerprint
from paper_assets.ranking.interest_modes import InterestQueries, liked_ids
from paper_assets.ranking.preferences import Preferences
from paper_assets.ranking.profile_edits import profile_edits
from paper_assets.ranking.rank import KEYWORD, Ranking, Vectors
from paper_assets.ranking.result import ranking_result
from paper_assets.ranking.task import RankingTask, ranked, ranking_task
from paper_assets.ranking.unmatched import DAYS, preferences_of, sentences, unmet
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import Settings
from paper_assets.stores.candidates import candidates, candidates_inputs, replace_candidates
from paper_assets.stores.embeddings import vectors_of
from paper_assets.stores.papers import (
    columns_between,
    day_fingerprints,
    papers_between,
    papers_by_id,
    submission_days,
)
from paper_assets.stores.profiles import profile_version
from paper_assets.stores.ranking_files import save_once
from paper_assets.stores.rankings import (
    StoredRanking,
    latest_ranking_day,
    note_output,
    previous_ranking,
    ranking,
    ranking_inputs,
    replace_ranking,
    shown_by_day,
)
from paper_assets.stores.ratings import last_ratings
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "2"  # raise it when filters or scoring change, so that stored days are computed again

_UNFINISHED = " unfinished"  # ends the fingerprint of a ranking whose LLM check failed, so that it is made again


def ranking_version() -> str:
    """Version of what computes a ranking: our code and the coefficients of relevance."""
    return f"{CODE_VERSION}.{standard_calibration().version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDay:
    """A day's inputs: the profile, the papers of first..as_of by content, the papers shown before."""

    profile: Profile
    as_of: date
    first: date
    papers: Mapping[date, str]
    shown: frozenset[str]
    liked: frozenset[str]
    inputs: str


def profile_day(warehouse: Warehouse, profile: Profile, as_of: date, *, settings: Settings) -> ProfileDay:
    """Gather a day's inputs: the window of `feed.window_days` ending on `as_of`, and what it has already shown."""
    with warehouse.read_together() as opened:
        papers, shown = _gathered(opened, profile, as_of, as_of)
        liked = liked_by(opened, profile)
    return _profile_day(profile, as_of, papers=papers, shown=shown, liked=liked, settings=settings)


def inputs_by_day(
    warehouse: Warehouse,
    profile: Profile,
    days: Sequence[date],
    *,
    model: str | None,
    llm: str | None,
    settings: Settings,
) -> dict[date, tuple[str, str]]:
    """For each of the ascending `days` the fingerprints of what its candidates and its ranking would come from now.

    A day's inputs hold what the days before have shown: they mean something as long as those are current.
    """
    papers, shown = _gathered(warehouse, profile, days[0], days[-1])
    liked = liked_by(warehouse, profile)
    texts = profile_queries(warehouse, profile, settings=settings).texts
    preferences = preferences_inputs(warehouse, profile.name)
    version = ranking_version()
    found = {}
    for as_of in days:
        day = _profile_day(profile, as_of, papers=papers, shown=shown, liked=liked, settings=settings)
        ranked = ranking_fingerprint(
            day.inputs,
            options=profile.content.ranking,
            texts=texts,
            model=model,
            llm=llm,
            code_version=version,
            preferences=preferences,
        )
        found[as_of] = day.inputs, ranked
    return found


def _gathered(
    warehouse: Warehouse, profile: Profile, first: date, last: date
) -> tuple[dict[date, str], dict[date, frozenset[str]]]:
    """Papers by content, and papers shown, of all days in the windows of first..last."""
    earliest = first - timedelta(days=profile.content.feed.window_days - 1)
    return day_fingerprints(warehouse, earliest, last), shown_by_day(warehouse, profile.name, earliest, last)


def _profile_day(
    profile: Profile,
    as_of: date,
    *,
    papers: Mapping[date, str],
    shown: Mapping[date, frozenset[str]],
    liked: frozenset[str],
    settings: Settings,
) -> ProfileDay:
    feed = profile.content.feed
    first = max(as_of - timedelta(days=feed.window_days - 1), settings.first_day)
    in_window = {day: papers[day] for day in papers if first <= day <= as_of}
    before = frozenset[str]().union(*(ids for day, ids in shown.items() if first <= day < as_of and not feed.repeat))
    inputs = candidate_fingerprint(
        profile,
        as_of=as_of,
        scoring=settings.scoring,
        papers=in_window,
        shown=before,
        imported=liked.difference(liked_ids(profile.content.interests)),
        code_version=CODE_VERSION,
    )
    return ProfileDay(
        profile=profile, as_of=as_of, first=first, papers=in_window, shown=before, liked=liked, inputs=inputs
    )


def keep_candidates(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> bool:
    """Filter the window's papers and store the outcome; False if the stored candidates have these inputs already."""
    if candidates_inputs(warehouse, day.as_of, day.profile.name) == day.inputs:
        return False
    rows = judged_papers(warehouse, day, settings=settings)
    replace_candidates(warehouse, day.as_of, day.profile.name, rows, inputs=day.inputs)
    return True


def judged_papers(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> pa.Table:
    """The window's papers, each passed or removed with its reason (`candidate_schema()`); stores nothing."""
    content = day.profile.content
    papers = papers_between(warehouse, day.first, day.as_of, categories=content.feed.categories)
    criteria = FilterCriteria(
        content=content,
        options=content.ranking,
        scoring=settings.scoring,
        read_ids=day.profile.read_ids.union(day.liked),
        shown_ids=day.shown,
    )
    return filter_papers(papers, criteria)


Work = Generator[RankingTask, Ranking, bool]  # what to rank, if anything; sent the ranking, it says whether that is new


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
    """Score the stored candidates and store the ranking and its JSON file; False if nothing it depends on changed.

    Without an embedder, or with one that fails, keyword matching takes over (G6). Raises NotComputed if candidates or
    vectors are missing.
    """
    work = ranking_work(warehouse, profile, as_of, embedder=embedder, llm=verifier.model, settings=settings, now=now)
    return done_here(work, verifier)


def done_here(work: Work, verifier: Verifier) -> bool:
    """Rank in this process, if there is anything to rank; whether that is new."""
    task = begun(work)
    return task is not None and finished(work, ranked(task, verifier))


def begun(work: Work) -> RankingTask | None:
    """What is to be ranked; None if nothing is."""
    return next(work, None)


def finished(work: Work, found: Ranking) -> bool:
    """Keep what was found; whether it is new."""
    try:
        work.send(found)
    except StopIteration as done:
        return bool(done.value)
    raise RuntimeError("a day and profile have one ranking")


def ranking_work(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    embedder: Embedder | None,
    llm: str | None,
    settings: Settings,
    now: datetime,
) -> Work:
    """`keep_ranking` in two parts, so that others may rank in between: all that is read, then all that is written.

    `llm` is the model that is asked, if one is.
    """
    name, model = profile.name, embedder.name if embedder else None
    candidate_inputs = candidates_inputs(warehouse, as_of, name)
    if candidate_inputs is None:
        raise NotComputed(f"no candidates for profile {name!r} on {as_of}; materialize filtered_candidates")
    options = profile.content.ranking
    queries = profile_queries(warehouse, profile, settings=settings)

    def fingerprint(model: str | None) -> str:
        return ranking_fingerprint(
            candidate_inputs,
            options=options,
            texts=queries.texts,
            model=model,
            llm=llm,
            code_version=ranking_version(),
            preferences=preferences_inputs(warehouse, name),
        )

    inputs = fingerprint(model)
    if ranking_inputs(warehouse, as_of, name) == inputs:
        keep_file(warehouse, profile, as_of, settings=settings)
        return False
    preferences, proof = current_preferences(warehouse, profile, model=model)
    task = _task(
        warehouse,
        profile,
        as_of,
        candidates(warehouse, as_of, name),
        queries=queries,
        embedder=embedder,
        preferences=preferences,
        settings=settings,
    )
    found = yield task
    if embedder and found.rows.num_rows and found.header["evaluation_method"] == KEYWORD:
        # The model failed. As if there were none: with one that works again the ranking is out of date.
        model, inputs = None, fingerprint(None)
    if llm and found.header["llm_note"]:
        inputs += _UNFINISHED
    header = {
        **found.header,
        "model": model,
        "learning": proof.sentence if proof else None,
        "questions": _questions(warehouse, profile, found),
        "code_version": CODE_VERSION,
        "generated_at": now.isoformat(timespec="seconds"),
        "warnings": _warnings(warehouse, profile, task),
        "output_path": None,
    }
    replace_ranking(warehouse, as_of, name, found.rows, header, inputs=inputs)
    keep_file(warehouse, profile, as_of, settings=settings)
    return True


def ranked_papers(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    judged: pa.Table,
    *,
    queries: InterestQueries,
    embedder: Embedder | None,
    verifier: Verifier,
    preferences: Preferences | None,
    settings: Settings,
) -> tuple[Ranking, list[str]]:
    """Score and order those of the `judged` papers that passed, with the warnings that belong to it; stores no ranking.

    Raises NotComputed if vectors are missing.
    """
    task = _task(
        warehouse,
        profile,
        as_of,
        judged,
        queries=queries,
        embedder=embedder,
        preferences=preferences,
        settings=settings,
    )
    return ranked(task, verifier), _warnings(warehouse, profile, task)


def _task(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    judged: pa.Table,
    *,
    queries: InterestQueries,
    embedder: Embedder | None,
    preferences: Preferences | None,
    settings: Settings,
) -> RankingTask:
    return ranking_task(
        papers_by_id(warehouse, judged.filter(judged.column("passed")).column("paper_id").to_pylist()),
        profile,
        options=profile.content.ranking,
        as_of=as_of,
        scoring=settings.scoring,
        queries=queries,
        vectors_of=partial(_vectors, warehouse, profile, embedder),
        pdf_names=profile.pdf_names,
        preferences=preferences,
    )


def _warnings(warehouse: Warehouse, profile: Profile, task: RankingTask) -> list[str]:
    return [*task.warnings, *unmatched_preferences(warehouse, profile, task.as_of, task.candidates)]


def _questions(warehouse: Warehouse, profile: Profile, ranked: Ranking) -> list[str]:
    """The papers to ask the reader about (L5); none where nothing is to be learned, or no probability says how sure."""
    if profile.content.ranking.learning == "off" or ranked.header["line"] is None:
        return []
    rated = {each.paper_id for each in last_ratings(warehouse, profile.name)}
    return questions(ranked.rows.to_pylist(), rated)


def unmatched_preferences(warehouse: Warehouse, profile: Profile, as_of: date, papers: pa.Table) -> list[str]:
    """What to tell of the profile's preferences that match nothing: asked of the day's `papers`, then of the month."""
    left = unmet(preferences_of(profile.content), papers)
    if not left:
        return []
    first, categories = as_of - timedelta(days=DAYS - 1), profile.content.feed.categories
    return sentences(left, columns_between(warehouse, first, as_of, left.columns, categories=categories))


def keep_file(warehouse: Warehouse, profile: Profile, as_of: date, *, settings: Settings) -> None:
    """Write the stored ranking's JSON file unless it lies there: the table is the truth, the file follows.

    A process killed between the two leaves a ranking without file; the next one to come by writes it.
    """
    stored = ranking(warehouse, as_of, profile.name)
    header = stored.header
    if header["output_path"] and Path(header["output_path"]).exists():
        return
    shown = papers_by_id(warehouse, stored.rows.filter(stored.rows.column("shown")).column("paper_id").to_pylist())
    now = datetime.fromisoformat(header["generated_at"])
    result = ranking_result(
        Ranking(rows=stored.rows, header=header),
        papers={paper.paper_id: paper for paper in papers_from_table(shown)},
        candidates=candidates(warehouse, as_of, profile.name),
        now=now,
        profile_used=profile.name,
        pdf_dir=profile.path / "pdf" if profile.path else None,
        pdf_names=profile.pdf_names,
        warnings=header["warnings"],
    )
    folder = settings.output_dir / "rankings"
    path = save_once(folder, profile.name, result, now=now)
    note_output(warehouse, as_of, profile.name, path)


def changes_of(
    warehouse: Warehouse, profile: str, day: date, *, before: date | None = None, edit: bool = False
) -> Changes:
    """What changed in a profile's list of a day: since `before` (None: the ranked day before), or, with `edit`, since
    the ranking of the same day that an edit or new papers replaced. Raises NotComputed if there is none to compare.
    """
    after = ranking(warehouse, day, profile)
    if edit:
        earlier = previous_ranking(warehouse, day, profile)
    else:
        before = before or latest_ranking_day(warehouse, profile, until=day - timedelta(days=1))
        if before is None:
            raise NothingEarlier(f"profile {profile!r} has no ranking before {day}; nothing to compare")
        earlier = ranking(warehouse, before, profile)
    return changes_since(warehouse, earlier, after)


def changes_since(
    warehouse: Warehouse,
    earlier: StoredRanking,
    after: StoredRanking,
    *,
    judged: pa.Table | None = None,
    profile: Profile | None = None,
) -> Changes:
    """What changed from one ranking of a profile to a later one, with all that is known of the causes.

    `judged` and `profile` of the later one, where it is not stored. Why papers were left out of a ranking that was
    replaced on its own day is not kept.
    """
    ids = {each for stored in (earlier, after) for each in stored.rows.column("paper_id").to_pylist()}
    contents = [
        profile_version(warehouse, after.profile, stored.header.get("profile_hash") or "")
        for stored in (earlier, after)
    ]
    return changes_between(
        earlier.rows,
        after.rows,
        headers=(earlier.header, after.header),
        removed=(_removed(warehouse, after) or {}) if judged is None else _reasons(judged),
        removed_before=_removed(warehouse, earlier) if earlier.day != after.day else None,
        days=submission_days(warehouse, sorted(ids)),
        edits=profile_edits(contents[0], profile or contents[1]),
    )


def _removed(warehouse: Warehouse, stored: StoredRanking) -> dict[str, str] | None:
    """Filter reasons of the ranking's day by paper id; None if they are not stored."""
    try:
        return _reasons(candidates(warehouse, stored.day, stored.profile))
    except NotComputed:
        return None


def _reasons(judged: pa.Table) -> dict[str, str]:
    removed = judged.filter(judged.column("reason").is_valid())
    return dict(zip(removed.column("paper_id").to_pylist(), removed.column("reason").to_pylist(), strict=True))


def _vectors(
    warehouse: Warehouse, profile: Profile, embedder: Embedder | None, papers: pa.Table, queries: InterestQueries
) -> Vectors:
    """The papers' stored vectors and those of `queries.texts`.

    Raises NotComputed if vectors are missing, ModelUnavailable if the model fails (then it may be why they are).
    """
    if embedder is None:
        raise ModelUnavailable("the embedding model cannot be loaded")
    vectors, found = vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=embedder.name)
    if not found.all():
        unembedded = papers_from_table(papers.filter(~found).slice(0, FEW))
        embedder.encode([embedded_text(paper.title, paper.abstract) for paper in unembedded])
        days = sorted({paper.day for paper in papers_from_table(papers.filter(~found)) if paper.day})
        raise NotComputed(
            f"{int((~found).sum())} candidates of {profile.name!r} have no vector; "
            f"materialize paper_embeddings for {days[0]} to {days[-1]}"
        )
    return Vectors(papers=vectors, queries=query_vectors(warehouse, profile, queries, embedder))
