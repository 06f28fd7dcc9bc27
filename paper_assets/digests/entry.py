"""Build the entry of one paper in a digest: head, opening of the abstract, score, matches, comparisons, rewrites."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from paper_assets.digests.plain_text import lead, paragraphs, sentence, web_address
from paper_assets.errors import PaperAssetsError
from paper_assets.paper import Paper, papers_to_table
from paper_assets.profile import ProfileContent
from paper_assets.ranking.contrast import NO_DIFFERENCE
from paper_assets.ranking.explain import nearest_is_liked, order_as_sum, order_name, order_parts, reason, why
from paper_assets.ranking.final_list import order_value
from paper_assets.ranking.keywords import BETWEEN_FIELDS, distinct, keywords_in, paper_texts
from paper_assets.ranking.levels import level_of_row
from paper_assets.ranking.tags import tag_in_words
from paper_assets.rewriting.gate import held_back, listed, unaccepted, unsettled
from paper_assets.rewriting.loop import step_of
from paper_assets.rewriting.policy import Wait
from paper_assets.settings import RewritingConfig
from paper_assets.sources.table import html_of, page_of, source_of
from paper_assets.stores.rankings import StoredRanking
from paper_assets.stores.rewrites import Attempt, RewriteItem
from paper_assets.text.abstracts import contribution
from paper_assets.text.cleaning import one_line
from paper_assets.text.names import maybe_same_person
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.tex import MathText, hold_formulas, readable, release_formulas


@dataclass(frozen=True, slots=True, kw_only=True)
class ContrastEntry:
    """Why the contrastive paper was picked; `rows`: dimension, traits of this paper, traits of the others."""

    point: str
    rows: tuple[tuple[str, str, str], ...]


def contrast_of(header: Mapping[str, Any], places: Mapping[str, int]) -> ContrastEntry:
    """Read the contrast from a ranking's header; listed papers are named by their rank (`places`)."""
    points = [note["contrast_point"] for note in header["comparison_notes"] if note["relation"] == "contrastive"]
    info = header["contrastive_info"] or {}
    return ContrastEntry(
        point=_named_by_rank(points[0], places) if points else "",
        rows=tuple(
            (one_line(row["dimension"]), _joined(row["this"]), _joined(row["others"]))
            for row in info.get("contrast_dimensions", ())
        ),
    )


_MOST_NOTES = 6  # on similar pairs


def similar_papers(notes: Sequence[Mapping[str, Any]], places: Mapping[str, int]) -> list[str]:
    """Describe the first pairs of similar papers in one line each, from `notes` on pairs of them.

    Listed papers are named by their rank. A pair without a known difference is left out.
    """
    pairs = {frozenset(note["paper_ids"]): note for note in reversed(notes) if note["differentiator"] != NO_DIFFERENCE}
    return [_similar(note, places) for note in reversed(pairs.values())][:_MOST_NOTES]


def _similar(note: Mapping[str, Any], places: Mapping[str, int]) -> str:
    named = [f"no. {places[each]}" if each in places else one_line(each) for each in note["paper_ids"]]
    shared = f" ({_joined(note['shared_traits'])})" if note["shared_traits"] else ""
    differences = sentence(_named_by_rank(note["differentiator"], places))
    return f"{sentence(' and '.join(named))} are similar{shared}. {differences}."


def _named_by_rank(text: str, places: Mapping[str, int]) -> str:
    """Replace the ids of listed papers by their ranks."""
    if not places:
        return one_line(text)
    ids = re.compile("|".join(rf"(?<!\w){re.escape(each)}(?!\w)" for each in sorted(places, key=len, reverse=True)))
    return one_line(ids.sub(lambda found: f"no. {places[found[0]]}", text))


def _joined(traits: Sequence[str]) -> str:
    return ", ".join(one_line(trait) for trait in traits) or "–"


_MOST_AUTHORS = 6
_MOST_TITLE = 1_000  # characters; the longest of 9,459 recorded titles has 241
_MOST_NAME = 300  # characters of an author
_READ = 5  # times as many characters as are shown are read, since cleaning removes white space and control characters


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperLink:
    """A labelled link of a paper."""

    label: str
    url: str


def title_line(title: str, paper_id: str) -> MathText:
    """Return the title on one line; the id if the paper has no title."""
    return shortened(title, _MOST_TITLE) or shortened(paper_id, _MOST_TITLE)


