"""The probability that a reader with these interests calls a paper on topic, from its parts (SPEC G17).

    logit_i = intercept + a meaning_i + b words_i + ln(weight of the interest's level)
    words_i = (share_i + mean of all shares, weighted by how alike the interests are to i) / 2
    p       = 1 - product of (1 - p_i)                                  any of the interests will do

and with liked papers, m of them, logit(p) is raised or lowered by share(m) (logit_library - base). Arrays are
(interests, papers); all sums run over interests in a fixed order, so that a paper's bits do not depend on the others.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.calibration import Calibration, Logit

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Logits, and the parts that they come from as far as there are any. Arrays (interests, papers), or (papers,)."""

    logits: Floats
    meaning: Floats | None
    words: Floats | None  # NaN for an interest without a word to look for


def interests_judged(
    own: Floats | None,
    together: Floats | None,
    shares: Floats | None,
    *,
    weights: tuple[float, ...],
    alike: Floats | None,
    calibration: Calibration,
) -> Judged:
    """Each interest's logit. `own` (i, n) cosines, `together` (n,) cosine to all interests as one text, `shares` (i, n)
    with NaN rows for interests without words, `alike` (i, i) cosines between interests. Any may be missing; own and
    shares not both.
    """
    known = [part for part in (own, shares) if part is not None]
    by_words = np.full(known[0].shape, np.nan) if shares is None else shares
    if own is None:
        logits, meaning = _logits(calibration.words_only, None, np.nan_to_num(by_words)), None
    else:
        meaning = own if together is None else (own + together) / 2
        by_words = by_words if alike is None else (by_words + in_company(by_words, alike)) / 2
        with_words = calibration.lanes if together is None else calibration.seed_and_lanes
        without = calibration.lanes_wordless if together is None else calibration.seed_and_lanes_wordless
        logits = np.where(
            np.isnan(by_words), _logits(without, meaning, None), _logits(with_words, meaning, np.nan_to_num(by_words))
        )
    with np.errstate(divide="ignore"):  # a level may have been set to count nothing
        logits = logits + np.log(np.array(weights))[:, None]
    return Judged(logits=logits, meaning=meaning, words=None if shares is None else by_words)


def one_text_judged(own: Floats | None, shares: Floats | None, *, calibration: Calibration) -> Judged:
    """The same (1, n) where all interests are compared as one text and not one by one (`hybrid_of` seed)."""
    if own is None or shares is None or np.isnan(shares).all():
        return interests_judged(own, own, shares, weights=(1.0,), alike=None, calibration=calibration)
    return Judged(logits=_logits(calibration.seed, own, shares), meaning=own, words=shares)


def library_judged(cosines: Floats | None, tfidf: Floats | None, *, calibration: Calibration) -> tuple[Judged, Floats]:
    """The logit (n,) by liked papers from cosines and TF-IDF cosines (m, n), and how near each of them is (m, n).

    The root mean square over the nearest ones lies between their mean and the nearest: few papers of several topics
    are served by the nearest, many of one topic by all of them.
    """
    nearest = calibration.nearest
    meaning = None if cosines is None else _root_mean_square(cosines, nearest)
    words = None if tfidf is None else _root_mean_square(tfidf, nearest)
    logit = calibration.library_words_only if cosines is None else calibration.library
    near = sum(factor * part for factor, part in ((logit.meaning, cosines), (logit.words, tfidf)) if part is not None)
    return Judged(logits=_logits(logit, meaning, words), meaning=meaning, words=words), np.asarray(near)


def any_of(logits: Floats) -> Floats:
    """(n,) logit of 1 - product of (1 - p_i) over the interests, exact also where p is all but 0 or 1."""
    none = np.zeros(logits.shape[1])  # -ln of the product
    for row in logits:
        none = none + np.maximum(row, 0.0) + np.log1p(np.exp(-np.abs(row)))
    with np.errstate(divide="ignore"):
        return none + np.log(-np.expm1(-none))


def with_library(logits: Floats, library: Floats, *, liked: int, calibration: Calibration) -> Floats:
    """(n,) logit of what interests and `liked` papers say together."""
    share = calibration.library_share * liked / (liked + calibration.library_half)
    return logits + share * (library - calibration.library_base)


def probability(logits: Floats) -> Floats:
    """1 / (1 + e^-logit)."""
    with np.errstate(over="ignore"):
        return 1.0 / (1.0 + np.exp(-logits))


def in_company(shares: Floats, alike: Floats) -> Floats:
    """(i, n) each interest's share beside those of the others, weighted by likeness; one without words holds none."""
    held = np.nan_to_num(shares)
    company = np.zeros_like(shares)
    for row, likeness in enumerate(alike):
        for other, weight in zip(held, likeness.tolist(), strict=True):
            company[row] += weight * other
        company[row] /= likeness.sum()
    return company


def _logits(logit: Logit, meaning: Floats | None, words: Floats | None) -> Floats:
    parts = [factor * part for factor, part in ((logit.meaning, meaning), (logit.words, words)) if part is not None]
    return logit.intercept + sum(parts[1:], parts[0])


def _root_mean_square(scores: Floats, most: int) -> Floats:
    nearest = np.sort(scores, axis=0)[::-1][:most]
    total = np.zeros(scores.shape[1])
    for row in nearest:
        total = total + row * row
    return np.sqrt(total / len(nearest))
