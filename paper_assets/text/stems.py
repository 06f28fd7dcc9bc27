"""Stem words: one form for a family of words (`robot`, `robots`, `robotic`), to match interests with abstracts.

Small on purpose: remove the plural, then one ending from a list. The result need not be a word; it only has to be equal
for words of one family and different for others. A stem depends on its own word alone, so matches do not depend on
other texts.
"""

import re
from functools import lru_cache

from paper_assets.text.words import word_forms, words_in

# Fewer than the small words of `words.py`: `few` (few-shot), `over` (over-smoothing) and `against` belong to topics,
# and what every abstract contains weighs next to nothing anyway where weights are squares of an idf.
_SMALL_WORDS = frozenset([
    "a", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have", "how",
    "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "our", "such", "than", "that", "the",
    "their", "then", "there", "these", "they", "this", "those", "to", "use", "used", "using", "via", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with",
])  # fmt: skip

# The first of these that leaves four letters is taken off; longer ones come before those that they end in.
_ENDINGS = (
    "ization", "isation", "izations", "ational", "fulness", "ousness", "iveness", "ations", "ation", "ating", "ators",
    "ator", "ative", "ated", "ates", "ions", "ion", "ings", "ing", "ness", "ment", "ments", "ities", "ity", "ically",
    "ical", "ics", "ic", "ive", "ous", "ful", "ers", "er", "ed", "es", "ly", "al", "ate", "s", "e", "y",
)  # fmt: skip
_FEWEST = 4  # letters that a stem keeps
_HISSES = re.compile(r"(?:s|x|z|ch|sh)es$")
# Of plurals in -es the e mostly belongs to the word (`caches`, `diseases`, `sizes`), not in `batches` or `viruses`.
_ENDS_IN_E = re.compile(r"(?:(?:^ca|^ni|avalan)ch|[^t]z|[^s]s)es$")
_ENDS_IN_S = re.compile(r"(?:bia|^ga|len|atla|canva|alia|^bu|[tnrpsc]u|iu)ses$")
_STAY_DOUBLE = "lsz"  # `small`, `loss`, `fuzz`: here two letters belong to the word; in `mapp(ing)` one does


@lru_cache(maxsize=500_000)  # more than the distinct words of 100,000 abstracts
def stem(word: str) -> str:
    """Return the stem of a word in normal form."""
    word = singular(word)
    if len(word) <= _FEWEST or not word.isalpha():
        return word
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _FEWEST), "")
    left = word.removesuffix(ending)
    return left[:-1] if len(left) > _FEWEST and left[-1] == left[-2] and left[-1] not in _STAY_DOUBLE else left


def singular(word: str) -> str:
    """Remove the s of a plural, by the rule of `word_forms`."""
    if len(word) <= 3 or not re.search(r"[a-z]s$", word) or word.endswith("ss") or len(word_forms(word)) == 1:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if _HISSES.search(word) and (_ENDS_IN_S.search(word) or not _ENDS_IN_E.search(word)):
        return word[:-2]
    return word[:-1]


def asks(word: str) -> bool:
    """Return whether a word carries topic: small words and single letters do not."""
    return len(word) > 1 and word not in _SMALL_WORDS


def stems_in(text: str) -> list[str]:
    """Return the stems of a text's words in order, without words that carry no topic."""
    return [stem(word) for word in words_in(text) if asks(word)]
