"""A library's works as papers that a profile likes (SPEC Z1): by arXiv id or DOI, else by title and abstract.

Doing it again changes nothing; what has neither an id nor a title is listed, and a word given elsewhere is not undone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from paper_assets.learning.ratings import check_profile
from paper_assets.library.entries import Entry, known_as
from paper_assets.stores.papers import paper_titled, papers_by_id
from paper_assets.stores.ratings import NewRating, append_ratings, rating_history
from paper_assets.stores.warehouse import Warehouse

_LONGEST_TITLE, _LONGEST_ABSTRACT = 1_000, 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How many works were read, which ids are liked now, how many of these are stored papers, and what was left out."""

    read: int
    new: tuple[str, ...]
    stored: int
    left_out: tuple[str, ...]


def import_library(
    warehouse: Warehouse, profile: str, entries: Sequence[Entry], *, now: datetime, profiles_dir: Path
) -> Imported:
    """Like every work that can be told apart. Raises InvalidProfile, StoreBusy."""
    check_profile(warehouse, profile, profiles_dir)
    found: dict[str, Entry] = {}
    left_out = []
    for entry in entries:
        paper_id = known_as(entry)
        if paper_id is None:
            left_out.append(f"{entry.where}: neither an arXiv id, a DOI nor a title")
            continue
        if paper_id.startswith(("title:", "doi:")) and entry.title and (paper := paper_titled(warehouse, entry.title)):
            paper_id = paper.paper_id
        found.setdefault(paper_id, entry)
    known = set(papers_by_id(warehouse, list(found)).column("paper_id").to_pylist())
    unknown = {each for each, entry in found.items() if each not in known and not entry.title}
    left_out += [f"{found[each].where}: {each} is not stored, and the entry has no title" for each in sorted(unknown)]
    said = {each.paper_id for each in rating_history(warehouse, profile)}
    liked = [
        NewRating(
            paper_id=paper_id,
            rating="worth",
            title=None if paper_id in known else entry.title[:_LONGEST_TITLE],
            abstract=None if paper_id in known else entry.abstract[:_LONGEST_ABSTRACT],
        )
        for paper_id, entry in found.items()
        if paper_id not in said and paper_id not in unknown
    ]
    new = append_ratings(warehouse, profile, liked, given_in="import", now=now)
    return Imported(read=len(entries), new=tuple(new), stored=len(known), left_out=tuple(left_out))
