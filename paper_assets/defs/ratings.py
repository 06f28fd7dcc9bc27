"""`reader_ratings`: ratings and reading signals as an external asset, one partition for each profile (L1, L6).

Only what Dagster knows of the ratings is here; learning/ratings.py says what a rating is.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import dagster as dg

from paper_assets.defs.partitions import profiles
from paper_assets.defs.profiles import last_version
from paper_assets.learning.ratings import WORDS, Teaching, teaching_of
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.feedback import rated_profiles

reader_ratings = dg.AssetSpec(
    "reader_ratings",
    description="The reader's latest rating of each paper and reading signals; their hash is the data version.",
    partitions_def=profiles,
    group_name="profiles",
    kinds={"duckdb"},
)


def new_ratings(instance: dg.DagsterInstance, workspace: Workspace) -> dict[str, Teaching]:
    """Return what the models may learn from, of the profiles where Dagster knows another version. Raises StoreError."""
    known = {name: last_version(instance, reader_ratings.key, name) for name in _partitions(instance)}
    said, today = set(rated_profiles(workspace.warehouse)), workspace.clock().date()
    found = {
        name: teaching_of(workspace.warehouse, name, before=today)
        for name in sorted(known)
        if known[name] or name in said
    }
    return {name: teaching for name, teaching in found.items() if teaching.version != known[name]}


def ratings_event(profile: str, teaching: Teaching) -> dg.AssetMaterialization:
    """Report one profile's latest ratings to Dagster: only counts, because erased ratings must leave no history."""
    return dg.AssetMaterialization(
        asset_key=reader_ratings.key,
        partition=profile,
        tags={"dagster/data_version": teaching.version},
        metadata={
            "dagster/row_count": len(teaching.ratings),
            **_counts(teaching),
            "signals": len(teaching.signals),
        },
    )


def report_ratings(instance: dg.DagsterInstance, workspace: Workspace) -> None:
    """Report new ratings to Dagster at once. Raises StoreError."""
    for name, teaching in new_ratings(instance, workspace).items():
        instance.report_runless_asset_event(ratings_event(name, teaching))


def _partitions(instance: dg.DagsterInstance) -> Sequence[str]:
    return instance.get_dynamic_partitions(str(profiles.name))


def _counts(teaching: Teaching) -> Mapping[str, int]:
    said = Counter(each.rating for each in teaching.ratings)
    return {word: said[word] for word in WORDS}
