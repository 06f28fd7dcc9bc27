"""Concurrent and killed processes on one Chroma folder, and a full disk, lose nothing and answer nothing wrong."""

import os
import random
import resource
import shutil
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from chromadb.api.models.Collection import Collection

from paper_assets.retrieval.merge import access
from paper_assets.retrieval.search import Corpus, search
from paper_assets.stores import chroma
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.vectors import mark_for_rebuild
from paper_assets.stores.warehouse import Warehouse
from tests.chroma_folder import DIMENSION, MODEL, entries, fill, passage, store, vector_of
from tests.invented_papers import started
from tests.retrieval.test_search import embedder_of

TWO_GIGABYTES = 2 << 30  # a damaged folder can grow without limit, so the size of files is limited
Child = tuple[BaseProcess, Connection]


def begin(folder: Path, *work: str, largest_file: int = TWO_GIGABYTES) -> Child:
    """Start a process that does the work (`fill`, `search`, `store N`), and sends an answer for each."""
    return started(_work, folder, largest_file, work)


def done(child: Child) -> list[dict[str, object]]:
    process, sent = child
    answers = []
    with suppress(EOFError):
        while sent.poll(300):
            answers.append(sent.recv())
    process.join(300)
    return answers


def corpus(folder: Path) -> tuple[Warehouse, VectorIndex]:
    return Warehouse(folder / "w.duckdb", deadline=60), VectorIndex(folder / "chroma", deadline=60)


def check(folder: Path, ids: Sequence[str]) -> None:
    """After an update the folder holds these, and a search that asks it finds each."""
    warehouse, index = corpus(folder)
    fill(index, warehouse)
    assert set(entries(index, "fulltext")) == set(ids)
    [_, answer] = done(begin(folder, "search"))
    assert answer["way"] == "Chroma" and answer["found"] == answer["exact"]


def test_two_processes_that_write_and_search_lose_nothing(tmp_path: Path) -> None:
    warehouse, index = corpus(tmp_path)
    store(warehouse, [passage(f"p{number}") for number in range(200)])
    fill(index, warehouse)
    work = [word for number in range(3) for word in (f"store {number}", "fill", "search")]
    with ThreadPoolExecutor(2) as pool:
        others = [each.replace("store ", "store 1") for each in work]
        one, other = pool.map(done, [begin(tmp_path, *work), begin(tmp_path, *others)])
    for answer in (*one, *other):
        assert "fault" not in answer, answer
    stored = [f"{origin}.{number}" for origin in (0, 1, 2, 10, 11, 12) for number in range(20)]
    check(tmp_path, [*(f"p{number}" for number in range(200)), *stored])


def test_kills_at_any_moment_of_a_write_lose_no_vector_and_a_search_is_right_meanwhile(tmp_path: Path) -> None:
    moments = random.Random(7)
    warehouse, index = corpus(tmp_path)
    store(warehouse, [passage(f"p{number}") for number in range(200)])
    fill(index, warehouse)
    killed = 0
    for attempt in range(3):
        store(warehouse, [passage(f"{attempt}.{number}") for number in range(800)], origin="second")
        victim, sent = begin(tmp_path, "fill")
        assert sent.recv() == {}, "it has begun"
        victim.join(moments.uniform(0, 0.5))
        killed += victim.exitcode is None
        victim.kill()
        victim.join()
        [_, answer] = done(begin(tmp_path, "search"))
        assert answer["found"] == answer["exact"], answer
    assert killed, "none was killed at work"
    check(tmp_path, [*(f"p{number}" for number in range(200)), *(f"2.{number}" for number in range(800))])


def test_a_full_disk_is_one_clear_line_and_is_repaired_once_there_is_space(tmp_path: Path) -> None:
    warehouse, _ = corpus(tmp_path)
    store(warehouse, [passage(f"p{number}") for number in range(1_000)])
    [_, answer] = done(begin(tmp_path, "fill", largest_file=300_000))
    assert answer["fault"] == "StoreUnwritable", answer
    assert "space" in str(answer["text"]) and "\n" not in str(answer["text"])
    [_, answer] = done(begin(tmp_path, "search"))
    assert str(answer["way"]).startswith("SQL: ") and answer["found"] == answer["exact"]
    check(tmp_path, [f"p{number}" for number in range(1_000)])


def kept_reader(folder: Path) -> Path:
    """Store and fill 300 passages and search once, so that this process keeps a client of the folder; return it."""
    warehouse, index = corpus(folder)
    store(warehouse, [passage(f"p{number}") for number in range(300)])
    fill(index, warehouse)
    assert answers(folder)["way"] == "Chroma"
    assert isinstance(index.place, Path) and index.place in chroma._readers
    return index.place


