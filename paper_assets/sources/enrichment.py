"""Enrichment: what Semantic Scholar adds to the papers of a day, never in the way of the day itself (SPEC S4)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paper_assets.arxiv_ids import is_arxiv_id
from paper_assets.errors import SourceError
from paper_assets.paper import Paper
from paper_assets.sources.access import Access
from paper_assets.sources.semantic_scholar import MOST_IDS, ScholarPaper, details, opened
from paper_assets.sources.source import RefusedKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Enriched:
    """The papers, filled where their source says nothing; how many Semantic Scholar answered for; why it did not."""

    papers: list[Paper]
    answered: int = 0
    warning: str | None = None


def enrich(
    papers: Sequence[Paper],
    *,
    access: Access | None,
    keep: Callable[[Mapping[str, ScholarPaper]], None],
    fill: Callable[[Sequence[Paper]], list[Paper]],
) -> Enriched:
    """Ask about the papers, unless `access` is None, and fill them from all that is known.

    `keep` stores what an answer says, by paper id; `fill` gives the papers with all that was ever kept. What was known
    before counts also where Semantic Scholar is silent today: a day fetched again is the same day. Raises only what
    `keep` and `fill` raise.
    """
    if not papers:
        return Enriched(papers=[])
    ids = [paper.paper_id for paper in papers if is_arxiv_id(paper.paper_id)]
    answered, warning = 0, None
    if access is not None and ids:
        try:
            with opened(access) as scholar:
                for start in range(0, len(ids), MOST_IDS):  # what one request has given stays if the next one fails
                    found = details(scholar, ids[start : start + MOST_IDS])
                    keep(found)
                    answered += len(found)
        except (SourceError, RefusedKey) as failure:
            warning = f"Semantic Scholar did not answer: {failure}"
    return Enriched(papers=fill(papers), answered=answered, warning=warning)
