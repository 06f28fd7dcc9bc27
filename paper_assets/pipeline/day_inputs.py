"""Determine what a profile's day is made from: its window of papers, what earlier lists showed, and their fingerprints.

Days must be made in ascending order: papers that earlier days of the window showed are removed from a day's candidates.

A profile's queries are the texts that papers are compared with: its interests and the papers that it likes, those that
it names and those of an imported library (Z1) whose latest rating still is `worth`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np
from numpy.typing import NDArray

from paper_assets.models.embedder import Embedder
from paper_assets.paper import papers_from_table
from paper_assets.profile import Interests, LikedPaper, Profile, understood
from paper_assets.ranking.calibration import standard_version
from paper_assets.ranking.fingerprints import candidate_fingerprint, ranking_fingerprint, wishes_fingerprint
from paper_assets.ranking.relevance import InterestQueries, interest_queries, liked_ids
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import remembered_vectors
from paper_assets.stores.feedback import last_ratings, model_inputs
from paper_assets.stores.papers import day_fingerprints, papers_by_id
from paper_assets.stores.rankings import shown_by_day, wishes_by_day
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "16"  # raise it when filters or scoring change, so that stored days are computed again
_PAUSE = 30  # days without a list, after which the next one is a first list again (`earlier_list`)


def ranking_version() -> str:
    """Return the version of what computes a ranking: the code and the coefficients of relevance."""
    return f"{CODE_VERSION}.{standard_version()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileDay:
    """A day's inputs: the profile, the content of the papers of first..as_of, the papers shown before."""

    profile: Profile
    as_of: date
    first: date
    papers: Mapping[date, str]
    shown: frozenset[str]
    liked: frozenset[str]
    inputs: str


def profile_day(warehouse: Warehouse, profile: Profile, as_of: date, *, settings: Settings) -> ProfileDay:
    """Gather a day's inputs: the window of `feed.window_days` ending on `as_of`, and what its earlier days showed."""
    first = _first_of_window(profile, as_of)
    with warehouse.read_together() as opened:
        papers = day_fingerprints(opened, first, as_of)
        shown = shown_by_day(opened, {profile.name: (first, as_of)})[profile.name]
        liked = liked_by(opened, profile)
    return _profile_day(profile, as_of, papers=papers, shown=shown, liked=liked, settings=settings)


def inputs_by_day(
    warehouse: Warehouse,
    asked: Sequence[tuple[Profile, Sequence[date]]],
    *,
    model: str | None,
    llm: str | None,
    settings: Settings,
) -> dict[str, dict[date, tuple[str, str]]]:
    """Return the current input fingerprints of candidates and ranking for each profile's ascending days, by name and
    day.

    A day's inputs include what earlier days showed: they are valid as long as those days are current.
    """
    spans = {profile.name: (_first_of_window(profile, days[0]), days[-1]) for profile, days in asked}
    listed = {profile.name: (_first_of_lists(profile, days[0]), days[-1]) for profile, days in asked}
    shown, lists = shown_by_day(warehouse, spans), wishes_by_day(warehouse, listed)
    preferences, version = model_inputs(warehouse), ranking_version()
    fingerprints: dict[str, dict[date, tuple[str, str]]] = {profile.name: {} for profile, _ in asked}
    for profile, days in asked:
        name = profile.name
        papers, liked = day_fingerprints(warehouse, *spans[name]), liked_by(warehouse, profile)
        texts = profile_queries(warehouse, profile, settings=settings).texts
        for as_of in days:
            earlier = _earlier_list(profile, as_of, lists[name])
            day = _profile_day(profile, as_of, papers=papers, shown=shown[name], liked=liked, settings=settings)
            ranked = ranking_fingerprint(
                day.inputs,
                options=profile.content.ranking,
                texts=texts,
                model=model,
                llm=llm,
                code_version=version,
                preferences=preferences.get(name),
                considered=earlier.fingerprint if earlier else None,
            )
            fingerprints[name][as_of] = day.inputs, ranked
    return fingerprints


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierList:
    """The last list for the same wishes before a day, and a fingerprint of it and its candidates.

    Its candidates had their chance of a place. A paper of an earlier day that was announced only later had none.
    """

    day: date
    fingerprint: str


