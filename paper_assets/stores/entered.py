"""Export everything that people entered as JSON Lines, and merge such an export into a home.

One file for each subject, one line for each row, and `about.json` with the version of the tables. Merging is idempotent
and keeps what is there: two homes that import each other's export end with the same rows. Exported are the JSON files
of profiles, ratings (the shelf is made of them), seen and forgotten papers, kept answers, and decisions on
rewrites with the rewrites that they decide. Papers, lists and settings are not; a backup has them.

To export another table, add it to `_ENTERED`; its `keys` say which rows are the same.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import InvalidInput, PaperAssetsError, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.paper_id import split_paper_id
from paper_assets.profile import PROFILE_NAME
from paper_assets.small_files import is_present, make_private_folder, parse_json, read_json, read_small, write_file
from paper_assets.stores.feedback import RATING_VALUES, WITHDRAWN
from paper_assets.stores.migrations.upgrade import MIGRATIONS
from paper_assets.stores.warehouse import Warehouse, read_time, stored_time, value_of

ABOUT = "about.json"
_PROFILES = "profiles.jsonl"
_MOST_BYTES = 500_000_000  # of a file: a quarter of a million ratings with abstracts
_DEADLINE = 10.0  # seconds to wait for an editor of profiles
_UNITED = ("read_papers.json", "questions.json")  # lists: what either home has stays


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entered:
    """A table that is exported: its file, the columns by which two rows are the same, and how rows are added.

    `rows` selects what is exported where that is not the whole table. `add` inserts `new`, the rows that are not there.
    """

    table: str
    file: str
    rows: str
    add: str
    keys: tuple[str, ...]
    json: tuple[str, ...] = ()  # columns that hold JSON


_DECIDED = "where item in (select item from rewrite_decisions)"
_ENTERED = (
    _Entered(
        table="ratings",
        file="ratings.jsonl",
        rows="select * exclude (place) from ratings order by place",
        # All places again, in the order of time: the last rating of a paper counts, whichever home it was given in.
        add="""
            create temp table merged as
            select *
            from (select * exclude (place), place as before from ratings)
            union all by name
            select *, null as before from new;
            insert into ratings by name
            select
                * exclude (before),
                row_number() over (order by rated_at, before nulls last, paper_id, rating)
                + (select coalesce(max(place), 0) from ratings) as place
            from merged;
            delete from ratings where place <= (select coalesce(max(before), 0) from merged);
            drop table merged
        """,
        keys=("profile", "paper_id", "rating", "rated_at"),
    ),
    _Entered(
        table="forgotten",
        file="forgotten.jsonl",
        rows="from forgotten order by all",
        add="insert into forgotten by name from new",
        keys=("profile", "kind", "name"),
    ),
    _Entered(
        table="seen_papers",
        file="seen.jsonl",
        rows="from seen_papers order by all",
        add="insert into seen_papers by name from new",
        keys=("profile", "paper_id"),
    ),
    _Entered(
        table="kept_answers",
        file="answers.jsonl",
        rows="select * exclude (number) from kept_answers order by number",
        add="""
            insert into kept_answers by name
            select
                *,
                row_number() over (order by asked_at, question)
                + (select coalesce(max(number), 0) from kept_answers) as number
            from new
        """,
        keys=("question", "asked_at", "options", "answer"),
        json=("options", "answer"),
    ),
    # A rewrite that is here already keeps its attempts; a decision counts for the text that was decided on.
    _Entered(
        table="rewrite_items",
        file="rewrites.jsonl",
        rows=f"from rewrite_items {_DECIDED} order by item",
        add="insert into rewrite_items by name from new",
        keys=("item",),
    ),
    _Entered(
        table="rewrite_attempts",
        file="attempts.jsonl",
        rows=f"from rewrite_attempts {_DECIDED} order by item, attempt",
        add="""
            insert into rewrite_attempts by name
            from new
            where item not in (select item from rewrite_attempts)
            and item in (select item from rewrite_items)
        """,
        keys=("item", "attempt"),
    ),
    _Entered(
        table="rewrite_decisions",
        file="decisions.jsonl",
        rows="""
            select decisions.* exclude (place), text
            from rewrite_decisions as decisions
            join rewrite_attempts using (item, attempt)
            order by place
        """,
        add="""
            insert into rewrite_decisions by name
            select
                new.* exclude (text),
                row_number() over (order by decided_at)
                + (select coalesce(max(place), 0) from rewrite_decisions) as place
            from new
            semi join rewrite_attempts using (item, attempt, text)
        """,
        keys=("item", "attempt"),
    ),
    _Entered(
        table="accepted_claims",
        file="claims.jsonl",
        rows="from accepted_claims order by all",
        add="insert into accepted_claims by name from new",
        keys=("paper_id", "claim"),
    ),
)
ENTERED_TABLES = tuple(each.table for each in _ENTERED)
_VALUES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("ratings", "rating"): (*RATING_VALUES, WITHDRAWN),
    ("ratings", "given_in"): ("page", "command line", "mcp", "import"),
    ("forgotten", "kind"): ("word", "paper"),
    ("rewrite_decisions", "decision"): ("accept", "retry"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """How many rows an import added to each file's subject, and what a person must know about profiles."""

    added: Mapping[str, int]
    notes: tuple[str, ...] = ()


