"""Store versions of profiles, edit the files of a profile, and manage the people of a lab.

Versions: every content of a profile that something was computed from, by hash; the newest is the last valid one (A1).

Files: the files in a profile's folder are written completely or not at all, and never over another program's edit.

People: one file lists whose token opens which profiles (SPEC X4). A token is shown once, when it is created; the file
stores its hash. The file is read for each request, so that a removed person loses access at the next request.
"""

import hmac
import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from duckdb import DuckDBPyConnection

from paper_assets.errors import InvalidInput, InvalidProfile, StoreUnwritable
from paper_assets.locks import store_lock
from paper_assets.profile import PROFILE_NAME, Profile, profile_from_mapping, profile_to_mapping
from paper_assets.small_files import is_present, make_private_folder, read_json, write_file
from paper_assets.stores.warehouse import Warehouse
from paper_assets.stores.word_index import forget_unused_texts


def keep_profile(warehouse: Warehouse, profile: Profile) -> None:
    """Store the profile as the newest under its name; nothing is written if it already is."""
    newest = last_good_profile(warehouse, profile.name)
    if newest and newest.content_hash == profile.content_hash:
        return
    key = {"profile": profile.name, "hash": profile.content_hash}
    with warehouse.writing() as connection:
        connection.execute("delete from profile_versions where profile = $profile and hash = $hash", key)
        connection.execute(
            """
            insert into profile_versions
            select $profile, $hash, $content, coalesce(max(place), 0) + 1
            from profile_versions
            """,
            {**key, "content": json.dumps(profile_to_mapping(profile), ensure_ascii=False)},
        )


def last_good_profile(warehouse: Warehouse, name: str) -> Profile | None:
    """Return the content from which the profile's newest results were computed; None if there is none."""
    return _read_version(name, warehouse.once_each("last_good_profile", name, _newest_contents))


def _newest_contents(warehouse: Warehouse, names: Sequence[str]) -> dict[str, str]:
    query = """
        select profile, arg_max(content, place) from profile_versions where list_contains($1, profile) group by profile
    """
    return dict(warehouse.rows(query, [list(names)]))


def profile_version(warehouse: Warehouse, name: str, content_hash: str) -> Profile | None:
    """Return the content identified by a ranking's `profile_hash`; None if it is not stored."""
    query, key = "select content from profile_versions where profile = ? and hash = ?", (name, content_hash)
    return warehouse.once(("profile", *key), lambda: _read_version(name, warehouse.value(query, [*key])))


def _read_version(name: str, content: str | None) -> Profile | None:
    return profile_from_mapping(name, json.loads(content)) if content else None


_DEADLINE = 10.0  # seconds to wait for another editor; writing takes milliseconds


class ProfileEdited(InvalidProfile):
    """Report that the file has changed since it was read: saving would overwrite another edit."""


def file_version(file: Path) -> str:
    """Return a fingerprint of the file's content, also if the file does not exist. Raises InvalidProfile."""
    try:
        return sha256(file.read_bytes()).hexdigest()[:16]
    except FileNotFoundError:
        return "none"
    except OSError as fault:
        raise InvalidProfile(f"{file} cannot be read: {fault.strerror}") from None


def write_json(file: Path, record: Mapping[str, Any] | Sequence[Any], *, version: str, turns: Path) -> None:
    """Replace the file in one step if it still has `version`; `turns` names the lock of the editors.

    Raises ProfileEdited, StoreBusy, StoreUnwritable.
    """
    text = json.dumps(record, ensure_ascii=False, indent=2) + "\n"
    try:
        with store_lock(turns, deadline=_DEADLINE):
            if file_version(file) != version:
                raise ProfileEdited(f"{file} was edited by another program in the meantime; nothing was saved")
            write_file(file, text)
    except OSError as fault:
        raise StoreUnwritable(f"{file} cannot be written: {fault.strerror}; check permissions and free space") from None


