"""Relevance: how near a paper is to a profile's interests by meaning (SPEC G4, G17) and by keywords (G6).

The interest mode says what papers are compared with, and how the comparisons become one relevance. A profile is seen in
up to three views. `seed`: one text with all interests. `lanes`: each interest separately. `library`: each liked paper.
`hybrid` looks through several views (`hybrid_of`, all that the profile can serve), by meaning and by words, and by the
likeness of a paper to the best matches of an interest (`best_matches.py`). Relevance is then a calibrated probability
(`calibration.py`), and a threshold separates what is worth reading. The mode `seed` alone is the original arithmetic, a
cosine to a text in which interests appear 3, 2 and 1 times; it has no threshold.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.paper import embedded_text
from paper_assets.profile import Interests, InterestView, LikedPaper, RankingOptions
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
from paper_assets.ranking.cosines import cosines
from paper_assets.ranking.keywords import distinct, keywords_in
from paper_assets.ranking.term_matching import PaperWords, term_scores, tfidf_cosines_and_usual
from paper_assets.settings import ScoringConfig
from paper_assets.text.forward_index import IndexedTexts
from paper_assets.text.introductions import without_introduction
from paper_assets.text.words import SMALL_WORDS, normal_form


def interest_text(interests: Interests, *, repeats: Sequence[int]) -> str:
    """Return the text that stands for a profile: primary interests `repeats[0]` times, secondary and exploratory as
    often.

    Written in rounds, all interests first, because the model reads only the first 256 word pieces: what is
    cut is then a repetition and not an interest.
    """
    lanes = _lanes(interests)
    return ". ".join(
        interest
        for round_ in range(max(repeats))
        for times, lane in zip(repeats, lanes, strict=True)
        if round_ < times
        for interest in lane
    )


def keyword_relevance(
    texts: pa.ChunkedArray | IndexedTexts, interests: Interests, *, repeats: Sequence[int]
) -> NDArray[np.float64]:
    """Return relevance without a model: the weighted mean of the share of each interest's words in the text."""
    asked = [
        (times, _words(interest))
        for times, lane in zip(repeats, _lanes(interests), strict=True)
        for interest in lane
        if times and _words(interest)
    ]
    relevance = np.zeros(len(texts))
    if not asked:
        return relevance
    vocabulary = list(dict.fromkeys(word for _, words in asked for word in words))
    found = keywords_in(texts, vocabulary)
    column = {word: position for position, word in enumerate(vocabulary)}
    for times, words in asked:
        relevance += times * (found[:, [column[word] for word in words]].sum(axis=1) / len(words))
    return relevance / sum(times for times, _ in asked)


def _lanes(interests: Interests) -> tuple[list[str], list[str], list[str]]:
    return interests.primary, interests.secondary, interests.exploratory


def _words(interest: str) -> list[str]:
    words = distinct(normal_form(interest).split())
    return [word for word in words if word not in SMALL_WORDS] or words


Floats = NDArray[np.float64]

