"""A digest as what is sent: a subject, a short list in plain text, and one JSON object for webhooks. Pure.

The JSON's `text` is what Slack, Mattermost and their like show; `title` and `message` are for services that want them
apart (ntfy's templates); the rest is for programs. Names of papers come from strangers: what would call people or
make a link of a word in such a service is replaced by a sign that looks like it.
"""

from dataclasses import dataclass
from typing import Any

from paper_assets.digests.content import Digest
from paper_assets.digests.plain_text import in_letters, in_words, weekday
from paper_assets.sources.table import page_of

_LONGEST_TITLE, _LONGEST_TEXT = 160, 3_000  # characters; ntfy cuts a message at 4,096 bytes
_HARMLESS = str.maketrans({"<": "‹", ">": "›", "@": "＠", "[": "(", "]": ")", "`": "'", "*": "∗", "_": " ", "|": "/"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What is sent of a profile's day. `payload` is the webhook's JSON object (docs/operations.md)."""

    subject: str
    payload: dict[str, Any]


def message_of(digest: Digest, *, desk: str | None = None) -> Message:
    """The message of a digest; `desk`: the address of the same day on the desk."""
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
    title = " ".join(title.translate(_HARMLESS).split())
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"
