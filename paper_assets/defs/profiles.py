"""`research_profile`: the profile folders as an external asset, one partition each (A1).

Belongs here: what stands in profiles/, what Dagster knows of it, and the difference. Not here: when to look
(automation.py), what a profile is (paper_assets/profile.py).
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from paper_assets.defs.partitions import profiles
from paper_assets.errors import InvalidProfile
from paper_assets.profile import Profile, load_profile, profile_folders
from paper_assets.retrieval.daily import check_questions
from paper_assets.settings import Settings
from paper_assets.stores.profiles import last_good_profile
from paper_assets.stores.warehouse import Warehouse

research_profile = dg.AssetSpec(
    "research_profile",
    description="What a researcher wants to read: the validated profile folder, its content hash as data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"json"},
)


@dataclass(frozen=True, slots=True)
class ProfilesFound:
    """What stands in the folder: readable profiles, and for the others the line that says what to mend."""

    readable: Mapping[str, Profile]
    faults: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ProfileChanges:
    """What to tell Dagster: partitions to add and remove, profiles whose content is new."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]


def find_profiles(profiles_dir: Path) -> ProfilesFound:
    """Read every profile folder. Raises InvalidProfile only if the folder itself cannot be listed."""
    readable: dict[str, Profile] = {}
    faults: dict[str, str] = {}
    for folder in profile_folders(profiles_dir):
        try:
            readable[folder.name] = _checked(folder)
        except InvalidProfile as fault:
            faults[folder.name] = str(fault)
    return ProfilesFound(readable, faults)


def _checked(folder: Path) -> Profile:
    """A profile all of which can be used: its questions too are plans. Raises InvalidProfile."""
    profile = load_profile(folder)
    check_questions(profile)
    return profile


def profile_changes(known: Mapping[str, str | None], found: ProfilesFound) -> ProfileChanges:
    """Compare the hashes Dagster knows (None: a partition never reported) with what stands in the folder.

    A profile that cannot be read is neither changed nor removed: "could not read" is not "empty".
    """
    return ProfileChanges(
        added=tuple(sorted(found.readable.keys() - known.keys())),
        removed=tuple(sorted(known.keys() - found.readable.keys() - found.faults.keys())),
        changed=tuple(
            sorted(name for name, profile in found.readable.items() if known.get(name) != profile.content_hash)
        ),
    )


def known_hashes(instance: dg.DagsterInstance) -> dict[str, str | None]:
    """The content hash last reported for each profile partition; one query a profile."""
    known: dict[str, str | None] = {}
    for name in instance.get_dynamic_partitions(str(profiles.name)):
        event = instance.get_latest_data_version_record(research_profile.key, partition_key=name)
        materialization = event.asset_materialization if event else None
        known[name] = (materialization.tags or {}).get("dagster/data_version") if materialization else None
    return known


def profile_event(profile: Profile) -> dg.AssetMaterialization:
    """The report of one profile's content, its hash as data version."""
    interests = profile.content.interests
    return dg.AssetMaterialization(
        asset_key=research_profile.key,
        partition=profile.name,
        tags={"dagster/data_version": profile.content_hash},
        metadata={
            "profile": dg.MetadataValue.json(profile.content.model_dump(mode="json")),
            "interests": dg.MetadataValue.md(
                "\n".join(
                    f"- **{weight}**: {', '.join(words) or '–'}"
                    for weight, words in (
                        ("primary", interests.primary),
                        ("secondary", interests.secondary),
                        ("exploratory", interests.exploratory),
                    )
                )
            ),
            "papers_read": len(profile.read_ids),
            "questions": len(profile.questions),
            "local_pdfs": len(profile.pdf_names),
        },
    )


def report_profiles(instance: dg.DagsterInstance, found: ProfilesFound) -> ProfileChanges:
    """Tell Dagster of new and changed profiles at once, outside a sensor (the command line); removes nothing."""
    changes = profile_changes(known_hashes(instance), found)
    if changes.added:
        instance.add_dynamic_partitions(str(profiles.name), list(changes.added))
    for name in changes.changed:
        instance.report_runless_asset_event(profile_event(found.readable[name]))
    return changes


def usable_profile(settings: Settings, warehouse: Warehouse, name: str, log: logging.Logger) -> Profile:
    """The profile as it stands, or its last good content where the folder is broken or gone, said in the log.

    Raises InvalidProfile if there never was a good one.
    """
    try:
        return _checked(settings.profiles_dir / name)
    except InvalidProfile as fault:
        kept = last_good_profile(warehouse, name)
        if kept is None:
            raise
        log.warning(f"{fault}; the last good content of {name!r} is used")
        return kept
