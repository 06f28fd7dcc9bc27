"""Import of a back-catalogue: `merge_papers` against inserting row by row; speed as a ratio, and peak memory.

    python -m benchmarks.import_snapshot [--lines 200000] [--file SNAPSHOT]

The papers are invented unless a file is given. Every stage runs in a separate process, so that its peak memory is
measured alone.
"""

import argparse
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

from paper_assets.paper import Paper, papers_to_table
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse

_ROW_BY_ROW = 300  # papers inserted one at a time; the figure is scaled

Stage = Callable[[Warehouse, Iterable[Paper]], int]


def invented_papers(count: int) -> Iterator[Paper]:
    """A stream like a snapshot of arXiv: abstracts of some 1,200 characters, 2 % of the papers twice."""
    chance = random.Random(7)
    words = [
        "".join(chance.choices("abcdefghijklmnoprstuvw", k=length)) for length in chance.choices(range(2, 13), k=6_000)
    ]
    start = datetime(2015, 1, 1, tzinfo=UTC)
    for number in range(count):
        work = number if chance.random() > 0.02 else chance.randrange(number + 1)
        published = start + timedelta(minutes=25 * work)
        yield Paper(
            paper_id=f"{published:%y%m}.{work % 100_000:05d}{work // 100_000}",
            title=" ".join(chance.choices(words, k=10)).capitalize(),
            abstract=" ".join(chance.choices(words, k=150)),
            authors=tuple(" ".join(chance.choices(words, k=2)).title() for _ in range(4)),
            version=chance.randrange(1, 4),
            published=published,
            updated=published + timedelta(days=30),
            categories=("cs.LG", "stat.ML"),
            primary_category="cs.LG",
            comment=" ".join(chance.choices(words, k=6)),
        )


class _Source:
    """The papers, and the seconds that making or parsing them took, which are not the store's."""

    def __init__(self, file: Path | None, lines: int) -> None:
        self.file, self.lines, self.seconds = file, lines, 0.0

    def __iter__(self) -> Iterator[Paper]:
        if self.file is None:
            papers = invented_papers(self.lines)
        else:
            papers = islice(read_papers(self.file, on_fault=lambda fault: None), self.lines)
        while True:
            started = time.perf_counter()
            paper = next(papers, None)
            self.seconds += time.perf_counter() - started
            if paper is None:
                return
            yield paper


def _merged(warehouse: Warehouse, papers: Iterable[Paper]) -> int:
    return merge_papers(warehouse, papers).read


def _row_by_row(warehouse: Warehouse, papers: Iterable[Paper]) -> int:
    """The baseline: one statement per paper, in one transaction, into the same table."""
    rows = papers_to_table(papers).to_pylist()
    columns = ", ".join([*rows[0], "text_hash", "content_hash", "origin"])
    places = ", ".join(["?"] * len(rows[0]))
    with warehouse.writing() as connection:
        for row in rows:
            connection.execute(
                f"insert or replace into papers ({columns}) values ({places}, '', '', 'file')", list(row.values())
            )
    return len(rows)


def _measured(stage: Stage, path: Path, source: _Source) -> tuple[int, float, float]:
    """Papers, seconds of the store alone, and peak MB of a stage in a fresh process."""
    context = get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    child = context.Process(target=_report, args=(sending, stage, path, source))
    child.start()
    sending.close()
    figures: tuple[int, float, float] = receiving.recv()
    child.join()
    return figures


def _report(sending: Connection, stage: Stage, path: Path, source: _Source) -> None:
    started = time.perf_counter()
    papers = stage(Warehouse(path, deadline=10), source)
    seconds = time.perf_counter() - started - source.seconds
    unit = 2**20 if sys.platform == "darwin" else 2**10
    sending.send((papers, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--file", type=Path, help="a snapshot, Atom or JSON-lines file instead of invented papers")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        many, few = Path(folder, "many.duckdb"), Path(folder, "few.duckdb")
        papers, seconds, peak = _measured(_merged, many, _Source(given.file, given.lines))
        again, repeating, _ = _measured(_merged, many, _Source(given.file, given.lines))
        sample, slow, _ = _measured(_row_by_row, few, _Source(given.file, min(_ROW_BY_ROW, given.lines)))
        size = many.stat().st_size / 2**20
    print("without the time of making or parsing the papers")
    print(f"merge_papers      {papers:9,} papers  {papers / seconds:9,.0f} papers/s   warehouse {size:,.0f} MB")
    print(f"the same again    {again:9,} papers  {again / repeating:9,.0f} papers/s")
    print(f"row by row        {sample:9,} papers  {sample / slow:9,.0f} papers/s")
    print(f"merge_papers is {papers / seconds / (sample / slow):,.0f} times as fast as row by row (target: 50)")
    print(f"peak memory of merge_papers {peak:,.0f} MB (target: under 500)")


if __name__ == "__main__":
    main()
