"""One profile's day from the stores and back: load, ask the core, keep. The only module of this room with I/O.

Days must be walked in ascending order: a day's candidates lack what earlier days of the window have shown.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import NotComputed
from paper_assets.models.embedder import Embedder
from paper_assets.paper import embedded_text, papers_from_table
from paper_assets.profile import Profile
from paper_assets.ranking.changes import Changes, changes_between
from paper_assets.ranking.filters import Sieve, filter_papers
from paper_assets.ranking.fingerprint import candidate_fingerprint, ranking_fingerprint
from paper_assets.ranking.interest_modes import Sought, liked_ids, what_is_sought
from paper_assets.ranking.llm_check import SecondLook
from paper_assets.ranking.rank import Ranking, rank
from paper_assets.ranking.result import ranking_result
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import vectors_of
from paper_assets.stores.papers import day_fingerprints, papers_between, papers_by_id
from paper_assets.stores.ranking_files import find_saved, save_ranking
from paper_assets.stores.rankings import (
    candidates,
    candidates_inputs,
    latest_ranking_day,
    note_output,
    previous_ranking,
    ranking,
    ranking_inputs,
    replace_candidates,
    replace_ranking,
    shown_by_day,
    stored_inputs,
)
from paper_assets.stores.warehouse import Warehouse

if TYPE_CHECKING:
    import pyarrow as pa

CODE_VERSION = "1"  # raise it when filters or scoring change, so that stored days are computed again

_UNFINISHED = " unfinished"  # ends the fingerprint of a ranking whose LLM check failed, so that it is made again


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDay:
    """A day's inputs: the profile, the papers of first..as_of by content, the papers shown before."""

    profile: Profile
    as_of: date
    first: date
    papers: Mapping[date, str]
    shown: frozenset[str]
    inputs: str


def profile_day(warehouse: Warehouse, profile: Profile, as_of: date, *, settings: Settings) -> ProfileDay:
    """Gather a day's inputs: the window of `feed.window_days` ending on `as_of`, and what it has already shown."""
    papers, shown = _gathered(warehouse, profile, as_of, as_of)
    return _profile_day(profile, as_of, papers=papers, shown=shown, settings=settings)


def stale_from(
    warehouse: Warehouse,
    profile: Profile,
    walk: Sequence[date],
    *,
    model: str | None,
    llm: str | None,
    settings: Settings,
) -> date | None:
    """The first day of the ascending `walk` whose stored ranking does not rest on today's inputs; None if all do."""
    if not walk:
        return None
    papers, shown = _gathered(warehouse, profile, walk[0], walk[-1])
    stored = stored_inputs(warehouse, profile.name, walk[0], walk[-1])
    texts = sought_by(warehouse, profile, settings=settings).texts
    for as_of in walk:
        day = _profile_day(profile, as_of, papers=papers, shown=shown, settings=settings)
        ranked = ranking_fingerprint(
            day.inputs, options=profile.content.ranking, texts=texts, model=model, llm=llm, code_version=CODE_VERSION
        )
        if stored.get(as_of) != (day.inputs, ranked):
            return as_of
    return None


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
    settings: Settings,
) -> ProfileDay:
    feed = profile.content.feed
    first = max(as_of - timedelta(days=feed.window_days - 1), settings.first_day)
    in_window = {day: papers[day] for day in papers if first <= day <= as_of}
    before = frozenset[str]().union(*(ids for day, ids in shown.items() if first <= day < as_of and not feed.repeat))
    inputs = candidate_fingerprint(
        profile, as_of=as_of, scoring=settings.scoring, papers=in_window, shown=before, code_version=CODE_VERSION
    )
    return ProfileDay(profile=profile, as_of=as_of, first=first, papers=in_window, shown=before, inputs=inputs)


