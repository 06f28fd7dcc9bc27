"""Create, edit, remove and restore profiles: one implementation for the command line and the page.

A removed profile is moved to the folder `.removed` beside the profiles and kept there for `KEPT_DAYS` days. Its ratings
and lists stay in the warehouse until then, so that a restored profile has them again; afterwards, or at once where the
reader asks for it, everything of it is deleted (interfaces/removal.py).
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from paper_assets.errors import InvalidInput, InvalidProfile, PaperNotFound, StoreUnwritable
from paper_assets.library.entries import Entry, Imported, import_library, library_id
from paper_assets.locks import store_lock
from paper_assets.profile import PROFILE_NAME, profile_content, profile_folders, read_json
from paper_assets.setup.draft import (
    LikedWork,
    ProfileDraft,
    added_to_record,
    check_name,
    draft_content,
    draft_record,
)
from paper_assets.small_files import is_broken_link, is_present, make_private_folder
from paper_assets.stores.papers import papers_by_id, papers_with_dois
from paper_assets.stores.profiles import (
    delete_stored_profile,
    file_version,
    forget_profile_of_people,
    is_known_profile,
    people_file,
    texts_of_one_profile,
    texts_within,
    write_json,
)
from paper_assets.stores.warehouse import Warehouse

KEPT_DAYS = 30  # days; long enough for a holiday
REMOVED = ".removed"  # in the folder of profiles, so that a move cannot fail halfway between two disks
_STAMP = "%Y%m%dT%H%M%SZ"
_LONG_AGO = "19700101T0000"  # of a folder that is being deleted: it cannot be restored
_DEADLINE = 10.0  # seconds to wait for another editor
_MOST_FROM_LIBRARY = 50  # liked papers written into a profile that has nothing else
_MOST_NAMED = 5  # papers in a note


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where profiles are: their folder, the warehouse with their ratings and lists, and the home with its lock."""

    profiles_dir: Path
    home: Path
    warehouse: Warehouse

    @property
    def lock(self) -> Path:
        """Return the file that is locked while a profile is edited."""
        return self.home / "profiles-edited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A profile that was made or added to: its folder, the import of its library, and remarks for the reader.

    `papers`: how many papers were added that it did not like before.
    """

    name: str
    folder: Path
    imported: Imported | None
    notes: tuple[str, ...]
    papers: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedProfile:
    """A removed profile that can be restored until `until`."""

    name: str
    folder: Path
    removed: datetime

    @property
    def until(self) -> datetime:
        """The moment after which it is deleted."""
        return self.removed + timedelta(days=KEPT_DAYS)


def profile_names(place: Place) -> list[str]:
    """Return the names of all profile folders, broken ones included; none where the folder does not exist yet."""
    return [folder.name for folder in profile_folders(place.profiles_dir)] if is_present(place.profiles_dir) else []


def create_profile(place: Place, draft: ProfileDraft, *, now: datetime, library: Sequence[Entry] = ()) -> Created:
    """Write the profile of a draft and like the papers of a library. Nothing is written if anything is wrong.

    Raises InvalidInput, InvalidProfile, StoreBusy, StoreUnwritable.
    """
    name = check_name(draft.name, taken=profile_names(place))
    liked, notes = _resolved(place.warehouse, draft.papers)
    if library and not (draft.interests or draft.secondary or draft.exploratory or liked):
        liked = tuple(_works(library)[:_MOST_FROM_LIBRARY])
    whole = replace(draft, name=name, papers=liked)
    draft_content(whole)
    record = draft_record(whole)
    if is_known_profile(place.warehouse, name):
        notes = (*notes, f"the ratings and lists of a former profile {name} are kept and count again")
    with _editing(place):
        new = place.profiles_dir / REMOVED / f"new-{name}"  # not beside the profiles, where a sensor would read it
        folder = place.profiles_dir / name
        shutil.rmtree(new, ignore_errors=True)  # of a process that was killed
        try:
            make_private_folder(new)
            write_json(new / "profile.json", record, version="none", turns=place.home / "profile-written")
            _refuse_occupied(folder)
            new.rename(folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return _with_library(Created(name=name, folder=folder, imported=None, notes=notes), place, library, now=now)


def add_to_profile(
    place: Place, name: str, draft: ProfileDraft, *, now: datetime, library: Sequence[Entry] = ()
) -> Created:
    """Add interests, papers, categories and a library to a profile. Raises InvalidProfile, InvalidInput, StoreBusy."""
    folder = existing_profile(place, name)
    file = folder / "profile.json"
    version, record = file_version(file), read_json(file)
    if not isinstance(record, dict):
        raise InvalidProfile(f"{file}: expected an object with the key interests")
    liked, notes = _resolved(place.warehouse, draft.papers)
    edited = added_to_record(record, replace(draft, papers=liked))
    profile_content(edited, source=str(file))
    if edited != record:
        write_json(file, edited, version=version, turns=place.lock)
    before, after = (len((each.get("interests") or {}).get("papers") or ()) for each in (record, edited))
    created = Created(name=name, folder=folder, imported=None, notes=notes, papers=after - before)
    return _with_library(created, place, library, now=now)


def _with_library(created: Created, place: Place, library: Sequence[Entry], *, now: datetime) -> Created:
    """Like the papers of the library, if there is any, and add the import and its notes to what is returned."""
    if not library:
        return created
    imported = import_library(place.warehouse, created.name, library, now=now, profiles_dir=place.profiles_dir)
    notes = (*created.notes, *(f"left out: {line}" for line in imported.left_out))
    return replace(created, imported=imported, notes=notes)


def remove_profile(place: Place, name: str, *, now: datetime) -> RemovedProfile:
    """Move a profile aside, for `KEPT_DAYS` days. Raises InvalidProfile, StoreUnwritable."""
    folder = existing_profile(place, name)
    with _editing(place):
        aside = place.profiles_dir / REMOVED
        make_private_folder(aside)
        target = aside / f"{name}.{now.astimezone(UTC):{_STAMP}}"
        folder.rename(target)
    return RemovedProfile(name=name, folder=target, removed=now.replace(microsecond=0))


def restore_profile(place: Place, name: str, *, now: datetime, as_name: str | None = None) -> Path:
    """Restore the profile that was removed last under this name; return its folder. Raises InvalidInput."""
    removed = [each for each in removed_profiles(place, now=now) if each.name == name]
    if not removed:
        others = ", ".join(sorted({each.name for each in removed_profiles(place, now=now)}))
        raise PaperNotFound(
            f"there is no removed profile {name[:60]!r}" + (f"; removed profiles: {others}" if others else "")
        )
    new_name = as_name or name
    if new_name in profile_names(place):
        raise InvalidInput(f"there is already a profile {new_name!r}; restore it under another name with --as NAME")
    new_name = check_name(new_name)
    with _editing(place):
        target = place.profiles_dir / new_name
        removed[0].folder.rename(target)
    return target


def removed_profiles(place: Place, *, now: datetime) -> list[RemovedProfile]:
    """Return the removed profiles that can still be restored, those removed last first."""
    aside = place.profiles_dir / REMOVED
    restorable = [each for folder in _listed(aside) if (each := _removed(folder)) and each.until > now]
    return sorted(restorable, key=lambda each: each.removed, reverse=True)


def delete_profile(
    place: Place, name: str, outputs: Sequence[Path], also: Callable[[set[str]], None] = lambda words: None
) -> set[str]:
    """Delete a profile for good: its files, also removed ones, all that is stored of it, and its folders in `outputs`.

    `also` deletes what else may repeat the texts that only it has, which are returned. The files go last, so that the
    same command, or `expired_profiles`, completes a deletion that was killed. Backups are kept. Raises InvalidProfile,
    StoreBusy, StoreUnwritable.
    """
    aside, own = place.profiles_dir / REMOVED, place.profiles_dir / name
    folders = [own, *(each for each in _listed(aside) if _of_profile(each, name))]
    known = is_known_profile(place.warehouse, name)
    if not PROFILE_NAME.fullmatch(name) or not (known or any(is_present(folder) for folder in folders)):
        existing_profile(place, name)  # raises
    others = [each for each in (*_listed(place.profiles_dir), *_listed(aside)) if each not in folders]
    words = texts_of_one_profile(place.warehouse, name, _texts_of_files(folders), _texts_of_files(others))
    with _editing(place):
        make_private_folder(aside)
        mark = next(each for number in count() if not is_present(each := aside / f"{name}.{_LONG_AGO}{number:02}Z"))
        if is_present(own):
            own.rename(mark)  # it is ranked no more
        else:
            mark.mkdir()
        for output in outputs:
            _remove_folder(output / name)
            (output / f".{name}.lock").unlink(missing_ok=True)
    forget_profile_of_people(people_file(place.home), name)
    delete_stored_profile(place.warehouse, name, words)
    also(words)
    for folder in (mark, *folders):
        _remove_folder(folder)
    return words


def _remove_folder(folder: Path) -> None:
    if folder.is_symlink():
        folder.unlink()
    elif is_present(folder):
        shutil.rmtree(folder)


def _texts_of_files(folders: Iterable[Path]) -> set[str]:
    """Return the reader's texts in the JSON files of these folders that can be read."""
    texts: set[str] = set()
    for file in (file for folder in folders for file in folder.glob("*.json")):
        with suppress(InvalidProfile):
            texts.update(texts_within(read_json(file)))
    return texts


