"""Recalling rewrites that are worth imitating, and keeping new ones (B2, B3).

The table in the warehouse is the truth and what is searched; the Chroma collection follows it at once, or at the next
sync where that fails.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from uuid import uuid4

import numpy as np

from paper_assets.errors import InvalidInput, ModelUnavailable, StoreError
from paper_assets.models.embedder import Embedder
from paper_assets.paper import text_hash
from paper_assets.progress import Progress, nobody
from paper_assets.rewriting.faithfulness import unsupported
from paper_assets.rewriting.gate import claimed, stops
from paper_assets.rewriting.measures import Likeness, clean_keywords, copied_share, keywords_of, likeness
from paper_assets.rewriting.pii import mask_pii
from paper_assets.rewriting.recall import best_fitting, remembered
from paper_assets.settings import ARCHIVE, RetrievalConfig, RewritingConfig, Settings
from paper_assets.stores.best_practice_index import sync_best_practices
from paper_assets.stores.best_practices import (
    BestPractice,
    add_unless_alike,
    best_practice,
    originals_without_vector,
    remove_best_practice,
)
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.rewrite_progress import change_note
from paper_assets.stores.rewrites import Attempt, NewItem, RewriteItem, items_with_note
from paper_assets.stores.vectors import SyncReport, VectorIndex
from paper_assets.stores.warehouse import Warehouse

NO_MODEL = "there is no embedding model to compare it with what is kept"  # why a rewrite was refused
_EMBEDDED_AT_ONCE = 500  # what is embedded again, at most, after a kill


@dataclass(frozen=True, slots=True)
class Archive:
    """Where best practices lie and how they are found. Without an embedder words alone find them, and none is kept."""

    warehouse: Warehouse
    index: VectorIndex
    embedder: Embedder | None
    _: KW_ONLY
    collection: str = ARCHIVE
    config: RewritingConfig = field(default_factory=RewritingConfig)
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """The id under which a rewrite was kept, or why it was not. `note`: why Chroma does not hold it yet."""

    id: str | None
    refused: str | None
    note: str | None = None


def archive_of(settings: Settings, warehouse: Warehouse, index: VectorIndex, embedder: Embedder | None) -> Archive:
    """The archive that is in use with these settings."""
    return Archive(
        warehouse,
        index,
        embedder,
        collection=settings.archive,
        config=settings.rewriting,
        retrieval=settings.retrieval,
    )


def retrieve_best_practices(
    archive: Archive, original_text: str, target_level: str, n: int = 3, *, paper_id: str | None = None
) -> list[BestPractice]:
    """The n most relevant best practices, best score first; of other levels only where this one has none (TC8).

    `paper_id`: whose rewrite they are for; none of its own is given, it would be its own solution. Raises StoreError.
    """
    embedder = archive.embedder
    model = embedder.name if embedder else None
    memory = remembered(archive.warehouse, archive.collection, model=model)
    if embedder and not memory.whole:
        embed_originals(archive, embedder)
        memory = remembered(archive.warehouse, archive.collection, model=model)
    if not memory.practices:
        return []
    vector = embedder.encode([original_text])[0] if embedder else None  # equal text is computed once (B6, TC7)
    others = np.ones(len(memory.practices), dtype=bool)
    if paper_id:
        own_text = mask_pii(original_text)
        others = np.array(
            [
                each.paper_id != paper_id and each.original_text not in (original_text, own_text)
                for each in memory.practices
            ]
        )
    for other_levels in (False, True):
        wanted = others & ((memory.levels == target_level) != other_levels)
        found = best_fitting(
            memory, original_text, vector, wanted, n=n, config=archive.config, retrieval=archive.retrieval
        )
        if found:
            return found
    return []


def archive_rewrite(
    archive: Archive,
    item: NewItem,
    *,
    text: str,
    score: int,
    keywords: Sequence[str],
    now: datetime,
    model_version: str,
    shown: Sequence[BestPractice],
    accepted: Collection[str] = (),
    released: bool = False,
) -> Archived:
    """Keep a rewrite of the item, or say why not. `shown`: the examples that its prompt carried; `now`: when written.

    The gate judges it here once more, whoever calls (B2); `accepted`: claims that a person has accepted for the paper;
    `released`: a person has taken the whole text, so that the gate is not asked. Texts and keywords are kept masked,
    and everything else is judged as masked. The same rewrite given twice is kept once and has the same id both times; a
    better one of the same original takes the weaker one's place. Raises StoreError if the warehouse cannot be used;
    Chroma may wait.
    """
    config = archive.config
    if score < config.archived:
        return _refused(f"score {score} is below {config.archived}")
    if not released and (held := _held_back(archive, item, text, shown, accepted)):
        return _refused(f"held back by the gate: {'; '.join(held)}")
    text, original_text = (mask_pii(each) if config.mask_pii else each for each in (text, item.original_text))
    if not text.strip() or not original_text.strip():
        return _refused("there is no text")
    for example in shown:
        share = copied_share(text, example.text, original=original_text)
        # An example made of the same original is a question of likeness, below.
        if share >= config.copied_share and example.original_text != original_text:
            return _refused(f"copies the example {example.id}: {share:.0%} of its word triples stand there")
    embedder = archive.embedder
    if embedder is None:
        return _refused(NO_MODEL)
    practice = BestPractice(
        id=str(uuid4()),
        text=text,
        original_text=original_text,
        score=score,
        target_level=item.target_level,
        keywords=clean_keywords(mask_pii(each) if config.mask_pii else each for each in keywords)
        or keywords_of(original_text),
        made_at=now,
        model_version=model_version,
        paper_id=item.paper_id,
        category=item.category,
    )
    vector = embedder.encode([original_text])  # recall has embedded it already, unless something was masked
    keep_vectors(archive.warehouse, [text_hash(original_text)], vector, model=embedder.name)
    embed_originals(archive, embedder)
    alike = add_unless_alike(
        archive.warehouse,
        practice,
        collection=archive.collection,
        model=embedder.name,
        similarity=config.duplicate_similarity,
    )
    if alike is not None and (alike.text, alike.original_text) != (practice.text, practice.original_text):
        return _refused(f"its original is like that of {alike.id}, kept for the same level with {alike.score}")
    return Archived(id=(alike or practice).id, refused=None, note=_synced(archive))


def likeness_of(embedder: Embedder | None, item: NewItem, text: str, shown: Sequence[BestPractice]) -> Likeness | None:
    """A text that is of another paper is most easily of one whose rewrite its author was shown."""
    others = {example.paper_id or example.id: example.original_text for example in shown}
    return likeness(embedder, title=item.title, original=item.original_text, text=text, others=others)


def masked(practice: BestPractice) -> BestPractice:
    """A best practice without phone numbers and mail addresses."""
    return replace(
        practice,
        text=mask_pii(practice.text),
        original_text=mask_pii(practice.original_text),
        keywords=clean_keywords(map(mask_pii, practice.keywords)),
    )


def remove(archive: Archive, identifier: str) -> str | None:
    """Remove one from the table and from Chroma; returns why Chroma holds it still, if it does. Raises InvalidInput."""
    try:
        remove_best_practice(archive.warehouse, archive.collection, identifier)
    except InvalidInput:
        _synced(archive)  # who removed it may have been killed before Chroma knew
        raise
    return _synced(archive)


def sync_archive(archive: Archive, *, progress: Progress = nobody) -> SyncReport:
    """Embed what has no vector of this model and make Chroma hold what the table holds.

    Raises ModelUnavailable without an embedder, StoreError.
    """
    if archive.embedder is None:
        raise ModelUnavailable("there is no embedding model; the Chroma collection of the archive stays as it is")
    embed_originals(archive, archive.embedder, progress=progress)
    return sync_best_practices(archive.warehouse, archive.index, archive.collection, model=archive.embedder.name)


def embed_originals(archive: Archive, embedder: Embedder, *, progress: Progress = nobody) -> int:
    """Embed the originals that this model has not embedded, some hundred at a time; how many that were."""
    hashes, texts = originals_without_vector(archive.warehouse, archive.collection, model=embedder.name)
    for at in range(0, len(hashes), _EMBEDDED_AT_ONCE):
        part = slice(at, at + _EMBEDDED_AT_ONCE)
        keep_vectors(archive.warehouse, hashes[part], embedder.encode(texts[part]), model=embedder.name)
        progress(min(at + _EMBEDDED_AT_ONCE, len(hashes)), len(hashes))
    return len(hashes)


def _synced(archive: Archive) -> str | None:
    try:
        sync_archive(archive)
    except (StoreError, ModelUnavailable) as fault:
        return f"the index follows later: {fault}"
    return None


def _held_back(
    archive: Archive, item: NewItem, text: str, shown: Sequence[BestPractice], accepted: Collection[str]
) -> tuple[str, ...]:
    found = unsupported(f"{item.title}\n{item.original_text}", text, language=item.language)
    fits = likeness_of(archive.embedder, item, text, shown)
    return (*stops(item, text, likeness=fits), *claimed(found.all, accepted))


def _refused(reason: str) -> Archived:
    return Archived(id=None, refused=reason)


_REFUSED = "not archived: "


def archive_kept(archive: Archive, item: RewriteItem, kept: Attempt) -> str:
    """Offer the attempt that is kept to the archive; what became of it there, in one line. Raises StoreError."""
    shown = []  # also to earlier attempts: each is written from the one before
    for example in dict.fromkeys(each for attempt in item.attempts[: kept.attempt] for each in attempt.examples):
        with suppress(InvalidInput):  # removed since it was shown
            shown.append(best_practice(archive.warehouse, archive.collection, example))
    done = archive_rewrite(
        archive,
        item,
        text=kept.text,
        score=kept.score,
        keywords=kept.keywords,
        now=kept.made_at,
        model_version=kept.model,
        shown=shown,
        accepted=item.accepted,
        released=item.decisions.get(kept.attempt) == "accept",
    )
    outcome = f"archived as {done.id}" if done.id else f"{_REFUSED}{done.refused}"
    return f"{outcome} ({done.note})" if done.note else outcome


def offer_again(archive: Archive) -> int:
    """Offer every finished rewrite that was refused only for want of an embedding model; how many there were.

    What a person has removed stays away: only the item's own note, whole, tells the two apart. Whoever is killed on the
    way does it again; the archive takes the same rewrite once. Raises StoreError.
    """
    if archive.embedder is None:
        return 0
    refused = f"{_REFUSED}{NO_MODEL}"
    items = items_with_note(archive.warehouse, refused)
    for item in items:
        if item.kept_attempt is not None:
            note = archive_kept(archive, item, item.kept_attempt)
            change_note(archive.warehouse, item.item, before=refused, after=note)
    return len(items)
