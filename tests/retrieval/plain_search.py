"""Plain, slow reference of the search: every document is compared, one after the other."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

import numpy as np

from paper_assets.stores.documents import Document


def meets(document: Document, where: Mapping[str, Any] | None) -> bool:
    """Whether a document meets a filter; one without a value differs from every value."""
    for name, asked in (where or {}).items():
        if name == "$and":
            held = all(meets(document, part) for part in asked)
        elif name == "$or":
            held = any(meets(document, part) for part in asked)
        else:
            operators = asked if isinstance(asked, dict) else {"$eq": asked}
            held = all(_holds(getattr(document, name), *each) for each in operators.items())
        if not held:
            return False
    return True


def _holds(value: Any, operator: str, asked: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == asked)
        case "$ne":
            return bool(value != asked)
        case "$in":
            return value in asked
        case "$nin":
            return value not in asked
        case "$contains":
            return asked in value
        case "$not_contains":
            return asked not in value
    if value is None:
        return False
    return bool({"$gt": value > asked, "$gte": value >= asked, "$lt": value < asked, "$lte": value <= asked}[operator])


def plain_bm25(texts: Sequence[str], question: str, *, k1: float, b: float) -> list[float]:
    """The share of the asked words that each text holds, for texts in ASCII without plurals and small words."""
    held = [Counter(re.findall(r"[a-z0-9]+", text.lower())) for text in texts]
    mean = max(sum(map(Counter.total, held)) / len(texts), 1.0) if texts else 1.0
    scores, whole = [0.0] * len(texts), 0.0
    for word, often in Counter(re.findall(r"[a-z0-9]+", question.lower())).items():
        holders = sum(word in words for words in held)
        weight = often * float(np.log1p((len(texts) - holders + 0.5) / (holders + 0.5)))
        whole += weight
        for at, words in enumerate(held):
            if times := words[word]:
                scores[at] += weight * times * (k1 + 1) / (times + k1 * (1 - b + b * words.total() / mean))
    return [score / (whole * (k1 + 1)) if whole else 0.0 for score in scores]


def plain_search(
    documents: Sequence[Document],
    vectors: Mapping[str, Sequence[float]],
    question: str,
    asked: Sequence[float],
    *,
    where: Mapping[str, Any] | None,
    k: int,
    share: float | None,
) -> list[tuple[str, float]]:
    """Ids and scores of the k best. `vectors` by text, as far as there are any; `share` None: by words alone."""
    met = [document for document in documents if meets(document, where)]
    by_words = plain_bm25([document.text for document in met], question, k1=1.2, b=0.4)
    scored: list[tuple[str, float]] = []
    for document, words in zip(met, by_words, strict=True):
        vector = vectors.get(document.text)
        if share is None:
            if words > 0:
                scored.append((document.doc_id, words))
        elif vector is not None:
            cosine = fsum(x * y for x, y in zip(vector, asked, strict=True))
            scored.append((document.doc_id, (1 - share) * cosine + share * words))
        elif words > 0:
            scored.append((document.doc_id, (1 - share) * min(0.25 + words, 1.0) + share * words))
    return sorted(scored, key=lambda each: (-each[1], each[0]))[:k]
