"""`research_profile`: the profile folders as an external asset, one partition each (A1).

Belongs here: what Dagster knows of the profiles, and telling it more. Not here: when to look (looks.py), what
stands in the folder (pipeline/profiles.py).
"""

import dagster as dg

from paper_assets.defs.partitions import profiles
from paper_assets.pipeline.profiles import ProfileChanges, ProfilesFound, profile_changes
from paper_assets.profile import Profile

research_profile = dg.AssetSpec(
    "research_profile",
    description="What a researcher wants to read: the validated profile folder, its content hash as data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"json"},
)


def known_hashes(instance: dg.DagsterInstance) -> dict[str, str | None]:
    """The content hash last reported for each profile partition; one query a profile."""
    names = instance.get_dynamic_partitions(str(profiles.name))
    return {name: last_version(instance, research_profile.key, name) for name in names}


def last_version(instance: dg.DagsterInstance, asset: dg.AssetKey, partition: str) -> str | None:
    """The data version last reported for a partition of an asset; None if there is none."""
    event = instance.get_latest_data_version_record(asset, partition_key=partition)
    materialization = event.asset_materialization if event else None
    return (materialization.tags or {}).get("dagster/data_version") if materialization else None


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
    """Tell Dagster of new and changed profiles at once; removes nothing."""
    changes = profile_changes(known_hashes(instance), found)
    if changes.added:
        instance.add_dynamic_partitions(str(profiles.name), list(changes.added))
    for name in changes.changed:
        instance.report_runless_asset_event(profile_event(found.readable[name]))
    return changes
