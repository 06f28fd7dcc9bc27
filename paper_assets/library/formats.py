"""Read BibTeX, RIS and CSL-JSON into entries, and write papers in these formats. Add a format as a line in FORMATS.

RIS and CSL-JSON are written with TeX as Unicode characters, because their readers show TeX as it is; BibTeX keeps it.

Reading uses bibtexparser and rispy; a file that cannot be read is an error that names the file. An entry of BibTeX that
cannot be read does not affect the others: it becomes an `Entry` with a fault.

Authors' names are split as in BibTeX, by bibtexparser's `splitname`: given names, particles in lower case ("van der"),
family name, suffix. Two things are added: particles with a capital, as most authors write them ("De Nadai"), and
suffixes without a comma ("King Jr.").
"""

import codecs
import json
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paper_assets.errors import InvalidInput
from paper_assets.library.entries import Entry, arxiv_named, clean_field
from paper_assets.paper import Paper
from paper_assets.small_files import parse_json, read_small
from paper_assets.sources.table import page_of
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable, readable_words

_PARTICLES = frozenset(("De", "Di", "Del", "Della", "Dos", "Da", "Das", "Al", "El", "Van", "Von", "La", "Le", "Ter"))
_SUFFIX = re.compile(r"(?:[JS]r\.?|I{2,3}|IV)")
_GROUP = re.compile(
    r"\b(?:collaborations?|consortium|teams?|groups?|project|institute|university|laborator(?:y|ies)|inc|society|"
    r"initiative|network|committee|community|foundation)\b",
    re.IGNORECASE,
)
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "ß": "ss", "æ": "ae", "œ": "oe", "đ": "d", "ı": "i", "þ": "th", "ð": "d"})
_STOPWORDS = frozenset(
    ("a", "an", "the", "on", "of", "in", "for", "to", "and", "with", "from", "is", "are", "at", "by")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Name:
    """An author's name in parts; a group and a single word are only a family name."""

    family: str
    given: str = ""
    particle: str = ""
    suffix: str = ""

    @property
    def last(self) -> str:
        """The family name with its particle."""
        return f"{self.particle} {self.family}".strip()


def is_name(text: str) -> bool:
    """Return whether the text has a letter: arXiv's lists of authors contain ":" where a collaboration is named."""
    return any(map(str.isalpha, text))


def split_name(text: str) -> Name:
    """Split a name as written, `Given van Family Jr.` or `van Family, Jr., Given`."""
    from bibtexparser.customization import splitname

    text = one_line(text)
    words = text.split()
    if len(words) < 2 or ("," not in text and _GROUP.search(text)):
        return Name(family=text)
    suffix = ""
    if "," not in text and len(words) > 2 and _SUFFIX.fullmatch(words[-1]):
        *words, suffix = words
        words[-1] = words[-1].rstrip(",")
    if "," not in text:  # in lower case they count as particles
        text = " ".join(
            word.lower() if 0 < at < len(words) - 1 and word in _PARTICLES else word for at, word in enumerate(words)
        )
    try:
        parts = splitname(text.replace("{", "").replace("}", ""), strict_mode=False)
    except Exception:  # the library raises StopIteration and others for names of marks alone: show them as written
        return Name(family=text)
    written = {word.lower(): word for word in words}
    particle = " ".join(written.get(word, word) for word in parts["von"])
    given, family = " ".join(parts["first"]), " ".join(parts["last"])
    if not family:
        return Name(family=text)
    return Name(given=given, particle=particle, family=family, suffix=suffix or " ".join(parts["jr"]))


def keys_of(works: Sequence[tuple[Sequence[str], int | None, str]]) -> list[str]:
    """Return a citation key for each work (authors, year, title), such as `hollein2026morphany`; all differ."""
    taken: set[str] = set()
    keys = []
    for authors, year, title in works:
        named = next((name for name in authors if is_name(name)), "")
        family = _plain(split_name(named).family) or "unknown"
        words = [word for word in map(_plain, re.split(r"[\s\-–—/:,.]+", title)) if word]
        first = next((word for word in words if word not in _STOPWORDS), "")
        key = base = f"{family}{year or ''}{first}"
        number = 1
        while key in taken:
            number += 1
            key = f"{base}{number}"
        taken.add(key)
        keys.append(key)
    return keys


def _plain(text: str) -> str:
    """Return the letters and digits of ASCII, accents removed, in lower case."""
    bare = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return re.sub(r"[^a-z0-9]", "", bare)


_MOST_BYTES = 200_000_000
_ARXIV_DOI = "10.48550/arXiv."
_BIBTEX_ENTRY = re.compile(
    r"^[ \t]*@(?!comment|string|preamble)(?P<kind>\w+)[ \t]*[{(]\s*(?P<key>[^,\s{}()=\"]*)",
    re.IGNORECASE | re.MULTILINE,
)
_BRACE = re.compile(r"\\?[{}]")  # BibTeX counts \{ and \} too
_OPENED = "\0"
_OPEN_COMMAND = re.compile(rf"\\[a-zA-Z]+\*?{_OPENED}")
_DOLLAR = re.compile(r"(?<!\\)\$")
_BARE = re.compile(r"\\(?:url|href|[\W_])(?:\{[^{}]*\})?|[_^]")  # or a command that may hold them, which stays as it is
_RIS_BEGIN, _RIS_END = re.compile(r"^(?=TY {1,2}-)", re.MULTILINE), re.compile(r"^ER {1,2}-", re.MULTILINE)
_RIS_NAMES_ARXIV = (  # T2, M1 and others
    ("secondary_title", "journal_name", "notes_abstract", "number", "accession_number", "note", "publisher")
)
_BIBTEX_STRING = re.compile(r"^[ \t]*@string.*$", re.IGNORECASE | re.MULTILINE)


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
    text = _decoded(read_small(file, most_bytes=_MOST_BYTES))
    try:
        records = FORMATS[name].read(text)
        entries = [
            FORMATS[name].entry(record, f"{file.name}, entry {number}") for number, record in enumerate(records, 1)
        ]
        return [*entries, *(_lost_bibtex(text, records, file.name) if name == "bibtex" else ())]
    except Exception as fault:  # a third-party parser may raise anything
        raise InvalidInput(f"{file} is not {name}: {' '.join(str(fault).split())[:200]}") from None


def _decoded(content: bytes) -> str:
    """Return the text of a file in UTF-8 or UTF-16, or in the older encoding of Western Europe."""
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return content.decode("utf-16", "replace")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("cp1252", "replace")


def write_papers(papers: Sequence[Paper], name: str) -> str:
    """Return the papers as text in a format. Raises InvalidInput for an unknown format."""
    if name not in FORMATS:
        raise InvalidInput(f"unknown format {name[:40]!r}; choose one of {', '.join(FORMATS)}")
    return FORMATS[name].write(papers)


def _read_bibtex(text: str) -> Sequence[Mapping[str, Any]]:
    begins = list(_BIBTEX_ENTRY.finditer(text))
    found = _parsed_bibtex(text)
    if len(found) < len(begins):  # a missing comma or brace hides the entries after it: read each alone
        strings = "\n".join(each[0] for each in _BIBTEX_STRING.finditer(text))
        ends = [each.start() for each in begins[1:]] + [len(text)]
        parts = [text[begin.start() : end] for begin, end in zip(begins, ends, strict=True)]
        alone = [_parsed_bibtex(f"{strings}\n{_BIBTEX_STRING.sub('', part)}") for part in parts]
        found = [
            entry for entries, begin in zip(alone, begins, strict=True) for entry in entries if _same(entry, begin)
        ]
    if not found and not begins and text.strip():
        raise ValueError("it contains no entries")
    return found


def _parsed_bibtex(text: str) -> list[Mapping[str, Any]]:
    import bibtexparser
    from bibtexparser.bparser import BibTexParser

    # What it cannot read is reported as an entry with a fault.
    logging.getLogger("bibtexparser").setLevel(logging.ERROR)
    parser = BibTexParser(common_strings=True, ignore_nonstandard_types=False)
    found: list[Mapping[str, Any]] = bibtexparser.loads(text, parser).entries
    return found


def _same(entry: Mapping[str, Any], begin: "re.Match[str]") -> bool:
    return str(entry.get("ID", "")) == begin["key"].strip()


def _lost_bibtex(text: str, records: Sequence[Mapping[str, Any]], name: str) -> list[Entry]:
    """Return the entries that begin in the text and were not read, as entries with a fault."""
    read = Counter(str(record.get("ID", "")) for record in records)
    lost = []
    for begin in _BIBTEX_ENTRY.finditer(text):
        key = begin["key"].strip()
        if read[key]:
            read[key] -= 1
            continue
        line = text.count("\n", 0, begin.start()) + 1
        where = f"{name}, line {line} (@{begin['kind']}{{{key[:60]})"
        lost.append(Entry(where=where, fault="not readable: a comma, brace or quotation mark may be missing"))
    return lost


def _bibtex_entry(record: Mapping[str, Any], where: str) -> Entry:
    is_arxiv = str(record.get("archiveprefix", record.get("eprinttype", "arxiv"))).lower() == "arxiv"
    doi = clean_field(record.get("doi"))
    # A note on a published work may be about another paper; without a DOI it says where this one is.
    places = ("journal", "howpublished", "volume") if doi else ("journal", "howpublished", "volume", "note")
    return Entry(
        where=f"{where} ({record.get('ID', 'without a key')})",
        title=one_line(readable_words(str(record.get("title") or ""))),
        abstract=one_line(readable_words(str(record.get("abstract") or ""))),
        doi=doi,
        arxiv=(clean_field(record.get("eprint")) if is_arxiv else "") or arxiv_named(*map(record.get, places)),
        url=clean_field(record.get("url")),
    )


def _write_bibtex(papers: Sequence[Paper]) -> str:
    from bibtexparser.bibdatabase import BibDatabase
    from bibtexparser.bwriter import BibTexWriter

    database = BibDatabase()
    database.entries = [
        {
            "ENTRYTYPE": "misc",
            "ID": key,
            "title": f"{{{_typeset(_escaped(one_line(paper.title)))}}}",
            "author": " and ".join(_bibtex_name(split_name(name)) for name in paper.authors if is_name(name)),
            "abstract": _escaped(one_line(paper.abstract)),
            "url": page_of(paper.paper_id) or "",
            **({"year": f"{paper.day.year}", "month": f"{paper.day.month}"} if paper.day else {}),
            **({"doi": paper.doi} if paper.doi else {}),
            **(
                {"eprint": paper.paper_id, "archiveprefix": "arXiv", "primaryclass": paper.primary_category or ""}
                if _is_arxiv(paper)
                else {}
            ),
        }
        for paper, key in zip(papers, _keys(papers), strict=True)
    ]
    database.entries = [{name: text for name, text in entry.items() if text} for entry in database.entries]
    writer = BibTexWriter()
    writer.order_entries_by = None
    text: str = writer.write(database)
    return text


def _bibtex_name(name: Name) -> str:
    if not name.given:
        return f"{{{_escaped(name.family)}}}"
    parts = (name.last, name.suffix, name.given)
    return ", ".join(_escaped(part) for part in parts if part)


def _escaped(text: str) -> str:
    """Escape text for BibTeX: remove unmatched braces, put a backslash before special characters.

    A command whose argument has no end goes with its brace, as the page shows it.
    """
    opened, unmatched = [], set()
    for brace in _BRACE.finditer(text):
        if brace[0][-1] == "{":
            opened.append(brace.start())
        elif opened:
            opened.pop()
        else:
            unmatched.add(brace.start())
    unmatched.update(opened)
    left = {"{": _OPENED}  # all other unmatched braces are left out
    kept = _BRACE.sub(lambda brace: left.get(brace[0], "") if brace.start() in unmatched else brace[0], text)
    balanced = _OPEN_COMMAND.sub(" ", kept).replace(_OPENED, "")
    return re.sub(r"(?<!\\)([&%#])", r"\\\1", balanced)


def _typeset(text: str) -> str:
    r"""Escape what LaTeX accepts in mathematics only: `P^2O` becomes `P{\textasciicircum}2O`, `N_c` becomes `N\_c`."""
    parts = _DOLLAR.split(text)
    if len(parts) % 2 == 0:  # the mathematics has no end
        return r"\$".join(map(_typeset, parts))
    return "$".join(_BARE.sub(_in_text, part) if at % 2 == 0 else part for at, part in enumerate(parts))


def _in_text(found: "re.Match[str]") -> str:
    return {"_": r"\_", "^": r"{\textasciicircum}"}.get(found[0], found[0])


def _read_ris(text: str) -> Sequence[Mapping[str, Any]]:
    import rispy

    records = _RIS_BEGIN.split(text)  # rispy drops a record without an end, and the next one with it
    whole = [each if _RIS_END.search(each) else f"{each.rstrip()}\nER  - \n" for each in records if each.strip()]
    found: Sequence[Mapping[str, Any]] = rispy.loads("".join(whole), skip_unknown_tags=True)
    if not found and text.strip():
        raise ValueError("it contains no entries")
    return found


def _ris_entry(record: Mapping[str, Any], where: str) -> Entry:
    urls = record.get("urls") or [record.get("url", "")]
    named = arxiv_named(*urls, *map(record.get, _RIS_NAMES_ARXIV), *(record.get("notes") or ()))
    return Entry(
        where=where,
        title=one_line(str(record.get("title") or record.get("primary_title") or "")),
        abstract=one_line(str(record.get("abstract") or record.get("notes_abstract") or "")),
        doi=clean_field(record.get("doi")),
        arxiv=named,
        url=clean_field(urls[0] if urls else ""),
    )


def _write_ris(papers: Sequence[Paper]) -> str:
    import rispy
    from rispy.writer import RisWriter

    class Writer(RisWriter):
        """Without the number that rispy writes before each entry, which other programs take for an error."""

        def set_header(self, count: int) -> str:
            return ""

    text: str = rispy.dumps(
        [
            {
                "type_of_reference": "GEN",
                "title": readable(one_line(paper.title)),
                "authors": [_ris_name(split_name(name)) for name in paper.authors if is_name(name)],
                "abstract": readable(one_line(paper.abstract)),
                "urls": [page_of(paper.paper_id) or ""],
                **({"year": f"{paper.day.year}"} if paper.day else {}),
                **({"doi": doi} if (doi := _doi(paper)) else {}),
            }
            for paper in papers
        ],
        implementation=Writer,
    )
    return text


def _ris_name(name: Name) -> str:
    return ", ".join(part for part in (name.last, name.given, name.suffix) if part)


def _read_csl(text: str) -> Sequence[Mapping[str, Any]]:
    record = parse_json(text, source="CSL-JSON")
    found = record.get("items") if isinstance(record, dict) else record
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise ValueError("expected a list of objects")
    return found


def _csl_entry(record: Mapping[str, Any], where: str) -> Entry:
    places = ("number", "archive_location", "archive", "container-title", "publisher", "note", "URL")
    return Entry(
        where=f"{where} ({record.get('id', 'without an id')})",
        title=one_line(str(record.get("title") or "")),
        abstract=one_line(str(record.get("abstract") or "")),
        doi=clean_field(record.get("DOI")),
        arxiv=arxiv_named(*map(record.get, places)),
        url=clean_field(record.get("URL")),
    )


def _write_csl(papers: Sequence[Paper]) -> str:
    records = [
        {
            "id": key,
            "type": "article",
            "title": readable(one_line(paper.title)),
            "author": [_csl_name(split_name(name)) for name in paper.authors if is_name(name)],
            "abstract": readable(one_line(paper.abstract)),
            "URL": page_of(paper.paper_id) or "",
            **({"issued": {"date-parts": [[paper.day.year, paper.day.month, paper.day.day]]}} if paper.day else {}),
            **({"DOI": doi} if (doi := _doi(paper)) else {}),
            **({"number": f"arXiv:{paper.paper_id}"} if _is_arxiv(paper) else {}),
        }
        for paper, key in zip(papers, _keys(papers), strict=True)
    ]
    return json.dumps(records, ensure_ascii=False, indent=2) + "\n"


_CSL_PARTS = {"given": "given", "particle": "non-dropping-particle", "family": "family", "suffix": "suffix"}


def _csl_name(name: Name) -> dict[str, str]:
    if not name.given:
        return {"literal": name.family}
    return {known: part for ours, known in _CSL_PARTS.items() if (part := getattr(name, ours))}


def _is_arxiv(paper: Paper) -> bool:
    return ":" not in paper.paper_id


def _doi(paper: Paper) -> str | None:
    return paper.doi or (f"{_ARXIV_DOI}{paper.paper_id}" if _is_arxiv(paper) else None)


def _keys(papers: Sequence[Paper]) -> list[str]:
    return keys_of([(paper.authors, paper.day.year if paper.day else None, readable(paper.title)) for paper in papers])


FORMATS: Mapping[str, Format] = {
    "bibtex": Format(endings=(".bib", ".bibtex"), read=_read_bibtex, entry=_bibtex_entry, write=_write_bibtex),
    "ris": Format(endings=(".ris",), read=_read_ris, entry=_ris_entry, write=_write_ris),
    "csl-json": Format(endings=(".json",), read=_read_csl, entry=_csl_entry, write=_write_csl),
}
