"""Rated papers as a model learns from them: what the formula, the vectors and the words say of each."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.learning.preference_model import RatedPapers
from paper_assets.ranking.calibration import standard_calibration
from paper_assets.ranking.keywords import paper_texts
from paper_assets.ranking.preferences import learned_features, log_odds
from paper_assets.ranking.term_matching import unit_tfidf
from paper_assets.text.bm25 import index_words
from paper_assets.weights import DIMENSIONS


def rated_papers(
    papers: pa.Table, rows: pa.Table, vectors: NDArray[np.float32], *, liked: Mapping[str, bool]
) -> RatedPapers:
    """`papers` (columns of `paper_schema()`) in the order in which they were rated, with the `rows` of a ranking of
    them by the formula alone, their vectors (n, d), and by id whether they are worth reading.
    """
    ids = papers.column("paper_id").to_pylist()
    place = {paper_id: row for row, paper_id in enumerate(rows.column("paper_id").to_pylist())}
    order = [place[paper_id] for paper_id in ids]
    dimensions = np.column_stack([rows.column(name).to_numpy() for name in DIMENSIONS])[order]
    words, stems = unit_tfidf(index_words(paper_texts(papers)), background=standard_calibration().background)
    return RatedPapers(
        ids=tuple(ids),
        liked=np.array([liked[paper_id] for paper_id in ids], dtype=np.bool_),
        odds=log_odds(dimensions[:, DIMENSIONS.index("semantic_relevance")]),
        vectors=vectors,
        words=words,
        stems=stems,
        dimensions=learned_features(dimensions),
    )
