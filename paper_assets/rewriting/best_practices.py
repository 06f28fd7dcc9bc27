"""Archive rewrites worth imitating, recall them as examples, and remove them (B2, B3).

The table in the warehouse is the truth. The Chroma collection, which recall asks, is updated right after it, or at the
next update if that fails.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.errors import InvalidInput, ModelUnavailable, StoreError
from paper_assets.models.embedder import Embedder
from paper_assets.paper import text_hash
from paper_assets.progress import Progress, ignore_progress
from paper_assets.retrieval.merge import reciprocal_rank_fusion
from paper_assets.rewriting.gate import (
    NOT_CHECKED,
    claim_key,
    stop_reasons,
    unaccepted,
    unsettled,
    unsettled_in_words,
)
from paper_assets.rewriting.measures import TopicFit, clean_keywords, copied_share, keywords_of, topic_fit
from paper_assets.rewriting.pii import mask_pii
from paper_assets.settings import ARCHIVE, RetrievalConfig, RewritingConfig, Settings
from paper_assets.stores.best_practices import (
    BestPractice,
    add_unless_alike,
    best_practice,
    originals_without_vector,
    practices_for,
    remove_best_practice,
)
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.rewrite_progress import change_note
from paper_assets.stores.rewrites import Attempt, NewItem, RewriteItem, items_with_note
from paper_assets.stores.vectors import SyncReport, nearest, update
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.bm25 import bm25, query_words
from paper_assets.text.forward_index import indexed
from paper_assets.text.support import missing

NO_MODEL = "there is no embedding model to compare it with what is kept"  # why a rewrite was refused
_EMBEDDED_AT_ONCE = 500  # batch size: what a kill can make necessary to embed again


@dataclass(frozen=True, slots=True)
class Archive:
    """Where best practices are stored and found. Without an embedder nothing is archived, and words recall."""

    warehouse: Warehouse
    index: VectorIndex
    embedder: Embedder | None
    _: KW_ONLY
    collection: str = ARCHIVE
    config: RewritingConfig = field(default_factory=RewritingConfig)
    retrieval: RetrievalConfig = field(default_factory=RetrievalConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """The id of an archived rewrite, or the reason why it was refused. `note`: why Chroma does not hold it yet."""

    id: str | None
    refused: str | None
    note: str | None = None


def archive_of(settings: Settings, warehouse: Warehouse, index: VectorIndex, embedder: Embedder | None) -> Archive:
    """Return the archive that these settings use."""
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
    """Return the n most relevant best practices, best score first; those of other levels only if this level has none
    (TC8).

    `paper_id`: the paper that is being rewritten; its own rewrites are left out, because they would be the solution.
    Raises StoreError.
    """
    embedder = archive.embedder
    if embedder:
        embed_originals(archive, embedder)
    vector = embedder.encode([original_text])[0] if embedder else None  # the embedder caches equal text (B6, TC7)
    for other_levels in (False, True):
        if found := _best_fitting(archive, original_text, vector, target_level, other_levels, n, paper_id=paper_id):
            return found
    return []


def _best_fitting(
    archive: Archive,
    text: str,
    vector: NDArray[np.float32] | None,
    level: str,
    other_levels: bool,
    n: int,
    *,
    paper_id: str | None,
) -> list[BestPractice]:
    """Return the n most relevant best practices of a level, or of all others, in the order of their scores.

    Those of `paper_id` and of this text are left out, and those with too low a score. Meaning: the nearest of the
    Chroma collection, or of the table while Chroma cannot answer.
    """
    config, model = archive.config, archive.embedder.name if archive.embedder else None
    excluded = {text, mask_pii(text)} if paper_id else set[str]()
    with archive.warehouse.reading() as connection:
        practices, cosines = practices_for(
            connection,
            archive.collection,
            level=level,
            other_levels=other_levels,
            least_score=config.recalled,
            model=model,
            vector=vector,
        )
        named = None
        if vector is not None and model is not None and practices:
            own_level = {"target_level": {"$ne" if other_levels else "$eq": level}}
            where = {"$and": [own_level, {"score": {"$gte": config.recalled}}]}
            k = config.recall_depth + len(excluded)
            answer = nearest(archive.index, connection, archive.collection, vector, k=k, model=model, where=where)
            named = None if answer.reason else set(answer.ids)
    allowed = [
        at
        for at, practice in enumerate(practices)
        if not (paper_id and practice.paper_id == paper_id) and practice.original_text not in excluded
    ]
    chosen, near = [practices[at] for at in allowed], cosines[allowed] if vector is not None else None
    return most_relevant(chosen, text, near, named=named, n=n, config=config, retrieval=archive.retrieval)


def most_relevant(
    practices: Sequence[BestPractice],
    text: str,
    cosines: NDArray[np.float64] | None,
    *,
    named: Collection[str] | None = None,
    n: int,
    config: RewritingConfig,
    retrieval: RetrievalConfig,
) -> list[BestPractice]:
    """Return the n most relevant by meaning and words, best score first.

    `practices` are ascending by id, `cosines` (n,) those of their originals (None: words alone), `named` the nearest
    that Chroma knows (None: all). Best practices with too distant a meaning are removed before ranks are assigned, so
    that they displace no other. The score decides only the order of what is shown.
    """
    kept = [at for at in range(len(practices)) if cosines is None or cosines[at] >= config.recall_floor]
    originals = [f"{practices[at].original_text} {' '.join(practices[at].keywords)}" for at in kept]
    texts = indexed(pa.chunked_array([pa.array(originals, pa.string())]))
    words = query_words(text)
    holders = texts.holders_of([word.forms for word in words])
    by_words = bm25(words, holders, texts.lengths, k1=retrieval.bm25_k1, b=retrieval.bm25_b)
    rankings = [_best_first([practices[at].id for at in kept], by_words, above=0.0, most=config.recall_depth)]
    if cosines is not None:
        near = [at for at in kept if named is None or practices[at].id in named]
        ids = [practices[at].id for at in near]
        rankings.append(_best_first(ids, cosines[near], above=-1.0, most=config.recall_depth))
    fused = reciprocal_rank_fusion(rankings, constant=retrieval.fusion_constant)
    by_id = {practice.id: practice for practice in practices}
    return sorted((by_id[each] for each in list(fused)[:n]), key=lambda practice: -practice.score)


def _best_first(ids: Sequence[str], scores: NDArray[np.floating], *, above: float, most: int) -> list[str]:
    """Return at most `most` ids with a score above `above`; ids are ascending, which decides ties."""
    order = np.argsort(-scores, kind="stable")[:most]
    return [ids[at] for at in order.tolist() if scores[at] > above]


def archive_rewrite(
    archive: Archive,
    item: NewItem,
    attempt: Attempt,
    *,
    shown: Sequence[BestPractice],
    accepted: Collection[str] = (),
    released: bool = False,
) -> Archived:
    """Archive an attempt at the item, or return why it was refused. `shown`: the examples in its prompt.

    The gate judges the text here again (B2). `accepted`: claims that a person has accepted for the paper; `released`: a
    person has accepted the whole text, so the gate is skipped. Texts and keywords are stored masked, and every check
    after the gate uses the masked text. The same rewrite archived twice is stored once and keeps its id; a better
    rewrite of the same original replaces the weaker one. Raises StoreError if the warehouse cannot be used; a failing
    Chroma raises nothing.
    """
    config = archive.config
    if attempt.score < config.archived:
        return _refused(f"score {attempt.score} is below {config.archived}")
    if not released and (reason := _held_back(archive, item, attempt.text, shown, accepted)):
        return _refused(reason)
    practice = _practice_of(item, attempt, mask=mask_pii if config.mask_pii else str)
    text, original_text = practice.text, practice.original_text
    if not text.strip() or not original_text.strip():
        return _refused("there is no text")
    for example in shown:
        share = copied_share(text, example.text, original=original_text)
        # Examples of the same original are compared by similarity below.
        if share >= config.copied_share and example.original_text != original_text:
            return _refused(f"copies the example {example.id}: {100 * share:.0f} % of its word triples are in it")
    embedder = archive.embedder
    if embedder is None:
        return _refused(NO_MODEL)
    vector = embedder.encode([original_text])  # cached by recall, unless something was masked
    keep_vectors(archive.warehouse, [text_hash(original_text)], vector, model=embedder.name)
    embed_originals(archive, embedder)
    alike = add_unless_alike(
        archive.warehouse,
        practice,
        collection=archive.collection,
        model=embedder.name,
        similarity=config.duplicate_similarity,
    )
    if alike is not None and (alike.text, alike.original_text) != (text, original_text):
        return _refused(f"its original is like that of {alike.id}, kept for the same level with {alike.score}")
    return Archived(id=(alike or practice).id, refused=None, note=_synced(archive))


def _practice_of(item: NewItem, attempt: Attempt, *, mask: Callable[[str], str]) -> BestPractice:
    """Return the best practice that the attempt would become; `mask` is applied to its texts and keywords."""
    original_text = mask(item.original_text)
    return BestPractice(
        id=str(uuid4()),
        text=mask(attempt.text),
        original_text=original_text,
        score=attempt.score,
        target_level=item.target_level,
        keywords=clean_keywords(map(mask, attempt.keywords)) or keywords_of(original_text),
        made_at=attempt.made_at,
        model_version=attempt.model,
        paper_id=item.paper_id,
        category=item.category,
    )


def topic_fit_of(embedder: Embedder | None, item: NewItem, text: str, shown: Sequence[BestPractice]) -> TopicFit | None:
    """Compare a text with its own original and with the originals of the examples that its author was shown.

    A rewrite that is about the wrong paper is most often about one of those.
    """
    others = {example.paper_id or example.id: example.original_text for example in shown}
    return topic_fit(embedder, title=item.title, original=item.original_text, text=text, others=others)


def masked(practice: BestPractice) -> BestPractice:
    """Return a best practice with phone numbers and mail addresses masked."""
    return replace(
        practice,
        text=mask_pii(practice.text),
        original_text=mask_pii(practice.original_text),
        keywords=clean_keywords(map(mask_pii, practice.keywords)),
    )


def remove(archive: Archive, identifier: str) -> str | None:
    """Remove a best practice; return why Chroma still holds it, if it does. Raises InvalidInput."""
    try:
        remove_best_practice(archive.warehouse, archive.collection, identifier)
    except InvalidInput:
        _synced(archive)  # an earlier removal may have been killed before it reached Chroma
        raise
    return _synced(archive)


def sync_archive(archive: Archive, *, progress: Progress = ignore_progress) -> SyncReport:
    """Embed originals without a vector of this model and make Chroma equal to the table.

    Raises ModelUnavailable without an embedder, StoreError.
    """
    if archive.embedder is None:
        raise ModelUnavailable("there is no embedding model; the Chroma collection of the archive stays as it is")
    embed_originals(archive, archive.embedder, progress=progress)
    return update(archive.index, archive.warehouse, [archive.collection], model=archive.embedder.name)


def embed_originals(archive: Archive, embedder: Embedder, *, progress: Progress = ignore_progress) -> int:
    """Embed the originals that this model has not embedded, in batches; return their number."""
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
) -> str | None:
    """Return why the gate refuses a text: what stops it, or else its open questions (B2)."""
    fits = topic_fit_of(archive.embedder, item, text, shown)
    if held := stop_reasons(item, text, fit=fits):
        return f"held back by the gate: {'; '.join(held)}"
    found = list(dict.fromkeys(missing(text, f"{item.title}\n{item.original_text}")))
    return unsettled_in_words(unaccepted(found, accepted))


def _refused(reason: str) -> Archived:
    return Archived(id=None, refused=reason)


_REFUSED = "not archived: "


def archive_kept(archive: Archive, item: RewriteItem, kept: Attempt) -> str:
    """Offer the kept attempt to the archive; return the outcome in one line. Raises StoreError."""
    released = item.decisions.get(kept.attempt) == "accept"
    if note := unsettled(item, kept):
        return f"{_REFUSED}{note}"
    shown = []  # examples of earlier attempts too: each attempt is written from the one before
    for example in dict.fromkeys(each for attempt in item.attempts[: kept.attempt] for each in attempt.examples):
        with suppress(InvalidInput):  # removed in the meantime
            shown.append(best_practice(archive.warehouse, archive.collection, example))
    done = archive_rewrite(
        archive,
        item,
        kept,
        shown=shown,
        accepted={*item.accepted, *(claim_key(each) for each in kept.disputed if each not in kept.unsupported)},
        released=released,
    )
    outcome = f"archived as {done.id}" if done.id else f"{_REFUSED}{done.refused}"
    return f"{outcome} ({done.note})" if done.note else outcome


def offer_again(archive: Archive) -> int:
    """Offer again every finished rewrite that was refused only because there was no embedding model, or because it was
    not checked and a person has accepted it since; return their number.

    A rewrite that a person has removed is not offered again: its item has another note. An interrupted call is simply
    repeated, because the archive takes the same rewrite only once. Raises StoreError.
    """
    if archive.embedder is None:
        return 0
    unjudged = items_with_note(archive.warehouse, f"{_REFUSED}{NO_MODEL}")
    asked = items_with_note(archive.warehouse, f"{_REFUSED}{NOT_CHECKED}")
    offered = 0
    for item in (*unjudged, *asked):
        kept = item.kept_attempt
        if kept is None or (item in asked and unsettled(item, kept)):
            continue
        change_note(archive.warehouse, item.item, before=item.note or "", after=archive_kept(archive, item, kept))
        offered += 1
    return offered
