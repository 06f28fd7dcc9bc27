"""Fit the coefficients of relevance to judged lists, for all profiles or with a group of them left out (SPEC G17).

The fit maximizes the likelihood of the grades under the formula of `ranking/calibration.py`. Grades 2 and 3 are on
topic, all other papers, also unjudged ones, are not. Every profile has the same weight. Coefficients are at least 0,
that of the number of interests at most 0, saturation at most `_MOST_SATURATION`. Interests are fitted to profiles with
interests in words, liked papers to profiles that only name liked papers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.evaluation.final_lists import JudgedDay
from benchmarks.evaluation.judged_lists import ON_TOPIC
from benchmarks.evaluation.metrics import Floats
from paper_assets.errors import InvalidInput
from paper_assets.ranking.calibration import (
    SATURATES_FROM,
    Calibration,
    Logit,
    interests_judged,
    library_judged,
    log_number,
    share_of_best,
    standard_calibration,
    standardized,
)
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.ranking.relevance import View, interest_queries
from paper_assets.ranking.similarity import cosines
from paper_assets.ranking.term_matching import PaperWords, paper_words, similarity_by_words, term_scores
from paper_assets.settings import ScoringConfig

# Penalty on squared coefficients. Of .001 to .04, .005 to .02 have the least log loss for profiles left out, and with
# .02 the words of interests count no more than is good for lists of other genres (CACM, Perspectrum).
_RIDGE = 0.02
_TINY = 1e-300  # least probability whose logarithm is taken
_FITTED = {
    "interest": ("meaning", "words", "share", "number"),
    "interest_with_best": ("meaning", "words", "share", "best", "number"),
    "interest_wordless": ("meaning", "number"),
    "words_only": ("words", "share", "number"),
}
_FITTED_TO_LIKED = {"library": ("meaning", "words", "titles"), "library_words_only": ("words", "titles")}
_MOST_SATURATION = 0.95  # so that better evidence always raises the probability
_FEWEST_LIKED = 10  # profiles of liked papers; with fewer, the coefficients of the package are kept


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a fit needs of one profile with i interests in words, or with liked papers only (i = 1), and n papers.

    Attributes:
        values: (i, n) what each coefficient of a `Logit` is multiplied by, except the intercept.
        levels: (i,) log weights of the interests' levels; 0 for liked papers.
        relevant: (n,) whether a paper is on topic.
    """

    values: Mapping[str, Floats]
    levels: Floats
    relevant: NDArray[np.bool_]

    @property
    def of_liked(self) -> bool:
        """Whether these are the parts of a profile that only names liked papers."""
        return "titles" in self.values


def parts_of(day: JudgedDay, *, embed: Embed, scoring: ScoringConfig) -> Parts | None:
    """Return the parts of a day's candidates; None without candidates, and without interests and known liked papers."""
    interests = day.judged.profile.content.interests
    mode = "lanes" if interests.in_words else "library"
    options = day.options.model_copy(update={"interest_mode": mode})
    queries = interest_queries(interests, options=options, scoring=scoring, known=day.known)
    if not queries.views or not day.candidates.num_rows:
        return None
    standard = standard_calibration()
    (view,) = queries.views
    ids = day.candidates.column("paper_id").to_pylist()
    relevant = day.judged.grades_of(ids) >= ON_TOPIC
    query_vectors, words = embed([*view.texts]), paper_words(day.candidates)
    if view.mode == "library":
        return _liked_parts(view, relevant, cosines(day.vectors, query_vectors).T, words=words, vectors=day.vectors)
    return _parts(
        view, relevant, cosines(day.vectors, standard.adapted(query_vectors)).T, words=words, vectors=day.vectors
    )


def _parts(
    lanes: View, relevant: NDArray[np.bool_], near: Floats, *, words: PaperWords, vectors: NDArray[np.float32]
) -> Parts:
    standard = standard_calibration()
    scores = term_scores(words, lanes.texts, background=standard.background).T
    judged = interests_judged(near, scores, weights=lanes.weights, calibration=standard, vectors=vectors)
    levels = np.log(np.array(lanes.weights))
    values = {
        "meaning": standardized(near, standard.cosines),
        "words": np.nan_to_num(scores),
        "share": share_of_best(np.nan_to_num(scores), None, standard.highest_scores),
        "best": np.zeros_like(near) if judged.best is None else judged.best,
        "number": np.full_like(near, log_number(int(np.isfinite(levels).sum()))),
    }
    return Parts(values=values, levels=levels, relevant=relevant)


def _liked_parts(
    library: View, relevant: NDArray[np.bool_], near: Floats, *, words: PaperWords, vectors: NDArray[np.float32]
) -> Parts:
    standard = standard_calibration()
    tfidf, usual_tfidf = similarity_by_words(words, library.texts, background=standard.background)
    titles = np.nan_to_num(term_scores(words, library.names, background=standard.background).T)
    usual = (standard.usual_cosines(vectors), usual_tfidf)
    judged, _ = library_judged(near, np.ascontiguousarray(tfidf.T), titles, usual=usual, calibration=standard)
    parts = {"meaning": judged.near, "words": judged.standard_words, "titles": judged.titles}
    values = {name: part[None] for name, part in parts.items() if part is not None}
    return Parts(values=values, levels=np.zeros(1), relevant=relevant)


