"""Determine which rewrites a profile's day requests and what is next for each, without writing anything."""

from datetime import date

from paper_assets.errors import named_error
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.profiles import asks_for_rewrites
from paper_assets.profile import Profile
from paper_assets.rewriting.loop import step_of, stored_task
from paper_assets.rewriting.policy import Done, Wait, Write
from paper_assets.rewriting.writing import new_item
from paper_assets.settings import RewritingConfig
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.rankings import ranking
from paper_assets.stores.rewrites import NewItem, RewriteItem
from paper_assets.stores.warehouse import Warehouse


def known_step(item: RewriteItem, *, config: RewritingConfig) -> Write | Wait | Done | None:
    """Return the next step of an item; None, with the traceback in the log, if it cannot be determined."""
    try:
        return step_of(item, config=config)
    except Exception as error:  # of one rewrite; callers that count or show all of them continue
        named_error(error, f"the rewrite of {item.paper_id} for {item.target_level}")
        return None


def wanted_items(warehouse: Warehouse, profile: Profile, day: date) -> list[NewItem]:
    """Return one item for each of the day's best papers and each level that the profile requests, possibly none.

    Raises NotComputed without a ranking of the day.
    """
    wanted = profile.content.rewriting
    if not asks_for_rewrites(profile):
        return []
    best = ranking(warehouse, day, profile.name).rows.slice(0, wanted.papers).column("paper_id").to_pylist()
    papers = papers_from_table(papers_by_id(warehouse, best))
    levels = dict.fromkeys(wanted.target_levels)
    spoken = wanted.language
    return [
        stored_task(warehouse, new_item(paper, level, language=spoken))
        for paper in papers
        if paper.abstract.strip()
        for level in levels
    ]
