"""The six dimensions of a score, each 0..1, for all papers at once (SPEC G7)."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paper_assets.ranking.keywords import BETWEEN_FIELDS, distinct, keywords_in, normal_form
from paper_assets.settings import Scoring

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_NAME_SUFFIXES = frozenset({"jr", "sr", "ii", "iii", "iv"})
_BETWEEN_NAMES = "\0"


def must_keywords(found: Bools) -> Floats:
    """Share of the asked keywords that each paper holds, from the matches (n, k); 1 if none is asked."""
    papers, asked = found.shape
    return found.sum(axis=1) / asked if asked else np.ones(papers)


def author_trust(table: "pa.Table", preferred: Sequence[str]) -> Floats:
    """1 where a preferred author is among the authors, else 0; 1 for all if none is preferred.

    Names are the same if they are after `name_form`. `J. Smith` is not `John Smith`: the initial fits
    too many people to be trusted, so a profile names both if it wants both.
    """
    import pyarrow.compute as pc

    if not preferred:
        return np.ones(table.num_rows)
    wanted = {name_form(name) for name in preferred} - {""}
    authors = table.column("authors").combine_chunks()
    names = pc.list_flatten(authors).dictionary_encode()
    known = np.array([form in wanted for form in _name_forms(names.dictionary.to_pylist())], dtype=bool)
    trust = np.zeros(table.num_rows)
    if known.any():
        trust[pc.list_parent_indices(authors).to_numpy()[known[names.indices.to_numpy()]]] = 1.0
    return trust


def institution_trust(table: "pa.Table", preferred: Sequence[str]) -> Floats:
    """1 where a preferred institution stands, as whole words, in an affiliation; 1 for all if none is preferred."""
    import pyarrow.compute as pc

    if not preferred:
        return np.ones(table.num_rows)
    places = pc.fill_null(pc.binary_join(table.column("affiliations"), BETWEEN_FIELDS), "")
    return keywords_in(places, distinct(preferred)).any(axis=1).astype(float)


def recency(ages: Floats, scoring: Scoring) -> Floats:
    """Falls in steps with the age in days; an unknown age (NaN) is worth as much as an old one, the future is new."""
    worth = np.full(len(ages), scoring.recency_floor)
    for days, value in sorted(scoring.recency_steps, reverse=True):
        worth[ages <= days] = value
    return worth


def practicality(code: Bools, downloaded: Bools, scoring: Scoring) -> Floats:
    """Code and a PDF at hand, together at most 1."""
    return np.minimum(code * scoring.practicality_code + downloaded * scoring.practicality_pdf, 1.0)


def name_form(name: str) -> str:
    """A person's name as it is compared: `Müller, J.-P.` and `j p muller` are the same."""
    return _name_forms([name])[0]


def _name_forms(names: Sequence[str]) -> list[str]:
    if not names:
        return []
    joined = normal_form(_BETWEEN_NAMES.join(name.replace(_BETWEEN_NAMES, " ") for name in names))
    forms = joined.replace(".", " ").split(_BETWEEN_NAMES)
    return [" ".join((_given_name_first(form) if "," in form else form).split()) for form in forms]


def _given_name_first(form: str) -> str:
    parts = [part.strip() for part in re.split(",", form)]
    suffixes = [part for part in parts[1:] if part in _NAME_SUFFIXES]
    given = [part for part in parts[1:] if part not in _NAME_SUFFIXES]
    return " ".join([*given, parts[0], *suffixes])
