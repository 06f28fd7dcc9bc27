"""External assets, one partition for each profile: `research_profile` (A1) and `reader_ratings` (L1, L6).

Belongs here: which versions Dagster knows, and reporting new ones. Not here: when that happens (sensors.py),
reading profiles (pipeline/profiles.py) and ratings (learning/ratings.py).
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import dagster as dg

from paper_assets.defs.partitions import profiles
from paper_assets.errors import StoreError, named_error
from paper_assets.learning.ratings import RATING_VALUES, TrainingInputs, training_inputs
from paper_assets.pipeline.profiles import ProfileChanges, ProfilesFound, profile_changes
from paper_assets.pipeline.staleness import LEARNING
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.stores.feedback import NOTHING_RATED, rated_profiles

_DATA_VERSION = "dagster/data_version"  # tag
_NO_RATINGS = ""  # as no version is known

T = TypeVar("T")

research_profile = dg.AssetSpec(
    "research_profile",
    description="What a researcher wants to read: the validated profile folder, its content hash as data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"json"},
)


def known_hashes(instance: dg.DagsterInstance) -> dict[str, str | None]:
    """Return the content hash last reported for each profile partition, None where there is none."""
    versions = known_versions(instance, research_profile.key.to_user_string())
    return {name: versions.get(name) for name in _partitions(instance)}


def known_versions(instance: dg.DagsterInstance, asset: str, keys: Sequence[str] | None = None) -> dict[str, str]:
    """Return the data version last reported for each of these partitions (None: all), by one query."""
    found = instance.event_log_storage.get_latest_tags_by_partition(
        dg.AssetKey(asset), dg.DagsterEventType.ASSET_MATERIALIZATION, [_DATA_VERSION], asset_partitions=keys
    )
    return {key: tags[_DATA_VERSION] for key, tags in found.items() if _DATA_VERSION in tags}


def profile_event(profile: Profile) -> dg.AssetMaterialization:
    """Return the event that reports one profile's content, with its hash as data version."""
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
    """Report new and changed profiles to Dagster; remove nothing."""
    changes = profile_changes(known_hashes(instance), found)
    if changes.added:
        instance.add_dynamic_partitions(str(profiles.name), list(changes.added))
        for name in changes.added:
            for event in _nothing_rated(name):
                instance.report_runless_asset_event(event)
    for _, event in _each("profile", changes.changed, lambda name: profile_event(found.readable[name])):
        instance.report_runless_asset_event(event)
    return changes


def _nothing_rated(profile: str) -> Iterator[dg.AssetMaterialization]:
    """Report a new reader's ratings and model as empty: the UI would warn at each run that both are missing."""
    for asset, version in ((reader_ratings.key, _NO_RATINGS), (dg.AssetKey(LEARNING.name), NOTHING_RATED)):
        metadata = {"state": "nothing rated yet"}
        yield dg.AssetMaterialization(asset, partition=profile, tags={_DATA_VERSION: version}, metadata=metadata)


reader_ratings = dg.AssetSpec(
    "reader_ratings",
    description="The reader's latest rating of each paper; their hash is the data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"duckdb"},
)


def new_ratings(instance: dg.DagsterInstance, workspace: Workspace) -> dict[str, TrainingInputs]:
    """Return the training data of profiles of which Dagster knows another version. Raises StoreError.

    A profile whose ratings fail unexpectedly is left out.
    """
    versions = known_versions(instance, reader_ratings.key.to_user_string())
    known = {name: versions.get(name) or None for name in _partitions(instance)}
    with_ratings = set(rated_profiles(workspace.warehouse))
    wanted = [name for name in sorted(known) if known[name] or name in with_ratings]
    found = _each("ratings of", wanted, lambda name: training_inputs(workspace.warehouse, name))
    return {name: training for name, training in found if training.version != known[name]}


def ratings_event(profile: str, training: TrainingInputs) -> dg.AssetMaterialization:
    """Report one profile's latest ratings to Dagster: only counts, because erased ratings must leave no history."""
    return dg.AssetMaterialization(
        asset_key=reader_ratings.key,
        partition=profile,
        tags={"dagster/data_version": training.version},
        metadata={"dagster/row_count": len(training.ratings), **_counts(training)},
    )


def report_ratings(instance: dg.DagsterInstance, workspace: Workspace) -> None:
    """Report new ratings to Dagster at once. Raises StoreError."""
    new = new_ratings(instance, workspace)
    for _, event in _each("ratings of", new, lambda name: ratings_event(name, new[name])):
        instance.report_runless_asset_event(event)


def _each(what: str, names: Iterable[str], make: Callable[[str], T]) -> Iterator[tuple[str, T]]:
    """Yield what `make` returns for each profile; an unexpected error in one is logged. Raises StoreError."""
    for name in names:
        try:
            made = make(name)
        except StoreError:
            raise
        except Exception as error:
            named_error(error, f"{what} {name}")
        else:
            yield name, made


def _partitions(instance: dg.DagsterInstance) -> Sequence[str]:
    return instance.get_dynamic_partitions(str(profiles.name))


def _counts(training: TrainingInputs) -> Mapping[str, int]:
    count = Counter(each.rating for each in training.ratings)
    return {rating: count[rating] for rating in RATING_VALUES}