_LONGEST_NAME = 60
_OTHERS = 0o077
_HASH_LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Represent a person with a token, of which only the hash is stored, and their profiles."""

    name: str
    profiles: frozenset[str]
    token_sha256: str


def people_file(home: Path) -> Path:
    """Return the path of the list of people of this home."""
    return home / "people.json"


def read_people(file: Path) -> tuple[Person, ...]:
    """Read the list of people; empty without a file. Raises InvalidInput if it is invalid or readable by others."""
    if not is_present(file):
        return ()
    record = read_json(file)
    try:
        if file.stat().st_mode & _OTHERS:
            raise InvalidInput(f"{file} can be read by other users; run `chmod 600 {file}`")
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be read: {fault.strerror}") from None
    entries = record.get("people") if isinstance(record, dict) else None
    if not isinstance(entries, list):
        raise InvalidInput(f"{file}: expected an object with the list people")
    people = tuple(_person(entry, f"{file}: person {number}") for number, entry in enumerate(entries, start=1))
    if len({person.name for person in people}) < len(people):
        raise InvalidInput(f"{file}: two people have the same name")
    return people


def add_person(file: Path, name: str, profiles: Sequence[str]) -> str:
    """Add a person and return their token, which is not stored. Raises InvalidInput, StoreUnwritable."""
    if not PROFILE_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise InvalidInput(f"{name[:60]!r} cannot be a name: small letters, digits, - and _ only")
    if not profiles:
        raise InvalidInput(f"{name} needs a profile: --profile PROFILE")
    version, people = file_version(file), read_people(file)
    if name in {person.name for person in people}:
        raise InvalidInput(f"{name} already exists; `paper-assets lab remove {name}` revokes the old token first")
    token = secrets.token_urlsafe(32)
    _write(file, [*people, Person(name=name, profiles=frozenset(profiles), token_sha256=token_hash(token))], version)
    return token


def remove_person(file: Path, name: str) -> None:
    """Revoke a person's token. Raises InvalidInput for an unknown name, StoreUnwritable."""
    version, people = file_version(file), read_people(file)
    left = [person for person in people if person.name != name]
    if len(left) == len(people):
        known = ", ".join(person.name for person in people)
        raise InvalidInput(f"no person is named {name[:60]!r}; people: {known or 'none yet'}")
    _write(file, left, version)


def forget_profile_of_people(file: Path, profile: str) -> None:
    """Take a profile away from everyone; who has none left loses access. Raises InvalidInput, StoreUnwritable."""
    version, people = file_version(file), read_people(file)
    if any(profile in person.profiles for person in people):
        left = [replace(person, profiles=person.profiles - {profile}) for person in people]
        _write(file, [person for person in left if person.profiles], version)


def same_person(people: Sequence[Person], profile: str, other: str) -> bool:
    """Return whether everyone with access to a profile has access to the other one too."""
    return all(other in person.profiles for person in people if profile in person.profiles)


def person_with(people: Sequence[Person], token: str) -> Person | None:
    """Find the owner of a token; takes the same time for wrong and right tokens."""
    given, found = token_hash(token), None
    for person in people:
        if hmac.compare_digest(person.token_sha256, given):
            found = person
    return found


def token_hash(token: str) -> str:
    """Return the hash that is stored of a token; tokens are long and random, so that a plain hash is enough."""
    return sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def _person(entry: object, place: str) -> Person:
    if not isinstance(entry, dict) or set(entry) != {"name", "profiles", "token_sha256"}:
        raise InvalidInput(f"{place}: expected name, profiles and token_sha256, and nothing else")
    name, profiles, kept = entry["name"], entry["profiles"], entry["token_sha256"]
    if not isinstance(name, str) or not PROFILE_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise InvalidInput(f"{place}: name must be small letters, digits, - and _")
    if not isinstance(profiles, list) or not all(isinstance(each, str) for each in profiles):
        raise InvalidInput(f"{place}: profiles must be a list of names")
    if not isinstance(kept, str) or len(kept) != _HASH_LENGTH or not kept.isascii():
        raise InvalidInput(f"{place}: token_sha256 must be {_HASH_LENGTH} hexadecimal digits")
    return Person(name=name, profiles=frozenset(profiles), token_sha256=kept.lower())


