"""Search what is stored: papers ranked by meaning and words together, restricted by the filters of a query.

One function serves the page, the command line and MCP. The ranking is that of `search.py`; a query without words lists
the newest papers first.
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from paper_assets.errors import InvalidArxivId, InvalidInput
from paper_assets.paper import Paper, papers_from_table
from paper_assets.paper_id import split_arxiv_address, split_arxiv_id
from paper_assets.retrieval.merge import Candidate, access
from paper_assets.retrieval.search import Corpus, Found, opened, papers_with_phrases, search, without_vectors
from paper_assets.retrieval.search_query import SearchQuery
from paper_assets.stores.papers import PaperFilters, matching_papers, papers_by_id, unknown_categories
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.words import asks, stem, words_in

MOST_RESULTS = 1_000  # of one query; a reader who needs more needs a filter
_SHOWN_AUTHORS = 3
_PASSAGES_PER_PAPER = 4  # passages of full texts fetched for each paper that is wanted
_WORD = re.compile(r"[^\W_]+")
_OWN_PROFILE = "profile"  # in:profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """Where a word of the query occurs: in the `title`, the `abstract` or the `passage`, as [start, end)."""

    field: str
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPaper:
    """A stored paper that a search found.

    `score` is the similarity of its best document, from 0 to 1; None where the query has no words. `passage` is the
    sentence or passage that fits the query best, `collection` the kind of document it comes from.
    """

    paper_id: str
    title: str
    abstract: str
    authors: tuple[str, ...]
    published: datetime | None
    categories: tuple[str, ...]
    score: float | None
    passage: str
    collection: str
    hits: tuple[Hit, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of results. `matching` papers meet the filters; `more` says whether another page follows.

    `named`: the arXiv id, if the query is one or a link to one. `ways`: how the documents were compared (`Found.way`).
    """

    papers: tuple[FoundPaper, ...]
    matching: int
    more: bool
    notes: tuple[str, ...]
    named: str | None = None
    ways: tuple[str, ...] = ()


def search_desk(
    corpus: Corpus,
    query: SearchQuery,
    *,
    profile: str | None,
    offset: int = 0,
    limit: int = 20,
    private: bool = True,
) -> SearchPage:
    """Find stored papers, best first, `limit` from `offset` on; ties are broken by id, so that pages are stable.

    `profile` is the reader: its ratings decide `is:`, and `in:fulltexts` searches its private full texts, unless
    `private` is False. An arXiv id or a link to one finds its paper, whatever the filters. Raises InvalidInput (a
    filter that needs a profile, a page out of range), StoreError.
    """
    if not 1 <= limit <= MOST_RESULTS or offset < 0:
        raise InvalidInput(f"search: limit must be from 1 to {MOST_RESULTS}, offset from 0; got {limit} and {offset}")
    filters = _filters(query, profile)
    with opened(corpus) as corpus:
        asked = [category for part in (query, *query.excluded) for category in part.categories]
        if asked and (unknown := unknown_categories(corpus.warehouse, asked)):  # an empty answer would hide a typo
            raise InvalidInput(f"search: category:{unknown[0]} is unknown; no stored paper has it")
        if named := _id_in(query.words):
            papers = _shown(corpus, [(named, None, None)], query)
            notes = () if papers else (f"{named} is not stored",)
            return SearchPage(papers=papers, matching=len(papers), more=False, notes=notes, named=named)
        if query.words and not words_in(query.words):
            note = f"{query.words[:40]} contains no letter or digit; write words, or filters alone"
            return SearchPage(papers=(), matching=0, more=False, notes=(note,))
        end = offset + limit
        only = None
        if filters.restrict or query.excluded or not query.words:
            only = _without(corpus, matching_papers(corpus.warehouse, filters), query, profile)
        if only is not None and not query.words:
            ids: list[str] = only.slice(offset, limit).to_pylist()
            papers = _shown(corpus, [(paper_id, None, None) for paper_id in ids], query)
            return SearchPage(papers=papers, matching=len(only), more=end < len(only), notes=())
        owner = profile if private else None
        if query.phrases:
            only = papers_with_phrases(corpus, query.phrases, data_types=query.data_types, owner=owner, only=only)
        best, searched = _best_documents(corpus, query, owner, only, min(end + 1, MOST_RESULTS))
        by_words = without_vectors(searched, model=corpus.embedder is not None)
        return SearchPage(
            papers=_shown(corpus, [(each.source_id, each.score, each) for each in best[offset:end]], query),
            matching=sum(found.matching for found in searched) if only is None else len(only),
            more=len(best) > end,
            notes=(by_words,) if by_words else (),
            ways=tuple(dict.fromkeys(found.way for found in searched)),
        )


def _without(corpus: Corpus, ids: pa.Array, query: SearchQuery, profile: str | None) -> pa.Array:
    """Return the ids that match none of the excluded parts of the query, in their order."""
    for part in query.excluded:
        filters = _filters(part, profile)
        only = matching_papers(corpus.warehouse, filters) if filters.restrict else None
        if part.phrases:
            only = papers_with_phrases(corpus, part.phrases, data_types=("abstract",), owner=None, only=only)
        if only is not None:
            ids = ids.filter(pc.invert(pc.is_in(ids, value_set=only)))
    return ids


def _id_in(words: str) -> str | None:
    """Return the arXiv id that the words are, or a link to one; None for other words."""
    try:
        address = split_arxiv_address(words)
        return (address or split_arxiv_id(words))[0]
    except InvalidArxivId:
        return None