_VIEWS: tuple[InterestView, ...] = ("seed", "lanes", "library")
_NAMED_IN_WARNING = 5
_LONGEST_INTEREST = 1000  # as in a profile
_MOST_TITLES = 100  # of liked papers whose words are looked for: each takes five milliseconds for a thousand papers


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Texts to compare papers with, each with a weight and a name for people."""

    mode: InterestView
    texts: tuple[str, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InterestQueries:
    """What a profile looks for: the views, whether the papers' words have a say beside their vectors, and the interests
    in plain words.

    `line`: the relevance from which a paper is worth reading; None in the mode `seed`, whose relevance is a cosine.
    """

    views: tuple[View, ...]
    by_words: bool
    in_words: Interests
    line: float | None
    warnings: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """Every text that is compared, view after view."""
        return [text for view in self.views for text in view.texts]

    @property
    def of_liked(self) -> slice:
        """Which of the texts are liked papers."""
        end = len(self.texts)  # the library is the last view
        return slice(end - sum(len(view.texts) for view in self.views if view.mode == "library"), end)

    @property
    def calibrated(self) -> bool:
        """Whether relevance is a probability."""
        return self.line is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """`values` (n,) from 0 to 1. `best` (n,): number of the best of `names` (interests, else liked papers), or -1.

    `serves` (n, lanes): the probability by each interest alone, 0 where it is below the line; no columns if the mode
    has no lanes. The parts (n,), None where the mode has none, NaN where the best interest has none: `meaning` and
    `words` of the best interest (else of the liked papers together), its probability, and the one by liked papers.
    `best_matches`: with how many papers that match an interest best each paper was compared.
    """

    values: Floats
    names: tuple[str, ...]
    best: NDArray[np.intp]
    serves: Floats
    meaning: Floats | None = None
    words: Floats | None = None
    lane_probability: Floats | None = None
    library: Floats | None = None
    best_matches: int = 0


def liked_ids(interests: Interests) -> list[str]:
    """Return the ids of the liked papers that are named by id."""
    return list(dict.fromkeys(paper.paper_id for paper in interests.papers if paper.paper_id))


def interest_queries(
    interests: Interests,
    *,
    options: RankingOptions,
    scoring: ScoringConfig,
    known: Mapping[str, tuple[str, str]] | None = None,
) -> InterestQueries:
    """Return the views that the mode asks for and the profile can serve.

    `known`: title and abstract of papers by id, to find the liked ones in. A mode that the profile cannot serve gives
    way to the other kind (words to papers, papers to words) with a warning.
    """
    found = [(paper, _title_and_abstract(paper, known or {})) for paper in interests.papers]
    liked = list(dict.fromkeys(text for _, text in found if text))
    unknown = [paper.paper_id for paper, text in found if paper.paper_id and not text]
    warnings = []
    if unknown:
        named = ", ".join(unknown[:_NAMED_IN_WARNING]) + (", ..." if len(unknown) > _NAMED_IN_WARNING else "")
        warnings.append(f"interests.papers: {named} not known here, so without a say; import them or give their text")

    asked: Sequence[str] = options.hybrid_of if options.interest_mode == "hybrid" else [options.interest_mode]
    served = [mode for mode in _VIEWS if (liked if mode == "library" else interests.in_words)]
    modes = [mode for mode in served if mode in asked]
    if "lanes" in modes and "seed" in modes:
        modes.remove("seed")  # beside each interest for itself, all of them as one text add nothing (measured)
    if served and not modes:
        modes = served[:1]
        lack = "a liked paper that is known" if "library" in asked else "interests in words"
        warnings.append(f"interest_mode {options.interest_mode} needs {lack}; {modes[0]} took its place")
    views = {
        "seed": lambda: _seed(interests, scoring.interest_repeats if options.interest_mode == "seed" else None),
        "lanes": lambda: _lanes_view(interests, scoring.lane_weights),
        "library": lambda: _library(liked),
    }
    usual = scoring.literature_review_line if options.purpose == "literature_review" else scoring.line
    line = usual if options.line is None else options.line
    titles = [title[:_LONGEST_INTEREST] for title, _ in liked if title.strip()]
    return InterestQueries(
        views=tuple(views[mode]() for mode in modes),
        by_words="library" in modes or options.interest_mode in ("hybrid", "library"),
        in_words=interests if interests.in_words else Interests(primary=titles),
        line=None if options.interest_mode == "seed" and modes in (["seed"], []) else line,
        warnings=tuple(warnings),
    )


def relevance_of(
    queries: InterestQueries,
    *,
    vectors: NDArray[np.float32] | None,
    query_vectors: NDArray[np.float32] | None,
    words: PaperWords | None,
    scoring: ScoringConfig,
    calibration: Calibration | None = None,
) -> Relevance:
    """Return the relevance of n papers from their vectors (n, d), those of `queries.texts` (t, d), and the papers'
    words.

    Without vectors the words alone judge, which the mode `seed` cannot; without words the vectors alone.
    """
    count = len(words) if vectors is None and words is not None else len(vectors if vectors is not None else ())
    if not queries.views:
        return without_lanes(np.zeros(count))
    calibration = calibration or standard_calibration()
    near = None
    if vectors is not None and query_vectors is not None:
        asked_for = _adapted(queries, query_vectors, calibration) if queries.calibrated else query_vectors
        near = cosines(vectors, asked_for).T
    if not queries.calibrated and near is not None:
        return without_lanes(near[0].copy())
    compared = _Compared(
        queries=queries,
        near=near,
        vectors=vectors,
        words=words if queries.by_words or near is None else None,
        calibration=calibration,
    )
    asked = {view.mode: view for view in queries.views}
    said = [_by_interests(compared, asked)] if "lanes" in asked or "seed" in asked else []
    shown = [_by_library(compared, asked["library"])] if "library" in asked else []
    logits, relevance = (said or shown)[0]
    if said and shown:
        (by_library, library), liked = shown[0], len(asked["library"].texts)
        logits = with_library(logits, by_library, liked=liked, calibration=compared.calibration)
        relevance = replace(relevance, library=library.values)
    return replace(relevance, values=probability(logits))


def _adapted(queries: InterestQueries, vectors: NDArray[np.float32], calibration: Calibration) -> NDArray[np.float64]:
    """Return the vectors (t, d) of the texts, those of interests adapted; liked papers are compared as they are."""
    in_words = queries.of_liked.start
    return np.concatenate([calibration.adapted(vectors[:in_words]), vectors[in_words:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """What papers are judged by: cosines (t, n) to all texts of the queries, or None; the papers' vectors (n, d), or
    None; the papers' words, or None.
    """

    queries: InterestQueries
    near: Floats | None
    vectors: NDArray[np.float32] | None
    words: PaperWords | None
    calibration: Calibration

    def cosines(self, view: View) -> Floats | None:
        """Return (texts, n) cosines to the texts of one view."""
        return None if self.near is None else self.near[self._part(view)]

    def term_scores(self, view: View) -> Floats | None:
        """Return (texts, n) how strongly the papers hold the texts' words."""
        if self.words is None:
            return None
        return term_scores(self.words, view.texts, background=self.calibration.background).T

    def _part(self, view: View) -> slice:
        before = self.queries.views[: self.queries.views.index(view)]
        start = sum(len(other.texts) for other in before)
        return slice(start, start + len(view.texts))


