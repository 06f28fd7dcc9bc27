"""Rewrites as a reader sees them: the text that is kept, or what it waits for (SPEC B4)."""

from dataclasses import dataclass
from datetime import datetime

from paper_assets.digests.plain_text import clean, lead, paragraphs
from paper_assets.rewriting.policy import Wait
from paper_assets.rewriting.state import step_of
from paper_assets.settings import Rewriting
from paper_assets.stores.rewrites import RewriteItem

_MOST_PARAGRAPH = 4_000  # characters
_LEVELS = {"public": "for everybody", "student": "for a student", "expert": "for an expert"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A rewrite as it stands on the page; without a text where it waits for a person or is not written yet.

    `made_at`: when that of which it tells was written.
    """

    level: str
    state: str
    paragraphs: tuple[str, ...]
    made_at: datetime | None = None


def version_of(item: RewriteItem, *, numbers: Rewriting) -> Version | None:
    """A rewrite, or what it waits for; None where somebody has cancelled it."""
    level, kept = _LEVELS.get(item.target_level, clean(item.target_level)), item.kept_attempt
    if kept is not None:
        warning = (
            ", the best of its attempts and yet below what is asked" if item.outcome == "best_with_warning" else ""
        )
        text = tuple(lead(part, _MOST_PARAGRAPH) for part in paragraphs(kept.text))
        return Version(level=level, state=f"{kept.score} of 100{warning}", paragraphs=text, made_at=kept.made_at)
    if item.outcome is not None:
        return None
    if not isinstance(step_of(item, numbers=numbers), Wait):
        return Version(level=level, state="not written yet", paragraphs=())
    last = item.attempts[-1]
    return Version(level=level, state=f"{last.score} of 100, waits for a decision", paragraphs=(), made_at=last.made_at)
