"""Baselines that a final list must beat; each scores the n candidates of a profile's day, (n,).

Two of them are the formulas of other programs, implemented from their descriptions. Those programs compare papers with
papers of the reader; if a profile has none, its interests are used instead.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.evaluation.judged_lists import JudgedProfile
from benchmarks.evaluation.metrics import Floats
from benchmarks.evaluation.rankers import BM25_B, BM25_K1, bm25_words
from paper_assets.paper import embedded_text

Embed = Callable[[list[str]], NDArray[np.float32]]


class Day(Protocol):
    """What a baseline may use of a judged day."""

    @property
    def judged(self) -> JudgedProfile:
        """Return the profile, with the grades of its papers."""
        ...

    @property
    def candidates(self) -> pa.Table:
        """Return the n papers of the day, a row each."""
        ...

    @property
    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors (n, d) of the candidates, in their order."""
        ...

    @property
    def known(self) -> Mapping[str, tuple[str, str]]:
        """Return title and abstract of the liked papers by id."""
        ...


def bm25(day: Day, embed: Embed) -> Floats:
    """Return the highest BM25 score (`bm25s`) over the interests; English stop words, no stemming."""
    import bm25s

    corpus = bm25_words(_texts(day))
    vocabulary = {word for document in corpus for word in document}
    if not vocabulary:
        return np.zeros(len(corpus))
    index = bm25s.BM25(k1=BM25_K1, b=BM25_B)
    index.index(corpus, show_progress=False)
    best = np.zeros(len(corpus))
    for query_words in bm25_words(_interest_texts(day)):
        if known_words := [word for word in query_words if word in vocabulary]:
            best = np.maximum(best, index.get_scores(known_words))
    return best


def tfidf(day: Day, embed: Embed) -> Floats:
    """Return the highest cosine of TF-IDF vectors over the interests.

    Logarithmic term frequency, English stop words.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]

    texts = _texts(day)
    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    vectorizer.fit([*texts, *_interest_texts(day)])
    scores: Floats = (vectorizer.transform(texts) @ vectorizer.transform(_interest_texts(day)).T).toarray().max(axis=1)
    return scores


def cosine(day: Day, embed: Embed) -> Floats:
    """Return the highest cosine of embeddings over the interests, without weights of levels."""
    scores: Floats = (day.vectors @ embed(_interest_texts(day)).T).max(axis=1).astype(np.float64)
    return scores


def z_sum(day: Day, embed: Embed) -> Floats:
    """Return the standardized cosine plus the standardized TF-IDF cosine, the highest sum over the interests.

    TF-IDF is over words and pairs of words.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, wanted = _texts(day), _interest_texts(day)
    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True, ngram_range=(1, 2))
    vectorizer.fit([*texts, *wanted])
    by_words = (vectorizer.transform(texts) @ vectorizer.transform(wanted).T).toarray()
    scores: Floats = (_standardized(day.vectors @ embed(wanted).T) + _standardized(by_words)).max(axis=1)
    return scores


def _standardized(columns: NDArray[Any]) -> Floats:
    """Return each column (n,) minus its mean, divided by its standard deviation; 0 if all values are equal."""
    values = columns.astype(np.float64)
    spread = values.std(axis=0)
    standardized: Floats = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return standardized


def zotero_arxiv_daily(day: Day, embed: Embed) -> Floats:
    """Return the scores of zotero-arxiv-daily: the mean cosine to the papers of the library, the newest weighted most.

    The j-th paper, newest first, has the weight 1 / (1 + log10(j)). The library is the liked papers, or else the
    interests, in the profile's order.
    """
    library = day.vectors @ embed(_library(day)).T
    weights = 1.0 / (1.0 + np.log10(np.arange(1, library.shape[1] + 1)))
    scores: Floats = (library.astype(np.float64) * weights).sum(axis=1) / weights.sum()
    return scores


def arxiv_sanity(day: Day, embed: Embed) -> Floats:
    """Return the scores of arxiv-sanity: the decision function of a linear SVM over TF-IDF of words and pairs of words.

    It is trained to separate the papers that the reader tagged (here the liked papers, or else the interests) from all
    candidates, with balanced classes and C = 0.01.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.svm import LinearSVC  # type: ignore[import-untyped]

    texts, liked = _texts(day), _library(day)
    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True, ngram_range=(1, 2))
    features = vectorizer.fit_transform([*texts, *liked])
    machine = LinearSVC(C=0.01, class_weight="balanced", max_iter=10_000, random_state=0)
    machine.fit(features, np.arange(features.shape[0]) >= len(texts))
    scores: Floats = machine.decision_function(features[: len(texts)])
    return scores


LIST_BASELINES: Mapping[str, Callable[[Day, Embed], Floats]] = {
    "bm25": bm25,
    "tfidf": tfidf,
    "cosine": cosine,
    "z-sum": z_sum,
    "zotero-arxiv-daily": zotero_arxiv_daily,
    "arxiv-sanity": arxiv_sanity,
}


def _texts(day: Day) -> list[str]:
    columns = (day.candidates.column(name).to_pylist() for name in ("title", "abstract"))
    return [embedded_text(*text) for text in zip(*columns, strict=True)]


def _interest_texts(day: Day) -> list[str]:
    """Return the interests in words, primary ones first; without any, the texts of the liked papers."""
    interests = day.judged.profile.content.interests
    words = [*interests.primary, *interests.secondary, *interests.exploratory]
    return list(dict.fromkeys(words)) or _liked(day)


def _library(day: Day) -> list[str]:
    return _liked(day) or _interest_texts(day)


def _liked(day: Day) -> list[str]:
    """Return the title and abstract of the liked papers that are known."""
    texts = []
    for paper in day.judged.profile.content.interests.papers:
        if paper.paper_id and paper.paper_id in day.known:
            texts.append(embedded_text(*day.known[paper.paper_id]))
        elif paper.title:
            texts.append(embedded_text(paper.title, paper.abstract))
    return texts
