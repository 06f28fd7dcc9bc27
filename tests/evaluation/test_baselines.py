"""The baselines rank as their names say, and reach the figures known for them."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.evaluation.labelled_set import LabelledSet, load_labelled_set
from benchmarks.evaluation.metrics import EvaluationConfig, Scorer, compare, judge
from benchmarks.evaluation.rankers import baselines, bm25, newest_first, shipped_set, shuffled, tfidf
from paper_assets.models.embedder import load_embedder
from tests.evaluation.sets import write_set

JUDGING = EvaluationConfig(resamples=1_000)


@pytest.fixture
def labelled(tmp_path: Path) -> LabelledSet:
    return load_labelled_set(write_set(tmp_path))


@pytest.fixture(scope="module")
def shipped() -> LabelledSet:
    return load_labelled_set(shipped_set())


@pytest.mark.parametrize("build", [bm25, tfidf])
def test_a_lexical_ranker_lists_only_documents_that_share_a_word(
    build: Callable[[LabelledSet], Scorer], labelled: LabelledSet
) -> None:
    frogs, granite, unheard = (np.asarray(build(labelled)(query), dtype=float) for query in labelled.queries)
    assert np.flatnonzero(np.isfinite(frogs)).tolist() == [0, 2]
    assert frogs[0] > frogs[2]
    assert np.flatnonzero(np.isfinite(granite)).tolist() == [3]
    assert not np.isfinite(unheard).any()


def test_newest_first_goes_by_date_and_not_by_text(labelled: LabelledSet) -> None:
    scores = np.asarray(newest_first(labelled)(labelled.queries[0]))
    assert np.argsort(-scores).tolist() == [1, 0, 2, 3]


def test_newest_first_is_left_out_of_the_baselines_without_dates(tmp_path: Path) -> None:
    undated = load_labelled_set(write_set(tmp_path, docs=[{"id": "d1", "text": "frogs"}, {"id": "d4", "text": "x"}]))
    assert "newest" not in baselines(undated, seed=1)


def test_chance_differs_from_query_to_query_and_not_from_run_to_run(labelled: LabelledSet) -> None:
    first, second = labelled.queries[:2]
    order, again, other = (shuffled(labelled, seed=seed) for seed in (1, 1, 2))
    assert np.array_equal(order(first), again(first))
    assert not np.array_equal(order(first), order(second))
    assert not np.array_equal(order(first), other(first))


def test_every_interest_of_the_shipped_set_has_a_paper_and_every_label_an_interest(shipped: LabelledSet) -> None:
    assert shipped.unknown == 0
    assert len(shipped.judged_queries) == len(shipped.queries) >= 12
    for query in shipped.queries:
        assert query.interests
        lanes = query.interests.primary + query.interests.secondary + query.interests.exploratory
        known = shipped.judgements[query.query_id]
        liked = {row for row, document in enumerate(shipped.documents) if document.doc_id in query.liked}
        left = {label for row, label in zip(known.positions, known.interests, strict=True) if row not in liked}
        assert left == set(lanes)


def test_on_the_shipped_set_meaning_beats_words_and_words_beat_chance(shipped: LabelledSet) -> None:
    texts = [thing.text for thing in (*shipped.documents, *shipped.queries)]
    vectors, asked = np.split(load_embedder("all-MiniLM-L6-v2").encode(texts), [len(shipped.documents)])
    vector_of = {query.query_id: vector for query, vector in zip(shipped.queries, asked, strict=True)}
    outcomes = {name: judge(shipped, build(), judging=JUDGING) for name, build in baselines(shipped, seed=7).items()}
    meaning = judge(shipped, lambda query: vectors @ vector_of[query.query_id], judging=JUDGING)
    assert compare(outcomes["bm25"], meaning, judging=JUDGING)[0].low > 0
    for blind in ("random", "newest"):
        for words in ("bm25", "tfidf"):
            assert compare(outcomes[blind], outcomes[words], judging=JUDGING)[0].low > 0.1


def test_bm25_reaches_its_known_figure_on_the_shipped_set(shipped: LabelledSet) -> None:
    outcome = judge(shipped, bm25(shipped), judging=JUDGING)
    assert outcome.of("ndcg@10").mean() == pytest.approx(0.504, abs=0.03)


@pytest.mark.shared_data
def test_bm25_reaches_its_known_figure_on_cacm(shared_data: Path) -> None:
    cacm = load_labelled_set(shared_data / "cacm")
    assert (len(cacm.documents), len(cacm.queries), len(cacm.judged_queries), cacm.unknown) == (3204, 64, 52, 0)
    outcome = judge(cacm, bm25(cacm), judging=JUDGING)
    assert outcome.of("ndcg@10").mean() == pytest.approx(0.425, abs=0.002)


def test_sides_of_an_invented_claim_are_its_interests(tmp_path: Path) -> None:
    qrels = "query_id\tdoc_id\trelevance\tside\nq1\td1\t1\tSUPPORT\nq1\td3\t1\tUNDERMINE\nq2\td4\t1\tSUPPORT\n"
    claims = load_labelled_set(write_set(tmp_path, qrels=qrels))
    known = claims.judgements["q1"]
    sides = {claims.documents[row].doc_id: side for row, side in zip(known.positions, known.interests, strict=True)}
    assert sides == {"d1": "SUPPORT", "d3": "UNDERMINE"}
    assert claims.unknown == 0


@pytest.mark.shared_data
def test_sides_of_a_claim_are_its_interests(shared_data: Path) -> None:
    claims = load_labelled_set(shared_data / "perspectrum")
    labels = {label for known in claims.judgements.values() for label in known.interests}
    assert labels == {"SUPPORT", "UNDERMINE"}
    assert claims.unknown == 0
