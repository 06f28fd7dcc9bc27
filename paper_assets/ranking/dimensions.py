"""Compute the dimensions of a score, each 0..1, for all papers at once (SPEC G7).

`DIMENSION_TABLE` lists them; weights.py explains how to add one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.ranking.keywords import BETWEEN_FIELDS, distinct, keywords_in
from paper_assets.settings import ScoringConfig
from paper_assets.text.names import maybe_same_person, name_forms, same_person

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


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
    """Return (n,) 1 if a preferred author is among the authors (`same_person`), else 0; 1 for all if none is preferred.

    `J. Smith` is not `John Smith` here, because the initial fits too many people; `perhaps_followed` says "perhaps".
    """
    return _by_author(table, preferred, same_person).astype(np.float64) if preferred else np.ones(table.num_rows)


def perhaps_followed(table: pa.Table, preferred: Sequence[str]) -> Bools:
    """Return (n,) whether a preferred author may be among the authors (`maybe_same_person`)."""
    return _by_author(table, preferred, maybe_same_person)


def _by_author(
    table: pa.Table, preferred: Sequence[str], same: Callable[[Sequence[str], Sequence[str]], Bools]
) -> Bools:
    """Return (n,) whether a preferred author is among the authors, by a rule that compares names."""
    found = np.zeros(table.num_rows, dtype=bool)
    if preferred:
        authors = table.column("authors").combine_chunks()
        names = pc.list_flatten(authors).dictionary_encode()
        candidates = np.flatnonzero(_may_be(names.dictionary, preferred))
        matching = candidates[same(names.dictionary.take(candidates).to_pylist(), preferred).any(axis=1)]
        found[pc.list_parent_indices(authors).to_numpy()[np.isin(names.indices.to_numpy(), matching)]] = True
    return found


def _may_be(names: pa.Array, preferred: Sequence[str]) -> Bools:
    """Return (n,) which names could be a preferred one: those not in ASCII, and those that share its first or last
    word.

    A fast first pass in Arrow: only the names that it returns are compared by `name_form`.
    """
    possible: Bools = ~pc.string_is_ascii(names).to_numpy(zero_copy_only=False)
    plain = pc.ascii_lower(names)
    for apostrophe in "'`":
        plain = pc.replace_substring(plain, apostrophe, "")
    forms = name_forms(preferred)
    last = {form.rpartition(" ")[2] for form in forms}
    first = {form.partition(" ")[0] for form in forms if form.find(" ") > 1}  # the family name, in some countries
    for word in (last | first) - {""}:
        possible |= pc.match_substring(plain, word).to_numpy(zero_copy_only=False)
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
