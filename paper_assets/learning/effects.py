"""What a reader's ratings change in a ranking: which papers are shown because of them, and which are not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paper_assets.ranking.final_list import arrange, learned_of, probability_of, stored_scores

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """A paper that the ratings moved into or out of a list: its probability `without` and `with_ratings`, and by which
    words and rated papers.

    A word begins with + or -, as in the stored ranking. A rated paper is not named as near itself.
    """

    paper_id: str
    without: float
    with_ratings: float
    words: tuple[str, ...]
    near: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RatingsEffect:
    """The papers shown only because of the ratings (`came`), and those not shown because of them (`went`)."""

    came: tuple[Moved, ...] = ()
    went: tuple[Moved, ...] = ()


def ratings_effect(rows: Sequence[Row], header: Mapping[str, Any]) -> RatingsEffect | None:
    """Compare a stored ranking's list with the list that its scores give without what was learned.

    Returns None if nothing learned counts in it. The contrasting paper stays unchanged.
    """
    if not any(learned_of(row) for row in rows):
        return None
    ordered = sorted(rows, key=lambda row: row["rank"])
    learned = np.array([learned_of(row) for row in ordered])
    scores = stored_scores(ordered, header)
    weight = header["weights"]["semantic_relevance"]
    order, listed = arrange(
        replace(scores, probability=scores.probability - learned, final=scores.final - weight * learned)
    )
    without = order[:listed].tolist()
    return RatingsEffect(
        came=tuple(_moved(row) for at, row in enumerate(ordered) if row["shown"] and at not in without),
        went=tuple(_moved(ordered[at]) for at in without if not ordered[at]["shown"]),
    )


def _moved(row: Row) -> Moved:
    return Moved(
        paper_id=row["paper_id"],
        without=row["semantic_relevance"],
        with_ratings=probability_of(row),
        words=tuple(row.get("learned_words") or ()),
        near=tuple(each for each in row.get("learned_near") or () if each != row["paper_id"]),
    )
