"""Keywords of a rewrite whose writer gave none: what its original says often (B1)."""

import re
from collections import Counter
from collections.abc import Iterable

from paper_assets.text.words import FUNCTION_WORDS

# Not `text/words.py`: these words are shown, so they keep their hyphens and accents, and none is a number.
_WORD = re.compile(r"[^\W\d_][\w-]*[^\W_]")
_SMALL = FUNCTION_WORDS | {
    "all",
    "based",
    "new",
    "one",
    "paper",
    "show",
    "shows",
    "two",
    "well",
    "within",
    "without",
    "work",
}
_MOST = 5


def clean_keywords(given: Iterable[str]) -> tuple[str, ...]:
    """Given keywords, each once and fit to stand in a list with commas."""
    spaced = (" ".join(keyword.replace(",", " ").split()) for keyword in given)
    return tuple(dict.fromkeys(keyword for keyword in spaced if keyword))


def keywords_of(text: str) -> tuple[str, ...]:
    """At most five: word pairs that come at least twice, then words, the most frequent and then the earliest first.

    A word that stands in a chosen pair is not named again.
    """
    words = [word.casefold() for word in _WORD.findall(text)]
    says = [len(word) > 2 and word not in _SMALL for word in words]
    single = Counter(word for word, kept in zip(words, says, strict=True) if kept)
    pairs = Counter(f"{words[at]} {words[at + 1]}" for at in range(len(words) - 1) if says[at] and says[at + 1])
    chosen = [pair for pair, often in pairs.most_common() if often > 1][:_MOST]
    named = {word for pair in chosen for word in pair.split()}
    return tuple([*chosen, *(word for word, _ in single.most_common() if word not in named)][:_MOST])
