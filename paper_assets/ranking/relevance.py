"""Compute the relevance of papers to a profile: what they are compared with, and by which parts (SPEC G4, G6, G17).

1. `interest_queries` makes the texts that papers are compared with, in up to three views of the profile:

   - `seed`: one text with all interests;
   - `lanes`: one text for each interest;
   - `library`: one text for each liked paper.

   The interest mode chooses the views: one of them, or with `hybrid` those of `lanes` and `library` that the profile
   can serve.
2. `relevance_of` compares papers with these texts: by cosine of their vectors (meaning), by their words (`by_words`),
   and in `lanes` by similarity to the papers that match an interest best (`similarity.py`).
3. `calibration.py` combines these parts into the probability that a paper is on topic. This is its relevance. Only
   papers whose relevance reaches `InterestQueries.floor` can be listed (`final_list.py`).

The mode `seed` alone is the original formula: the cosine to one text in which primary, secondary and exploratory
interests appear 3, 2 and 1 times. It is not a probability and has no floor. `keyword_relevance` replaces it if the
embedding model cannot be loaded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.paper import embedded_text
from paper_assets.profile import Interests, InterestView, LikedPaper, RankingOptions
from paper_assets.ranking.avoided import Avoided, avoided_papers, beside_wanted, named_in, own_words
from paper_assets.ranking.calibration import (
    Calibration,
    Judged,
    any_of,
    interests_judged,
    library_judged,
    probability,
    standard_calibration,
    with_library,
)
from paper_assets.ranking.keywords import distinct, keywords_in
from paper_assets.ranking.similarity import cosines
from paper_assets.ranking.term_matching import PaperWords, similarity_by_words, term_scores
from paper_assets.settings import ScoringConfig
from paper_assets.text.acronyms import long_forms
from paper_assets.text.forward_index import IndexedTexts
from paper_assets.text.statements import topic_in
from paper_assets.text.words import SMALL_WORDS, in_usual_spelling, normal_form


def interest_text(interests: Interests, *, repeats: Sequence[int]) -> str:
    """Return one text of all interests: each primary one `repeats[0]` times, secondary `[1]`, exploratory `[2]` times.

    The first round contains every interest once, the next rounds repeat them: the model reads only the first 256
    word pieces, so that repetitions are cut before interests are.
    """
    return ". ".join(
        interest
        for round_ in range(max(repeats))
        for times, level in zip(repeats, _levels(interests), strict=True)
        if round_ < times
        for interest in level
    )


def keyword_relevance(
    texts: pa.ChunkedArray | IndexedTexts, interests: Interests, *, repeats: Sequence[int]
) -> NDArray[np.float64]:
    """Return relevance (n,) without a model: for each interest the share of its words that a text contains, averaged.

    `repeats` are the weights of primary, secondary and exploratory interests in the mean.
    """
    weighted_words = [
        (times, _words(interest))
        for times, level in zip(repeats, _levels(interests), strict=True)
        for interest in level
        if times and _words(interest)
    ]
    relevance = np.zeros(len(texts))
    if not weighted_words:
        return relevance
    vocabulary = list(dict.fromkeys(word for _, words in weighted_words for word in words))
    contained = keywords_in(texts, vocabulary)
    column = {word: position for position, word in enumerate(vocabulary)}
    for times, words in weighted_words:
        relevance += times * (contained[:, [column[word] for word in words]].sum(axis=1) / len(words))
    return relevance / sum(times for times, _ in weighted_words)


def _levels(interests: Interests) -> tuple[list[str], list[str], list[str]]:
    return interests.primary, interests.secondary, interests.exploratory


def _words(interest: str) -> list[str]:
    """Return the words of an interest, each once, without small words unless it has no others."""
    words = distinct(normal_form(interest).split())
    return [word for word in words if word not in SMALL_WORDS] or words


Floats = NDArray[np.float64]

_VIEWS: tuple[InterestView, ...] = ("lanes", "seed", "library")
_NAMED_IN_WARNING = 5
_LONGEST_INTEREST = 1000  # as in a profile
_MOST_TITLES = 100  # titles of liked papers that are compared by words: 5 ms each for a thousand papers


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The texts of one view, each with the weight of its interest's level and with a name that readers see."""

    mode: InterestView
    texts: tuple[str, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterestQueries:
    """What papers are compared with.

    Attributes:
        views: the texts, by view.
        by_words: whether the papers' words are compared too, beside their vectors.
        in_words: the interests in words, or the titles of liked papers if the profile has none.
        avoided: the topics to avoid; their texts are the last of `texts`.
        mild: whether each of them is only less interesting.
        floor: the lowest probability of a listed paper; None in the mode `seed`, whose relevance is a cosine.
        warnings: what the profile or the mode asks for and could not be used.
    """

    views: tuple[View, ...]
    by_words: bool
    in_words: Interests
    floor: float | None
    avoided: tuple[str, ...] = ()
    mild: tuple[bool, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """All texts of all views, in the order of the views, and the topics to avoid."""
        avoided = map(topic_of, self.avoided)
        return [*(text for view in self.views for text in view.texts), *avoided]

    @property
    def of_liked(self) -> slice:
        """The part of `texts` that are liked papers."""
        end = len(self.texts) - len(self.avoided)  # the library is the last view
        return slice(end - sum(len(view.texts) for view in self.views if view.mode == "library"), end)

    @property
    def calibrated(self) -> bool:
        """Whether relevance is a calibrated probability."""
        return self.floor is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """The relevance of n papers, and the parts that explain it.

    A part that the mode does not compute is None; for a paper whose best interest does not have it, it is NaN.

    Attributes:
        values: (n,) relevance from 0 to 1.
        names: the interests, or else the titles of liked papers.
        best: (n,) index in `names` of the interest or liked paper that fits best; -1 if none fits.
        by_interest: (n, interests) the probability for each interest alone; no columns in modes without it.
        meaning, words: (n,) cosine and term score of the best interest, or else of the liked papers together.
        interest_probability: (n,) the probability for the best interest alone.
        library: (n,) the probability by liked papers alone.
        best_matches: the number of best matches of each interest that papers were compared with; 0: none.
        avoided: which papers are on a topic to avoid; None if there is no such topic.
    """

    values: Floats
    names: tuple[str, ...]
    best: NDArray[np.intp]
    by_interest: Floats
    meaning: Floats | None = None
    words: Floats | None = None
    interest_probability: Floats | None = None
    library: Floats | None = None
    best_matches: int = 0
    avoided: Avoided | None = None


def liked_ids(interests: Interests) -> list[str]:
    """Return the ids of the liked papers that the profile names by id, each once."""
    return list(dict.fromkeys(paper.paper_id for paper in interests.papers if paper.paper_id))


def interest_queries(
    interests: Interests,
    *,
    options: RankingOptions,
    scoring: ScoringConfig,
    known: Mapping[str, tuple[str, str]] | None = None,
    notes: Sequence[str] = (),
) -> InterestQueries:
    """Return the queries of a profile for its interest mode, from the interests as they are understood.

    `known`: title and abstract of papers by id, in which liked papers are looked up. If the mode needs interests in
    words and the profile has only liked papers, or the reverse, the available view is used, with a warning. `notes`:
    the first warnings.
    """
    liked_with_text = [(paper, _title_and_abstract(paper, known or {})) for paper in interests.papers]
    liked = list(dict.fromkeys(text for _, text in liked_with_text if text))
    missing = [paper.paper_id for paper, text in liked_with_text if paper.paper_id and not text]
    warnings = list(notes)
    if missing:
        named = ", ".join(missing[:_NAMED_IN_WARNING]) + (", ..." if len(missing) > _NAMED_IN_WARNING else "")
        warnings.append(
            f"liked papers that are not stored do not count: {named}; import them, or give their title and abstract"
        )

    requested = ["lanes", "library"] if options.interest_mode == "hybrid" else [options.interest_mode]
    available = [mode for mode in _VIEWS if (liked if mode == "library" else interests.in_words)]
    modes = [mode for mode in available if mode in requested]
    if available and not modes:
        modes = available[:1]
        lack = "a liked paper that is known" if "library" in requested else "interests in words"
        warnings.append(f"interest_mode {options.interest_mode} needs {lack}; {modes[0]} took its place")
    views = {
        "seed": lambda: _seed(interests, scoring.interest_repeats),
        "lanes": lambda: _interests_view(interests, scoring.interest_weights),
        "library": lambda: _library(liked),
    }
    floor = scoring.floor if options.threshold is None else options.threshold
    titles = [title[:_LONGEST_INTEREST] for title, _ in liked if title.strip()]
    avoided = list(dict.fromkeys((*interests.avoid, *interests.less)))
    return InterestQueries(
        views=tuple(views[mode]() for mode in modes),
        by_words="library" in modes or options.interest_mode in ("hybrid", "library"),
        in_words=interests if interests.in_words else Interests(primary=titles),
        avoided=tuple(avoided),
        mild=tuple(topic in interests.less for topic in avoided),
        floor=None if options.interest_mode == "seed" and modes != ["library"] else floor,
        warnings=tuple(warnings),
    )


def relevance_of(
    queries: InterestQueries,
    *,
    vectors: NDArray[np.float32] | None,
    query_vectors: NDArray[np.float32] | None,
    words: PaperWords | None,
    calibration: Calibration | None = None,
    window: PaperWords | None = None,
) -> Relevance:
    """Return the relevance of n papers.

    `vectors` (n, d) are those of the papers, `query_vectors` (t, d) those of `queries.texts`, `words` the papers'
    words. Without vectors papers are compared by words alone, which the mode `seed` does not support; without words by
    vectors alone. `window` are the words of the n papers followed by those of papers that earlier lists of the window
    showed (None: there are none). `calibration` defaults to that of the package.
    """
    count = len(words) if vectors is None and words is not None else len(vectors if vectors is not None else ())
    if not queries.views:
        return without_interests(np.zeros(count))
    calibration = calibration or standard_calibration()
    near = beside = None
    if vectors is not None and query_vectors is not None:
        compared_vectors = _adapted(queries, query_vectors, calibration) if queries.calibrated else query_vectors
        near = cosines(vectors, compared_vectors).T
        if topics := len(queries.avoided):
            directions = query_vectors.astype(np.float64)
            beside = beside_wanted(vectors, directions[-topics:], directions[:-topics], usual=calibration.cosines)
    compared = _Compared(
        queries=queries,
        near=near,
        beside=beside,
        vectors=vectors,
        words=words if queries.by_words or near is None else None,
        window=window or words,
        titles=words.titles if words is not None else None,
        calibration=calibration,
    )
    view_of = {view.mode: view for view in queries.views}
    if not queries.calibrated and near is not None:
        return replace(without_interests(near[0].copy()), avoided=_avoided(compared, view_of))
    by_interest_words = [_by_interests(compared, view_of["lanes"])] if "lanes" in view_of else []
    by_liked_papers = [_by_library(compared, view_of["library"])] if "library" in view_of else []
    logits, relevance = (by_interest_words or by_liked_papers)[0]
    if by_interest_words and by_liked_papers:
        (by_library, library), liked = by_liked_papers[0], len(view_of["library"].texts)
        logits = with_library(logits, by_library, liked=liked, calibration=compared.calibration)
        relevance = replace(relevance, library=library.values)
    return replace(relevance, values=probability(logits), avoided=_avoided(compared, view_of))


def _avoided(compared: "_Compared", view_of: Mapping[InterestView, View]) -> Avoided | None:
    """Return which papers are on a topic to avoid: judged as interests are, together with the wanted ones.

    Without interests in words, the liked papers are the interests.
    """
    queries, topics = compared.queries, len(compared.queries.avoided)
    if not topics:
        return None
    view = view_of.get("lanes") or view_of.get("seed")
    wanted = view.texts if view else ()
    own = tuple(own_words(wanted, topic_of(topic)) for topic in queries.avoided)
    every = View(mode="lanes", texts=(*wanted, *own), weights=(1.0,) * (len(wanted) + topics), names=())
    near = compared.near
    if near is not None:
        near = near[-topics:] if view is None else np.concatenate([compared.cosines(view), near[-topics:]])
    scores, earlier = compared.term_scores(every)
    judged = interests_judged(
        near,
        scores,
        earlier=earlier,
        weights=every.weights,
        calibration=compared.calibration,
        vectors=compared.vectors,
    )
    logits = judged.logits
    of_wanted = logits[: len(wanted)].max(axis=0) if wanted else _by_library(compared, view_of["library"])[0]
    titles = compared.titles
    return avoided_papers(
        queries.avoided,
        queries.mild,
        probabilities=probability(logits[len(wanted) :]),
        of_wanted=probability(of_wanted),
        in_title=np.zeros((logits.shape[1], topics), dtype=bool) if titles is None else named_in(titles, own),
        beside=compared.beside,
    )


def _adapted(queries: InterestQueries, vectors: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float64]:
    """Return the vectors (t, d) of the texts, those of interests with the adapter applied."""
    adapted, liked = calibration.adapted(vectors), queries.of_liked
    return np.concatenate([adapted[: liked.start], vectors[liked], adapted[liked.stop :]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What papers are judged by, each None if it is not available.

    Attributes:
        near: cosines (t, n) of all texts of the queries to the papers.
        beside: (a, n) what only the topics to avoid mean in the papers, see `beside_wanted`.
        vectors: (n, d) those of the papers.
        words: those of the papers.
        window: the same, followed by those of papers that earlier lists showed.
        titles: those of the papers' titles.
    """

    queries: InterestQueries
    near: Floats | None
    beside: Floats | None
    vectors: NDArray[np.float32] | None
    words: PaperWords | None
    window: PaperWords | None
    titles: IndexedTexts | None
    calibration: Calibration

    def cosines(self, view: View) -> Floats | None:
        """Return (texts, n) the cosines of the texts of one view to the papers."""
        return None if self.near is None else self.near[self._part(view)]

    def term_scores(self, view: View) -> tuple[Floats | None, Floats | None]:
        """Return the term scores of the texts of one view in the papers (texts, n), and in those of earlier lists."""
        if self.words is None or self.window is None:
            return None, None
        scores = term_scores(self.window, view.texts, background=self.calibration.background).T
        return scores[:, : len(self.words)], scores[:, len(self.words) :]

    def _part(self, view: View) -> slice:
        before = self.queries.views[: self.queries.views.index(view)]
        start = sum(len(other.texts) for other in before)
        return slice(start, start + len(view.texts))


def _by_interests(compared: _Compared, view: View) -> tuple[Floats, Relevance]:
    """Return the logits (n,) by interests in words, and the relevance with `values` still 0."""
    scores, of_earlier = compared.term_scores(view)
    judged = interests_judged(
        compared.cosines(view),
        scores,
        earlier=of_earlier,
        weights=view.weights,
        calibration=compared.calibration,
        vectors=compared.vectors,
    )
    probabilities = probability(judged.logits)
    best_interest, columns = judged.logits.argmax(axis=0), np.arange(probabilities.shape[1])
    meaning, words = (None if part is None else part[best_interest, columns] for part in (judged.meaning, judged.words))
    return any_of(judged.logits), Relevance(
        values=np.zeros(probabilities.shape[1]),
        names=view.names,
        best=np.where(_says_anything(judged), best_interest, -1),
        by_interest=probabilities.T,
        meaning=meaning,
        words=words,
        interest_probability=probabilities[best_interest, columns],
        best_matches=0 if judged.best is None else compared.calibration.best_matches,
    )


def _by_library(compared: _Compared, view: View) -> tuple[Floats, Relevance]:
    """Return the logits (n,) by liked papers, and the relevance by them."""
    calibration, tfidf, titles = compared.calibration, None, None
    near = compared.cosines(view)
    usual_cosines = None if compared.vectors is None else calibration.usual_cosines(compared.vectors)
    usual_tfidf = None
    if compared.words is not None:
        background = calibration.background
        by_words, usual_tfidf = similarity_by_words(compared.words, view.texts, background=background)
        tfidf = np.ascontiguousarray(by_words.T)
        titles = np.nan_to_num(term_scores(compared.words, view.names[:_MOST_TITLES], background=background).T)
    usual = (usual_cosines, usual_tfidf)
    judged, nearness = library_judged(near, tfidf, titles, usual=usual, calibration=calibration)
    values = probability(judged.logits)
    return judged.logits, Relevance(
        values=values,
        names=view.names,
        best=np.where(nearness.max(axis=0) > 0, nearness.argmax(axis=0), -1),
        by_interest=np.zeros((len(values), 0)),
        meaning=judged.meaning,
        words=judged.words,
        library=values,
    )


def _says_anything(judged: Judged) -> NDArray[np.bool_]:
    """Return (n,) whether the cosine or term score of any interest is above 0."""
    parts = [np.nan_to_num(part) for part in (judged.meaning, judged.words) if part is not None]
    return np.any([(part > 0).any(axis=0) for part in parts], axis=0)


def without_interests(values: Floats) -> Relevance:
    """Return relevance (n,) of which no part belongs to an interest."""
    count = len(values)
    return Relevance(values=values, names=(), best=np.full(count, -1, dtype=np.intp), by_interest=np.zeros((count, 0)))


def _title_and_abstract(paper: LikedPaper, known: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    """Return the text of a liked paper from `known` or else from the profile; None if neither has it."""
    if paper.paper_id and paper.paper_id in known:
        return known[paper.paper_id]
    return (paper.title, paper.abstract) if paper.title else None


def _seed(interests: Interests, repeats: tuple[int, int, int]) -> View:
    """Return the view with all interests in one text, repeated by level."""
    return View(mode="seed", texts=(interest_text(interests, repeats=repeats),), weights=(1.0,), names=("",))


def topic_of(interest: str) -> str:
    """Return what papers are compared with for an interest: its topic in usual spelling, acronyms written out."""
    return in_usual_spelling(long_forms(topic_in(interest)))


def _interests_view(interests: Interests, weights: tuple[float, float, float]) -> View:
    """Return the view with one text for each interest; one in two levels counts in the first."""
    weight_of: dict[str, float] = {}
    for weight, level in zip(weights, _levels(interests), strict=True):
        for interest in level:
            weight_of.setdefault(interest, weight)
    texts = tuple(map(topic_of, weight_of))
    return View(mode="lanes", texts=texts, weights=tuple(weight_of.values()), names=tuple(weight_of))


def _library(liked: Sequence[tuple[str, str]]) -> View:
    """Return the view with one text for each liked paper, given as title and abstract."""
    return View(
        mode="library",
        texts=tuple(embedded_text(title, abstract) for title, abstract in liked),
        weights=(1.0,) * len(liked),
        names=tuple(title for title, _ in liked),
    )
