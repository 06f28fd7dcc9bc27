"""Fill a warehouse with the documents of a labelled set, so that a benchmark can search them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.evaluation.labelled_set import Document as LabelledDocument
from paper_assets.models.embedder import load_embedder
from paper_assets.retrieval.search import Corpus
from paper_assets.stores.documents import Document, replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.warehouse import Warehouse


def as_documents(labelled: Sequence[LabelledDocument]) -> list[Document]:
    """Return each text of a set as a document."""
    return [
        Document(
            doc_id=each.doc_id,
            text=each.text,
            paper_id=each.doc_id,
            title="",
            data_type="fulltext",
            access_level="public",
        )
        for each in labelled
        if each.text.strip()
    ]


def filled_corpus(folder: Path, documents: Sequence[Document], *, vectors: float = 1.0) -> Corpus:
    """Store documents with their vectors; `vectors`: the share of them that have one, drawn at random."""
    model = load_embedder()
    corpus = Corpus(warehouse=Warehouse(folder / "warehouse.duckdb", deadline=60), embedder=model)
    replace_documents(corpus.warehouse, "fulltext", origin="set", documents=list(documents))
    hashes, texts = texts_to_embed(corpus.warehouse, "fulltext", model=model.name)
    drawn = np.flatnonzero(np.random.default_rng(1).random(len(texts)) < vectors)
    encoded = model.encode([texts[at] for at in drawn])
    keep_vectors(corpus.warehouse, [hashes[at] for at in drawn], encoded, model=model.name)
    return corpus
