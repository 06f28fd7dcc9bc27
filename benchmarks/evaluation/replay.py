"""Replay consecutive days of judged profiles through the real steps, in a temporary warehouse (G17).

The functions of the graph filter, rank and store each day, so a paper shown once is ALREADY_SHOWN on the next day; no
language model is used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta

from benchmarks.evaluation.judged_lists import JudgedLists, JudgedProfile, ReplayedDay
from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import Embedder
from paper_assets.paper import embedded_text, text_hash
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.profile import Profile
from paper_assets.ranking.gatekeeper import Embed, ranking_options
from paper_assets.ranking.verifier import Verifier, open_verifier
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.papers import paper_counts, papers_between
from paper_assets.stores.rankings import candidates, ranking
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """How many days are replayed, with how many papers a day, in which interest mode (None: the profile's)."""

    days: int
    top_k: int
    interest_mode: str | None = None


def replayed_days(
    warehouse: Warehouse,
    lists: JudgedLists,
    options: ReplayOptions,
    *,
    last: date,
    embedder: Embedder,
    embed: Embed,
    settings: Settings,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Mapping[str, tuple[ReplayedDay, ...]]:
    """Rank each profile's days up to `last`, in order and without repeats.

    Returns fewer days if the papers do not go back that far. `warehouse` is a scratch one: rankings are written to it
    and JSON files beside it. The papers of the days get the vectors of `embed`, which are those of `embedder`, cached
    or not.
    """
    first = last - timedelta(days=options.days - 1)
    home = warehouse.path.parent
    scratch = settings.model_copy(update={"home": home, "output_dir": home / "output", "first_day": date(1970, 1, 1)})
    _embed_papers(warehouse, lists, first, last, model=embedder.name, embed=embed)
    no_model = open_verifier({})
    first = max([first, *list(paper_counts(warehouse))[:1]])
    if first > last:
        raise InvalidInput(f"no paper is known up to {last}; name a later day with --as-of, or another file")
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    seen, done = {}, 0
    for judged in lists.profiles:
        profile = _subscriber(judged, options)
        found = []
        for day in days:
            progress(done, len(days) * len(lists.profiles))
            found.append(_replayed(warehouse, profile, day, embedder=embedder, verifier=no_model, settings=scratch))
            done += 1
        seen[judged.name] = tuple(found)
    return seen


def _subscriber(judged: JudgedProfile, options: ReplayOptions) -> Profile:
    """Return the profile as a daily reader would set it: K papers a day, no repeats."""
    content = judged.profile.content
    ranking = ranking_options(judged.profile, {"top_k": options.top_k, "interest_mode": options.interest_mode})
    feed = content.feed.model_copy(update={"repeat": False})
    return replace(judged.profile, content=content.model_copy(update={"ranking": ranking, "feed": feed}))


def _embed_papers(
    warehouse: Warehouse, lists: JudgedLists, first: date, last: date, *, model: str, embed: Embed
) -> None:
    """Embed the papers of every window in first..last that a profile follows."""
    feeds = [judged.profile.content.feed for judged in lists.profiles]
    earliest = first - timedelta(days=max(feed.window_days for feed in feeds) - 1)
    followed = {category for feed in feeds for category in feed.categories or ()}
    categories = None if any(feed.categories is None for feed in feeds) else sorted(followed)
    papers = papers_between(warehouse, earliest, last, categories=categories)
    columns = (papers.column(name).to_pylist() for name in ("title", "abstract"))
    texts = sorted({embedded_text(*text) for text in zip(*columns, strict=True)})
    keep_vectors(warehouse, [text_hash(text) for text in texts], embed(texts), model=model)


def _replayed(
    warehouse: Warehouse, profile: Profile, day: date, *, embedder: Embedder, verifier: Verifier, settings: Settings
) -> ReplayedDay:
    keep_candidates(warehouse, profile_day(warehouse, profile, day, settings=settings), settings=settings)
    now = datetime.combine(day, time(), tzinfo=UTC)
    keep_ranking(warehouse, profile, day, embedder=embedder, verifier=verifier, settings=settings, now=now)
    stored, filtered = ranking(warehouse, day, profile.name), candidates(warehouse, day, profile.name)
    shown = stored.rows.filter(stored.rows.column("shown")).column("paper_id").to_pylist()
    passed = filtered.filter(filtered.column("passed")).column("paper_id").to_pylist()
    return ReplayedDay(
        day=day,
        shown=tuple(shown),
        candidates=frozenset(passed),
        quiet=not shown,
    )
