"""`paper_embeddings`: the vector of each paper's title and abstract, in DuckDB and in Chroma."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paper_assets.errors import ModelUnavailable
from paper_assets.models.embedder import Embedder
from paper_assets.pipeline.profiles import find_profiles
from paper_assets.pipeline.staleness import EMBEDDINGS, embedding_version, partitions_of_days
from paper_assets.pipeline.step import (
    Check,
    Checked,
    Columns,
    Made,
    Partition,
    Product,
    Report,
    Step,
    Value,
    bars,
    days_of,
    make_each,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.embeddings import (
    keep_vectors,
    newest_without_vector,
    texts_without_vector,
    unembedded_count,
    vectors_between,
    vectors_of,
)
from paper_assets.stores.papers import day_fingerprints, latest_day, papers_between
from paper_assets.stores.vectors import mark_for_rebuild, self_check, update

NAME: Final = "paper_embeddings"
COLLECTION: Final = "abstract"
SAMPLE = 64  # stored vectors that must find themselves, per run
_TEXTS_IN_A_STEP, _DAYS_IN_A_STEP = 1_000, 31  # some ten seconds of work
_STORED_TOGETHER = 64  # texts of a day: Today shows how far it is, and an interruption loses no more
_LOST_AT_MOST = 0.05  # an approximate index may miss a vector or two for good; losing more means that it is damaged


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Embed what has no vector yet, day by day, then bring the index up to date."""
    model = workspace.embedder()
    if model is None:
        return Made(new=dict.fromkeys(partitions, False))
    counts: dict[date, int] = {}
    faults: list[ModelUnavailable] = []

    def embed(partition: Partition) -> bool:
        try:
            counts[partition.of_day] = 0 if faults else _embed_day(workspace, model, partition.of_day)
        except ModelUnavailable as fault:  # it loads and then fails: a day is not lost by that (G6)
            faults.append(fault)
        return bool(counts.get(partition.of_day))

    new, failures = make_each(partitions, embed)
    for fault in faults:
        workspace.log.warning(f"{fault}; relevance will be judged by keywords only")
    synced: object = "unchanged"
    if new:
        synced = update(workspace.vector_index, workspace.warehouse, [COLLECTION], model=model.name)
    workspace.log.info(f"embedded {sum(counts.values())} texts; index: {synced}")
    return Made(new=new, failures=failures, details=None if faults else counts)


def _embed_day(workspace: Workspace, model: Embedder, day: date) -> int:
    """Embed and store the day's texts without vector; return their number."""
    hashes, texts = texts_without_vector(workspace.warehouse, day, day, model=model.name)
    together = len(texts) if workspace.cluster else _STORED_TOGETHER  # a cluster shares them among its workers
    for at in range(0, len(texts), max(together, 1)):
        part = slice(at, at + together)
        keep_vectors(workspace.warehouse, hashes[part], model.encode(texts[part]), model=model.name)
        workspace.progress(min(part.stop, len(texts)), len(texts))
    return len(texts)


def embed_window(workspace: Workspace) -> int:
    """Embed the papers that the newest list of any profile reads, the newest day first; return the number of texts.

    Vectors are stored as they are computed. Raises ModelUnavailable, StoreError.
    """
    model = workspace.load_embedder()
    newest = latest_day(workspace.warehouse, until=workspace.clock().date())
    if newest is None:
        model.encode(["paper"])  # whether it works
        return 0
    profiles = find_profiles(workspace.settings.profiles_dir).readable
    days = days_of(partitions_of_days(EMBEDDINGS, profiles, [newest], first_day=workspace.settings.first_day))
    return sum(_embed_day(workspace, model, day) for day in reversed(days))


def embed_unpartitioned(workspace: Workspace) -> int:
    """Embed the papers in no partition: those before the first day or after today, then those without a date.

    Works in steps, each of which is stored: an interruption costs at most one step. Returns the number of texts.
    """
    model = workspace.embedder()
    if model is None:
        return 0
    done, before, after = 0, workspace.settings.first_day, workspace.clock().date()
    while True:
        hashes, texts, _ = newest_without_vector(
            workspace.warehouse, before=before, after=after, model=model.name, limit=_TEXTS_IN_A_STEP
        )
        if not texts:
            if done:
                update(workspace.vector_index, workspace.warehouse, [COLLECTION], model=model.name)
            return done
        keep_vectors(workspace.warehouse, hashes, model.encode(texts, progress=workspace.progress), model=model.name)
        done += len(texts)


