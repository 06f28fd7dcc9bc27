"""`filtered_candidates` and `scored_rankings`: the gatekeeper for each day and profile (G).

One step makes both, day by day in ascending order: a paper that an earlier day's list showed is removed from later days
(ALREADY_SHOWN), so the candidates of all days cannot be made before the first ranking. day_inputs.py determines what a
day depends on, rankings.py computes it; this file has the step, its reports and its checks.

On a Dask cluster the profiles of one day are ranked in parallel, day after day (X4). This process alone reads and
writes the stores; only the rankings are computed elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from paper_assets.cluster import Cluster, Connection, connected, rankings_of
from paper_assets.errors import ClusterUnavailable, LLMUnreachable, NotComputed, PaperAssetsError
from paper_assets.learning.ratings import ratings_by_id
from paper_assets.pipeline import staleness
from paper_assets.pipeline.changes import changes_of
from paper_assets.pipeline.day_inputs import CODE_VERSION, profile_day, profile_queries
from paper_assets.pipeline.profiles import remembered_profile
from paper_assets.pipeline.rankings import RankingWork, keep_candidates, ranking_work
from paper_assets.pipeline.staleness import spans_of, with_options
from paper_assets.pipeline.step import (
    STOPS_ALL,
    Check,
    Checked,
    Columns,
    Made,
    Markdown,
    Partition,
    Product,
    Report,
    Step,
    Table,
    ascending,
    bars,
    make_each,
    stacked_bars,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.ranking.changes import Changes, sentences
from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.ranking.explain import ADDED_IN_WORDS, recompute
from paper_assets.ranking.final_list import order_value
from paper_assets.ranking.levels import headline_of, learned_of, level_of_row
from paper_assets.ranking.rank import Ranking, RankingTask, rank
from paper_assets.ranking.verifier import Verifier, agreement, reader_of_profile, unavailable
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.ranking_files import saved_file
from paper_assets.stores.rankings import (
    StoredRanking,
    candidates,
    candidates_inputs,
    ranking,
    ranking_header,
    stored_inputs,
)
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import cost_in_words
from paper_assets.weights import DIMENSIONS


@dataclass(slots=True)
class _Done:
    new: dict[Partition, bool] = field(default_factory=dict)
    failures: dict[Partition, PaperAssetsError] = field(default_factory=dict)


def day_by_day(
    cluster: Cluster,
    partitions: Sequence[Partition],
    *,
    prepare: Callable[[Partition], bool],
    work_of: Callable[[Partition], RankingWork | None],
    verifier: Verifier,
) -> tuple[dict[Partition, bool], dict[Partition, PaperAssetsError]]:
    """Rank each partition; `prepare` makes its candidates and returns whether they are new, `work_of` starts its
    ranking.

    As in `make_each`, a profile's later days depend on its earlier ones, and a failure stops no other profile; after a
    failure of the cluster or a store nothing more is tried. Returns (new, failures).
    """
    done = _Done()
    try:
        with connected(cluster, model=None) as connection:
            for _, of_day in groupby(ascending(partitions), key=lambda each: each.of_day):
                failed = {each.profile for each in done.failures}
                asked = [each for each in of_day if each.profile not in failed]
                _one_day(connection, asked, done, prepare=prepare, work_of=work_of, verifier=verifier)
                if any(isinstance(each, STOPS_ALL) for each in done.failures.values()):
                    break
    except ClusterUnavailable as failure:
        left = [each for each in ascending(partitions) if each not in done.new and each not in done.failures]
        done.failures |= dict.fromkeys(left[:1], failure)
    return done.new, done.failures


def _one_day(
    connection: Connection,
    asked: list[Partition],
    done: _Done,
    *,
    prepare: Callable[[Partition], bool],
    work_of: Callable[[Partition], RankingWork | None],
    verifier: Verifier,
) -> None:
    works: dict[Partition, RankingWork] = {}

    def begin(partition: Partition) -> bool:
        prepare(partition)
        if work := work_of(partition):
            works[partition] = work
        return work is not None

    begun_new, failures = make_each(asked, begin)
    done.failures |= failures
    done.new |= {partition: False for partition, new in begun_new.items() if not new}
    for partition, found in _found(connection, {each: work.task for each, work in works.items()}, verifier):
        try:
            if isinstance(found, PaperAssetsError):
                raise found
            works[partition].store(found)
            done.new[partition] = True
        except ClusterUnavailable:
            raise
        except PaperAssetsError as failure:
            done.failures[partition] = failure


def _found(
    connection: Connection, tasks: Mapping[Partition, RankingTask], verifier: Verifier
) -> Iterator[tuple[Partition, Ranking | PaperAssetsError]]:
    """Yield rankings as they arrive. Rank in this process if a language model is used or only one profile has work."""
    asks = [each for each, task in tasks.items() if verifier.model and task.options.enable_llm_verification]
    sent = [each for each in tasks if each not in asks]
    if len(sent) == 1:
        asks, sent = [*asks, *sent], []
    # A verifier with a model holds its key and the store; it is not used here.
    travelling = verifier if verifier.model is None else None
    if sent:
        for place, found in rankings_of(connection, [tasks[each] for each in sent], verifier=travelling):
            yield sent[place], found
    for each in asks:
        yield each, rank(tasks[each], verifier=verifier)


_HELD_SECONDS = (
    0.5  # seconds for which the store is kept open; opening it and its checkpoint take a tenth of the time of a list
)
_RECOMPUTED_WITHIN = 1e-9  # stored as doubles; anything more is another formula


def candidate_report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report how many papers passed, and how many were removed for which reason."""
    day, profile = partition.of_day, partition.of_profile
    rows = candidates(workspace.warehouse, day, profile).to_pylist()
    reasons = Counter(str(row["reason"]).split(":")[0] for row in rows if not row["passed"])
    outcome = {"passed": sum(row["passed"] for row in rows), **dict(reasons.most_common())}
    removed = [row for row in rows if not row["passed"]][:10]
    return Report(
        candidates_inputs(workspace.warehouse, day, profile) or "",
        {
            "dagster/row_count": len(rows),
            "dagster/column_schema": Columns(
                [
                    ("paper_id", "string", "arXiv id without version"),
                    ("title", "string", "title"),
                    ("passed", "bool", "became a candidate"),
                    ("reason", "string", "first filter that removed it"),
                    ("phase", "int", "filter phase"),
                ]
            ),
            "passed": outcome["passed"],
            "removed": Table(
                ["id", "title", "reason"], [(row["paper_id"], row["title"], row["reason"]) for row in removed]
            ),
            "outcome": bars(outcome, title=f"Papers in the window of {profile}, {day}"),
        },
    )


