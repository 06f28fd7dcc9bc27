"""The benchmark of learning orders papers without ranking them again, and gets the order of the ranking itself."""

from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.learning import Reader, UnseenPapers, rated_by
from paper_assets.evaluation.judged_lists import ON_TOPIC
from paper_assets.learning.preference_model import train
from paper_assets.paper import papers_to_table
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.relevance import interest_queries
from paper_assets.settings import ScoringConfig
from paper_assets.sources.bulk_files import read_papers
from tests.invented_vectors import vectors_of


@pytest.mark.parametrize(
    "ranking",
    [
        {},
        {"purpose": "idea_generation"},
        {"ranking_mode": "diversity"},
        {"include_contrastive": True},
    ],
)
def test_the_order_after_ratings_is_that_of_the_ranking(shared_data: Path, ranking: dict[str, Any]) -> None:
    papers = papers_to_table(islice(read_papers(shared_data / "arxiv_papers" / "papers.jsonl.gz"), 300))
    record = {
        "interests": {"primary": ["language models that reason", "graph neural networks"]},
        "keywords": {"must_include": ["benchmark"], "exclude": {"soft": ["survey"]}},
        "ranking": {"top_k": 10, **ranking},
    }
    content = profile_content(record, source="test")
    queries = interest_queries(content.interests, options=content.ranking, scoring=ScoringConfig())
    reader = Reader(
        profile=Profile(name="reader", content=content),
        options=content.ranking,
        queries=queries,
        query_vectors=vectors_of(queries.texts),
        papers=papers,
        vectors=vectors_of(papers["paper_id"].to_pylist()),
        grades=np.random.default_rng(0).integers(0, 2, len(papers)) * ON_TOPIC,
        as_of=date(2026, 3, 20),
        calibration=None,
    )
    seen, rows = np.arange(100), np.arange(100, 300)
    taught = train(rated_by(reader, seen[:40], seen=seen))
    unseen = UnseenPapers(reader, rows)
    expected = reader.order(rows, reader.ranking(rows, taught))
    assert unseen.order(taught).tolist() == expected.tolist()
    assert unseen.order(taught).tolist() != unseen.by_formula.tolist()