def export_entered(warehouse: Warehouse, profiles_dir: Path, folder: Path) -> dict[str, int]:
    """Write everything that people entered into a new or empty folder; return the number of rows by file.

    Raises InvalidInput if the folder holds something, StoreBusy, StoreUnwritable, StoreError.
    """
    written = {}
    try:
        if is_present(folder) and (not folder.is_dir() or any(folder.iterdir())):
            raise InvalidInput(f"{folder} is not an empty folder; name a new one")
        make_private_folder(folder)
        files = list(_profile_rows(profiles_dir))
        written[_PROFILES] = _write(folder / _PROFILES, files)
        with warehouse.reading() as connection:
            for entered in _ENTERED:
                rows = [
                    {name: json.loads(value) if name in entered.json else _plain(value) for name, value in row.items()}
                    for row in connection.sql(entered.rows).to_arrow_table().to_pylist()
                ]
                written[entered.file] = _write(folder / entered.file, rows)
        # Last: a folder without it is not a whole export.
        write_file(folder / ABOUT, json.dumps({"paper_assets": "export", "version": MIGRATIONS[-1].number}) + "\n")
    except OSError as fault:
        raise StoreUnwritable(f"{fault.filename or folder} cannot be written: {fault.strerror}") from None
    return written


def import_entered(warehouse: Warehouse, home: Path, profiles_dir: Path, folder: Path, *, aside: Path) -> Merged:
    """Merge an export into this home, all of its rows or none; return what was added.

    Also the files of `ratings export`, of programs from before the first release. `aside` receives files of profiles
    that a newer edit replaces. Raises InvalidInput naming file and line, StoreBusy, StoreUnwritable, StoreError.
    """
    schemas = _schemas(warehouse)
    if is_present(folder / ABOUT):
        _check_version(folder / ABOUT)
        rows = {
            each.table: [_row(found, place, each, schemas[each.table]) for place, found in _lines(folder / each.file)]
            for each in _ENTERED
        }
        profiles = list(_lines(folder / _PROFILES))
    else:
        rows, profiles = _old_exports(folder, schemas), []
    checked = [_profile_file(record, place) for place, record in profiles]
    notes, files = _merge_profiles(checked, home, profiles_dir, aside)
    tables = {table: pa.Table.from_pylist(found, schemas[table]) for table, found in rows.items()}
    return Merged(added={"profiles": files, **_insert_all(warehouse, tables)}, notes=tuple(notes))


def add_entered(warehouse: Warehouse, other: Warehouse) -> dict[str, int]:
    """Add what people entered in another warehouse and this one lacks; return the rows added by subject.

    Raises StoreBusy, StoreUnwritable, StoreError.
    """
    with other.reading() as connection:
        tables = {each.table: connection.sql(each.rows).to_arrow_table() for each in _ENTERED}
    return _insert_all(warehouse, tables)


def _insert_all(warehouse: Warehouse, tables: Mapping[str, pa.Table]) -> dict[str, int]:
    with warehouse.writing() as connection:
        return {each.file.removesuffix(".jsonl"): _insert(connection, each, tables[each.table]) for each in _ENTERED}


def _insert(connection: DuckDBPyConnection, entered: _Entered, rows: pa.Table) -> int:
    """Add the rows that are not there; return by how many rows the table grew."""
    keys = " and ".join(f"stored.{key} is not distinct from incoming.{key}" for key in entered.keys)
    connection.register("incoming", rows.append_column("line", pa.array(range(len(rows)), pa.int64())))
    connection.execute(
        f"""
        create or replace temp table new as
        select * exclude (line)
        from incoming
        where not exists (from {entered.table} as stored where {keys})
        qualify row_number() over (partition by {", ".join(entered.keys)} order by line) = 1
        order by line
        """  # noqa: S608  # names of ours
    )
    count = f"select count(*) from {entered.table}"  # noqa: S608
    [(before,)] = connection.execute(count).fetchall()
    new = value_of(connection, "select count(*) from new")
    for statement in entered.add.split(";") if new else ():  # an import repeated changes nothing, places neither
        connection.execute(statement)
    [(after,)] = connection.execute(count).fetchall()
    connection.execute("drop table new")
    connection.unregister("incoming")
    return int(after - before)


