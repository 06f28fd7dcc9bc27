"""Count the words of a few texts, and score them."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from paper_assets.text.bm25 import bm25, query_words
from paper_assets.text.forward_index import ForwardIndex, IndexedTexts


def counted(texts: Sequence[str]) -> IndexedTexts:
    """The texts in a new index."""
    return ForwardIndex().of(pa.chunked_array([pa.array(texts, pa.string())]))


def share(texts: Sequence[str], query: str, *, k1: float = 1.2, b: float = 0.4) -> np.ndarray:
    """BM25 of each text, as a share of what it can reach."""
    words, index = query_words(query), counted(texts)
    return bm25(words, index.holders_of([word.forms for word in words]), index.lengths, k1=k1, b=b)
