"""A small real corpus: invented papers and passages in a warehouse, embedded by the real model."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from paper_assets.models.embedder import load_embedder
from paper_assets.paper import Paper
from paper_assets.retrieval.plan import Plan, parse_plan
from paper_assets.retrieval.search import Corpus
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import Document, replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse

FIRST = date(2026, 3, 1)
SUBJECTS = (
    "retrieved passages keep generated answers faithful to their sources",
    "retrieved passages mislead a generator that trusts them too much",
    "a reranker reads question and passage together",
    "bees find their way home by polarised light",
    "bridges are inspected by drones that follow their cables",
    "compilers fold loops over sparse tensors",
)


def paper(number: int, *, day: int = 1, category: str = "cs.CL", subject: int | None = None, version: int = 1) -> Paper:
    """Paper 2603.0000N of a day in March 2026, about one of the subjects."""
    about = SUBJECTS[(number if subject is None else subject) % len(SUBJECTS)]
    return Paper(
        paper_id=f"2603.{number:05d}",
        title=f"{about.capitalize()} ({number})",
        abstract=f"We show that {about}. Trial {number} confirms it.",
        authors=(f"Author {number}",),
        version=version,
        published=datetime(2026, 3, day, 12, tzinfo=UTC),
        categories=(category, "cs.AI"),
        primary_category=category,
    )


def passage(doc_id: str, of: str, text: str, **given: Any) -> Document:
    """A public English passage of the full text of a paper, unless `given` says otherwise."""
    fields: dict[str, Any] = {
        "title": f"Title of {of}",
        "date_int": 20260301,
        "primary_category": "cs.CL",
        "categories": ("cs.CL",),
        "topic_id": "cs",
        "access_level": "public",
        "language": "en",
        "version": 1,
        "url": f"https://arxiv.org/abs/{of}",
    }
    return Document(doc_id=doc_id, text=text, paper_id=of, data_type="fulltext", **{**fields, **given})


def corpus_of(
    folder: Path, papers: Sequence[Paper], passages: Mapping[str, Sequence[Document]] | None = None
) -> Corpus:
    """The papers and, by origin, the passages, all with their vectors."""
    corpus = Corpus(
        warehouse=Warehouse(folder / "warehouse.duckdb", deadline=30),
        embedder=load_embedder(),
        config=RetrievalConfig(),
    )
    add(corpus, papers, passages)
    return corpus


def add(corpus: Corpus, papers: Sequence[Paper], passages: Mapping[str, Sequence[Document]] | None = None) -> None:
    """More papers and passages, embedded at once."""
    merge_papers(corpus.warehouse, papers)
    for origin, documents in (passages or {}).items():
        replace_documents(corpus.warehouse, "fulltext", origin=origin, documents=documents)
    model = corpus.embedder
    assert model is not None
    for data_type in ("abstract", "fulltext"):
        hashes, texts = texts_to_embed(corpus.warehouse, data_type, model=model.name)
        keep_vectors(corpus.warehouse, hashes, model.encode(texts), model=model.name)


def plan(question: str = "do retrieved passages keep answers faithful", **record: Any) -> Plan:
    """A plan with sides cs.CL and cs.LG, unless it says something else."""
    return parse_plan({"rewritten_question": question, **record}, source="the test", default_sides=("cs.CL", "cs.LG"))