def _by_interests(compared: _Compared, asked: Mapping[InterestView, View]) -> tuple[Floats, Relevance]:
    """Return the logit (n,) by interests in words, and the judgement without its values."""
    view = asked.get("lanes") or asked["seed"]
    judged = interests_judged(
        compared.cosines(view),
        compared.term_scores(view),
        weights=view.weights,
        calibration=compared.calibration,
        vectors=compared.vectors,
    )
    if view.mode == "seed":
        only = without_lanes(np.zeros(judged.logits.shape[1]))
        meaning, words = (None if part is None else part[0] for part in (judged.meaning, judged.words))
        return judged.logits[0], replace(only, meaning=meaning, words=words)
    lanes = view
    each, line = probability(judged.logits), compared.queries.line
    best, columns = _best(judged), np.arange(each.shape[1])
    meaning, words = (None if part is None else part[best, columns] for part in (judged.meaning, judged.words))
    return any_of(judged.logits), Relevance(
        values=np.zeros(each.shape[1]),
        names=lanes.names,
        best=np.where(_says_anything(judged), best, -1),
        serves=np.where(each >= (1.0 if line is None else line), each, 0.0).T,
        meaning=meaning,
        words=words,
        lane_probability=each[best, columns],
        best_matches=0 if judged.best is None else compared.calibration.best_matches,
    )


def _by_library(compared: _Compared, view: View) -> tuple[Floats, Relevance]:
    """Return the logit (n,) by liked papers, and the judgement without its values."""
    calibration, tfidf, titles = compared.calibration, None, None
    near = compared.cosines(view)
    usual_cosines = None if compared.vectors is None else calibration.usual_cosines(compared.vectors)
    usual_tfidf = None
    if compared.words is not None:
        background = calibration.background
        by_words, usual_tfidf = tfidf_cosines_and_usual(compared.words.whole, view.texts, background=background)
        tfidf = np.ascontiguousarray(by_words.T)
        titles = np.nan_to_num(term_scores(compared.words, view.names[:_MOST_TITLES], background=background).T)
    usual = (usual_cosines, usual_tfidf)
    judged, each = library_judged(near, tfidf, titles, usual=usual, calibration=calibration)
    values = probability(judged.logits)
    return judged.logits, Relevance(
        values=values,
        names=view.names,
        best=np.where(each.max(axis=0) > 0, each.argmax(axis=0), -1),
        serves=np.zeros((len(values), 0)),
        meaning=judged.meaning,
        words=judged.words,
        library=values,
    )


