"""Show texts of papers: titles, formulae, the parts of an abstract; a fault is shown where the text would be."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from typing import Any, TypeVar

import jinja2
from markupsafe import Markup, escape

from paper_assets import announcements
from paper_assets.digests.entry import source_link
from paper_assets.digests.html import environment
from paper_assets.errors import PaperAssetsError
from paper_assets.retrieval.answering_sentences import reserved_spans
from paper_assets.stores.embeddings import UNEMBEDDED
from paper_assets.text.abstracts import named_parts
from paper_assets.text.cleaning import one_line, without_controls
from paper_assets.text.numbers import count_of, percent
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.tex import MathText, html_with_mathml

_DIVIDED = re.compile(r"\b(?<!-)([A-Za-z]{2,})- (?!(?:and|or|to|nor|vs|versus)\b)([a-z]{2,})\b")
_HYPHENATED = re.compile(
    r"self|non|multi|cross|semi|well|high|low|real|fine|long|short|end|large|small|two|three", re.I
)
_TEXTS_KEPT = 4_096  # titles and abstracts whose HTML is kept; an abstract has about 1.5 KB

T = TypeVar("T")
logger = logging.getLogger(__name__)


@cache
def templates() -> jinja2.Environment:
    """Return the templates of the page and those it shares with the digest."""
    page_environment = environment(jinja2.PackageLoader("paper_assets.interfaces.page", "templates"))
    page_environment.filters |= {
        "short_day": short_day,
        "day_state": announcements.in_words,
        "readable": readable_title,
        "count_of": count_of,
        "percent": percent,
        "maths": with_mathml,
        "in_parts": with_parts,
        "with_reserve": with_reserve,
    }
    page_environment.globals |= {
        "isolated": _isolated_macro,
        "isolated_paper": _isolated_paper,
        "UNEMBEDDED": UNEMBEDDED,
    }
    return page_environment


@dataclass(frozen=True, slots=True)
class Unshown:
    """The place of something that could not be shown: its name, and the kind of error that the log describes."""

    name: str
    error: str

    def __str__(self) -> str:
        return f"{self.name} could not be shown ({self.error}); the log has the details"


def isolate(name: str, make: Callable[[], T]) -> T | Unshown:
    """Return what `make` returns; an unexpected exception is logged and becomes an Unshown with that name.

    PaperAssetsErrors are raised: their views know how to explain them.
    """
    try:
        return make()
    except PaperAssetsError:
        raise
    except Exception as fault:
        logger.exception("%s could not be shown", name)
        return Unshown(name, type(fault).__name__)


_UNSHOWN: Mapping[str, Markup] = {
    "p": Markup('<p class="warning unshown">{}.</p>'),
    "li": Markup('<li><p class="warning unshown">{}.</p></li>'),
    "tr": Markup('<tr><td colspan="9" class="bad unshown">{}.</td></tr>'),
}


def _isolated_macro(name: str, macro: Callable[..., str], *values: Any, tag: str = "p") -> str:
    """Call a template's macro for one thing of many; a fault in it is shown in its place, inside the element `tag`."""
    html = isolate(name, lambda: macro(*values))
    return _UNSHOWN[tag].format(str(html)) if isinstance(html, Unshown) else html


def _isolated_paper(paper_id: str, macro: Callable[..., str], *values: Any) -> str:
    """Call a template's macro for one paper of a list; after a fault its place has the id and a link to the paper."""
    try:
        return macro(*values)
    except Exception:
        logger.exception("the paper %s could not be shown", paper_id)
    link = source_link(paper_id)
    there = Markup(' <a href="{}">{}</a>').format(link.url, link.label) if link else ""
    line = Markup('<li><p class="warning unshown">Paper {} could not be shown; the log has the reason.{}</p></li>')
    return line.format(paper_id, there)


def as_sentence(text: object) -> str:
    """Return an error or note with a capital letter and a full stop."""
    return f"{str(text)[:1].upper()}{str(text)[1:]}."


def readable_title(text: str) -> str:
    """Return a title as one line with its TeX as characters; the filter `maths` shows its formulae as MathML."""
    try:
        return MathText(one_line(text))
    except Exception:
        logger.exception("the title %r could not be made readable", text[:200])
        return one_line(text)


def with_mathml(text: str, marked: Sequence[tuple[int, int]] = ()) -> Markup:
    """Return a title or abstract as HTML with its formulae as MathML, and `marked` spans marked."""
    return _html_of(text.source if isinstance(text, MathText) else str(text), tuple(marked))


def with_reserve(quote: str) -> Markup:
    """Return a quotation as HTML: words that a PDF divided at the end of a line joined, denials and hedges marked."""
    joined = _DIVIDED.sub(lambda found: found[1] + ("-" if _HYPHENATED.fullmatch(found[1]) else "") + found[2], quote)
    return with_mathml(joined, reserved_spans(joined))


@lru_cache(maxsize=_TEXTS_KEPT)
def _html_of(text: str, marked: tuple[tuple[int, int], ...]) -> Markup:
    try:
        return Markup(html_with_mathml(without_controls(text), marked=marked))  # noqa: S704  # escaped there
    except Exception:
        logger.exception("the formulae of %r could not be shown", text[:200])
        return escape(text)


def with_parts(abstract: str, marked: Sequence[tuple[int, int]] = ()) -> Markup:
    """Return an abstract as HTML with its formulae, its `marked` spans, and the sentences that state problem, task,
    idea and result named.

    A sentence is named only where that leaves the text as it is: TeX may begin in one sentence and end in another.
    """
    return _html_in_parts(abstract.source if isinstance(abstract, MathText) else str(abstract), tuple(marked))


@lru_cache(maxsize=_TEXTS_KEPT)
def _html_in_parts(abstract: str, marked: tuple[tuple[int, int], ...]) -> Markup:
    whole = with_mathml(abstract, marked)

    def piece(start: int, end: int) -> Markup:
        return with_mathml(abstract[start:end], [(a - start, b - start) for a, b in marked if start <= a and b <= end])

    try:
        spans = sentence_spans(abstract)
        named = named_parts([abstract[start:end] for start, end in spans])
        pieces, plain, position = list[str](), list[str](), 0
        for number, part in named.items():
            start, end = spans[number]
            before, sentence = piece(position, start), piece(start, end)
            pieces += [before, Markup('<span class="part" data-part="{}">{}</span>').format(part, sentence)]
            plain += [before, sentence]
            position = end
        rest = piece(position, len(abstract))
        return Markup("").join([*pieces, rest]) if "".join([*plain, rest]) == whole else whole
    except Exception:
        logger.exception("the parts of %r could not be named", abstract[:200])
        return whole


def short_day(day: date) -> str:
    """Format a day as 13 Mar."""
    return f"{day.day} {day:%b}"
