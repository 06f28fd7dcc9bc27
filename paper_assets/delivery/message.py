"""Turn a digest into a message: a subject, a short list in plain text, and one JSON object for webhooks. Pure.

Slack, Mattermost and similar services show the JSON's `text`; `title` and `message` are for services that need them
separately (ntfy's templates); the other keys are for programs. Titles are untrusted: characters that would mention
people or create links in such a service are replaced by similar-looking ones.
"""

from dataclasses import dataclass
from typing import Any

from paper_assets.digests.content import Digest
from paper_assets.digests.plain_text import in_letters, in_words, weekday
from paper_assets.sources.table import page_of

_LONGEST_TITLE, _LONGEST_TEXT = 160, 3_000  # characters; ntfy cuts a message at 4,096 bytes
_WITHOUT_MARKUP = str.maketrans(
    {"<": "‹", ">": "›", "@": "＠", "[": "(", "]": ")", "`": "'", "*": "∗", "_": " ", "|": "/"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """The message for one profile and day. `payload` is the webhook's JSON object (docs/operations.md)."""

    subject: str
    payload: dict[str, Any]


def message_of(digest: Digest, *, desk: str | None = None) -> Message:
    """Build the message of a digest; `desk` is the address of the same day on the review page."""
    count = len(digest.entries)
    subject = (
        f"{digest.profile}, {weekday(digest.day)}, {in_words(digest.day)}: "
        f"{in_letters(count)} paper{'' if count == 1 else 's'}"
    )
    papers = [
        {
            "rank": each.rank,
            "paper_id": each.paper_id,
            "title": each.title,
            "url": page_of(each.paper_id),
            "score": each.score,
        }
        for each in digest.entries
    ]
    lines = [
        f"{each['rank']}. {_without_markup(str(each['title']))}" + (f"\n{each['url']}" if each["url"] else "")
        for each in papers
    ]
    text = "\n".join(lines)
    if len(text) > _LONGEST_TEXT:
        text = text[:_LONGEST_TEXT].rpartition("\n")[0] + "\n…"
    return Message(
        subject=subject,
        payload={
            "text": f"{subject}\n{text}",
            "title": subject,
            "message": text,
            "profile": digest.profile,
            "day": digest.day.isoformat(),
            "papers": papers,
            "desk": desk,
        },
    )


def _without_markup(title: str) -> str:
    title = " ".join(title.translate(_WITHOUT_MARKUP).split())
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
