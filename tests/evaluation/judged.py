"""Small judged lists written to disk, and invented vectors that need no model."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.evaluation.judged_lists import scratch_warehouse
from paper_assets.paper import paper_from_mapping
from paper_assets.ranking.keywords import normal_form
from paper_assets.stores.warehouse import Warehouse

DIMENSION = 64


def paper(number: int, text: str, *, day: int = 10, **more: Any) -> dict[str, Any]:
    return {
        "paper_id": f"2603.{number:05d}",
        "title": text,
        "abstract": f"We look at {text} and report what we saw, part {number}.",
        "authors": ["Ada Example"],
        "published": f"2026-03-{day:02d}T08:00:00+00:00",
        "categories": ["cs.LG"],
        **more,
    }


PAPERS = [
    paper(1, "frogs in ponds", day=8),
    paper(2, "frogs and granite"),
    paper(3, "granite", github_url="https://github.com/invented/granite"),
    paper(4, "herons", day=11),
    paper(5, "toads in ponds", day=11),
    paper(6, "sorting networks", day=12, github_url="https://github.com/invented/sorting"),
    paper(7, "frogs that sing", day=12),
]
FROGS = {
    "interests": {"primary": ["frogs"], "secondary": ["ponds"]},
    "feed": {"repeat": True},
    "ranking": {"top_k": 3},
}
STONES = {"interests": {"primary": ["granite"]}, "ranking": {"top_k": 2, "purpose": "implementation"}}
PROFILES = {"frogs": FROGS, "stones": STONES}
GRADES = {
    "frogs": {"2603.00001": 3, "2603.00002": 2, "2603.00007": 3, "2603.00006": 0, "2603.00004": 1},
    "stones": {"2603.00003": 3, "2603.00002": 2, "2603.00004": 0},
}


def write_lists(folder: Path, *, profiles: object = PROFILES, grades: object = GRADES) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    for name, record in (("profiles", profiles), ("grades", grades)):
        text = record if isinstance(record, str) else json.dumps(record)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def write_papers(file: Path, records: Sequence[Mapping[str, Any]] = PAPERS) -> Path:
    file.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return file


def embed(texts: list[str]) -> np.ndarray:
    """Unit vectors float32 (n, DIMENSION) of the words of each text, so that likeness is shared words."""
    rows = np.zeros((len(texts), DIMENSION), dtype=np.float32)
    for row, text in enumerate(texts):
        for word in normal_form(text).replace(".", " ").replace(",", " ").split():
            rows[row, crc32(word.encode()) % DIMENSION] += 1
        rows[row, 0] += 0.01
    lengths: np.ndarray = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: np.ndarray = (rows / lengths).astype(np.float32)
    return unit


@contextmanager
def warehouse_of(records: Sequence[Mapping[str, Any]] = PAPERS) -> Iterator[Warehouse]:
    with scratch_warehouse([paper_from_mapping(record) for record in records], deadline=30) as warehouse:
        yield warehouse
