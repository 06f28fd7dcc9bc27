"""`reader_ratings`: what the reader said of papers as an external asset, one partition a profile (L1, L6).

Belongs here: what Dagster knows of the ratings, and telling it more. Not here: what a rating is (learning/ratings.py).
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import dagster as dg

from paper_assets.defs.partitions import profiles
from paper_assets.defs.profiles import last_version
from paper_assets.learning.ratings import WORDS, ratings_of, ratings_version
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.feedback import Rating, rated_profiles

reader_ratings = dg.AssetSpec(
    "reader_ratings",
    description="What the reader said of papers: the last word on each, their hash as data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"duckdb"},
)


def new_ratings(instance: dg.DagsterInstance, workspace: Workspace) -> dict[str, list[Rating]]:
    """The last words of those profiles of which Dagster has heard other ones, erased ones too. Raises StoreError."""
    known = {name: last_version(instance, reader_ratings.key, name) for name in _partitions(instance)}
    said = set(rated_profiles(workspace.warehouse))
    found = {name: ratings_of(workspace.warehouse, name) for name in sorted(known) if known[name] or name in said}
    return {name: ratings for name, ratings in found.items() if ratings_version(ratings) != known[name]}


def ratings_event(profile: str, ratings: Sequence[Rating]) -> dg.AssetMaterialization:
    """The report of one profile's last words. Only counts: what is erased must not stand in the history of runs."""
    return dg.AssetMaterialization(
        asset_key=reader_ratings.key,
        partition=profile,
        tags={"dagster/data_version": ratings_version(ratings)},
        metadata={"dagster/row_count": len(ratings), **_counts(ratings)},
    )


def report_ratings(instance: dg.DagsterInstance, workspace: Workspace) -> None:
    """Tell Dagster of new ratings at once. Raises StoreError."""
    for name, ratings in new_ratings(instance, workspace).items():
        instance.report_runless_asset_event(ratings_event(name, ratings))


def _partitions(instance: dg.DagsterInstance) -> Sequence[str]:
    return instance.get_dynamic_partitions(str(profiles.name))


def _counts(ratings: Sequence[Rating]) -> Mapping[str, int]:
    said = Counter(each.rating for each in ratings)
    return {word: said[word] for word in WORDS}