def test_a_search_finds_what_another_process_wrote_since_the_last_one(tmp_path: Path) -> None:
    place = kept_reader(tmp_path)
    client = chroma._readers[place].client
    assert answers(tmp_path)["way"] == "Chroma" and chroma._readers[place].client is client, "it is opened once"
    done(begin(tmp_path, "store 1"))
    answer = answers(tmp_path, "text of 1.7")
    assert answer["found"] == answer["exact"] and answer["found"][0] == "1.7"
    assert answer["way"] == "SQL: the Chroma folder does not hold the newest changes yet"
    done(begin(tmp_path, "fill"))
    answer = answers(tmp_path, "text of 1.7")
    assert answer["found"] == answer["exact"] and answer["found"][0] == "1.7" and answer["way"] == "Chroma"
    # What the folder should hold is the same as before, but its files are not.
    done(begin(tmp_path, "rebuild", "fill"))
    answer = answers(tmp_path, "text of 1.7")
    assert answer["found"] == answer["exact"] and answer["way"] == "Chroma"
    fill(corpus(tmp_path)[1], corpus(tmp_path)[0])
    assert len(entries(place, "fulltext")) == 320
    check(tmp_path, [*(f"p{number}" for number in range(300)), *(f"1.{number}" for number in range(20))])


def test_a_client_of_a_removed_folder_is_not_asked_and_does_no_harm_to_the_new_one(tmp_path: Path) -> None:
    place = kept_reader(tmp_path)
    shutil.rmtree(place)
    answer = answers(tmp_path)
    assert answer["found"] == answer["exact"] and str(answer["way"]).startswith("SQL: the Chroma folder")
    kept_reader(tmp_path)
    shutil.rmtree(place)
    done(begin(tmp_path, "fill"))  # by another process, before this one notices
    assert place in chroma._readers
    answer = answers(tmp_path)
    assert answer["found"] == answer["exact"] and answer["way"] == "Chroma"
    check(tmp_path, [f"p{number}" for number in range(300)])


def test_a_client_is_not_asked_after_another_process_was_killed_at_a_write(tmp_path: Path) -> None:
    place = kept_reader(tmp_path)
    done(begin(tmp_path, "die at fill"))
    assert place in chroma._readers
    answer = answers(tmp_path)
    assert answer["found"] == answer["exact"] and answer["way"] != "Chroma"
    check(tmp_path, [*(f"p{number}" for number in range(300)), *(f"x.{number}" for number in range(20))])
    assert answers(tmp_path)["way"] == "Chroma"


def test_a_process_that_keeps_a_client_and_is_killed_leaves_no_mark(tmp_path: Path) -> None:
    place = kept_reader(tmp_path)
    other, sent = begin(tmp_path, "search", "wait")
    assert (sent.recv(), sent.recv()["way"]) == ({}, "Chroma")
    answer = answers(tmp_path)
    assert answer["found"] == answer["exact"] and answer["way"] == "Chroma", "a client at rest holds no lock"
    other.kill()
    other.join()
    assert not place.with_name("chroma.unfinished").exists()
    assert fill(corpus(tmp_path)[1], corpus(tmp_path)[0]).rebuilt is None


def test_many_threads_search_while_another_process_writes(tmp_path: Path) -> None:
    kept_reader(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        quiet = list(pool.map(lambda number: answers(tmp_path, f"text of p{number}"), range(20)))
        assert {answer["way"] for answer in quiet} == {"Chroma"}, "they wait for one another"
        other = begin(tmp_path, "store 1", "fill", "rebuild", "fill")
        busy = list(pool.map(lambda number: answers(tmp_path, f"text of p{number}"), range(20)))
        done(other)
    for number, answer in enumerate([*quiet, *busy]):
        assert answer["found"] == answer["exact"] and answer["found"][0] == f"p{number % 20}", answer
    check(tmp_path, [*(f"p{number}" for number in range(300)), *(f"1.{number}" for number in range(20))])


def answers(folder: Path, question: str = "text of p7") -> dict[str, Any]:
    """Search with Chroma and without."""
    warehouse, index = corpus(folder)
    with warehouse.read_together() as now:  # both see the same documents
        both = Corpus(warehouse=now, embedder=embedder_of(vector_of, MODEL, DIMENSION), index=index)
        found, exact = (
            search(each, question, data_type="fulltext", where=access(None), k=10, method="hybrid")
            for each in (both, replace(both, index=None))
        )
    named = (("found", found), ("exact", exact))
    return {"way": found.way} | {name: [each.doc_id for each in one.candidates] for name, one in named}


def _work(sent: Connection, folder: Path, largest_file: int, words: Sequence[str]) -> None:
    """What a child does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    warehouse, index = corpus(folder)
    sent.send({})
    for word in words:
        answer: dict[str, object] = {}
        try:
            if word == "fill":
                answer = {"upserted": fill(index, warehouse).upserted}
            elif word == "search":
                answer = answers(folder)
            elif word == "rebuild":
                mark_for_rebuild(index)
            elif word == "wait":
                time.sleep(600)
            elif word == "die at fill":
                store(warehouse, [passage(f"x.{number}") for number in range(20)], origin="x")
                Collection.modify = lambda *_, **_named: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore
                fill(index, warehouse)
            else:
                origin = word.removeprefix("store ")
                store(warehouse, [passage(f"{origin}.{number}") for number in range(20)], origin=origin)
        except Exception as fault:
            answer = {"fault": type(fault).__name__, "text": str(fault)}
        sent.send(answer)
