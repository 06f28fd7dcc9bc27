"""Papers beside a paper that somebody reads: like it, cited by it, citing it (SPEC I9)."""

from paper_assets.errors import InvalidInput, PaperNotFound
from paper_assets.interpreting.clients import Clients
from paper_assets.interpreting.identifiers import Work, identified
from paper_assets.interpreting.papers import SearchResult
from paper_assets.interpreting.searching import FoundPaper
from paper_assets.sources.related import MOST_RELATED, RELATIONS, Relation, can_be_asked, related_papers
from paper_assets.sources.semantic_scholar import SEMANTIC_SCHOLAR, opened
from paper_assets.sources.table import page_of


def related(
    clients: Clients,
    *,
    paper_id: str | None = None,
    url: str | None = None,
    relation: str = "similar",
    max_results: int = 10,
) -> SearchResult:
    """Up to `max_results` papers in this relation to the paper named by its id or address, in the source's order.

    Raises InvalidInput, InvalidArxivId, PaperNotFound, RateLimited, NetworkError, RefusedKey.
    """
    kind: Relation | None = next((each for each in RELATIONS if each == relation), None)
    if kind is None:
        raise InvalidInput(f"relation must be one of {', '.join(RELATIONS)}, got {relation[:40]!r}")
    if not 1 <= max_results <= MOST_RELATED:
        raise InvalidInput(f"max_results must be from 1 to {MOST_RELATED}, got {max_results}")
    wanted = identified(arxiv_id=paper_id, url=url, pdf_url=None, title=None, hosts=clients.hosts)
    if not isinstance(wanted, Work) or not can_be_asked(wanted.paper_id):
        raise InvalidInput("Semantic Scholar cannot be asked about this paper; give an arXiv id, or its page there")
    left = clients.started()
    with opened(clients.access(left)) as scholar:
        found = related_papers(scholar, wanted.paper_id, kind, limit=max_results)
    if found is None:
        raise PaperNotFound(f"Semantic Scholar does not know {wanted.paper_id}; a new paper takes it some days")
    papers = []
    for each in found:
        paper = each.as_paper()
        papers.append(
            FoundPaper(
                paper=paper,
                sources=(SEMANTIC_SCHOLAR.name,),
                url=page_of(paper.paper_id),
                citation_count=each.citation_count,
            )
        )
    return SearchResult(papers=tuple(papers), total_count=len(papers))
