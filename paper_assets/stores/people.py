"""The people of a lab: one file that says whose token opens which profiles (SPEC X4).

A token is shown once, when it is made; the file keeps its hash. Who stands no longer in the file has no way in from the
next request on, for it is read anew each time.
"""

import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from paper_assets.errors import InvalidInput, StoreUnwritable
from paper_assets.profile import PROFILE_NAME
from paper_assets.small_files import lies_there, read_json
from paper_assets.stores.private import make_private_folder
from paper_assets.stores.profile_files import file_version, write_json

_LONGEST_NAME = 60
_OTHERS = 0o077
_HASH_LENGTH = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """Somebody with a token, of which only the hash is known, and the profiles that are theirs."""

    name: str
    profiles: frozenset[str]
    token_sha256: str


def people_file(home: Path) -> Path:
    """Where the people of the desk in this home stand."""
    return home / "people.json"


def read_people(file: Path) -> tuple[Person, ...]:
    """Everybody in the file; nobody without one. Raises InvalidInput for a broken one, or one that others can read."""
    if not lies_there(file):
        return ()
    record = read_json(file)
    try:
        if file.stat().st_mode & _OTHERS:
            raise InvalidInput(f"{file} can be read by others; say `chmod 600 {file}`")
    except OSError as fault:
        raise InvalidInput(f"{file} cannot be read: {fault.strerror}") from None
    entries = record.get("people") if isinstance(record, dict) else None
    if not isinstance(entries, list):
        raise InvalidInput(f"{file}: expected an object with the list people")
    people = tuple(_person(entry, f"{file}: person {number}") for number, entry in enumerate(entries, start=1))
    if len({person.name for person in people}) < len(people):
        raise InvalidInput(f"{file}: two people have one name")
    return people


def add_person(file: Path, name: str, profiles: Sequence[str]) -> str:
    """Let somebody in to these profiles; their token, which is kept nowhere. Raises InvalidInput, StoreUnwritable."""
    if not PROFILE_NAME.fullmatch(name) or len(name) > _LONGEST_NAME:
        raise InvalidInput(f"{name[:60]!r} cannot be a name: small letters, digits, - and _ only")
    if not profiles:
        raise InvalidInput(f"{name} needs a profile: --profile PROFILE")
    version, people = file_version(file), read_people(file)
    if name in {person.name for person in people}:
        raise InvalidInput(
            f"{name} is there already; `paper-assets people remove {name}` first makes the old token void"
        )
    token = secrets.token_urlsafe(32)
    _write(file, [*people, Person(name=name, profiles=frozenset(profiles), token_sha256=token_hash(token))], version)
    return token


def remove_person(file: Path, name: str) -> None:
    """Make somebody's token void. Raises InvalidInput if there is nobody of this name, StoreUnwritable."""
    version, people = file_version(file), read_people(file)
    left = [person for person in people if person.name != name]
    if len(left) == len(people):
        known = ", ".join(person.name for person in people)
        raise InvalidInput(f"there is nobody named {name[:60]!r}; there {f'are {known}' if known else 'is nobody yet'}")
    _write(file, left, version)


def person_with(people: Sequence[Person], token: str) -> Person | None:
    """Whose token it is; takes as long for a wrong one as for a right one."""
    given, found = token_hash(token), None
    for person in people:
        if hmac.compare_digest(person.token_sha256, given):
            found = person
    return found


def token_hash(token: str) -> str:
    """What is kept of a token; tokens are drawn, long and of no pattern, so that a plain hash is enough."""
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
