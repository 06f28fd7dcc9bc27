"""Extract the text of a paper from arXiv's HTML page or its LaTeX source (I9).

HTML: arXiv generates the page with LaTeXML. Each formula carries its LaTeX, in `alttext` or in an annotation; it is
kept as `$…$`, or as `$$…$$` on a separate line. Sections become headings; navigation, pictures and scripts are dropped.

LaTeX source: one file or a tar archive, compressed by gzip. Nothing is unpacked to disk. Only plain files of the
archive are read, never a link or a device; `\\input` finds files of the archive only; sizes are limited before anything
grows. Formulae stay as written, sections become headings, and other LaTeX stays LaTeX: a language model reads it, and
nothing is guessed.
"""

import io
import posixpath
import re
import tarfile
import zlib
from typing import Any

from lxml import etree

from paper_assets.errors import PdfFetchFailed
from paper_assets.sources.limited_reading import answer_parent, read_in_child
from paper_assets.text.cleaning import without_controls

MOST_BYTES = 30_000_000  # of a page; the longest known have about 10 MB
MOST_MEMORY = 4_000_000_000  # bytes of address space of the process that reads one text
MOST_SECONDS = 60.0  # of CPU time, for the same process
_LEAST_HTML = 500  # characters; less is a page that says that the conversion failed
_DEEPEST_HTML, _LONGEST_HTML = 256, 10_000_000  # limits of libxml2: nested elements, bytes of one text
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


def written_text(form: str, content: bytes, *, name: str) -> str:
    """Return what `html_text` or `latex_text` returns, from a process with little memory and time, because some pages
    of some kilobytes take libxml2 hours. Raises PdfFetchFailed.
    """
    text: str = read_in_child(
        "paper_assets.sources.arxiv_full_text",
        content,
        {"form": form, "name": name},
        named=name,
        memory=MOST_MEMORY,
        seconds=MOST_SECONDS,
    )
    return text


def html_text(content: bytes, *, name: str) -> str:
    """Extract the whole text of an HTML page, paragraphs separated by blank lines. Raises PdfFetchFailed if it is not a
    paper.
    """
    if len(content) > MOST_BYTES:
        raise PdfFetchFailed(f"{name} has more than {MOST_BYTES // 1_000_000} MB; not read")
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.fromstring(content, parser=parser)
    except (etree.XMLSyntaxError, ValueError):
        root = None
    _check_whole(parser, name)
    article = None if root is None else next(root.iter("article"), None)
    if article is None:
        raise PdfFetchFailed(f"{name} is not the HTML page of a paper")
    pieces: list[str] = []
    skipped: Any = None  # the element whose content is skipped
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


def _check_whole(parser: etree.HTMLParser, name: str) -> None:
    """Raise PdfFetchFailed if the parser stopped at a limit: what it has read until then is only a part of the page."""
    beyond = [each.message or "" for each in parser.error_log if each.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT]
    if any("depth" in message for message in beyond):
        raise PdfFetchFailed(f"{name} has elements nested more than {_DEEPEST_HTML} deep; not read")
    if beyond:
        raise PdfFetchFailed(f"{name} has a single text of more than {_LONGEST_HTML // 1_000_000} MB; not read")


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


MOST_UNPACKED = 60_000_000  # bytes of the whole archive, figures included
_MOST_FILE, _MOST_FILES = 5_000_000, 3_000  # bytes of one TeX file; entries of an archive
_MOST_TEXT = 5_000_000  # characters including all inserted files
_DEEPEST = 8  # depth of inserted files
_TEX = (".tex", ".ltx", ".latex", ".bbl")
_MAIN_NAMES = ("main.tex", "ms.tex", "paper.tex", "article.tex")
_LEAST = 500  # characters; less is not a paper
_COMMENT = re.compile(r"(?<!\\)((?:\\\\)*)%.*")
_INPUT = re.compile(
    r"\\(?:input|include|subfile)\s*\{([^{}]{1,200})\}|\\(?:sub)?import\s*\{([^{}]{0,200})\}\s*\{([^{}]{1,200})\}"
)
_BODY = re.compile(r"\\begin\s*\{document\}(.*?)(?:\\end\s*\{document\}|\Z)", re.DOTALL)
_TITLE = re.compile(r"\\title\s*(?:\[[^\]]{0,300}\])?\s*\{([^{}]{1,500})\}")
_SECTION = re.compile(
    r"\\(part|chapter|section|subsection|subsubsection|paragraph)\*?\s*(?:\[[^\]]{0,300}\])?\s*\{([^{}\n]{0,300})\}"
)
_LEVELS = {"part": 1, "chapter": 1, "section": 2, "subsection": 3, "subsubsection": 4, "paragraph": 5}
_NO_TEXT = re.compile(
    r"\\(?:maketitle|tableofcontents|newpage|clearpage|centering|noindent|smallskip|medskip|bigskip|hline)(?![A-Za-z])"
    r"|\\(?:label|vspace|hspace|bibliographystyle|includegraphics|pagestyle|thispagestyle)\*?\s*(?:\[[^\]]{0,300}\])?\s*\{[^{}]{0,300}\}"
)
_PLAIN = re.compile(r"\\(?:emph|textbf|textit|textrm|texttt|textsc|underline)\s*\{([^{}\\$]{0,2000})\}")


