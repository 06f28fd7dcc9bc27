"""Fit the coefficients of relevance to judged lists, also for each profile without its own grades (SPEC G17).

Maximum likelihood of the grades (2 and 3 are on topic, unjudged papers are not) under the formula of
`ranking/calibration.py`, every profile of equal weight, a coefficient never below 0 and that of the number of interests
never above. Only interests in words are fitted; liked papers keep the coefficients of `benchmarks/calibrate.py`.
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

_RIDGE = 1e-3  # on the squared coefficients; keeps the coefficient of a part without information small
_TINY = 1e-300
_FITTED = {
    "interest": ("meaning", "words", "number"),
    "interest_with_best": ("meaning", "words", "best", "number"),
    "interest_wordless": ("meaning", "number"),
    "words_only": ("words", "number"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a fit needs of one profile: standardized cosines, term scores and standardized likeness to the best matches
    (interests, papers), the log weight of each interest's level (interests,), and which papers are on topic (papers,).

    The best matches are those by the standard calibration.
    """

    meaning: Floats
    words: Floats
    best: Floats
    levels: Floats
    relevant: NDArray[np.bool_]

    @property
    def number(self) -> Floats:
        """(interests, papers) the logarithm of the number of interests."""
        return np.full_like(self.meaning, np.log(np.isfinite(self.levels).sum()))


def parts_of(day: JudgedDay, *, embed: Embed, scoring: ScoringConfig) -> Parts | None:
    """Return the parts of one day's candidates; None without interests in words or without candidates."""
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
    """Return the standard calibration with its logits for interests fitted to these profiles."""
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

    Likeness to the best matches gains as fitted on weeks of arXiv, and loses on CACM, where it prefers the interests
    with many papers alike; half of it keeps most of the gain.
    """
    return Logit(**{name: (getattr(first, name) + getattr(second, name)) / 2 for name in Logit.__slots__})


def held_out_fits(parts: Mapping[str, Parts | None]) -> dict[str, Calibration]:
    """Return for each profile the calibration fitted to all the others. Raises InvalidInput with fewer than two
    profiles.
    """
    known = {name: each for name, each in parts.items() if each is not None}
    if len(known) < 2:
        raise InvalidInput("--leave-one-out needs at least two profiles with interests in words")
    return {
        name: fit([each for other, each in known.items() if other != name], version=f"fitted without {name}")
        for name in parts
    }


def _fitted(names: Sequence[str], profiles: Sequence[Parts], *, start: Logit) -> Logit:
    from scipy.optimize import minimize

    known = [(np.stack([getattr(parts, name) for name in names]), parts) for parts in profiles]

    def loss(values: Floats) -> tuple[float, Floats]:
        total = _RIDGE * float((values[1:] ** 2).sum())
        slope = 2 * _RIDGE * np.concatenate([[0.0], values[1:]])
        for given, parts in known:
            logits = values[0] + np.tensordot(values[1:], given, axes=1) + parts.levels[:, None]
            softplus = np.logaddexp(0.0, logits)
            none = softplus.sum(axis=0)  # -ln of the probability that no interest is met
            found = np.maximum(-np.expm1(-none), _TINY)
            total += float(np.where(parts.relevant, -np.log(found), none).sum()) / len(known)
            by = np.exp(logits - softplus) * np.where(parts.relevant, 1 - 1 / found, 1.0) / len(known)
            slope = slope + np.concatenate([[by.sum()], (given * by).sum(axis=(1, 2))])
        return total, slope

    first = np.array([start.intercept, *(getattr(start, name) for name in names)])
    bounds = [(None, None), *((None, 0.0) if name == "number" else (0.0, None) for name in names)]
    found = minimize(loss, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}).x.tolist()
    return Logit(intercept=found[0], **dict(zip(names, found[1:], strict=True)))
