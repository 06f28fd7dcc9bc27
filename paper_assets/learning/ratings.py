"""Rate papers, withdraw, list, export and erase ratings: one implementation for every interface (SPEC L1, L6)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidInput, InvalidProfile, PaperNotFound
from paper_assets.paper_id import split_paper_id
from paper_assets.profile import PROFILE_NAME
from paper_assets.stores.feedback import (
    TAKEN_BACK,
    WORDS,
    NewRating,
    Place,
    Rating,
    append_ratings,
    delete_ratings,
    last_ratings,
    rating_history,
)
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rankings import ranking_days
from paper_assets.stores.stamps import forget_stamps
from paper_assets.stores.warehouse import Warehouse

IN_WORDS: Mapping[str, str] = {"worth": "worth reading", "later": "for later", "no": "not for me"}
VALUES: Mapping[str, int] = {"worth": 1, "later": 0, "no": -1}  # L1


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
    """Store the profile's rating of a stored paper: `worth`, `later` or `no`. A repeated rating counts once.

    `paper_id` may be written in any form. Raises InvalidInput, InvalidArxivId, InvalidProfile, PaperNotFound,
    StoreBusy.
    """
    if rating not in WORDS:
        raise InvalidInput(f"a rating is one of {', '.join(WORDS)}, got {rating[:40]!r}")
    known_as = str(split_paper_id(paper_id)[0])
    check_profile(warehouse, profile, profiles_dir)
    found = find_paper(warehouse, known_as)
    before = _now(warehouse, profile).get(known_as)
    if found is None and before is None:
        raise PaperNotFound(f"paper {known_as} is not stored, so nothing can be learned from it; import or fetch it")
    append_ratings(
        warehouse,
        profile,
        [
            NewRating(
                paper_id=known_as,
                rating=rating,
                title=before.title if before and not found else None,
                abstract=before.abstract if before and not found else None,
            )
        ],
        given_in=given_in,
        now=now,
    )
    return Rated(
        profile=profile,
        paper_id=known_as,
        title=found.title if found else before.title if before else None,
        rating=rating,
        before=before.rating if before else None,
    )


def take_back(
    warehouse: Warehouse, profile: str, paper_id: str, *, given_in: Place, now: datetime, profiles_dir: Path
) -> Rated:
    """Withdraw the paper's rating; a paper without a rating stays as it is.

    Raises InvalidArxivId, InvalidProfile, StoreBusy.
    """
    known_as = str(split_paper_id(paper_id)[0])
    check_profile(warehouse, profile, profiles_dir)
    before = _now(warehouse, profile).get(known_as)
    append_ratings(warehouse, profile, [NewRating(paper_id=known_as, rating=TAKEN_BACK)], given_in=given_in, now=now)
    return Rated(
        profile=profile,
        paper_id=known_as,
        title=before.title if before else None,
        rating=None,
        before=before.rating if before else None,
    )


def ratings_of(warehouse: Warehouse, profile: str) -> list[Rating]:
    """Return the profile's latest rating of each rated paper, in the order in which they were given."""
    return last_ratings(warehouse, profile)


def ratings_by_id(warehouse: Warehouse, profile: str) -> dict[str, str]:
    """Return `worth`, `later` or `no` by paper id, for marking a list."""
    return {each.paper_id: each.rating for each in last_ratings(warehouse, profile)}


def ratings_version(ratings: Iterable[Rating]) -> str:
    """Return a hash of the latest ratings: equal ratings, however often changed, have the same hash (L6)."""
    words = sorted(f"{each.paper_id} {each.rating}" for each in ratings)
    return sha256("\n".join(words).encode()).hexdigest()[:32]


def export_ratings(warehouse: Warehouse, profile: str, *, profiles_dir: Path) -> dict[str, Any]:
    """Return all ratings ever given in the profile, as JSON values. Raises InvalidProfile."""
    check_profile(warehouse, profile, profiles_dir)
    return {
        "profile": profile,
        "ratings": [
            {
                "paper_id": each.paper_id,
                "title": each.title,
                "rating": None if each.rating == TAKEN_BACK else each.rating,
                "rated_at": each.rated_at.isoformat(),
                "given_in": each.given_in,
                "ranking_day": each.ranking_day and each.ranking_day.isoformat(),
                "ranking_inputs": each.ranking_inputs,
            }
            for each in rating_history(warehouse, profile)
        ],
    }


def erase_ratings(warehouse: Warehouse, profile: str, *, profiles_dir: Path) -> int:
    """Delete all ratings of the profile and everything learned from them; return the number of ratings.

    Raises InvalidProfile, StoreBusy.
    """
    check_profile(warehouse, profile, profiles_dir)
    erased = delete_ratings(warehouse, profile)
    forget_stamps(warehouse.path)  # stamps may describe a learned list
    return erased


def _now(warehouse: Warehouse, profile: str) -> dict[str, Rating]:
    return {each.paper_id: each for each in last_ratings(warehouse, profile)}


def check_profile(warehouse: Warehouse, profile: str, profiles_dir: Path) -> None:
    """Check that the profile exists or has existed: a removed one keeps its rankings and ratings.

    Raises InvalidProfile.
    """
    if PROFILE_NAME.fullmatch(profile) and (
        (profiles_dir / profile / "profile.json").exists()
        or rating_history(warehouse, profile)
        or ranking_days(warehouse, profile)
    ):
        return
    raise InvalidProfile(f"there is no profile {profile[:60]!r} in {profiles_dir}")
