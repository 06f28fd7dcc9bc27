"""Filters: which papers never become candidates of a profile, and the first reason why (SPEC G3, S6).

`FILTERS` lists them in the order in which they run. Each answers one question for all papers at once: a
list of n reasons, None where the paper may stay.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.paper import unversioned
from paper_assets.profile import ProfileContent, RankingOptions
from paper_assets.ranking.columns import among, has_code, published_days
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.settings import Scoring

if TYPE_CHECKING:
    import pyarrow as pa

Reasons = list[str | None]

WITHDRAWN = "WITHDRAWN"
ALREADY_READ = "ALREADY_READ"
BLACKLIST_KEYWORD = "BLACKLIST_KEYWORD"
TOO_OLD = "TOO_OLD"
NO_CODE_REQUIRED = "NO_CODE_REQUIRED"
ALREADY_SHOWN = "ALREADY_SHOWN"

FILTER_PHASE = 2  # G15 `filter_phase`: papers are removed before anything is scored


@dataclass(frozen=True, slots=True, kw_only=True)
class Sieve:
    """What the filters judge by. Without a profile (`content` None) no keyword, year or code is asked."""

    content: ProfileContent | None
    options: RankingOptions
    scoring: Scoring = field(default_factory=Scoring)
    read_ids: frozenset[str] = frozenset()
    shown_ids: frozenset[str] = frozenset()


def withdrawn(table: "pa.Table", sieve: Sieve) -> Reasons:
    """Withdrawn by its authors (S6)."""
    return _where(table.column("withdrawn").fill_null(False).to_numpy(), WITHDRAWN)


def already_read(table: "pa.Table", sieve: Sieve) -> Reasons:
    """In the reading history, whatever the version."""
    return _where(among(table, map(unversioned, sieve.read_ids)), ALREADY_READ)


def blacklist_keyword(table: "pa.Table", sieve: Sieve) -> Reasons:
    """Holds a hard excluded keyword; the reason names the first of the profile's."""
    keywords = distinct(sieve.content.keywords.exclude.hard) if sieve.content else []
    found = keywords_in(paper_texts(table), keywords)
    reasons: Reasons = [None] * table.num_rows
    for row in np.flatnonzero(found.any(axis=1)).tolist():
        reasons[row] = f"{BLACKLIST_KEYWORD}:{keywords[int(found[row].argmax())]}"
    return reasons


def too_old(table: "pa.Table", sieve: Sieve) -> Reasons:
    """First submitted before the earliest year wanted; an unknown date is never too old."""
    earliest = sieve.content.constraints.min_year if sieve.content else None
    if earliest is None:
        return [None] * table.num_rows
    if sieve.options.purpose == "literature_review":
        earliest -= sieve.scoring.literature_review_grace_years
    first_day = date(earliest, 1, 1).toordinal()
    days = published_days(table).tolist()
    return [f"{TOO_OLD}:{date.fromordinal(int(day)).year}" if day < first_day else None for day in days]


def no_code_required(table: "pa.Table", sieve: Sieve) -> Reasons:
    """No code, though the purpose is to implement or the profile requires code."""
    required = sieve.options.purpose == "implementation" or (
        sieve.content is not None and sieve.content.constraints.require_code
    )
    return _where(~has_code(table) & required, NO_CODE_REQUIRED)


def already_shown(table: "pa.Table", sieve: Sieve) -> Reasons:
    """In the top K of an earlier day of the window (assets only)."""
    return _where(among(table, map(unversioned, sieve.shown_ids)), ALREADY_SHOWN)


# SPEC G3 fixes the four in the middle. A withdrawn paper is one whatever else it is; ALREADY_SHOWN comes last, so
# that it counts exactly the papers which would be candidates again.
FILTERS: tuple[Callable[["pa.Table", Sieve], Reasons], ...] = (
    withdrawn,
    already_read,
    blacklist_keyword,
    too_old,
    no_code_required,
    already_shown,
)


def filter_papers(table: "pa.Table", sieve: Sieve) -> "pa.Table":
    """One row for each paper of `table`, in its order: paper_id, title, passed, reason (the first), phase."""
    import pyarrow as pa

    reasons: Reasons = [None] * table.num_rows
    for reasons_of in FILTERS:
        reasons = [earlier or later for earlier, later in zip(reasons, reasons_of(table, sieve), strict=True)]
    columns: dict[str, Any] = {
        "paper_id": table.column("paper_id"),
        "title": table.column("title"),
        "passed": pa.array([reason is None for reason in reasons], type=pa.bool_()),
        "reason": pa.array(reasons, type=pa.string()),
        "phase": pa.array([FILTER_PHASE] * table.num_rows, type=pa.int32()),
    }
    return pa.table(columns)


def _where(removed: NDArray[np.bool_], reason: str) -> Reasons:
    return [reason if hit else None for hit in removed.tolist()]