def expired_profiles(place: Place, *, now: datetime) -> list[str]:
    """Return the names of profiles that were removed more than `KEPT_DAYS` days ago and do not exist again."""
    removed = [each for folder in _listed(place.profiles_dir / REMOVED) if (each := _removed(folder))]
    alive = {*profile_names(place), *(each.name for each in removed if each.until > now)}
    for each in removed:
        if each.until <= now and each.name in alive:  # an old version of a profile that exists
            shutil.rmtree(each.folder, ignore_errors=True)
    return sorted({each.name for each in removed} - alive)


def existing_profile(place: Place, name: str) -> Path:
    """Return the folder of a profile, which may be broken. Raises InvalidProfile that names the existing ones."""
    folder = place.profiles_dir / name
    if PROFILE_NAME.fullmatch(name) and is_present(folder / "profile.json"):
        return folder
    names = profile_names(place)
    hint = f"; profiles: {', '.join(names[:10])}" if names else "; `paper-assets profile new` makes one"
    raise InvalidProfile(f"there is no profile {name[:60]!r} in {place.profiles_dir}{hint}")


def _resolved(warehouse: Warehouse, papers: Sequence[LikedWork]) -> tuple[tuple[LikedWork, ...], tuple[str, ...]]:
    """Replace DOIs by the ids of stored papers that have them; note DOIs and ids that no stored paper has."""
    ids = [work.paper_id for work in papers if work.paper_id]
    dois = [paper_id.removeprefix("doi:") for paper_id in ids if paper_id.startswith("doi:")]
    stored = is_present(warehouse.path)
    by_doi = papers_with_dois(warehouse, dois) if dois and stored else {}
    by_id = {
        *by_doi.values(),
        *(papers_by_id(warehouse, ids).column("paper_id").to_pylist() if ids and stored else ()),
    }
    resolved: dict[LikedWork, None] = {}
    notes = []
    for work in papers:
        doi = (work.paper_id or "").removeprefix("doi:")
        if doi in by_doi:
            resolved[LikedWork(paper_id=by_doi[doi])] = None
            continue
        if doi in dois and not work.title:
            notes.append(f"no stored paper has the DOI {doi} yet; it counts once its title and abstract are known")
        resolved[work] = None
    bare = [work.paper_id for work in resolved if work.paper_id and not work.title]
    if missing := [each for each in bare if each not in by_id and not each.startswith("doi:")]:
        named = f"{', '.join(missing[:_MOST_NAMED])}{', …' if len(missing) > _MOST_NAMED else ''}"
        notes.append(f"not stored yet: {named}; a paper that you like counts once it is fetched or imported")
    return tuple(resolved), tuple(notes)


