"""Embedding for one call: the model is loaded when a text is new, else its vector is read."""

from typing import Any

from paper_assets.models.embedder import known_name, load_embedder
from paper_assets.settings import Settings
from paper_assets.stores.embeddings import remembered_vectors
from paper_assets.stores.warehouse import Warehouse


def remembering_embedder(settings: Settings, warehouse: Warehouse) -> Any:
    """Texts to unit vectors (n, d); what was embedded once is read from the warehouse. Loads the model on first use."""

    def embed(texts: list[str]) -> Any:
        name = known_name(settings.embedding_model) or load_embedder(settings.embedding_model).name

        def encode(new: list[str]) -> Any:
            return load_embedder(settings.embedding_model).encode(new)

        return remembered_vectors(warehouse, texts, model=name, encode=encode)

    return embed
