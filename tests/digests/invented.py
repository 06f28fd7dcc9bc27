"""Invent days to build digests from: rows as the stores return them, without a store."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from paper_assets.digests.content import Digest, DigestRows, digest_of
from paper_assets.paper import Paper
from paper_assets.settings import RewritingConfig, ScoringConfig
from paper_assets.stores.rankings import StoredRanking, ranking_schema
from paper_assets.stores.rewrites import Attempt, RewriteItem
from paper_assets.weights import DIMENSIONS
from tests.invented_rewrites import invented_attempt

DAY = date(2026, 3, 13)
NOW = datetime(2026, 3, 14, tzinfo=UTC)


def paper(number: int = 1, **changes: Any) -> Paper:
    fields: dict[str, Any] = {
        "paper_id": f"2603.{number:05d}",
        "title": f"On ponds, part {number}",
        "abstract": "Frogs were counted. There were many.",
        "authors": ("Ada Moreau",),
        "published": datetime(2026, 3, 12, tzinfo=UTC),
        "categories": ("cs.CL",),
        "pdf_url": f"https://arxiv.org/pdf/2603.{number:05d}v1",
    }
    return Paper(**{**fields, **changes})


def row(rank: int, paper_id: str, **changes: Any) -> dict[str, Any]:
    """Return a row of a ranking whose relevance falls with the rank."""
    marks = dict.fromkeys(DIMENSIONS, 0.0) | {"semantic_relevance": 0.9 - rank / 10, "recency": 1.0}
    return {
        "rank": rank,
        "shown": True,
        "paper_id": paper_id,
        "final": 0.30 * marks["semantic_relevance"] + 0.20,
        **marks,
        "bonus": 0.0,
        "soft_penalty": 0.0,
        "diversity_penalty": 0.0,
        "penalty_keywords": [],
        "evaluation_method": "embedding",
        "tags": ["VERY_RECENT"],
        "nearest": None,
        **changes,
    }


def ranking_of(rows: Sequence[Mapping[str, Any]], *, profile: str = "ponds", **header: Any) -> StoredRanking:
    full_header = {
        "purpose": "general",
        "ranking_mode": "balanced",
        "interest_mode": "hybrid",
        "top_k": 5,
        "weights": dict(zip(DIMENSIONS, ScoringConfig().weights["general"], strict=True)),
        "warnings": [],
        "llm_note": None,
        "interest_places": {},
        "comparison_notes": [],
        "contrastive_info": None,
        **header,
    }
    rows_of = pa.Table.from_pylist([dict(each) for each in rows], schema=ranking_schema())
    return StoredRanking(day=DAY, profile=profile, inputs="x", header=full_header, rows=rows_of)


def candidate(paper_id: str, reason: str | None = None, title: str = "a title") -> dict[str, Any]:
    return {"paper_id": paper_id, "title": title, "passed": reason is None, "reason": reason, "phase": None}


def stored(papers: Sequence[Paper], *, rows: Sequence[Mapping[str, Any]] | None = None, **more: Any) -> DigestRows:
    """Return a day whose list has these papers in this order; `more`: fields of Stored and of the header."""
    own = ("candidates", "changes", "answers", "rewrites", "decided_at", "content")
    fields = {name: more.pop(name) for name in own if name in more}
    listed = rows or [row(rank, each.paper_id) for rank, each in enumerate(papers, 1)]
    return DigestRows(
        ranking=ranking_of(listed, **more),
        papers={each.paper_id: each for each in papers},
        **{"candidates": [candidate(each.paper_id, title=each.title) for each in papers], **fields},
    )


def digest(*papers: Paper, **more: Any) -> Digest:
    return digest_of(stored(papers, **more), config=RewritingConfig())


def attempt(number: int, score: int, text: str = "Many frogs.\n\nTruly many.") -> Attempt:
    return invented_attempt(number, score, text, made_at=NOW)


def rewrite(level: str, *attempts: Attempt, outcome: str | None = None, kept: int | None = None) -> RewriteItem:
    return RewriteItem(
        item=level,
        paper_id="2603.00001",
        version=1,
        title="t",
        category=None,
        target_level=level,
        original_text="o",
        prompt="p",
        opened_at=NOW,
        outcome=outcome,
        kept=kept,
        note=None,
        attempts=attempts,
        decisions={},
    )


def answer(sides: Mapping[str, Sequence[Mapping[str, Any]]], **more: Any) -> dict[str, Any]:
    """Return a stored answer with these documents by side, and other fields of the answer."""
    return {
        "question": "Are frogs loud?",
        "generation_required": True,
        "notes": [],
        "stance": None,
        "sides": [
            {
                "side": name,
                "documents": list(documents),
                "shortfall": None,
                "error": None,
                "graded": None,
                "warnings": [],
            }
            for name, documents in sides.items()
        ],
        **more,
    }


def written(*sentences: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a stored answer in sentences, as `pipeline/retrievals.py` keeps it."""
    record = {
        "question": "Are frogs loud?",
        "answered": bool(sentences),
        "kind": "written",
        "sentences": list(sentences),
        "dropped_sentences": 1,
        "examined_passages": 12,
        "model": "invented-1",
        "calls": 2,
        "input_tokens": 900,
        "output_tokens": 80,
        "notes": [],
        "failed": False,
    }
    return answer({}, answer={**record, **more})


def cited(text: str, *quotes: str, stance: str | None = None, **more: Any) -> dict[str, Any]:
    """Return a sentence of such an answer, each quote from the same paper."""
    about = {"paper_id": "2603.00009", "title": "Loud frogs", "section": None, **more}
    return {"text": text, "stance": stance, "citations": [{**about, "quote": quote} for quote in quotes]}


def document(
    doc_id: str = "d", content: str = "Loud frogs\n\nFrogs are loud at night.", **metadata: Any
) -> dict[str, Any]:
    full_metadata = {
        "title": "Loud frogs",
        "paper_id": "2603.00009",
        "date_int": 20260311,
        "access_level": "public",
        "url": "https://arxiv.org/abs/2603.00009",
        **metadata,
    }
    return {"doc_id": doc_id, "page_content": content, "metadata": full_metadata, "score": 0.5}


HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</main></style><iframe src='https://evil.example'></iframe>",
    "<!-- ]]> &lt;b&gt; &amp; &#60;",
    "![pixel](https://evil.example/p.png) [link](javascript:alert(1)) <https://evil.example>",
    "[ref]: https://evil.example 'x'",
    "# heading",
    "## heading ##",
    "- item",
    "+ item",
    "1. item",
    "12) item",
    "> quote",
    "===",
    "---",
    "***",
    "| a | b |",
    "| --- | --- |",
    "```sh rm -rf",
    "~~~ fence",
    "~~struck~~ **bold** __bold__ *it* _it_ `code`",
    "$$\\frac{1}{2}$$ and $x_1$ \\(y\\) \\[z\\]",
    "{{ 7 * 7 }} {% include 'x' %} {#id .class}",
    "line one\n\n# line two\n    indented",
    "a\x00b\x07c\x1bd\x85e\ufffef\ud800g\u202eh\u2066i",
    "www.evil.example https://evil.example mail@evil.example",
    "\\",
    "trailing backslash \\",
    "trailing hash #",
    ": definition",
)
