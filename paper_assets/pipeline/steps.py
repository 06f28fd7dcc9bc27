"""List all steps in the order in which a day is made. To add one, add a file with its `Step` and a line here."""

from paper_assets.pipeline import (
    archive,
    digests,
    embeddings,
    gatekeeper,
    papers,
    preferences,
    retrievals,
    rewrites,
)
from paper_assets.pipeline.step import Step

STEPS: tuple[Step, ...] = (
    papers.STEP,
    embeddings.STEP,
    preferences.STEP,
    gatekeeper.STEP,
    retrievals.STEP,
    rewrites.STEP,
    archive.STEP,
    digests.STEP,
)
