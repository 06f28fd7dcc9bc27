"""`filtered_candidates` and `scored_rankings`: the gatekeeper for each day and profile (G).

One step makes both, day by day in ascending order: a paper that an earlier day's list showed is removed from later days
(ALREADY_SHOWN), so the candidates of all days cannot be made before the first ranking. day_inputs.py determines what a
day depends on, rankings.py computes it; this file has the step, its reports and its checks.

On a Dask cluster the profiles of one day are ranked in parallel, day after day (X4). This process alone reads and
writes the stores; only the rankings are computed elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from paper_assets.cluster import Connection, connected, rankings_of
from paper_assets.errors import ClusterUnavailable, LLMUnreachable, NotComputed, PaperAssetsError, named_error
from paper_assets.learning.ratings import ratings_by_id
from paper_assets.models.embedder import Embedder
from paper_assets.pipeline import staleness
from paper_assets.pipeline.changes import changes_of, days_before
from paper_assets.pipeline.day_inputs import CODE_VERSION, profile_day, profile_queries
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.rankings import (
    Judged,
    RankingWork,
    keep_file,
    new_candidates,
    ranking_work,
    with_stored_vectors,
)
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
    keys_of,
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
from paper_assets.stores.profiles import keep_profile, last_good_profile
from paper_assets.stores.ranking_files import saved_file
from paper_assets.stores.rankings import (
    StoredRanking,
    candidates,
    candidates_inputs,
    ranking,
    ranking_header,
    replace_candidates,
    stored_inputs,
)
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import cost_in_words
from paper_assets.weights import DIMENSIONS

RankAll = Callable[[Mapping[Partition, RankingTask]], Iterator[tuple[Partition, Ranking | PaperAssetsError]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """A partition of which all is read: its candidates if they are new, and its ranking unless it is current."""

    profile: Profile
    is_kept: bool  # the profile's content is stored
    judged: Judged | None
    work: RankingWork | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One run of the step: its new candidates and rankings by partition, and its failures.

    Of a day the profiles are read together. As in `make_each`, a profile's later days depend on its earlier ones, a
    failure stops no other profile, and after one of `STOPS_ALL` nothing more is tried.
    """

    workspace: Workspace
    wanted: frozenset[str]
    model: Embedder | None
    llm: str | None
    profiles: dict[str, Profile] = field(default_factory=dict)
    new: dict[Partition, bool] = field(default_factory=dict)
    failures: dict[Partition, PaperAssetsError] = field(default_factory=dict)

    def make(self, partitions: Sequence[Partition], rank_all: RankAll, *, at_once: bool = True) -> None:
        """Make each partition; `at_once`: store the rankings of a group when all are computed."""
        together: list[Partition] = []
        try:
            for _, of_day in groupby(ascending(partitions), key=lambda each: each.of_day):
                for together in self._groups([*of_day]):
                    self.workspace.progress(len(self.new) + len(self.failures), len(partitions))
                    self._make_together(together, rank_all, at_once=at_once)
        except Exception as error:
            left = [each for each in together or partitions if each not in self.new and each not in self.failures]
            self.failures.update({each: named_error(error, f"{each}") for each in left[:1]})

    def _groups(self, of_day: Sequence[Partition]) -> Iterator[list[Partition]]:
        """Group the partitions of a day: what is read for a group is in memory together."""
        failed, group, days = {each.profile for each in self.failures}, list[Partition](), 0
        for each in of_day:
            if each.profile not in failed and (profile := self._profile(each)):
                days += profile.content.feed.window_days
                if group and days > _DAYS_TOGETHER:
                    yield group
                    group, days = [], profile.content.feed.window_days
                group.append(each)
        if group:
            yield group

    def _profile(self, partition: Partition) -> Profile | None:
        name = partition.of_profile
        with self._noting(partition):
            if name not in self.profiles:
                self.profiles[name] = usable_profile(self.workspace, name)
        return self.profiles.get(name)

    @contextmanager
    def _noting(self, partition: Partition) -> Iterator[None]:
        """Note an error as the failure of this partition."""
        try:
            yield
        except Exception as error:
            self.failures[partition] = failure = named_error(error, f"{partition}")
            if isinstance(failure, STOPS_ALL):
                raise failure from None

    def _make_together(self, together: Sequence[Partition], rank_all: RankAll, *, at_once: bool) -> None:
        warehouse, settings = self.workspace.warehouse, self.workspace.settings
        begun: dict[Partition, _Begun] = {}
        with warehouse.read_together(keys_of(together)) as opened:
            for each in together:
                with self._noting(each):
                    begun[each] = self._begin(opened, each)
        tasks: dict[Partition, RankingTask] = {}
        with warehouse.held_in_turns(_HELD_SECONDS) as hold:
            for each, found in begun.items():
                hold()
                with self._noting(each):
                    if not found.is_kept:
                        keep_profile(warehouse, self.profiles[each.of_profile])
                    if found.judged:
                        rows, inputs = found.judged.rows, found.judged.inputs
                        replace_candidates(warehouse, each.of_day, each.of_profile, rows, inputs=inputs)
                    if found.work:
                        tasks[each] = with_stored_vectors(warehouse, found.profile, found.work.task, self.model)
                        continue
                    if RANKINGS in self.wanted:
                        keep_file(warehouse, found.profile, each.of_day, settings=settings)
                    self.new[each] = RANKINGS not in self.wanted and found.judged is not None
        ranked_tasks = rank_all(tasks)
        with warehouse.held_in_turns(_HELD_SECONDS) if at_once else nullcontext(lambda: None) as hold:
            for each, ranked in [*ranked_tasks] if at_once else ranked_tasks:
                hold()
                with self._noting(each):
                    work = begun[each].work
                    if isinstance(ranked, PaperAssetsError):
                        raise ranked
                    if work:
                        work.store(warehouse, tasks[each], ranked)
                    self.new[each] = True

    def _begin(self, warehouse: Warehouse, partition: Partition) -> _Begun:
        day, name, settings = partition.of_day, partition.of_profile, self.workspace.settings
        profile = with_options(self.profiles[name], self.workspace.options)
        kept, judged, work = last_good_profile(warehouse, name), None, None
        if CANDIDATES in self.wanted:
            inputs = profile_day(warehouse, profile, day, settings=settings)
            judged = new_candidates(warehouse, inputs, settings=settings)
        if RANKINGS in self.wanted:
            now = self.workspace.clock()
            work = ranking_work(
                warehouse, profile, day, judged=judged, embedder=self.model, llm=self.llm, settings=settings, now=now
            )
        is_kept = kept is not None and kept.content_hash == self.profiles[name].content_hash
        return _Begun(profile=profile, is_kept=is_kept, judged=judged, work=work)


