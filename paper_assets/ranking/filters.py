"""Filters: which papers never become candidates of a profile, and the first reason why (SPEC G3, S6).

`FILTERS` lists them in the order in which they run, each with its reason and the words for it. Each answers one
question for all papers at once: a detail for the row of each paper to remove, "" where the reason needs none. The
first functions read a column of a table of papers as an array: age, code, membership.

To add a filter, write a function like those below and add a line in `FILTERS`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.paper_id import unversioned
from paper_assets.profile import ProfileContent, RankingOptions
from paper_assets.ranking.keywords import distinct, keywords_in, paper_texts
from paper_assets.settings import ScoringConfig
from paper_assets.sources.paper_fields import DATA_SET, MAY_NAME_PAGE, project_page
from paper_assets.text.forward_index import IndexedTexts

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MAY_NAME_PAGE = "|".join(map(re.escape, MAY_NAME_PAGE))
_EPOCH = date(1970, 1, 1).toordinal()


def ages_in_days(table: pa.Table, as_of: date) -> Floats:
    """Return days from first submission (UTC) to `as_of`, negative in the future, NaN if unknown."""
    return as_of.toordinal() - published_days(table)


def published_days(table: pa.Table) -> Floats:
    """Return the proleptic ordinal (`date.toordinal`) of the day of first submission in UTC, NaN if unknown."""
    days = table.column("published").cast(pa.timestamp("us", tz="UTC")).cast(pa.date32()).cast(pa.int32())
    return days.cast(pa.float64()).fill_null(float("nan")).to_numpy() + _EPOCH


def has_code(table: pa.Table) -> Bools:
    """Return whether code can be had: in a known repository, or by way of a project page."""
    repository = has_repository(table)
    return repository | has_project_page(table, among=~repository)


def has_repository(table: pa.Table) -> Bools:
    """Return whether an address of code is known; a data set's does not count."""
    urls = table.column("github_url").fill_null("")
    data: Bools = pc.match_substring_regex(urls, DATA_SET, ignore_case=True).to_numpy()
    return pc.not_equal(urls, "").to_numpy() & ~data


def has_project_page(table: pa.Table, *, among: Bools, texts: IndexedTexts | None = None) -> Bools:
    """Return whether comment or abstract name a project page, of the papers `among`; only papers that may are read one
    by one.

    `texts`: titles and abstracts where they are indexed; then no abstract is searched that was searched before.
    """
    named = [table.column(name) for name in ("comment", "abstract")]
    may = _may_name_page(named[0]) | (_may_name_page(named[1]) if texts is None else texts.holding(MAY_NAME_PAGE))
    rows = np.flatnonzero(among & may)
    pages = [project_page(*texts) for texts in zip(*(column.take(rows).to_pylist() for column in named), strict=True)]
    found = np.zeros(table.num_rows, dtype=bool)
    found[rows] = [page is not None for page in pages]
    return found


def _may_name_page(texts: pa.ChunkedArray) -> Bools:
    found: Bools = pc.match_substring_regex(texts, _MAY_NAME_PAGE).fill_null(False).to_numpy()
    return found


def among(table: pa.Table, paper_ids: Iterable[str]) -> Bools:
    """Return whether each paper's id is one of these."""
    wanted = pa.array(list(paper_ids), type=pa.string())
    found: Bools = pc.is_in(table.column("paper_id"), value_set=wanted).to_numpy()
    return found


Details = dict[int, str]

FILTER_PHASE = 2  # G15 `filter_phase`: papers are removed before anything is scored


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterCriteria:
    """What the filters judge by. Without a profile (`content` None) keywords, year and code do not count.

    `implementation_needs_code`: purpose implementation removes papers without code, as the call does. The graph leaves
    them in, because arXiv's metadata misses most code, and puts papers with code first.
    """

    content: ProfileContent | None
    options: RankingOptions
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    read_ids: frozenset[str] = frozenset()
    shown_ids: frozenset[str] = frozenset()
    implementation_needs_code: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter's question and its reason: `code` is stored (G15), with ":detail" behind it where there is one.

    `words` end the sentence "Not ranked: …", before the detail; `counted` end "3 papers left out: 3 …".
    """

    code: str
    details: Callable[[pa.Table, FilterCriteria], Details]
    words: str
    counted: str


def withdrawn(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers withdrawn by their authors (S6)."""
    return _where(table.column("withdrawn").fill_null(False).to_numpy())