def latex_text(content: bytes, *, name: str) -> str:
    """Extract the whole text of a LaTeX source, paragraphs separated by blank lines. Raises PdfFetchFailed if it is not
    LaTeX.
    """
    files = _files(content, name)
    main = _main(files)
    if main is None:
        raise PdfFetchFailed(f"{name} contains no LaTeX document of at most {_MOST_FILE // 1_000_000} MB")
    whole = _with_files(main, files)
    body = _BODY.search(whole)
    if body is None:
        raise PdfFetchFailed(f"{name} contains no LaTeX document")
    title = _TITLE.search(whole)
    text = f"# {title[1]}\n\n{body[1]}" if title else body[1]
    text = _SECTION.sub(lambda found: f"\n\n{'#' * _LEVELS[found[1]]} {found[2]}\n\n", text)
    text = _PLAIN.sub(r"\1", _NO_TEXT.sub("", text.replace("\\begin{abstract}", "\n\n## Abstract\n\n")))
    text = text.replace("\\end{abstract}", "\n\n")
    paragraphs = (" ".join(part.split()) for part in re.split(r"\n\s*\n", without_controls(text)))
    text = "\n\n".join(part for part in paragraphs if part)
    if len(text) < _LEAST:
        raise PdfFetchFailed(f"{name} holds next to no text")
    return text


def _files(content: bytes, name: str) -> dict[str, str]:
    """Return the TeX files of a source by their path in it, without comments."""
    data = _unpacked(content, name)
    if data[257:262] != b"ustar" and b"\\" in data[:200_000] and b"\0" not in data[:1_000]:
        return {"main.tex": _decoded(data)}
    files: dict[str, str] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for count, entry in enumerate(archive):
                if count >= _MOST_FILES:
                    raise PdfFetchFailed(f"{name} has more than {_MOST_FILES} files; not read")
                path = _inside(entry.name)
                if not entry.isreg() or path is None or not path.lower().endswith(_TEX) or entry.size > _MOST_FILE:
                    continue
                stream = archive.extractfile(entry)
                if stream is not None:
                    files[path] = _decoded(stream.read(_MOST_FILE))
    except (tarfile.TarError, EOFError, ValueError, OverflowError, RecursionError, OSError):
        raise PdfFetchFailed(f"{name} is not LaTeX source, or damaged") from None
    return files


def _unpacked(content: bytes, name: str) -> bytes:
    if content[:2] != b"\x1f\x8b":
        return content[:MOST_UNPACKED]
    unpacker = zlib.decompressobj(wbits=31)
    try:
        data = unpacker.decompress(content, MOST_UNPACKED + 1)
    except zlib.error:
        raise PdfFetchFailed(f"{name} is damaged") from None
    if not unpacker.eof and len(data) <= MOST_UNPACKED:
        raise PdfFetchFailed(f"{name} is cut off")
    if len(data) > MOST_UNPACKED:
        raise PdfFetchFailed(f"{name} has more than {MOST_UNPACKED // 1_000_000} MB unpacked; not read")
    return data


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return _COMMENT.sub(r"\1", text.replace("\r\n", "\n").replace("\r", "\n"))


def _inside(path: str, folder: str = "") -> str | None:
    """Return a path in the archive; None for one that leads out of it."""
    found = posixpath.normpath(posixpath.join(folder, path.strip()))
    return None if found.startswith(("..", "/")) or "\0" in found else found


def _main(files: dict[str, str]) -> str | None:
    """Return the file that is the document: one that begins it, chosen by name or, of several, the longest."""
    found = [path for path, text in files.items() if "\\begin{document}" in text or "\\begin {document}" in text]
    whole = [path for path in found if re.search(r"\\document(?:class|style)", files[path])]
    named = [path for path in whole if posixpath.basename(path).lower() in _MAIN_NAMES]
    ranked = named or whole or found
    return max(ranked, key=lambda path: (-path.count("/"), len(files[path]), path), default=None)


def _with_files(main: str, files: dict[str, str]) -> str:
    """Return the main file with its inserted files in place, up to a depth and a length."""
    folder, room = posixpath.dirname(main), _MOST_TEXT

    def insert_files(text: str, inside: tuple[str, ...]) -> str:
        """Insert the files that a text names."""

        def other(found: re.Match[str]) -> str:
            nonlocal room
            path = _inside(found[1] or posixpath.join(found[2] or "", found[3] or ""), folder)
            names = [] if path is None else [path, f"{path}.tex"]
            name = next((each for each in names if each in files), None)
            if name is None or name in inside or len(inside) > _DEEPEST or len(files[name]) > room:
                return ""
            room -= len(files[name])
            return insert_files(files[name], (*inside, name))

        return _INPUT.sub(other, text)

    return insert_files(files[main], (main,))


def _read(content: bytes, *, form: str, name: str) -> str:
    return (html_text if form == "html" else latex_text)(content, name=name)


if __name__ == "__main__":
    answer_parent(_read)
