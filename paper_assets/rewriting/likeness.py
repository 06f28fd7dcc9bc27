"""How well a rewrite fits its original, and originals of other papers: by meaning and by words in common (B2).

Fit: cosine of the two texts plus twice the share of the rewrite's words that the original has. A text in everyday words
has few words of its original, a text about a neighbouring subject is near to it in meaning; it rarely is both. The
floors are measured with the default embedding model; of any other the gate knows words alone. docs/evaluation.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paper_assets.errors import ModelUnavailable
from paper_assets.models import minilm
from paper_assets.models.embedder import Embedder
from paper_assets.text.stems import stems_in

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
