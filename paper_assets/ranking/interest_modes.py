"""Interest modes: what papers are compared with, and how the comparisons become one relevance (SPEC G4).

A profile is seen in up to three views. `seed`: one text in which the interests stand 3, 2 and 1 times. `lanes`: each
interest by itself; the best one counts, weighted. `library`: each liked paper; the mean of the three nearest counts.
`hybrid` looks through several views (`hybrid_of`, all that the profile can serve), each comparison being a mixture of
cosine and BM25, and takes the mean of what is said in words (seed and lanes) and by example (library).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paper_assets.paper import embedded_text
from paper_assets.profile import Interests, InterestView, LikedPaper, RankingOptions
from paper_assets.ranking.lexical import lexical_relevance
from paper_assets.ranking.relevance import cosines, interest_text
from paper_assets.settings import Scoring

Floats = NDArray[np.float64]

_VIEWS: tuple[InterestView, ...] = ("seed", "lanes", "library")
_NAMED_IN_WARNING = 5
_LONGEST_INTEREST = 1000  # as in a profile


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Texts to compare papers with, each with a weight and a name for people."""

    mode: InterestView
    texts: tuple[str, ...]
    weights: tuple[float, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What a profile looks for: the views, whether BM25 has a say, and the same in plain words for want of a model."""

    views: tuple[View, ...]
    hybrid: bool
    in_words: Interests
    warnings: tuple[str, ...] = ()

    @property
    def texts(self) -> list[str]:
        """Every text that is compared, view after view."""
        return [text for view in self.views for text in view.texts]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """`values` (n,) from 0 to 1. `best` (n,): number of the best of `names` (interests, else liked papers), or -1.

    `serves` (n, lanes): relevance to each interest before its weight, 0 where it is too little to count; no columns if
    the mode has no lanes.
    """

    values: Floats
    names: tuple[str, ...]
    best: NDArray[np.intp]
    serves: Floats


def liked_ids(interests: Interests) -> list[str]:
    """The ids of the liked papers that are named by id."""
    return list(dict.fromkeys(paper.paper_id for paper in interests.papers if paper.paper_id))


def what_is_sought(
    interests: Interests,
    *,
    options: RankingOptions,
    scoring: Scoring,
    known: Mapping[str, tuple[str, str]] | None = None,
) -> Sought:
    """The views that the mode asks for and the profile can serve.

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
    if served and not modes:
        modes = served[:1]
        lack = "a liked paper that is known" if "library" in asked else "interests in words"
        warnings.append(f"interest_mode {options.interest_mode} needs {lack}; {modes[0]} took its place")
    hybrid = options.interest_mode == "hybrid"
    repeats = scoring.hybrid_repeats if hybrid else scoring.interest_repeats
    views = {
        "seed": lambda: _seed(interests, repeats),
        "lanes": lambda: _lanes(interests, scoring.lane_weights),
        "library": lambda: _library(liked),
    }
    titles = [title[:_LONGEST_INTEREST] for title, _ in liked if title.strip()]
    return Sought(
        views=tuple(views[mode]() for mode in modes),
        hybrid=hybrid,
        in_words=interests if interests.in_words else Interests(primary=titles),
        warnings=tuple(warnings),
    )


def relevance_of(
    sought: Sought,
    *,
    vectors: NDArray[np.float32],
    asked: NDArray[np.float32],
    words: Iterable[Sequence[str]],
    scoring: Scoring,
) -> Relevance:
    """Relevance of n papers from their vectors (n, d), those of `sought.texts` (t, d), and the papers' words."""
    scores = cosines(vectors, asked)
    if sought.hybrid and sought.views:
        lexical = lexical_relevance(words, sought.texts, k1=scoring.bm25_k1)
        share = scoring.lexical_share
        # A text without a word to look for (`C++`) is judged by its meaning alone.
        scores = np.where(np.isnan(lexical), scores, (1 - share) * scores + share * lexical)
    of_view, start = {}, 0
    for view in sought.views:
        of_view[view.mode] = view, scores[:, start : start + len(view.texts)]
        start += len(view.texts)

    in_words, by_example = [], []
    relevance = without_lanes(np.zeros(len(vectors)))
    if "seed" in of_view:
        in_words.append(of_view["seed"][1][:, 0])
    if "library" in of_view:
        view, each = of_view["library"]
        by_example.append(_mean(np.sort(each, axis=1)[:, -scoring.liked_best :].T))
        relevance = replace(relevance, names=view.names, best=_best(each))
    if "lanes" in of_view:
        view, each = of_view["lanes"]
        weighted = each * view.weights
        in_words.append(weighted.max(axis=1))
        alike = _scaled(each, sought, scoring)
        serves = np.where(alike >= scoring.lane_relevant, alike, 0.0)
        relevance = replace(relevance, names=view.names, best=_best(weighted), serves=serves)
    kinds = [_mean(kind) for kind in (in_words, by_example) if kind]
    return replace(relevance, values=_scaled(_mean(kinds), sought, scoring)) if kinds else relevance


def without_lanes(values: Floats) -> Relevance:
    """Relevance that knows of no single interest."""
    count = len(values)
    return Relevance(values=values, names=(), best=np.full(count, -1, dtype=np.intp), serves=np.zeros((count, 0)))


def with_every_lane(
    order: NDArray[np.int64], serves: Floats, *, places: int
) -> tuple[NDArray[np.int64], dict[int, int]]:
    """`order` (row numbers, best first) changed so that no lane with a relevant paper goes unseen in `places`.

    For each lane that no paper in the list serves, in the profile's order, the paper that serves it best enters, and
    the lowest one leaves that is not the only one of any lane. Those in the list keep their order, and so do the
    others. With too few places for all, lanes that are seen already stay so. Also returns which lane each paper
    entered for, by row number.
    """
    shown: list[int] = order[:places].tolist()
    entered: dict[int, int] = {}
    served = serves > 0
    for lane in range(serves.shape[1]):
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


def _seed(interests: Interests, repeats: tuple[int, int, int]) -> View:
    text = interest_text(interests, repeats=repeats)
    return View(mode="seed", texts=(text,), weights=(1.0,), names=("",))


def _lanes(interests: Interests, weights: tuple[float, float, float]) -> View:
    levels = (interests.primary, interests.secondary, interests.exploratory)
    lanes: dict[str, float] = {}
    for weight, level in zip(weights, levels, strict=True):
        for interest in level:
            lanes.setdefault(interest, weight)
    return View(mode="lanes", texts=tuple(lanes), weights=tuple(lanes.values()), names=tuple(lanes))


def _library(liked: Sequence[tuple[str, str]]) -> View:
    return View(
        mode="library",
        texts=tuple(embedded_text(title, abstract) for title, abstract in liked),
        weights=(1.0,) * len(liked),
        names=tuple(title for title, _ in liked),
    )


def _best(scores: Floats) -> NDArray[np.intp]:
    """(n,) the column of the highest score of each row, -1 where all are 0."""
    return np.where(scores.max(axis=1) > 0, scores.argmax(axis=1), -1)


def _mean(parts: Sequence[Floats] | Floats) -> Floats:
    total = np.zeros_like(parts[0])
    for part in parts:  # in a fixed order, so that the bits do not depend on the shape
        total = total + part
    return total / len(parts)


def _scaled(scores: Floats, sought: Sought, scoring: Scoring) -> Floats:
    """Fused scores on the scale of a cosine, so that 0.4 and 0.7 mean what they mean there."""
    if not sought.hybrid:
        return scores
    fused, cosine = zip(*scoring.hybrid_scale, strict=True)
    return np.interp(scores, fused, cosine)
