"""Determine what a profile's model is trained from, and fingerprint it, without training anything."""

from collections.abc import Collection
from hashlib import sha256

from paper_assets.learning.ratings import TrainingInputs, training_inputs
from paper_assets.pipeline.day_inputs import profile_queries
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.ranking.calibration import standard_calibration
from paper_assets.stores.embeddings import embedded_with_others
from paper_assets.stores.feedback import NOTHING_RATED, model_inputs
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "10"  # raise it when the training or the weighing changes
OTHERS = 500  # papers among which the formula judges the rated ones, about as many as a list has candidates


def training_labels(training: TrainingInputs) -> dict[str, bool]:
    """Return by paper id, in order of time, whether it is liked.

    Imported papers are liked papers, which the library view compares with (G4), and teach nothing.
    """
    rated = sorted(
        (each.rated_at, each.paper_id, each.rating == "worth")
        for each in training.ratings
        if each.rating != "later" and each.given_in != "import"
    )
    return {paper_id: worth for _, paper_id, worth in rated if paper_id not in training.forgotten.papers}


def compared_papers(
    warehouse: Warehouse, profile: Profile, rated: Collection[str], *, model: str
) -> list[tuple[str, str]]:
    """Return (id, text hash) of the rated papers with a vector, and of others of their days.

    A new day changes nothing here until one of its papers is rated.
    """
    categories = profile.content.feed.categories
    return embedded_with_others(warehouse, list(rated), categories=categories, most=OTHERS, model=model)


def inputs_of_model(workspace: Workspace, name: str) -> str:
    """Hash all that a profile's model depends on: ratings, profile, models, the papers that it compares."""
    warehouse, profile = workspace.warehouse, usable_profile(workspace, name)
    training, model = training_inputs(warehouse, name), workspace.embedding_model()
    if not training.ratings and name not in model_inputs(warehouse):
        return NOTHING_RATED
    compared = compared_papers(warehouse, profile, training_labels(training), model=model) if model else []
    parts = (
        CODE_VERSION,
        training.version,
        profile.content_hash,
        model or "",
        standard_calibration().version,
        *profile_queries(warehouse, profile, settings=workspace.settings).texts,
        *(" ".join(each) for each in compared),
    )
    return sha256("\n".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]
