"""Searches without a filter ask Chroma, and answer what a comparison of every document answers."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chromadb.api.models.Collection import Collection
from hypothesis import given, settings

from paper_assets.retrieval.answers import retrieve_standard
from paper_assets.retrieval.desk_search import search_desk, similar_papers
from paper_assets.retrieval.findings import Caller
from paper_assets.retrieval.merge import access
from paper_assets.retrieval.question_answering import gather_passages
from paper_assets.retrieval.search import Corpus, search
from paper_assets.retrieval.search_query import parse_search_query
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.documents import replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.papers import find_paper
from paper_assets.stores.vectors import update
from paper_assets.stores.warehouse import Warehouse
from tests.retrieval.invented_corpus import corpus_of, paper, passage, plan
from tests.retrieval.test_search import METHODS, corpus_at, document, embedder_of, fill, ids, libraries, questions


def with_chroma(corpus: Corpus, *collections: str) -> Corpus:
    """The corpus with a Chroma folder that is up to date."""
    index = VectorIndex(corpus.warehouse.path.with_name("chroma"), deadline=10)
    assert corpus.embedder is not None
    update(index, corpus.warehouse, collections or ["fulltext"], model=corpus.embedder.name)
    return replace(corpus, index=index)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_at(tmp_path_factory.mktemp("any"))


@given(library=libraries, asked=questions)
@settings(max_examples=settings().max_examples // 2)
def test_both_ways_give_the_same_answer(shared: Corpus, library: Any, asked: Any) -> None:
    documents = [
        document(f"d{number:02}", text, **({"access_level": "private", "owner": "me"} if number % 4 == 3 else {}))
        for number, (text, *_) in enumerate(library)
    ]
    fill(shared, documents)
    corpus = with_chroma(shared)
    for question, _, k, method in asked:
        for owner in (None, "me"):
            both, exact = (
                search(each, question, data_type="fulltext", where=access(owner), k=k, method=method)
                for each in (corpus, shared)
            )
            assert ids(both) == ids(exact)
            np.testing.assert_array_equal(
                [each.score for each in both.candidates], [each.score for each in exact.candidates]
            )
            assert (both.matching, both.method, both.unembedded) == (exact.matching, exact.method, exact.unembedded)
            assert both.way == ("SQL" if both.method == "lexical" else "Chroma") and exact.way == "SQL"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """1,500 documents with vectors of a few clusters, and 30 with one and the same."""
    chance = np.random.default_rng(4)
    centres = chance.normal(size=(20, 64))
    rows = centres[chance.integers(0, 20, 1_500)] + 0.4 * chance.normal(size=(1_500, 64))
    rows[:30] = rows[0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    words = ("alpha", "beta", "gamma", "delta")
    named = {f"{number} {' '.join(chance.choice(words, 3))}": row.astype(np.float32) for number, row in enumerate(rows)}
    corpus = Corpus(
        warehouse=Warehouse(tmp_path_factory.mktemp("many") / "w.duckdb", deadline=10),
        embedder=embedder_of(lambda text: named.get(text, named[next(iter(named))]), "many", 64),
    )
    fill(corpus, [document(f"d{number:04}", text) for number, text in enumerate(named)])
    return with_chroma(corpus)


def texts_of(corpus: Corpus) -> list[str]:
    return [text for (text,) in corpus.warehouse.rows("select text from documents order by doc_id")]


@pytest.mark.parametrize("method", ["vector", "hybrid"])
def test_many_equal_vectors_and_words_that_decide_change_nothing(many: Corpus, method: Any) -> None:
    for text in (*texts_of(many)[::100], "alpha beta"):
        both, exact = (
            search(each, text, data_type="fulltext", where=access(None), k=10, method=method)
            for each in (many, replace(many, index=None))
        )
        assert both.way == "Chroma"
        assert [(each.doc_id, each.score) for each in both.candidates] == [
            (each.doc_id, each.score) for each in exact.candidates
        ]


def test_the_same_documents_give_the_same_answer_whatever_the_order_in_which_chroma_got_them(
    many: Corpus, tmp_path: Path
) -> None:
    """The graph of Chroma depends on the order of the entries; exact scores of a long shortlist do not."""
    assert many.embedder is not None
    again = Corpus(warehouse=Warehouse(tmp_path / "w.duckdb", deadline=10), embedder=many.embedder)
    whole = [document(f"d{number:04}", text) for number, text in enumerate(texts_of(many))]
    for part in (whole[900:], whole[:300], whole[300:900]):
        fill(again, part, origin=part[0].doc_id)
        again = with_chroma(again)
    for text in texts_of(many)[7::60]:
        one, other = (
            search(each, text, data_type="fulltext", where=access(None), k=10, method="hybrid")
            for each in (many, again)
        )
        assert one.way == other.way == "Chroma"
        assert one.candidates == other.candidates


def test_a_text_that_is_stored_very_often_is_not_left_to_chroma(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, [document(f"d{number}", "0 alpha") for number in range(50)])
    found = search(with_chroma(corpus), "0 alpha", data_type="fulltext", where=access(None), k=3, method="vector")
    assert ids(found) == ["d0", "d1", "d10"]
    assert found.way == "SQL: one text is stored 50 times, among which Chroma's search gets lost"


def test_vectors_that_are_not_those_of_the_database_are_noticed(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, [document("a", "0 alpha"), document("b", "1 beta")])
    corpus = with_chroma(corpus)
    corpus.warehouse.run("update embeddings set vector = [0.0, 0.0, 0.0, 1.0]")
    found = search(corpus, "0 alpha", data_type="fulltext", where=access(None), k=1, method="vector")
    assert found.way == "SQL: the Chroma folder holds other vectors than the database"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The collections that were queried."""
    names: list[str] = []
    real = Collection.query

    def counting(self: Collection, *given: Any, **more: Any) -> Any:
        names.append(self.name)
        return real(self, *given, **more)

    monkeypatch.setattr(Collection, "query", counting)
    return names


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    papers = [paper(number) for number in range(1, 7)]
    passages = {"one": [passage(f"x{number}", "2603.00001", f"A passage on bees {number}.") for number in range(3)]}
    yield with_chroma(corpus_of(tmp_path_factory.mktemp("desk"), papers, passages), "abstract", "fulltext")


