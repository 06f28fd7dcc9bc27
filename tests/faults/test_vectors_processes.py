"""Concurrent and killed processes on one Chroma folder, and a full disk, lose nothing and answer nothing wrong."""

import json
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from paper_assets.retrieval.merge import access
from paper_assets.stores.vectors import VectorIndex
from paper_assets.stores.warehouse import Warehouse
from tests.chroma_folder import entries, fill, passage, store

TWO_GIGABYTES = 2 << 30  # a damaged folder can grow without limit, so the size of files is limited
CHILD = [sys.executable, "-m", "tests.faults.test_vectors_processes"]


def begin(folder: Path, *work: str, largest_file: int = TWO_GIGABYTES) -> "subprocess.Popen[str]":
    """Start a process that does the work (`fill`, `search`, `store N`), and answers with a line for each."""
    command = [*CHILD, str(folder), str(largest_file), *work]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def done(process: "subprocess.Popen[str]") -> list[dict[str, object]]:
    answers, _ = process.communicate(timeout=300)
    return [json.loads(line) for line in answers.splitlines()]


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
    for attempt in range(5):
        store(warehouse, [passage(f"{attempt}.{number}") for number in range(800)], origin="second")
        with begin(tmp_path, "fill") as victim:
            assert victim.stdout and victim.stdout.readline(), "it has begun"
            with suppress(subprocess.TimeoutExpired):
                victim.wait(timeout=moments.uniform(0, 0.5))
            killed += victim.poll() is None
            victim.kill()
        [_, answer] = done(begin(tmp_path, "search"))
        assert answer["found"] == answer["exact"], answer
    assert killed, "none was killed at work"
    check(tmp_path, [*(f"p{number}" for number in range(200)), *(f"4.{number}" for number in range(800))])


def test_a_full_disk_is_one_clear_line_and_is_repaired_once_there_is_space(tmp_path: Path) -> None:
    warehouse, _ = corpus(tmp_path)
    store(warehouse, [passage(f"p{number}") for number in range(1_000)])
    [_, answer] = done(begin(tmp_path, "fill", largest_file=300_000))
    assert answer["fault"] == "StoreUnwritable", answer
    assert "space" in str(answer["text"]) and "\n" not in str(answer["text"])
    [_, answer] = done(begin(tmp_path, "search"))
    assert str(answer["way"]).startswith("SQL: ") and answer["found"] == answer["exact"]
    check(tmp_path, [f"p{number}" for number in range(1_000)])


def _work(folder: Path, words: Sequence[str]) -> None:
    """What a child does."""
    from dataclasses import replace

    from paper_assets.retrieval.search import Corpus, search
    from tests.chroma_folder import DIMENSION, MODEL, vector_of
    from tests.retrieval.test_search import embedder_of

    warehouse, index = corpus(folder)
    embedder = embedder_of(vector_of, MODEL, DIMENSION)
    print(json.dumps({}), flush=True)
    for word in words:
        answer: dict[str, object] = {}
        try:
            if word == "fill":
                answer = {"upserted": fill(index, warehouse).upserted}
            elif word == "search":
                both = Corpus(warehouse=warehouse, embedder=embedder, index=index)
                found, exact = (
                    search(each, "text of p7", data_type="fulltext", where=access(None), k=10, method="hybrid")
                    for each in (both, replace(both, index=None))
                )
                answer = {"way": found.way} | {
                    name: [each.doc_id for each in one.candidates] for name, one in (("found", found), ("exact", exact))
                }
            else:
                origin = word.removeprefix("store ")
                store(warehouse, [passage(f"{origin}.{number}") for number in range(20)], origin=origin)
        except Exception as fault:
            answer = {"fault": type(fault).__name__, "text": str(fault)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    largest = int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))
    _work(Path(sys.argv[1]), sys.argv[3:])
