"""Candidates, one set per day and profile, replaced as a whole: every paper of the window, kept or removed and why.

`inputs` is the caller's fingerprint of everything a set was computed from: equal inputs, nothing to compute.
"""

from datetime import date
from functools import cache

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import NotComputed
from paper_assets.stores.warehouse import Warehouse, value_of


@cache
def candidate_schema() -> pa.Schema:
    """Columns of candidates: every paper of the window, passed or removed with its reason."""
    return pa.schema(
        [
            ("paper_id", pa.string()),
            ("title", pa.string()),
            ("passed", pa.bool_()),
            ("reason", pa.string()),
            ("phase", pa.int32()),
        ]
    )


def replace_candidates(warehouse: Warehouse, day: date, profile: str, rows: pa.Table, *, inputs: str) -> None:
    """Keep `rows` (columns of `candidate_schema()`) as the candidates of the day and profile."""
    incoming = rows.select(candidate_schema().names).cast(candidate_schema())
    key = {"day": day, "profile": profile}
    with warehouse.writing() as connection:
        connection.execute("delete from candidates where day = $day and profile = $profile", key)
        connection.execute("delete from candidate_sets where day = $day and profile = $profile", key)
        connection.execute("insert into candidate_sets values ($day, $profile, $inputs)", {**key, "inputs": inputs})
        connection.register("incoming", incoming)
        connection.execute(
            "insert into candidates by name select $day as day, $profile as profile, * from incoming", key
        )


def candidates(warehouse: Warehouse, day: date, profile: str) -> pa.Table:
    """The candidates of the day and profile, ordered by paper id. Raises NotComputed."""
    with warehouse.reading() as connection:
        if _inputs_of_candidates(connection, day, profile) is None:
            raise NotComputed(f"no candidates for profile {profile!r} on {day}; run the day first")
        found = connection.sql(
            """
            select * exclude (day, profile)
            from candidates
            where day = $day and profile = $profile
            order by paper_id
            """,
            params={"day": day, "profile": profile},
        )
        return found.to_arrow_table().cast(candidate_schema())


def candidates_inputs(warehouse: Warehouse, day: date, profile: str) -> str | None:
    """Fingerprint of what the stored candidates were computed from; None if there are none."""
    with warehouse.reading() as connection:
        return _inputs_of_candidates(connection, day, profile)


def _inputs_of_candidates(connection: DuckDBPyConnection, day: date, profile: str) -> str | None:
    inputs: str | None = value_of(
        connection, "select inputs from candidate_sets where day = ? and profile = ?", [day, profile]
    )
    return inputs
