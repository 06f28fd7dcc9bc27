"""The workspace: what every step works with. Stores are opened for each unit of work, models on first use.

A model's code is imported when the model is loaded, so that commands such as `status` start without it.

Belongs here: building the workspace from settings and environment, once per process. Not here: what a step does.
"""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from paper_assets.errors import InvalidInput, LLMUnreachable, ModelUnavailable
from paper_assets.models.embedder import Embedder, load_embedder
from paper_assets.paper import Paper
from paper_assets.progress import Progress, ignore_progress
from paper_assets.ranking.verifier import Verifier, open_verifier, unavailable
from paper_assets.settings import Settings
from paper_assets.small_files import read_json, write_file
from paper_assets.sources.source import Access, seconds_from_now
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.kept_settings import kept_environment
from paper_assets.stores.llm_answers import StoredAnswers, keep_answers, known_answers
from paper_assets.stores.scholar_records import ScholarRecord, filled, keep_records, records_of
from paper_assets.stores.warehouse import Warehouse

if TYPE_CHECKING:
    from paper_assets.cluster import Cluster
    from paper_assets.pipeline.desk_answers import AnsweringContext
    from paper_assets.retrieval.grading import Grader
    from paper_assets.retrieval.stance import StanceJudge
    from paper_assets.rewriting.writing import Writer
    from paper_assets.sources.semantic_scholar import Enriched, ScholarPaper

PATIENCE = 60.0  # seconds for one day's papers; a day has one or two requests


class EnrichPapers(Protocol):
    """Fill papers with all that is known of them; with `ask`, request missing data first."""

    def __call__(self, papers: Sequence[Paper], ask: bool) -> "Enriched": ...


def enricher(settings: Settings, environ: Mapping[str, str], warehouse: Warehouse) -> EnrichPapers:
    """Return a function that fills papers from the warehouse, after requests if settings and caller allow them.

    Raises StoreError only.
    """

    def keep(found: "Mapping[str, ScholarPaper]") -> None:
        keep_records(warehouse, [_record(paper_id, known) for paper_id, known in found.items()])

    def fill(papers: Sequence[Paper]) -> list[Paper]:
        return filled(papers, records_of(warehouse, [paper.paper_id for paper in papers]))

    def enrich_papers(papers: Sequence[Paper], ask: bool) -> "Enriched":
        from paper_assets.sources.semantic_scholar import enrich

        access = Access(settings=settings, environ=environ, left=seconds_from_now(PATIENCE, time.monotonic))
        return enrich(papers, access=access if ask and settings.semantic_scholar else None, keep=keep, fill=fill)

    return enrich_papers


def _record(paper_id: str, known: "ScholarPaper") -> ScholarRecord:
    return ScholarRecord(
        paper_id=paper_id,
        affiliations=known.affiliations,
        github_url=known.code,
        citation_count=known.citation_count,
    )


Clock = Callable[[], datetime]


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """Settings, stores, models and clock of one process; `options`: the run's, which override a profile's.

    Tests and callers replace fields with `dataclasses.replace`.
    """

    settings: Settings
    warehouse: Warehouse
    vector_index: VectorIndex
    load_embedder: Callable[[], Embedder]
    load_grader: "Callable[[], Grader]"
    load_judge: "Callable[[], StanceJudge]"
    load_answering_context: "Callable[[], AnsweringContext]"
    load_verifier: Callable[[], Verifier]
    load_writer: "Callable[[Workspace], Writer]"
    cluster: "Cluster | None" = None  # that embeds and scores (X4); None: this process alone
    access: Access  # URLs, keys and time limits for requests to sources
    enrich_papers: EnrichPapers
    clock: Clock
    progress: Progress = ignore_progress
    log: logging.Logger = field(default_factory=lambda: logging.getLogger("paper_assets.pipeline"))
    options: Mapping[str, Any] = field(default_factory=dict)
    on_made: Callable[[Any], None] = lambda made: None  # called with each run's `Made`, failures included
    assumed_model: str | None = None  # the embedding model's name, so that code that only compares need not load it

    def embedder(self) -> Embedder | None:
        """Load the embedding model; None, with a logged warning, if it cannot be used: keyword matching replaces it
        (G6).
        """
        try:
            return self._working_embedder()
        except ModelUnavailable as fault:
            self.log.warning(f"{fault}; relevance will be judged by keywords only")
            return None

    def embedding_model(self) -> str | None:
        """Return the name of the embedding model; None if it cannot be used."""
        if self.assumed_model:
            return self.assumed_model
        try:
            return self._working_embedder().name
        except ModelUnavailable:
            return None

    def _working_embedder(self) -> Embedder:
        """Load the embedding model and test it on one text (remembered). Raises ModelUnavailable."""
        model = self.load_embedder()
        model.encode(["paper"])
        return model


