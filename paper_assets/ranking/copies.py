"""Find papers that are stored twice under two ids, so that a list shows them once (SPEC G20)."""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from paper_assets.ranking.tags import ALSO_AS, COPY_OF
from paper_assets.text.names import name_forms
from paper_assets.text.words import normal_forms


def copies_of(papers: pa.Table) -> dict[int, int]:
    """Return by row of a copy the row of the paper that it repeats: the one with the smaller id.

    Two papers are the same if their titles are, and their abstracts or all their authors.
    """
    titles = normal_forms(papers.column("title").to_pylist())
    ids = papers.column("paper_id").to_pylist()
    by_title: dict[str, list[int]] = {}
    for row in np.argsort(ids, kind="stable").tolist():
        by_title.setdefault(titles[row], []).append(row)
    groups = [rows for title, rows in by_title.items() if title and len(rows) > 1]
    copies: dict[int, int] = {}
    for rows in groups:
        found = papers.take(rows)
        abstracts = normal_forms(found.column("abstract").to_pylist())
        authors = [sorted(name_forms(names)) for names in found.column("authors").to_pylist()]
        for at in range(1, len(rows)):
            same = [
                other
                for other in range(at)
                if rows[other] not in copies
                and (abstracts[at] == abstracts[other] or authors[at] == authors[other] != [])
            ]
            if same:
                copies[rows[at]] = rows[same[0]]
    return copies


def with_copies(tags: pa.ListArray, copies: Mapping[int, int], paper_ids: Sequence[str]) -> pa.ListArray:
    """Return the tags (n,) of papers with those that name the other paper."""
    by_row = tags.to_pylist()
    for copy, shown in sorted(copies.items(), key=lambda pair: paper_ids[pair[0]]):
        by_row[copy] = [*by_row[copy], f"{COPY_OF}:{paper_ids[shown]}"]
        by_row[shown] = [*by_row[shown], f"{ALSO_AS}:{paper_ids[copy]}"]
    return pa.array(by_row, type=pa.list_(pa.string()))
