"""Test standard retrieval on a real corpus: the best k of all requested kinds, whatever their side."""

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from paper_assets.models.embedder import load_embedder
from paper_assets.retrieval.answers import retrieve_balanced, retrieve_standard, standard_answer
from paper_assets.retrieval.findings import Caller
from paper_assets.retrieval.grading import Grader, similarity_grader
from paper_assets.retrieval.search import Corpus
from tests.retrieval.invented_corpus import corpus_of, paper, passage, plan

ANYBODY = Caller()


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """18 papers of three days in two categories of two archives, and two passages."""
    papers = [paper(at, day=1 + at % 3, category=("cs.CL", "math.ST")[at % 2]) for at in range(18)]
    passages = {"p": [passage(f"p/{at}", f"2603.0000{at}", f"Passages keep answers faithful ({at}).") for at in (0, 2)]}
    return corpus_of(tmp_path_factory.mktemp("corpus"), papers, passages)


def test_the_best_k_are_those_of_a_look_at_every_document(corpus: Corpus) -> None:
    asked = plan(parameters={"k": 5}, filters={"startdate": "2026-03-02"})
    by_meaning = replace(corpus, config=replace(corpus.config, lexical_share=0.0))
    found = retrieve_standard(by_meaning, asked, caller=ANYBODY)
    papers = [each for each in (paper(at, day=1 + at % 3) for at in range(18)) if each.day and each.day.day >= 2]
    model = load_embedder()
    question = model.encode([asked.rewritten_question])[0]
    cosines = model.encode([f"{each.title}\n\n{each.abstract}" for each in papers]) @ question
    order = sorted(range(len(papers)), key=lambda at: (-round(float(cosines[at]), 5), papers[at].paper_id))
    assert [document.doc_id for document in found.documents] == [papers[at].paper_id for at in order[:5]]
    assert np.allclose([document.score for document in found.documents], sorted(cosines)[::-1][:5], atol=1e-5)
    assert found.matching == len(papers) and found.shortfall is None


def test_sides_do_not_matter_and_the_best_of_all_come_first(corpus: Corpus) -> None:
    asked = plan(parameters={"k": 4, "k_per_side": 2}, filters={"sides": ["cs.CL", "math.ST"]})
    standard = retrieve_standard(corpus, asked, caller=ANYBODY)
    assert standard == retrieve_standard(corpus, replace(asked, sides=()), caller=ANYBODY)
    balanced = [each for side in retrieve_balanced(corpus, asked, caller=ANYBODY) for each in side.documents]
    assert sum(each.score for each in standard.documents) >= sum(each.score for each in balanced)


def test_dates_and_topics_hold_and_the_filter_is_in_the_answer(corpus: Corpus) -> None:
    asked = plan(filters={"startdate": "2026-03-01", "enddate": "2026-03-02", "topic_id": "math"})
    answer = standard_answer(corpus, asked, caller=Caller(as_of=date(2026, 3, 9)), load_grader=grader)
    (found,) = answer["sides"]
    assert found["side"] is None and found["filter"] == {
        "$and": [
            {"date_int": {"$gte": 20260301}},
            {"date_int": {"$lte": 20260302}},
            {"topic_id": {"$eq": "math"}},
            {"access_level": {"$eq": "public"}},
        ]
    }
    assert {each["metadata"]["topic_id"] for each in found["documents"]} == {"math"}
    assert {each["metadata"]["date_int"] for each in found["documents"]} <= {20260301, 20260302}
    assert found["shortfall"] == "only 6 of type abstract meet the conditions"


def test_a_paper_and_its_passages_take_no_more_places_than_one_source_may(corpus: Corpus) -> None:
    asked = plan(data_type=["abstract", "fulltext"], parameters={"k": 20, "max_per_source": 1})
    found = retrieve_standard(corpus, asked, caller=ANYBODY)
    sources = [document.source_id for document in found.documents]
    assert len(sources) == len(set(sources)) == 18
    assert "2 more than 1 of one source" in str(found.shortfall)


def test_a_kind_of_which_there_is_nothing_takes_nothing_from_the_others(corpus: Corpus) -> None:
    alone = retrieve_standard(corpus, plan(), caller=ANYBODY)
    beside = retrieve_standard(corpus, plan(data_type=["rewrite", "abstract"]), caller=ANYBODY)
    assert beside.documents == alone.documents


def test_an_empty_store_is_a_reason_and_not_an_error(tmp_path: Path) -> None:
    found = retrieve_standard(corpus_of(tmp_path, []), plan(), caller=ANYBODY)
    assert found.documents == () and found.error is None
    assert found.shortfall == "none of type abstract"


def grader() -> Grader:
    return similarity_grader(load_embedder())


def test_what_passes_on_is_the_best_five_chunks_of_all_documents(corpus: Corpus) -> None:
    answer = standard_answer(corpus, plan(generation_required=True), caller=ANYBODY, load_grader=grader)
    graded = answer["sides"][0]["graded"]
    assert len(graded["chunks"]) == 5 and graded["chunks_looked_at"] >= 10
    assert all(len(chunk["text"]) <= 300 for chunk in graded["chunks"])