def _works(library: Sequence[Entry]) -> list[LikedWork]:
    works: dict[str, LikedWork] = {}
    for entry in library:
        paper_id = library_id(entry)
        if paper_id is None:
            continue
        bare = None if paper_id.startswith("title:") else paper_id
        if entry.title or bare:
            works.setdefault(paper_id, LikedWork(paper_id=bare, title=entry.title, abstract=entry.abstract))
    return list(works.values())


def _refuse_occupied(folder: Path) -> None:
    """Raise InvalidInput for a folder that must not be replaced: it is not empty, or not a folder."""
    try:
        occupied = is_present(folder) and (is_broken_link(folder) or any(folder.iterdir()))
    except OSError:
        occupied = True
    if occupied:
        raise InvalidInput(f"{folder} exists already; choose another name")


def _listed(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _of_profile(folder: Path, name: str) -> bool:
    return bool((removed := _removed(folder)) and removed.name == name) or folder.name == f"new-{name}"


def _removed(folder: Path) -> RemovedProfile | None:
    name, _, stamp = folder.name.rpartition(".")
    try:
        removed = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return RemovedProfile(name=name, folder=folder, removed=removed) if PROFILE_NAME.fullmatch(name) else None


@contextmanager
def _editing(place: Place) -> Iterator[None]:
    """Hold the lock of editors. Raises StoreBusy, and StoreUnwritable where the disk refuses."""
    try:
        make_private_folder(place.home)
        with store_lock(place.lock, deadline=_DEADLINE):
            yield
    except OSError as fault:
        raise StoreUnwritable(
            f"{fault.filename or place.profiles_dir} cannot be changed: {fault.strerror}; check permissions and space"
        ) from None
