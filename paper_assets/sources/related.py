"""Papers beside a paper, as Semantic Scholar knows them: cited by it, citing it, or like it (SPEC I9, S4)."""

from dataclasses import replace
from typing import Any, Literal, get_args
from urllib.parse import quote

from paper_assets.errors import NetworkError
from paper_assets.paper_id import ARXIV, PaperId
from paper_assets.sources.semantic_scholar import ID_SOURCE, PAPER_FIELDS, Scholar, ScholarPaper, asked, read_paper

Relation = Literal["similar", "cites", "cited_by"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
MOST_RELATED = 100

_LISTS = {"cites": ("references", "citedPaper"), "cited_by": ("citations", "citingPaper")}
_DOI_SOURCES = frozenset(("biorxiv", "medrxiv"))  # whose ids are DOIs


def related_papers(
    scholar: Scholar, paper_id: PaperId, relation: Relation, *, limit: int
) -> tuple[ScholarPaper, ...] | None:
    """Up to `limit` (at most MOST_RELATED) papers, in the order in which the API gives them; each once.

    None if the paper itself is not known there. Entries without an id of its own (it has only their titles) are left
    out. Raises RateLimited, NetworkError, RefusedKey.
    """
    named = quote(_named(paper_id), safe=":/")
    options: dict[str, Any] = {"fields": PAPER_FIELDS, "limit": limit}
    if relation == "similar":
        beside = replace(scholar, url=f"{scholar.url.removesuffix('/graph/v1')}/recommendations/v1")
        answer = asked(beside, "GET", f"/papers/forpaper/{named}", params={**options, "from": "all-cs"})
        records = answer.get("recommendedPapers") if isinstance(answer, dict) else None
    else:
        path, inside = _LISTS[relation]
        answer = asked(scholar, "GET", f"/paper/{named}/{path}", params=options)
        # A publisher may have asked for the references not to be given: data is null then.
        records = (answer.get("data") or []) if isinstance(answer, dict) and "data" in answer else None
        if isinstance(records, list):
            records = [each.get(inside) for each in records if isinstance(each, dict)]
    if answer is None:
        return None
    if not isinstance(records, list):
        raise NetworkError("Semantic Scholar's answer holds no list of papers; try again later")
    papers = {paper.scholar_id: paper for record in records if (paper := read_paper(record))}
    return tuple(papers.values())[:limit]


def can_be_asked(paper_id: PaperId) -> bool:
    """Whether the API knows papers under ids of this source."""
    return paper_id.source in {ARXIV, ID_SOURCE, *_DOI_SOURCES}


def _named(paper_id: PaperId) -> str:
    if paper_id.source == ID_SOURCE:
        return paper_id.value
    return f"{'DOI' if paper_id.source in _DOI_SOURCES else 'ARXIV'}:{paper_id.value}"
