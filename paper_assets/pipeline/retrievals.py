"""`balanced_retrievals`: the answers to each profile's questions of a day, side by side (R3).

Here: what they are made from, and making them. What a person is shown of them stands in retrieval_report.py.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from hashlib import sha256

from paper_assets.ingestion.fulltexts import bring_in_pdfs
from paper_assets.models.embedder import Embedder
from paper_assets.pipeline.partition import Grid, Partition
from paper_assets.pipeline.profiles import remembered_profile, usable_profile
from paper_assets.pipeline.report import Report
from paper_assets.pipeline.retrieval_report import (
    documents_lie_inside_the_asked_dates,
    retrieval_report,
    sides_are_balanced,
)
from paper_assets.pipeline.step import Check, Made, Product, Step, one_by_one
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.retrieval.answers import NOBODY, LoadGrader, balanced_answer, has_failed
from paper_assets.retrieval.findings import Caller, log_handler
from paper_assets.retrieval.plan import Plan, questions_of
from paper_assets.retrieval.search import Corpus
from paper_assets.retrieval.stance import StanceJudge
from paper_assets.settings import Settings
from paper_assets.stores.document_index import sync_documents
from paper_assets.stores.documents import DataType, origins_of, texts_to_embed
from paper_assets.stores.embeddings import unembedded_count
from paper_assets.stores.papers import day_fingerprints
from paper_assets.stores.retrievals import replace_retrievals, retrieval_inputs, retrievals_of
from paper_assets.stores.warehouse import Warehouse

NAME = "balanced_retrievals"
CODE_VERSION = "2"  # raise it when retrieval or grading change, so that stored answers are made again

_UNFINISHED = " unfinished"  # ends the fingerprint of answers with a side that failed, so that they are made again
_NOTHING_ASKED = "no questions"


class _ToLog(logging.Handler):
    """Hands the lines of the search on to the log of the run."""

    def __init__(self, log: logging.Logger) -> None:
        super().__init__()
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        self.log.log(record.levelno, record.getMessage())


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """For each day and profile: ask its questions of what was there on the day, and keep the answers."""
    warehouse, settings = workspace.warehouse, workspace.settings
    model, judge = workspace.embedder(), workspace.load_judge()
    profiles: dict[str, Profile] = {}
    unread: dict[str, tuple[str, ...]] = {}

    def make(partition: Partition) -> bool:
        name = partition.of_profile
        if name not in profiles:
            profiles[name] = remembered_profile(workspace, name)
            plans = questions_of(profiles[name], settings)
            unread[name] = bring_in_own_pdfs(warehouse, profiles[name], plans, embedder=model)
            for fault in unread[name]:
                workspace.log.warning(fault)
            if model is not None and "fulltext" in _data_types(plans):
                synced = sync_documents(warehouse, workspace.vector_index, "fulltext", model=model.name)
                workspace.log.info(f"index: {synced}")
        new = keep_retrievals(
            warehouse,
            profiles[name],
            partition.of_day,
            embedder=model,
            load_grader=workspace.load_grader,
            grader=settings.cross_encoder,
            judge=judge,
            settings=settings,
        )
        workspace.log.info(f"{partition}: {'retrieved' if new else 'unchanged'}")
        return new

    with log_handler(_ToLog(workspace.log)):
        new, failures = one_by_one(partitions, make)
    return Made(new=new, failures=failures, details=unread)


def _inputs(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str]:
    model, judge, found = workspace.embedding_model(), workspace.load_judge().name, {}
    for each in partitions:
        profile = usable_profile(workspace, each.of_profile)
        found[each] = (
            inputs_of(
                workspace.warehouse,
                profile,
                each.of_day,
                model=model,
                grader=workspace.settings.cross_encoder,
                judge=judge,
                settings=workspace.settings,
            )
            if profile.questions
            else _NOTHING_ASKED
        )
    return found


def _stored(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[Partition, str | None]:
    """What nobody ever asked needs no answer; what is no longer asked leaves an empty set, once."""
    found: dict[Partition, str | None] = {}
    for each in partitions:
        kept = retrieval_inputs(workspace.warehouse, each.of_day, each.of_profile)
        empty = kept is None or not retrievals_of(workspace.warehouse, each.of_day, each.of_profile)
        asks = bool(usable_profile(workspace, each.of_profile).questions)
        found[each] = _NOTHING_ASKED if empty and not asks else kept
    return found


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    answers = retrievals_of(workspace.warehouse, partition.of_day, partition.of_profile)
    unread = made.details.get(partition.of_profile, ())
    return retrieval_report(partition.of_day, partition.of_profile, answers, unread=unread)


def inputs_of(
    warehouse: Warehouse,
    profile: Profile,
    as_of: date,
    *,
    model: str | None,
    grader: str,
    judge: str | None,
    settings: Settings,
) -> str:
    """32 hex digits over all that the answers of a day rest on: the plans, every document until that day, the models,
    our configuration and code. Raises InvalidProfile.
    """
    plans = questions_of(profile, settings)
    parts = {
        "plans": [plan.content_hash for plan in plans],
        "profile": profile.name,
        "as_of": as_of.isoformat(),
        "held": {each: _held(warehouse, each, as_of, model) for each in _data_types(plans)},
        "model": model,
        "grader": grader if any(plan.generation_required for plan in plans) else None,
        "judge": judge if any(plan.asks_for_stances for plan in plans) else None,
        "config": asdict(settings.retrieval),
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
    judge: StanceJudge = NOBODY,
    settings: Settings,
) -> bool:
    """Answer the profile's questions from what was there on the day, and store that; False if nothing has changed.

    `grader` names the model that `load_grader` is asked for. Raises InvalidProfile, StoreBusy.
    """
    inputs = inputs_of(
        warehouse,
        profile,
        as_of,
        model=embedder.name if embedder else None,
        grader=grader,
        judge=judge.name,
        settings=settings,
    )
    if retrieval_inputs(warehouse, as_of, profile.name) == inputs:
        return False
    corpus = Corpus(warehouse=warehouse, embedder=embedder, config=settings.retrieval)
    caller = Caller(owner=profile.name, as_of=as_of)
    answers = [
        balanced_answer(corpus, plan, caller=caller, load_grader=load_grader, load_judge=lambda: judge)
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


STEP = Step(
    name=NAME,
    products=(
        Product(
            name=NAME,
            description="The answers to the profile's questions: as many documents for each side, graded or as links.",
            kinds=frozenset({"duckdb", "chroma"}),
            report=_report,
            deps=("paper_embeddings", "research_profile"),
            any_day=frozenset({"paper_embeddings"}),
            checks=(
                Check(
                    name="sides_are_balanced_or_the_shortfall_is_named",
                    description="Each side of a question has as many documents, or says why it has fewer.",
                    holds=sides_are_balanced,
                ),
                Check(
                    name="documents_lie_inside_the_asked_dates",
                    description="No document of an answer is of a day that was not asked for.",
                    holds=documents_lie_inside_the_asked_dates,
                ),
            ),
        ),
    ),
    grid=Grid.PROFILE_DAY,
    group="retrieval",
    code_version=CODE_VERSION,
    make=_make,
    inputs=_inputs,
    stored=_stored,
    trigger="new_papers_or_profile",
    backfills=False,
)
