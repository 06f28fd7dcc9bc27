"""Provide invented papers, and work on a warehouse in separate processes."""

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from paper_assets.paper import Paper, papers_from_table
from paper_assets.stores.papers import papers_between
from paper_assets.stores.warehouse import Warehouse
from tests.forked_commands import can_fork, forking

MONDAY, TUESDAY, WEDNESDAY = date(2026, 1, 5), date(2026, 1, 6), date(2026, 1, 7)

Work = Callable[..., None]


def at(day: date, hour: int = 12) -> datetime:
    return datetime(day.year, day.month, day.day, hour, tzinfo=UTC)


def paper(paper_id: str = "2601.00001", day: date | None = MONDAY, **changes: Any) -> Paper:
    """Return a small paper of a day."""
    fields: dict[str, Any] = {
        "title": f"On {paper_id}",
        "abstract": f"We study {paper_id}.",
        "authors": ("Ada Moreau",),
        "published": at(day) if day else None,
        "categories": ("cs.CL",),
        "primary_category": "cs.CL",
    }
    return Paper(paper_id=paper_id, **{**fields, **changes})


def papers_of(day: date, count: int, **changes: Any) -> list[Paper]:
    """Return papers of a day with ids derived from the day, so that no two days share one."""
    return [paper(f"{day:%y%m}.{day.day:02d}{number:03d}", day, **changes) for number in range(count)]


def stored(warehouse: Warehouse) -> dict[str, Paper]:
    """Return all papers in the warehouse; fail if an id is there twice."""
    papers = papers_from_table(papers_between(warehouse, None, None))
    found = {each.paper_id: each for each in papers}
    assert len(found) == len(papers)
    return found


@contextmanager
def process(work: Work, *arguments: object) -> Iterator[tuple[BaseProcess, Connection]]:
    """Run `work(connection, *arguments)` in a new process that is killed when the block ends.

    Its environment is the one in which the first of them started.
    """
    child, here = started(work, *arguments)
    try:
        yield child, here
    finally:
        child.kill()
        child.join()


def started(work: Work, *arguments: object) -> tuple[BaseProcess, Connection]:
    """Start a process as `process` does; return it and the end of its connection."""
    context = forking() if can_fork(os.environ) else get_context("spawn")
    here, there = context.Pipe()
    child = context.Process(target=work, args=(there, *arguments))
    child.start()
    there.close()
    return child, here


def allow_files_of(size: int) -> None:
    """Refuse this process files larger than `size` bytes, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def listing(folder: Path) -> set[str]:
    """The names in a folder, without the locks, which stay."""
    return {entry.name for entry in folder.iterdir() if entry.suffix != ".lock"}
