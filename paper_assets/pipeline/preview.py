"""Preview the list of an edited profile: ranked as a run would rank it, and not stored (V6)."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from paper_assets.errors import LLMConfigError, NotComputed
from paper_assets.pipeline.changes import changes_since
from paper_assets.pipeline.day_inputs import CODE_VERSION, earlier_list, profile_day, profile_queries
from paper_assets.pipeline.preferences import current_preferences
from paper_assets.pipeline.rankings import day_task, judged_papers, warnings_of, with_stored_vectors
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.ranking.changes import Changes
from paper_assets.ranking.rank import rank
from paper_assets.ranking.tags import AVOIDED_TOPIC, avoided_topic
from paper_assets.ranking.verifier import Verifier, unavailable
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import StoredRanking, ranking

_ASKS_NOBODY = LLMConfigError("a preview asks no language model; the run may")


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The list of `ranking.day` for the edited profile.

    `changes`: from the stored list of that day (None: there is none). `titles`: of the papers listed or moved.
    `removed`: how many of the `considered` papers of the window were removed, by reason.
    """

    ranking: StoredRanking
    warnings: tuple[str, ...]
    changes: Changes | None
    titles: Mapping[str, str]
    removed: Mapping[str, int]
    considered: int


def preview(workspace: Workspace, profile: Profile, day: date) -> Preview:
    """Rank the day with this profile instead of the stored one. Cached verdicts of a language model count; no new ones
    are requested.

    Raises NotComputed if papers of the window have no vector, StoreBusy.
    """
    warehouse, settings = workspace.warehouse, workspace.settings
    judged = judged_papers(warehouse, profile_day(warehouse, profile, day, settings=settings), settings=settings)
    asked, embedder = workspace.load_verifier(), workspace.embedder()
    preferences, _ = current_preferences(warehouse, profile, model=embedder.name if embedder else None)
    task = day_task(
        warehouse,
        profile,
        day,
        judged,
        queries=profile_queries(warehouse, profile, settings=settings),
        preferences=preferences,
        earlier=earlier_list(warehouse, profile, day),
        settings=settings,
    )
    task = with_stored_vectors(warehouse, profile, task, embedder, keep=False)
    result = rank(task, verifier=Verifier(ask=unavailable(_ASKS_NOBODY), model=asked.model, known=asked.known))
    header = {**result.header, "model": embedder.name if embedder else None, "code_version": CODE_VERSION}
    edited = StoredRanking(day=day, profile=profile.name, inputs="", header=header, rows=result.rows)
    changes = None
    with suppress(NotComputed):
        changes = changes_since(
            warehouse, ranking(warehouse, day, profile.name), edited, judged=judged, profile=profile
        )
    moves = changes.moves if changes else ()
    shown = result.shown.column("paper_id").to_pylist()
    papers = papers_by_id(warehouse, sorted({*shown, *(move.paper_id for move in moves)})).to_pylist()
    reasons = [reason for reason in judged.column("reason").to_pylist() if reason]
    topics = map(avoided_topic, result.rows.column("tags").to_pylist())
    reasons += [f"{AVOIDED_TOPIC}:{topic}" for topic in topics if topic]
    return Preview(
        ranking=edited,
        warnings=(*task.warnings, *warnings_of(warehouse, profile, task), *header["notes"]),
        changes=changes,
        titles={paper["paper_id"]: paper["title"] for paper in papers},
        removed=Counter(reasons),
        considered=judged.num_rows,
    )
