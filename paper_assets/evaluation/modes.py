"""The interest modes as rankers of labelled sets: relevance alone, as the gatekeeper computes it (SPEC G4)."""

from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

from paper_assets.evaluation.judge import Scorer
from paper_assets.evaluation.labelled_set import LabelledSet, Query
from paper_assets.paper_id import unversioned
from paper_assets.profile import Interests, LikedPaper, RankingOptions
from paper_assets.ranking.interest_modes import InterestQueries, interest_queries, relevance_of, with_every_lane
from paper_assets.settings import ScoringConfig
from paper_assets.text.bm25 import WordIndex, index_words

Embed = Callable[[list[str]], NDArray[np.float32]]

_LONGEST_INTEREST = 1000  # as in a profile


def modes(
    labelled: LabelledSet, *, embed: Embed, scoring: ScoringConfig, options: RankingOptions | None = None
) -> dict[str, Callable[[], Scorer]]:
    """Every interest mode by name, built only when called; the documents are embedded once for all of them.

    `library` is there only if a query names papers it likes; a query that names none is then judged by its words.
    `options` gives `top_k` and `hybrid_of`.
    """
    chosen = options or RankingOptions()
    documents = [document.text for document in labelled.documents]

    @cache
    def read() -> tuple[NDArray[np.float32], WordIndex]:
        return embed(documents), index_words(documents)

    def of(mode: str) -> Callable[[], Scorer]:
        wanted = RankingOptions.model_validate({**chosen.model_dump(), "interest_mode": mode})
        return lambda: _scorer(labelled, *read(), embed=embed, scoring=scoring, options=wanted)

    names = ["seed", "lanes", "library", "hybrid"]
    if not any(query.liked or query.liked_texts for query in labelled.judged_queries):
        names.remove("library")
    return {name: of(name) for name in names}


def _scorer(
    labelled: LabelledSet,
    vectors: NDArray[np.float32],
    words: WordIndex,
    *,
    embed: Embed,
    scoring: ScoringConfig,
    options: RankingOptions,
) -> Scorer:
    """Documents by relevance, none of relevance 0, the first `top_k` so filled that no lane goes unseen."""
    known = {unversioned(document.doc_id): (document.title, document.abstract) for document in labelled.documents}
    ties = labelled.tie_order()

    @cache
    def query_vectors_by_text() -> dict[str, NDArray[np.float32]]:
        texts = {text for query in labelled.judged_queries for text in queries(query).texts}
        ordered = sorted(texts)
        return dict(zip(ordered, embed(ordered), strict=True))

    def queries(query: Query) -> InterestQueries:
        interests = query.interests or Interests(primary=[query.text.strip()[:_LONGEST_INTEREST]])
        liked = [LikedPaper(paper_id=doc_id) for doc_id in query.liked]
        liked += [LikedPaper(title=title[:_LONGEST_INTEREST], abstract=text) for title, text in query.liked_texts]
        interests = interests.model_copy(update={"papers": liked})
        return interest_queries(interests, options=options, scoring=scoring, known=known)

    def score(query: Query) -> list[str]:
        wanted = queries(query)
        query_vectors = np.array([query_vectors_by_text()[text] for text in wanted.texts])
        relevance = relevance_of(wanted, vectors=vectors, query_vectors=query_vectors, words=words, scoring=scoring)
        order = np.lexsort((ties, -relevance.values))
        order = order[relevance.values[order] > 0]
        order = order[[labelled.documents[row].doc_id not in query.liked for row in order]]
        order, _ = with_every_lane(order, relevance.serves, places=options.top_k)
        return [labelled.documents[row].doc_id for row in order]

    return score
