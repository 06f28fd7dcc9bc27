"""One profile's ranking of a day: asked of the core for the stored candidates, kept as rows and as a JSON file."""

from collections.abc import Generator
from datetime import date, datetime
from pathlib import Path

from paper_assets.errors import NotComputed
from paper_assets.learning.questions import questions
from paper_assets.models.embedder import Embedder
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.day_inputs import CODE_VERSION, ranking_version
from paper_assets.pipeline.preferences import current_preferences, preferences_inputs
from paper_assets.pipeline.queries import profile_queries
from paper_assets.pipeline.ranking_tasks import day_task, warnings_of
from paper_assets.profile import Profile
from paper_assets.ranking.rank import KEYWORD, Ranking, rank
from paper_assets.ranking.result import ranking_result
from paper_assets.ranking.task import RankingTask, ranking_fingerprint
from paper_assets.ranking.verifier import Verifier
from paper_assets.settings import Settings
from paper_assets.stores.candidates import candidates, candidates_inputs
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.ranking_files import save_once
from paper_assets.stores.rankings import note_output, ranking, ranking_inputs, replace_ranking
from paper_assets.stores.ratings import last_ratings
from paper_assets.stores.warehouse import Warehouse

_UNFINISHED = " unfinished"  # ends the fingerprint of a ranking whose LLM check failed, so that it is made again

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
    return task is not None and finished(work, rank(task, verifier=verifier))


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
    preferences, evidence = current_preferences(warehouse, profile, model=model)
    task = day_task(
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
        "learning": evidence.sentence if evidence else None,
        "questions": _questions(warehouse, profile, found),
        "code_version": CODE_VERSION,
        "generated_at": now.isoformat(timespec="seconds"),
        "warnings": warnings_of(warehouse, profile, task),
        "output_path": None,
    }
    replace_ranking(warehouse, as_of, name, found.rows, header, inputs=inputs)
    keep_file(warehouse, profile, as_of, settings=settings)
    return True


def _questions(warehouse: Warehouse, profile: Profile, ranked: Ranking) -> list[str]:
    """The papers to ask the reader about (L5); none where nothing is to be learned, or no probability says how sure."""
    if profile.content.ranking.learning == "off" or ranked.header["line"] is None:
        return []
    rated = {each.paper_id for each in last_ratings(warehouse, profile.name)}
    return questions(ranked.rows.to_pylist(), rated)


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
    folder = settings.rankings_dir
    path = save_once(folder, profile.name, result, now=now)
    note_output(warehouse, as_of, profile.name, path)
