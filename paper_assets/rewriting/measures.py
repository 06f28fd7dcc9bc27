"""Measures of a rewrite beside its original: keywords, copied share, readability, likeness."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from paper_assets.errors import ModelUnavailable
from paper_assets.models import minilm
from paper_assets.models.embedder import Embedder
from paper_assets.text.stems import stems_in
from paper_assets.text.words import FUNCTION_WORDS

# Not `text/words.py`: these words are shown, so they keep their hyphens and accents, and none is a number.
_KEYWORD = re.compile(r"[^\W\d_][\w-]*[^\W_]")
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
    words = [word.casefold() for word in _KEYWORD.findall(text)]
    says = [len(word) > 2 and word not in _SMALL for word in words]
    single = Counter(word for word, kept in zip(words, says, strict=True) if kept)
    pairs = Counter(f"{words[at]} {words[at + 1]}" for at in range(len(words) - 1) if says[at] and says[at + 1])
    chosen = [pair for pair, often in pairs.most_common() if often > 1][:_MOST]
    named = {word for pair in chosen for word in pair.split()}
    return tuple([*chosen, *(word for word, _ in single.most_common() if word not in named)][:_MOST])


_RUN = 3
# Not `text/words.py`: copies are found by their very letters, accents too; a script without word spaces is read letter
# by letter.
_TRIPLE_WORD = re.compile(r"[぀-ヿ㐀-鿿]|[^\W_぀-ヿ㐀-鿿]+")


def copied_share(rewrite: str, example: str, *, original: str) -> float:
    """Share, 0..1, of the rewrite's word triples that stand in the example and not in its own original.

    A rewrite of fewer than three words is a copy (1) if it is the example, otherwise none (0).
    """
    words = _words(rewrite)
    triples = _triples(words)
    if not triples:
        return float(bool(words) and words == _words(example))
    taken = set(_triples(_words(example))) - set(_triples(_words(original)))
    return sum(triple in taken for triple in triples) / len(triples)


def _words(text: str) -> list[str]:
    return _TRIPLE_WORD.findall(text.casefold())


def _triples(words: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[at:] for at in range(_RUN)), strict=False))


_MEASURED = frozenset(("en", "sv", "da", "no", "nl", "fr", "es", "it", "pt"))  # German and others have longer words
_SENTENCE_ENDS = re.compile(r"[.!?](?=\s|$)|[:;](?=\s)|\n+")
_LIX_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")  # numbers are no words, hyphens part them
_LONG = 6


def lix(text: str, *, language: str) -> float | None:
    """The text's LIX; None without words and in a language for which it says little."""
    words = _LIX_WORD.findall(text)
    if not words or language not in _MEASURED:
        return None
    sentences = max(1, sum(bool(_LIX_WORD.search(part)) for part in _SENTENCE_ENDS.split(text)))
    return len(words) / sentences + 100 * sum(len(word) > _LONG for word in words) / len(words)


LEAST_FIT: Mapping[str, float] = {"public": 0.7, "student": 1.3, "expert": 1.5}
CLEARLY_BETTER = 0.05  # by which a text fits another original rather than its own
_WORDS = 2.0  # what the share of words counts beside the cosine
_SHORT = 3  # letters of words that say nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Likeness:
    """Fits, -1 to 3: to the rewrite's own original, and to those of `others` by what they are called."""

    own: float
    others: Mapping[str, float] = field(default_factory=dict)


def likeness(
    embedder: Embedder | None, *, title: str, original: str, text: str, others: Mapping[str, str] = {}
) -> Likeness | None:
    """The fits of a text; None where no model, or one for which no floor is known, can be asked."""
    if embedder is None or embedder.name != minilm.NAME:
        return None
    try:
        vectors = embedder.encode([text, original, *others.values()])
    except ModelUnavailable:
        return None
    cosines = vectors[1:] @ vectors[0]
    own = float(cosines[0]) + _WORDS * shared_words(text, f"{title} {original}")
    fits = {
        name: float(cosine) + _WORDS * shared_words(text, other)
        for (name, other), cosine in zip(others.items(), cosines[1:], strict=True)
    }
    return Likeness(own=own, others=fits)


def said_words(text: str) -> frozenset[str]:
    """The stems of a text that say something, each once."""
    return frozenset(word for word in stems_in(text) if len(word) > _SHORT)


def shared_words(text: str, original: str) -> float:
    """Share, 0..1, of the text's words that the original has too."""
    said = said_words(text)
    return len(said & frozenset(stems_in(original))) / len(said) if said else 0.0
