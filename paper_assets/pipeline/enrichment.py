"""Enrichment of fetched papers, with the stores: what Semantic Scholar says is kept in the warehouse (SPEC S4)."""

import time
from collections.abc import Mapping, Sequence
from typing import Protocol

from paper_assets.paper import Paper
from paper_assets.settings import Settings
from paper_assets.sources.access import Access, seconds_from_now
from paper_assets.sources.enrichment import Enriched, enrich
from paper_assets.sources.semantic_scholar import ScholarPaper
from paper_assets.stores.scholar_records import ScholarRecord, filled, keep_records, records_of
from paper_assets.stores.warehouse import Warehouse

PATIENCE = 60.0  # seconds for one day's papers; a day has one or two requests


class EnrichPapers(Protocol):
    """Fills papers from all that is known of them, after asking if `ask` says so."""

    def __call__(self, papers: Sequence[Paper], ask: bool) -> Enriched: ...


def enricher(settings: Settings, environ: Mapping[str, str], warehouse: Warehouse) -> EnrichPapers:
    """What fills papers from the warehouse, after asking about them if the settings and the caller say so.

    Raises StoreError only.
    """

    def keep(found: Mapping[str, ScholarPaper]) -> None:
        keep_records(warehouse, [_record(paper_id, known) for paper_id, known in found.items()])

    def fill(papers: Sequence[Paper]) -> list[Paper]:
        return filled(papers, records_of(warehouse, [paper.paper_id for paper in papers]))

    def enrich_papers(papers: Sequence[Paper], ask: bool) -> Enriched:
        access = Access(settings=settings, environ=environ, left=seconds_from_now(PATIENCE, time.monotonic))
        return enrich(papers, access=access if ask and settings.semantic_scholar else None, keep=keep, fill=fill)

    return enrich_papers


def _record(paper_id: str, known: ScholarPaper) -> ScholarRecord:
    return ScholarRecord(
        paper_id=paper_id,
        affiliations=known.affiliations,
        github_url=known.code,
        citation_count=known.citation_count,
    )
