"""Enrichment: what Semantic Scholar adds to the papers of a day, never in the way of the day itself (SPEC S4)."""

from collections.abc import Sequence
from dataclasses import dataclass

from paper_assets.errors import InvalidInput, SourceError
from paper_assets.interpreting.reach import Reach
from paper_assets.paper import Paper
from paper_assets.sources import semantic_scholar
from paper_assets.sources.semantic_scholar import MOST_IDS, ScholarPaper
from paper_assets.stores.scholar_records import ScholarRecord, filled, keep_records, records_of

PATIENCE = 60.0  # seconds for one day's papers; a day has one or two requests


@dataclass(frozen=True, slots=True, kw_only=True)
class Enriched:
    """The papers, filled where arXiv says nothing; how many Semantic Scholar answered for; why it did not."""

    papers: list[Paper]
    answered: int = 0
    warning: str | None = None


def enrich(reach: Reach, papers: Sequence[Paper], *, ask: bool = True) -> Enriched:
    """Ask about the papers, if the settings say so and `ask` does, and fill them from all that is known.

    What was known before counts also where Semantic Scholar is silent today: a day fetched again is the same day.
    Raises StoreError only.
    """
    if not papers:
        return Enriched(papers=[])
    ids = [paper.paper_id for paper in papers]
    answered, warning = 0, None
    if ask and reach.settings.semantic_scholar:
        try:
            with reach.scholar(reach.started()) as scholar:
                for start in range(0, len(ids), MOST_IDS):  # what one request has given stays if the next one fails
                    found = semantic_scholar.details(scholar, ids[start : start + MOST_IDS])
                    keep_records(reach.warehouse, map(_record, found.values(), found))
                    answered += len(found)
        except (SourceError, InvalidInput) as failure:
            warning = f"Semantic Scholar was not heard: {failure}"
    return Enriched(papers=filled(papers, records_of(reach.warehouse, ids)), answered=answered, warning=warning)


def _record(known: ScholarPaper, paper_id: str) -> ScholarRecord:
    return ScholarRecord(
        paper_id=paper_id,
        affiliations=known.affiliations,
        github_url=known.code,
        citation_count=known.citation_count,
    )