_RANKING_COLUMNS = Columns(
    [
        ("rank", "int", "place, from 1"),
        ("shown", "bool", "in the list"),
        ("paper_id", "string", "arXiv id without version"),
        ("final", "double", "final score"),
        *((name, "double", f"{DIMENSIONS_IN_WORDS[name]}, 0..1") for name in DIMENSIONS),
        ("bonus", "double", "added by the ranking mode"),
        ("soft_penalty", "double", "taken off for avoided keywords"),
        ("diversity_penalty", "double", "taken off for similarity to a paper above"),
        ("penalty_keywords", "list<string>", "avoided keywords found"),
        ("evaluation_method", "string", "what judged the relevance"),
        ("tags", "list<string>", "what is notable about the paper"),
        ("nearest", "string", "the interest, else the liked paper, that it matches best"),
        ("meaning", "double", "relevance: similarity of meaning to that interest"),
        ("words", "double", "relevance: share of that interest's words"),
        ("library", "double", "relevance: probability by the liked papers"),
        ("interest_probability", "double", "relevance: probability by that interest alone"),
        ("version", "int", "of the paper, as it was judged"),
        ("learned", "double", "by how much your ratings moved relevance"),
        ("learned_words", "list<string>", "words that did it"),
        ("learned_near", "list<string>", "rated papers that did it"),
    ]
)


