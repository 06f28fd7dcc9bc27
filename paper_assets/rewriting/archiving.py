"""Finished rewrites on their way into the archive, and those that it could not judge offered again (B2)."""

from contextlib import suppress

from paper_assets.errors import InvalidInput
from paper_assets.rewriting.best_practices import NO_MODEL, Archive, archive_rewrite
from paper_assets.stores.best_practices import best_practice
from paper_assets.stores.rewrite_progress import change_note
from paper_assets.stores.rewrites import Attempt, RewriteItem, items_with_note

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
