"""Read BibTeX, RIS and CSL-JSON into entries, and write papers in these formats. Add a format as a line in FORMATS.

Reading uses bibtexparser and rispy; a file that cannot be read is an error that names the file.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidInput
from paper_assets.library.entries import Entry, clean_field
from paper_assets.paper import Paper
from paper_assets.small_files import parse_json, read_text
from paper_assets.sources.table import page_of

_MOST_BYTES = 200_000_000
_ARXIV_DOI = "10.48550/arXiv."


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format: the endings of its files, its reader (may raise ValueError), its entries and its writer."""

    endings: tuple[str, ...]
    read: Callable[[str], Sequence[Mapping[str, Any]]]
    entry: Callable[[Mapping[str, Any], str], Entry]
    write: Callable[[Sequence[Paper]], str]


def read_library(file: Path) -> list[Entry]:
    """Read the entries of a file; its ending gives the format. Raises InvalidInput naming the file."""
    name = next((name for name, each in FORMATS.items() if file.suffix.lower() in each.endings), None)
    if name is None:
        endings = ", ".join(ending for each in FORMATS.values() for ending in each.endings)
        raise InvalidInput(f"{file}: unknown library format; the file name must end in {endings}, .sqlite")
    text = read_text(file, most_bytes=_MOST_BYTES)
    try:
        records = FORMATS[name].read(text)
        return [FORMATS[name].entry(record, f"{file.name}, entry {number}") for number, record in enumerate(records, 1)]
    except Exception as fault:  # a third-party parser may raise anything
        raise InvalidInput(f"{file} is not {name}: {' '.join(str(fault).split())[:200]}") from None


