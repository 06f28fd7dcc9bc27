"""Read the profile folders: valid profiles, faults in words, and the last valid content of a broken profile.

Not here: what a profile is (profile.py), what Dagster knows of it (defs/external_assets.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from paper_assets.errors import InvalidProfile, named_error
from paper_assets.profile import Profile, load_profile, profile_folders
from paper_assets.settings import Settings
from paper_assets.stores.profiles import keep_profile, last_good_profile

if TYPE_CHECKING:  # it knows all models and sources, which takes longer to import than a profile to read
    from paper_assets.pipeline.workspace import Workspace


@dataclass(frozen=True, slots=True)
class ProfilesFound:
    """The content of the folder: readable profiles, and for each other one the line with its fault."""

    readable: Mapping[str, Profile]
    faults: Mapping[str, str]


def load_valid_profile(folder: Path) -> Profile:
    """Load a profile and validate all of it, including its questions. Raises InvalidProfile."""
    profile = load_profile(folder)
    if profile.questions:  # what knows plans takes longer to import than a profile to read
        from paper_assets.retrieval.plan import questions_of

        questions_of(profile)
    return profile


def find_profiles(profiles_dir: Path) -> ProfilesFound:
    """Read every profile folder. Raises InvalidProfile only if the folder itself cannot be listed."""
    readable: dict[str, Profile] = {}
    faults: dict[str, str] = {}
    for folder in profile_folders(profiles_dir):
        try:
            readable[folder.name] = load_valid_profile(folder)
        except Exception as error:  # one folder must not hide the others
            faults[folder.name] = str(named_error(error, f"profile {folder.name}"))
    return ProfilesFound(readable, faults)


def followed_categories(settings: Settings) -> tuple[str, ...]:
    """Return the arXiv categories to fetch: those of PAPER_ASSETS_CATEGORIES, else those that the profiles name.

    A profile without categories wants the default ones. A profile that cannot be read changes nothing for the others.
    """
    if "categories" in settings.model_fields_set:
        return settings.categories
    try:
        profiles = find_profiles(settings.profiles_dir).readable.values()
    except InvalidProfile:
        return settings.categories
    wanted = {code for each in profiles for code in each.content.feed.categories or settings.categories}
    return tuple(sorted(wanted)) or settings.categories


def asks_for_rewrites(profile: Profile) -> bool:
    """Return whether the profile asks for rewrites of its best papers."""
    return bool(profile.content.rewriting.target_levels and profile.content.rewriting.papers)


def usable_profile(workspace: "Workspace", name: str) -> Profile:
    """Load the profile, or its last valid content if the folder is broken or missing (logged).

    In a block of `read_together` it is loaded once. Raises InvalidProfile if there never was a valid one.
    """
    return workspace.warehouse.once(("usable profile", name), partial(_loaded, workspace, name))


def _loaded(workspace: "Workspace", name: str) -> Profile:
    try:
        return load_valid_profile(workspace.settings.profiles_dir / name)
    except InvalidProfile as fault:
        kept = last_good_profile(workspace.warehouse, name)
        if kept is None:
            raise
        workspace.log.warning(f"{fault}; the last good content of {name!r} is used")
        return kept


def remembered_profile(workspace: "Workspace", name: str) -> Profile:
    """Load the usable profile and store it as the content from which the results of this run are made."""
    profile = usable_profile(workspace, name)
    keep_profile(workspace.warehouse, profile)
    return profile
