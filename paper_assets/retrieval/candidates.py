"""Candidate: one document on its way from a store to an answer (SPEC M1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

ScoreType = Literal["distance", "similarity"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a search found: its text, what is known of it, and how well it fits.

    `metadata` holds the fields of a stored document (`stores.documents.FIELDS`). `score`: the higher the better of a
    similarity, the lower the better of a distance. `source_id` is what it was cut or made from (a paper, a file).
    """

    doc_id: str
    content: str
    metadata: Mapping[str, Any]
    score: float
    score_type: ScoreType
    source_id: str