def earlier_list(warehouse: Warehouse, profile: Profile, as_of: date) -> EarlierList | None:
    """Return the last list for the same wishes before `as_of`, among 30 days or a longer window.

    None if there is none, so that the list of `as_of` is a first one, or if papers may be shown again.
    """
    listed = {profile.name: (_first_of_lists(profile, as_of), as_of)}
    return _earlier_list(profile, as_of, wishes_by_day(warehouse, listed)[profile.name])


def _earlier_list(
    profile: Profile, as_of: date, lists: Mapping[date, tuple[str | None, str | None]]
) -> EarlierList | None:
    if profile.content.feed.repeat:
        return None
    first, own = _first_of_lists(profile, as_of), wishes_fingerprint(profile)
    latest = max((day for day, (wishes, _) in lists.items() if first <= day < as_of and wishes == own), default=None)
    return EarlierList(day=latest, fingerprint=f"{latest} {lists[latest][1]}") if latest else None


def _first_of_lists(profile: Profile, as_of: date) -> date:
    """Return the first day whose list counts as an earlier one for `as_of`."""
    return min(_first_of_window(profile, as_of), as_of - timedelta(days=_PAUSE))


def _first_of_window(profile: Profile, as_of: date) -> date:
    return as_of - timedelta(days=profile.content.feed.window_days - 1)


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
    first = max(_first_of_window(profile, as_of), settings.first_day)
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


def liked_by(warehouse: Warehouse, profile: Profile) -> frozenset[str]:
    """Return the ids of the papers that the profile likes; the reader knows them, so they are never candidates."""
    return frozenset(liked_ids(_interests(warehouse, profile)[0]))


def profile_queries(warehouse: Warehouse, profile: Profile, *, settings: Settings) -> InterestQueries:
    """Build the profile's queries; papers that it likes by id are read from the warehouse."""
    interests, notes = _interests(warehouse, profile)
    texts = {}
    if ids := liked_ids(interests):
        liked = papers_from_table(papers_by_id(warehouse, ids))
        texts = {paper.paper_id: (paper.title, paper.abstract) for paper in liked}
    options = profile.content.ranking
    return interest_queries(interests, options=options, scoring=settings.scoring, known=texts, notes=notes)


def query_vectors(
    warehouse: Warehouse, queries: InterestQueries, embedder: Embedder, *, keep: bool = True
) -> NDArray[np.float32]:
    """Return the (t, d) vectors of `queries.texts`; stored ones are read, and new ones are stored for the next time.

    Without `keep` only those of liked papers are stored.
    """
    kept = queries.texts if keep else queries.texts[queries.of_liked]
    vectors = remembered_vectors(warehouse, kept, model=embedder.name, encode=embedder.encode)
    others = [text for text in queries.texts if text not in kept]
    known = {**dict(zip(kept, vectors, strict=True)), **dict(zip(others, embedder.encode(others), strict=True))}
    return np.array([known[text] for text in queries.texts], dtype=np.float32).reshape(-1, embedder.dimension)


def _interests(warehouse: Warehouse, profile: Profile) -> tuple[Interests, tuple[str, ...]]:
    """Return the profile's interests as they are understood, with the imported library's papers at the end, and notes.

    A library alone is what the reader wants; without one, keywords may be.
    """
    named = set(liked_ids(profile.content.interests))
    imported = [
        LikedPaper(paper_id=each.paper_id, title=(each.title or "")[:1000] or None, abstract=each.abstract or "")
        for each in last_ratings(warehouse, profile.name)
        if each.given_in == "import" and each.rating == "worth" and each.paper_id not in named
    ]
    own = profile.content.interests
    with_library = own.model_copy(update={"papers": [*own.papers, *imported]}) if imported else own
    return understood(profile.content.model_copy(update={"interests": with_library}))