def ranking_report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report the top papers with their scores and the contribution of each dimension."""
    warehouse = workspace.warehouse
    stored = ranking(warehouse, partition.of_day, partition.of_profile)
    header, shown = stored.header, stored.rows.filter(stored.rows.column("shown"))
    top, changes = shown.slice(0, 10).to_pylist(), _changes_since_the_day_before(warehouse, stored)
    named = {*(row["paper_id"] for row in top), *(move.paper_id for move in (changes.moves if changes else ()))}
    titles = {row["paper_id"]: row["title"] for row in papers_by_id(warehouse, sorted(named)).to_pylist()}
    noted = header["output_path"]
    return Report(
        stored.inputs,
        {
            "dagster/row_count": stored.rows.num_rows,
            "dagster/column_schema": _RANKING_COLUMNS,
            "top_papers": _top_papers(top, titles, header),
            "score_breakdown": stacked_bars(
                [f"{row['rank']}. {titles.get(row['paper_id'], row['paper_id'])}" for row in top],
                _contributions(top, header["weights"]),
                title=f"What each dimension brought, {stored.profile}, {stored.day}",
            ),
            "changed": Markdown(_in_words(changes, titles)),
            "purpose": header["purpose"],
            "ranking_mode": header["ranking_mode"],
            "evaluation_method": header["evaluation_method"],
            "interest_mode": header["interest_mode"],
            "list": headline_of(header, shown.num_rows),
            "llm_model": header["llm_model"] or "none",
            "llm_calls": header["llm_calls_made"],
            "llm_tokens": header["llm_input_tokens"] + header["llm_output_tokens"],
            "llm_verdicts_kept_from_before": header["llm_cached"],
            "llm_note": header["llm_note"] or "",
            "learning": header.get("learning") or "no ratings",
            "profile_hash": header["profile_hash"],
            "model": header["model"] or "none",
            "warnings": Markdown("\n".join(f"- {line}" for line in header["warnings"]) or "none"),
            "file": saved_file(workspace.settings.rankings_dir, stored.profile, noted) or Path(noted),
        },
    )


def _top_papers(top: Sequence[Mapping[str, Any]], titles: Mapping[str, str], header: Mapping[str, Any]) -> Table:
    return Table(
        [
            "rank",
            "level",
            "match" if "preference_weight" in header else "score",
            "relevance",
            "recency",
            "paper",
            "tags",
        ],
        [
            (
                row["rank"],
                level.name if (level := level_of_row(row, header)) else "",
                order_value(row, header),
                row["semantic_relevance"],
                row["recency"],
                f"{row['paper_id']} {titles.get(row['paper_id'], '')}",
                ", ".join(row["tags"]),
            )
            for row in top
        ],
    )


def _contributions(top: Sequence[Mapping[str, Any]], weights: Mapping[str, float]) -> dict[str, list[float]]:
    """Return by name what was added to the score of each paper: weighted dimensions, ratings, bonus, penalties."""
    parts = {name: [weights[name] * row[name] for row in top] for name in DIMENSIONS}
    if any(row["learned"] for row in top):
        parts["learned"] = [weights["semantic_relevance"] * learned_of(row) for row in top]
    return parts | {name: [row[name] for row in top] for name in ADDED_IN_WORDS if any(row[name] for row in top)}


def _changes_since_the_day_before(warehouse: Warehouse, stored: StoredRanking) -> Changes | None:
    try:
        return changes_of(warehouse, stored.profile, stored.day)
    except NotComputed:
        return None


def _in_words(changes: Changes | None, titles: Mapping[str, str]) -> str:
    from paper_assets.digests.markdown import escape_markdown  # loads templates

    if changes is None:
        return "the first ranking of this profile"
    named = {paper_id: escape_markdown(title) for paper_id, title in titles.items()}
    return f"{len(changes.entered)} entered, {len(changes.left)} left, {len(changes.moved)} moved\n" + "\n".join(
        f"- {line}" for line in sentences(changes, named)
    )


def every_removed_paper_has_a_reason(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """A paper has passed, or names the filter that removed it; never both, never neither."""
    unexplained = [
        f"{each} {row['paper_id']}"
        for each in partitions
        for row in candidates(workspace.warehouse, each.of_day, each.of_profile).to_pylist()
        if row["passed"] == bool(row["reason"])
    ]
    return Checked(passed=not unexplained, counted={"partitions": len(partitions), "unexplained": unexplained[:20]})


def scores_are_in_range_and_recomputable(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Every score can be recomputed from its stored parts and is in its range."""
    scoring = workspace.settings.scoring
    worst, out_of_range = 0.0, 0
    for each in partitions:
        kept = ranking(workspace.warehouse, each.of_day, each.of_profile)
        final = kept.rows.column("final").to_numpy()
        again = recompute(kept.rows, kept.header["weights"], scoring)
        worst = max(worst, float(np.max(np.abs(final - again), initial=0.0)))
        inside = (final >= scoring.final_floor) & (final <= scoring.final_ceiling)
        parts = np.column_stack([kept.rows.column(name).to_numpy() for name in DIMENSIONS])
        out_of_range += int((~inside).sum() + ((parts < 0) | (parts > 1)).sum())
    return Checked(
        passed=worst <= _RECOMPUTED_WITHIN and out_of_range == 0,
        counted={"partitions": len(partitions), "largest_difference": worst, "out_of_range": out_of_range},
    )


