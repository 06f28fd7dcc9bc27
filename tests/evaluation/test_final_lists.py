"""Test that the judged list is the one that the graph would show, and that baselines rank as their names say."""

from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evaluation.final_lists import (
    OWN,
    JudgedDay,
    final_list,
    judged_day,
    judged_lists_of,
    list_names,
    newest_judged_day,
)
from benchmarks.evaluation.judged_lists import JudgedLists, load_judged_lists
from benchmarks.evaluation.list_baselines import LIST_BASELINES
from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import embedded_text
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.ranking.verifier import open_verifier
from paper_assets.settings import ScoringConfig, load_settings
from paper_assets.stores.embeddings import keep_vectors, texts_without_vector
from paper_assets.stores.rankings import ranking
from paper_assets.stores.warehouse import Warehouse
from tests.evaluation.judged import FROGS, GRADES, PAPERS, PROFILES, embed, warehouse_of, write_lists

AS_OF = date(2026, 3, 12)
SCORING = ScoringConfig()


@pytest.fixture
def warehouse() -> Iterator[Warehouse]:
    with warehouse_of() as filled:
        yield filled


def lists_of(folder: Path, **profile: object) -> JudgedLists:
    return load_judged_lists(write_lists(folder, profiles={**PROFILES, "frogs": {**FROGS, **profile}}))


def frogs_day(warehouse: Warehouse, folder: Path, **profile: object) -> JudgedDay:
    judged = lists_of(folder, **profile).profiles[0]
    return judged_day(warehouse, judged, as_of=AS_OF, purpose=OWN, embed=embed, scoring=SCORING)


def test_grades_of_papers_outside_the_window_do_not_count(warehouse: Warehouse, tmp_path: Path) -> None:
    day = frogs_day(warehouse, tmp_path, feed={"repeat": True, "window_days": 3})
    assert sorted(day.judged.grades) == ["2603.00002", "2603.00004", "2603.00006", "2603.00007"]


@pytest.mark.parametrize("mode", ["hybrid", "seed"])
def test_the_final_list_is_the_one_that_the_graph_stores(mode: str, warehouse: Warehouse, tmp_path: Path) -> None:
    embedder = load_embedder()
    record = {**FROGS, "ranking": {"top_k": 3, "interest_mode": mode, "include_contrastive": True}}
    judged = lists_of(tmp_path, **record).profiles[0]
    settings = load_settings({}, warehouse.path.parent)
    hashes, texts = texts_without_vector(warehouse, None, None, model=embedder.name)
    keep_vectors(warehouse, hashes, embedder.encode(texts), model=embedder.name)
    keep_candidates(warehouse, profile_day(warehouse, judged.profile, AS_OF, settings=settings), settings=settings)
    keep_ranking(
        warehouse,
        judged.profile,
        AS_OF,
        embedder=embedder,
        verifier=open_verifier({}),
        settings=settings,
        now=datetime(2026, 3, 12, tzinfo=UTC),
    )
    stored = ranking(warehouse, AS_OF, "frogs").rows
    day = judged_day(
        warehouse,
        judged,
        as_of=AS_OF,
        purpose=OWN,
        embed=embedder.encode,
        scoring=settings.scoring,
        model=embedder.name,
    )
    made = final_list(day, mode=mode, embed=embedder.encode, scoring=settings.scoring).rows
    assert made.sort_by("rank").to_pylist() == stored.sort_by("rank").select(made.column_names).to_pylist()


