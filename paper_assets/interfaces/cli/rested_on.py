"""On which files the answer of a command rests, so that a stamp can say whether it still stands."""

from collections.abc import Sequence
from pathlib import Path

from paper_assets.models import minilm
from paper_assets.settings import Settings


def rested_on(settings: Settings, dagster_files: Sequence[Path] = ()) -> list[Path]:
    """Stores, results, profiles, what Dagster has heard of where that is asked, our own code; no files where they
    cannot tell: of another model or a Chroma server none here says whether it is as it was.
    """
    if settings.embedding_model != minilm.NAME or settings.chroma_url:
        return []
    warehouse, package = settings.warehouse_path, Path(__file__).parents[2]
    stores = [warehouse, warehouse.with_name(f"{warehouse.name}.wal"), minilm.packaged_folder()]
    return [*stores, settings.profiles_dir, settings.rankings_dir, settings.digests_dir, *dagster_files, package]
