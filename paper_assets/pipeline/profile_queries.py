"""Build a profile's queries: the texts that papers are compared with, and their vectors.

Queries are the vectors of a profile's interests and of the papers that it likes: those that it names and those of an
imported library (Z1), if their latest rating still is `worth`.
"""

import numpy as np
from numpy.typing import NDArray

from paper_assets.models.embedder import Embedder
from paper_assets.paper import embedded_text, papers_from_table
from paper_assets.profile import Interests, LikedPaper, Profile
from paper_assets.ranking.relevance import InterestQueries, interest_queries, liked_ids
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import remembered_vectors, vectors_of
from paper_assets.stores.feedback import last_ratings
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse


def liked_by(warehouse: Warehouse, profile: Profile) -> frozenset[str]:
    """Return the ids of the papers that the profile likes; the reader knows them, so they are never candidates."""
    return frozenset(liked_ids(_interests(warehouse, profile)))


def profile_queries(warehouse: Warehouse, profile: Profile, *, settings: Settings) -> InterestQueries:
    """Build the profile's queries; papers that it likes by id are read from the warehouse."""
    interests, known = _interests(warehouse, profile), {}
    if ids := liked_ids(interests):
        found = papers_from_table(papers_by_id(warehouse, ids))
        known = {paper.paper_id: (paper.title, paper.abstract) for paper in found}
    return interest_queries(interests, options=profile.content.ranking, scoring=settings.scoring, known=known)


def query_vectors(
    warehouse: Warehouse, profile: Profile, queries: InterestQueries, embedder: Embedder
) -> NDArray[np.float32]:
    """Return the (t, d) vectors of `queries.texts`: stored ones of liked papers, the others embedded.

    The vectors of an imported library are stored for the next time.
    """
    stored = {}
    interests = _interests(warehouse, profile)
    if ids := liked_ids(interests):
        liked = papers_from_table(papers_by_id(warehouse, ids))
        rows, found = vectors_of(warehouse, [paper.paper_id for paper in liked], model=embedder.name)
        texts = [embedded_text(paper.title, paper.abstract) for paper in liked]
        stored = {text: row for text, row, known in zip(texts, rows, found, strict=True) if known}
    imported = [
        text
        for paper in interests.papers[len(profile.content.interests.papers) :]
        if (text := embedded_text(paper.title or "", paper.abstract)) in queries.texts and text not in stored
    ]
    if imported:
        vectors = remembered_vectors(warehouse, imported, model=embedder.name, encode=embedder.encode)
        stored |= dict(zip(imported, vectors, strict=True))
    missing = [text for text in queries.texts if text not in stored]
    vectors_by_text = {**stored, **dict(zip(missing, embedder.encode(missing), strict=True))}
    return np.array([vectors_by_text[text] for text in queries.texts], dtype=np.float32).reshape(-1, embedder.dimension)


def _interests(warehouse: Warehouse, profile: Profile) -> Interests:
    """Return the profile's interests, with the imported library's papers at the end."""
    interests = profile.content.interests
    own = set(liked_ids(interests))
    imported = [
        LikedPaper(paper_id=each.paper_id, title=(each.title or "")[:1000] or None, abstract=each.abstract or "")
        for each in last_ratings(warehouse, profile.name)
        if each.given_in == "import" and each.rating == "worth" and each.paper_id not in own
    ]
    return interests.model_copy(update={"papers": [*interests.papers, *imported]}) if imported else interests