def test_relevance_alone_has_the_same_rows_in_the_order_of_their_relevance(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    made = judged_lists_of(frogs_day(warehouse, tmp_path), ["hybrid", "hybrid:relevance"], embed=embed, scoring=SCORING)
    final, alone = made["hybrid"], made["hybrid:relevance"]
    assert sorted(final.paper_ids) == sorted(alone.paper_ids)
    assert (np.diff(alone.relevance) <= 0).all()
    assert alone.shown.tolist() == [True] * 3 + [False] * 4
    relevance = dict(zip(final.paper_ids, final.relevance, strict=True))
    assert [relevance[paper_id] for paper_id in alone.paper_ids] == alone.relevance.tolist()


def test_grades_follow_their_papers_into_every_list(warehouse: Warehouse, tmp_path: Path) -> None:
    day = frogs_day(warehouse, tmp_path)
    names = ["hybrid", "seed:relevance", *LIST_BASELINES]
    lists = judged_lists_of(day, names, embed=embed, scoring=SCORING)
    assert list(lists) == names
    for name, found in lists.items():
        assert len(found.paper_ids) == len(PAPERS), name
        assert found.grades.tolist() == [GRADES["frogs"].get(paper_id, -1) for paper_id in found.paper_ids], name


@pytest.mark.parametrize("name", list(LIST_BASELINES))
def test_a_baseline_puts_papers_about_the_interests_first(name: str, warehouse: Warehouse, tmp_path: Path) -> None:
    found = judged_lists_of(frogs_day(warehouse, tmp_path), [name], embed=embed, scoring=SCORING)[name]
    about = {"2603.00001", "2603.00002", "2603.00005", "2603.00007"}
    assert set(found.paper_ids[:4]) == about


def test_liked_papers_are_the_library_where_a_profile_names_some(warehouse: Warehouse, tmp_path: Path) -> None:
    liked = {"primary": ["sorting networks"], "papers": [{"title": "Granite", "abstract": "We look at granite."}]}
    day = frogs_day(warehouse, tmp_path, interests=liked)
    made = judged_lists_of(day, list(LIST_BASELINES), embed=embed, scoring=SCORING)
    for name in ("zotero-arxiv-daily", "arxiv-sanity"):
        assert "granite" in _title(made[name].paper_ids[0]), name
    for name in ("bm25", "tfidf", "cosine"):
        assert "sorting" in _title(made[name].paper_ids[0]), name


def test_newer_library_papers_weigh_more_as_in_the_formula(warehouse: Warehouse, tmp_path: Path) -> None:
    day = frogs_day(warehouse, tmp_path, interests={"primary": ["frogs", "granite"]})
    scores = LIST_BASELINES["zotero-arxiv-daily"](day, embed)
    titles, abstracts = (day.candidates.column(name).to_pylist() for name in ("title", "abstract"))
    wanted = embed(["frogs", "granite"]).astype(float)
    for score, title, abstract in zip(scores, titles, abstracts, strict=True):
        near = wanted @ embed([embedded_text(title, abstract)])[0]
        second = 1 / (1 + np.log10(2))
        assert score == pytest.approx((near[0] + second * near[1]) / (1 + second), abs=1e-6)


def test_a_day_without_candidates_is_an_empty_list_and_no_fault(warehouse: Warehouse, tmp_path: Path) -> None:
    day = frogs_day(warehouse, tmp_path, feed={"categories": ["math.NT"]})
    names = ["hybrid", "hybrid:relevance", *LIST_BASELINES]
    lists = judged_lists_of(day, names, embed=embed, scoring=SCORING)
    assert {name: found.paper_ids for name, found in lists.items()} == dict.fromkeys(names, ())


def test_the_library_mode_is_there_where_a_profile_likes_papers(tmp_path: Path) -> None:
    assert "library" not in list_names(lists_of(tmp_path))
    liked = {"primary": ["frogs"], "papers": ["2603.00001"]}
    assert "library" in list_names(lists_of(tmp_path, interests=liked))
    assert list_names(lists_of(tmp_path))[:2] == ["hybrid", "hybrid:relevance"]


def test_the_day_of_the_lists_is_that_of_the_newest_judged_paper(warehouse: Warehouse, tmp_path: Path) -> None:
    assert newest_judged_day(warehouse, lists_of(tmp_path)) == (AS_OF, 0)
    unknown = {"frogs": {"2603.00001": 3, "2603.99999": 2}, "stones": {"2603.00003": 1}}
    lists = load_judged_lists(write_lists(tmp_path, grades=unknown))
    assert newest_judged_day(warehouse, lists) == (date(2026, 3, 10), 1)
    with warehouse_of([PAPERS[4]]) as other, pytest.raises(InvalidInput, match="with --papers"):
        newest_judged_day(other, lists)


def _title(paper_id: str) -> str:
    return next(paper["title"] for paper in PAPERS if paper["paper_id"] == paper_id)