def keep_candidates(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> bool:
    """Filter the window's papers and store the outcome; False if the stored candidates have these inputs already."""
    if candidates_inputs(warehouse, day.as_of, day.profile.name) == day.inputs:
        return False
    content = day.profile.content
    papers = papers_between(warehouse, day.first, day.as_of, categories=content.feed.categories)
    sieve = Sieve(
        content=content,
        options=content.ranking,
        scoring=settings.scoring,
        read_ids=day.profile.read_ids.union(liked_ids(content.interests)),
        shown_ids=day.shown,
    )
    rows = filter_papers(papers, sieve)
    replace_candidates(warehouse, day.as_of, day.profile.name, rows, inputs=day.inputs)
    return True


def keep_ranking(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    embedder: Embedder | None,
    second_look: SecondLook,
    settings: Settings,
    now: datetime,
) -> bool:
    """Score the stored candidates and store the ranking and its JSON file; False if nothing it depends on changed.

    Without an embedder keyword matching takes over (G6). Raises NotComputed if candidates or vectors are missing.
    """
    name, model = profile.name, embedder.name if embedder else None
    candidate_inputs = candidates_inputs(warehouse, as_of, name)
    if candidate_inputs is None:
        raise NotComputed(f"no candidates for profile {name!r} on {as_of}; materialize filtered_candidates")
    options = profile.content.ranking
    sought = sought_by(warehouse, profile, settings=settings)
    inputs = ranking_fingerprint(
        candidate_inputs,
        options=options,
        texts=sought.texts,
        model=model,
        llm=second_look.model,
        code_version=CODE_VERSION,
    )
    if ranking_inputs(warehouse, as_of, name) == inputs:
        keep_file(warehouse, profile, as_of, settings=settings)
        return False
    judged = candidates(warehouse, as_of, name)
    papers = papers_by_id(warehouse, judged.filter(judged.column("passed")).column("paper_id").to_pylist())
    vectors, asked = _vectors(warehouse, papers, profile, sought, embedder)
    ranked = rank(
        papers,
        profile,
        options=options,
        as_of=as_of,
        scoring=settings.scoring,
        sought=sought,
        vectors=vectors,
        asked=asked,
        pdf_names=profile.pdf_names,
        second_look=second_look,
    )
    if second_look.model and ranked.header["llm_note"]:
        inputs += _UNFINISHED
    warnings = list(sought.warnings)
    if embedder is None:
        warnings.append("relevance was judged by keywords only: the embedding model cannot be loaded")
    header = {
        **ranked.header,
        "model": model,
        "code_version": CODE_VERSION,
        "generated_at": now.isoformat(timespec="seconds"),
        "warnings": warnings,
        "output_path": None,
    }
    replace_ranking(warehouse, as_of, name, ranked.rows, header, inputs=inputs)
    keep_file(warehouse, profile, as_of, settings=settings)
    return True


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
    path = find_saved(folder, profile.name, result, now=now) or save_ranking(folder, profile.name, result, now=now)
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
            raise NotComputed(f"profile {profile!r} has no ranking before {day}; nothing to compare")
        earlier = ranking(warehouse, before, profile)
    judged = candidates(warehouse, day, profile)
    removed = judged.filter(judged.column("reason").is_valid())
    reasons = zip(removed.column("paper_id").to_pylist(), removed.column("reason").to_pylist(), strict=True)
    return changes_between(earlier.rows, after.rows, headers=(earlier.header, after.header), removed=dict(reasons))


def sought_by(warehouse: Warehouse, profile: Profile, *, settings: Settings) -> Sought:
    """What the profile looks for; papers that it likes by their id are read from the warehouse."""
    interests, known = profile.content.interests, {}
    if ids := liked_ids(interests):
        found = papers_from_table(papers_by_id(warehouse, ids))
        known = {paper.paper_id: (paper.title, paper.abstract) for paper in found}
    return what_is_sought(interests, options=profile.content.ranking, scoring=settings.scoring, known=known)


def _vectors(
    warehouse: Warehouse, papers: "pa.Table", profile: Profile, sought: Sought, embedder: Embedder | None
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
    """The papers' stored vectors (n, d) and those of `sought.texts` (t, d), or neither without a model."""
    if embedder is None or not papers.num_rows:
        return None, None
    vectors, found = vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=embedder.name)
    if not found.all():
        days = sorted({paper.day for paper in papers_from_table(papers.filter(~found)) if paper.day})
        raise NotComputed(
            f"{int((~found).sum())} candidates of {profile.name!r} have no vector; "
            f"materialize paper_embeddings for {days[0]} to {days[-1]}"
        )
    return vectors, _asked_vectors(warehouse, profile, sought, embedder)


def _asked_vectors(warehouse: Warehouse, profile: Profile, sought: Sought, embedder: Embedder) -> NDArray[np.float32]:
    """(t, d) vectors of `sought.texts`: stored ones of liked papers, the rest embedded."""
    stored = {}
    if ids := liked_ids(profile.content.interests):
        liked = papers_from_table(papers_by_id(warehouse, ids))
        rows, found = vectors_of(warehouse, [paper.paper_id for paper in liked], model=embedder.name)
        texts = [embedded_text(paper.title, paper.abstract) for paper in liked]
        stored = {text: row for text, row, known in zip(texts, rows, found, strict=True) if known}
    missing = [text for text in sought.texts if text not in stored]
    vectors = {**stored, **dict(zip(missing, embedder.encode(missing), strict=True))}
    return np.array([vectors[text] for text in sought.texts], dtype=np.float32).reshape(-1, embedder.dimension)