def _write(file: Path, people: Sequence[Person], version: str) -> None:
    record = {
        "people": [
            {"name": each.name, "profiles": sorted(each.profiles), "token_sha256": each.token_sha256} for each in people
        ]
    }
    try:
        make_private_folder(file.parent)
    except OSError as fault:
        raise StoreUnwritable(f"{file.parent} cannot be made: {fault.strerror}") from None
    write_json(file, record, version=version, turns=file.with_name("people-edited"))


def delete_stored_profile(warehouse: Warehouse, name: str, texts: Collection[str]) -> None:
    """Delete everything stored of a profile, and the answers of language models that repeat one of its `texts`.

    The database file is rewritten, because it would keep the bytes of deleted rows. Raises StoreBusy, StoreUnwritable.
    """
    if not is_present(warehouse.path):
        return
    with warehouse.writing() as connection:
        for table in _tables_of_profiles(connection):
            connection.execute(f'delete from "{table}" where profile = ?', [name])  # noqa: S608  # a name of ours
        connection.execute("delete from documents where owner = ?", [name])
        forget_unused_texts(connection)
        # Vectors of its interests and liked papers; those of other profiles' interests are computed again.
        connection.execute(
            """
            delete from embeddings
            where text_hash not in (select text_hash from retrievable union select text_hash from best_practices)
            """
        )
        connection.register("texts_of_profile", pa.table({"text": pa.array(sorted(texts), pa.string())}))
        connection.execute(
            """
            delete from llm_answers
            where exists (from texts_of_profile where contains(lower(answer), lower(text)))
            """
        )
    warehouse.rewrite()


def texts_of_one_profile(warehouse: Warehouse, name: str, texts: Collection[str], others: Collection[str]) -> set[str]:
    """Return the texts of a profile, stored versions included, that identify it.

    They occur in no text of `others`, in no other stored profile, and in no title or abstract of a stored paper:
    "agents" identifies no reader.
    """
    if not is_present(warehouse.path):
        return set(texts)
    with warehouse.reading() as connection:
        stored = connection.execute("select profile, content from profile_versions").fetchall()
        own = {text for owner, content in stored if owner == name for text in texts_within(json.loads(content))}
        elsewhere = [*others, *(content for owner, content in stored if owner != name)]
        for view, column in (("own_texts", sorted({*texts, *own})), ("other_texts", elsewhere)):
            connection.register(view, pa.table({"text": pa.array(column, pa.string())}))
        rows = connection.execute(
            """
            select text
            from own_texts as own
            where not exists (from other_texts as other where contains(lower(other.text), lower(own.text)))
            and not exists (
                from (select paper_id, lower(title || ' ' || abstract) as words from papers) as paper
                where contains(words, lower(own.text)) or paper_id = own.text
            )
            """
        ).fetchall()
    return {text for (text,) in rows}


def texts_within(value: object) -> Iterator[str]:
    """Yield a reader's texts in a JSON value, line by line: without its keys, options and texts of a few letters."""
    if isinstance(value, str):
        yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _SPECIFIC)
    elif isinstance(value, dict):
        for key, each in value.items():
            if key not in _OPTIONS:
                yield from texts_within(each)
    elif isinstance(value, list):
        for each in value:
            yield from texts_within(each)


_SPECIFIC = 4  # letters
_OPTIONS = ("constraints", "feed", "ranking", "rewriting")  # words of this program, such as "balanced", and categories


def _tables_of_profiles(connection: DuckDBPyConnection) -> list[str]:
    """Return the tables with a column `profile`."""
    rows = connection.execute(
        """
        select table_name
        from duckdb_columns()
        semi join duckdb_tables() using (database_name, table_name)
        where column_name = 'profile' and database_name = current_database()
        """
    ).fetchall()
    return [table for (table,) in rows]


def is_known_profile(warehouse: Warehouse, name: str) -> bool:
    """Return whether ratings or lists are stored under the name; a removed profile keeps its own."""
    if not is_present(warehouse.path):
        return False
    query = "select exists (from ranking_sets where profile = $name) or exists (from ratings where profile = $name)"
    return bool(warehouse.value(query, {"name": name}))