BEES = "bees find their way home"
PRODUCTS: dict[str, tuple[Callable[[Corpus], Any], list[str]]] = {
    "search": (lambda desk: search_desk(desk, parse_search_query(BEES), profile=None), ["abstract"]),
    "search of a profile": (lambda desk: search_desk(desk, parse_search_query(BEES), profile="me"), ["abstract"]),
    "search in full texts": (
        lambda desk: search_desk(desk, parse_search_query(f"{BEES} in:fulltexts"), profile=None),
        ["fulltext"],
    ),
    "similar papers": (lambda desk: similar_papers(desk, known(desk)), ["abstract"]),
    "a question over everything": (
        lambda desk: gather_passages(desk, BEES, where=access("me")),
        ["abstract", "fulltext"],
    ),
    "a plan without conditions": (
        lambda desk: retrieve_standard(desk, plan(BEES, filters={}), caller=Caller()),
        ["abstract"],
    ),
    "a filter": (lambda desk: search_desk(desk, parse_search_query(f"{BEES} category:cs.CL"), profile=None), []),
    "a plan with a date": (
        lambda desk: retrieve_standard(desk, plan(BEES, filters={"startdate": "2026-03-01"}), caller=Caller()),
        [],
    ),
}


def known(desk: Corpus) -> Any:
    return find_paper(desk.warehouse, "2603.00004")


@pytest.mark.parametrize(("product", "collections"), PRODUCTS.values(), ids=PRODUCTS.keys())
def test_what_searches_without_a_filter_asks_chroma_once_for_each_collection(
    desk: Corpus, asked: list[str], product: Callable[[Corpus], Any], collections: list[str]
) -> None:
    product(desk)
    assert asked == collections


def test_a_private_document_is_compared_beside_chroma(desk: Corpus, asked: list[str]) -> None:
    assert desk.embedder is not None
    own = replace(passage("own", "2603.00002", "My notes on bees."), access_level="private", owner="me")
    replace_documents(desk.warehouse, "fulltext", origin="mine", documents=[own])

    hashes, texts = texts_to_embed(desk.warehouse, "fulltext", model=desk.embedder.name)
    keep_vectors(desk.warehouse, hashes, desk.embedder.encode(texts), model=desk.embedder.name)
    for owner, expected in (("me", True), (None, False), ("another", False)):
        found = search(desk, "notes on bees", data_type="fulltext", where=access(owner), k=4, method="hybrid")
        assert found.way == "Chroma" and ("own" in ids(found)) == expected
    assert asked == ["fulltext"] * 3


def test_methods_without_meaning_do_not_ask(desk: Corpus, asked: list[str]) -> None:
    assert METHODS[1] == "lexical"
    search(desk, BEES, data_type="abstract", where=access(None), k=3, method="lexical")
    search(replace(desk, embedder=None), BEES, data_type="abstract", where=access(None), k=3, method="hybrid")
    assert asked == []


def test_documents_keep_the_type_of_their_fields(desk: Corpus) -> None:
    one, other = (
        search(each, BEES, data_type="abstract", where=access(None), k=6, method="hybrid")
        for each in (desk, replace(desk, index=None))
    )
    assert one.candidates == other.candidates and isinstance(one.candidates[0].metadata["categories"], list)
