"""The questions of a profile on a day, from the stores and back: load, retrieve, keep."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import date
from hashlib import sha256

from paper_assets.errors import InvalidInput, InvalidProfile
from paper_assets.models.embedder import Embedder
from paper_assets.profile import Profile
from paper_assets.retrieval.answers import LoadGrader, balanced_answer, has_failed
from paper_assets.retrieval.evidence import Caller
from paper_assets.retrieval.fulltext import bring_in_pdfs
from paper_assets.retrieval.plan import Plan, parse_plans
from paper_assets.retrieval.search import Corpus
from paper_assets.settings import Retrieving, Settings
from paper_assets.stores.documents import DataType, origins_of, texts_to_embed
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.papers import day_fingerprints
from paper_assets.stores.retrievals import replace_retrievals, retrieval_inputs
from paper_assets.stores.warehouse import Warehouse

CODE_VERSION = "1"  # raise it when retrieval or grading change, so that stored answers are made again

_UNFINISHED = " unfinished"  # ends the fingerprint of answers with a side that failed, so that they are made again


def categories_of(profile: Profile | None, settings: Settings) -> tuple[str, ...]:
    """The sides of a plan that names none (R1): the profile's categories, else those that are fetched."""
    own = profile.content.feed.categories if profile else None
    return tuple(dict.fromkeys(own or settings.categories))


def questions_of(profile: Profile, settings: Settings) -> tuple[Plan, ...]:
    """The plans of the profile's `questions.json`. Raises InvalidProfile naming the file, the entry and the key."""
    return _plans(profile, default_sides=categories_of(profile, settings), numbers=settings.retrieving)


def check_questions(profile: Profile) -> None:
    """Raises InvalidProfile if a question of the profile is no plan, naming the file, the entry and the key."""
    _plans(profile, default_sides=(), numbers=Retrieving())


def _plans(profile: Profile, *, default_sides: Sequence[str], numbers: Retrieving) -> tuple[Plan, ...]:
    file = profile.path / "questions.json" if profile.path else f"questions of {profile.name}"
    try:
        return parse_plans(profile.questions, source=str(file), default_sides=default_sides, numbers=numbers)
    except InvalidInput as fault:
        raise InvalidProfile(str(fault)) from None


def inputs_of(
    warehouse: Warehouse, profile: Profile, as_of: date, *, model: str | None, grader: str, settings: Settings
) -> str:
    """32 hex digits over all that the answers of a day rest on: the plans, every document until that day, the models
    and our numbers and code. Raises InvalidProfile.
    """
    plans = questions_of(profile, settings)
    parts = {
        "plans": [plan.content_hash for plan in plans],
        "profile": profile.name,
        "as_of": as_of.isoformat(),
        "held": {each: _held(warehouse, each, as_of, model) for each in _data_types(plans)},
        "model": model,
        "grader": grader if any(plan.generation_required for plan in plans) else None,
        "numbers": asdict(settings.retrieving),
        "code": CODE_VERSION,
    }
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def keep_retrievals(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    embedder: Embedder | None,
    load_grader: LoadGrader,
    grader: str,
    settings: Settings,
) -> bool:
    """Answer the profile's questions from what was there on the day, and store that; False if nothing has changed.

    `grader` names the model that `load_grader` is asked for. Raises InvalidProfile, StoreBusy.
    """
    inputs = inputs_of(
        warehouse, profile, as_of, model=embedder.name if embedder else None, grader=grader, settings=settings
    )
    if retrieval_inputs(warehouse, as_of, profile.name) == inputs:
        return False
    corpus = Corpus(warehouse=warehouse, embedder=embedder, numbers=settings.retrieving)
    caller = Caller(owner=profile.name, as_of=as_of)
    answers = [
        balanced_answer(corpus, plan, caller=caller, load_grader=load_grader)
        for plan in questions_of(profile, settings)
    ]
    if any(has_failed(answer) for answer in answers):
        inputs += _UNFINISHED
    replace_retrievals(warehouse, as_of, profile.name, answers, inputs=inputs)
    return True


def bring_in_own_pdfs(
    warehouse: Warehouse, profile: Profile, plans: Sequence[Plan], *, embedder: Embedder | None
) -> tuple[str, ...]:
    """Read the profile's own PDFs where a plan asks for full texts; what is wrong with those that cannot be read."""
    folder = profile.path / "pdf" if profile.path else None
    if folder is None or "fulltext" not in _data_types(plans):
        return ()
    return tuple(bring_in_pdfs(warehouse, embedder, profile.name, folder).failures.values())


def _data_types(plans: Sequence[Plan]) -> list[DataType]:
    return sorted({data_type for plan in plans for data_type in plan.data_types})


def _held(warehouse: Warehouse, data_type: DataType, as_of: date, model: str | None) -> list[object]:
    """What changes with the documents of a type and with which of them have a vector."""
    if data_type == "abstract":
        found = {f"{day}": content for day, content in day_fingerprints(warehouse, None, as_of).items()}
        without = unembedded_count(warehouse, None, as_of, model=model) if model else 0
    else:
        found = origins_of(warehouse, data_type)
        without = len(texts_to_embed(warehouse, data_type, model=model)[0]) if model else 0
    return [sha256(json.dumps(found, sort_keys=True).encode()).hexdigest(), without]
