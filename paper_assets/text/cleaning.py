"""Clean texts from outside, and fence them in a prompt.

Cleaning removes what controls a terminal, reverses a line or breaks a store. Texts are cleaned where a paper, a PDF's
text or a model's answer enters the program, so that later code need not clean them. Characters that scripts need are
kept: joiners (Persian, Indic, emoji) and the marks that give punctuation its direction (Hebrew, Arabic).

A fence is two lines that the text between them cannot contain. A paper, a passage or an earlier answer may contain
instructions to the model. The marks are derived from the text, so that no text contains its own, and the instructions
declare everything between them to be data.
"""

import re
from hashlib import sha256

# Line ends of other systems and what prints as none: white space, which must not glue two words together.
_LINE_END = re.compile("\r\n?")
_OTHER_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
# Control characters and what XML 1.0 cannot hold; embeddings, overrides and isolates, which turn the text after them;
# the invisible copy of ASCII (tags), which only a language model can read.
_HARMFUL = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff\u202a-\u202e\u2066-\u2069"
    "\U000e0000-\U000e007f"
    + "".join(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def without_controls(text: str) -> str:
    """Remove characters that no page, store, terminal or assistant should receive; keep lines and tabs."""
    # What is removed or replaced is not printable; a page is checked eight times faster this way.
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return _HARMFUL.sub("", _OTHER_SPACE.sub(" ", _LINE_END.sub("\n", text)))


def one_line(text: str) -> str:
    """Clean the text and put it on one line with single spaces."""
    return " ".join(without_controls(text).split())


def encodable(text: str) -> str:
    """Replace lone surrogates, which JSON may contain and UTF-8 cannot encode, by question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")


_DIGITS = 24


def fenced(name: str, text: str) -> str:
    """Enclose the text as data between `<name mark>` and `</name mark>`."""
    mark = _mark(text)
    return f"<{name} {mark}>\n{text}\n</{name} {mark}>"


def introduced(what: str, name: str, text: str) -> str:
    """Enclose the text, after a line that describes it and names the mark."""
    return f"{what} between the two lines that hold {_mark(text)}\n{fenced(name, text)}"


def _mark(text: str) -> str:
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:_DIGITS]
