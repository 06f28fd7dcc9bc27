"""Read papers from bulk files one by one, never the whole file in memory (SPEC S3).

The format is detected from the content, never from the name: gzip or not; an Atom feed; or JSON lines, each line either
this project's record (`paper_id, ...`) or arXiv's metadata (`id, ...`) in the shape of the snapshot or of the many
collections derived from it.
"""

import gzip
import io
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import IO, Any

import orjson
from lxml import etree

from paper_assets.errors import InvalidArxivId, InvalidInput, InvalidPaper
from paper_assets.paper import Paper, oversized_fields, paper_from_mapping
from paper_assets.paper_id import pdf_address, split_arxiv_id
from paper_assets.sources.arxiv_api import ATOM, STRICT_XML, is_atom, read_entry
from paper_assets.sources.paper_fields import (
    authors_and_affiliations,
    code_url,
    is_name,
    is_withdrawn,
    plain_tex,
    with_code_url,
)

_LONGEST_LINE = 10_000_000  # bytes; the longest record of the arXiv snapshot has a tenth of it
_BOM = b"\xef\xbb\xbf"
Fault = Callable[[str], None]


def read_papers(path: Path, *, on_fault: Fault | None = None, on_unusable: Fault | None = None) -> Iterator[Paper]:
    """Yield the papers of a file in its order; a repeated id is yielded each time.

    The first record that is not a paper raises InvalidInput `file:line: what and what to do`. With `on_fault` each such
    record is reported with that text and skipped; a file that is missing, empty, not text or without papers still
    raises. `on_unusable` does the same for what is a record, but lacks a title or goes beyond the limits of
    `paper.LONGEST_FIELDS`; default: `on_fault`.
    """
    faults: list[str] = []

    def fault(text: str, *, report: Fault | None = on_fault) -> None:
        """Report a record that is refused, or raise."""
        if report is None:
            raise InvalidInput(text)
        faults.append(text)
        report(text)

    unusable = partial(fault, report=on_unusable or on_fault)

    count = 0
    try:
        with _opened(path) as stream:
            start = stream.peek(4096).removeprefix(_BOM).lstrip()
            if start.startswith((b"\xff\xfe", b"\xfe\xff")):
                raise InvalidInput(f"{path} is UTF-16 text; save it as UTF-8")
            if start.startswith(b"["):
                raise InvalidInput(f"{path} is one JSON list; write one record per line instead (JSON lines)")
            read = _atom_papers if start.startswith(b"<") else _json_papers
            for place, paper in read(stream, path, fault, unusable):
                if excess := oversized_fields(paper):
                    unusable(f"{place}: paper {paper.paper_id[:60]} is refused: {excess[0]}; shorten or remove it")
                    continue
                count += 1
                yield paper
    except FileNotFoundError:
        raise InvalidInput(f"{path} does not exist; check the path") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a folder; name a file in it") from None
    except (EOFError, gzip.BadGzipFile, zlib.error):
        fault(f"{path}: the gzip data is truncated or damaged after {count} papers; fetch the file again")
    except (OSError, ValueError) as error:  # ValueError: an impossible file name
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if faults and not count:
        several = f"{path}: none of its {len(faults)} records is a paper; is it the right file?"
        raise InvalidInput(faults[0] if len(faults) == 1 else several)


@contextmanager
def _opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open the file's content, unpacked if it is gzip; a pipe is accepted, a device would never end."""
    kind = path.stat().st_mode
    if stat.S_ISCHR(kind) or stat.S_ISBLK(kind) or stat.S_ISSOCK(kind):
        raise InvalidInput(f"{path} is a device or a socket; name a file")
    with path.open("rb") as raw:
        if raw.peek(2)[:2] == b"\x1f\x8b":
            with gzip.open(raw) as unpacked:
                yield io.BufferedReader(unpacked, 1 << 20)
        else:
            yield raw


def _json_papers(stream: IO[bytes], path: Path, fault: Fault, unusable: Fault) -> Iterator[tuple[str, Paper]]:
    """Yield the place (`file:line`) and the paper of each line."""
    number, empty = 0, True
    while line := stream.readline(_LONGEST_LINE + 1):
        number += 1
        place = f"{path}:{number}"
        if len(line) > _LONGEST_LINE:
            fault(f"{place}: the line is longer than {_LONGEST_LINE // 1_000_000} MB; write one record per line")
            while line and not line.endswith(b"\n"):
                line = stream.readline(_LONGEST_LINE)
            continue
        if number == 1:
            line = line.removeprefix(_BOM)
        if not line.strip():
            continue
        empty = False
        try:
            yield place, paper_from_record(orjson.loads(line))
        except orjson.JSONDecodeError as error:
            if line.endswith(b"\n"):
                fault(f"{place}: not valid JSON at character {error.pos + 1} ({error.msg}); fix or remove the line")
            else:
                fault(f"{place}: the last line is not a complete JSON record; is the file truncated? fetch it again")
        except InvalidPaper as error:
            unusable(f"{place}: {error}; fix or remove the line")
    if empty:
        raise InvalidInput(f"{path} is empty; expected an Atom feed or JSON lines, one paper per line")


