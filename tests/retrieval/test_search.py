"""Test that a search equals a comparison of every stored document, also after changes."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput
from paper_assets.models.embedder import Embedder
from paper_assets.retrieval.search import Corpus, Found, Method, search
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import Document, count_documents, replace_documents, texts_to_embed
from paper_assets.stores.embeddings import keep_vectors
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse
from tests.invented_papers import paper, process
from tests.retrieval.plain_search import meets, plain_search
from tests.stores.test_document_filters import filters

METHODS: tuple[Method, ...] = get_args(Method)
WORDS = ("alpha", "beta", "gamma", "delta")
# Products and sums of these are exact in any order, so that what is equal on paper is equal in the machine.
VECTORS = [*np.eye(4), *-np.eye(4), *(np.array([a, b, c, 1]) / 2 for a in (1, -1) for b in (1, -1) for c in (1, -1))]


def vector_of(text: str) -> np.ndarray:
    """The vector that the number in a text names."""
    return VECTORS[int(text.split()[0])].astype(np.float32)


def embedder_of(vector: Callable[[str], np.ndarray], name: str, dimension: int) -> Embedder:
    """An embedder whose vectors are given."""

    def many(texts: list[str]) -> Any:
        yield range(len(texts)), np.array([vector(text) for text in texts])

    return Embedder(
        name=name, dimension=dimension, _one=lru_cache(vector), _many=many, _too_long=lambda texts: [False] * len(texts)
    )


def document(doc_id: str, text: str, **extra: Any) -> Document:
    fields: dict[str, Any] = {"paper_id": doc_id, "title": doc_id, "data_type": "fulltext", "access_level": "public"}
    return Document(doc_id=doc_id, text=text, **{**fields, **extra})


def corpus_at(folder: Path, **config: Any) -> Corpus:
    warehouse = Warehouse(folder / "warehouse.duckdb", deadline=30)
    return Corpus(warehouse=warehouse, embedder=embedder_of(vector_of, "by hand", 4), config=RetrievalConfig(**config))


def fill(corpus: Corpus, documents: Sequence[Document], *, origin: str = "file", embed: bool = True) -> None:
    """Make these the documents of an origin, and embed those whose text does not say otherwise."""
    replace_documents(corpus.warehouse, "fulltext", origin=origin, documents=documents)
    if embed and corpus.embedder:
        hashes, texts = texts_to_embed(corpus.warehouse, "fulltext", model=corpus.embedder.name)
        wanted = [at for at, text in enumerate(texts) if "bare" not in text]
        if wanted:
            vectors = corpus.embedder.encode([texts[at] for at in wanted])
            keep_vectors(corpus.warehouse, [hashes[at] for at in wanted], vectors, model=corpus.embedder.name)


def find(corpus: Corpus, question: str, *, k: int = 10, method: Method = "vector", where: Any = None) -> Found:
    return search(corpus, question, data_type="fulltext", where=where, k=k, method=method)


def ids(found: Found) -> list[str]:
    return [candidate.doc_id for candidate in found.candidates]


config = st.integers(0, len(VECTORS) - 1)
texts = st.builds(
    lambda number, words, bare: f"{number} {' '.join(words)}{' bare' if bare else ''}",
    config,
    st.lists(st.sampled_from(WORDS), max_size=4),
    st.integers(0, 5).map(lambda drawn: drawn == 0),
)
libraries = st.lists(
    st.tuples(
        texts,
        st.sampled_from(["cs.CL", "cs.LG", None]),
        st.sampled_from([20260301, 20260302, None]),
        st.lists(st.sampled_from(["cs.CL", "cs.LG", "cs.CV"]), unique=True, max_size=2),
    ),
    max_size=14,
)
questions = st.lists(
    st.tuples(texts, st.one_of(st.none(), filters), st.sampled_from([1, 2, 5, 40]), st.sampled_from(METHODS)),
    min_size=4,
    max_size=4,
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    return corpus_at(tmp_path_factory.mktemp("any"))


@given(library=libraries, asked=questions)
def test_a_search_gives_what_looking_at_every_document_gives(shared: Corpus, library: Any, asked: Any) -> None:
    compare(shared, library, asked)


def compare(corpus: Corpus, library: Any, asked: Any) -> None:
    """Fill the corpus and ask both the search and its twin."""
    documents = [
        document(f"d{number:02}", text, primary_category=category, date_int=day, categories=tuple(categories))
        for number, (text, category, day, categories) in enumerate(library)
    ]
    fill(corpus, documents)
    vectors = {each.text: vector_of(each.text).tolist() for each in documents if "bare" not in each.text}
    for question, where, k, method in asked:
        share = {"vector": 0.0, "lexical": None, "hybrid": corpus.config.lexical_share}[method]
        found = find(corpus, question, where=where, k=k, method=method)
        expected = plain_search(documents, vectors, question, vector_of(question), where=where, k=k, share=share)
        assert ids(found) == [doc_id for doc_id, _ in expected]
        np.testing.assert_allclose(
            [each.score for each in found.candidates], [score for _, score in expected], atol=1e-12
        )
        met = [each for each in documents if meets(each, where)]
        bare = sum("bare" in each.text for each in met)
        assert (found.matching, found.method) == (len(met), method)
        assert count_documents(corpus.warehouse, "fulltext", where) == len(met)
        assert found.unembedded == bare


def test_among_many_documents_the_best_are_found_and_their_scores_are_exact(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    rows = chance.normal(size=(3_000, 384))
    rows[1_000:1_400] = rows[0] + 1e-7 * chance.normal(size=(400, 384))  # hardly distinguishable in float32
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    named = {f"text {number}": row.astype(np.float32) for number, row in enumerate(rows)}
    embedder = embedder_of(named.__getitem__, "many", 384)
    corpus = Corpus(warehouse=Warehouse(tmp_path / "w.duckdb", deadline=5), embedder=embedder)
    documents = [
        document(f"d{number:04}", f"text {number}", date_int=20260301 + number % 2) for number in range(len(rows))
    ]
    fill(corpus, documents)
    for where, kept in ((None, slice(None)), ({"date_int": 20260302}, slice(1, None, 2))):
        asked = named["text 0"].astype(np.float64)
        truth = [
            (-min(float(named[each.text].astype(np.float64) @ asked), 1.0), each.doc_id) for each in documents[kept]
        ]
        found = find(corpus, "text 0", k=100, where=where)
        assert ids(found) == [doc_id for _, doc_id in sorted(truth)[:100]]
    assert found.candidates[0].score == pytest.approx(-min(truth)[0], abs=1e-12)


def test_equal_vectors_come_in_the_order_of_their_ids(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, [document(f"d{number:03}", f"{number % 2}", version=number) for number in range(200)])
    assert ids(find(corpus, "1", k=3)) == ["d001", "d003", "d005"]
    assert ids(find(corpus, "1", k=3, where={"version": {"$gte": 150}})) == ["d151", "d153", "d155"]


def test_a_search_without_embedder_is_by_words_and_reports_it(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, [document("a", "0 alpha"), document("b", "1 beta")])
    bare = Corpus(warehouse=corpus.warehouse, embedder=None)
    found = find(bare, "beta", method="hybrid")
    assert (ids(found), found.method, found.matching, found.unembedded) == (["b"], "lexical", 2, 2)
    assert ids(find(bare, "nothing of the kind")) == []


def test_what_another_process_has_written_is_seen_by_a_warm_search(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, [document("a", "0 alpha"), document("b", "1 alpha")])
    assert ids(find(corpus, "0")) == ["a", "b"]
    with process(_write_and_embed, str(tmp_path)) as (_, child):
        for change, expected in (
            ("move", ["b", "a"]),  # the same texts, each with the other id
            ("add", ["b", "c", "e", "a"]),  # e has no vector yet and is compared by its words
            ("embed two", ["b", "c", "e", "a", "d"]),  # nothing but vectors
            ("remove", ["a"]),
        ):
            child.send(change)
            assert child.recv() == change
            assert ids(find(corpus, "0")) == expected
            assert set(ids(find(corpus, "alpha", method="lexical"))) >= set(expected)


def _write_and_embed(parent: Connection, folder: str) -> None:
    corpus = corpus_at(Path(folder))
    both = [document("a", "1 alpha"), document("b", "0 alpha")]
    more = [document("d", "1 alpha too"), document("e", "0 alpha too")]
    while change := parent.recv():
        match change:
            case "move":
                fill(corpus, both)
            case "add":
                fill(corpus, [*both, document("c", "0 alpha alpha")])
                fill(corpus, more, origin="later", embed=False)
            case "embed two":
                fill(corpus, more, origin="later")
            case "remove":
                fill(corpus, [], origin="later")
                fill(corpus, both[:1])
        parent.send(change)


def test_a_private_document_is_found_only_if_the_filter_admits_it(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, [document("open", "1 beta"), document("mine", "0 alpha", access_level="private", owner="me")])
    public = {"access_level": "public"}
    for method in METHODS:
        assert "mine" not in ids(find(corpus, "0 alpha beta", method=method, where=public))
        assert ids(find(corpus, "0 alpha beta", method=method, where={"owner": "me"})) == ["mine"]
        # nor does it move the score of the others
        score = find(corpus, "0 alpha beta", method=method, where=public).candidates[0].score
        fill(corpus, [document("open", "1 beta")])
        assert find(corpus, "0 alpha beta", method=method, where=public).candidates[0].score == score
        fill(corpus, [document("open", "1 beta"), document("mine", "0 alpha", access_level="private", owner="me")])


def test_abstracts_are_found_with_what_is_known_of_their_paper_and_withdrawn_ones_are_not(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    papers = [
        paper("2601.00001", title="0 alpha"),
        paper("2601.00002", None, title="0 alpha", categories=("stat.ML", "cs.LG"), primary_category="stat.ML"),
        paper("2601.00003", title="0 alpha", withdrawn=True),
    ]
    merge_papers(corpus.warehouse, papers)
    found = search(corpus, "alpha", data_type="abstract", where=None, k=5, method="lexical")
    assert ids(found) == ["2601.00001", "2601.00002"]
    assert found.candidates[0].content == "0 alpha\n\nWe study 2601.00001."
    assert found.candidates[0].metadata == {
        "paper_id": "2601.00001",
        "title": "0 alpha",
        "date_int": 20260105,
        "primary_category": "cs.CL",
        "categories": ["cs.CL"],
        "topic_id": "cs",
        "data_type": "abstract",
        "access_level": "public",
        "language": "en",
        "version": 1,
        "url": "https://arxiv.org/abs/2601.00001",
        "owner": None,
    }
    assert found.candidates[1].metadata["date_int"] is None
    where = {"$and": [{"categories": {"$contains": "cs.LG"}}, {"topic_id": "stat"}]}
    assert count_documents(corpus.warehouse, "abstract", where) == 1


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_warehouse_has_no_answer_and_no_error(tmp_path: Path, method: Method) -> None:
    found = find(corpus_at(tmp_path), "0 alpha", method=method)
    assert (found.candidates, found.matching) == ((), 0)


@pytest.mark.parametrize(
    ("question", "k", "where", "named"),
    [
        ("0", 0, None, "k from 1"),
        (" ", 1, None, "needs a question"),
        ("0", 1, {"party": "A"}, "'party' is not a field"),
        ("0", 1, {"date_int": {"$gte": "soon"}}, "date_int"),
    ],
)
def test_what_cannot_be_searched_is_one_clear_line(
    tmp_path: Path, question: str, k: int, where: Any, named: str
) -> None:
    with pytest.raises(InvalidInput, match=named):
        find(corpus_at(tmp_path), question, k=k, where=where)
    assert not (tmp_path / "warehouse.duckdb").exists()
