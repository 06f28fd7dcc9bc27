"""Grading: the chunks of what was retrieved that answer the question best, or a list of links instead (SPEC R6)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models.cross_encoder import CrossEncoder
from paper_assets.models.embedder import Embedder
from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.chunks import chunks_of
from paper_assets.settings import Retrieving

_NUMBERS = Retrieving()
# Cosines lie too near to one another for a softmax; this is what all-MiniLM-L6-v2 was trained with.
_COSINE_SCALE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """Who grades. `score` gives raw scores (n,) of passages; `note` says what a reader should know, if anything."""

    name: str
    kind: Literal["cross-encoder", "embedding similarity"]
    score: Callable[[str, Sequence[str]], np.ndarray]
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradedChunk:
    """A chunk that passed: its share of the softmax over all chunks, the raw score, and where it comes from."""

    text: str
    share: float
    raw: float
    place: int  # among the chunks of its document, from 0
    document: Candidate

    @property
    def link(self) -> str | None:
        """The address of the document, if it is one of the web."""
        return _web_address(self.document.metadata.get("url"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Graded:
    """The best chunks, best first, of so many that were looked at; and who graded them."""

    chunks: tuple[GradedChunk, ...]
    looked_at: int
    grader: str
    kind: str
    notes: tuple[str, ...] = ()

    def to_mapping(self) -> dict[str, Any]:
        """JSON-ready values."""
        return {
            "grader": {"name": self.grader, "kind": self.kind},
            "chunks_looked_at": self.looked_at,
            "chunks": [
                {
                    "text": chunk.text,
                    "score": chunk.share,
                    "raw_score": chunk.raw,
                    "doc_id": chunk.document.doc_id,
                    "title": chunk.document.metadata.get("title"),
                    "url": chunk.link,
                }
                for chunk in self.chunks
            ],
            "notes": list(self.notes),
        }


def load_grader(cross_encoder: Callable[[], CrossEncoder], embedder: Callable[[], Embedder]) -> Grader:
    """The cross-encoder, or where it cannot be loaded the embedder, which then says why it grades.

    Raises ModelUnavailable if neither can be loaded.
    """
    try:
        return cross_encoder_grader(cross_encoder())
    except ModelUnavailable as fault:
        return similarity_grader(embedder(), note=f"graded by embedding similarity: {fault}")


def cross_encoder_grader(model: CrossEncoder) -> Grader:
    """Grades by reading question and chunk together."""
    return Grader(name=model.name, kind="cross-encoder", score=model.score)


def similarity_grader(model: Embedder, *, note: str | None = None) -> Grader:
    """Grades by the cosine of question and chunk."""

    def score(question: str, passages: Sequence[str]) -> np.ndarray:
        vectors = model.encode([question, *passages]).astype(np.float64)
        return _COSINE_SCALE * (vectors[1:] @ vectors[0])

    return Grader(name=model.name, kind="embedding similarity", score=score, note=note)


def grade(
    question: str,
    documents: Sequence[Candidate],
    *,
    grader: Grader,
    best: int = _NUMBERS.best_chunks,
    size: int = _NUMBERS.chunk_characters,
    overlap: int = _NUMBERS.chunk_overlap,
) -> Graded:
    """The `best` chunks of the documents for the question; a document that is given twice is graded once.

    The result does not depend on the order of the documents: ties go by doc_id, then place in the document. A chunk
    whose score is not a number does not pass, and the notes say how many there were.
    """
    distinct = sorted({document.doc_id: document for document in reversed(documents)}.items())
    chunks = [
        (document, place, text)
        for _, document in distinct
        for place, text in enumerate(chunks_of(document.content, size=size, overlap=overlap))
    ]
    raw = np.asarray(grader.score(question, [text for *_, text in chunks]), dtype=np.float64) if chunks else np.zeros(0)
    usable = int(np.isfinite(raw).sum())
    shares = softmax(raw)
    order = np.argsort(np.where(np.isfinite(raw), -raw, np.inf), kind="stable")[: min(best, usable)]
    notes = [grader.note] if grader.note else []
    if usable < len(raw):
        notes.append(f"{len(raw) - usable} of {len(raw)} chunks got no score from {grader.name} and were left out")
    return Graded(
        chunks=tuple(
            GradedChunk(
                document=chunks[at][0],
                place=chunks[at][1],
                text=chunks[at][2],
                raw=float(raw[at]),
                share=float(shares[at]),
            )
            for at in order
        ),
        looked_at=len(chunks),
        grader=grader.name,
        kind=grader.kind,
        notes=tuple(notes),
    )


def softmax(scores: np.ndarray) -> np.ndarray:
    """Shares (n,) from 0 to 1 that sum to 1, of finite scores of any size; one that is not finite has no share."""
    usable = np.isfinite(scores)
    if not usable.any():
        return np.zeros(len(scores))
    with np.errstate(over="ignore"):  # the difference of two huge numbers, which has the share 0 all the same
        weights = np.exp(np.where(usable, scores, -np.inf) - scores[usable].max())
    return weights / weights.sum()


def link_list(documents: Sequence[Candidate]) -> str:
    """Markdown: a line `- [title](url)` for each paper, in the order of the documents; nothing for none.

    A document without an address of the web (a local PDF) is a line without link. Titles and addresses are data:
    nothing in them can end the line or the link, or become HTML.
    """
    lines = []
    for document in documents:
        title = _plain(str(document.metadata.get("title") or document.doc_id))
        address = _web_address(document.metadata.get("url"))
        lines.append(f"- [{title}]({address})" if address else f"- {title}")
    return "\n".join(dict.fromkeys(lines))


def _plain(text: str) -> str:
    """The text on one line, with all that Markdown might read as its own escaped."""
    printable = "".join(character if character.isprintable() else " " for character in text)
    escaped = re.sub(r"([\\`*_{}\[\]<>()#!|~$&])", r"\\\1", " ".join(printable.split()))
    return re.sub(r"^(\d*)([-+.])(?=\s)", r"\1\\\2", escaped)  # would begin a list


def _web_address(url: object) -> str | None:
    """The address if it is one of http or https, with all that could end a Markdown link percent-encoded."""
    if not isinstance(url, str):
        return None
    try:
        parts = urlsplit(url.strip())
        host = parts.hostname
    except ValueError:
        return None
    if parts.scheme not in ("http", "https") or not host:
        return None
    return quote(url.strip(), safe="%/:?#@!$&'*+,;=~", errors="replace")
