"""Small labelled sets written to disk."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = [
    {"id": "d1", "title": "Frogs of the marsh", "abstract": "Frogs sing at dusk.", "published": "2026-03-01"},
    {"id": "d2", "title": "Toads and ponds", "abstract": "A pond suits a toad.", "published": "2026-03-03T08:00:00Z"},
    {"id": "d3", "title": "Herons", "abstract": "Herons hunt frogs in ponds.", "published": "2026-02"},
    {"id": "d4", "title": "Stones", "abstract": "Granite is old.", "published": "2019"},
]
QUERIES = [{"id": "q1", "text": "frogs"}, {"id": "q2", "text": "granite"}, {"id": "q3", "text": "unjudged"}]
QRELS = "query_id\tdoc_id\trelevance\nq1\td1\t2\nq1\td3\t1\nq2\td4\t1\nq2\td1\t0\n"


def write_set(
    folder: Path,
    *,
    docs: Sequence[Mapping[str, Any]] = DOCS,
    queries: Sequence[Mapping[str, Any]] = QUERIES,
    qrels: str = QRELS,
    asked: str = "queries",
) -> Path:
    folder.mkdir(exist_ok=True)
    for name, records in (("docs", docs), (asked, queries)):
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    (folder / "qrels.tsv").write_text(qrels, encoding="utf-8")
    return folder


def pack(file: Path) -> None:
    """Replace a file by its .gz."""
    file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
