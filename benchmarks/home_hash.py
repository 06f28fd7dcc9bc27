"""Hash the content of a home folder, part by part, to show that a change of the code has not changed behaviour.

    python -m benchmarks.home_hash HOME                # print the hash of each part
    python -m benchmarks.home_hash HOME OTHER          # compare two homes; exit code 1 if a part differs

Make both homes on the same machine from the same input, for example with `make demo` before and after the change: the
last bits of a vector depend on the processor, so hashes of two machines cannot be compared. Texts of the program
(warnings, notes, pages) and times are left out; ids, tags, numbers, vectors and the schema count. A renamed column or
key counts as the same (`_RENAMED`).
"""

import argparse
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

_TIMES = {"generated_at", "output_path", "made_at", "opened_at", "rated_at"}
_FINGERPRINTS = {"candidate_sets", "ranking_sets", "retrieval_sets", "profile_versions"}
# Columns and keys of homes made before a renaming, and their names today. A later renaming adds a line.
_RENAMED = {
    "lane": "nearest",
    "lane_places": "interest_places",
    "lane_probability": "interest_probability",
    "line": "threshold",
    "nudge": "preference_weight",
    "nudge_from": "preference_baseline",
}
_REMOVED = {"slack"}  # keys that nothing reads any more


def parts(home: Path) -> dict[str, str]:
    """Return a hash of the schema, the fingerprints of inputs, each table with rows, and the files of a home."""
    with duckdb.connect(home / "warehouse.duckdb", read_only=True) as warehouse:
        found = {"schema": _hash(_schema(warehouse)), "fingerprints": _hash(_fingerprints(warehouse))}
        for table in _tables(warehouse):
            if rows := _rows(warehouse, table):
                found[f"table {table}"] = _hash(rows)
    found["file names"] = _hash(sorted(_without_times(str(file.relative_to(home))) for file in _outputs(home)))
    for file in sorted((home / "output" / "rankings").rglob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        found[f"file {_without_times(str(file.relative_to(home)))}"] = _hash(without_texts(content))
    return found


def without_texts(value: Any) -> Any:
    """Return a JSON value without times and without strings that contain a space, which are texts for people."""
    if isinstance(value, dict):
        return {
            _RENAMED.get(key, key): without_texts(each) for key, each in value.items() if key not in _TIMES | _REMOVED
        }
    if isinstance(value, list):
        return [without_texts(each) for each in value]
    return None if isinstance(value, str) and " " in value else value


def _tables(warehouse: duckdb.DuckDBPyConnection) -> list[str]:
    query = "select table_name from information_schema.tables where table_type = 'BASE TABLE' order by table_name"
    return [name for (name,) in warehouse.execute(query).fetchall()]


def _schema(warehouse: duckdb.DuckDBPyConnection) -> list[Any]:
    columns = "select table_name, column_name, data_type from information_schema.columns"
    return sorted(
        (table, _RENAMED.get(name, name), kind) for table, name, kind in warehouse.execute(columns).fetchall()
    )


def _fingerprints(warehouse: duckdb.DuckDBPyConnection) -> list[Any]:
    present = [table for table in _tables(warehouse) if table in _FINGERPRINTS - {"profile_versions"}]
    return [
        (table, warehouse.execute(f"select day, profile, inputs from {table} order by all").fetchall())
        for table in present
    ]


def _rows(warehouse: duckdb.DuckDBPyConnection, table: str) -> list[Any]:
    """Return the rows of a table in a fixed order, numbers to the bit, JSON without its texts."""
    described = warehouse.execute(f'select * from "{table}"')
    names = [_RENAMED.get(column[0], column[0]) for column in described.description or ()]
    skipped = _TIMES | ({"inputs"} if table in _FINGERPRINTS else set())
    rows = [
        sorted((name, _exact(value)) for name, value in zip(names, row, strict=True) if name not in skipped)
        for row in described.fetchall()
    ]
    return sorted(rows, key=str)


def _exact(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, list | tuple) and value and isinstance(value[0], float):
        return hashlib.sha256(np.asarray(value, dtype=np.float64).tobytes()).hexdigest()
    if isinstance(value, str) and value[:1] in "{[":
        try:
            return json.dumps(without_texts(json.loads(value)), sort_keys=True)
        except ValueError:
            return value
    return str(value)


def _outputs(home: Path) -> Iterator[Path]:
    return (file for file in (home / "output").rglob("*") if file.is_file() and not file.name.startswith("."))


def _without_times(name: str) -> str:
    """Return a file name without the time of day in it: 2026-11-23_081223_ranked.json."""
    return re.sub(r"\d{4}-\d{2}-\d{2}_\d{6}", "TIME", name)


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()[:16]


def main() -> int:
    """Print the hashes of one home, or the parts in which two differ."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("home", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    options = parser.parse_args()
    first = parts(options.home)
    if options.other is None:
        print("\n".join(f"{digest}  {name}" for name, digest in first.items()))
        return 0
    second = parts(options.other)
    differing = 0
    for name in sorted(first.keys() | second.keys()):
        same = first.get(name) == second.get(name)
        differing += not same
        print(f"{'same   ' if same else 'DIFFERS'}  {first.get(name, '-'):16}  {second.get(name, '-'):16}  {name}")
    return int(bool(differing))


if __name__ == "__main__":
    raise SystemExit(main())