def steps_newest_first(days: Iterable[date]) -> Iterator[list[date]]:
    """Group days within a month of one another, ascending; the newest month first."""
    step: list[date] = []
    for day in sorted(days, reverse=True):
        if step and (step[0] - day).days >= _DAYS_IN_A_STEP:
            yield step[::-1]
            step = []
        step.append(day)
    if step:
        yield step[::-1]


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report the number of vectors, how many are new, and how the day's papers are distributed."""
    if made.details is None:
        return Report("no model", {"dagster/row_count": 0})
    day, model, warehouse = partition.of_day, workspace.load_embedder(), workspace.warehouse
    papers = papers_between(warehouse, day, day)
    _, found = vectors_of(warehouse, papers.column("paper_id").to_pylist(), model=model.name)
    values: dict[str, Value] = {
        "dagster/row_count": int(found.sum()),
        "dagster/column_schema": Columns(
            [
                ("model", "string", "model that made the vector"),
                ("text_hash", "string", "hash of title and abstract"),
                ("vector", "float[]", f"unit vector, {model.dimension} numbers"),
            ]
        ),
        "model": model.name,
        "dimension": model.dimension,
        "embedded_now": made.details.get(day, 0),
    }
    groups = Counter((listed or ["none"])[0] for listed in papers.column("categories").to_pylist())
    values["categories"] = bars(dict(groups.most_common(8)), title=f"Papers by first category, {day}")
    version = embedding_version(day_fingerprints(warehouse, day, day).get(day, "empty"), model.name)
    return Report(version, values)


NO_MODEL = Checked(passed=False, counted={"reason": "the embedding model cannot be loaded"})


def no_paper_without_vector(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Every paper of the days has its vector."""
    if made.details is None:
        return NO_MODEL
    days, model = days_of(partitions), workspace.load_embedder().name
    without = unembedded_count(workspace.warehouse, days[0], days[-1], model=model)
    return Checked(passed=without == 0, counted={"without_vector": without})


def vectors_are_unit_length_and_finite(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Every stored vector has length 1, so that a dot product is a cosine."""
    if made.details is None:
        return NO_MODEL
    days, faulty, vectors = days_of(partitions), 0, 0
    for ids, matrix in vectors_between(workspace.warehouse, days[0], days[-1], model=workspace.load_embedder().name):
        vectors += len(ids)
        faulty += int((~(np.abs(np.linalg.norm(matrix, axis=1) - 1) < 1e-3)).sum())
    return Checked(passed=faulty == 0, counted={"vectors": vectors, "faulty": faulty})


def stored_vectors_find_themselves(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """The index finds each vector of a sample; one that loses many is rebuilt."""
    if made.details is None:
        return NO_MODEL
    days, sample = days_of(partitions), []
    for ids, matrix in vectors_between(workspace.warehouse, days[0], days[-1], model=workspace.load_embedder().name):
        sample += [(ids[row], matrix[row]) for row in range(0, len(ids), max(1, len(ids) // SAMPLE))]
    sample = sample[:: max(1, len(sample) // SAMPLE)][:SAMPLE]
    if not sample:
        return Checked(passed=True, counted={"asked": 0, "lost": []})
    names, rows = zip(*sample, strict=True)
    return index_finds_its_vectors(workspace.vector_index, COLLECTION, names, np.stack(rows))


def index_finds_its_vectors(
    index: VectorIndex, collection: str, ids: Sequence[str], vectors: NDArray[np.float32]
) -> Checked:
    """Check that the index finds a sample of vectors by searching for each; the next run rebuilds an index that loses
    many.
    """
    lost = self_check(index, collection, list(ids), vectors)
    if len(lost) > _LOST_AT_MOST * len(ids):
        mark_for_rebuild(index)
    return Checked(passed=not lost, counted={"asked": len(ids), "lost": lost[:20]})


STEP = Step(
    tracked=EMBEDDINGS,
    products=(
        Product(
            name=NAME,
            description='Unit vectors of "title + abstract", each text embedded once; Chroma is an index over them.',
            kinds=frozenset({"duckdb", "chroma"}),
            report=_report,
            deps=("arxiv_papers",),
            checks=(
                Check(no_paper_without_vector),
                Check(vectors_are_unit_length_and_finite),
                Check(stored_vectors_find_themselves),
            ),
        ),
    ),
    group="papers",
    code_version="1",
    make=_make,
    partitions_per_run=14,  # about a minute: newer papers overtake a backlog between two runs
    reported=lambda workspace, partitions: {NAME: EMBEDDINGS.inputs(workspace, partitions)},
)
