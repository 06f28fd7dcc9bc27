"""Write a digest as a mail: text for a terminal, and HTML that mail clients show.

Both begin with a sentence for each paper. The content is that of the digest's pages. Styles are inline because clients
remove style sheets, the width is that of a phone or at most 600 pixels, and no link leads to this machine: papers are
at their source, and the desk is linked only where its address is public.
"""

import textwrap
from collections.abc import Mapping
from functools import cache
from ipaddress import ip_address
from urllib.parse import urlsplit

import jinja2
import lxml.html
from lxml import etree

from paper_assets.digests.content import Digest
from paper_assets.digests.html import environment
from paper_assets.digests.markdown import text_page
from paper_assets.digests.plain_text import long_day
from paper_assets.text.abstracts import key_sentence
from paper_assets.text.tex import MathText, without_mathml

_WIDTH = 76  # characters of a line; quoted in an answer it still fits into 80
_LOCAL_NAMES = (".local", ".localhost", ".internal", ".lan", ".home.arpa", ".test", ".invalid")


def is_public(url: str | None) -> bool:
    """Return whether the address can be reached from elsewhere: not a name of this machine or network, no private
    address.
    """
    try:
        host = (urlsplit(url or "").hostname or "").rstrip(".")
    except ValueError:
        return False
    try:
        return ip_address(host).is_global
    except ValueError:
        return "." in host and not host.endswith(_LOCAL_NAMES)


def mail_html(digest: Digest, *, desk: str | None = None) -> str:
    """Render the HTML part; `desk`: the URL of the same day on the desk."""
    page = _template().render(
        digest=digest,
        day_in_words=long_day(digest.day),
        desk=desk if is_public(desk) else None,
        summaries=_summaries(digest),
    )
    return _styled(without_mathml(page))


def mail_text(digest: Digest, *, desk: str | None = None) -> str:
    """Write the text part, in lines of at most 76 characters (addresses are not divided)."""
    page = text_page(digest, desk=desk if is_public(desk) else None, summaries=_summaries(digest))
    return "\n".join(_wrapped(line) for line in page.splitlines()) + "\n"


def _summaries(digest: Digest) -> Mapping[str, MathText]:
    """Return the sentence that says what each paper does, by its id."""
    summaries = {}
    for entry in digest.entries:
        parts = [entry.rest] if entry.skipped and entry.rest else [entry.lead, entry.rest]
        abstract = " ".join(part.source for part in parts if part)
        summaries[entry.paper_id] = MathText(key_sentence(abstract))
    return summaries


def _wrapped(line: str) -> str:
    """Divide a line; the rest of a quotation or of an item has its mark, or is indented."""
    mark = ">" if line.startswith("> ") else " " if line.startswith("- ") else ""
    return textwrap.fill(
        line, width=_WIDTH, subsequent_indent=mark and f"{mark} ", break_long_words=False, break_on_hyphens=False
    )


_NOTE = "margin:4px 0 0;color:#6a655c;font-size:14px;"
# By element, or by element and class.
_STYLES: Mapping[str, str] = {
    "body": "margin:0;padding:0;background:#ffffff;",
    "div": "max-width:600px;margin:0 auto;padding:16px;color:#23211d;overflow-wrap:anywhere;word-break:break-word;"
    "font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif;",
    "div.sides": "",
    "div.passage": "margin:8px 0 0;",
    "h1": "margin:0;font-size:22px;line-height:1.25;",
    "h2": "margin:0;font-size:18px;line-height:1.35;",
    "h3": "margin:16px 0 4px;font-size:15px;",
    "h4": "margin:12px 0 4px;font-size:15px;",
    "p": "margin:8px 0 0;",
    "p.by": _NOTE,
    "p.facts": _NOTE,
    "p.note": _NOTE,
    "p.warning": "margin:12px 0 0;padding-left:10px;border-left:3px solid #8a4b00;color:#8a4b00;font-size:14px;",
    "span": "margin-right:10px;",
    "ol": "margin:16px 0 0;padding:0 0 0 24px;",
    "li": "margin:0 0 8px;",
    "section": "margin:24px 0 0;padding:20px 0 0;border-top:1px solid #e2ddd2;",
    "section.version": "margin:8px 0 0;",
    "blockquote": "margin:8px 0 0;padding-left:10px;border-left:3px solid #e2ddd2;",
    "a": "color:#1d4f8c;",
}


def _styled(page: str) -> str:
    """Put the style of each element of the page into its attribute."""
    document = lxml.html.document_fromstring(page)
    for element in document.iter(etree.Element):
        name, _, _ = element.attrib.pop("class", "").partition(" ")
        if style := _STYLES.get(f"{element.tag}.{name}", _STYLES.get(element.tag)):
            element.set("style", style)
    return lxml.html.tostring(document, doctype="<!doctype html>", encoding="unicode")


@cache
def _template() -> jinja2.Template:
    return environment().get_template("mail.html.jinja")
