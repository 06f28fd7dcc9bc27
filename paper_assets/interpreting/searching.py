"""Two result lists to one: who fits, who is the same paper, in what order (SPEC I2, M1, M2). Pure."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from paper_assets.interpreting.identifiers import same_title
from paper_assets.paper import Paper, is_arxiv_id, paper_to_mapping
from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.merge import merge
from paper_assets.retrieval.policy import Policy
from paper_assets.sources.semantic_scholar import ScholarPaper


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPaper:
    """A search result: the paper, which sources named it, and how often it is cited (None: unknown)."""

    paper: Paper
    sources: tuple[str, ...]  # "arxiv", "semantic_scholar"
    url: str | None
    citation_count: int | None


def merged(
    of_arxiv: Sequence[Paper], of_scholar: Sequence[ScholarPaper], *, limit: int, fusion_constant: int
) -> list[FoundPaper]:
    """The best `limit` of both lists, each in its own order of worth, fused by place; arXiv's record of a paper stays.

    A paper that Semantic Scholar knows under no arXiv id is the one of the same title, if arXiv named one.
    """
    records = {paper.paper_id: paper for paper in of_arxiv}
    known: dict[str, ScholarPaper] = {}
    for scholar in of_scholar:
        twin = None if scholar.arxiv_id else _titled(of_arxiv, scholar.title)
        known.setdefault(twin.paper_id if twin else scholar.as_paper().paper_id, scholar)
    papers = {paper_id: scholar.as_paper() for paper_id, scholar in known.items()} | records
    lists = [list(records), list(known)]
    candidates = [[_candidate(papers[paper_id], place) for place, paper_id in enumerate(ids, 1)] for ids in lists]
    kept = merge(candidates, policy=Policy(), fusion_constant=fusion_constant, limit=limit).candidates
    return [
        FoundPaper(
            paper=papers[each.doc_id],
            sources=tuple(
                name for name, ids in (("arxiv", records), ("semantic_scholar", known)) if each.doc_id in ids
            ),
            url=page_of(papers[each.doc_id], known.get(each.doc_id)),
            citation_count=known[each.doc_id].citation_count if each.doc_id in known else None,
        )
        for each in kept
    ]


def page_of(paper: Paper, scholar: ScholarPaper | None = None) -> str | None:
    """Where a person reads about the paper."""
    if is_arxiv_id(paper.paper_id):
        return f"https://arxiv.org/abs/{paper.paper_id}"
    return scholar.url if scholar else None


def wrote(author: str, authors: Sequence[str]) -> bool:
    """Whether one of the authors bears the name: the same last name, and first names or initials that agree."""
    *asked_first, asked_last = _names(author) or [""]
    for name in authors:
        *first, last = _names(name) or [""]
        if last == asked_last and all(_agree(one, other) for one, other in zip(asked_first, first, strict=False)):
            return True
    return False


def _agree(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one) if 1 in (len(one), len(other)) else one == other


def _names(name: str) -> list[str]:
    """First names, then the last name, in plain small letters; `Last, First` is turned round."""
    last, comma, first = name.partition(",")
    plain = unicodedata.normalize("NFKD", f"{first} {last}" if comma else name)
    return re.findall(r"[^\W\d_]+", "".join(c for c in plain if not unicodedata.combining(c)).casefold())


def _titled(papers: Sequence[Paper], title: str) -> Paper | None:
    return next((paper for paper in papers if same_title(paper.title, title)), None)


def _candidate(paper: Paper, place: int) -> Candidate:
    return Candidate(
        doc_id=paper.paper_id,
        content=f"{paper.title}\n\n{paper.abstract}",
        metadata={**paper_to_mapping(paper), "version": None, "access_level": "public"},
        score=1 / place,
        score_type="similarity",
        source_id=paper.paper_id,
    )
