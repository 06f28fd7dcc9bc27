"""Coefficients of relevance fitted to judged lists, and a fit for each profile that has not seen it (SPEC G17).

Maximum likelihood of the grades (2 and 3 are on topic, unjudged papers are not) under the formula of
`ranking/probability.py`, every profile of equal say, a coefficient never below 0. Only what is judged by interests in
words is fitted: no judged list likes papers, so the library keeps its coefficients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput
from paper_assets.evaluation.final_lists import JudgedDay
from paper_assets.evaluation.judged_lists import ON_TOPIC
from paper_assets.evaluation.metrics import Floats
from paper_assets.ranking.calibration import Calibration, Logit, standard_calibration
from paper_assets.ranking.gatekeeper import Embed
from paper_assets.ranking.interest_modes import interest_queries
from paper_assets.ranking.keywords import paper_texts
from paper_assets.ranking.probability import Judged, any_of, interests_judged, one_text_judged
from paper_assets.ranking.relevance import cosines
from paper_assets.ranking.term_matching import word_shares
from paper_assets.settings import ScoringConfig
from paper_assets.text.bm25 import index_words

_RIDGE = 1e-3  # on the squared coefficients; keeps a part that says nothing from running away


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a fit needs of one profile: for each `Logit` by name the parts, and which papers are on topic.

    Arrays are (interests, papers), `levels` (interests,) the log weight of each interest's level; None for one text.
    """

    judged: Mapping[str, Judged]
    levels: Floats
    relevant: NDArray[np.bool_]


def parts_of(day: JudgedDay, *, embed: Embed, scoring: ScoringConfig) -> Parts | None:
    """The parts of one day's candidates; None without interests in words or without candidates."""
    options = day.options.model_copy(update={"interest_mode": "hybrid", "hybrid_of": ["seed", "lanes"]})
    interests = day.judged.profile.content.interests
    if not interests.in_words or not day.candidates.num_rows:
        return None
    standard = standard_calibration()
    seed, lanes = interest_queries(interests, options=options, scoring=scoring).views
    asked = embed([*seed.texts, *lanes.texts])
    near = cosines(day.vectors, asked).T
    together, own = near[0], near[1:]
    alike = cosines(asked[1:], asked[1:])
    np.fill_diagonal(alike, 1.0)
    words = index_words(paper_texts(day.candidates))
    shares, of_seed = (
        word_shares(words, view.texts, background=standard.background, k1=scoring.bm25_k1).T for view in (lanes, seed)
    )

    def judged(own: Floats | None, together: Floats | None, shares: Floats | None) -> Judged:
        company = alike if own is not None and shares is not None else None
        return interests_judged(own, together, shares, weights=lanes.weights, alike=company, calibration=standard)

    ids = day.candidates.column("paper_id").to_pylist()
    return Parts(
        judged={
            "seed_and_lanes": judged(own, together, shares),
            "seed_and_lanes_wordless": judged(own, together, None),
            "lanes": judged(own, None, shares),
            "lanes_wordless": judged(own, None, None),
            "words_only": judged(None, None, shares),
            "seed": one_text_judged(together[None], of_seed, calibration=standard),
        },
        levels=np.log(np.array(lanes.weights)),
        relevant=day.judged.grades_of(ids) >= ON_TOPIC,
    )


def fit(profiles: Sequence[Parts], *, version: str) -> Calibration:
    """The standard calibration with its logits for interests fitted to these profiles."""
    if not any(parts.relevant.any() for parts in profiles):
        raise InvalidInput("a fit needs relevant papers among the candidates of at least one other profile")
    standard = standard_calibration()
    fitted: dict[str, Any] = {
        name: _fitted(name, profiles, start=getattr(standard, name)) for name in profiles[0].judged
    }
    return replace(standard, **fitted, version=version)


def held_out_fits(parts: Mapping[str, Parts | None]) -> dict[str, Calibration]:
    """For each profile the calibration fitted to all the others. Raises InvalidInput with fewer than two profiles."""
    known = {name: each for name, each in parts.items() if each is not None}
    if len(known) < 2:
        raise InvalidInput("--leave-one-out needs at least two profiles with interests in words")
    return {
        name: fit([each for other, each in known.items() if other != name], version=f"fitted without {name}")
        for name in parts
    }


def _fitted(name: str, profiles: Sequence[Parts], *, start: Logit) -> Logit:
    from scipy.optimize import minimize

    known = []
    for parts in profiles:
        judged = parts.judged[name]
        given = [np.nan_to_num(part) for part in (judged.meaning, judged.words) if part is not None]
        levels = parts.levels if given[0].shape[0] == len(parts.levels) and name != "seed" else np.zeros(1)
        known.append((np.stack(given), levels[:, None], parts.relevant))
    names = [part for part in ("meaning", "words") if getattr(profiles[0].judged[name], part) is not None]

    def loss(values: Floats) -> float:
        total = _RIDGE * float((values[1:] ** 2).sum())
        for given, levels, relevant in known:
            logits = any_of(values[0] + np.tensordot(values[1:], given, axes=1) + levels)
            total += float(np.logaddexp(0.0, np.where(relevant, -logits, logits)).sum()) / len(known)
        return total

    first = np.array([start.intercept, *(getattr(start, part) for part in names)])
    bounds = [(None, None)] + [(0.0, None)] * len(names)
    found = minimize(loss, first, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200}).x.tolist()
    return Logit(intercept=found[0], **dict(zip(names, found[1:], strict=True)))
