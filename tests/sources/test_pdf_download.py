"""Test that PDFs come from known public hosts only, complete or not at all, and are requested once (I7, I8)."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from paper_assets.errors import InvalidInput, PdfFetchFailed
from paper_assets.interpreting.clients import open_clients
from paper_assets.settings import KNOWN_HOSTS, load_settings
from paper_assets.sources.known_hosts import (
    KnownHosts,
    PrivateMachine,
    RefusedAddress,
    _is_public,
    guarded_transport,
    known_hosts,
)
from paper_assets.sources.pdf_files import download_pdf
from paper_assets.sources.polite_http import AnswerTooLarge, ask
from tests.loopback import Answer
from tests.loopback_arxiv import LoopbackArxiv, loopback_arxiv

PDF = b"%PDF-1.7 invented %%EOF"

Polite = Callable[..., requests.Session]


def origin(arxiv: LoopbackArxiv) -> KnownHosts:
    return known_hosts([arxiv.url.removesuffix("/api/query")])


def test_a_pdf_is_put_there_whole_and_asked_for_once(polite: Polite, tmp_path: Path) -> None:
    with loopback_arxiv(script=[Answer(body=PDF), Answer(body=PDF + b"2")]) as arxiv:
        hosts, file = origin(arxiv), tmp_path / "pdfs" / "one.pdf"
        session = polite(transport=guarded_transport(hosts))
        for again in (False, False, True):
            download_pdf(arxiv.pdf_url, to=file, session=session, hosts=hosts, again=again)
        assert len(arxiv.requests) == 2
    assert file.read_bytes() == PDF + b"2"
    assert [entry.name for entry in file.parent.iterdir()] == ["one.pdf"]


def test_a_file_that_is_not_a_pdf_is_refused(polite: Polite, tmp_path: Path) -> None:
    file = tmp_path / "one.pdf"
    file.write_bytes(b"half of something")
    with loopback_arxiv(script=[Answer(body=PDF)]) as arxiv:
        hosts = origin(arxiv)
        download_pdf(arxiv.pdf_url, to=file, session=polite(), hosts=hosts)
    assert file.read_bytes() == PDF


@pytest.mark.parametrize("answer", [Answer(body=PDF, missing=2_000_000), Answer(body=PDF + bytes(1_100_000))])
def test_one_that_is_too_large_is_asked_for_once_only(polite: Polite, tmp_path: Path, answer: Answer) -> None:
    with loopback_arxiv(script=[answer] * 4) as arxiv:
        hosts = origin(arxiv)
        with pytest.raises(PdfFetchFailed, match="more than 1 MB"):
            download_pdf(arxiv.pdf_url, to=tmp_path / "x.pdf", session=polite(most_bytes=1_000_000), hosts=hosts)
        assert len(arxiv.requests) == 1
        with pytest.raises(AnswerTooLarge):
            ask(polite(most_bytes=1_000_000), "GET", arxiv.url)
        assert len(arxiv.requests) == 2
    assert list(tmp_path.glob("*.pdf")) == []


def test_every_hop_of_a_redirect_is_checked_before_it_is_asked(polite: Polite, tmp_path: Path) -> None:
    with loopback_arxiv(script=[Answer(body=PDF)] * 9) as unknown:
        hops = [
            Answer(status=302, headers={"Location": "/pdf/b"}),
            Answer(status=302, headers={"Location": unknown.pdf_url}),
        ]
        with loopback_arxiv(script=hops) as arxiv, pytest.raises(PdfFetchFailed, match="not followed"):
            download_pdf(arxiv.pdf_url, to=tmp_path / "x.pdf", session=polite(), hosts=origin(arxiv))
        assert [request.path for request in arxiv.requests] == ["/pdf", "/pdf/b"]
        assert unknown.requests == []


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_host_name_that_resolves_to_a_private_machine_gets_no_request_even_if_it_was_public_before(
    polite: Polite, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    heard: list[bytes] = []
    answers, resolve = iter(["93.184.215.14"]), socket.getaddrinfo  # DNS rebinding: public once, then this machine

    def rebinding(host: str, port: int, *more: Any, **named: Any) -> Any:
        return resolve(next(answers, "127.0.0.1") if host == "papers.example" else host, port, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)
    assert socket.getaddrinfo("papers.example", 443)[0][4][0] == "93.184.215.14"

    def listen(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection:
            heard.append(connection.recv(1000))

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=listen, args=(server,), daemon=True)
        thread.start()
        session = polite(transport=guarded_transport(known_hosts(["papers.example"])))
        with pytest.raises(PrivateMachine, match=r"papers\.example leads to a machine that is not public"):
            ask(session, "GET", f"{scheme}://papers.example:{server.getsockname()[1]}/x.pdf")
        thread.join(timeout=10)
    assert heard == [b""]


def test_by_default_only_https_and_only_the_listed() -> None:
    hosts = known_hosts(KNOWN_HOSTS)
    assert hosts.check(" https://arxiv.org/pdf/2601.00001 ") == "https://arxiv.org/pdf/2601.00001"
    assert hosts.check("HTTPS://ArXiv.org:443/pdf/x")
    assert hosts.origins == frozenset()
    for url in (
        "http://arxiv.org/x",
        "https://arxiv.org.evil.example/x",
        "https://evil.example/?arxiv.org",
        "//arxiv.org",
    ):
        with pytest.raises(RefusedAddress):
            hosts.check(url)


def test_the_default_address_of_arxiv_s_pdfs_may_be_no_private_machine(tmp_path: Path) -> None:
    hosts = open_clients(load_settings({}, tmp_path), {}).hosts
    assert hosts.check("https://arxiv.org/pdf/2601.00001")
    assert hosts.origins == frozenset() and not hosts.may_be_private("arxiv.org", 443)


@pytest.mark.parametrize("name", ["https://mirror.example.org/pdf", "https://Mirror.example.org.:443"])
def test_an_https_address_with_credentials_is_reduced_to_the_host_name(name: str) -> None:
    assert known_hosts([name]) == known_hosts(["mirror.example.org"])
    assert known_hosts(["https://10.0.0.1"]).may_be_private("10.0.0.1", 443)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("10.0.0.1", False),
        ("224.0.0.1", False),
        ("2606:4700::1111", True),
        ("::1", False),
        ("::", False),
        ("::127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:8.8.8.8", True),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::808:808", True),
        ("64:ff9b:1::7f00:1", False),
        ("2002:7f00:1::", False),
        ("2002:a00:1::1", False),
        ("2002:808:808::", True),
        ("fec0::1", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
    ],
)
def test_a_private_machine_is_known_in_whatever_its_address_is_wrapped(address: str, public: bool) -> None:
    assert _is_public(address) is public


def test_an_origin_of_the_operator_is_that_origin_and_no_other() -> None:
    hosts = known_hosts(["http://127.0.0.1:8080", "papers.example.org"])
    assert hosts.check("http://127.0.0.1:8080/x.pdf") and hosts.check("https://papers.example.org/x.pdf")
    for url in (
        "http://127.0.0.1:8081/x",
        "https://127.0.0.1:8080/x",
        "http://papers.example.org/x",
        "https://arxiv.org/x",
    ):
        with pytest.raises(RefusedAddress):
            hosts.check(url)


@pytest.mark.parametrize(
    "entry", ["", "arxiv.org/pdf", "ftp://arxiv.org", "http://", "user@arxiv.org", "*", "https://a:b@c"]
)
def test_an_invalid_host_in_the_setting_is_named(entry: str) -> None:
    if entry == "*":
        with pytest.raises(RefusedAddress):  # a star is an ordinary name that no host has
            known_hosts([entry]).check("https://arxiv.org/x")
        return
    with pytest.raises(InvalidInput):
        known_hosts([entry])
