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
# Typed, typographic, modifier letters, primes, accents standing alone: all are written in O'Connor.
_APOSTROPHES = str.maketrans(dict.fromkeys("'`´‘’‛ʹʻʼʽˈˊˋ′‵＇", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class DimensionFacts:
    """What the dimensions judge by. Arrays (n,), matches of the asked keywords (n, k)."""

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
    """One dimension: its name in the weights, the words for people, and its values (n,)."""

    name: str
    words: str
    of: Callable[[DimensionFacts], Floats]


def must_keywords(found: Bools) -> Floats:
    """Return the share of the asked keywords that each paper holds, from the matches (n, k); 1 if none is asked."""
    papers, asked = found.shape
    return found.sum(axis=1) / asked if asked else np.ones(papers)


def author_trust(table: pa.Table, preferred: Sequence[str]) -> Floats:
    """Return 1 where a preferred author is among the authors, else 0; 1 for all if none is preferred.

    Names are the same if they are after `name_form`, where one of the two may lack the other's middle initials:
    `Maria K. O'Connor` is `Maria O’Connor`, and not `Maria L. O'Connor`. `J. Smith` is not `John Smith`: the initial
    fits too many people to be trusted, so a profile names both if it wants both.
    """
    if not preferred:
        return np.ones(table.num_rows)
    authors = table.column("authors").combine_chunks()
    names = pc.list_flatten(authors).dictionary_encode()
    may = np.flatnonzero(_may_be(names.dictionary, preferred))
    known = may[same_person(names.dictionary.take(may).to_pylist(), preferred).any(axis=1)]
    trust = np.zeros(table.num_rows)
    trust[pc.list_parent_indices(authors).to_numpy()[np.isin(names.indices.to_numpy(), known)]] = 1.0
    return trust


def same_person(names: Sequence[str], preferred: Sequence[str]) -> Bools:
    """Return (n, k) whether name i is that of preferred author k."""
    found = np.zeros((len(names), len(preferred)), dtype=bool)
    wanted = [(form, _without_initials(form)) for form in _name_forms(preferred)]
    endings = {form.rpartition(" ")[2] for form, _ in wanted}
    for row, form in enumerate(_name_forms(names)):
        if form and form.rpartition(" ")[2] in endings:  # so few that the rest may be asked one by one
            short = _without_initials(form)
            found[row] = [form in (asked, asked_short) or short == asked for asked, asked_short in wanted]
    return found


def _may_be(names: pa.Array, preferred: Sequence[str]) -> Bools:
    """Return (n,) which names are to be compared with care: those not in ASCII, and those that contain the last word of
    a preferred one. A few passes in C settle most names, so that few take the steps of `name_form`.
    """
    may: Bools = ~pc.string_is_ascii(names).to_numpy(zero_copy_only=False)
    plain = pc.ascii_lower(names)
    for apostrophe in "'`":
        plain = pc.replace_substring(plain, apostrophe, "")
    for ending in {form.rpartition(" ")[2] for form in _name_forms(preferred)} - {""}:
        may |= pc.match_substring(plain, ending).to_numpy(zero_copy_only=False)
    return may


def institution_trust(table: pa.Table, preferred: Sequence[str]) -> Floats:
    """Return 1 where an affiliation contains a preferred institution as whole words; 1 for all if none is preferred."""
    if not preferred:
        return np.ones(table.num_rows)
    places = pc.fill_null(pc.binary_join(table.column("affiliations"), BETWEEN_FIELDS), "")
    known = np.flatnonzero(pc.not_equal(places, "").to_numpy())
    trust = np.zeros(table.num_rows)
    trust[known] = keywords_in(places.take(known), distinct(preferred)).any(axis=1)
    return trust


def recency(ages: Floats, scoring: ScoringConfig) -> Floats:
    """Return marks that fall in steps with the age in days; an unknown age (NaN) counts as old, the future as new."""
    worth = np.full(len(ages), scoring.recency_floor)
    for days, value in sorted(scoring.recency_steps, reverse=True):
        worth[ages <= days] = value
    return worth


def practicality(code: Bools, downloaded: Bools, scoring: ScoringConfig) -> Floats:
    """Return marks for code and a PDF at hand, together at most 1."""
    return np.minimum(code * scoring.practicality_code + downloaded * scoring.practicality_pdf, 1.0)


DIMENSION_TABLE = (
    # Judged apart, by meaning and words (relevance.py): 0 until then.
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
DIMENSIONS_IN_WORDS = {each.name: each.words for each in DIMENSION_TABLE}


def name_form(name: str) -> str:
    """Return a person's name as it is compared: `Müller, J.-P.` and `j p muller` are the same."""
    return _name_forms([name])[0]


def _name_forms(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    joined = normal_form(
        _BETWEEN_NAMES.join(name.replace(_BETWEEN_NAMES, " ") for name in names).translate(_APOSTROPHES)
    )
    forms = joined.replace(".", " ").split(_BETWEEN_NAMES)
    return [" ".join((_given_name_first(form) if "," in form else form).split()) for form in forms]


def _given_name_first(form: str) -> str:
    parts = [part.strip() for part in re.split(",", form)]
    suffixes = [part for part in parts[1:] if part in _NAME_SUFFIXES]
    given = [part for part in parts[1:] if part not in _NAME_SUFFIXES]
    return " ".join([*given, parts[0], *suffixes])


def _without_initials(form: str) -> str:
    """Return the name without middle initials; one that begins with an initial keeps all, to stay apart from others."""
    first, *others = form.split() or [""]
    if len(first) == 1 or len(others) < 2:
        return form
    return " ".join([first, *(part for part in others[:-1] if len(part) > 1), others[-1]])
