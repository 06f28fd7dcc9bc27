"""What the columns of a table of papers say, as arrays: age, code, membership."""

import re
from collections.abc import Iterable
from datetime import date

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from paper_assets.sources.paper_fields import DATA_SET, MAY_NAME_PAGE, project_page
from paper_assets.text.forward_index import IndexedTexts

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_MAY_NAME_PAGE = "|".join(map(re.escape, MAY_NAME_PAGE))
_EPOCH = date(1970, 1, 1).toordinal()


def ages_in_days(table: pa.Table, as_of: date) -> Floats:
    """Days from first submission (UTC) to `as_of`, negative in the future, NaN if unknown."""
    return as_of.toordinal() - published_days(table)


def published_days(table: pa.Table) -> Floats:
    """Proleptic ordinal (`date.toordinal`) of the day of first submission in UTC, NaN if unknown."""
    days = table.column("published").cast(pa.timestamp("us", tz="UTC")).cast(pa.date32()).cast(pa.int32())
    return days.cast(pa.float64()).fill_null(float("nan")).to_numpy() + _EPOCH


def has_code(table: pa.Table) -> Bools:
    """Whether code can be had: in a known repository, or by way of a project page."""
    repository = has_repository(table)
    return repository | has_project_page(table, among=~repository)


def has_repository(table: pa.Table) -> Bools:
    """Whether an address of code is known; a data set's does not count."""
    urls = table.column("github_url").fill_null("")
    data: Bools = pc.match_substring_regex(urls, DATA_SET, ignore_case=True).to_numpy()
    return pc.not_equal(urls, "").to_numpy() & ~data


def has_project_page(table: pa.Table, *, among: Bools, texts: IndexedTexts | None = None) -> Bools:
    """Whether comment or abstract name a project page, of the papers `among`; the few that may are read one by one.

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
    """Whether each paper's id is one of these."""
    wanted = pa.array(list(paper_ids), type=pa.string())
    found: Bools = pc.is_in(table.column("paper_id"), value_set=wanted).to_numpy()
    return found