def _write(file: Path, rows: Iterable[Mapping[str, Any]]) -> int:
    lines = [json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n" for row in rows]
    write_file(file, iter(lines))
    return len(lines)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return read_time(value).isoformat()
    return value.isoformat() if isinstance(value, date) else value


def _schemas(warehouse: Warehouse) -> dict[str, pa.Schema]:
    """Return the columns of each exported table."""
    with warehouse.reading() as connection:
        tables = {each.table: connection.sql(each.rows).to_arrow_table().schema for each in _ENTERED}
        nulls = connection.execute("select table_name, column_name, is_nullable from duckdb_columns()").fetchall()
    nullable = {(table, column): bool(can_be) for table, column, can_be in nulls}
    return {
        table: pa.schema([field.with_nullable(nullable.get((table, field.name), False)) for field in schema])
        for table, schema in tables.items()
    }


def _check_version(about: Path) -> None:
    record = read_json(about)
    version = record.get("version") if isinstance(record, dict) else None
    if not isinstance(version, int):
        raise InvalidInput(f"{about} is not from `paper-assets export`: it names no version")
    if version > MIGRATIONS[-1].number:
        raise InvalidInput(f"{about.parent} was exported by a newer paper_assets; update this one, then import it")


def _lines(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the records of a file, each with the file and line that a message names. Raises InvalidInput."""
    if not is_present(file):  # of a version that did not export it
        return
    for number, line in enumerate(read_small(file, most_bytes=_MOST_BYTES).splitlines(), start=1):
        if line.strip():
            place = f"{file}, line {number}"
            record = parse_json(line, source=place)
            if not isinstance(record, dict):
                raise InvalidInput(f"{place}: expected an object")
            yield place, record


def _row(record: Mapping[str, Any], place: str, entered: _Entered, schema: pa.Schema) -> dict[str, Any]:
    """Return a record as a row of its table. Raises InvalidInput naming the place and the column."""
    row = {}
    for field in schema:
        value = record.get(field.name)
        try:
            if field.name in entered.json:
                value = json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else None
            elif field.name == "paper_id" and isinstance(value, str):
                value = f"{split_paper_id(value)[0]}"
            row[field.name] = _stored(value, field.type)
        except (TypeError, ValueError, OverflowError, pa.ArrowException, PaperAssetsError):
            raise InvalidInput(f"{place}: {field.name} cannot be {record.get(field.name)!r:.60}") from None
        if row[field.name] is None and not field.nullable:
            raise InvalidInput(f"{place}: {field.name} is missing")
        allowed = _VALUES.get((entered.table, field.name))
        if allowed and row[field.name] not in allowed:
            raise InvalidInput(f"{place}: {field.name} is one of {', '.join(allowed)}, got {row[field.name]!r:.60}")
        if field.name == "profile" and not PROFILE_NAME.fullmatch(row[field.name]):
            raise InvalidInput(f"{place}: {row[field.name]!r:.60} cannot be the name of a profile")
    return row


def _stored(value: Any, kind: pa.DataType) -> Any:
    """Return a JSON value as it is stored in a column of this type. Raises TypeError, ValueError, ArrowException."""
    if value is None:
        return None
    if pa.types.is_timestamp(kind):
        moment = datetime.fromisoformat(value)
        return stored_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    if pa.types.is_date(kind):
        return date.fromisoformat(value)
    return pa.scalar(value, kind).as_py()


def _old_exports(folder: Path, schemas: Mapping[str, pa.Schema]) -> dict[str, list[dict[str, Any]]]:
    """Read the files that `ratings export` of a program from before the first release wrote. Raises InvalidInput."""
    rows: dict[str, list[dict[str, Any]]] = {each.table: [] for each in _ENTERED}
    by_table = {each.table: each for each in _ENTERED}
    files = sorted(folder.glob("*.json"))
    for file in files:
        record = read_json(file, most_bytes=_MOST_BYTES)
        if not isinstance(record, dict) or not isinstance(record.get("ratings"), list):
            raise InvalidInput(f"{file} is not from `paper-assets export`, nor from `ratings export`")
        profile, forgotten = record.get("profile"), record.get("forgotten") or {}
        found = {
            "ratings": [{**each, "rating": each.get("rating") or WITHDRAWN} for each in record["ratings"]],
            "forgotten": [
                {"kind": kind, "name": name, "forgotten_at": "2026-01-01T00:00:00+00:00"}
                for kind, names in (("word", forgotten.get("words")), ("paper", forgotten.get("papers")))
                for name in names or ()
            ],
        }
        for table, records in found.items():
            for each in records:
                rows[table].append(_row({**each, "profile": profile}, f"{file}", by_table[table], schemas[table]))
    if not files:
        raise InvalidInput(f"{folder} is not an export: it lacks {ABOUT}; `paper-assets export FOLDER` writes one")
    return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProfileFile:
    """A JSON file of a profile: its content, or its text where it is not valid JSON, and when it was last edited."""

    profile: str
    file: str
    text: str
    edited: datetime


def _profile_rows(profiles_dir: Path) -> Iterator[dict[str, Any]]:
    for file in sorted(profiles_dir.glob("*/*.json")) if profiles_dir.is_dir() else ():
        if file.name.startswith(".") or not PROFILE_NAME.fullmatch(file.parent.name) or not file.is_file():
            continue
        text = read_small(file).decode("utf-8-sig", "replace")
        edited = datetime.fromtimestamp(file.stat().st_mtime, UTC).isoformat()
        row = {"profile": file.parent.name, "file": file.name, "edited_at": edited}
        try:
            yield {**row, "content": json.loads(text)}
        except ValueError:  # a broken file is not lost either
            yield {**row, "text": text}


def _profile_file(record: Mapping[str, Any], place: str) -> _ProfileFile:
    """Check a line of the profiles. Raises InvalidInput."""
    profile, file = record.get("profile"), record.get("file")
    if not isinstance(profile, str) or not PROFILE_NAME.fullmatch(profile):
        raise InvalidInput(f"{place}: {profile!r:.60} cannot be the name of a profile")
    if not isinstance(file, str) or Path(file).name != file or file.startswith(".") or not file.endswith(".json"):
        raise InvalidInput(f"{place}: {file!r:.60} cannot be a file of a profile")
    text = record.get("text")
    if not isinstance(text, str):
        text = json.dumps(record.get("content"), ensure_ascii=False, indent=2) + "\n"
    try:
        edited = datetime.fromisoformat(record["edited_at"]).astimezone(UTC)
    except (KeyError, TypeError, ValueError):
        raise InvalidInput(f"{place}: edited_at is not a time") from None
    return _ProfileFile(profile=profile, file=file, text=text, edited=edited)


def _merge_profiles(
    files: Sequence[_ProfileFile], home: Path, profiles_dir: Path, aside: Path
) -> tuple[list[str], int]:
    """Write what is missing or newer; return notes on what differed, and the number of written files."""
    notes, written = list[str](), 0
    try:
        make_private_folder(home)
        with store_lock(home / "profiles-edited", deadline=_DEADLINE):
            for each in files:
                file = profiles_dir / each.profile / each.file
                before = file.read_text("utf-8", "replace") if file.is_file() else None
                if before is not None and each.file in _UNITED:
                    each = replace(each, text=_united(before, each.text))
                if before is not None and _same(before, each.text):
                    continue
                name = f"{each.profile}/{each.file}"
                if before is not None and each.file not in _UNITED:
                    here = datetime.fromtimestamp(file.stat().st_mtime, UTC)
                    if here >= each.edited:
                        notes.append(f"{name} differs and was edited later here: it stays")
                        continue
                    make_private_folder((aside / name).parent)
                    write_file(aside / name, before)
                    notes.append(f"{name} was edited later there: it is taken over, the one from here is in {aside}")
                make_private_folder(file.parent)
                write_file(file, each.text)
                os.utime(file, (each.edited.timestamp(), each.edited.timestamp()))
                written += 1
    except OSError as fault:
        raise StoreUnwritable(f"{fault.filename or profiles_dir} cannot be written: {fault.strerror}") from None
    return notes, written


def _same(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return one == other


def _united(here: str, there: str) -> str:
    """Return the list of both; what is here first, unless either is not a list."""
    read: Callable[[str], Any] = json.loads
    try:
        ours, theirs = read(here), read(there)
    except ValueError:
        return here
    if not isinstance(ours, list) or not isinstance(theirs, list):
        return here
    return json.dumps([*ours, *(each for each in theirs if each not in ours)], ensure_ascii=False, indent=2) + "\n"