def _best(judged: Judged) -> NDArray[np.intp]:
    """Return (n,) the interest of the highest probability."""
    return judged.logits.argmax(axis=0)


def _says_anything(judged: Judged) -> NDArray[np.bool_]:
    """Return (n,) whether any part of any interest is above zero."""
    parts = [np.nan_to_num(part) for part in (judged.meaning, judged.words) if part is not None]
    found: NDArray[np.bool_] = np.any([(part > 0).any(axis=0) for part in parts], axis=0)
    return found


def without_lanes(values: Floats) -> Relevance:
    """Return relevance that is not assigned to a single interest."""
    count = len(values)
    return Relevance(values=values, names=(), best=np.full(count, -1, dtype=np.intp), serves=np.zeros((count, 0)))


def with_every_lane(
    order: NDArray[np.int64], serves: Floats, *, places: int, most: int | None = None
) -> tuple[NDArray[np.int64], dict[int, int]]:
    """Return `order` (row numbers, best first) changed so that every interest with a relevant paper appears in
    `places`.

    For each lane that no paper in the list serves, in the profile's order, the paper that serves it best enters, and
    the lowest one leaves that is not the only one of any lane; at most `most` papers enter so. Those in the list keep
    their order, and so do the others. With too few places for all, lanes that are seen already stay so. Also returns
    which lane each paper entered for, by row number.
    """
    shown: list[int] = order[:places].tolist()
    entered: dict[int, int] = {}
    served = serves > 0
    for lane in range(serves.shape[1]):
        if most is not None and len(entered) >= most:
            break
        if served[shown, lane].any() or not served[order, lane].any():
            continue
        by = served[shown].sum(axis=0)
        leaver = next((row for row in reversed(shown) if (by[served[row]] > 1).all()), None)
        if leaver is not None:
            newcomer = int(order[serves[order, lane].argmax()])
            shown = [*(row for row in shown if row != leaver), newcomer]
            entered[newcomer] = lane
            entered.pop(leaver, None)
    inside = np.isin(order, shown)
    return np.concatenate([order[inside], order[~inside]]), entered


def _title_and_abstract(paper: LikedPaper, known: Mapping[str, tuple[str, str]]) -> tuple[str, str] | None:
    if paper.paper_id and paper.paper_id in known:
        return known[paper.paper_id]
    return (paper.title, paper.abstract) if paper.title else None


def _seed(interests: Interests, repeats: tuple[int, int, int] | None) -> View:
    """Return all interests in one text, repeated by level; None: each once."""
    once = ". ".join(dict.fromkeys([*interests.primary, *interests.secondary, *interests.exploratory]))
    text = interest_text(interests, repeats=repeats) if repeats else once
    return View(mode="seed", texts=(text,), weights=(1.0,), names=("",))


def _lanes_view(interests: Interests, weights: tuple[float, float, float]) -> View:
    levels = (interests.primary, interests.secondary, interests.exploratory)
    lanes: dict[str, float] = {}
    for weight, level in zip(weights, levels, strict=True):
        for interest in level:
            lanes.setdefault(interest, weight)
    texts = tuple(without_introduction(interest) for interest in lanes)
    return View(mode="lanes", texts=texts, weights=tuple(lanes.values()), names=tuple(lanes))


def _library(liked: Sequence[tuple[str, str]]) -> View:
    return View(
        mode="library",
        texts=tuple(embedded_text(title, abstract) for title, abstract in liked),
        weights=(1.0,) * len(liked),
        names=tuple(title for title, _ in liked),
    )
