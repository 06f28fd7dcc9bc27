"""`paper_embeddings`: the vector of each paper's title and abstract, in DuckDB, with the Chroma index beside it."""

import logging
from collections.abc import Iterator, Sequence
from datetime import date
from hashlib import sha256
from typing import Any, Final

import dagster as dg
import numpy as np

from paper_assets.defs.automation import on_new_papers
from paper_assets.defs.partitions import days
from paper_assets.defs.reports import PartitionReport, columns, materializations, plainly, scatter
from paper_assets.defs.resources import LoadEmbedder, Progress
from paper_assets.errors import ModelUnavailable
from paper_assets.models.embedder import Embedder
from paper_assets.stores.document_index import FORM, document_batches
from paper_assets.stores.embeddings import (
    days_without_vectors,
    keep_vectors,
    texts_without_vector,
    unembedded_count,
    vectors_between,
    vectors_of,
)
from paper_assets.stores.index_content import VectorBatch
from paper_assets.stores.papers import day_fingerprints, papers_between
from paper_assets.stores.vectors import SyncReport, VectorIndex, distrust, self_check, sync
from paper_assets.stores.warehouse import Warehouse

COLLECTION: Final = "abstract"
_SAMPLE = 64  # stored vectors that must find themselves, per run


@dg.asset(  # type: ignore[call-overload]  # Dagster's own Nothing is not what it declares
    description='Unit vectors of "title + abstract", each text embedded once; Chroma is an index over them.',
    partitions_def=days,
    deps=["arxiv_papers"],
    dagster_type=dg.Nothing,
    group_name="papers",
    kinds={"duckdb", "chroma"},
    code_version="1",
    automation_condition=on_new_papers,
    backfill_policy=dg.BackfillPolicy.multi_run(max_partitions_per_run=100),
    retry_policy=dg.RetryPolicy(max_retries=2, delay=30, backoff=dg.Backoff.EXPONENTIAL),
    check_specs=[
        dg.AssetCheckSpec("no_paper_without_vector", asset="paper_embeddings"),
        dg.AssetCheckSpec("vectors_are_unit_length_and_finite", asset="paper_embeddings"),
        dg.AssetCheckSpec("stored_vectors_find_themselves", asset="paper_embeddings"),
    ],
)
def paper_embeddings(
    context: dg.AssetExecutionContext,
    warehouse: dg.ResourceParam[Warehouse],
    vector_index: dg.ResourceParam[VectorIndex],
    embedder: dg.ResourceParam[LoadEmbedder],
    progress: dg.ResourceParam[Progress],
) -> Iterator[Any]:
    """Embed what has no vector yet, day by day, then bring the index up to date."""
    asked = sorted(map(date.fromisoformat, context.partition_keys))
    with plainly(context):
        model = embedder_or_none(embedder, context.log)
        if model is None:
            told = [PartitionReport(day.isoformat(), "no model", {"dagster/row_count": 0}) for day in asked]
            yield from materializations(context, "paper_embeddings", told, _checks_without_model())
            return
        new = {day: embed_day(warehouse, model, day, progress) for day in asked}
        synced = bring_index_up_to_date(warehouse, vector_index, model.name, asked)
        context.log.info(f"embedded {sum(new.values())} texts; index: {synced}")
        told = [embedding_report(warehouse, model, day, new[day]) for day in asked]
        checks = _checks(warehouse, vector_index, model.name, asked)
        yield from materializations(context, "paper_embeddings", told, checks)


def embedder_or_none(load: LoadEmbedder, log: logging.Logger) -> Embedder | None:
    """The embedding model, or None with a visible warning, so that keyword matching takes over (G6)."""
    try:
        return load()
    except ModelUnavailable as fault:
        log.warning(f"{fault}; relevance will be judged by keywords only")
        return None


def embed_day(warehouse: Warehouse, model: Embedder, day: date, progress: Progress) -> int:
    """Embed and keep the day's texts that have no vector yet; their number."""
    hashes, texts = texts_without_vector(warehouse, day, day, model=model.name)
    if texts:
        keep_vectors(warehouse, hashes, model.encode(texts, progress=progress), model=model.name)
    return len(texts)


def embedding_version(papers: str, model: str) -> str:
    """Data version of a day's embeddings: changes with the day's papers or the model."""
    return sha256(f"{papers} {model}".encode()).hexdigest()[:32]


