"""Fingerprint what the answers to a profile's questions are made from, without answering anything."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from hashlib import sha256

from paper_assets.profile import Profile
from paper_assets.retrieval.plan import Plan, questions_of
from paper_assets.settings import Settings
from paper_assets.stores.documents import DataType, origins_of, texts_to_embed
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.papers import day_fingerprints
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "2"  # raise it when retrieval or grading change, so that stored answers are made again


def inputs_of(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    model: str | None,
    judge: str | None,
    writer: str | None,
    settings: Settings,
) -> str:
    """Hash all that the answers of a day depend on: the plans, every document until that day, models, configuration,
    code.

    Returns 32 hex digits. Raises InvalidProfile.
    """
    plans = questions_of(profile, settings)
    parts = {
        "plans": [plan.content_hash for plan in plans],
        "profile": profile.name,
        "as_of": as_of.isoformat(),
        "held": {each: _document_state(warehouse, each, as_of, model) for each in data_types(plans)},
        "model": model,
        "grader": settings.cross_encoder if any(plan.generation_required for plan in plans) else None,
        "judge": judge if any(plan.asks_for_stances for plan in plans) else None,
        "config": asdict(settings.retrieval),
        "code": CODE_VERSION,
        **({"writer": writer} if any(plan.answer for plan in plans) else {}),
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def data_types(plans: Sequence[Plan]) -> list[DataType]:
    return sorted({data_type for plan in plans for data_type in plan.data_types})


def _document_state(warehouse: Warehouse, data_type: DataType, as_of: date, model: str | None) -> list[object]:
    """Hash the documents of a type and which of them have a vector."""
    if data_type == "abstract":
        found = {f"{day}": content for day, content in day_fingerprints(warehouse, None, as_of).items()}
        without = unembedded_count(warehouse, None, as_of, model=model) if model else 0
    else:
        found = origins_of(warehouse, data_type)
        without = len(texts_to_embed(warehouse, data_type, model=model)[0]) if model else 0
    return [sha256(json.dumps(found, sort_keys=True).encode()).hexdigest(), without]
