"""Baselines that a final list must beat: each scores the candidates of a profile's day.

Two of them are the formulae of other people's programs, written from their description, with the interests in place of
the papers that those programs know, because a profile may name no paper.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.evaluation.judged_lists import JudgedProfile
from paper_assets.evaluation.metrics import Floats
from paper_assets.evaluation.rankers import BM25_B, BM25_K1
from paper_assets.paper import embedded_text

Embed = Callable[[list[str]], NDArray[np.float32]]


class Day(Protocol):
    """What a baseline sees of a judged day."""

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
    """Score by BM25 (`bm25s`) for the interest that fits best; English stop words, no stemming."""
    import bm25s

    def words(texts: list[str]) -> list[list[str]]:
        found: list[list[str]] = bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
        return found

    corpus = words(_texts(day))
    known = {word for document in corpus for word in document}
    if not known:
        return np.zeros(len(corpus))
    index = bm25s.BM25(k1=BM25_K1, b=BM25_B)
    index.index(corpus, show_progress=False)
    best = np.zeros(len(corpus))
    for asked in words(_interest_texts(day)):
        if found := [word for word in asked if word in known]:
            best = np.maximum(best, index.get_scores(found))
    return best


def tfidf(day: Day, embed: Embed) -> Floats:
    """Return the cosine of TF-IDF vectors to the interest that fits best; logarithmic term frequency, English stop
    words.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]

    texts = _texts(day)
    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    vectorizer.fit([*texts, *_interest_texts(day)])
    scores: Floats = (vectorizer.transform(texts) @ vectorizer.transform(_interest_texts(day)).T).toarray().max(axis=1)
    return scores


def cosine(day: Day, embed: Embed) -> Floats:
    """Return the cosine of the embeddings to the interest that fits best: meaning alone, all interests alike."""
    scores: Floats = (day.vectors @ embed(_interest_texts(day)).T).max(axis=1).astype(np.float64)
    return scores


def z_sum(day: Day, embed: Embed) -> Floats:
    """Return the standardized cosine plus standardized TF-IDF over words and pairs of words, by the interest that
    fits best.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, wanted = _texts(day), _interest_texts(day)
    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True, ngram_range=(1, 2))
    vectorizer.fit([*texts, *wanted])
    by_words = (vectorizer.transform(texts) @ vectorizer.transform(wanted).T).toarray()
    scores: Floats = (_standardized(day.vectors @ embed(wanted).T) + _standardized(by_words)).max(axis=1)
    return scores


def _standardized(columns: NDArray[Any]) -> Floats:
    """Return each column of (n, interests) less its mean, in standard deviations; 0 where all are equal."""
    values = columns.astype(np.float64)
    spread = values.std(axis=0)
    found: Floats = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return found


def zotero_arxiv_daily(day: Day, embed: Embed) -> Floats:
    """Score as zotero-arxiv-daily: mean of the cosines to the reader's library, weighted by how new each paper in it
    is.

    The j-th of the library, newest first, weighs 1 / (1 + log10(j)); here liked papers, else the interests, in the
    profile's order.
    """
    library = day.vectors @ embed(_library(day)).T
    weights = 1.0 / (1.0 + np.log10(np.arange(1, library.shape[1] + 1)))
    scores: Floats = (library.astype(np.float64) * weights).sum(axis=1) / weights.sum()
    return scores


def arxiv_sanity(day: Day, embed: Embed) -> Floats:
    """Score as arxiv-sanity: distance from the plane of a linear SVM over TF-IDF of words and pairs of words.

    It is trained on what the reader has tagged (here liked papers, else the interests) against all candidates, classes
    balanced, C = 0.01.
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
    """Return the interests in words, the primary ones first; of a profile without any, the papers it likes."""
    interests = day.judged.profile.content.interests
    words = [*interests.primary, *interests.secondary, *interests.exploratory]
    return list(dict.fromkeys(words)) or _liked(day)


def _library(day: Day) -> list[str]:
    return _liked(day) or _interest_texts(day)


def _liked(day: Day) -> list[str]:
    """Return the title and abstract of the liked papers that are known."""
    found = []
    for paper in day.judged.profile.content.interests.papers:
        if paper.paper_id and paper.paper_id in day.known:
            found.append(embedded_text(*day.known[paper.paper_id]))
        elif paper.title:
            found.append(embedded_text(paper.title, paper.abstract))
    return found
