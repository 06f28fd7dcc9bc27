"""Fit the coefficients of relevance to judged lists, for all profiles or with one left out (SPEC G17).

The fit maximizes the likelihood of the grades under the formula of `ranking/calibration.py`. Grades 2 and 3 are on
topic, all other papers, also unjudged ones, are not. Every profile has the same weight. Coefficients are at least 0,
that of the number of interests at most 0. Only the coefficients of interests in words are fitted; those of liked papers
stay as `benchmarks/calibrate.py` computed them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.final_lists import JudgedDay
from paper_assets.evaluation.judged_lists import ON_TOPIC
from paper_assets.evaluation.metrics import Floats
from paper_assets.ranking.calibration import Calibration, Logit, interests_judged, standard_calibration, standardized
from paper_assets.ranking.cosines import cosines
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.ranking.relevance import interest_queries
from paper_assets.ranking.term_matching import paper_words, term_scores
from paper_assets.settings import ScoringConfig

_RIDGE = 1e-3  # penalty on squared coefficients: the coefficient of a part without information stays small
_TINY = 1e-300  # least probability whose logarithm is taken
_FITTED = {
    "interest": ("meaning", "words", "number"),
    "interest_with_best": ("meaning", "words", "best", "number"),
    "interest_wordless": ("meaning", "number"),
    "words_only": ("words", "number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a fit needs of one profile with i interests and n papers.

    Attributes:
        meaning: (i, n) standardized cosines.
        words: (i, n) term scores.
        best: (i, n) standardized likeness to the best matches by the standard calibration.
        levels: (i,) log weights of the interests' levels.
        relevant: (n,) whether a paper is on topic.
    """

    meaning: Floats
    words: Floats
    best: Floats
    levels: Floats
    relevant: NDArray[np.bool_]

    @property
    def number(self) -> Floats:
        """The logarithm of the number of interests, (i, n)."""
        return np.full_like(self.meaning, np.log(np.isfinite(self.levels).sum()))


def parts_of(day: JudgedDay, *, embed: Embed, scoring: ScoringConfig) -> Parts | None:
    """Return the parts of a day's candidates; None without interests in words or without candidates."""
    options = day.options.model_copy(update={"interest_mode": "lanes"})
    interests = day.judged.profile.content.interests
    if not interests.in_words or not day.candidates.num_rows:
        return None
    standard = standard_calibration()
    (lanes,) = interest_queries(interests, options=options, scoring=scoring).views
    ids = day.candidates.column("paper_id").to_pylist()
    near = cosines(day.vectors, standard.adapted(embed([*lanes.texts]))).T
    words = term_scores(paper_words(day.candidates), lanes.texts, background=standard.background).T
    judged = interests_judged(near, words, weights=lanes.weights, calibration=standard, vectors=day.vectors)
    return Parts(
        meaning=standardized(near, standard.cosines),
        words=np.nan_to_num(words),
        best=np.zeros_like(near) if judged.best is None else judged.best,
        levels=np.log(np.array(lanes.weights)),
        relevant=day.judged.grades_of(ids) >= ON_TOPIC,
    )


def fit(profiles: Sequence[Parts], *, version: str) -> Calibration:
    """Return the standard calibration with the logits of interests fitted to these profiles.

    Raises InvalidInput if no profile has a relevant paper.
    """
    if not any(parts.relevant.any() for parts in profiles):
        raise InvalidInput("a fit needs relevant papers among the candidates of at least one other profile")
    standard = standard_calibration()
    fitted = {name: _fitted(names, profiles, start=getattr(standard, name)) for name, names in _FITTED.items()}
    return replace(
        standard,
        interest=fitted["interest"],
        interest_with_best=_halfway(fitted["interest"], fitted["interest_with_best"]),
        interest_wordless=fitted["interest_wordless"],
        words_only=fitted["words_only"],
        version=version,
    )


def _halfway(first: Logit, second: Logit) -> Logit:
    """Return the mean of two sets of coefficients.

    With its fitted coefficient, likeness to the best matches improves lists on weeks of arXiv and worsens them on CACM,
    where it prefers interests with many similar papers. Half of the coefficient keeps most of the improvement.
    """
    return Logit(**{name: (getattr(first, name) + getattr(second, name)) / 2 for name in Logit.__slots__})


def held_out_fits(parts: Mapping[str, Parts | None]) -> dict[str, Calibration]:
    """Return by profile the calibration that was fitted to all other profiles.

    Profiles whose parts are None are not used for fits. Raises InvalidInput if fewer than two have parts.
    """
    usable = {name: profile_parts for name, profile_parts in parts.items() if profile_parts is not None}
    if len(usable) < 2:
        raise InvalidInput("--leave-one-out needs at least two profiles with interests in words")
    return {
        name: fit(
            [profile_parts for other, profile_parts in usable.items() if other != name],
            version=f"fitted without {name}",
        )
        for name in parts
    }


def _fitted(names: Sequence[str], profiles: Sequence[Parts], *, start: Logit) -> Logit:
    """Return the logit with the coefficients `names` fitted by L-BFGS-B, beginning at those of `start`."""
    from scipy.optimize import minimize

    parts_by_profile = [(np.stack([getattr(parts, name) for name in names]), parts) for parts in profiles]

    def loss(values: Floats) -> tuple[float, Floats]:
        total = _RIDGE * float((values[1:] ** 2).sum())
        slope = 2 * _RIDGE * np.concatenate([[0.0], values[1:]])
        for values_of_parts, parts in parts_by_profile:
            logits = values[0] + np.tensordot(values[1:], values_of_parts, axes=1) + parts.levels[:, None]
            softplus = np.logaddexp(0.0, logits)
            neg_log_none = softplus.sum(axis=0)  # -ln of the probability that no interest is met
            on_topic = np.maximum(-np.expm1(-neg_log_none), _TINY)
            total += float(np.where(parts.relevant, -np.log(on_topic), neg_log_none).sum()) / len(parts_by_profile)
            slopes = np.exp(logits - softplus) * np.where(parts.relevant, 1 - 1 / on_topic, 1.0) / len(parts_by_profile)
            slope = slope + np.concatenate([[slopes.sum()], (values_of_parts * slopes).sum(axis=(1, 2))])
        return total, slope

    start_values = np.array([start.intercept, *(getattr(start, name) for name in names)])
    bounds = [(None, None), *((None, 0.0) if name == "number" else (0.0, None) for name in names)]
    fitted = minimize(
        loss, start_values, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}
    ).x.tolist()
    return Logit(intercept=fitted[0], **dict(zip(names, fitted[1:], strict=True)))
