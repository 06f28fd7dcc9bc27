"""Papers in a warehouse of their own for the time of an evaluation, so that the user's days stay as they are."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from paper_assets.paper import Paper
from paper_assets.sources.bulk_files import read_papers
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.warehouse import Warehouse


@contextmanager
def scratch_warehouse(papers: Iterable[Paper], *, deadline: float) -> Iterator[Warehouse]:
    """A warehouse that holds these papers and is gone afterwards; it lies alone in its folder."""
    with TemporaryDirectory(prefix="paper_assets-") as folder:
        warehouse = Warehouse(Path(folder) / "warehouse.duckdb", deadline=deadline)
        merge_papers(warehouse, papers)
        yield warehouse


@contextmanager
def papers_or_home(papers: Path | None, home: Warehouse, *, deadline: float) -> Iterator[Warehouse]:
    """The papers of a bulk file in a scratch warehouse; without a file the user's own warehouse."""
    if papers is None:
        yield home
    else:
        with scratch_warehouse(read_papers(papers), deadline=deadline) as warehouse:
            yield warehouse