CANDIDATES, RANKINGS = "filtered_candidates", "scored_rankings"


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Filter, score and store each day and profile; nothing is computed again if its inputs are unchanged."""
    model = workspace.embedder() if RANKINGS in wanted else None
    verifier = workspace.load_verifier()
    # The list comes first, and is ranked again when the model has judged its papers.
    first = replace(verifier, ask=unavailable(_NOT_YET)) if verifier.model else verifier

    @cache
    def profile_of(name: str) -> Profile:
        return with_options(remembered_profile(workspace, name), workspace.options)

    def prepare(partition: Partition) -> bool:
        if CANDIDATES not in wanted:
            return False
        inputs = profile_day(
            workspace.warehouse, profile_of(partition.of_profile), partition.of_day, settings=workspace.settings
        )
        return keep_candidates(workspace.warehouse, inputs, settings=workspace.settings)

    def work_of(partition: Partition) -> RankingWork | None:
        return ranking_work(
            workspace.warehouse,
            profile_of(partition.of_profile),
            partition.of_day,
            embedder=model,
            llm=verifier.model,
            settings=workspace.settings,
            now=workspace.clock(),
        )

    def rank_here(partition: Partition, judged_by: Verifier) -> bool:
        work = work_of(partition)
        if work:
            work.store(rank(work.task, verifier=judged_by))
        return work is not None

    def refine(partition: Partition) -> bool:
        """Rank again with the model's verdicts, where the list lacks some."""
        trusted = replace(
            verifier,
            right=model_reliability(workspace, profile_of(partition.of_profile), verifier),
            report=lambda what: workspace.progress(0, None, what),
        )
        new = rank_here(partition, trusted)
        header = ranking_header(workspace.warehouse, partition.of_day, partition.of_profile)
        if new and header["llm_calls_made"]:
            tokens = header["llm_input_tokens"] + header["llm_output_tokens"]
            workspace.log.info(f"{partition}: paid {cost_in_words(header['llm_calls_made'], tokens, None)}")
        if header["llm_note"]:
            workspace.log.warning(f"{partition}: {header['llm_note']}")
        return new

    if workspace.cluster and RANKINGS in wanted:
        new, failures = day_by_day(workspace.cluster, partitions, prepare=prepare, work_of=work_of, verifier=verifier)
    else:
        with workspace.warehouse.held_in_turns(_HELD_SECONDS) as hold:

            def make_held(partition: Partition) -> bool:
                hold()
                new = prepare(partition)
                return rank_here(partition, first) if RANKINGS in wanted else new

            new, failures = make_each(partitions, make_held, in_order=True, progress=workspace.progress)
        if verifier.model and RANKINGS in wanted:  # takes minutes, and holding the store would block other processes
            listed = [each for each in partitions if each not in failures]
            refined, failed = make_each(listed, refine, in_order=True, progress=workspace.progress)
            new |= {each: new.get(each, False) or changed for each, changed in refined.items()}
            failures |= failed
    return Made(new=new, failures=failures)


_NOT_YET = LLMUnreachable("the language model has not judged them yet")


def model_reliability(workspace: Workspace, profile: Profile, verifier: Verifier) -> float:
    """Return how often the language model is right for a reader, learned from its verdicts on rated papers."""
    ratings = ratings_by_id(workspace.warehouse, profile.name)
    worth = {paper: rating == "worth" for paper, rating in ratings.items() if rating != "later"}
    rated = papers_by_id(workspace.warehouse, sorted(worth))
    if not rated.num_rows:
        return verifier.right
    queries = profile_queries(workspace.warehouse, profile, settings=workspace.settings)
    reader = reader_of_profile(queries.in_words, profile.content)
    return agreement(rated, worth, reader, verifier=verifier, scoring=workspace.settings.scoring)


def _reported(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[str, Mapping[Partition, str]]:
    candidates: dict[Partition, str] = {}
    ranked: dict[Partition, str] = {}
    for name, of_days in stored_inputs(workspace.warehouse, spans_of(partitions)).items():
        for day, (judged, scored) in of_days.items():
            candidates[Partition(day, name)] = judged
            if scored is not None:
                ranked[Partition(day, name)] = scored
    return {CANDIDATES: candidates, RANKINGS: ranked}


_UPSTREAM = ("paper_embeddings", "research_profile", "preference_model")
STEP = Step(
    tracked=staleness.RANKINGS,
    products=(
        Product(
            name=CANDIDATES,
            description="Every paper of the window ending on the day: passed, or removed with its reason.",
            kinds=frozenset({"duckdb"}),
            report=candidate_report,
            deps=_UPSTREAM,
            any_day=frozenset({"paper_embeddings"}),
            checks=(Check(every_removed_paper_has_a_reason, serious=True, blocking=True),),
        ),
        Product(
            name=RANKINGS,
            description="The profile's candidates of the day in order of worth, every score explained.",
            kinds=frozenset({"duckdb", "json"}),
            report=ranking_report,
            deps=(CANDIDATES, *_UPSTREAM),
            any_day=frozenset({"paper_embeddings"}),
            checks=(Check(scores_are_in_range_and_recomputable, serious=True, blocking=True),),
        ),
    ),
    group="ranking",
    code_version=CODE_VERSION,
    make=_make,
    reported=_reported,
    reports_only_read=True,
)