def shortened(text: str, most: int) -> MathText:
    """Put a text of any length on one line of about `most` characters, without a cut in a formula."""
    return MathText(release_formulas(lead(hold_formulas(one_line(text[: _READ * most])), most)))


def authors_line(names: Sequence[str]) -> str:
    """List the first authors and count the others."""
    cleaned = [name for each in names if (name := one_line(each[:_MOST_NAME]))]
    if len(cleaned) <= _MOST_AUTHORS:
        return ", ".join(cleaned)
    return f"{', '.join(cleaned[: _MOST_AUTHORS - 1])} and {len(cleaned) - _MOST_AUTHORS + 1} others"


def links_of(paper: Paper) -> tuple[PaperLink, ...]:
    """Return where the paper and its code can be read, the page at its source first."""
    source = source_of(paper.paper_id)
    named = (
        (source.title if source else "", page_of(paper.paper_id)),
        ("PDF", paper.pdf_url),
        ("HTML", html_of(paper.paper_id)),
        ("Code", paper.github_url),
    )
    return tuple(PaperLink(label=label, url=url) for label, given in named if (url := web_address(given)))


def source_link(paper_id: str) -> PaperLink | None:
    """Return the link to the paper's page at its source; None for an id that no source knows."""
    try:
        source, url = source_of(paper_id), web_address(page_of(paper_id))
    except PaperAssetsError:
        return None
    return PaperLink(label=source.title, url=url) if source and url else None


_SHOWN = 0.0005  # the page does not show a smaller difference


def order_notes(shown: Sequence[Mapping[str, Any]], header: Mapping[str, Any]) -> dict[str, str]:
    """Explain, by paper id, why a contrastive paper ranks below others with a lower score. `shown`: rows by rank."""
    return {
        row["paper_id"]: "It has the last place, independent of its score: it was picked for contrast."
        for at, row in enumerate(shown)
        if "CONTRASTIVE_PICK" in row["tags"]
        and any(order_value(row, header) > order_value(each, header) + _SHOWN for each in shown[:at])
    }


_MOST = 3  # names in one line; more are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The preferences of a profile that a paper matches: keywords and institutions as in the profile, authors as
    printed.
    """

    keywords: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    institutions: tuple[str, ...] = ()


def matches_of(content: ProfileContent | None, papers: Sequence[Paper]) -> Mapping[str, Matched]:
    """Find the matching preferences of each paper, by paper id; empty without a profile."""
    if content is None or not papers:
        return {}
    keywords, institutions = distinct(content.keywords.must_include), distinct(content.preferred_institutions)
    found = keywords_in(paper_texts(papers_to_table(papers)), keywords)
    return {
        paper.paper_id: Matched(
            keywords=_where(found[row].tolist(), keywords),
            authors=_followed(paper.authors, content.preferred_authors),
            institutions=_of(paper.affiliations, institutions),
        )
        for row, paper in enumerate(papers)
    }


def enumerated(names: Sequence[str]) -> str:
    """Join names for a sentence: the first three, and the number of others."""
    shown = [one_line(name) for name in names[:_MOST]]
    more = len(names) - len(shown)
    return (
        f"{', '.join(shown)} and {more} more"
        if more
        else " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
    )


def _where(found: Sequence[bool], names: Sequence[str]) -> tuple[str, ...]:
    return tuple(name for name, holds in zip(names, found, strict=True) if holds)


def _followed(authors: Sequence[str], preferred: Sequence[str]) -> tuple[str, ...]:
    return (
        _where(np.asarray(maybe_same_person(authors, preferred).any(axis=1)).tolist(), authors)
        if authors and preferred
        else ()
    )


def _of(affiliations: Sequence[str], institutions: Sequence[str]) -> tuple[str, ...]:
    if not (affiliations and institutions):
        return ()
    places = pa.chunked_array([pa.array([BETWEEN_FIELDS.join(affiliations)], pa.string())])
    return _where(list(keywords_in(places, institutions)[0]), institutions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """The part of an abstract that is always shown, and the part shown on a click.

    `rest`: the remainder, or the whole abstract if background at its beginning was `skipped`; None if nothing is left.
    """

    lead: str
    rest: str | None
    skipped: bool


def opening_of(abstract: str, most: int) -> Opening:
    """Select about `most` characters, beginning at the sentence that says what the paper does.

    `abstract` is one clean line. If the whole abstract fits, start at its beginning.
    """
    begins = 0
    if len(abstract) > most:
        spans = sentence_spans(abstract)
        states = contribution([abstract[start:end] for start, end in spans])
        begins = spans[states][0] if states is not None else 0
    first = lead(abstract[begins:], most)
    if begins:
        return Opening(lead=first, rest=abstract, skipped=True)
    rest = None if first == abstract else abstract[len(first.removesuffix("…")) :].lstrip()
    return Opening(lead=first, rest=rest, skipped=False)


_MOST_PARAGRAPH = 4_000  # characters
LEVELS_IN_WORDS = {"public": "for general readers", "student": "for a student", "expert": "for an expert"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A rewrite as the page shows it; without text while it waits for a person or is not written yet.

    `by`: which model wrote it. `doubts`: claims that are not in the original, or why it waits. `made_at`: when the
    shown attempt was written. `language`: of the paragraphs. `item`: the rewrite's id on the page. `waits`: for a
    person.
    """

    level: str
    state: str
    paragraphs: tuple[str, ...]
    by: str = ""
    doubts: tuple[str, ...] = ()
    language: str | None = None
    made_at: datetime | None = None
    item: str = ""
    waits: bool = False


