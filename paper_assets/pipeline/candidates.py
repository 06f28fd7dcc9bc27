"""A day's candidates for a profile: the papers of its window, each passed or removed with its reason."""

import pyarrow as pa

from paper_assets.pipeline.day_inputs import ProfileDay
from paper_assets.ranking.filters import FilterCriteria, filter_papers
from paper_assets.settings import Settings
from paper_assets.stores.candidates import candidates_inputs, replace_candidates
from paper_assets.stores.papers import papers_between
from paper_assets.stores.warehouse import Warehouse


def keep_candidates(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> bool:
    """Filter the window's papers and store the outcome; False if the stored candidates have these inputs already."""
    if candidates_inputs(warehouse, day.as_of, day.profile.name) == day.inputs:
        return False
    rows = judged_papers(warehouse, day, settings=settings)
    replace_candidates(warehouse, day.as_of, day.profile.name, rows, inputs=day.inputs)
    return True


def judged_papers(warehouse: Warehouse, day: ProfileDay, *, settings: Settings) -> pa.Table:
    """The window's papers, each passed or removed with its reason (`candidate_schema()`); stores nothing."""
    content = day.profile.content
    papers = papers_between(warehouse, day.first, day.as_of, categories=content.feed.categories)
    criteria = FilterCriteria(
        content=content,
        options=content.ranking,
        scoring=settings.scoring,
        read_ids=day.profile.read_ids.union(day.liked),
        shown_ids=day.shown,
    )
    return filter_papers(papers, criteria)
