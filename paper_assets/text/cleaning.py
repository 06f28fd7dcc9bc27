"""Texts of other people made harmless: what steers a terminal, turns a line round or breaks a store is taken out.

Cleaned at the door, where a paper, a PDF's text or a model's answer comes in, so that nothing behind it has to.
What scripts need stays: joiners (Persian, Indic, emoji) and the marks that give a punctuation sign its direction
(Hebrew, Arabic).
"""

import re

# Line ends of other systems and what prints as none: white space, which must not glue two words together.
_LINE_END = re.compile("\r\n?")
_OTHER_SPACE = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
# Control characters and what XML 1.0 cannot hold; embeddings, overrides and isolates, which turn the text after them;
# the invisible copy of ASCII (tags), in which a text speaks to a language model and to nobody else.
_HARMFUL = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufeff\ufffe\uffff\u202a-\u202e\u2066-\u2069"
    "\U000e0000-\U000e007f"
    + "".join(chr(plane << 16 | last) for plane in range(1, 17) for last in (0xFFFE, 0xFFFF))
    + "]"
)


def without_controls(text: str) -> str:
    """The text, its lines and tabs as they are, without what no page, store, terminal or assistant should meet."""
    if text.isascii() and text.isprintable():
        return text
    return _HARMFUL.sub("", _OTHER_SPACE.sub(" ", _LINE_END.sub("\n", text)))


def one_line(text: str) -> str:
    """The same on one line, with single spaces."""
    return " ".join(without_controls(text).split())


def encodable(text: str) -> str:
    """The text with half surrogate pairs, which JSON may carry and UTF-8 cannot hold, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
