"""Migrate a collection of best practices to another version of it (B1).

Every step adds only what is missing, in batches of one transaction each, and writes only to the new collection: an
interrupted migration continues when it is run again, and a second migration changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidInput
from paper_assets.paper import parse_instant
from paper_assets.progress import Progress, ignore_progress
from paper_assets.rewriting.best_practices import Archive, embed_originals, masked, sync_archive
from paper_assets.rewriting.gate import unusable
from paper_assets.rewriting.measures import clean_keywords
from paper_assets.rewriting.policy import LEVELS
from paper_assets.stores.best_practices import BestPractice, add_missing, best_practices, counts, ids_of
from paper_assets.stores.chroma import ForeignRow, foreign_rows

_AT_ONCE = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Migrated:
    """The result of a migration: best practices copied, originals embedded, and why entries were left out."""

    copied: int
    embedded: int
    faults: tuple[str, ...] = ()


def migrate(
    archive: Archive,
    source: str,
    *,
    folder: Path | None = None,
    progress: Progress = ignore_progress,
    at_once: int = _AT_ONCE,
) -> Migrated:
    """Copy collection `source` to `archive.collection`, keeping the ids, and index it.

    The source is read from the warehouse or, if it is not there, from a Chroma collection of this name
    in the index folder or in `folder`. Texts and keywords are masked. Originals that this model has not embedded are
    embedded; vectors of a foreign collection are not trusted. Unusable texts (a refusal, a copy of the original, no
    visible text) are left out and reported. The rest of the gate is skipped: a collection holds neither title nor
    language nor accepted claims, so it would reject texts that a person accepted. Raises InvalidInput,
    ModelUnavailable, StoreError.
    """
    if source == archive.collection:
        raise InvalidInput(f"--from and --to both name {source}; a migration needs two versions")
    faults: list[str] = []
    copied = 0
    if folder is None and counts(archive.warehouse).get(source):
        held = set(ids_of(archive.warehouse, archive.collection))
        missing = [each for each in best_practices(archive.warehouse, source) if each.id not in held]
        missing = _usable(missing, faults)
        copied = add_missing(archive.warehouse, _masked_if_required(archive, missing), collection=archive.collection)
    else:
        for rows in foreign_rows(archive.index, source, folder=folder, at_once=at_once):
            practices = []
            for row in rows:
                try:
                    practices.append(_practice(row))
                except InvalidInput as fault:
                    faults.append(str(fault))
            copied += add_missing(
                archive.warehouse,
                _masked_if_required(archive, _usable(practices, faults)),
                collection=archive.collection,
            )
            progress(copied, copied)
    embedded = embed_originals(archive, archive.embedder, progress=progress) if archive.embedder else 0
    sync_archive(archive)
    return Migrated(copied=copied, embedded=embedded, faults=tuple(faults))


def _usable(practices: Sequence[BestPractice], faults: list[str]) -> list[BestPractice]:
    """Return the usable best practices and add the reasons against the others to `faults`."""
    held = {each.id: unusable(each.text, each.original_text) for each in practices}
    faults += [f"{each}: held back by the gate: {'; '.join(why)}" for each, why in held.items() if why]
    return [each for each in practices if not held[each.id]]


def _masked_if_required(archive: Archive, practices: Sequence[BestPractice]) -> list[BestPractice]:
    """Mask the best practices if the archive masks now; they may have been stored when it did not."""
    return [masked(each) if archive.config.mask_pii else each for each in practices]


def _practice(row: ForeignRow) -> BestPractice:
    """Convert an entry of a collection (B1) to a best practice. Raises InvalidInput with its id and key."""
    metadata = row.metadata
    text, original_text = (
        _text(row, "the document", row.document),
        _text(row, "original_text", metadata.get("original_text")),
    )
    level = metadata.get("target_level")
    if level not in LEVELS:
        raise InvalidInput(f"{row.id}: target_level must be one of {', '.join(LEVELS)}, got {level!r}")
    try:
        made_at = parse_instant(str(metadata.get("timestamp")))
    except ValueError:
        raise InvalidInput(f"{row.id}: timestamp must be an ISO time, got {metadata.get('timestamp')!r}") from None
    return BestPractice(
        id=row.id,
        text=text,
        original_text=original_text,
        score=_score(row),
        target_level=level,
        keywords=clean_keywords(str(metadata.get("keywords") or "").split(",")),
        made_at=made_at,
        model_version=str(metadata.get("model_version") or "unknown"),
        paper_id=str(metadata.get("paper_id") or ""),
        category=_optional(metadata, "category"),
    )


def _text(row: ForeignRow, name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{row.id}: {name} is empty or not a text")
    return value


def _score(row: ForeignRow) -> int:
    score = row.metadata.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not (isfinite(score) and 0 <= score <= 100):
        raise InvalidInput(f"{row.id}: score must be a number from 0 to 100, got {score!r}")
    return int(score)  # rounded down: 94.9 is below 95


def _optional(metadata: Mapping[str, Any], key: str) -> str | None:
    value = metadata.get(key)
    return str(value) if value else None