def open_workspace(
    settings: Settings,
    environ: Mapping[str, str],
    *,
    clock: Clock,
    store_deadline: float | None = None,
    deadline: Callable[[], float | None] = lambda: None,
) -> Workspace:
    """Create the workspace of one set of settings; `environ` configures the language model, if any (I3). Opens nothing
    yet.

    `store_deadline`: the seconds to wait for a busy store, None for the setting's. `deadline`: the seconds left for a
    question to the language model about papers or stances, None for its own limit.
    """
    environ = kept_environment(environ, settings.home, clock)
    warehouse = Warehouse(settings.warehouse_path, deadline=store_deadline or settings.store_deadline)
    cluster = _cluster(settings.dask) if settings.dask else None
    load_embedder_once = _embedder_loader(settings, cluster)
    return Workspace(
        settings=settings,
        warehouse=warehouse,
        vector_index=VectorIndex(settings.vectors_place, deadline=settings.store_deadline),
        load_embedder=load_embedder_once,
        load_grader=_grader_loader(settings, load_embedder_once),
        # Functions and not partials, whose repr would show the keys in `environ`.
        load_judge=lambda: _judge(settings, environ, warehouse, deadline),
        load_answering_context=lambda: _answering_context(settings, environ, warehouse),
        load_verifier=lambda: _verifier(settings, environ, warehouse, clock, deadline),
        load_writer=lambda workspace: _writer(workspace, settings, environ, warehouse),
        access=Access(settings=settings, environ=environ),
        enrich_papers=enricher(settings, environ, warehouse),
        clock=clock,
        cluster=cluster,
    )


def _cluster(address: str) -> "Cluster":
    from paper_assets.cluster import Cluster

    return Cluster(address=address)


def _embedder_loader(settings: Settings, cluster: "Cluster | None") -> Callable[[], Embedder]:
    @cache
    def load() -> Embedder:
        model = load_embedder(settings.embedding_model)
        if cluster is None:
            return model
        from paper_assets.cluster import spread

        return spread(model, cluster, model=settings.embedding_model)

    return load


def _grader_loader(settings: Settings, embedder: Callable[[], Embedder]) -> "Callable[[], Grader]":
    @cache
    def load() -> "Grader":
        from paper_assets.models.cross_encoder import load_cross_encoder
        from paper_assets.retrieval.grading import load_grader

        return load_grader(lambda: load_cross_encoder(settings.cross_encoder), embedder)

    return load


def _judge(
    settings: Settings, environ: Mapping[str, str], warehouse: Warehouse, deadline: Callable[[], float | None]
) -> "StanceJudge":
    from paper_assets.retrieval.stance_judges import open_judge

    return open_judge(settings, environ, warehouse, deadline=deadline)


def _answering_context(settings: Settings, environ: Mapping[str, str], warehouse: Warehouse) -> "AnsweringContext":
    from paper_assets.pipeline.desk_answers import AnsweringContext

    return AnsweringContext(settings=settings, environ=environ, warehouse=warehouse)


_REST = timedelta(minutes=30)  # for which a language model that failed is not asked about papers


def _verifier(
    settings: Settings,
    environ: Mapping[str, str],
    warehouse: Warehouse,
    clock: Clock,
    deadline: Callable[[], float | None],
) -> Verifier:
    """Return the verifier; while its model rests after a failure, it asks nothing."""
    resting = settings.home / "resting_model.json"
    verifier = open_verifier(
        environ,
        deadline=deadline,
        known=lambda keys: known_answers(warehouse, keys),
        keep=lambda verdicts, model: keep_answers(warehouse, verdicts, model=model),
    )
    with suppress(InvalidInput, OSError, ValueError, KeyError, TypeError):
        record: Any = read_json(resting) if resting.exists() else {}
        if record.get("model") == verifier.model and datetime.fromisoformat(record["until"]) > clock():
            until, reason = datetime.fromisoformat(record["until"]), str(record["reason"])
            line = f"{reason}; it is asked again after {until:%H:%M} UTC"
            return replace(verifier, ask=unavailable(LLMUnreachable(line)))

    def ask(**question: Any) -> Any:
        try:
            return verifier.ask(**question)
        except LLMUnreachable as fault:
            if deadline() is not None:  # a caller waits, and the model may only be too slow for that
                raise
            record = {"model": verifier.model, "until": f"{(clock() + _REST).isoformat()}", "reason": f"{fault}"}
            with suppress(OSError):
                write_file(resting, json.dumps(record))
            raise

    return replace(verifier, ask=ask)


def _writer(workspace: Workspace, settings: Settings, environ: Mapping[str, str], warehouse: Warehouse) -> "Writer":
    from paper_assets.retrieval.stance_judges import support_judge
    from paper_assets.rewriting.best_practices import archive_of
    from paper_assets.rewriting.writing import open_writer

    try:
        model = workspace.load_embedder()
    except ModelUnavailable:
        model = None
    return open_writer(
        environ,
        archive=archive_of(settings, warehouse, workspace.vector_index, model),
        cache=StoredAnswers(warehouse),
        clock=workspace.clock,
        config=settings.rewriting,
        nli=support_judge(settings),
    )
