"""Rewrites as a reader sees them: the text that is kept, or what it waits for (SPEC B4)."""

from dataclasses import dataclass
from datetime import datetime

from paper_assets.digests.plain_text import lead, paragraphs
from paper_assets.rewriting.gate import held_back, listed, unaccepted
from paper_assets.rewriting.loop import step_of
from paper_assets.rewriting.policy import Wait
from paper_assets.settings import RewritingConfig
from paper_assets.stores.rewrites import Attempt, RewriteItem
from paper_assets.text.cleaning import one_line

_MOST_PARAGRAPH = 4_000  # characters
LEVELS_IN_WORDS = {"public": "for everybody", "student": "for a student", "expert": "for an expert"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A rewrite as it stands on the page; without a text where it waits for a person or is not written yet.

    `by`: that a machine wrote it, and which; `doubts`: what nobody found in the original, or why it waits. `made_at`:
    when that of which it tells was written. `language`: of the paragraphs. `item`: by which the desk knows it; `waits`:
    for a person.
    """

    level: str
    state: str
    paragraphs: tuple[str, ...]
    by: str = ""
    doubts: tuple[str, ...] = ()
    language: str | None = None
    made_at: datetime | None = None
    item: str = ""
    waits: bool = False


def version_of(item: RewriteItem, *, config: RewritingConfig) -> Version | None:
    """A rewrite, or what it waits for; None where somebody has cancelled it."""
    level, kept = LEVELS_IN_WORDS.get(item.target_level, one_line(item.target_level)), item.kept_attempt
    if kept is not None:
        warning = (
            ", the best of its attempts and yet below what is asked" if item.outcome == "best_with_warning" else ""
        )
        text = tuple(lead(part, _MOST_PARAGRAPH) for part in paragraphs(kept.text))
        return Version(
            level=level,
            state=f"{kept.score} of 100{warning}",
            paragraphs=text,
            by=_by(kept),
            doubts=_doubts(item, kept),
            language=item.language,
            made_at=kept.made_at,
            item=item.item,
        )
    if item.outcome is not None:
        return None
    step = step_of(item, config=config)
    if not isinstance(step, Wait):
        return Version(level=level, state="not written yet", paragraphs=(), item=item.item)
    last = item.attempts[step.attempt - 1]
    return Version(
        level=level,
        state=f"{last.score} of 100, waits for a decision",
        paragraphs=(),
        doubts=tuple(one_line(f"Held back: {reason}") for reason in held_back(item, last)),
        made_at=last.made_at,
        item=item.item,
        waits=True,
    )


def _by(kept: Attempt) -> str:
    return f"Written by a machine ({one_line(kept.model)}) from the abstract, and no substitute for it."


def _doubts(item: RewriteItem, kept: Attempt) -> tuple[str, ...]:
    """What a reader should check: not found in the original, also where a person has accepted it."""
    open_claims = unaccepted(kept.unsupported, item.accepted)
    accepted = [claim for claim in kept.unsupported if claim not in open_claims]
    lines = [f"Not in the original: {listed(open_claims)}."] if open_claims else []
    lines += [f"Not in the original, accepted by a person: {listed(accepted)}."] if accepted else []
    lines += [f"Accepted by a person, though {reason}." for reason in kept.stopped]
    return tuple(one_line(line) for line in lines)
