"""Clean texts from outside: remove what controls a terminal, reverses a line or breaks a store.

Texts are cleaned where a paper, a PDF's text or a model's answer enters the program, so no later code has to.
Characters that scripts need are kept: joiners (Persian, Indic, emoji) and the marks that give punctuation its direction
(Hebrew, Arabic).
"""

import re

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