def version_of(item: RewriteItem, *, config: RewritingConfig) -> Version | None:
    """Return a rewrite as the page shows it, or what it waits for; None if it was cancelled."""
    level, kept = LEVELS_IN_WORDS.get(item.target_level, one_line(item.target_level)), item.kept_attempt
    if kept is not None:
        warning = ", the best attempt, below the target" if item.outcome == "best_with_warning" else ""
        text = tuple(MathText(lead(part, _MOST_PARAGRAPH)) for part in paragraphs(kept.text))
        return Version(
            level=level,
            state=f"{kept.score} of 100{warning}",
            paragraphs=text,
            by=_by(kept),
            doubts=_doubts(item, kept),
            language=item.language,
            made_at=kept.made_at,
            item=item.item,
        )
    if item.outcome is not None:
        return None
    step = step_of(item, config=config)
    if not isinstance(step, Wait):
        return Version(level=level, state="not written yet", paragraphs=(), item=item.item)
    last = item.attempts[step.attempt - 1]
    return Version(
        level=level,
        state=f"{last.score} of 100, waiting for a decision",
        paragraphs=(),
        doubts=tuple(one_line(f"Held back: {reason}") for reason in held_back(item, last)),
        made_at=last.made_at,
        item=item.item,
        waits=True,
    )


def _by(kept: Attempt) -> str:
    return f"Written by a language model ({one_line(kept.model)}) from the abstract; not a substitute for it."


def _doubts(item: RewriteItem, kept: Attempt) -> tuple[str, ...]:
    """List what a reader should check: claims that are not in the original, including those that a person accepted, and
    statements that were not compared with it.
    """
    open_claims = unaccepted(kept.unsupported, item.accepted)
    accepted = [claim for claim in kept.unsupported if claim not in open_claims]
    lines = [f"Not in the original: {listed(open_claims)}."] if open_claims else []
    lines += [f"Not in the original, accepted by a person: {listed(accepted)}."] if accepted else []
    lines += [f"Accepted by a person, although {reason}." for reason in kept.stopped]
    if note := unsettled(item, kept):
        lines.append(f"{note[0].upper()}{note[1:]}.")
    return tuple(one_line(line) for line in lines)


_LEAD = 480  # characters of an abstract that are always shown; the rest is folded away
_MOST_TEXT = 4_000  # characters of an abstract; arXiv's own limit is 1,920


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The contribution of one dimension, bonus or penalty to a score; `name`: the column, `words`: for readers."""

    name: str
    words: str
    points: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestEntry:
    """One paper of the list.

    `rank`: its number on the page. `lead`: the opening of the abstract. `rest`: the remainder, or the whole abstract if
    its background was `skipped`; None if nothing is left. `level`: how likely it is on topic, in words, with one to
    three `dots`; empty and 0 in the mode `seed`. `score`: the number that orders the list, and `score_name` what it is
    called. `tags`: (name, words), of which
    `reason` is a sentence. `order`: the reason for its rank where the score does not explain it.
    """

    rank: int
    paper_id: str
    title: str
    authors: str
    published: date | None
    categories: tuple[str, ...]
    lead: MathText
    rest: MathText | None
    skipped: bool
    links: tuple[PaperLink, ...]
    level: str
    dots: int
    score: float
    score_name: str
    sum: str
    order: str | None
    parts: tuple[Part, ...]
    why: tuple[str, ...]
    tags: tuple[tuple[str, str], ...]
    reason: MathText
    contrast: ContrastEntry | None
    versions: tuple[Version, ...]

    @property
    def url(self) -> str | None:
        """The paper's page at its source."""
        return self.links[0].url if self.links else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperLine:
    """One paper beside the list, in one line; `level` and `dots` as in `DigestEntry`; `people`: its authors whom the
    reader follows.
    """

    rank: int
    paper_id: str
    title: MathText
    authors: str
    url: str | None
    level: str
    dots: int
    people: str


