"""Grade chunks of the retrieved documents by how well they answer the question, or list links instead (SPEC R6)."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models.cross_encoder import CrossEncoder
from paper_assets.models.embedder import Embedder
from paper_assets.retrieval.merge import Candidate
from paper_assets.settings import RetrievalConfig
from paper_assets.text.chunks import chunks_of, passage_of
from paper_assets.text.cleaning import one_line

# Cosines are too close together for a softmax; all-MiniLM-L6-v2 was trained with this scale.
_COSINE_SCALE = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """A model that grades. `score` returns raw scores (n,) of passages; `note` is for the reader."""

    name: str
    kind: Literal["cross-encoder", "embedding similarity"]
    score: Callable[[str, Sequence[str]], np.ndarray]
    note: str | None = None

    @property
    def reorders(self) -> bool:
        """Return whether documents are put in its order. A chunk's cosine gives a worse order than the search."""
        return self.kind == "cross-encoder"


def load_grader(cross_encoder: Callable[[], CrossEncoder], embedder: Callable[[], Embedder]) -> Grader:
    """Load the cross-encoder, or the embedder if that fails, with a note that gives the reason.

    Raises ModelUnavailable if neither can be loaded.
    """
    try:
        model = cross_encoder()
        return Grader(name=model.name, kind="cross-encoder", score=model.score)  # reads question and chunk together
    except ModelUnavailable as fault:
        return similarity_grader(
            embedder(), note=f"ordered by similarity of meaning, which is less exact than a cross-encoder: {fault}"
        )


def similarity_grader(model: Embedder, *, note: str | None = None) -> Grader:
    """Grade by the cosine of question and chunk."""

    def score(question: str, passages: Sequence[str]) -> np.ndarray:
        vectors = model.encode([question, *passages]).astype(np.float64)
        return _COSINE_SCALE * (vectors[1:] @ vectors[0])

    return Grader(name=model.name, kind="embedding similarity", score=score, note=note)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranker:
    """Grade documents by their chunks for one question, each document once: a stage of the merge.

    Chunks are cut from the whole texts that the merge passes on (R6).
    """

    question: str
    grader: Grader
    config: RetrievalConfig = field(default_factory=RetrievalConfig)
    _graded: dict[str, list[tuple[str, float]]] = field(default_factory=dict)  # doc_id -> chunks and raw scores

    def __call__(self, documents: Sequence[Candidate]) -> list[float]:
        """Score documents by their best chunks; a document without a usable chunk comes last and is kept."""
        self._grade(documents)
        best = [
            max((score for _, score in self._graded[each.doc_id] if np.isfinite(score)), default=np.nan)
            for each in documents
        ]
        least = min((score for score in best if np.isfinite(score)), default=0.0)
        return [score if np.isfinite(score) else least - 1.0 for score in best]

    def graded(self, documents: Sequence[Candidate]) -> dict[str, Any]:
        """Return the grader and the best chunks of these documents as JSON values.

        Chunks are in whole sentences, and of reranked documents from the whole text; the `score` of one is its share of
        the softmax over all.
        """
        distinct = sorted({document.doc_id: document for document in reversed(documents)}.items())
        self._grade([document for _, document in distinct])
        chunks = [(document, text, score) for doc_id, document in distinct for text, score in self._graded[doc_id]]
        raw = np.array([score for *_, score in chunks], dtype=np.float64)
        usable = int(np.isfinite(raw).sum())
        shares = softmax(raw)
        order = np.argsort(np.where(np.isfinite(raw), -raw, np.inf), kind="stable")[:usable]
        passages: dict[tuple[str, str], int] = {}  # in whole sentences, without those that are only a title
        for at in order:
            document, text, _ = chunks[at]
            title = document.metadata.get("title")
            passage = passage_of(document.content, text, title=title if isinstance(title, str) else "")
            if passage is not None:
                passages.setdefault((document.doc_id, passage), at)
            if len(passages) == self.config.best_chunks:
                break
        notes = [self.grader.note] if self.grader.note else []
        if usable < len(raw):
            notes.append(
                f"{len(raw) - usable} of {len(raw)} chunks got no score from {self.grader.name} and were left out"
            )
        return {
            "grader": {"name": self.grader.name, "kind": self.grader.kind},
            "chunks_looked_at": len(chunks),
            "chunks": [
                {
                    "text": passage,
                    "score": float(shares[at]),
                    "raw_score": float(raw[at]),
                    "doc_id": doc_id,
                    "title": chunks[at][0].metadata.get("title"),
                    "url": _web_address(chunks[at][0].metadata.get("url")),
                }
                for (doc_id, passage), at in passages.items()
            ],
            "notes": notes,
        }

    def _grade(self, documents: Sequence[Candidate]) -> None:
        new = {each.doc_id: each for each in documents if each.doc_id not in self._graded}
        texts = {
            doc_id: chunks_of(document.content, size=self.config.chunk_characters, overlap=self.config.chunk_overlap)
            for doc_id, document in sorted(new.items())
        }
        flat = [text for own in texts.values() for text in own]
        scores = iter(np.asarray(self.grader.score(self.question, flat), dtype=np.float64).tolist() if flat else ())
        for doc_id, own in texts.items():
            self._graded[doc_id] = [(text, next(scores)) for text in own]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Return shares (n,) from 0 to 1 that sum to 1, for finite scores of any size; other scores get 0."""
    usable = np.isfinite(scores)
    if not usable.any():
        return np.zeros(len(scores))
    with np.errstate(over="ignore"):  # the difference of two huge numbers; its share is 0 anyway
        weights = np.exp(np.where(usable, scores, -np.inf) - scores[usable].max())
    return weights / weights.sum()


def link_list(documents: Sequence[Candidate]) -> str:
    """Return Markdown: a line `- [title](url)` for each paper, in the order of the documents; "" without any.

    A document without a web address (a local PDF) is a line without link. Titles and URLs are escaped: nothing in them
    can end the line or the link, or become HTML.
    """
    lines = []
    for document in documents:
        title = _plain(str(document.metadata.get("title") or document.doc_id))
        address = _web_address(document.metadata.get("url"))
        lines.append(f"- [{title}]({address})" if address else f"- {title}")
    return "\n".join(dict.fromkeys(lines))


def _plain(text: str) -> str:
    """Return the text on one line with Markdown escaped."""
    escaped = re.sub(r"([\\`*_{}\[\]<>()#!|~$&])", r"\\\1", one_line(text))
    return re.sub(r"^(\d*)([-+.])(?=\s)", r"\1\\\2", escaped)  # would start a list


def _web_address(url: object) -> str | None:
    """Return the URL if it is http or https, percent-encoding whatever could end a Markdown link."""
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
