"""One paper by any of its names, with its text or with the reason why there is none (I2, I4, I7, I8)."""

import os
import re
import socket
import threading
from dataclasses import replace
from typing import Any

import pytest

from paper_assets.errors import (
    IncompleteFeed,
    InvalidArxivId,
    InvalidInput,
    InvalidPaper,
    NetworkError,
    PaperNotFound,
    PdfFetchFailed,
    RateLimited,
    StoreUnwritable,
)
from paper_assets.interpreting.analysis import interpret_paper
from paper_assets.interpreting.papers import fetch_paper, fetched_from_mapping, fetched_to_mapping
from paper_assets.stores import warehouse as turns
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.scholar_records import ScholarRecord, keep_records
from paper_assets.stores.warehouse import Warehouse
from tests.interpreting.outside import NOWHERE, Outside, pdf_answer, titled
from tests.invented_pdfs import pdf, scanned_pdf
from tests.loopback import Answer
from tests.loopback_llm import loopback_llm
from tests.loopback_semantic_scholar import scholar_paper

ID = "2601.05001"
PAGES = ("Folding caches\nWe fold the cache once.", "It was folded twice in the end.")
SHORT = {"PAPER_ASSETS_REQUEST_TIMEOUT": "0.2"}  # where nothing is answered; a busy machine may take longer to answer


@pytest.fixture
def one(world: Outside) -> Outside:
    """A world with one paper and its PDF."""
    world.arxiv.papers.append(titled(1, "Folding Caches", version=2))
    world.arxiv.pdfs[f"{ID}v2"] = pdf_answer(pdf(*PAGES))
    return world


def test_a_paper_by_its_id_has_the_text_of_its_pdf(one: Outside) -> None:
    fetched = fetch_paper(one.clients(), arxiv_id=f"arXiv:{ID}")
    assert (fetched.paper.title, fetched.paper.version) == ("Folding Caches", 2)
    assert fetched.content == " ".join(PAGES).replace("\n", " ")
    assert fetched.content_source == "pdf"
    assert fetched.url == f"https://arxiv.org/abs/{ID}"
    assert fetched.warnings == ()


def test_without_the_pdf_only_the_api_is_asked(one: Outside) -> None:
    fetched = fetch_paper(one.clients(), arxiv_id=ID, include_pdf_content=False)
    assert fetched.content is None
    assert one.asked == (1, 0)


def test_what_the_warehouse_knows_is_not_asked_and_a_pdf_is_fetched_once(one: Outside) -> None:
    clients = one.clients()
    merge_papers(clients.warehouse, one.arxiv.papers)
    keep_records(clients.warehouse, [ScholarRecord(paper_id=ID, citation_count=12)])
    first = fetch_paper(clients, arxiv_id=ID)
    second = fetch_paper(clients, arxiv_id=ID)
    assert (first.content_source, second.content_source) == ("pdf", "warehouse")
    assert second == replace(first, content_source="warehouse")
    assert first.citation_count == 12
    assert [request.path for request in one.arxiv.requests] == [f"/{form}/{ID}v2" for form in ("html", "src", "pdf")]


def test_another_version_than_the_stored_one_is_asked_for(one: Outside) -> None:
    clients = one.clients()
    merge_papers(clients.warehouse, [titled(1, "Folding", version=1)])
    assert fetch_paper(clients, arxiv_id=f"{ID}v2", include_pdf_content=False).paper.version == 2
    assert fetch_paper(clients, arxiv_id=f"{ID}v1", include_pdf_content=False).paper.version == 1
    assert one.asked == (1, 0)


@pytest.mark.parametrize(
    "url",
    [
        f"https://arxiv.org/abs/{ID}",
        f"https://www.arxiv.org/abs/{ID}v2?context=cs",
        f"https://arxiv.org/pdf/{ID}.pdf#page=2",
        f"https://export.arxiv.org/html/{ID}v2/",
        f"http://arxiv.org/abs/{ID}",
        f"https://doi.org/10.48550/arXiv.{ID}",
        f"http://dx.doi.org/10.48550/ARXIV.{ID}",
        f"https://huggingface.co/papers/{ID}",
        f"https://www.alphaxiv.org/overview/{ID}v2",
        f"https://ar5iv.labs.arxiv.org/html/{ID}",
    ],
)
def test_an_address_that_holds_an_arxiv_id_is_its_paper_and_is_not_asked(one: Outside, url: str) -> None:
    assert fetch_paper(one.clients(), url=url, include_pdf_content=False).paper.paper_id == ID
    assert one.asked == (1, 0)


