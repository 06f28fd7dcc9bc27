"""Prepare texts of papers for a page: one line, no control characters, limited length; http(s) URLs only.

Each renderer escapes the markup of its format.
"""

import re
from datetime import date
from urllib.parse import quote, urlsplit

from paper_assets.text.cleaning import one_line
from paper_assets.text.sentences import cut_with_ellipsis

_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_NO_HOST = re.compile(r"[\s<>\"'`\\(){}\[\]|^]")
_BLANK_LINE = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)")
_KEPT_IN_ADDRESS = "/:?#&=%+,;@~!._-"  # the rest is encoded: quotes, brackets and blanks end an address in some format


def paragraphs(text: str) -> tuple[str, ...]:
    """Split a text into paragraphs, each on one line."""
    return tuple(line for part in _BLANK_LINE.split(text.replace("\r\n", "\n")) if (line := one_line(part)))


def lead(text: str, most: int) -> str:
    """Return the first sentences of a clean text that fit into `most` characters; otherwise whole words and an
    ellipsis.
    """
    if len(text) <= most:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, most + 1) if found.end() <= most]
    if ends and ends[-1] >= most // 2:
        return text[: ends[-1]]
    return cut_with_ellipsis(text, most)


def sentence(text: str) -> str:
    """Capitalise the first letter and remove the final full stop."""
    return text[:1].upper() + text[1:].removesuffix(".")


def in_words(day: date) -> str:
    """Format a day as 13 March 2026, independently of the locale."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def in_letters(count: int) -> str:
    """Write numbers up to twelve as words."""
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)


def weekday(day: date) -> str:
    """Return the English name of the weekday."""
    return _WEEKDAYS[day.weekday()]


def long_day(day: date) -> str:
    """Format a day as Friday, 13 March 2026."""
    return f"{weekday(day)}, {in_words(day)}"


def web_address(url: str | None) -> str | None:
    """Return the URL if it is http(s) with a host and without credentials, escaped for every format; otherwise None."""
    try:
        parts = urlsplit((url or "").strip())
        named = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return None
    if not named or one_line(parts.netloc) != parts.netloc or _NO_HOST.search(parts.netloc):
        return None
    return quote(one_line(parts.geturl()), safe=_KEPT_IN_ADDRESS)
