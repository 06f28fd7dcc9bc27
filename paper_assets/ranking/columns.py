"""What the columns of a table of papers say, as arrays: age, code, membership."""

from collections.abc import Iterable
from datetime import date
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_EPOCH = date(1970, 1, 1).toordinal()


def ages_in_days(table: "pa.Table", as_of: date) -> Floats:
    """Days from first submission (UTC) to `as_of`, negative in the future, NaN if unknown."""
    return as_of.toordinal() - published_days(table)


def published_days(table: "pa.Table") -> Floats:
    """Proleptic ordinal (`date.toordinal`) of the day of first submission in UTC, NaN if unknown."""
    import pyarrow as pa

    days = table.column("published").cast(pa.timestamp("us", tz="UTC")).cast(pa.date32()).cast(pa.int32())
    return days.cast(pa.float64()).fill_null(float("nan")).to_numpy() + _EPOCH


def has_code(table: "pa.Table") -> Bools:
    """Whether an address of code is known."""
    import pyarrow.compute as pc

    known: Bools = pc.not_equal(table.column("github_url").fill_null(""), "").to_numpy()
    return known


def among(table: "pa.Table", paper_ids: Iterable[str]) -> Bools:
    """Whether each paper's id is one of these."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(list(paper_ids), type=pa.string())
    found: Bools = pc.is_in(table.column("paper_id"), value_set=wanted).to_numpy()
    return found