def test_the_first_identifier_in_the_order_of_i2_counts(one: Outside) -> None:
    one.arxiv.papers.append(titled(2, "Another"))
    clients = one.clients()
    names = {"url": f"https://arxiv.org/abs/{ID}", "pdf_url": "https://arxiv.org/pdf/2601.05002", "title": "Another"}
    fetched = fetch_paper(clients, arxiv_id="2601.05002", **names, include_pdf_content=False)
    assert fetched.paper.title == "Another"
    assert fetch_paper(clients, **names, include_pdf_content=False).paper.title == "Folding Caches"
    assert fetch_paper(clients, pdf_url=names["pdf_url"], title="x", include_pdf_content=False).paper.title == "Another"


def test_a_page_of_semantic_scholar_is_the_paper_at_arxiv_where_there_is_one(one: Outside) -> None:
    one.scholar.papers += [scholar_paper(5, arxiv=ID, title="Folding Caches"), scholar_paper(6, title="In print only")]
    fetched = fetch_paper(one.clients(), url=f"https://www.semanticscholar.org/paper/Folding-Caches/{5:040x}")
    assert (fetched.paper.paper_id, fetched.citation_count, fetched.paper.version) == (ID, 5, 2)
    page = f"https://www.semanticscholar.org/paper/{6:040x}"
    fetched = fetch_paper(one.clients(), url=page, include_pdf_content=False)
    assert (fetched.paper.paper_id, fetched.url) == (f"S2:{6:040x}", page)
    with pytest.raises(PdfFetchFailed, match="no source says where"):
        fetch_paper(one.clients(), url=page)
    with pytest.raises(PaperNotFound):
        fetch_paper(one.clients(), url=f"https://www.semanticscholar.org/paper/{7:040x}")


def test_a_pdf_at_an_unknown_host_is_not_fetched(one: Outside) -> None:
    one.scholar.papers.append(scholar_paper(6, openAccessPdf={"url": "http://papers.example.org/6.pdf"}))
    with pytest.raises(PdfFetchFailed, match="https"):
        fetch_paper(one.clients(), url=f"https://www.semanticscholar.org/paper/{6:040x}")


@pytest.mark.parametrize("address", ["https://[papers.example.org/6.pdf", "https://papers.example.org:x/6.pdf", "6"])
def test_an_invalid_url_of_a_record_is_not_a_pdf(one: Outside, address: str) -> None:
    one.scholar.papers.append(scholar_paper(6, openAccessPdf={"url": address}, abstract="We fold."))
    page = f"https://www.semanticscholar.org/paper/{6:040x}"
    with pytest.raises(PdfFetchFailed, match="URL"):
        fetch_paper(one.clients(), url=page)
    with loopback_llm() as server:  # without a model the text is not fetched
        found = interpret_paper(one.clients(**server.environ("ollama")), {"url": page})
    assert any(line.startswith("only the abstract was read: ") for line in found.paper.warnings)


