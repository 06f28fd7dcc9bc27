"""`best_practice_archive`: rewrites that serve as examples, with the Chroma collection that follows the table (B1).

Best practices are stored where rewrites end (rewriting/best_practices.py); this step updates their index and shows a
person whether the archive is worth learning from.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import groupby

from paper_assets.pipeline.embeddings import NO_MODEL, SAMPLE, index_finds_its_vectors
from paper_assets.pipeline.staleness import ARCHIVE
from paper_assets.pipeline.step import (
    WHOLE,
    Check,
    Checked,
    Columns,
    Made,
    Partition,
    Product,
    Report,
    Step,
    Table,
    Value,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.rewriting.best_practices import Archive, archive_of, offer_again, sync_archive
from paper_assets.rewriting.pii import find_pii
from paper_assets.rewriting.policy import LEVELS
from paper_assets.stores.best_practices import BestPractice, best_practices, ids_of, with_vectors

NAME = "best_practice_archive"
_SPREAD_FROM = 10  # with fewer best practices the spread has no meaning
_MOST_SHARE = 0.8  # of one level or category; above it, the others get examples from another field


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Add what waited for the model and bring the collection up to date."""
    archive = archive_of(workspace.settings, workspace.warehouse, workspace.vector_index, workspace.embedder())
    if archive.embedder is not None:
        if again := offer_again(archive):
            workspace.log.info(f"{again} rewrites offered again that no embedding model could judge")
        workspace.log.info(f"index: {sync_archive(archive, progress=workspace.progress)}")
    return Made(new={WHOLE: True}, details=archive)


def _practices_of(workspace: Workspace) -> list[BestPractice]:
    return best_practices(workspace.warehouse, workspace.settings.archive)


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report the archive and its newest entries; its version changes with its content. The page shows its spread."""
    archive, kept = made.details, _practices_of(workspace)
    model = archive.embedder.name if archive.embedder else "none"
    values: dict[str, Value] = {
        "dagster/row_count": len(kept),
        "dagster/column_schema": Columns(
            [
                ("id", "string", "UUIDv4, kept by migrations"),
                ("text", "string", "the rewrite, masked"),
                ("original_text", "string", "what it was made from, masked; what is embedded"),
                ("score", "int", "the critic's, 0 to 100"),
                ("target_level", "string", "public, student or expert"),
                ("keywords", "list<string>", "keywords of the paper"),
                ("made_at", "timestamp", "when the rewrite was written, UTC"),
                ("model_version", "string", "model that wrote it"),
                ("paper_id", "string", "arXiv id without version"),
                ("category", "string", "primary category"),
            ]
        ),
        "collection": archive.collection,
        "model": model,
        "newest": Table(
            ["id", "paper", "level", "score", "keywords", "rewrite"],
            [
                (each.id, each.paper_id, each.target_level, each.score, ", ".join(each.keywords), each.text)
                for each in kept[:10]
            ],
        ),
    }
    return Report(_version(archive.collection, model, [each.id for each in kept]), values)


def _version(collection: str, model: str, ids: Sequence[str]) -> str:
    lines = "\n".join(sorted(ids))
    return sha256(f"{collection} {model}\n{lines}".encode()).hexdigest()[:32]


def _reported(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[str, Mapping[Partition, str]]:
    """Return the version of a stored archive: new best practices make it due."""
    collection = workspace.settings.archive
    ids = ids_of(workspace.warehouse, collection)
    return {NAME: {WHOLE: _version(collection, workspace.embedding_model() or "none", ids)}} if ids else {}


def archive_is_spread_over_levels_and_categories(
    workspace: Workspace, partitions: Sequence[Partition], made: Made
) -> Checked:
    """Every level has best practices, and no level or category nearly all of them."""
    kept = _practices_of(workspace)
    levels = Counter(each.target_level for each in kept)
    categories = Counter(each.category or "unknown" for each in kept)
    lopsided = [
        f"{name}: {count} of {len(kept)}"
        for counted in (levels, categories)
        for name, count in counted.items()
        if count > _MOST_SHARE * len(kept)
    ]
    missing = [level for level in LEVELS if not levels[level]]
    return Checked(
        passed=len(kept) < _SPREAD_FROM or not (lopsided or missing),
        counted={"best_practices": len(kept), "levels_without": missing, "lopsided": lopsided},
    )


def no_unmasked_pii(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """No text or keyword contains a phone number or mail address."""
    kept = _practices_of(workspace)
    unmasked = {each.id: kinds for each in kept if (kinds := _pii_in(each))}
    return Checked(
        passed=not unmasked, counted={"best_practices": len(kept), "unmasked": dict(list(unmasked.items())[:20])}
    )


def _pii_in(practice: BestPractice) -> str:
    """Return the kinds of personal data that should be masked, never the data."""
    found = [pii.kind for text in (practice.text, practice.original_text, *practice.keywords) for pii in find_pii(text)]
    return ", ".join(kind for kind, _ in groupby(sorted(found)))


def vectors_find_themselves(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """A sample of originals is found by its own vectors."""
    archive: Archive = made.details or archive_of(
        workspace.settings, workspace.warehouse, workspace.vector_index, workspace.embedder()
    )
    if archive.embedder is None:
        return NO_MODEL
    ids = sorted(each.id for each in _practices_of(workspace))
    sample = ids[:: max(1, len(ids) // SAMPLE)][:SAMPLE]
    practices, vectors = with_vectors(archive.warehouse, archive.collection, sample, model=archive.embedder.name)
    return index_finds_its_vectors(archive.index, archive.collection, [each.id for each in practices], vectors)


STEP = Step(
    tracked=ARCHIVE,
    products=(
        Product(
            name=NAME,
            description="Rewrites that scored 95 or more, masked, each unlike the others, as examples for later ones.",
            kinds=frozenset({"duckdb", "chroma"}),
            report=_report,
            deps=("paper_rewrites",),
            checks=(
                Check(archive_is_spread_over_levels_and_categories),
                Check(no_unmasked_pii),
                Check(vectors_find_themselves),
            ),
        ),
    ),
    group="reading",
    code_version="1",
    make=_make,
    reported=_reported,
    partitions_per_run=None,
)
