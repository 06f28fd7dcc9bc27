"""Cut full texts into passages and store them as documents of the type `fulltext` with their vectors (SPEC R1, M3)."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from paper_assets.errors import PdfFetchFailed
from paper_assets.models.embedder import Embedder
from paper_assets.paper import Paper, papers_from_table
from paper_assets.paper_id import arxiv_id_of_file
from paper_assets.sources.pdf_files import pdf_files
from paper_assets.sources.pdf_text import pdf_text, read_pdf
from paper_assets.sources.table import page_of
from paper_assets.stores.documents import Document, embed_documents, origins_of, remove_documents, replace_documents
from paper_assets.stores.papers import papers_by_id
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.chunks import chunks_of
from paper_assets.text.cleaning import encodable

# Characters. MiniLM reads 256 word pieces: of passages of this size of arXiv abstracts 0.1 % are longer, of 1,000
# characters 0.4 %, of 1,200 6.5 %. They do not overlap: they end with a sentence, and grading cuts them again.
PASSAGE = 900

_FORM = 1  # format of the passages; raise it to read all PDFs again


def import_pdfs(warehouse: Warehouse, embedder: Embedder | None, profile: str, folder: Path) -> dict[str, str]:
    """Store the PDFs in a profile's `pdf/` folder as its private passages; return why some could not be, by file name.

    Call it before searching full texts for the profile. A PDF named after an arXiv id gets the title, day and
    categories of that paper if the warehouse has it; otherwise its file name is the title. Unchanged files are not read
    again. An unreadable PDF affects no other and keeps its stored passages; passages of removed files are deleted.
    Without an embedder the passages are stored and embedded by a later call. Raises InvalidInput if the folder cannot
    be listed, StoreError.
    """
    names = pdf_files(folder)
    beginning = f"pdf:{profile}/"
    stored = {origin for origin in origins_of(warehouse, "fulltext") if origin.startswith(beginning)}
    papers = _papers_of(warehouse, names)
    failures: dict[str, str] = {}
    present: dict[str, str] = {}  # hash of the content -> origin
    for name in names:
        try:
            content = read_pdf(folder / name, name=encodable(name))
            digest = sha256(content).hexdigest()
            if digest in present:  # a copy under another name
                continue
            about = _about(name, profile, papers)
            origin = f"{beginning}{encodable(name)}#{_version(digest, name, about)}"
            if origin not in stored:
                documents = _passages(pdf_text(content, name=encodable(name)), origin, about)
                replace_documents(warehouse, "fulltext", origin=origin, documents=documents)
            present[digest] = origin
        except PdfFetchFailed as fault:
            failures[name] = str(fault)
            present |= {last: last for last in stored if _name_of(last) == encodable(name)}
    remove_documents(warehouse, "fulltext", origins=stored.difference(present.values()))
    if embedder:
        embed_documents(warehouse, "fulltext", encode=embedder.encode, model=embedder.name)
    return failures


def keep_fulltext(warehouse: Warehouse, embedder: Embedder | None, paper: Paper, pages: Sequence[str]) -> bool:
    """Store the text of a freely available paper as public passages; False if it is stored already.

    `pages` are those of its newest version and replace those of older ones. Raises InvalidInput, StoreError.
    """
    origin = f"paper:{paper.paper_id}"
    about = {**_of_paper(paper), "version": paper.version, "access_level": "public", "owner": None}
    changed = replace_documents(
        warehouse, "fulltext", origin=origin, documents=_passages(pages, f"{origin}v{paper.version}", about)
    )
    if embedder:
        embed_documents(warehouse, "fulltext", encode=embedder.encode, model=embedder.name)
    return changed


def _version(digest: str, name: str, about: Mapping[str, Any]) -> str:
    """Return what changes with a PDF's content, name and metadata, and with how passages are made."""
    return sha256(f"{_FORM} {PASSAGE} {digest} {name!r} {sorted(about.items())}".encode()).hexdigest()[:16]


def _passages(pages: Sequence[str], beginning: str, about: Mapping[str, Any]) -> list[Document]:
    texts = chunks_of("\n".join(pages), size=PASSAGE, overlap=0)
    return [
        Document(doc_id=f"{beginning}/{place}", text=text, data_type="fulltext", **about)
        for place, text in enumerate(texts)
    ]


def _about(name: str, profile: str, papers: Mapping[str, Paper]) -> dict[str, Any]:
    """Return the metadata of a profile's PDF: always private to the profile."""
    private = {"access_level": "private", "owner": profile}
    arxiv_id = arxiv_id_of_file(name)
    paper = papers.get(arxiv_id[0]) if arxiv_id else None
    if arxiv_id and paper:
        return {**_of_paper(paper), "version": arxiv_id[1] or paper.version, **private}
    stem = encodable(name)[: -len(".pdf")]
    if arxiv_id:
        of_id = {"paper_id": arxiv_id[0], "version": arxiv_id[1] or 1, "url": page_of(arxiv_id[0])}
        return {**of_id, "title": stem, **private}
    return {"paper_id": f"pdf:{profile}/{stem}", "title": stem, **private}


def _of_paper(paper: Paper) -> dict[str, Any]:
    """Return the fields that a document takes from its paper, as for its abstract (`retrievable`)."""
    return {
        "paper_id": paper.paper_id,
        "title": paper.title,
        "date_int": int(f"{paper.day:%Y%m%d}") if paper.day else None,
        "primary_category": paper.primary_category,
        "categories": paper.categories,
        "topic_id": paper.primary_category.partition(".")[0] if paper.primary_category else None,
        "language": "en",
        "url": page_of(paper.paper_id),
    }


def _papers_of(warehouse: Warehouse, names: Sequence[str]) -> dict[str, Paper]:
    """Return the stored papers that PDF files are named after, by id."""
    ids = {found[0] for name in names if (found := arxiv_id_of_file(name))}
    return {paper.paper_id: paper for paper in papers_from_table(papers_by_id(warehouse, sorted(ids)))} if ids else {}


def _name_of(origin: str) -> str:
    """Return the file name in the origin `pdf:profile/name#mark`."""
    return origin.partition("/")[2].rpartition("#")[0]