def _ranked_here(
    tasks: Mapping[Partition, RankingTask], *, verifier: Verifier
) -> Iterator[tuple[Partition, Ranking | PaperAssetsError]]:
    """Yield each ranking, or the error in it."""
    for each, task in tasks.items():
        try:
            yield each, rank(task, verifier=verifier)
        except Exception as error:
            yield each, named_error(error, f"{each}")


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
    yield from _ranked_here({each: tasks[each] for each in asks}, verifier=verifier)


# Seconds for which the store is kept open: opening it and its checkpoint take a tenth of the time of a list.
_HELD_SECONDS = 0.5
_DAYS_TOGETHER = (
    140  # of all windows whose papers are in memory together, as of twenty profiles with the default window
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
    titles = _titles(warehouse, stored)
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


def _titles(warehouse: Warehouse, stored: StoredRanking) -> dict[str, str]:
    """Return the titles of the candidates of the day and of the ranked day before."""
    titles: dict[str, str] = {}
    day = (stored.profile, stored.day)
    for profile, each in (*days_before(warehouse, [day]), day):
        with suppress(NotComputed):
            judged = candidates(warehouse, each, profile)
            titles |= dict(zip(judged.column("paper_id").to_pylist(), judged.column("title").to_pylist(), strict=True))
    return titles


def _changes_since_the_day_before(warehouse: Warehouse, stored: StoredRanking) -> Changes | None:
    try:
        return changes_of(warehouse, stored.profile, stored.day)
    except NotComputed:
        return None


def _in_words(changes: Changes | None, titles: Mapping[str, str]) -> str:
    from paper_assets.digests.markdown import escape_markdown  # loads templates

    if changes is None:
        return "the first ranking of this profile"
    named = {move.paper_id: escape_markdown(titles.get(move.paper_id, "")) for move in changes.moves}
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

    run = _Run(workspace=workspace, wanted=wanted, model=model, llm=verifier.model)

    def refine(partition: Partition) -> bool:
        """Rank again with the model's verdicts, where the list lacks some."""
        trusted = replace(
            verifier,
            right=model_reliability(workspace, run.profiles[partition.of_profile], verifier),
            report=lambda what: workspace.progress(0, None, what),
        )
        again = replace(run, wanted=frozenset({RANKINGS}), new={}, failures={})
        again.make([partition], partial(_ranked_here, verifier=trusted), at_once=False)
        for failure in again.failures.values():
            raise failure
        header = ranking_header(workspace.warehouse, partition.of_day, partition.of_profile)
        if again.new[partition] and header["llm_calls_made"]:
            tokens = header["llm_input_tokens"] + header["llm_output_tokens"]
            workspace.log.info(f"{partition}: paid {cost_in_words(header['llm_calls_made'], tokens, None)}")
        if header["llm_note"]:
            workspace.log.warning(f"{partition}: {header['llm_note']}")
        return again.new[partition]

    if workspace.cluster and RANKINGS in wanted:
        try:
            with connected(workspace.cluster, model=None) as connection:
                run.make(partitions, partial(_found, connection, verifier=verifier), at_once=False)
        except ClusterUnavailable as failure:
            run.failures.setdefault(ascending(partitions)[0], failure)
        return Made(new=run.new, failures=run.failures)
    run.make(partitions, partial(_ranked_here, verifier=first))
    if verifier.model and RANKINGS in wanted:  # takes minutes, and holding the store would block other processes
        listed = [each for each in partitions if each not in run.failures]
        refined, failed = make_each(listed, refine, in_order=True, progress=workspace.progress)
        run.new.update({each: run.new.get(each, False) or changed for each, changed in refined.items()})
        run.failures.update(failed)
    return Made(new=run.new, failures=run.failures)


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
