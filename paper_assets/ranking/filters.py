"""Remove papers that cannot be candidates of a profile, each with a reason (SPEC G3, S6).

`FILTERS` lists the filters in the order in which they run; the first one that removes a paper gives the reason. A
filter is a function over all papers at once that returns the rows to remove, each with a detail for the reason ("" if
there is none). The first functions of this module read a table of papers as arrays: age, code, membership.

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

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MAY_NAME_PAGE = "|".join(map(re.escape, MAY_NAME_PAGE))
_EPOCH = date(1970, 1, 1).toordinal()


def ages_in_days(table: pa.Table, as_of: date) -> Floats:
    """Return (n,) the days from first submission (UTC) to `as_of`; negative in the future, NaN if unknown."""
    return as_of.toordinal() - published_days(table)


def published_days(table: pa.Table) -> Floats:
    """Return (n,) the day of first submission in UTC as a number (`date.toordinal`), NaN if unknown."""
    days = table.column("published").cast(pa.timestamp("us", tz="UTC")).cast(pa.date32()).cast(pa.int32())
    return days.cast(pa.float64()).fill_null(float("nan")).to_numpy() + _EPOCH


def has_code(table: pa.Table) -> Bools:
    """Return (n,) whether code is available: in a known repository, or through a project page."""
    repository = has_repository(table)
    return repository | has_project_page(table, among=~repository)


def has_repository(table: pa.Table) -> Bools:
    """Return (n,) whether the URL of a code repository is known; the URL of a data set does not count."""
    urls = table.column("github_url").fill_null("")
    data: Bools = pc.match_substring_regex(urls, DATA_SET, ignore_case=True).to_numpy()
    return pc.not_equal(urls, "").to_numpy() & ~data


def has_project_page(table: pa.Table, *, among: Bools) -> Bools:
    """Return (n,) whether the comment or abstract names a project page; false for papers outside the mask `among` (n,).

    Only papers with a word that a project page needs are read one by one.
    """
    named = [table.column(name) for name in ("comment", "abstract")]
    rows = np.flatnonzero(among & (_may_name_page(named[0]) | _may_name_page(named[1])))
    pages = [project_page(*texts) for texts in zip(*(column.take(rows).to_pylist() for column in named), strict=True)]
    has_page = np.zeros(table.num_rows, dtype=bool)
    has_page[rows] = [page is not None for page in pages]
    return has_page


def _may_name_page(texts: pa.ChunkedArray) -> Bools:
    return pc.match_substring_regex(texts, _MAY_NAME_PAGE, ignore_case=True).fill_null(False).to_numpy()


def among(table: pa.Table, paper_ids: Iterable[str]) -> Bools:
    """Return (n,) whether each paper's id is one of `paper_ids`."""
    value_set = pa.array(list(paper_ids), type=pa.string())
    return pc.is_in(table.column("paper_id"), value_set=value_set).to_numpy()


Details = dict[int, str]

FILTER_PHASE = 2  # G15 `filter_phase`: papers are removed before anything is scored


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterCriteria:
    """What the filters depend on. Without a profile (`content` None) keywords, year and code remove nothing.

    `implementation_needs_code`: whether the purpose `implementation` removes papers without code, as in a call of
    `rank_and_filter_papers`. The assets keep these papers and put papers with code first, because the metadata of arXiv
    lacks most code.
    """

    content: ProfileContent | None
    options: RankingOptions
    scoring: ScoringConfig = field(default_factory=ScoringConfig)
    read_ids: frozenset[str] = frozenset()
    shown_ids: frozenset[str] = frozenset()
    implementation_needs_code: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """A filter and its reason.

    Attributes:
        code: the stored reason (G15), followed by ":detail" if there is a detail.
        details: the function that returns the rows to remove, with their details.
        words: complete the sentence "Not ranked: …", before the detail.
        counted: complete the sentence "3 papers left out: 3 …".
    """

    code: str
    details: Callable[[pa.Table, FilterCriteria], Details]
    words: str
    counted: str


def withdrawn(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers withdrawn by their authors (S6)."""
    return _where(table.column("withdrawn").fill_null(False).to_numpy())


def already_read(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers of the reading history, in any version."""
    return _where(among(table, map(unversioned, criteria.read_ids)))


def blacklist_keyword(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers with a hard excluded keyword; the detail is the first that the paper contains."""
    keywords = distinct(criteria.content.keywords.exclude.hard) if criteria.content else []
    contained = keywords_in(paper_texts(table), keywords)
    return {row: keywords[int(contained[row].argmax())] for row in np.flatnonzero(contained.any(axis=1)).tolist()}


def excluded_category(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers in an excluded category; the detail is the category. `primary:cs.CV` excludes by the first one only.

    Codes are compared without regard to case.
    """
    excluded = criteria.content.feed.exclude_categories if criteria.content else []
    if not excluded:
        return {}
    only_primary = {code.casefold().partition(":")[2] for code in excluded if code.casefold().startswith("primary:")}
    anywhere = {code.casefold() for code in excluded}
    details: Details = {}
    for row, codes in enumerate(table.column("categories").to_pylist()):
        for place, code in enumerate(codes or ()):
            if code.casefold() in anywhere or (place == 0 and code.casefold() in only_primary):
                details[row] = code
                break
    return details


def too_old(table: pa.Table, criteria: FilterCriteria) -> Details:
    """Find papers first submitted before the earliest accepted year; the detail is the year of the paper.

    A paper without a date is never too old.
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
    """Find papers in the list of an earlier day of the window (assets only)."""
    return _where(among(table, map(unversioned, criteria.shown_ids)))


# SPEC G3 requires the order of READ, KEYWORD, OLD and CODE. WITHDRAWN is first because it holds for every profile.
# ALREADY_SHOWN is last, so that it counts exactly the papers that would otherwise be candidates again.
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
        words="it contains your excluded keyword",
        counted="with a keyword you exclude",
    ),
    Filter(
        code="EXCLUDED_CATEGORY",
        details=excluded_category,
        words="it is in the category that you exclude,",
        counted="in a category you exclude",
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
LEFT_OUT_IN_WORDS = {each.code: each.counted for each in FILTERS} | {"AVOIDED_TOPIC": "on a topic you avoid"}


def filter_papers(table: pa.Table, criteria: FilterCriteria) -> pa.Table:
    """Apply all filters: return a row for each paper of `table`, with paper_id, title, passed, reason and phase."""
    reasons: list[str | None] = [None] * table.num_rows
    for paper_filter in FILTERS:
        for row, detail in paper_filter.details(table, criteria).items():
            if reasons[row] is None:
                reasons[row] = f"{paper_filter.code}:{detail}" if detail else paper_filter.code
    columns: dict[str, Any] = {
        "paper_id": table.column("paper_id"),
        "title": table.column("title"),
        "passed": pa.array([reason is None for reason in reasons], type=pa.bool_()),
        "reason": pa.array(reasons, type=pa.string()),
        "phase": pa.array([FILTER_PHASE] * table.num_rows, type=pa.int32()),
    }
    return pa.table(columns)


def shown_before(judged: pa.Table) -> list[str]:
    """Return the ids of the papers that ALREADY_SHOWN removed, from the rows of `filter_papers`."""
    return judged.filter(pc.equal(judged.column("reason"), "ALREADY_SHOWN")).column("paper_id").to_pylist()


def _where(removed: NDArray[np.bool_]) -> Details:
    return dict.fromkeys(np.flatnonzero(removed).tolist(), "")
