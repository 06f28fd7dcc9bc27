"""Provide a small warehouse with rows in every table, as the current stores write it.

Each schema version leaves one behind in `warehouses/`, which every later version must be able to read. The last act of
a version, before a new migration changes the tables:

    python -m tests.stores.invented_warehouse    # writes warehouses/version-<number>.duckdb.gz

A stored warehouse never changes.
"""

import gzip
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from paper_assets.paper import embedded_text, text_hash
from paper_assets.paper_id import ARXIV
from paper_assets.profile import Profile, profile_content
from paper_assets.stores.best_practices import BestPractice, add_missing
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.deliveries import claim
from paper_assets.stores.digest_inputs import DigestMade, keep_digests_made
from paper_assets.stores.documents import Document, replace_documents, replace_retrievals
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.feedback import (
    NewRating,
    StoredModel,
    append_ratings,
    forget,
    mark_seen,
    replace_model,
)
from paper_assets.stores.harvests import Place, keep_listing, keep_page
from paper_assets.stores.kept_answers import keep_answer
from paper_assets.stores.llm_answers import keep_answers
from paper_assets.stores.profiles import keep_profile
from paper_assets.stores.rankings import candidate_schema, ranking_schema, replace_candidates, replace_ranking
from paper_assets.stores.rewrite_progress import (
    accept_claims,
    claim_item,
    finish,
    keep_attempt,
    keep_decision,
    replace_set,
)
from paper_assets.stores.rewrites import Attempt, NewItem
from paper_assets.stores.scholar_records import ScholarRecord, keep_records
from paper_assets.stores.vectors import update
from paper_assets.stores.warehouse import Warehouse
from paper_assets.weights import DIMENSIONS
from tests.invented_papers import MONDAY, TUESDAY, paper

WAREHOUSES = Path(__file__).with_name("warehouses")
PROFILE = "lab"
ARCHIVE = "optim_best_practices_v1"
NOW = datetime(2026, 1, 7, 8, 30, tzinfo=UTC)