def test_semantic_scholar_is_still_asked_where_arxiv_takes_its_time(
    one: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.scholar.papers.append(scholar_paper(5, arxiv=ID, title="Folding Caches"))
    one.arxiv.script = [Answer(hang=True)] * 4
    clients = one.clients(deadline=60)
    left = [clients.access(lambda seconds=seconds: seconds, others_follow=True).left() for seconds in (10.0, 100.0)]
    assert left == [6.0, 25.0]
    monkeypatch.setattr("paper_assets.interpreting.clients._MOST_FOR_THE_FIRST", 0.3)
    fetched = fetch_paper(clients, arxiv_id=ID, include_pdf_content=False)
    assert (fetched.paper.paper_id, fetched.citation_count) == (ID, 5)
    assert fetched.warnings[0].startswith("arXiv: ")


def test_a_key_that_semantic_scholar_refuses_is_a_fault_of_the_key(one: Outside) -> None:
    one.scholar.script = [Answer(status=403)] * 4
    clients = one.clients(SEMANTIC_SCHOLAR_API_KEY="s2-hidden-key")
    with pytest.raises(InvalidInput, match="SEMANTIC_SCHOLAR_API_KEY") as raised:
        fetch_paper(clients, url=f"https://www.semanticscholar.org/paper/{6:040x}")
    assert "hidden" not in str(raised.value)
    with pytest.raises(InvalidInput, match="SEMANTIC_SCHOLAR_API_KEY"):
        fetch_paper(clients, title="Known to nobody else")
    assert fetch_paper(clients, title="Folding Caches").paper.paper_id == ID


def test_arxiv_out_of_reach_leaves_what_semantic_scholar_knows(one: Outside) -> None:
    one.scholar.papers.append(scholar_paper(5, arxiv=ID, title="Folding Caches"))
    fetched = fetch_paper(one.clients(PAPER_ASSETS_ARXIV_URL=NOWHERE), arxiv_id=ID, include_pdf_content=False)
    assert (fetched.paper.paper_id, fetched.paper.categories) == (ID, ())
    assert fetched.warnings[0].startswith("arXiv: ")


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=429), RateLimited),
        (Answer(status=406), RateLimited),
        (Answer(body=b"Rate exceeded."), RateLimited),
        (Answer(status=404), NetworkError),
        (Answer(status=502), NetworkError),
        (Answer(body=b"<html>"), IncompleteFeed),
        (Answer(hang=True), NetworkError),
    ],
)
def test_arxiv_failing_alone_is_its_own_error(one: Outside, answer: Answer, error: type[Exception]) -> None:
    one.arxiv.script = [answer] * 4
    with pytest.raises(error):
        fetch_paper(one.clients(**(SHORT if answer.hang else {})), arxiv_id=ID)


def test_an_unknown_id_is_not_found_and_named(one: Outside) -> None:
    with pytest.raises(PaperNotFound, match="2601\\.99999v3"):
        fetch_paper(one.clients(), arxiv_id="2601.99999v3")


