"""Which text is stored for a paper: once for all profiles, in the requested version, never a user's own PDF (M3)."""

from dataclasses import replace
from pathlib import Path

import pytest

from paper_assets.errors import PdfFetchFailed
from paper_assets.interpreting.fulltexts import import_pdfs
from paper_assets.interpreting.papers import fetch_paper
from paper_assets.stores.documents import count_documents, public_fulltext
from paper_assets.stores.paper_merging import merge_papers
from tests.interpreting.outside import NOWHERE, Outside, pdf_answer, titled
from tests.invented_pdfs import pdf
from tests.loopback import Answer
from tests.loopback_semantic_scholar import scholar_paper

ID = "2601.05001"


def two_versions(world: Outside) -> None:
    world.arxiv.papers += [titled(1, "Folding", version=1), titled(1, "Folding more", version=2)]
    world.arxiv.pdfs[f"{ID}v1"] = pdf_answer(pdf("We fold."))
    world.arxiv.pdfs[f"{ID}v2"] = pdf_answer(pdf("We fold twice."))


def test_a_fetched_text_is_stored_for_retrieval_as_public(world: Outside) -> None:
    two_versions(world)
    clients = world.clients()
    fetch_paper(clients, arxiv_id=f"{ID}v2")
    assert count_documents(clients.warehouse, "fulltext", {"access_level": "public", "paper_id": ID}) == 1


def test_the_text_is_that_of_the_version_asked_for(world: Outside) -> None:
    two_versions(world)
    clients = world.clients()
    for _ in range(2):
        assert fetch_paper(clients, arxiv_id=f"{ID}v1").content == "We fold."
        assert fetch_paper(clients, arxiv_id=f"{ID}v2").content == "We fold twice."
    kept = public_fulltext(clients.warehouse, ID)
    assert kept is not None and kept.version == 2, "an older version does not take the place of a newer one"


def test_a_long_text_is_the_same_from_the_pdf_and_from_the_warehouse(world: Outside) -> None:
    pages = [
        "\n".join(f"Line {line} of page {page} says\nsomething of its own." for line in range(25)) for page in range(5)
    ]
    world.arxiv.papers.append(titled(1, "Folding"))
    world.arxiv.pdfs[f"{ID}v1"] = pdf_answer(pdf(*pages))
    clients = world.clients()
    first, second = (fetch_paper(clients, arxiv_id=ID) for _ in range(2))
    assert (first.content_source, second.content_source) == ("pdf", "warehouse")
    assert first.content == second.content
    assert first.content is not None and first.content.split() == " ".join(pages).split()


def test_the_pdf_of_a_profile_is_not_the_text_for_another(world: Outside, tmp_path: Path) -> None:
    two_versions(world)
    clients = world.clients()
    own = tmp_path / "own"
    own.mkdir()
    (own / f"{ID}v2.pdf").write_bytes(pdf("My private notes on folding."))
    assert import_pdfs(clients.warehouse, None, "somebody", own) == {}
    assert fetch_paper(clients, arxiv_id=f"{ID}v2").content == "We fold twice."


def test_a_record_without_version_is_fetched_again_and_not_stored(world: Outside) -> None:
    world.scholar.papers.append(scholar_paper(5, arxiv=ID, title="Folding"))
    clients = world.clients(PAPER_ASSETS_ARXIV_URL=NOWHERE)
    for text in ("We fold.", "We fold twice."):
        world.arxiv.pdfs[ID] = pdf_answer(pdf(text))
        assert fetch_paper(clients, arxiv_id=ID).content == text
    assert public_fulltext(clients.warehouse, ID) is None


def test_a_stored_paper_with_a_strange_pdf_address_is_fetched_from_arxiv(world: Outside) -> None:
    two_versions(world)
    clients = world.clients()
    merge_papers(clients.warehouse, [replace(titled(1, "Folding"), pdf_url="https://evil.example/x.pdf")])
    assert fetch_paper(clients, arxiv_id=ID).content == "We fold."


def test_the_html_comes_before_the_latex_and_the_latex_before_the_pdf(world: Outside) -> None:
    two_versions(world)
    world.arxiv.papers.append(titled(2, "Only written"))
    other = "2601.05002"
    page = f"<article><h2>Folding</h2><p>By <math alttext='x^2'></math>. {'We fold it. ' * 60}</p></article>"
    source = "\\documentclass{article}\\begin{document}\\section{Folds}" + "We fold $x^2$. " * 60 + "\\end{document}"
    world.arxiv.texts[f"html/{ID}v2"] = Answer(body=page.encode())
    world.arxiv.texts[f"html/{ID}v1"] = Answer(body=b"<html>no HTML for this paper</html>")
    world.arxiv.texts[f"src/{other}v1"] = Answer(body=source.encode())
    clients = world.clients()
    html = fetch_paper(clients, arxiv_id=f"{ID}v2")
    assert html.content is not None and html.content.startswith("## Folding\n\nBy $x^2$. We fold it.")
    latex = fetch_paper(clients, arxiv_id=other)
    assert latex.content is not None and latex.content.startswith("## Folds\n\nWe fold $x^2$.")
    pdf_only = fetch_paper(clients, arxiv_id=f"{ID}v1")
    assert pdf_only.content == "We fold."
    assert [each.content_source for each in (html, latex, pdf_only)] == ["html", "latex", "pdf"]
    again = fetch_paper(clients, arxiv_id=f"{ID}v2")
    assert (again.content_source, again.content) == ("warehouse", html.content)


def test_a_paper_without_any_readable_form_names_each_that_was_tried_with_its_reason(world: Outside) -> None:
    world.arxiv.papers.append(titled(1, "Folding"))
    world.arxiv.texts[f"html/{ID}v1"] = Answer(body=b"<html>no HTML for this paper</html>")
    world.arxiv.pdfs[f"{ID}v1"] = pdf_answer(b"<!doctype html><title>Sign in</title>")
    with pytest.raises(PdfFetchFailed) as raised:
        fetch_paper(world.clients(), arxiv_id=ID)
    assert str(raised.value) == (
        f"no form of {ID} gave its text; retry without its content. "
        f"Tried HTML: the HTML of {ID} is not the HTML page of a paper; "
        "LaTeX source: 127.0.0.1 gave no LaTeX source (HTTP 404); check the id or the address; "
        "PDF: 127.0.0.1 gave a web page instead of a PDF; check the address"
    )


def test_a_server_of_pdfs_alone_is_asked_for_pdfs_alone(world: Outside) -> None:
    two_versions(world)
    world.arxiv.pdfs[f"files/{ID}v2"] = pdf_answer(pdf("We fold twice."))
    clients = world.clients(PAPER_ASSETS_ARXIV_PDF_URL=f"{world.arxiv.pdf_url}/files")
    assert fetch_paper(clients, arxiv_id=f"{ID}v2").content_source == "pdf"
    assert [request.path for request in world.arxiv.requests if request.path != "/api/query"] == [f"/pdf/files/{ID}v2"]
