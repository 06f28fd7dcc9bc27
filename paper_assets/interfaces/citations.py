"""Lists to take along (SPEC Z2): the papers of a ranking or of the ratings, in a reference manager's format."""

from datetime import date

from paper_assets.errors import InvalidInput, NotComputed
from paper_assets.library.formats import write_papers
from paper_assets.paper import papers_from_table
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import latest_ranking_day, ranking
from paper_assets.stores.ratings import WORDS, last_ratings
from paper_assets.stores.warehouse import Warehouse


def citations(
    warehouse: Warehouse, profile: str, name: str, *, day: date | None = None, rated: str | None = None
) -> str:
    """What the profile's ranking of `day` (None: the newest) shows, or, with `rated`, the papers with that word.

    Raises InvalidInput, NotComputed.
    """
    if rated is not None:
        if rated not in WORDS:
            raise InvalidInput(f"a rating is one of {', '.join(WORDS)}, got {rated[:40]!r}")
        if day is not None:
            raise InvalidInput("a day and a rating: give one of them")
        ids = [each.paper_id for each in last_ratings(warehouse, profile) if each.rating == rated]
    else:
        day = day or latest_ranking_day(warehouse, profile)
        if day is None:
            raise NotComputed(f"profile {profile!r} has no ranking yet; run `paper-assets run` first")
        rows = ranking(warehouse, day, profile).rows
        ids = rows.filter(rows.column("shown")).column("paper_id").to_pylist()
    return write_papers(papers_from_table(papers_by_id(warehouse, ids)), name)