@pytest.mark.parametrize("text", ["2501.1", "../x", "", "9" * 10_000, "2501.12345v0", "hep-th/99", "2501.12345\nx"])
def test_a_malformed_id_sends_no_request(one: Outside, text: str) -> None:
    with pytest.raises(InvalidArxivId) as raised:
        fetch_paper(one.clients(), arxiv_id=text)
    assert len(str(raised.value)) < 250
    assert one.asked == (0, 0)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "http://example.com/abs/2601.05001",
        "http://arxiv.org:8080/abs/2601.05001",
        "https://huggingface.co/datasets/2601.05001",
        "https://doi.org/10.1000/2601.05001",
        "ftp://arxiv.org/abs/2601.05001",
        "https://arxiv.org.example.com/abs/2601.05001",
        "https://example.com/paper.pdf",
        "https://127.0.0.1/paper.pdf",
        "https://[::1]/paper.pdf",
        "https://169.254.169.254/latest/meta-data",
        "https://arxiv.org:8443/abs/2601.05001",
        "https://user:pw@arxiv.org/abs/2601.05001",
        "https://arxiv.org\\@example.com/abs/2601.05001",
        "https://arxiv.org/abs/2601.05001 x",
        "https://arxiv.org/" + "a" * 3000,
        "https://[arxiv.org/abs/1",
        "https://аrxiv.org/abs/2601.05001",
        "arxiv.org/abs/2601.05001",
        "",
    ],
)
@pytest.mark.parametrize("name", ["url", "pdf_url"])
def test_an_address_that_may_not_be_asked_is_not(one: Outside, url: str, name: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        fetch_paper(one.clients(), **{name: url})
    assert len(str(raised.value)) < 400 and "\n" not in str(raised.value)
    assert "pw" not in str(raised.value)
    assert one.asked == (0, 0)


@pytest.mark.parametrize("url", ["https://arxiv.org/list/cs.CL/new", "https://www.semanticscholar.org/author/1"])
def test_a_url_that_is_not_of_a_paper_is_refused_with_what_is_expected(one: Outside, url: str) -> None:
    with pytest.raises(InvalidInput, match=r"https://arxiv\.org/abs/"):
        fetch_paper(one.clients(), url=url)


def test_no_identifier_at_all_is_refused(one: Outside) -> None:
    with pytest.raises(InvalidInput, match="arxiv_id, url, pdf_url or title"):
        fetch_paper(one.clients())


def test_a_title_is_found_in_the_warehouse_then_at_arxiv_then_at_semantic_scholar(one: Outside) -> None:
    clients = one.clients()
    merge_papers(clients.warehouse, [titled(3, "Über Flüsse: Ein Beispiel")])
    one.scholar.papers.append(scholar_paper(6, title="In print only"))
    fetch = {"include_pdf_content": False}
    assert fetch_paper(clients, title="über flüsse - ein beispiel", **fetch).paper.paper_id == "2601.05003"
    assert one.asked == (0, 0)
    assert fetch_paper(clients, title="  folding  caches. ", **fetch).paper.paper_id == ID
    assert fetch_paper(clients, title="In Print, only", **fetch).paper.paper_id == f"S2:{6:040x}"


def test_a_part_of_a_title_finds_the_only_paper_that_has_its_words(one: Outside) -> None:
    clients, fetch = one.clients(), {"include_pdf_content": False}
    assert fetch_paper(clients, title="caches", **fetch).paper.paper_id == ID
    merge_papers(clients.warehouse, [titled(3, "Über Flüsse: Ein Beispiel"), titled(4, "Über Flüsse und Caches")])
    assert fetch_paper(clients, title="ein Beispiel, uber", **fetch).paper.paper_id == "2601.05003"
    with pytest.raises(
        PaperNotFound, match=r"2 titles have its words, such as .*'Folding Caches' \(2601\.05001\)"
    ) as raised:
        fetch_paper(clients, title="Caches")
    assert {each["arxiv_id"] for each in raised.value.details["candidates"]} == {ID, "2601.05004"}
    with pytest.raises(PaperNotFound, match="search for its words"):
        fetch_paper(clients, title="Fold")  # a part of a word is another word
    with pytest.raises(InvalidInput, match="title"):
        fetch_paper(clients, title=" ")


def test_a_stored_paper_is_found_by_a_part_of_its_title_while_no_source_answers(one: Outside) -> None:
    clients = one.clients()
    merge_papers(clients.warehouse, [titled(3, "Of Rivers and Bridges")])
    one.arxiv.script = [Answer(status=429)] * 4
    one.scholar.script = [Answer(status=500)] * 4
    found = fetch_paper(clients, title="rivers, bridges", include_pdf_content=False)
    assert found.paper.paper_id == "2601.05003"
    assert "arXiv" in found.warnings[0]


def test_a_title_that_no_source_could_be_asked_about_is_not_reported_as_not_found(one: Outside) -> None:
    one.arxiv.script = [Answer(status=429)] * 4
    one.scholar.script = [Answer(status=500)] * 4
    with pytest.raises(RateLimited):
        fetch_paper(one.clients(), title="Folding Caches")


def bad_pdfs() -> dict[str, tuple[Answer, str]]:
    whole = pdf(*PAGES)
    return {
        "missing": (Answer(status=404), "no PDF \\(HTTP 404\\)"),
        "forbidden": (Answer(status=403), "no PDF \\(HTTP 403\\)"),
        "a web page": (pdf_answer(b"<!doctype html><title>Sign in</title>"), "web page"),
        "empty": (pdf_answer(b""), "nothing instead of a PDF"),
        "encrypted": (pdf_answer(pdf(*PAGES, password="x")), "encrypted"),
        "cut off": (pdf_answer(whole[: len(whole) // 2]), "cut off|damaged"),
        "image only": (pdf_answer(scanned_pdf()), "no text layer"),
        "200 MB announced": (Answer(missing=200_000_000), "more than 50 MB"),
        "redirect to an unknown host": (Answer(status=302, headers={"Location": "https://example.com/x.pdf"}), "known"),
        "redirect to a private address": (Answer(status=302, headers={"Location": "https://10.0.0.1/x.pdf"}), "known"),
        "redirect to http": (Answer(status=301, headers={"Location": "http://arxiv.org/pdf/x"}), "https"),
        "redirect to a file": (Answer(status=301, headers={"Location": "file:///etc/passwd"}), "file"),
        "a circle": (Answer(status=302, headers={"Location": f"/pdf/{ID}v2"}), "circles"),
    }


@pytest.mark.parametrize("name", bad_pdfs())
def test_a_pdf_that_gives_no_text_is_named_and_leaves_nothing(one: Outside, name: str) -> None:
    answer, reason = bad_pdfs()[name]
    one.arxiv.pdfs[f"{ID}v2"] = answer
    with pytest.raises(PdfFetchFailed, match=reason) as raised:
        fetch_paper(one.clients(), arxiv_id=ID)
    assert raised.value.code == "PDF_FETCH_FAILED"
    assert "\n" not in str(raised.value)
    folder = one.folder / "data" / "pdfs"
    assert not folder.exists() or list(folder.iterdir()) == []


def test_a_pdf_that_came_cut_off_is_asked_for_again(one: Outside) -> None:
    whole = one.arxiv.pdfs[f"{ID}v2"]
    one.arxiv.pdfs[f"{ID}v2"], _ = bad_pdfs()["cut off"]
    with pytest.raises(PdfFetchFailed):
        fetch_paper(one.clients(), arxiv_id=ID)
    one.arxiv.pdfs[f"{ID}v2"] = whole
    assert fetch_paper(one.clients(), arxiv_id=ID).content


def test_a_pdf_of_unannounced_size_is_dropped_at_the_limit(one: Outside) -> None:
    server = socket.create_server(("127.0.0.1", 0))
    sent = 0

    def serve() -> None:
        nonlocal sent
        connection, _ = server.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\nConnection: close\r\n\r\n%PDF-1.7\n"
            )
            try:
                while sent < 50_000_000:
                    connection.sendall(bytes(65_536))
                    sent += 65_536
            except OSError:
                return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    clients = one.clients(
        PAPER_ASSETS_PDF_MEGABYTES="0.2", PAPER_ASSETS_ARXIV_PDF_URL=f"http://127.0.0.1:{server.getsockname()[1]}"
    )
    with pytest.raises(PdfFetchFailed, match=r"more than 0\.2 MB"):
        fetch_paper(clients, arxiv_id=ID)
    thread.join(timeout=20)
    server.close()
    assert 0 < sent < 50_000_000


@pytest.mark.parametrize("answer", [Answer(status=429), Answer(status=503), Answer(body=b"Rate exceeded.")])
def test_being_asked_to_slow_down_does_not_make_the_pdf_bad(one: Outside, answer: Answer) -> None:
    one.arxiv.pdfs[f"{ID}v2"] = answer
    with pytest.raises(RateLimited):
        fetch_paper(one.clients(), arxiv_id=ID)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(hang=True),
        Answer(body=b"%PDF-1.7", missing=1000),
        Answer(status=307, headers={"Location": "https://[bad"}),
    ],
)
def test_a_pdf_that_does_not_come_whole_is_a_matter_of_the_network(one: Outside, answer: Answer) -> None:
    one.arxiv.pdfs[f"{ID}v2"] = answer
    clients = one.clients(**(SHORT if answer.hang else {}))
    merge_papers(clients.warehouse, one.arxiv.papers)  # so that only its texts are asked for
    with pytest.raises(NetworkError):
        fetch_paper(clients, arxiv_id=ID)


def test_a_redirect_within_the_known_is_followed(one: Outside) -> None:
    one.arxiv.pdfs[f"{ID}v2"] = Answer(status=301, headers={"Location": "/pdf/elsewhere"})
    one.arxiv.pdfs["elsewhere"] = pdf_answer(pdf(*PAGES))
    assert fetch_paper(one.clients(), arxiv_id=ID).content


def test_a_pdf_at_a_known_host_is_read_without_a_record(one: Outside) -> None:
    one.arxiv.pdfs["any/where"] = pdf_answer(pdf(*PAGES))
    fetched = fetch_paper(one.clients(), pdf_url=f"{one.arxiv.pdf_url}/any/where")
    assert (fetched.paper.title, fetched.content_source) == ("Folding caches", "pdf")
    assert fetched.warnings


def test_a_full_disk_leaves_no_half_pdf(one: Outside) -> None:
    clients = one.clients()
    merge_papers(clients.warehouse, one.arxiv.papers)
    (one.folder / "data" / "pdfs").write_text("in the way")
    with pytest.raises(StoreUnwritable, match="pdfs"):
        fetch_paper(clients, arxiv_id=ID)


def test_a_busy_warehouse_is_a_warning_for_a_fetch(one: Outside) -> None:
    clients = one.clients()
    merge_papers(clients.warehouse, [])
    busy = replace(clients, warehouse=Warehouse(clients.warehouse.path, deadline=0))
    with clients.warehouse.writing():
        fetched = fetch_paper(busy, arxiv_id=ID, include_pdf_content=False)
    assert fetched.paper.title == "Folding Caches"
    assert f"pid {os.getpid()}" in fetched.warnings[0]


def test_a_busy_warehouse_is_waited_for_once_in_a_call(one: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []

    class Held(threading.local):
        """The turn of a warehouse that another thread has and does not give back."""

        def acquire(self, *, timeout: float) -> bool:
            waited.append(timeout)
            return False

    clients = one.clients(PAPER_ASSETS_STORE_DEADLINE="7", OPENAI_API_KEY="sk-1", OPENAI_BASE_URL=NOWHERE)
    monkeypatch.setitem(turns._TURNS, clients.warehouse.path, Held())
    fetched = fetch_paper(clients, arxiv_id=ID)
    assert fetched.content and len(fetched.warnings) == 2
    assert all(f"pid {os.getpid()}); waited 7 s" in line for line in fetched.warnings)
    assert len(waited) > 2 and (waited[0], set(waited[1:])) == (7, {0})
    waited.clear()
    found = interpret_paper(clients, {"arxiv_id": ID})
    assert found.paper.content == fetched.content and found.analysis_error is not None
    assert found.analysis_error["code"] == "RATE_LIMIT"
    assert len(waited) > 3 and (waited[0], set(waited[1:])) == (7, {0})


def test_a_fetched_paper_survives_a_round_trip_through_json(one: Outside) -> None:
    fetched = fetch_paper(one.clients(), arxiv_id=ID)
    mapping = fetched_to_mapping(fetched)
    assert mapping["paper_id"] == ID and mapping["content"] == fetched.content
    back = fetched_from_mapping(mapping)
    assert (back.paper, back.content, back.url) == (fetched.paper, fetched.content, fetched.url)


@pytest.mark.parametrize(
    "record",
    [
        [],
        "x",
        {},
        {"title": " "},
        {"title": "x", "content": 3},
        {"title": "x", "authors": "A"},
        {"title": "x", "content": "The first half", "content_is_part": True},
    ],
)
def test_a_paper_given_as_json_must_be_one(record: Any) -> None:
    with pytest.raises(InvalidPaper):
        fetched_from_mapping(record)


def test_progress_only_grows_and_can_stop_the_call(one: Outside) -> None:
    reported: list[tuple[int, int]] = []
    fetch_paper(replace(one.clients(), progress=lambda done, total, what: reported.append((done, total))), arxiv_id=ID)
    assert reported == sorted(reported) and reported[-1] == (2, 2)

    class Enough(Exception):
        pass

    def stop(done: int, total: int, what: str) -> None:
        raise Enough

    asked = one.asked
    with pytest.raises(Enough):
        fetch_paper(replace(one.clients(), progress=stop), arxiv_id=ID)
    assert one.asked == asked


def test_no_key_is_in_any_repr_or_log(one: Outside, caplog: pytest.LogCaptureFixture) -> None:
    one.scholar.papers.append(scholar_paper(5, arxiv=ID))
    clients = one.clients(SEMANTIC_SCHOLAR_API_KEY="s2-hidden-key", OPENAI_API_KEY="sk-hidden-key")
    with caplog.at_level(0):
        fetch_paper(clients, url=f"https://www.semanticscholar.org/paper/{5:040x}")
    assert one.scholar.requests[0].headers["x-api-key"] == "s2-hidden-key"
    assert caplog.records
    assert not re.search("hidden", caplog.text + repr(clients))