def _atom_papers(stream: IO[bytes], path: Path, fault: Fault, unusable: Fault) -> Iterator[tuple[str, Paper]]:
    """Yield the place (`file:line`) and the paper of each entry."""
    steps = etree.iterparse(stream, events=("start", "end"), **STRICT_XML)
    root: Any = None
    try:
        for event, element in steps:
            if root is None:
                root = element
                if not is_atom(root):
                    raise InvalidInput(
                        f"{path} is not an Atom feed but <{root.tag.rpartition('}')[2]}>; save the feed itself"
                    )
            if event == "end" and element.tag == f"{ATOM}entry" and element.getparent() is root:
                try:
                    yield f"{path}:{element.sourceline}", read_entry(element)
                except InvalidPaper as error:
                    unusable(f"{path}:{element.sourceline}: {error}; fix or remove the entry")
                element.clear()  # free what has been read: a feed may be larger than memory
                while element.getprevious() is not None:
                    del root[0]
    except etree.XMLSyntaxError as error:
        text = f"{path}:{error.lineno}: not well-formed XML, truncated or damaged; fetch the file again"
        if root is None:
            raise InvalidInput(text) from None
        fault(text)


def paper_from_record(record: object) -> Paper:
    """Read a paper of any size from a record of any known shape, this project's or arXiv's. Raises InvalidPaper."""
    if not isinstance(record, Mapping):
        return paper_from_mapping(record)
    values = {**record, "authors": _plain_names(record)} if "paper_id" in record else _from_arxiv(record)
    comment, abstract = _text(values.get("comment")), _text(values.get("abstract"))
    if "withdrawn" not in values:
        values["withdrawn"] = is_withdrawn(comment, abstract)
    return with_code_url(paper_from_mapping(values))


def _from_arxiv(record: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arXiv's metadata to this project's names. Values of a wrong type are kept, to be refused by name."""
    paper_id = record.get("id")
    if not isinstance(paper_id, str):
        raise InvalidPaper("the record has no paper_id, and its id is not a text")
    try:
        identifier, version = split_arxiv_id(paper_id)
    except InvalidArxivId as error:
        raise InvalidPaper(str(error)) from None
    authors, affiliations = _authors(record)
    categories = record.get("categories")
    if isinstance(categories, str):
        categories = categories.split()
    versions = [one for one in _list(record.get("versions")) if isinstance(one, Mapping)]
    dates = [_iso(one.get("created")) for one in versions]
    number = version or _version(versions[-1].get("version") if versions else record.get("version")) or 1
    first = categories[0] if isinstance(categories, list) and categories else None
    return {
        "paper_id": identifier,
        "version": number,
        "title": _one_line(record.get("title")),
        "abstract": _one_line(record.get("abstract")),
        "authors": authors,
        "affiliations": affiliations,
        "categories": categories,
        # arXiv lists the primary category first (so in all 3,529 records known to say both).
        "primary_category": record.get("primary_category") or first,
        "comment": _one_line(record.get("comments", record.get("comment"))),
        "doi": _one_line(record.get("doi")),
        "journal_ref": _one_line(record.get("journal-ref", record.get("journal_ref"))),
        "published": dates[0] if dates else _iso(record.get("published")),
        "updated": dates[-1] if dates else _iso(record.get("updated", record.get("update_date"))),
        "pdf_url": pdf_address(identifier, number),
        "github_url": code_url(_text(record.get("code_url")), None),
    }


def _authors(record: Mapping[str, Any]) -> tuple[object, list[str]]:
    """Return names and affiliations from `authors_parsed`, a list of names, or one line of free text."""
    parsed = _list(record.get("authors_parsed"))
    if parsed and all(isinstance(one, list) and all(isinstance(part, str) for part in one) for one in parsed):
        names = [
            plain_tex(" ".join(part for part in (*one[1:2], *one[:1], *one[2:3]) if part.strip())) for one in parsed
        ]
        places = [plain_tex(place) for one in parsed for place in one[3:] if place.strip()]
        return [name for name in names if is_name(name)], list(dict.fromkeys(places))
    authors = record.get("authors", record.get("authors_raw"))
    if isinstance(authors, str):
        return authors_and_affiliations(authors)
    if isinstance(authors, list) and all(isinstance(name, str) for name in authors):
        authors = [plain for name in authors if (plain := plain_tex(name))]
    return authors, []


def _plain_names(record: Mapping[str, Any]) -> object:
    """Return the authors of this project's record with TeX's accents as Unicode characters."""
    names = record.get("authors")
    if not isinstance(names, list):
        return names
    return [plain_tex(name) if isinstance(name, str) and "\\" in name else name for name in names]


def _iso(value: object) -> object:
    """Convert a mail date (`Mon, 2 Apr 2007 19:18:42 GMT`) to ISO text; return anything else unchanged."""
    if isinstance(value, str) and not value[:4].isdigit():
        try:
            return parsedate_to_datetime(value).isoformat()
        except (ValueError, TypeError):
            return value
    return value


def _version(value: object) -> int | None:
    digits = value.removeprefix("v") if isinstance(value, str) else ""
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) <= 4 else None


def _one_line(value: object) -> object:
    return " ".join(value.split()) if isinstance(value, str) else value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
