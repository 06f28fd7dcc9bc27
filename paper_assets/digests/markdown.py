"""Render the digest, or papers to share, as Markdown readable as plain text. All values are escaped except URLs."""

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import jinja2
from markupsafe import Markup

from paper_assets.digests.content import Digest
from paper_assets.digests.entry import links_of
from paper_assets.digests.plain_text import in_words, long_day
from paper_assets.paper import Paper
from paper_assets.text.abstracts import key_sentence
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable

# Everywhere: what begins code, emphasis, links, images, HTML, entities, tables, mathematics, attributes, strikethrough.
_MARKS = re.compile(r"[\\`*_\[\]<>|$~&{}]|!(?=\[)|:(?=//)|(?<=\bwww)\.|@(?=\w)|(?<!\S)#|#(?=\s|$)")
# At the beginning of a line: lists, rules, underlined headings, definitions.
_BEGINNING = re.compile(r"^(?:[-+=](?=[-+=\s]|$)|:(?=\s|$)|\d{1,9}[.)](?=\s|$))")


def markdown_page(digest: Digest, *, desk: str | None = None) -> str:
    """Render the page as a file; `desk`: the URL of the same day on the desk."""
    return _template(escaped=True).render(digest=digest, day_in_words=long_day(digest.day), desk=desk, summaries=None)


def text_page(digest: Digest, *, desk: str | None, summaries: Mapping[str, str]) -> str:
    """Render the same page to be read as it is, with nothing escaped, beginning with a sentence for each paper."""
    return _template(escaped=False).render(
        digest=digest, day_in_words=long_day(digest.day), desk=desk, summaries=summaries
    )


def paper_list(papers: Iterable[Paper]) -> str:
    """Write papers as a list: a linked title, authors, and the sentence that says what the paper does."""
    return "\n".join(_list_item(paper) for paper in papers)


def _list_item(paper: Paper) -> str:
    title, links = escape_markdown(readable(one_line(paper.title)) or paper.paper_id), links_of(paper)
    names = [one_line(name) for name in paper.authors]
    by = escape_markdown(f"{names[0]} et al." if len(names) > 2 else " and ".join(names))
    sentence = escape_markdown(readable(key_sentence(one_line(paper.abstract))))
    linked = f"[{title}]({links[0].url})" if links else title
    return f"- {linked}{f', {by}' if by else ''}{f': {sentence}' if sentence else ''}"


def escape_markdown(text: str) -> str:
    """Escape one line so that Markdown shows exactly this text, even where `$` starts mathematics or `www.` a link."""
    marked = _MARKS.sub(lambda found: f"\\{found[0]}", text)
    return _BEGINNING.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", marked)


def _shown(value: Any) -> Any:
    """Escape a value; the template engine calls this for every value that it writes."""
    return value if isinstance(value, Markup) else escape_markdown(str(value))


def _linked(title: object, url: str | None) -> Markup:
    """Write a title as a link where its address is known; `web_address` has removed from it what could end a link."""
    text = escape_markdown(str(title))
    return Markup(f"[{text}]({url})" if url else text)  # noqa: S704  # the title is escaped


def _named(title: object, url: str | None) -> str:
    return f"{title} <{url}>" if url else str(title)


@cache
def _template(*, escaped: bool) -> jinja2.Template:
    environment = jinja2.Environment(  # noqa: S701  # HTML's escapes would show; `finalize` does Markdown's
        loader=jinja2.PackageLoader("paper_assets", "digests"),
        finalize=_shown if escaped else None,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"in_words": in_words, "linked": _linked if escaped else _named}
    return environment.get_template("digest.md.jinja")