def already_read(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers of the reading history, whatever the version."""
    return _where(among(table, map(unversioned, criteria.read_ids)))


def blacklist_keyword(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers with a hard excluded keyword; the detail is the first of the profile's."""
    keywords = distinct(criteria.content.keywords.exclude.hard) if criteria.content else []
    found = keywords_in(paper_texts(table), keywords)
    return {row: keywords[int(found[row].argmax())] for row in np.flatnonzero(found.any(axis=1)).tolist()}


def too_old(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers first submitted before the earliest accepted year, which is the detail; an unknown date is never
    too old.
    """
    earliest = criteria.content.constraints.min_year if criteria.content else None
    if earliest is None:
        return {}
    if criteria.options.purpose == "literature_review":
        earliest -= criteria.scoring.literature_review_grace_years
    first_day = date(earliest, 1, 1).toordinal()
    days = published_days(table)
    rows = np.flatnonzero(days < first_day)
    return {row: str(date.fromordinal(int(day)).year) for row, day in zip(rows.tolist(), days[rows], strict=True)}


def no_code_required(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers without code, if the purpose is to implement or the profile requires code."""
    by_purpose = criteria.options.purpose == "implementation" and criteria.implementation_needs_code
    required = by_purpose or (criteria.content is not None and criteria.content.constraints.require_code)
    return _where(~has_code(table)) if required else {}


def already_shown(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers in the top K of an earlier day of the window (assets only)."""
    return _where(among(table, map(unversioned, criteria.shown_ids)))


# SPEC G3 fixes the four in the middle. A withdrawn paper is one whatever else it is; ALREADY_SHOWN comes last, so
# that it counts exactly the papers which would be candidates again.
FILTERS = (
    Filter(
        code="WITHDRAWN",
        details=withdrawn,
        words="its authors have withdrawn it",
        counted="withdrawn",
    ),
    Filter(
        code="ALREADY_READ",
        details=already_read,
        words="you have already read it",
        counted="read already",
    ),
    Filter(
        code="BLACKLIST_KEYWORD",
        details=blacklist_keyword,
        words="it holds your excluded keyword",
        counted="with a keyword you exclude",
    ),
    Filter(
        code="TOO_OLD",
        details=too_old,
        words="it is older than the earliest year you want; it is from",
        counted="too old",
    ),
    Filter(
        code="NO_CODE_REQUIRED",
        details=no_code_required,
        words="you want code and none is known",
        counted="without code",
    ),
    Filter(
        code="ALREADY_SHOWN",
        details=already_shown,
        words="it was in your list on an earlier day",
        counted="in your list on an earlier day",
    ),
)


def filter_papers(table: pa.Table, criteria: FilterCriteria) -> pa.Table:
    """Return one row for each paper of `table`, in its order: paper_id, title, passed, reason (the first), phase."""
    reasons: list[str | None] = [None] * table.num_rows
    for each in FILTERS:
        for row, detail in each.details(table, criteria).items():
            if reasons[row] is None:
                reasons[row] = f"{each.code}:{detail}" if detail else each.code
    columns: dict[str, Any] = {
        "paper_id": table.column("paper_id"),
        "title": table.column("title"),
        "passed": pa.array([reason is None for reason in reasons], type=pa.bool_()),
        "reason": pa.array(reasons, type=pa.string()),
        "phase": pa.array([FILTER_PHASE] * table.num_rows, type=pa.int32()),
    }
    return pa.table(columns)


def any_shown_before(judged: pa.Table) -> bool:
    """Return whether an earlier list of the window has shown one of the papers (`filter_papers`'s rows)."""
    return bool(pc.any(pc.equal(judged.column("reason"), "ALREADY_SHOWN"), min_count=0).as_py())


def _where(removed: NDArray[np.bool_]) -> Details:
    return dict.fromkeys(np.flatnonzero(removed).tolist(), "")
