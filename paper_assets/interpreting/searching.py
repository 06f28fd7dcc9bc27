"""Several result lists to one: who fits, who is the same paper, in what order (SPEC I2, M1, M2). Pure."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paper_assets.arxiv_ids import is_arxiv_id
from paper_assets.interpreting.identifiers import same_title
from paper_assets.paper import Paper, paper_to_mapping
from paper_assets.retrieval.candidates import Candidate
from paper_assets.retrieval.merge import merge
from paper_assets.retrieval.policy import Policy
from paper_assets.sources.source import Source, SourceRecord
from paper_assets.sources.table import page_of


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPaper:
    """A search result: the paper, which sources named it, and how often it is cited (None: unknown)."""

    paper: Paper
    sources: tuple[str, ...]  # by name: "arxiv", "semantic_scholar"
    url: str | None
    citation_count: int | None


def merged(
    lists: Sequence[tuple[Source, Sequence[SourceRecord]]], *, limit: int, fusion_constant: int
) -> list[FoundPaper]:
    """The best `limit` of all lists, each in its own order of worth, fused by place; the first record of a paper stays.

    A paper under an id that is not arXiv's is the one of the same title in an earlier list, if there is one.
    """
    papers: dict[str, Paper] = {}
    known: list[dict[str, SourceRecord]] = []
    for _, records in lists:
        earlier = list(papers.values())
        by_id: dict[str, SourceRecord] = {}
        for record in records:
            twin = None if is_arxiv_id(record.paper.paper_id) else _titled(earlier, record.paper.title)
            by_id.setdefault((twin or record.paper).paper_id, record)
        papers = {paper_id: record.paper for paper_id, record in by_id.items()} | papers
        known.append(by_id)
    candidates = [[_candidate(papers[paper_id], place) for place, paper_id in enumerate(ids, 1)] for ids in known]
    kept = merge(candidates, policy=Policy(), fusion_constant=fusion_constant, limit=limit).candidates
    return [_found(papers[each.doc_id], lists, known) for each in kept]


def _found(
    paper: Paper, lists: Sequence[tuple[Source, Sequence[SourceRecord]]], known: Sequence[Mapping[str, SourceRecord]]
) -> FoundPaper:
    counts = (by_id[paper.paper_id].citation_count for by_id in known if paper.paper_id in by_id)
    return FoundPaper(
        paper=paper,
        sources=tuple(source.name for (source, _), by_id in zip(lists, known, strict=True) if paper.paper_id in by_id),
        url=page_of(paper.paper_id),
        citation_count=next((count for count in counts if count is not None), None),
    )


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
