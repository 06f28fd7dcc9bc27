"""Normalise and split texts: the one normal form in which texts are compared, and the one way to split them into words.

Everything that asks whether two texts contain the same word uses this module: keywords, BM25, names, notes, the
taxonomy. Code that needs another splitter (PDF text, the check of a rewrite's claims) has it in its own module with the
reason.
"""

import re
from collections.abc import Sequence
from unicodedata import normalize

import numpy as np

# What an interest may hold without meaning it.
SMALL_WORDS = frozenset([
    "a", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have", "how",
    "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "our", "such", "than", "that", "the",
    "their", "then", "there", "these", "they", "this", "those", "to", "use", "used", "using", "via", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with",
])  # fmt: skip
# With auxiliaries, pronouns and the like, of which interests are free and sentences (questions, claims) full.
FUNCTION_WORDS = SMALL_WORDS.union([
    "about", "above", "after", "again", "against", "all", "also", "am", "because", "been", "before", "being",
    "below", "between", "both", "could", "did", "does", "doing", "down", "during", "each", "few", "further", "had",
    "having", "he", "her", "here", "hers", "him", "his", "i", "just", "may", "me", "might", "more", "most", "must",
    "my", "nor", "off", "once", "only", "other", "out", "over", "own", "s", "same", "she", "should", "so", "some",
    "t", "through", "too", "under", "until", "up", "us", "very", "while", "whom", "would", "you", "your",
])  # fmt: skip

_DASHES = (
    "-\u058a\u05be\u1400\u1806\u2010\u2011\u2012\u2013\u2014\u2015\u2043\u2212\u2e17\u2e1a\u2e3a\u2e3b\u2e40\u2e5d"
    "\u301c\u3030\u30a0\ufe31\ufe32\ufe58\ufe63\uff0d\U00010ead"
)
_BREAKS = re.compile(rf"[\s{re.escape(_DASHES)}]+")
_ASCII_BREAKS = str.maketrans(dict.fromkeys("-\t\n\v\f\r\x1c\x1d\x1e\x1f", " "))
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]+")
_LIGATURES = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
_LIGATURE = re.compile(f"[{''.join(_LIGATURES)}]")
_ACCENTS = re.compile("[\u0300-\u036f]")  # not the Japanese voicing marks: those make another letter
_NOT_PLURALS = frozenset({"dynamics", "genetics", "logistics", "news"})  # without s another word

# Characters of scripts that know no word borders: Chinese, Japanese, Korean, Thai.
NO_BORDERS = (
    "\u0e00-\u0eff\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
HAS_NO_BORDERS = re.compile(f"[{NO_BORDERS}]")
_WORD = re.compile(r"[^\W_]+")
_ENDS_IN_LETTERS, _ENDS_IN_Y = re.compile(r"[a-z]{2}$"), re.compile(r"[^aeiou]y$")
_HISSES, _HISSES_TWICE = re.compile(r"(?:s|x|z|ch|sh)$"), re.compile(r"(?:s|x|z|ch|sh)es$")
_BETWEEN_TEXTS = "\0"
_TEXTS_AT_ONCE = 1024  # about 1.3 MB, which stay in the processor's cache
_ASCII_BLANKS = str.maketrans({letter: " " for letter in map(chr, range(128)) if not letter.isalnum()})


def normal_form(text: str) -> str:
    """Normalise a text for comparison: no case, no accents, compatibility forms resolved, dashes and white space one
    space.
    """
    if text.isascii():
        return _single_spaced(text.lower().translate(_ASCII_BREAKS))
    text = _ACCENTS.sub("", normalize("NFKD", text)).casefold()
    text = _LIGATURE.sub(lambda letter: _LIGATURES[letter[0]], normalize("NFKC", text))
    return _BREAKS.sub(" ", _INVISIBLE.sub("", text))


def normal_forms(texts: Sequence[str]) -> list[str]:
    """Normalise many texts at once, four times as fast as one by one; a NUL counts as a space."""
    forms = [""] * len(texts)
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        part = [text.replace(_BETWEEN_TEXTS, " ") for text in texts[start : start + _TEXTS_AT_ONCE]]
        # One character beyond ASCII makes Python store and read the whole string at two or four bytes a character.
        for ascii_only in (True, False):
            rows = [row for row, text in enumerate(part) if text.isascii() is ascii_only]
            joined = normal_form(_BETWEEN_TEXTS.join(part[row] for row in rows))
            for row, form in zip(rows, joined.split(_BETWEEN_TEXTS) if rows else (), strict=True):
                forms[start + row] = form
    return forms


def words_of_normal(text: str) -> list[str]:
    """Return the words of a text that is in normal form."""
    return _WORD.findall(text)


def words_in(text: str) -> list[str]:
    """Return the words of a text in order: letters and digits only, in normal form."""
    if text.isascii():
        return text.lower().translate(_ASCII_BLANKS).split()
    return words_of_normal(normal_form(text))


def word_forms(word: str) -> list[str]:
    """Return the word, its plural, and its possible singulars. A form that does not exist does no harm."""
    if not _ENDS_IN_LETTERS.search(word) or not _NOT_PLURALS.isdisjoint({word, word + "s"}):
        return [word]
    forms = [word]
    if _ENDS_IN_Y.search(word):
        forms.append(word[:-1] + "ies")
    else:
        forms.append(word + ("es" if _HISSES.search(word) else "s"))
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        forms.append(word[:-1])
        if word.endswith("ies"):
            forms.append(word[:-3] + "y")
        elif _HISSES_TWICE.search(word):
            forms.append(word[:-2])
    return forms


def _single_spaced(text: str) -> str:
    """Replace runs of spaces by one, in ASCII; with numpy, because str.replace and re take twice as long on whole
    papers.
    """
    letters = np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    keep = np.ones(len(letters), dtype=bool)
    keep[1:] = (letters[1:] != ord(" ")) | (letters[:-1] != ord(" "))
    return letters[keep].tobytes().decode("ascii")