def similar_papers(corpus: Corpus, paper: Paper, *, limit: int = 10, offset: int = 0) -> tuple[FoundPaper, ...]:
    """Return the stored papers most like a given one by title and abstract, without it.

    The first `offset` are skipped; beyond `MOST_RESULTS` there are none.
    """
    wanted = min(offset + limit, MOST_RESULTS)
    query = SearchQuery(words=f"{paper.title} {paper.abstract}")
    best, _ = _best_documents(corpus, query, None, None, wanted + 1)
    kept = [each for each in best if each.source_id != paper.paper_id][:wanted][offset:]
    return _shown(corpus, [(each.source_id, each.score, each) for each in kept], SearchQuery())


def _filters(query: SearchQuery, profile: str | None) -> PaperFilters:
    """Return the filters as the stores take them. Raises InvalidInput where one needs a profile and none is given."""
    ranked_for = query.profile
    if ranked_for == _OWN_PROFILE:
        ranked_for = profile
        if profile is None:
            raise InvalidInput("search: in:profile needs a profile; name it, for example in:my-profile")
    reader = profile or ranked_for
    if query.states and reader is None:
        raise InvalidInput(f"search: is:{query.states[0]} needs a profile whose ratings count; add in:PROFILE")
    return PaperFilters(
        authors=query.authors,
        categories=query.categories,
        first=query.first,
        last=query.last,
        states=query.states,
        profile=reader,
        has_code="code" in query.features,
        has_pdf="pdf" in query.features,
        ranked_for=ranked_for,
    )


def _best_documents(
    corpus: Corpus, query: SearchQuery, owner: str | None, only: pa.Array | None, wanted: int
) -> tuple[list[Candidate], list[Found]]:
    """Return the best document of each paper, best first, at most `wanted`, without those below the relevance floor.

    Also return the results of each collection.
    """
    by_paper: dict[str, Candidate] = {}
    searched: list[Found] = []
    for data_type in query.data_types:
        k = wanted if data_type == "abstract" else wanted * _PASSAGES_PER_PAPER
        found = search(corpus, query.words, data_type=data_type, where=access(owner), k=k, only=only)
        searched.append(found)
        floor = corpus.config.floors[found.method]
        for candidate in found.candidates:
            held = by_paper.get(candidate.source_id)
            if candidate.score >= floor and (held is None or candidate.score > held.score):
                by_paper[candidate.source_id] = candidate
    best = sorted(by_paper.values(), key=lambda each: (-each.score, each.source_id))
    return best[:wanted], searched


def _shown(
    corpus: Corpus, found: Sequence[tuple[str, float | None, Candidate | None]], query: SearchQuery
) -> tuple[FoundPaper, ...]:
    """Return the papers of a page with their hits; a document whose paper is not stored is left out."""
    ids = [paper_id for paper_id, _, _ in found]
    stored = {paper.paper_id: paper for paper in papers_from_table(papers_by_id(corpus.warehouse, ids))}
    stems = {stem(word) for word in words_in(query.words) if asks(word)}
    shown: list[FoundPaper] = []
    for paper_id, score, candidate in found:
        paper = stored.get(paper_id)
        if paper is None:
            continue
        collection = str(candidate.metadata.get("data_type", "abstract")) if candidate else "abstract"
        text = candidate.content if candidate and collection != "abstract" else paper.abstract
        passage = best_sentence(text, stems) if collection == "abstract" else text
        fields = {"title": paper.title, "abstract": paper.abstract}
        if collection != "abstract":
            fields["passage"] = passage
        shown.append(
            FoundPaper(
                paper_id=paper.paper_id,
                title=paper.title,
                abstract=paper.abstract,
                authors=tuple(paper.authors),
                published=paper.published,
                categories=tuple(paper.categories),
                score=None if score is None else round(float(score), 4),
                passage=passage,
                collection=collection,
                hits=tuple(hit for name, value in fields.items() for hit in hits_in(name, value, stems)),
            )
        )
    return tuple(shown)


def hits_in(field: str, text: str, stems: Collection[str]) -> list[Hit]:
    """Return where words of the given stems occur in a text, in their order."""
    return [
        Hit(field=field, start=word.start(), end=word.end(), text=word[0])
        for word in _WORD.finditer(text)
        if any(stem(each) in stems for each in words_in(word[0]) if asks(each))
    ]


def best_sentence(text: str, stems: Collection[str]) -> str:
    """Return the sentence with most different words of the query; the first one of equals, or of a text without any."""
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    if not sentences:
        return text.strip()
    counts = [len({stem(word) for word in words_in(each) if asks(word)} & set(stems)) for each in sentences]
    return " ".join(sentences[counts.index(max(counts))].split())


def shown_authors(authors: Sequence[str], *, wanted: Sequence[str] = ()) -> tuple[tuple[str, ...], int]:
    """Return the first authors and those of the query (`wanted`), and how many are left out.

    Names are compared as in `stores.papers.PaperFilters`: from the start of each word, without accents.
    """
    sought = [words for name in wanted if (words := words_in(name))]

    def is_sought(author: str) -> bool:
        own = words_in(author)
        return any(all(any(each.startswith(word) for each in own) for word in words) for words in sought)

    shown = (*authors[:_SHOWN_AUTHORS], *filter(is_sought, authors[_SHOWN_AUTHORS:]))
    return shown, len(authors) - len(shown)


def hit_record(paper: FoundPaper) -> dict[str, Any]:
    """Return the result as JSON values, without its abstract."""
    values = {name: value for name, value in asdict(paper).items() if name != "abstract"}
    return {**values, "published": paper.published.date().isoformat() if paper.published else None}
