"""Measure a rewrite against its original: keywords, copies, readability (LIX), fit, differences."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import groupby

from paper_assets.errors import ModelUnavailable
from paper_assets.models import minilm
from paper_assets.models.embedder import Embedder
from paper_assets.text.words import FUNCTION_WORDS, stems_in

# Not `text/words.py`: these words are shown, so they keep hyphens and accents and exclude numbers.
_KEYWORD = re.compile(r"[^\W\d_][\w-]*[^\W_]")
_SMALL = FUNCTION_WORDS | {
    "all", "based", "new", "one", "paper", "show", "shows", "two", "well", "within", "without", "work",
}  # fmt: skip
_MOST = 5


def clean_keywords(keywords: Iterable[str]) -> tuple[str, ...]:
    """Return the keywords without duplicates, commas and blanks."""
    spaced = (" ".join(keyword.replace(",", " ").split()) for keyword in keywords)
    return tuple(dict.fromkeys(keyword for keyword in spaced if keyword))


def keywords_of(text: str) -> tuple[str, ...]:
    """Return at most five keywords: word pairs that occur twice or more, then words; most frequent first, then
    earliest.

    Words of a chosen pair are not listed again.
    """
    words = [word.casefold() for word in _KEYWORD.findall(text)]
    says = [len(word) > 2 and word not in _SMALL for word in words]
    single = Counter(word for word, kept in zip(words, says, strict=True) if kept)
    pairs = Counter(f"{words[at]} {words[at + 1]}" for at in range(len(words) - 1) if says[at] and says[at + 1])
    chosen = [pair for pair, often in pairs.most_common() if often > 1][:_MOST]
    named = {word for pair in chosen for word in pair.split()}
    return tuple([*chosen, *(word for word, _ in single.most_common() if word not in named)][:_MOST])


_RUN = 3
# Not `text/words.py`: copies match with their accents, and scripts without word spaces are split into letters.
_TRIPLE_WORD = re.compile(r"[぀-ヿ㐀-鿿]|[^\W_぀-ヿ㐀-鿿]+")


def copied_share(rewrite: str, example: str, *, original: str) -> float:
    """Return the share, 0..1, of the rewrite's word triples that are in the example and not in the rewrite's own
    original.

    A rewrite of fewer than three words is a copy (1) if it equals the example, otherwise not (0).
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
_LIX_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")  # numbers are not words; hyphens separate words
_LONG = 6


def lix(text: str, *, language: str) -> float | None:
    """Return the LIX readability of a text; None without words and for languages where LIX says little."""
    words = _LIX_WORD.findall(text)
    if not words or language not in _MEASURED:
        return None
    sentences = max(1, sum(bool(_LIX_WORD.search(part)) for part in _SENTENCE_ENDS.split(text)))
    return len(words) / sentences + 100 * sum(len(word) > _LONG for word in words) / len(words)


LEAST_FIT: Mapping[str, float] = {"public": 0.7, "student": 1.3, "expert": 1.5}
CLEARLY_BETTER = 0.05  # margin by which another original must fit better
_WORDS = 2.0  # weight of shared words; the cosine has 1
_SHORT = 3  # words of at most this many letters are ignored


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFit:
    """How well a rewrite fits its own original and those of `others` (by key), each from -1 to 3."""

    own: float
    others: Mapping[str, float] = field(default_factory=dict)


def topic_fit(
    embedder: Embedder | None, *, title: str, original: str, text: str, others: Mapping[str, str] = {}
) -> TopicFit | None:
    """Return how well a text fits the originals: cosine plus weighted share of words.

    None without the default embedding model, because `LEAST_FIT` was measured with it.
    """
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
    return TopicFit(own=own, others=fits)


def content_words(text: str) -> frozenset[str]:
    """Return the stems of a text's content words, each once."""
    return frozenset(word for word in stems_in(text) if len(word) > _SHORT)


def shared_words(text: str, original: str) -> float:
    """Return the share, 0..1, of the text's content words that the original has too."""
    words = content_words(text)
    return len(words & frozenset(stems_in(original))) / len(words) if words else 0.0


_TOKEN = re.compile(r"\s+|[^\W_]+(?:['’.,+#/%_-]+[^\W_]+)*%?|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text. `new`: missing from the other text; `doubtful`: a number or name that the original lacks."""

    text: str
    new: bool
    doubtful: bool


def marked(text: str, against: str, doubtful: Iterable[str]) -> tuple[Piece, ...]:
    """Split a rewrite into pieces that join to it again, marking what is new against another text and what is
    `doubtful` (from `unsupported`).

    Words are compared without case, longest common runs first (Ratcliff & Obershelp 1988, as in difflib).
    """
    tokens = _TOKEN.findall(text)
    words = [at for at, token in enumerate(tokens) if not token.isspace()]
    mine = [tokens[at].casefold() for at in words]
    theirs = [token.casefold() for token in _TOKEN.findall(against) if not token.isspace()]
    kept = {
        words[at]
        for block in SequenceMatcher(None, theirs, mine, autojunk=False).get_matching_blocks()
        for at in range(block.b, block.b + block.size)
    }
    doubted = _places(text, tokens, doubtful)
    new = [at not in kept for at in range(len(tokens))]
    for at, token in enumerate(tokens):
        if token.isspace():  # a blank is new between two new words
            new[at] = 0 < at < len(tokens) - 1 and new[at - 1] and at + 1 not in kept
    runs = groupby(range(len(tokens)), key=lambda at: (new[at], at in doubted))
    return tuple(Piece("".join(tokens[at] for at in run), *kind) for kind, run in runs)


def _places(text: str, tokens: list[str], wanted: Iterable[str]) -> set[int]:
    """Return the tokens that any of the given words covers."""
    spans = [
        found.span()
        for word in wanted
        if word.strip()
        for found in re.finditer(rf"(?<!\w)(?<!\d[.,]){re.escape(word.strip())}(?!\w|[.,]\d)", text)
    ]
    places, start = set(), 0
    for at, token in enumerate(tokens):
        end = start + len(token)
        if any(start < last and end > first for first, last in spans):
            places.add(at)
        start = end
    return places
