"""Compute the dimensions of a score, each 0..1, for all papers at once (SPEC G7).

`DIMENSION_TABLE` lists them; weights.py explains how to add one.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.ranking.keywords import BETWEEN_FIELDS, distinct, keywords_in
from paper_assets.settings import ScoringConfig
from paper_assets.text.words import normal_form

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NAME_SUFFIXES = frozenset({"jr", "sr", "ii", "iii", "iv"})
_BETWEEN_NAMES = "\0"
# All characters that are used as the apostrophe of O'Connor: typed, typographic, modifiers, primes, spacing accents.
_APOSTROPHES = str.maketrans(dict.fromkeys("'`´‘’‛ʹʻʼʽˈˊˋ′‵＇", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionFacts:
    """What the dimensions of n papers are computed from. Arrays are (n,), matches of the k must keywords (n, k)."""

    candidates: pa.Table
    must_found: Bools
    preferred_authors: Sequence[str]
    preferred_institutions: Sequence[str]
    ages: Floats  # days
    code: Bools
    downloaded: Bools
    scoring: ScoringConfig


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension: its name in the weights, its words for readers, and the function that computes it (n,)."""

    name: str
    words: str
    of: Callable[[DimensionFacts], Floats]


def must_keywords(found: Bools) -> Floats:
    """Return the share (n,) of the must keywords that each paper contains, from matches (n, k); 1 if there are none."""
    papers, keywords = found.shape
    return found.sum(axis=1) / keywords if keywords else np.ones(papers)


def author_trust(table: pa.Table, preferred: Sequence[str]) -> Floats:
    """Return (n,) 1 if a preferred author is among the authors, else 0; 1 for all if no author is preferred.

    Two names are the same if their `name_form` is equal, with or without the middle initials of one of them:
    `Maria K. O'Connor` is `Maria O’Connor`, but not `Maria L. O'Connor`. `J. Smith` is not `John Smith`, because the
    initial fits too many people; a profile that means both names both.
    """
    if not preferred:
        return np.ones(table.num_rows)
    authors = table.column("authors").combine_chunks()
    names = pc.list_flatten(authors).dictionary_encode()
    candidates = np.flatnonzero(_may_be(names.dictionary, preferred))
    matching = candidates[same_person(names.dictionary.take(candidates).to_pylist(), preferred).any(axis=1)]
    trust = np.zeros(table.num_rows)
    trust[pc.list_parent_indices(authors).to_numpy()[np.isin(names.indices.to_numpy(), matching)]] = 1.0
    return trust


def same_person(names: Sequence[str], preferred: Sequence[str]) -> Bools:
    """Return (n, k) whether each name is that of each preferred author, by the rule of `author_trust`."""
    same = np.zeros((len(names), len(preferred)), dtype=bool)
    preferred_forms = [(form, _without_initials(form)) for form in _name_forms(preferred)]
    endings = {form.rpartition(" ")[2] for form, _ in preferred_forms}
    for row, form in enumerate(_name_forms(names)):
        if form and form.rpartition(" ")[2] in endings:  # few names reach this comparison
            short = _without_initials(form)
            same[row] = [
                form in (full, without_initials) or short == full for full, without_initials in preferred_forms
            ]
    return same


def _may_be(names: pa.Array, preferred: Sequence[str]) -> Bools:
    """Return (n,) which names could be a preferred one: those not in ASCII, and those with the last word of one.

    A fast first pass in Arrow: only the names that it returns are compared by `name_form`.
    """
    possible: Bools = ~pc.string_is_ascii(names).to_numpy(zero_copy_only=False)
    plain = pc.ascii_lower(names)
    for apostrophe in "'`":
        plain = pc.replace_substring(plain, apostrophe, "")
    for ending in {form.rpartition(" ")[2] for form in _name_forms(preferred)} - {""}:
        possible |= pc.match_substring(plain, ending).to_numpy(zero_copy_only=False)
    return possible


def institution_trust(table: pa.Table, preferred: Sequence[str]) -> Floats:
    """Return (n,) 1 if an affiliation contains a preferred institution (whole words); 1 for all if there is none."""
    if not preferred:
        return np.ones(table.num_rows)
    places = pc.fill_null(pc.binary_join(table.column("affiliations"), BETWEEN_FIELDS), "")
    known = np.flatnonzero(pc.not_equal(places, "").to_numpy())
    trust = np.zeros(table.num_rows)
    trust[known] = keywords_in(places.take(known), distinct(preferred)).any(axis=1)
    return trust


def recency(ages: Floats, scoring: ScoringConfig) -> Floats:
    """Return (n,) points that fall in steps with the age in days (n,); an unknown age (NaN) is old, the future new."""
    points = np.full(len(ages), scoring.recency_floor)
    for days, value in sorted(scoring.recency_steps, reverse=True):
        points[ages <= days] = value
    return points


def practicality(code: Bools, downloaded: Bools, scoring: ScoringConfig) -> Floats:
    """Return (n,) points for available code and for a local PDF, together at most 1."""
    return np.minimum(code * scoring.practicality_code + downloaded * scoring.practicality_pdf, 1.0)


DIMENSION_TABLE = (
    # Computed separately, in relevance.py; 0 until then.
    Dimension("semantic_relevance", "relevance to your interests", lambda facts: np.zeros(len(facts.ages))),
    Dimension("must_keywords", "keywords you ask for", lambda facts: must_keywords(facts.must_found)),
    Dimension(
        "author_trust",
        "authors you follow",
        lambda facts: author_trust(facts.candidates, facts.preferred_authors),
    ),
    Dimension(
        "institution_trust",
        "institutions you follow",
        lambda facts: institution_trust(facts.candidates, facts.preferred_institutions),
    ),
    Dimension("recency", "how recent it is", lambda facts: recency(facts.ages, facts.scoring)),
    Dimension(
        "practicality",
        "code and PDF at hand",
        lambda facts: practicality(facts.code, facts.downloaded, facts.scoring),
    ),
)
DIMENSIONS_IN_WORDS = {dimension.name: dimension.words for dimension in DIMENSION_TABLE}


def name_form(name: str) -> str:
    """Return a name in the form in which names are compared: `Müller, J.-P.` becomes `j p muller`."""
    return _name_forms([name])[0]


def _name_forms(names: Sequence[str]) -> list[str]:
    """Return the `name_form` of each name, normalized in one pass over all of them."""
    if not names:
        return []
    joined = normal_form(
        _BETWEEN_NAMES.join(name.replace(_BETWEEN_NAMES, " ") for name in names).translate(_APOSTROPHES)
    )
    forms = joined.replace(".", " ").split(_BETWEEN_NAMES)
    return [" ".join((_given_name_first(form) if "," in form else form).split()) for form in forms]


def _given_name_first(form: str) -> str:
    """Return `muller, j p, jr` as `j p muller jr`."""
    parts = [part.strip() for part in re.split(",", form)]
    suffixes = [part for part in parts[1:] if part in _NAME_SUFFIXES]
    given = [part for part in parts[1:] if part not in _NAME_SUFFIXES]
    return " ".join([*given, parts[0], *suffixes])


def _without_initials(form: str) -> str:
    """Return the name without middle initials; unchanged if it begins with an initial or has fewer than three words."""
    first, *others = form.split() or [""]
    if len(first) == 1 or len(others) < 2:
        return form
    return " ".join([first, *(part for part in others[:-1] if len(part) > 1), others[-1]])
