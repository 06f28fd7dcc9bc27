"""Rankers that anything worth having must beat: BM25, TF-IDF, newest first, and chance."""

from collections.abc import Callable
from zlib import crc32

import numpy as np

from paper_assets.evaluation.judge import Scorer
from paper_assets.evaluation.labelled_set import LabelledSet, Query
from paper_assets.evaluation.metrics import Floats

# The usual parameters (Robertson & Zaragoza, 2009); on CACM nDCG@10 0.425, no stemming, English stop words.
BM25_K1, BM25_B = 1.5, 0.75


def bm25(labelled: LabelledSet) -> Scorer:
    """BM25 over title and abstract by `bm25s`; documents without any word of the query are not in the list."""
    import bm25s

    def words(texts: list[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
        return found

    corpus = words([document.text for document in labelled.documents])
    known = {word for document in corpus for word in document}
    index = bm25s.BM25(k1=BM25_K1, b=BM25_B)
    index.index(corpus, show_progress=False)

    def score(query: Query) -> Floats:
        asked = [word for word in words([query.text])[0] if word in known]
        scores = index.get_scores(asked) if asked else np.zeros(len(labelled.documents))
        return _found(np.asarray(scores, dtype=np.float64))

    return score


def tfidf(labelled: LabelledSet) -> Scorer:
    """Cosine of TF-IDF vectors, logarithmic term frequency, English stop words; no shared word, not in the list."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    matrix = vectorizer.fit_transform(document.text for document in labelled.documents)
    return lambda query: _found((matrix @ vectorizer.transform([query.text]).T).toarray()[:, 0])


def newest_first(labelled: LabelledSet) -> Scorer:
    """The same list for everybody: by date, undated documents not in it."""
    dates = [document.published for document in labelled.documents]
    days = np.array([day.toordinal() if day else np.nan for day in dates])
    return lambda query: days


def shuffled(labelled: LabelledSet, *, seed: int) -> Scorer:
    """Chance: each query gets a shuffle of its own, the same in every run."""

    def score(query: Query) -> Floats:
        return np.random.default_rng([seed, crc32(query.query_id.encode())]).random(len(labelled.documents))

    return score


def baselines(labelled: LabelledSet, *, seed: int) -> dict[str, Callable[[], Scorer]]:
    """Every baseline that the set allows, by name, built only when called: newest first needs dates."""
    known: dict[str, Callable[[], Scorer]] = {
        "bm25": lambda: bm25(labelled),
        "tfidf": lambda: tfidf(labelled),
        "random": lambda: shuffled(labelled, seed=seed),
    }
    if any(document.published for document in labelled.documents):
        known["newest"] = lambda: newest_first(labelled)
    return known


def _found(scores: Floats) -> Floats:
    return np.where(scores > 0, scores, -np.inf)
