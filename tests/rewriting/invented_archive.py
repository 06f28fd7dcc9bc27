"""An archive in a temporary folder with an embedder that knows its texts: vectors follow from the texts alone."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from paper_assets.models.embedder import Embedder
from paper_assets.rewriting.best_practices import Archive, Archived, archive_rewrite
from paper_assets.settings import RewritingConfig
from paper_assets.stores.best_practices import BestPractice, add_missing
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.rewrites import NewItem
from paper_assets.stores.warehouse import Warehouse
from tests.invented_rewrites import invented_attempt

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
WIDTH = 8


def invented_embedder(known: Mapping[str, Sequence[float]] | None = None, *, name: str = "invented") -> Embedder:
    """Unit vectors as given for `known` texts, else drawn from the text itself."""

    @lru_cache(1_024)
    def one(text: str) -> np.ndarray:
        given = (known or {}).get(text)
        row = np.zeros(WIDTH) if given is not None else np.random.default_rng(list(text.encode())).normal(size=WIDTH)
        if given is not None:
            row[: len(given)] = given
        unit: np.ndarray = (row / np.linalg.norm(row)).astype(np.float32)
        return unit

    def many(texts: list[str]) -> Iterator[tuple[list[int], np.ndarray]]:
        yield list(range(len(texts))), np.array([one(text) for text in texts])

    return Embedder(name=name, dimension=WIDTH, _one=one, _many=many, _too_long=lambda texts: [False] * len(texts))  # type: ignore[arg-type]


def invented_archive(folder: Path, embedder: Embedder | None = None, **more: Any) -> Archive:
    """Invented vectors mean nothing, so no example is too far."""
    more.setdefault("config", RewritingConfig(recall_floor=-1))
    return Archive(
        Warehouse(folder / "w.duckdb", deadline=60),
        VectorIndex(folder / "chroma", deadline=60),
        embedder or invented_embedder(),
        **more,
    )


def keep(archive: Archive, original_text: str, text: str | None = None, **more: Any) -> Archived:
    """Archive a rewrite of an original that a person has released; everything else has a default."""
    item = {"target_level": "public", "paper_id": "2603.00001", "category": "cs.CL", "title": "On sheep"}
    item |= {name: more.pop(name) for name in tuple(more) if name in item}
    attempt = invented_attempt(
        score=more.pop("score", 96),
        text=text or f"Rewritten: {original_text}",
        keywords=tuple(more.pop("keywords", ())),
        model="actor-1",
        made_at=NOW,
    )
    return archive_rewrite(
        archive,
        NewItem(item="i" * 32, version=1, original_text=original_text, prompt="p", **item),
        attempt,
        **{"shown": (), "released": True, **more},
    )


def practice(number: int, **more: Any) -> BestPractice:
    """A best practice whose everything follows from its number."""
    fields: dict[str, Any] = {
        "id": f"{number:08x}-0000-4000-8000-000000000000",
        "text": f"What paper {number} says, in plain words.",
        "original_text": f"Paper {number} studies subject{number} with method{number % 7}.",
        "score": 95 + number % 6,
        "target_level": ("public", "student", "expert")[number % 3],
        "keywords": (f"subject{number}", f"method{number % 7}"),
        "made_at": NOW + timedelta(minutes=number),
        "model_version": "actor-1",
        "paper_id": f"2603.{number:05d}",
        "category": ("cs.CL", "cs.LG", None)[number % 3],
    }
    return BestPractice(**{**fields, **more})


def fill(archive: Archive, practices: Sequence[BestPractice]) -> None:
    """Put best practices into the table, past all judging."""
    add_missing(archive.warehouse, practices, collection=archive.collection)