def fit(profiles: Sequence[Parts], *, version: str) -> Calibration:
    """Return the standard calibration with its logits fitted to these profiles.

    Logits that no profile is suited for are kept, those of liked papers if there are fewer than `_FEWEST_LIKED`.
    Raises InvalidInput if no profile has a relevant paper.
    """
    if not any(parts.relevant.any() for parts in profiles):
        raise InvalidInput("a fit needs relevant papers among the candidates of at least one other profile")
    standard = standard_calibration()
    in_words = [parts for parts in profiles if not parts.of_liked]
    liked = [parts for parts in profiles if parts.of_liked]
    fitted: dict[str, Any] = {}
    if in_words:
        fitted |= {name: _fitted(names, in_words, start=getattr(standard, name)) for name, names in _FITTED.items()}
        fitted["interest_with_best"] = _halfway(fitted["interest"], fitted["interest_with_best"])
    if len(liked) >= _FEWEST_LIKED:
        fitted |= {
            name: _fitted(names, liked, start=getattr(standard, name)) for name, names in _FITTED_TO_LIKED.items()
        }
    return replace(standard, **fitted, version=version)


def _halfway(first: Logit, second: Logit) -> Logit:
    """Return the mean of two sets of coefficients.

    With its fitted coefficient, likeness to the best matches improves lists on weeks of arXiv and worsens them on CACM,
    where it prefers interests with many similar papers. Half of the coefficient keeps most of the improvement.
    """
    return Logit(**{name: (getattr(first, name) + getattr(second, name)) / 2 for name in Logit.__slots__})


def held_out_fits(
    parts: Mapping[str, Parts | None], *, groups: Mapping[str, str] | None = None
) -> dict[str, Calibration]:
    """Return by profile the calibration that was fitted to the profiles of all other groups.

    `groups` has the group by profile (None: every profile is one).

    Profiles whose parts are None are not used for fits. Raises InvalidInput if fewer than two groups have parts.
    """
    groups = groups or {name: name for name in parts}
    usable = {name: profile_parts for name, profile_parts in parts.items() if profile_parts is not None}
    if len({groups[name] for name in usable}) < 2:
        raise InvalidInput(
            "--leave-one-out needs at least two profiles with interests or known liked papers, or two such sets"
        )
    fits = {
        group: fit(
            [profile_parts for name, profile_parts in usable.items() if groups[name] != group],
            version=f"fitted without {group}",
        )
        for group in dict.fromkeys(groups.values())
    }
    return {name: fits[groups[name]] for name in parts}


def _fitted(names: Sequence[str], profiles: Sequence[Parts], *, start: Logit) -> Logit:
    """Return the logit with the coefficients `names` fitted by L-BFGS-B, beginning at those of `start`."""
    from scipy.optimize import minimize

    parts_by_profile = [(np.stack([parts.values[name] for name in names]), parts) for parts in profiles]

    def loss(values: Floats) -> tuple[float, Floats]:
        coefficients, saturation = values[1:-1], values[-1]
        total = _RIDGE * float((coefficients**2).sum())
        slope = 2 * _RIDGE * np.concatenate([[0.0], coefficients, [0.0]])
        for values_of_parts, parts in parts_by_profile:
            evidence = values[0] + np.tensordot(coefficients, values_of_parts, axes=1)
            strong = np.logaddexp(0.0, evidence - SATURATES_FROM)
            logits = evidence - saturation * strong + parts.levels[:, None]
            softplus = np.logaddexp(0.0, logits)
            neg_log_none = softplus.sum(axis=0)  # -ln of the probability that no interest is met
            on_topic = np.maximum(-np.expm1(-neg_log_none), _TINY)
            total += float(np.where(parts.relevant, -np.log(on_topic), neg_log_none).sum()) / len(parts_by_profile)
            of_logits = np.exp(logits - softplus) * np.where(parts.relevant, 1 - 1 / on_topic, 1.0)
            of_evidence = of_logits * (1 - saturation * np.exp(evidence - SATURATES_FROM - strong))
            slopes = [
                [of_evidence.sum()],
                (values_of_parts * of_evidence).sum(axis=(1, 2)),
                [-(of_logits * strong).sum()],
            ]
            slope = slope + np.concatenate(slopes) / len(parts_by_profile)
        return total, slope

    start_values = np.array([start.intercept, *(getattr(start, name) for name in names), start.saturation])
    of_names = [(None, 0.0) if name == "number" else (0.0, None) for name in names]
    bounds = [(None, None), *of_names, (0.0, _MOST_SATURATION)]
    fitted = minimize(
        loss, start_values, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 500}
    ).x.tolist()
    return Logit(intercept=fitted[0], **dict(zip((*names, "saturation"), fitted[1:], strict=True)))
