"""The text of arXiv's own HTML of a paper: sections as headings, formulae as the LaTeX that they were made from (I9).

arXiv makes the page by LaTeXML. Each formula carries its LaTeX, in `alttext` or in an annotation; it is kept as `$…$`,
or as `$$…$$` where it stands on a line of its own. Navigation, pictures and scripts go. Pure.
"""

import re
from typing import Any

from lxml import etree

from paper_assets.errors import PdfFetchFailed
from paper_assets.text.cleaning import without_controls

MOST_BYTES = 30_000_000  # of a page; the longest seen have some 10 MB
_LEAST_HTML = 500  # characters; less is a page that says that the conversion failed
_DROPPED = {
    *("script", "style", "nav", "header", "footer", "button", "svg", "img"),
    *("iframe", "object", "noscript", "template", "form", "head"),
}
_DROPPED_CLASSES = {
    *("ltx_page_header", "ltx_page_footer", "ltx_page_logo", "ltx_TOC", "ltx_ERROR", "ltx_note_mark"),
    "package-alerts",
}
_BLOCKS = {
    *("article", "section", "div", "p", "ul", "ol", "dl", "li", "dt", "dd", "figure", "figcaption"),
    *("table", "tr", "blockquote", "pre", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6"),
}
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}


def html_text(content: bytes, *, name: str) -> str:
    """The whole text, paragraphs parted by blank lines. Raises PdfFetchFailed for what is no page of a paper."""
    if len(content) > MOST_BYTES:
        raise PdfFetchFailed(f"{name} has more than {MOST_BYTES // 1_000_000} MB; not read")
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(content, parser=parser)
    except (etree.XMLSyntaxError, ValueError):
        root = None
    article = None if root is None else next(root.iter("article"), None)
    if article is None:
        raise PdfFetchFailed(f"{name} is no HTML of a paper")
    pieces: list[str] = []
    skipped: Any = None  # the element whose inside is left out
    for event, element in etree.iterwalk(article, events=("start", "end")):
        if event == "start" and skipped is None:
            if element.tag == "math":
                pieces.append(_formula(element))
                skipped = element
            elif element.tag in _DROPPED or _DROPPED_CLASSES & set((element.get("class") or "").split()):
                skipped = element
            else:
                pieces.append(_before(element))
                pieces.append(element.text or "")
        elif event == "end":
            if skipped is None:
                pieces.append("\n\n" if element.tag in _BLOCKS else " | " if element.tag in ("td", "th") else "")
            elif element is skipped:
                skipped = None
            if skipped is None and element is not article:
                pieces.append(element.tail or "")
    paragraphs = (
        " ".join(part.split()).strip(" |") for part in re.split(r"\n\s*\n", without_controls("".join(pieces)))
    )
    text = "\n\n".join(part for part in paragraphs if part.strip("#- "))
    if len(text) < _LEAST_HTML:
        raise PdfFetchFailed(f"{name} holds next to no text")
    return text


def _before(element: Any) -> str:
    if element.tag in _HEADINGS:
        return f"\n\n{_HEADINGS[element.tag]} "
    if element.tag == "li":
        return "\n\n- "
    return "\n\n" if element.tag in _BLOCKS else ""


def _formula(math: Any) -> str:
    latex = math.get("alttext") or next(
        (each.text or "" for each in math.iter("annotation") if each.get("encoding") == "application/x-tex"), ""
    )
    latex = " ".join((latex or "".join(math.itertext())).split())
    return f"\n\n$${latex}$$\n\n" if math.get("display") == "block" else f"${latex}$"
