"""The documents that a process caches are updated by what has changed, and shared by running searches."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paper_assets.retrieval import snapshot
from paper_assets.retrieval.snapshot import Snapshot, snapshot_of
from paper_assets.settings import RetrievalConfig
from paper_assets.stores.documents import Document
from tests.retrieval.test_search import METHODS, corpus_at, document, fill, find, ids

COUNT = 300


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many documents each reading has returned."""
    counts: list[int] = []
    real = snapshot.read_documents

    def counting(*given: Any, **more: Any) -> Iterator[Any]:
        for table in real(*given, **more):
            counts.append(len(table))
            yield table

    monkeypatch.setattr(snapshot, "read_documents", counting)
    return counts


def library(**changed: str) -> list[Document]:
    texts = {f"d{number:03}": f"{number % 16} alpha {'beta' * (number % 3)} {number}" for number in range(COUNT)}
    return [document(doc_id, text, version=7) for doc_id, text in sorted({**texts, **changed}.items())]


def test_one_changed_document_is_read_alone_and_the_answers_are_those_of_a_new_reading(
    tmp_path: Path, read: list[int]
) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, library())
    find(corpus, "0 alpha", method="hybrid")
    assert sum(read) == COUNT
    read.clear()
    fill(corpus, library(d007="3 gamma gamma", d299="bare gamma", x="4 delta")[1:])  # d000 is gone
    asked = [(method, question) for method in METHODS for question in ("3 gamma", "0 alpha", "4 delta")]
    warm = {each: find(corpus, each[1], k=40, method=each[0]) for each in asked}
    assert sum(read) == 3, "two changed and a new one"
    snapshot._KEPT.clear()
    assert {each: find(corpus, each[1], k=40, method=each[0]) for each in asked} == warm
    assert ids(find(corpus, "3 gamma", k=1, method="hybrid")) == ["d007"] and "d000" not in ids(
        find(corpus, "0 alpha", k=COUNT)
    )


def test_new_vectors_of_old_documents_are_read_alone(tmp_path: Path, read: list[int]) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, library())
    fill(corpus, [document("late", "5 epsilon")], origin="late", embed=False)
    assert find(corpus, "5 epsilon").unembedded == 1
    read.clear()
    fill(corpus, [document("late", "5 epsilon")], origin="late")
    found = find(corpus, "5 epsilon", k=1, method="hybrid")
    assert (sum(read), found.unembedded, ids(found)) == (1, 0, ["late"])


def test_a_write_that_changes_no_document_reads_none(tmp_path: Path, read: list[int]) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, library())
    before = find(corpus, "0 alpha")
    read.clear()
    with corpus.warehouse.writing() as connection:
        connection.execute("insert into llm_answers values ('key', 'model', '{}', 1, 1)")
    assert find(corpus, "0 alpha") == before and not read


def test_a_running_search_continues_with_the_documents_it_began_with(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, library())
    old = kept(corpus.warehouse)
    fill(corpus, library(d001="9 omega"))
    new = kept(corpus.warehouse)
    for each, text in ((old, "1 alpha beta 1"), (new, "9 omega")):
        matching = each.matching_documents({"paper_id": "d001"}, None)
        assert [found["text"] for found in matching.documents(np.arange(len(matching.embedded)))] == [text]


def kept(warehouse: Any) -> Snapshot:
    found = snapshot_of(warehouse, "fulltext", model="by hand", most_bytes=10**9)
    assert found is not None
    return found


def test_documents_beyond_the_memory_go_to_a_file_and_beyond_that_are_not_kept(tmp_path: Path) -> None:
    corpus = corpus_at(tmp_path)
    fill(corpus, library())
    answers = {}
    for name, memory in (("whole", 10**9), ("in a file", 400 * COUNT), ("nothing", 0)):
        snapshot._KEPT.clear()
        limited = replace(corpus, config=RetrievalConfig(memory=memory))
        answers[name] = [find(limited, "3 alpha", k=7, method=method, where={"version": 7}) for method in METHODS]
        [entry] = snapshot._KEPT.values()
        assert entry.size <= memory
        assert (entry.snapshot is not None, bool(entry.snapshot and entry.snapshot.spill)) == {
            "whole": (True, False),
            "in a file": (True, True),
            "nothing": (False, False),
        }[name]
    assert answers["whole"] == answers["in a file"] == answers["nothing"]