def bring_index_up_to_date(
    warehouse: Warehouse, vector_index: VectorIndex, model: str, asked: Sequence[date]
) -> SyncReport:
    """Make Chroma hold exactly DuckDB's vectors of the days; a damaged index is made again from all of them."""

    def versions(first: date | None, last: date | None) -> dict[str, str]:
        unfinished = days_without_vectors(warehouse, model=model)
        found = day_fingerprints(warehouse, first, last)
        return {
            day.isoformat(): f"{FORM} {embedding_version(papers, model)}"
            for day, papers in found.items()
            if day not in unfinished
        }

    def batches(partitions: Sequence[str]) -> Iterator[VectorBatch]:
        return document_batches(warehouse, COLLECTION, partitions, model=model)

    current = versions(asked[0], asked[-1])
    wanted = {day.isoformat(): current.get(day.isoformat(), "empty") for day in asked}
    return sync(
        vector_index, COLLECTION, model=model, wanted=wanted, everything=lambda: versions(None, None), batches=batches
    )


def embedding_report(warehouse: Warehouse, model: Embedder, day: date, new: int) -> PartitionReport:
    """How many vectors, how many of them new, how many texts were cut, and how the day's papers lie together."""
    papers = papers_between(warehouse, day, day)
    vectors, found = vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=model.name)
    metadata: dict[str, Any] = {
        "dagster/row_count": int(found.sum()),
        "dagster/column_schema": columns(
            ("model", "string", "model that made the vector"),
            ("text_hash", "string", "hash of title and abstract"),
            ("vector", "float[]", f"unit vector, {model.dimension} numbers"),
        ),
        "model": model.name,
        "dimension": model.dimension,
        "embedded_now": new,
    }
    if found.sum() >= 3:
        groups = [(listed or ["none"])[0] for listed in papers.column("categories").to_pylist()]
        centred = vectors[found] - vectors[found].mean(axis=0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
        metadata["map"] = scatter(
            centred @ axes.T,
            [group for group, has in zip(groups, found, strict=True) if has],
            title=f"The papers of {day} by likeness (two principal axes)",
        )
    version = embedding_version(day_fingerprints(warehouse, day, day).get(day, "empty"), model.name)
    return PartitionReport(day.isoformat(), version, metadata)


def _checks(
    warehouse: Warehouse, vector_index: VectorIndex, model: str, asked: Sequence[date]
) -> list[dg.AssetCheckResult]:
    without = unembedded_count(warehouse, asked[0], asked[-1], model=model)
    sample: list[tuple[str, np.ndarray]] = []
    faulty = vectors = 0
    for ids, _, matrix in vectors_between(warehouse, asked[0], asked[-1], model=model):
        vectors += len(ids)
        faulty += int((~(np.abs(np.linalg.norm(matrix, axis=1) - 1) < 1e-3)).sum())
        step = max(1, len(ids) // _SAMPLE)
        sample += [(ids[row], matrix[row]) for row in range(0, len(ids), step)]
    sample = sample[:: max(1, len(sample) // _SAMPLE)][:_SAMPLE]
    lost = (
        self_check(vector_index, COLLECTION, [name for name, _ in sample], np.stack([vector for _, vector in sample]))
        if sample
        else []
    )
    # An approximate index may miss a vector or two for good; losing more means that it is damaged.
    if len(lost) > 0.05 * len(sample):
        distrust(vector_index, COLLECTION)
    return [
        _check("no_paper_without_vector", without == 0, papers=vectors, without_vector=without),
        _check("vectors_are_unit_length_and_finite", faulty == 0, vectors=vectors, faulty=faulty),
        _check("stored_vectors_find_themselves", not lost, asked=len(sample), lost=lost[:20]),
    ]


def _checks_without_model() -> list[dg.AssetCheckResult]:
    names = ("no_paper_without_vector", "vectors_are_unit_length_and_finite", "stored_vectors_find_themselves")
    return [_check(name, False, reason="the embedding model cannot be loaded") for name in names]


def _check(name: str, passed: bool, **metadata: Any) -> dg.AssetCheckResult:
    return dg.AssetCheckResult(
        asset_key="paper_embeddings",
        check_name=name,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        metadata=metadata,
    )
