"""What the commands share: common options, days, and the settings and stores of this process."""

import os
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paper_assets.errors import InvalidInput
from paper_assets.settings import Settings, load_settings

if TYPE_CHECKING:
    from paper_assets.stores.warehouse import Warehouse

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of a table.")]


def read_settings() -> Settings:
    """Settings from this process's environment."""
    return load_settings(os.environ, Path.cwd())


def open_warehouse() -> "Warehouse":
    """The warehouse of this process's settings; nothing is opened yet."""
    from paper_assets.stores.warehouse import Warehouse

    settings = read_settings()
    return Warehouse(settings.warehouse_path, deadline=settings.store_deadline)


def parse_day(text: str, option: str) -> date:
    """A day given as YYYY-MM-DD. Raises InvalidInput naming the option."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{option} must be a day like 2026-03-01, got {text!r}") from None


def remembering_embedder(settings: Settings, warehouse: "Warehouse") -> Any:
    """Texts to unit vectors (n, d); what was embedded once is read from the warehouse. Loads the model on first use."""
    from paper_assets.models.embedder import load_embedder
    from paper_assets.stores.embeddings import remembered_vectors

    def embed(texts: list[str]) -> Any:
        model = load_embedder(settings.embedding_model)
        return remembered_vectors(warehouse, texts, model=model.name, encode=model.encode)

    return embed
