"""Rankers of a labelled set by name: the interest modes and the baselines (SPEC G4).

To add a baseline: add a function that returns a `Scorer`, and a line to `baselines`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import paper_assets.setup
from benchmarks.evaluation.labelled_set import LabelledSet, Query
from benchmarks.evaluation.metrics import Evaluation, EvaluationConfig, Floats, Scorer, judge
from paper_assets.errors import InvalidInput
from paper_assets.paper_id import unversioned
from paper_assets.profile import Interests, LikedPaper, RankingOptions
from paper_assets.ranking.relevance import InterestQueries, interest_queries, relevance_of
from paper_assets.ranking.term_matching import PaperWords, paper_words
from paper_assets.settings import ScoringConfig

# The usual parameters (Robertson & Zaragoza, 2009); on CACM nDCG@10 0.425, no stemming, English stop words.
BM25_K1, BM25_B = 1.5, 0.75
_SHIPPED = Path(__file__).parent.parent / "shipped"


def bm25(labelled: LabelledSet) -> Scorer:
    """Score by BM25 over title and abstract with `bm25s`; documents without a word of the query are not in the list."""
    import bm25s

    corpus = bm25_words([document.text for document in labelled.documents])
    known = {word for document in corpus for word in document}
    index = bm25s.BM25(k1=BM25_K1, b=BM25_B)
    index.index(corpus, show_progress=False)

    def score(query: Query) -> Floats:
        asked = [word for word in bm25_words([query.text])[0] if word in known]
        scores = index.get_scores(asked) if asked else np.zeros(len(labelled.documents))
        return _found(np.asarray(scores, dtype=np.float64))

    return score


def bm25_words(texts: list[str]) -> list[list[str]]:
    """Return the words of each text by `bm25s`, without English stop words, not stemmed."""
    import bm25s

    found: list[list[str]] = bm25s.tokenize(texts, stopwords="en", return_ids=False, show_progress=False)
    return found


def tfidf(labelled: LabelledSet) -> Scorer:
    """Score by the cosine of TF-IDF vectors; documents without a word of the query are not in the list.

    Logarithmic term frequency, English stop words.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]

    vectorizer = TfidfVectorizer(stop_words="english", sublinear_tf=True)
    matrix = vectorizer.fit_transform(document.text for document in labelled.documents)
    return lambda query: _found((matrix @ vectorizer.transform([query.text]).T).toarray()[:, 0])


def newest_first(labelled: LabelledSet) -> Scorer:
    """Rank by date, the same for every query; documents without a date are not in the list."""
    dates = [document.published for document in labelled.documents]
    days = np.array([day.toordinal() if day else np.nan for day in dates])
    return lambda query: days


def shuffled(labelled: LabelledSet, *, seed: int) -> Scorer:
    """Rank at random: another order for each query, the same order in every run."""

    def score(query: Query) -> Floats:
        return np.random.default_rng([seed, crc32(query.query_id.encode())]).random(len(labelled.documents))

    return score


def baselines(labelled: LabelledSet, *, seed: int) -> dict[str, Callable[[], Scorer]]:
    """Return functions that build the baselines, by name; `newest` only if the set has dates."""
    known: dict[str, Callable[[], Scorer]] = {
        "bm25": lambda: bm25(labelled),
        "tfidf": lambda: tfidf(labelled),
        "random": lambda: shuffled(labelled, seed=seed),
    }
    if any(document.published for document in labelled.documents):
        known["newest"] = lambda: newest_first(labelled)
    return known


def _found(scores: Floats) -> Floats:
    """Return the scores with -inf, "not in the list", for those that are not above 0."""
    return np.where(scores > 0, scores, -np.inf)


Embed = Callable[[list[str]], NDArray[np.float32]]

_LONGEST_INTEREST = 1000  # as in a profile


def modes(labelled: LabelledSet, *, embed: Embed, scoring: ScoringConfig) -> dict[str, Callable[[], Scorer]]:
    """Return functions that build a scorer for each interest mode, by name; documents are embedded once for all modes.

    `library` is included only if a query likes papers; a query without liked papers is then ranked by its words.
    """
    documents = [document.text for document in labelled.documents]

    @cache
    def read() -> tuple[NDArray[np.float32], PaperWords]:
        fields = {
            "title": [document.title for document in labelled.documents],
            "abstract": [document.abstract for document in labelled.documents],
        }
        return embed(documents), paper_words(pa.table(fields))

    def of(mode: str) -> Callable[[], Scorer]:
        wanted = RankingOptions.model_validate({"interest_mode": mode})
        return lambda: _scorer(labelled, *read(), embed=embed, scoring=scoring, options=wanted)

    names = ["seed", "lanes", "library", "hybrid"]
    if not any(query.liked or query.liked_texts for query in labelled.judged_queries):
        names.remove("library")
    return {name: of(name) for name in names}


def _scorer(
    labelled: LabelledSet,
    vectors: NDArray[np.float32],
    words: PaperWords,
    *,
    embed: Embed,
    scoring: ScoringConfig,
    options: RankingOptions,
) -> Scorer:
    """Return a scorer that ranks documents by relevance and leaves out those of relevance 0."""
    texts_by_id = {unversioned(document.doc_id): (document.title, document.abstract) for document in labelled.documents}
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
        return interest_queries(interests, options=options, scoring=scoring, known=texts_by_id)

    def score(query: Query) -> list[str]:
        wanted = queries(query)
        query_vectors = np.array([query_vectors_by_text()[text] for text in wanted.texts])
        relevance = relevance_of(wanted, vectors=vectors, query_vectors=query_vectors, words=words)
        order = np.lexsort((ties, -relevance.values))
        order = order[relevance.values[order] > 0]
        order = order[[labelled.documents[row].doc_id not in query.liked for row in order]]
        return [labelled.documents[row].doc_id for row in order]

    return score


def shipped_set() -> Path:
    """Return the folder of the invented labelled set."""
    return _SHIPPED / "labelled"


def shipped_lists() -> tuple[Path, Path]:
    """Return the folder of the invented judged lists, and the file of their papers: the bundled example."""
    return _SHIPPED / "judged_lists", Path(paper_assets.setup.__path__[0]) / "example_papers.jsonl"


def outcomes(
    labelled: LabelledSet, names: Sequence[str], *, embed: Embed, scoring: ScoringConfig, judging: EvaluationConfig
) -> Mapping[str, Evaluation]:
    """Measure the named rankers (no names: all of the set), by name. Raises InvalidInput for an unknown name."""
    known = {**modes(labelled, embed=embed, scoring=scoring), **baselines(labelled, seed=judging.seed)}
    for name in names:
        if name not in known:
            raise InvalidInput(f"no ranker {name!r} for this set; choose among {', '.join(known)}")
    return {name: judge(labelled, known[name](), judging=judging) for name in names or known}
