"""Read Chroma as any other program does, and keep a warehouse of invented passages beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import chromadb
import numpy as np
from chromadb.config import Settings

from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.documents import Document, replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.vectors import SyncReport, update
from paper_assets.stores.warehouse import Warehouse

MODEL, DIMENSION = "invented", 16


class Entry(NamedTuple):
    """An entry of a collection."""

    vector: np.ndarray
    metadata: Mapping[str, Any]
    document: str | None


def client_of(place: Path | str) -> Any:
    """A client of a folder or of a server."""
    settings = Settings(anonymized_telemetry=False)
    if isinstance(place, str):
        return chromadb.HttpClient(host="127.0.0.1", port=urlsplit(place).port or 0, settings=settings)
    return chromadb.PersistentClient(place, settings=settings)


def entries(index: VectorIndex | Path | str, collection: str) -> dict[str, Entry]:
    """All entries of a collection by id; none if it does not exist."""
    client = client_of(index.place if isinstance(index, VectorIndex) else index)
    try:
        if collection not in [each.name for each in client.list_collections()]:
            return {}
        found: Any = client.get_collection(collection).get(include=["embeddings", "metadatas", "documents"])
        rows = zip(found["ids"], found["embeddings"], found["metadatas"], found["documents"], strict=True)
        return {name: Entry(np.asarray(vector), metadata, text) for name, vector, metadata, text in rows}
    finally:
        client.close()


def vector_of(text: str) -> np.ndarray:
    """The unit vector that belongs to a text."""
    seed = int.from_bytes(text.encode()[:64].ljust(8, b"."), "big")
    row = np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return row / np.linalg.norm(row)


def passage(doc_id: str, text: str = "", **given: Any) -> Document:
    fields: dict[str, Any] = {"paper_id": "2601.00001", "title": "On bees", "access_level": "public"}
    return Document(doc_id=doc_id, text=text or f"text of {doc_id}", data_type="fulltext", **{**fields, **given})


def store(warehouse: Warehouse, documents: Sequence[Document], *, origin: str = "file", model: str = MODEL) -> None:
    """Make these the passages of an origin, and store their vectors."""
    replace_documents(warehouse, "fulltext", origin=origin, documents=documents)
    hashes, texts = texts_to_embed(warehouse, "fulltext", model=model)
    vectors = np.array([vector_of(text) for text in texts]).reshape(-1, DIMENSION)
    keep_vectors(warehouse, hashes, vectors, model=model)


def fill(index: VectorIndex, warehouse: Warehouse, *, model: str = MODEL) -> SyncReport:
    return update(index, warehouse, ["fulltext"], model=model)