def line_of(row: Mapping[str, Any], paper: Paper, header: Mapping[str, Any], matched: Matched) -> PaperLine:
    """Build the line of a paper from its `row` in the ranking."""
    people = enumerated(matched.authors) if matched.authors else ""
    link, level = source_link(paper.paper_id), level_of_row(row, header)
    return PaperLine(
        rank=row["rank"],
        paper_id=one_line(paper.paper_id),
        title=title_line(paper.title, paper.paper_id),
        authors=authors_line(paper.authors),
        url=link.url if link else None,
        level=level.name if level else "",
        dots=level.dots if level else 0,
        people=f"perhaps {people}" if people and "PERHAPS_AUTHOR" in row["tags"] else people,
    )


def entry_of(
    row: Mapping[str, Any],
    paper: Paper,
    ranking: StoredRanking,
    places: Mapping[str, int],
    *,
    versions: Sequence[Version],
    matched: Matched,
    order: str | None,
) -> DigestEntry:
    """Build the entry from a paper and its `row` in the ranking; `places`: the numbers of the shown papers by id."""
    header = ranking.header
    abstract = one_line(paper.abstract[: _READ * _MOST_TEXT])
    texts = one_line(paper.title[: _READ * _MOST_TITLE]), abstract
    opening = opening_of(lead(hold_formulas(abstract), _MOST_TEXT), _LEAD)
    place = places[row["paper_id"]]
    reasons = why(row, header, scored=ranking.rows.num_rows, texts=texts)
    level, tags = level_of_row(row, header), _tags(row, matched)
    return DigestEntry(
        rank=place,
        paper_id=one_line(paper.paper_id),
        title=title_line(paper.title, paper.paper_id),
        authors=authors_line(paper.authors),
        published=paper.day,
        categories=tuple(one_line(category) for category in paper.categories),
        lead=MathText(release_formulas(opening.lead)),
        rest=None if opening.rest is None else MathText(release_formulas(opening.rest)),
        skipped=opening.skipped,
        links=links_of(paper),
        level=level.name if level else "",
        dots=level.dots if level else 0,
        score=order_value(row, header),
        score_name=order_name(header),
        sum=order_as_sum(row, header),
        order=order,
        parts=tuple(Part(name=name, words=words, points=by) for name, words, by in order_parts(row, header)),
        why=tuple(one_line(line) for line in reasons),
        tags=tags,
        reason=MathText(one_line(reason(row, header, texts, named=dict(tags)))),
        contrast=contrast_of(header, places) if "CONTRASTIVE_PICK" in row["tags"] else None,
        versions=tuple(versions),
    )


def _tags(row: Mapping[str, Any], matched: Matched) -> tuple[tuple[str, str], ...]:
    """Describe each tag with the name of the interest or liked paper, author, institution or keyword concerned."""
    name = readable(one_line(row["nearest"] or ""))
    nearest = f"“{name}”, which you like" if nearest_is_liked(row) else f"your interest in {name}"
    named = {
        "SEMANTIC_HIGH_MATCH": name and f"very close to {nearest}",
        "PREFERRED_AUTHOR": matched.authors and f"by {enumerated(matched.authors)}, whom you follow",
        "PERHAPS_AUTHOR": matched.authors and f"perhaps by {enumerated(matched.authors)}, whom you follow",
        "PREFERRED_INSTITUTION": matched.institutions and f"from {enumerated(matched.institutions)}, which you follow",
        "MUST_KEYWORD_MATCH": matched.keywords and f"your keywords: {enumerated(matched.keywords)}",
    }
    tags = [(one_line(tag), named.get(tag) or one_line(tag_in_words(tag))) for tag in row["tags"]]
    if name and "SEMANTIC_HIGH_MATCH" not in row["tags"]:
        tags.insert(0, ("NEAREST", f"nearest to {nearest}"))
    return tuple(tags)
