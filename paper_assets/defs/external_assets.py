"""External assets, one partition for each profile: `research_profile` (A1) and `reader_ratings` (L1, L6).

Belongs here: which versions Dagster knows, and reporting new ones. Not here: when that happens (sensors.py),
reading profiles (pipeline/profiles.py) and ratings (learning/ratings.py).
"""

from collections import Counter
from collections.abc import Sequence

import dagster as dg

from paper_assets.defs.partitions import profiles
from paper_assets.errors import failure_logged
from paper_assets.learning.ratings import RATING_VALUES, TrainingInputs, training_inputs
from paper_assets.pipeline.profiles import ProfilesFound
from paper_assets.pipeline.staleness import LEARNING
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.stores.feedback import NOTHING_RATED, rated_profiles

_DATA_VERSION = "dagster/data_version"  # tag
_NO_RATINGS = ""  # data version

research_profile = dg.AssetSpec(
    "research_profile",
    description="What a researcher wants to read: the validated profile folder, its content hash as data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"json"},
)
reader_ratings = dg.AssetSpec(
    "reader_ratings",
    description="The reader's latest rating of each paper; their hash is the data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"duckdb"},
)


def known_versions(instance: dg.DagsterInstance, asset: str, keys: Sequence[str] | None = None) -> dict[str, str]:
    """Return the data version last reported for each of these partitions (None: all), by one query."""
    found = instance.event_log_storage.get_latest_tags_by_partition(
        dg.AssetKey(asset), dg.DagsterEventType.ASSET_MATERIALIZATION, [_DATA_VERSION], asset_partitions=keys
    )
    return {key: tags[_DATA_VERSION] for key, tags in found.items() if _DATA_VERSION in tags}


def report_profiles(instance: dg.DagsterInstance, found: ProfilesFound) -> set[str]:
    """Report new and changed profiles to Dagster; return the partitions of which there is no folder any more.

    A profile that cannot be read is neither changed nor removed: "could not read" is not "empty".
    """
    names = set(instance.get_dynamic_partitions(str(profiles.name)))
    if added := sorted(found.readable.keys() - names):
        instance.add_dynamic_partitions(str(profiles.name), added)
        for name in added:  # the UI would warn at each run that both are missing
            _report_empty(instance, reader_ratings.key, name, _NO_RATINGS)
            _report_empty(instance, dg.AssetKey(LEARNING.name), name, NOTHING_RATED)
    known, events = known_versions(instance, research_profile.key.to_user_string()), []
    for name, profile in sorted(found.readable.items()):
        if name in added or known.get(name) != profile.content_hash:
            with failure_logged(f"profile {name}"):
                events.append(profile_event(profile))
    for event in events:
        instance.report_runless_asset_event(event)
    return names - found.readable.keys() - found.faults.keys()


def _report_empty(instance: dg.DagsterInstance, asset: dg.AssetKey, profile: str, version: str) -> None:
    tags, metadata = {_DATA_VERSION: version}, {"state": "nothing rated yet"}
    instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=profile, tags=tags, metadata=metadata))


def profile_event(profile: Profile) -> dg.AssetMaterialization:
    """Return the event that reports one profile's content, with its hash as data version."""
    interests = profile.content.interests
    levels = {"primary": interests.primary, "secondary": interests.secondary, "exploratory": interests.exploratory}
    return dg.AssetMaterialization(
        asset_key=research_profile.key,
        partition=profile.name,
        tags={_DATA_VERSION: profile.content_hash},
        metadata={
            "profile": dg.MetadataValue.json(profile.content.model_dump(mode="json")),
            "interests": dg.MetadataValue.md(
                "\n".join(f"- **{level}**: {', '.join(words) or '–'}" for level, words in levels.items())
            ),
            "papers_read": len(profile.read_ids),
            "questions": len(profile.questions),
            "local_pdfs": len(profile.pdf_names),
        },
    )


def report_ratings(instance: dg.DagsterInstance, workspace: Workspace) -> None:
    """Report new ratings to Dagster at once. Raises StoreError."""
    known = known_versions(instance, reader_ratings.key.to_user_string())
    events = []
    rated = {*rated_profiles(workspace.warehouse), *(name for name, version in known.items() if version)}
    for name in sorted(rated & set(instance.get_dynamic_partitions(str(profiles.name)))):
        with failure_logged(f"ratings of {name}"):
            training = training_inputs(workspace.warehouse, name)
            if training.version != known.get(name):
                events.append(ratings_event(name, training))
    for event in events:
        instance.report_runless_asset_event(event)


def ratings_event(profile: str, training: TrainingInputs) -> dg.AssetMaterialization:
    """Report one profile's latest ratings to Dagster: only counts, because erased ratings must leave no history."""
    count = Counter(each.rating for each in training.ratings)
    return dg.AssetMaterialization(
        asset_key=reader_ratings.key,
        partition=profile,
        tags={_DATA_VERSION: training.version},
        metadata={"dagster/row_count": len(training.ratings), **{rating: count[rating] for rating in RATING_VALUES}},
    )
