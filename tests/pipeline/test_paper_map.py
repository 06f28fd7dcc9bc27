"""What the page asks of the pipeline: where papers lie."""

from datetime import date
from pathlib import Path

import numpy as np
import pytest

from paper_assets.errors import NotComputed
from paper_assets.paper import embedded_text, papers_from_table, text_hash
from paper_assets.pipeline.paper_map import paper_map
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.papers import papers_between
from paper_assets.stores.rankings import ranked_between
from tests.mcp.ranked_desk import ranked_desk


def test_similar_papers_are_near_each_other_and_the_map_is_reproducible(tmp_path: Path) -> None:
    warehouse = ranked_desk(tmp_path).warehouse
    papers = papers_from_table(papers_between(warehouse, None, None))
    ponds = np.array([each.title.startswith("Traffic") for each in papers])
    vectors = np.where(ponds[:, None], [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]).astype(np.float32)
    vectors += 0.05 * np.random.default_rng(3).normal(size=vectors.shape).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    hashes = [text_hash(embedded_text(each.title, each.abstract)) for each in papers]
    keep_vectors(warehouse, hashes, vectors, model="invented")
    days = date(2026, 3, 2), date(2026, 3, 3)
    found = paper_map(warehouse, "traffic", *days, model="invented")
    assert {each.paper.paper_id for each in found.papers} == {
        each.paper_id for each in ranked_between(warehouse, "traffic", *days)
    }
    assert all(0 <= place <= 1 for each in found.papers for place in (each.x, each.y))
    assert paper_map(warehouse, "traffic", *days, model="invented") == found
    with pytest.raises(NotComputed, match="too few papers"):
        paper_map(warehouse, "traffic", *days, model="another model")
