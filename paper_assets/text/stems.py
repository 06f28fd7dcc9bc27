"""Stems: one form for the words of a family (`robot`, `robots`, `robotic`), for matching interests with abstracts.

Small on purpose: plurals off, then one ending of a list. What is left need not be a word; it only has to be the same
for words of one family, and to differ for others. A stem depends on its own word alone, so that what an interest finds
does not depend on which other words were met before.
"""

import re
from functools import lru_cache

from paper_assets.text.words import word_forms, words_in

# Fewer than the small words of `words.py`: `few` (few-shot), `over` (over-smoothing) and `against` belong to topics,
# and what stands in every abstract weighs next to nothing anyway where weights are squares of an idf.
_SMALL_WORDS = frozenset([
    "a", "an", "and", "any", "are", "as", "at", "be", "but", "by", "can", "do", "for", "from", "has", "have", "how",
    "if", "in", "into", "is", "it", "its", "no", "not", "of", "on", "or", "our", "such", "than", "that", "the",
    "their", "then", "there", "these", "they", "this", "those", "to", "use", "used", "using", "via", "was", "we",
    "were", "what", "when", "where", "which", "who", "why", "will", "with",
])  # fmt: skip

# The first of these that leaves four letters is taken off; longer ones stand before those that they end in.
_ENDINGS = (
    "ization", "isation", "izations", "ational", "fulness", "ousness", "iveness", "ations", "ation", "ating", "ators",
    "ator", "ative", "ated", "ates", "ions", "ion", "ings", "ing", "ness", "ment", "ments", "ities", "ity", "ically",
    "ical", "ics", "ic", "ive", "ous", "ful", "ers", "er", "ed", "es", "ly", "al", "ate", "s", "e", "y",
)  # fmt: skip
_FEWEST = 4  # letters that a stem keeps
_STAY_DOUBLE = "lsz"  # `small`, `loss`, `fuzz`: here two letters belong to the word; in `mapp(ing)` one does


@lru_cache(maxsize=500_000)  # more than the distinct words of 100,000 abstracts
def stem(word: str) -> str:
    """The stem of a word in normal form."""
    word = singular(word)
    if len(word) <= _FEWEST or not word.isalpha():
        return word
    ending = next((end for end in _ENDINGS if word.endswith(end) and len(word) - len(end) >= _FEWEST), "")
    left = word.removesuffix(ending)
    return left[:-1] if len(left) > _FEWEST and left[-1] == left[-2] and left[-1] not in _STAY_DOUBLE else left


def singular(word: str) -> str:
    """The word without the s of its plural, by the rule of `word_forms`."""
    if len(word) <= 3 or not re.search(r"[a-z]s$", word) or word.endswith("ss") or len(word_forms(word)) == 1:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-2] if re.search(r"(?:s|x|z|ch|sh)es$", word) else word[:-1]


def asks(word: str) -> bool:
    """Whether a word says what a text is about: small words and single letters do not."""
    return len(word) > 1 and word not in _SMALL_WORDS


def stems_in(text: str) -> list[str]:
    """The stems of a text's words in their order, without those that ask for nothing."""
    return [stem(word) for word in words_in(text) if asks(word)]
