"""Read the papers that a reader likes from a form: a library by upload, a Zotero library, the reader's own papers.

The welcome page and the page that adds papers to a profile share these fields. Without scripts, the papers
of an author are hidden fields of the form until the profile is saved.
"""

import json
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request

from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.page.desk import Desk, desk_of
from paper_assets.library.entries import Entry
from paper_assets.library.formats import read_library
from paper_assets.library.zotero import zotero_file, zotero_web
from paper_assets.paper import Paper
from paper_assets.setup.draft import LikedWork, ignored_note, read_references, unreadable_note
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.source import Question, seconds_from_now
from paper_assets.text.cleaning import one_line

FIELDS = ("papers", "own_name", "zotero_number", "zotero_kind", "zotero_collection")
_ENDINGS = (".bib", ".ris", ".json", ".sqlite")
_MOST_UPLOADS = 8  # of refused forms that are kept in memory
_MOST_OWN = 50
_SEARCH_SECONDS = 25.0


class FieldFault(InvalidInput):
    """A fault of one field of a form."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


@dataclass(frozen=True, slots=True)
class OwnPaper:
    """A paper of an author as the form keeps it."""

    paper_id: str
    title: str
    abstract: str
    authors: str
    year: str
    categories: tuple[str, ...]
    chosen: bool

    @property
    def field(self) -> str:
        """The main category: namesakes mostly work in different fields."""
        return self.categories[0] if self.categories else "other fields"

    @property
    def kept(self) -> str:
        """The paper as the value of a hidden field."""
        names = ("paper_id", "title", "abstract", "authors", "year", "categories")
        return json.dumps({name: getattr(self, name) for name in names}, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnPapers:
    """The papers found for a name, and how many arXiv has in all. `fresh`: they were looked up just now."""

    name: str = ""
    papers: tuple[OwnPaper, ...] = ()
    total: int = 0
    fresh: bool = False

    @property
    def works(self) -> tuple[LikedWork, ...]:
        """The chosen papers."""
        return tuple(
            LikedWork(paper_id=paper.paper_id, title=paper.title, abstract=paper.abstract)
            for paper in self.papers
            if paper.chosen
        )

    @property
    def categories(self) -> tuple[str, ...]:
        """The categories of the chosen papers that at least a third of them have, most frequent first."""
        chosen = [paper for paper in self.papers if paper.chosen]
        counts = Counter(category for paper in chosen for category in paper.categories)
        return tuple(category for category, count in counts.most_common() if 3 * count >= len(chosen))


@contextmanager
def about_field(field: str) -> Iterator[None]:
    """Turn an error of a user inside the block into a fault of this field."""
    try:
        yield
    except FieldFault:
        raise
    except PaperAssetsError as fault:
        raise FieldFault(field, f"{fault}") from None


def liked_ids(text: str) -> tuple[LikedWork, ...]:
    """Return the papers that a pasted text names. Raises FieldFault."""
    with about_field("papers"):
        references = read_references(text)
        if references.unreadable:
            raise InvalidInput(unreadable_note(references.unreadable[0]))
    return tuple(LikedWork(paper_id=paper_id) for paper_id in references.ids)


def ignored_words(text: str) -> str | None:
    """Say which words beside the ids of a pasted text were not understood, or None. Raises FieldFault."""
    with about_field("papers"):
        return ignored_note(read_references(text).ignored)


def library_of(request: Request) -> list[Entry]:
    """Read the uploaded files and the named Zotero library. Raises FieldFault."""
    with about_field("library"):
        entries = [entry for name, content in _uploads(request) for entry in _entries(name, content)]
    return entries + _zotero(request)


def local_zotero(environ: Mapping[str, str]) -> Path | None:
    """Return the database of the Zotero on this computer, where it is by default."""
    home = environ.get("HOME", "").strip()
    file = Path(home) / "Zotero" / "zotero.sqlite"
    return file if home and file.is_file() else None


def own_papers(request: Request) -> OwnPapers:
    """Return the papers of an author that the form holds, as they are chosen."""
    form = request.state.form
    chosen, fields = set(form.getlist("mine")), set(form.getlist("mine_field"))
    papers = tuple(paper for text in form.getlist("found") if (paper := _kept(str(text), chosen, fields)))
    total = str(form.get("found_total", ""))
    return OwnPapers(
        name=str(form.get("found_name", "")).strip(),
        papers=papers[:_MOST_OWN],
        total=int(total) if total.isdecimal() and len(total) < 9 else len(papers),
    )


def wants_search(request: Request, own: OwnPapers) -> bool:
    """Return whether the form names an author whose papers were not looked up yet."""
    name = str(request.state.form.get("own_name", "")).strip()
    return bool(name) and name != own.name


def find_own_papers(desk: Desk, name: str) -> OwnPapers:
    """Ask arXiv for the papers of an author, newest first. Raises FieldFault.

    Few papers are chosen already; many are probably of several people with this name.
    """

    access = desk.workspace.access
    with about_field("own_name"):
        if not name:
            raise InvalidInput("write your name first")
        left = seconds_from_now(_SEARCH_SECONDS, time.monotonic)
        limited = type(access)(settings=access.settings, environ=access.environ, left=left)
        assert ARXIV.search is not None  # noqa: S101
        answer = ARXIV.search(limited, Question(words="", author=name, limit=_MOST_OWN))
        if not answer.records:
            raise InvalidInput(f"arXiv has no paper by {name[:60]!r}; write the name as on your papers")
    papers = [record.paper for record in answer.records]
    papers.sort(key=lambda paper: f"{paper.published or ''}", reverse=True)
    return OwnPapers(
        name=name,
        papers=tuple(_own(paper, chosen=answer.total <= len(papers) <= _MOST_OWN // 2) for paper in papers),
        total=answer.total,
        fresh=True,
    )


def _own(paper: Paper, *, chosen: bool) -> OwnPaper:
    authors = ", ".join(paper.authors[:4]) + (" and others" if len(paper.authors) > 4 else "")
    year = f"{paper.published.year}" if paper.published else ""
    return OwnPaper(paper.paper_id, paper.title, paper.abstract, authors, year, tuple(paper.categories), chosen=chosen)


def _kept(text: str, chosen: set[str], fields: set[str]) -> OwnPaper | None:
    """Return the paper in a hidden field; None for a text that this page did not write.

    It is chosen by its id, or by its field.
    """
    try:
        record: Any = json.loads(text)
        values = [record[name] for name in ("paper_id", "title", "abstract", "authors", "year")]
        categories = tuple(category for category in record["categories"] if isinstance(category, str))
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    if not all(isinstance(value, str) for value in values) or not read_references(values[0]).ids:
        return None
    paper_id, title, abstract, authors, year = values
    is_chosen = paper_id in chosen or bool(fields.intersection(categories[:1]))
    return OwnPaper(paper_id, title, abstract, authors, year, categories, chosen=is_chosen)


def _uploads(request: Request) -> list[tuple[str, bytes]]:
    """Return the uploaded files, else those of the same form when it was refused before."""
    kept = desk_of(request).uploads.get(str(request.state.form.get("library_kept", "")), ())
    return list(getattr(request.state, "uploads", {}).get("library", kept))


def keep_uploads(request: Request) -> tuple[str, list[str]] | None:
    """Keep the uploaded files of a form that is shown again; return their key and names, None without any."""
    files = _uploads(request) if getattr(request.state, "form", None) else []
    if not files:
        return None
    uploads, key = desk_of(request).uploads, secrets.token_urlsafe(9)
    uploads[key] = tuple(files)
    while len(uploads) > _MOST_UPLOADS:
        uploads.popitem(last=False)
    return key, [name for name, _ in files]


def _entries(name: str, content: bytes) -> list[Entry]:
    """Return the entries of an uploaded file. Raises InvalidInput with the file name that the reader knows."""
    suffix = Path(name).suffix.lower()
    if suffix not in _ENDINGS:
        raise InvalidInput(f"{name[:60]} is not a .bib, .ris, CSL-JSON (.json) or zotero.sqlite file")
    with tempfile.TemporaryDirectory(prefix="paper-assets-") as folder:
        # Faults of single entries name the file too, so it gets the name that the reader knows.
        file = Path(folder) / f"{one_line(Path(name).stem)[:60].strip('. ') or 'library'}{suffix}"
        file.write_bytes(content)
        try:
            return zotero_file(file) if suffix == ".sqlite" else read_library(file)
        except PaperAssetsError as fault:
            raise InvalidInput(str(fault).replace(str(file), file.name)) from None


def _zotero(request: Request) -> list[Entry]:
    desk, form = desk_of(request), request.state.form
    collection = str(form.get("zotero_collection", "")).strip()
    collections = [collection] if collection else []
    entries: list[Entry] = []
    if form.get("zotero_local") and (file := local_zotero(desk.environ)):
        with about_field("zotero_collection" if collection else "zotero_local"):
            entries += zotero_file(file, collections)
    number = str(form.get("zotero_number", "")).strip()
    if number:
        with about_field("zotero_number"):
            if not (number.isascii() and number.isdigit()):
                raise InvalidInput(
                    "the number of a Zotero library has digits only; Zotero shows yours at zotero.org/settings/keys"
                )
            key = str(form.get("zotero_key", "")).strip() or desk.environ.get("ZOTERO_API_KEY", "").strip()
            entries += zotero_web(
                number,
                kind="group" if form.get("zotero_kind") == "group" else "user",
                key=key or None,
                url=desk.settings.zotero_url,
                timeout=desk.settings.request_timeout,
                collections=collections,
            )
    return entries
