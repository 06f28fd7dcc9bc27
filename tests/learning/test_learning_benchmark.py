"""Test the benchmark of learning: authors as readers, and papers ordered without ranking them again."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.author_readers import author_readers, without_name
from benchmarks.evaluation.judged_lists import ON_TOPIC
from benchmarks.learning import Reader, UnseenPapers, rated_by
from paper_assets.learning.preference_model import train
from paper_assets.paper import Paper, papers_to_table
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.relevance import interest_queries
from paper_assets.settings import ScoringConfig
from paper_assets.sources.bulk_files import read_papers


def vectors_of(texts: Sequence[str]) -> np.ndarray:
    """Return an invented unit vector for each text, float32 (n, 384)."""
    seeds = [int.from_bytes(sha256(text.encode()).digest()[:8]) for text in texts]
    rows = np.array([np.random.default_rng(seed).standard_normal(384) for seed in seeds], dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


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


# Readers made out of authors


def paper(number: int, *authors: str) -> Paper:
    return Paper(
        paper_id=f"2603.{number:05d}",
        title=f"Notes, part {number}",
        abstract="A walk.",
        authors=authors,
        published=datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=number),
    )


def test_the_first_papers_are_the_profile_and_no_later_paper_is_rated() -> None:
    [reader] = author_readers([paper(number, "Ann Lee", "Bo Ek") for number in range(8)], least=6)
    assert [each.paper_id[-1] for each in reader.liked] == ["0", "1"]
    assert max(each.day for each in reader.earlier if each.day) < reader.split  # type: ignore[type-var]
    assert len(reader.earlier) == len(reader.later) == 3


def test_papers_of_two_people_of_one_name_are_not_one_reader() -> None:
    """Two papers are one person's if they share another author, through further papers too."""
    connected = [paper(0, "Wei Li", "Ann"), paper(1, "Wei Li", "Bo"), paper(2, "Wei Li", "Ann", "Bo")]
    connected += [paper(3, "Wei Li", "Bo"), paper(4, "Wei Li", "Bo"), paper(5, "Wei Li", "Ann")]
    other = [paper(number, "Wei Li", "Cy") for number in range(6, 10)]
    [reader] = author_readers([*connected, *other], least=6)
    own = {*reader.liked, *reader.earlier, *reader.later}
    assert own == set(connected)


def test_the_authors_own_name_is_not_among_what_is_known_of_a_paper() -> None:
    found = list(without_name([paper(0, "Ann Lee", "Bo Ek"), paper(1, "Ann Lee")], "Ann Lee"))
    assert [each.authors for each in found] == [("Bo Ek",), ("Unknown",)]