def write_papers(papers: Sequence[Paper], name: str) -> str:
    """Return the papers as text in a format. Raises InvalidInput for an unknown format."""
    if name not in FORMATS:
        raise InvalidInput(f"unknown format {name[:40]!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name].write(papers)


def _read_bibtex(text: str) -> Sequence[Mapping[str, Any]]:
    import bibtexparser
    from bibtexparser.bparser import BibTexParser
    from bibtexparser.customization import convert_to_unicode

    parser = BibTexParser(common_strings=True, ignore_nonstandard_types=False, customization=convert_to_unicode)
    found: Sequence[Mapping[str, Any]] = bibtexparser.loads(text, parser).entries
    if not found and text.strip():
        raise ValueError("it contains no entries")
    return found


def _bibtex_entry(record: Mapping[str, Any], where: str) -> Entry:
    eprint = str(record.get("eprint", ""))
    is_arxiv = str(record.get("archiveprefix", record.get("eprinttype", "arxiv"))).lower() == "arxiv"
    return Entry(
        where=f"{where} ({record.get('ID', 'without a key')})",
        title=clean_field(_plain(record.get("title"))),
        abstract=clean_field(_plain(record.get("abstract"))),
        authors=tuple(
            clean_field(name) for name in re.split(r"\s+and\s+", str(record.get("author", ""))) if name.strip()
        ),
        year=clean_field(record.get("year") or str(record.get("date", ""))[:4]),
        doi=clean_field(record.get("doi")),
        arxiv=clean_field(eprint) if eprint and is_arxiv else clean_field(record.get("journal")),
        url=clean_field(record.get("url")),
    )


def _plain(text: object) -> str:
    return re.sub(r"\\([&%#$_])", r"\1", str(text or ""))


def _write_bibtex(papers: Sequence[Paper]) -> str:
    from bibtexparser.bibdatabase import BibDatabase
    from bibtexparser.bwriter import BibTexWriter

    database = BibDatabase()
    database.entries = [
        {
            "ENTRYTYPE": "misc",
            "ID": _key(paper),
            "title": f"{{{_escaped(paper.title)}}}",
            "author": " and ".join(_escaped(name) for name in paper.authors),
            "abstract": _escaped(paper.abstract),
            "url": page_of(paper.paper_id) or "",
            **({"year": f"{paper.day.year}", "month": f"{paper.day.month}"} if paper.day else {}),
            **({"doi": paper.doi} if paper.doi else {}),
            **(
                {"eprint": paper.paper_id, "archiveprefix": "arXiv", "primaryclass": paper.primary_category or ""}
                if _is_arxiv(paper)
                else {}
            ),
        }
        for paper in papers
    ]
    writer = BibTexWriter()
    writer.order_entries_by = None
    text: str = writer.write(database)
    return text


def _escaped(text: str) -> str:
    """Escape text for BibTeX: remove unbalanced braces, put a backslash before special characters."""
    depth = 0
    for letter in text:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            break
    balanced = text if depth == 0 else re.sub(r"[{}]", "", text)
    return re.sub(r"(?<!\\)([&%#])", r"\\\1", balanced)


def _read_ris(text: str) -> Sequence[Mapping[str, Any]]:
    import rispy

    found: Sequence[Mapping[str, Any]] = rispy.loads(text, skip_unknown_tags=True)
    if not found and text.strip():
        raise ValueError("it contains no entries")
    return found


def _ris_entry(record: Mapping[str, Any], where: str) -> Entry:
    urls = record.get("urls") or [record.get("url", "")]
    numbers = [str(record.get(name, "")) for name in ("notes_abstract", "number", "accession_number", "journal_name")]
    notes = record.get("notes") or []
    arxiv = next((text for text in [*map(str, urls), *numbers, *map(str, notes)] if "arxiv" in text.lower()), "")
    return Entry(
        where=where,
        title=clean_field(record.get("title") or record.get("primary_title")),
        abstract=clean_field(record.get("abstract") or record.get("notes_abstract")),
        authors=tuple(clean_field(name) for name in record.get("authors") or record.get("first_authors") or ()),
        year=clean_field(record.get("year") or record.get("publication_year"))[:4],
        doi=clean_field(record.get("doi")),
        arxiv=clean_field(arxiv),
        url=clean_field(urls[0] if urls else ""),
    )


def _write_ris(papers: Sequence[Paper]) -> str:
    import rispy

    text: str = rispy.dumps(
        [
            {
                "type_of_reference": "GEN",
                "title": paper.title,
                "authors": list(paper.authors),
                "abstract": paper.abstract,
                "urls": [page_of(paper.paper_id) or ""],
                **({"year": f"{paper.day.year}"} if paper.day else {}),
                **({"doi": doi} if (doi := _doi(paper)) else {}),
            }
            for paper in papers
        ]
    )
    return text


def _read_csl(text: str) -> Sequence[Mapping[str, Any]]:
    record = parse_json(text, source="CSL-JSON")
    found = record.get("items") if isinstance(record, dict) else record
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("expected a list of objects")
    return found


def _csl_entry(record: Mapping[str, Any], where: str) -> Entry:
    issued = record.get("issued")
    dates = issued.get("date-parts") if isinstance(issued, dict) else None
    year = dates[0][0] if isinstance(dates, list) and dates and isinstance(dates[0], list) and dates[0] else ""
    names = [name for name in record.get("author") or () if isinstance(name, dict)]
    texts = [str(record.get(name, "")) for name in ("number", "archive_location", "archive", "note", "URL")]
    return Entry(
        where=f"{where} ({record.get('id', 'without an id')})",
        title=clean_field(record.get("title")),
        abstract=clean_field(record.get("abstract")),
        authors=tuple(
            clean_field(name.get("literal") or f"{name.get('given', '')} {name.get('family', '')}") for name in names
        ),
        year=clean_field(year),
        doi=clean_field(record.get("DOI")),
        arxiv=clean_field(next((text for text in texts if "arxiv" in text.lower()), "")),
        url=clean_field(record.get("URL")),
    )


def _write_csl(papers: Sequence[Paper]) -> str:
    records = [
        {
            "id": _key(paper),
            "type": "article",
            "title": paper.title,
            "author": [{"literal": name} for name in paper.authors],
            "abstract": paper.abstract,
            "URL": page_of(paper.paper_id) or "",
            **({"issued": {"date-parts": [[paper.day.year, paper.day.month, paper.day.day]]}} if paper.day else {}),
            **({"DOI": doi} if (doi := _doi(paper)) else {}),
            **({"number": f"arXiv:{paper.paper_id}"} if _is_arxiv(paper) else {}),
        }
        for paper in papers
    ]
    return json.dumps(records, ensure_ascii=False, indent=2) + "\n"


def _is_arxiv(paper: Paper) -> bool:
    return ":" not in paper.paper_id


def _doi(paper: Paper) -> str | None:
    return paper.doi or (f"{_ARXIV_DOI}{paper.paper_id}" if _is_arxiv(paper) else None)


def _key(paper: Paper) -> str:
    """Return a BibTeX key: the first author's last name and the id."""
    last = re.sub(r"[^A-Za-z]", "", paper.authors[0].split()[-1] if paper.authors and paper.authors[0].split() else "")
    number = re.sub(r"[^A-Za-z0-9.]", "-", paper.paper_id)
    return f"{last.lower() or 'unknown'}-{number}"


FORMATS: Mapping[str, Format] = {
    "bibtex": Format(endings=(".bib", ".bibtex"), read=_read_bibtex, entry=_bibtex_entry, write=_write_bibtex),
    "ris": Format(endings=(".ris",), read=_read_ris, entry=_ris_entry, write=_write_ris),
    "csl-json": Format(endings=(".json",), read=_read_csl, entry=_csl_entry, write=_write_csl),
}