def stored_warehouse(path: Path) -> Warehouse:
    """Return a warehouse with a few rows in every table, without computing them again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.decompress(max(WAREHOUSES.glob("version-*.duckdb.gz")).read_bytes()))
    return Warehouse(path, deadline=20)


def fill(warehouse: Warehouse) -> None:
    """A few rows in every table."""
    papers = [paper("2601.00001"), paper("2601.00002", affiliations=("Aalto University",)), paper("2601.00003", None)]
    keep_listing(warehouse, MONDAY, papers, source=ARXIV, now=NOW)
    linked = paper("2601.00004", TUESDAY, version=2, github_url="https://github.com/a/b")
    keep_listing(warehouse, TUESDAY, [linked], source=ARXIV, now=NOW)
    place = Place(sets_done=0, first_day=MONDAY, last_day=None, next_page="token", pages=1)
    keep_page(warehouse, "invented", [linked], not_before=MONDAY, before=None, after=place)
    texts = [text_hash(embedded_text(each.title, each.abstract)) for each in papers]
    keep_vectors(warehouse, texts, np.eye(3, 4, dtype=np.float32), model="invented")
    profile = Profile(
        name=PROFILE,
        content=profile_content({"interests": {"primary": ["graphs"]}}, source="invented"),
        questions=({"rewritten_question": "why graphs"},),
    )
    keep_profile(warehouse, profile)
    passed = pa.Table.from_pylist(
        [
            {"paper_id": "2601.00001", "title": "On 2601.00001", "passed": True, "reason": None, "phase": None},
            {"paper_id": "2601.00002", "title": "On 2601.00002", "passed": False, "reason": "read", "phase": 1},
        ],
        schema=candidate_schema(),
    )
    replace_candidates(warehouse, MONDAY, PROFILE, passed, inputs="candidates")
    for number, inputs in enumerate(("before", "after")):  # the first becomes the previous one
        row = {
            "rank": 1,
            "shown": True,
            "paper_id": "2601.00001",
            "final": 0.5 + number / 10,
            **dict.fromkeys(DIMENSIONS, 0.5),
            "bonus": 0.0,
            "soft_penalty": -0.15,
            "diversity_penalty": 0.0,
            "penalty_keywords": ["survey"],
            "evaluation_method": "keywords",
            "tags": ["VERY_RECENT"],
            "nearest": "graphs",
            "meaning": 0.6,
            "words": 0.4,
            "library": None,
            "interest_probability": 0.5,
            "learned": 0.1,
            "learned_words": ["+graph"],
            "learned_near": ["2601.00001"],
        }
        table = pa.Table.from_pylist([row], schema=ranking_schema())
        header = {"profile_hash": profile.content_hash, "purpose": "general"}
        replace_ranking(warehouse, MONDAY, PROFILE, table, header, inputs=inputs)
    keep_digests_made(
        warehouse, {(PROFILE, MONDAY): DigestMade(inputs="rows", papers=("2601.00001",), version="pages")}
    )
    append_ratings(warehouse, PROFILE, [NewRating(paper_id="2601.00001", rating="worth")], given_in="page", now=NOW)
    mark_seen(warehouse, PROFILE, ["2601.00003"], now=NOW)
    forget(warehouse, PROFILE, "word", "road", now=NOW)
    keep_answer(warehouse, "Is the road open?", options={"sides": False}, answer={"sentences": []}, now=NOW)
    replace_model(
        warehouse,
        StoredModel(
            profile=PROFILE,
            inputs="ratings",
            version="one",
            proof={"worth": 1, "no": 0},
            vector=np.ones(4),
            words={"graph": 0.5},
            dimensions=np.zeros(4),
            rated=("2601.00001",),
            pull=np.ones(1),
        ),
    )
    keep_answers(warehouse, {"key": '{"score": 1}'}, model="invented-llm", input_tokens=10, output_tokens=2)
    keep_records(warehouse, [ScholarRecord(paper_id="2601.00001", affiliations=("ETH Zurich",), citation_count=7)])
    document = Document(
        doc_id="2601.00001#0",
        text="A passage.",
        paper_id="2601.00001",
        title="On 2601.00001",
        data_type="fulltext",
        access_level="private",
        owner=PROFILE,
    )
    replace_documents(warehouse, "fulltext", origin="2601.00001.pdf", documents=[document])
    assert claim(warehouse, PROFILE, MONDAY, "mail", now=NOW)
    replace_retrievals(warehouse, MONDAY, PROFILE, [{"question": "why graphs", "sides": []}], inputs="retrievals")
    items = [
        NewItem(
            item=item,
            paper_id="2601.00001",
            version=1,
            title="On 2601.00001",
            category="cs.CL",
            target_level=level,
            original_text="We study 2601.00001.",
            prompt="1",
        )
        for item, level in (("waiting", "public"), ("done", "student"))
    ]
    replace_set(warehouse, MONDAY, PROFILE, items, now=NOW)
    for item, score in (("waiting", 86), ("done", 97)):
        attempt = Attempt(
            attempt=1,
            text="Simply put.",
            keywords=("graphs",),
            score=score,
            critique="fine",
            unsupported=(),
            examples=(),
            model="invented-llm",
            input_tokens=100,
            output_tokens=20,
            made_at=NOW,
            unchecked=1,
            disputed=("42%",),
        )
        assert keep_attempt(warehouse, item, attempt)
    assert keep_decision(warehouse, "waiting", 1, "retry", now=NOW)
    accept_claims(warehouse, "2601.00001", ["42%"], now=NOW)
    assert claim_item(warehouse, "waiting", holder="invented", now=NOW, until=NOW)
    assert finish(warehouse, "done", outcome="passed", kept=1, note="archived")
    practice = BestPractice(
        id="0b0f7a5e-1111-4222-8333-444455556666",
        text="Simply put.",
        original_text="We study 2601.00001.",
        score=97,
        target_level="student",
        keywords=("graphs",),
        made_at=NOW,
        model_version="invented-llm",
        paper_id="2601.00001",
        category="cs.CL",
    )
    assert add_missing(warehouse, [practice], collection=ARCHIVE) == 1
    index = VectorIndex(warehouse.path.with_name("chroma"), deadline=5)
    assert update(index, warehouse, ["abstract"], model="invented").upserted == 3


def store() -> Path:
    """Write the stored warehouse of the present version. Refuses to replace one."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "warehouse.duckdb")
        fill(Warehouse(path, deadline=5))
        with duckdb.connect(str(path)) as connection:
            [(version,)] = connection.execute("select max(schema_version) from meta").fetchall()
            connection.execute("checkpoint")
        stored = WAREHOUSES / f"version-{version}.duckdb.gz"
        stored.parent.mkdir(exist_ok=True)
        with stored.open("xb") as stream:
            stream.write(gzip.compress(path.read_bytes(), compresslevel=9, mtime=0))
    return stored


if __name__ == "__main__":
    print(store())
