"""Text of papers made fit for a page: one line, no control characters, bounded; addresses of the web or none.

What a format takes for markup is its renderer's to escape.
"""

import re
from datetime import date
from urllib.parse import quote, urlsplit

# Control characters, and what XML 1.0 cannot hold; marks that turn the direction of the text after them.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff\u202a-\u202e\u2066-\u2069]"
)
_NO_CHARACTERS = "".join(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
_LAST_OF_PLANE = re.compile(f"[{_NO_CHARACTERS}]")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_NO_HOST = re.compile(r"[\s<>\"'`\\(){}\[\]|^]")
_BLANK_LINE = re.compile(r"\n\s*\n")
_SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s)")
_KEPT_IN_ADDRESS = "/:?#&=%+,;@~!._-"  # the rest is encoded: quotes, brackets and blanks end an address in some format


def clean(text: str) -> str:
    """The text as one line that every format can hold."""
    return " ".join(storable(" ".join(text.split())).split())


def storable(text: str) -> str:
    """The text, its lines as they are, without characters that XML cannot hold or that turn what stands after them."""
    return _LAST_OF_PLANE.sub("", _UNFIT.sub("", text))


def paragraphs(text: str) -> tuple[str, ...]:
    """The paragraphs of a text, each as one line."""
    return tuple(line for part in _BLANK_LINE.split(text.replace("\r\n", "\n")) if (line := clean(part)))


def lead(text: str, most: int) -> str:
    """The first sentences of a clean text that fit into `most` characters; else as many words, and an ellipsis."""
    if len(text) <= most:
        return text
    ends = [found.end() for found in _SENTENCE_END.finditer(text, 0, most + 1) if found.end() <= most]
    if ends and ends[-1] >= most // 2:
        return text[: ends[-1]]
    return f"{text[: most - 1].rsplit(' ', 1)[0]}…"


def in_words(day: date) -> str:
    """13 March 2026; the names are ours, for strftime's depend on the locale."""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def weekday(day: date) -> str:
    return _WEEKDAYS[day.weekday()]


def web_address(url: str | None) -> str | None:
    """The address if it is one of the web (http, https, a host, nobody's name and password), safe in every format."""
    try:
        parts = urlsplit((url or "").strip())
        named = parts.scheme in ("http", "https") and parts.hostname and "@" not in parts.netloc
    except ValueError:
        return None
    if not named or clean(parts.netloc) != parts.netloc or _NO_HOST.search(parts.netloc):
        return None
    return quote(clean(parts.geturl()), safe=_KEPT_IN_ADDRESS)
