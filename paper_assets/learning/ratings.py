"""Rate papers, withdraw, list and erase ratings: one implementation for every interface (SPEC L1, L6).

Also what the reader wants forgotten.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from paper_assets.errors import InvalidInput, InvalidProfile, PaperNotFound
from paper_assets.paper_id import split_paper_id
from paper_assets.profile import PROFILE_NAME
from paper_assets.stores.feedback import (
    FORGETTABLE,
    RATING_VALUES,
    WITHDRAWN,
    Forgotten,
    NewRating,
    Place,
    Rating,
    append_ratings,
    delete_ratings,
    forget,
    forgotten,
    last_ratings,
    rating_history,
    undo_forgetting,
)
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rankings import ranking_days
from paper_assets.stores.warehouse import Warehouse

IN_WORDS: Mapping[str, str] = {"worth": "worth reading", "later": "for later", "no": "not for me"}
UNDO = "undo"  # withdraws a rating
_LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """The result of rating: the paper, its rating now (None: none) and before."""

    profile: str
    paper_id: str
    title: str | None
    rating: str | None
    before: str | None

    @property
    def changed(self) -> bool:
        """Return whether the rating is different from before."""
        return self.rating != self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInputs:
    """All that a profile's model may learn from: the latest ratings, and what is forgotten."""

    ratings: tuple[Rating, ...]
    forgotten: Forgotten = field(default_factory=Forgotten)

    @property
    def version(self) -> str:
        """Return a hash that changes with any of it."""
        words = sorted(f"{each.paper_id} {each.rating}" for each in self.ratings)
        words += sorted(f"not {name}" for name in (*self.forgotten.words, *self.forgotten.papers))
        return sha256("\n".join(words).encode()).hexdigest()[:32]


def rate(
    warehouse: Warehouse,
    profile: str,
    paper_id: str,
    rating: str,
    *,
    given_in: Place,
    now: datetime,
    profiles_dir: Path,
) -> Rated:
    """Store the profile's rating of a stored paper, `worth`, `later` or `no`, or withdraw the one it has by `undo`.

    A repeated rating counts once. `paper_id` may be written in any form. Raises InvalidInput, InvalidArxivId,
    InvalidProfile, PaperNotFound, StoreBusy.
    """
    if rating not in (*RATING_VALUES, UNDO):
        raise InvalidInput(f"a rating is one of {', '.join(RATING_VALUES)}, got {rating[:40]!r}")
    known_as = str(split_paper_id(paper_id)[0])
    check_profile(warehouse, profile, profiles_dir)
    before = next((each for each in last_ratings(warehouse, profile) if each.paper_id == known_as), None)
    found = find_paper(warehouse, known_as)
    title, abstract = (before.title, before.abstract) if before else (None, None)
    kept = NewRating(paper_id=known_as, rating=WITHDRAWN)
    if rating != UNDO:
        if found is None and before is None:
            raise PaperNotFound(
                f"paper {known_as} is not stored, so nothing can be learned from it; import or fetch it"
            )
        texts = (None, None) if found else (title, abstract)
        kept = NewRating(paper_id=known_as, rating=rating, title=texts[0], abstract=texts[1])
    append_ratings(warehouse, profile, [kept], given_in=given_in, now=now)
    return Rated(
        profile=profile,
        paper_id=known_as,
        title=found.title if found else title,
        rating=None if rating == UNDO else rating,
        before=before.rating if before else None,
    )


def ratings_by_id(warehouse: Warehouse, profile: str) -> dict[str, str]:
    """Return `worth`, `later` or `no` by paper id, for marking a list."""
    return {each.paper_id: each.rating for each in last_ratings(warehouse, profile)}


def change_forgotten(
    warehouse: Warehouse, profile: str, kind: str, name: str, *, again: bool = False, now: datetime, profiles_dir: Path
) -> Forgotten:
    """Keep the profile's model from learning from a word's stem or a rated paper, or allow it `again`.

    Return everything that the model does not learn from. Raises InvalidInput, InvalidProfile, StoreBusy.
    """
    check_profile(warehouse, profile, profiles_dir)
    chosen = next((each for each in FORGETTABLE if each == kind), None)
    if chosen is None or not name.strip() or len(name) > _LONGEST_NAME:
        raise InvalidInput(f"name a {' or a '.join(FORGETTABLE)} to forget, got {kind[:40]!r} {name[:40]!r}")
    if again:
        undo_forgetting(warehouse, profile, chosen, name.strip())
    else:
        forget(warehouse, profile, chosen, name.strip(), now=now)
    return forgotten(warehouse, profile)


def ratings_version(ratings: Iterable[Rating]) -> str:
    """Return a hash of the latest ratings: equal ratings, however often changed, have the same hash (L6)."""
    return TrainingInputs(ratings=tuple(ratings)).version


def training_inputs(warehouse: Warehouse, profile: str) -> TrainingInputs:
    """Return all that the profile's model may learn from."""
    return TrainingInputs(ratings=tuple(last_ratings(warehouse, profile)), forgotten=forgotten(warehouse, profile))


def erase_ratings(warehouse: Warehouse, profile: str, *, profiles_dir: Path) -> int:
    """Delete the profile's ratings and everything learned from them; return how many there were.

    The database file is rewritten, because it would keep the bytes of deleted rows. Raises InvalidProfile, StoreBusy,
    StoreUnwritable.
    """
    check_profile(warehouse, profile, profiles_dir)
    erased = delete_ratings(warehouse, profile)
    warehouse.rewrite()
    return erased


def _has_file(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # a name longer than the file system has
        return False


def check_profile(warehouse: Warehouse, profile: str, profiles_dir: Path) -> None:
    """Raise InvalidProfile if the profile neither exists nor has existed."""
    if not is_profile(warehouse, profile, profiles_dir):
        raise InvalidProfile(f"there is no profile {profile[:60]!r} in {profiles_dir}")


def is_profile(warehouse: Warehouse, name: str, profiles_dir: Path) -> bool:
    """Return whether the profile exists or has existed: a removed one keeps its rankings and ratings."""
    return bool(
        PROFILE_NAME.fullmatch(name)
        and (
            _has_file(profiles_dir / name / "profile.json")
            or rating_history(warehouse, name)
            or ranking_days(warehouse, name)
        )
    )
