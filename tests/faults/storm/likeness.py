"""Compare two homes: everything stored, byte by byte, except times and random names.

The homes have the same path, one after the other, so that stored paths are equal.
"""

import re
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb

from tests.chroma_folder import client_of, entries
from tests.desk import Desk

# The number of a file among those of one second: whether two fall into one is chance.
_NUMBER = re.compile(r"(?<=_ranked)_\d+(?=\.json)")
# Today's times, and drawn ids.
_DRAWN = re.compile(
    r"\d{4}-\d{2}-\d{2}[T_ ]\d{2}:?\d{2}:?\d{2}(?:\.\d+)?(?:\+00:00|Z)?(?=_ranked|\"|<|\s|$|')|"
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)
# An attempt whose answers were paid for and kept before the kill costs nothing when it is made.
_FOLLOWS = ("texts", "postings", "indexed", "indexed_collections")  # from the others, in an order that may differ
# A digest's inputs hold the time of its ranking.
_LEFT_OUT = {"rewrite_attempts": "exclude (input_tokens, output_tokens)", "digest_sets": "exclude (inputs)"}


def likeness(desk: Desk) -> dict[str, Any]:
    """Return tables row by row, files byte by byte, Chroma's vectors, what Dagster knows, and leftover files."""
    home, dagster_home, today = desk.folder / "data", desk.folder / "dagster_home", f"{datetime.now(UTC):%Y-%m-%d}"
    return {
        **_tables(home / "warehouse.duckdb", today),
        **_files(home, today),
        **_vectors(home / "chroma", today),
        **heard(dagster_home),
    }


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return what is in one and not in the other, a line each: `lost` from one, or `more` in the other.

    Of two that begin alike, as files of one name do, what is shown begins a little before they part.
    """
    found = []
    for name in sorted(one.keys() | other.keys()):
        had, has = Counter(one.get(name, ())), Counter(other.get(name, ()))
        lost, more = sorted((had - has).elements()), sorted((has - had).elements())
        found += [f"lost {name}: {_from_where(each, more)}" for each in lost]
        found += [f"more {name}: {_from_where(each, lost)}" for each in more]
    return found


def _from_where(text: str, others: list[str]) -> str:
    """At most 200 characters of a text, from where it parts from the one that it is most like."""
    parts = max((_alike(text, other) for other in others), default=0)
    beginning = text.split(" ", 1)[0]
    return text[:200] if parts < 200 else f"{beginning} … {text[parts - 60 : parts + 140]}"


def _alike(text: str, other: str) -> int:
    """How many characters two texts begin with together."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((at for at, (one, its) in pairs if one != its), min(len(text), len(other)))


def _plain(text: str, today: str) -> str:
    """Without the times of today and of the day before, for a storm may last over midnight, and without drawn ids;
    invented papers are of other days.
    """
    now = (today, f"{date.fromisoformat(today) - timedelta(days=1)}")
    shown = _DRAWN.sub(lambda found: "…" if found[0][:10] in now or "-" not in found[0][:5] else found[0], text)
    return _NUMBER.sub("", shown)


def _tables(file: Path, today: str) -> dict[str, list[str]]:
    if not file.exists():
        return {}
    try:
        return _rows(file, today)
    except duckdb.Error as fault:
        return {"warehouse": [f"cannot be read: {fault}"]}


def _rows(file: Path, today: str) -> dict[str, list[str]]:
    found = {}
    with duckdb.connect(str(file), read_only=True) as connection:
        for (name,) in connection.execute("select table_name from duckdb_tables() order by all").fetchall():
            if name in _FOLLOWS:
                continue
            rows = connection.execute(f'select * {_LEFT_OUT.get(name, "")} from "{name}"').fetchall()
            found[f"table {name}"] = [_plain(repr([_worded(value) for value in row]), today) for row in rows]
        uncounted = connection.execute("select text_hash from retrievable anti join texts using (text_hash)").fetchall()
        found["texts without words"] = [text_hash for (text_hash,) in uncounted]
    return found


def _worded(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def _files(home: Path, today: str) -> dict[str, list[str]]:
    files = [each for each in sorted(home.rglob("*")) if each.is_file() and "chroma" not in each.parts[len(home.parts)]]
    shown = [each for each in files if each.name not in ("warehouse.duckdb", "warehouse.duckdb.wal")]
    return {
        "file": sorted(  # once: a list that was ranked again has another file of its own (G15)
            {
                f"{_plain(str(each.relative_to(home)), today)} {_plain(each.read_text('utf-8', 'replace'), today)}"
                for each in shown
                if "output" in each.parts and not each.name.endswith(".lock")
            }
        ),
        "left over": [
            str(each.relative_to(home))
            for each in shown
            if ("output" not in each.parts or each.name.startswith("."))
            and not each.name.endswith(".lock")
            and not re.fullmatch(r"warehouse\.duckdb\.before-\d{4}", each.name)
            and "replaced" not in each.parts  # what every start of `restore` put aside
        ],
    }


def _vectors(folder: Path, today: str) -> dict[str, list[str]]:
    if not (folder / "chroma.sqlite3").exists():
        return {}
    found = {"mark": [f"{folder.with_name('chroma.unfinished').exists()}"]}
    client = client_of(folder)
    names = [collection.name for collection in client.list_collections()]
    client.close()
    for name in names:
        found[f"vectors {name}"] = [
            _plain(f"{each} {[round(float(x), 5) for x in entry.vector[:8]]} {sorted(entry.metadata.items())}", today)
            for each, entry in entries(folder, name).items()
        ]
    return found


def heard(dagster_home: Path) -> dict[str, list[str]]:
    """The partitions that Dagster believes made, with their last data version; runs under way; slots held."""
    index, runs = dagster_home / "history" / "runs" / "index.db", dagster_home / "history" / "runs.db"
    if not index.exists():
        return {}
    with closing(sqlite3.connect(index)) as connection:
        heard = connection.execute(
            """
            select latest.asset_key, latest.partition, value from asset_event_tags
            join (
                select max(id) as id, asset_key, partition from event_logs
                where dagster_event_type = 'ASSET_MATERIALIZATION' group by asset_key, partition
            ) as latest on latest.id = asset_event_tags.event_id
            where key = 'dagster/data_version'
            """
        ).fetchall()
        slots = connection.execute("select run_id from concurrency_slots where run_id is not null").fetchall()
    with closing(sqlite3.connect(runs)) as connection:
        going = connection.execute("select count(*) from runs where status in ('STARTED', 'STARTING')").fetchall()
    return {
        # A page contains the time of its ranking, and so its version depends on it.
        "heard by Dagster": [str(row[: 2 if "reading_digests" in row[0] else 3]) for row in heard],
        "runs under way": [str(going)],
        "slots": list(map(str, slots)),
    }
