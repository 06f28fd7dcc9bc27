"""Test polite requests (S2) over real sockets and, where they matter, real processes; waits use a fake clock."""

import email.utils
import gzip
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from itertools import pairwise

import pytest
from requests.adapters import HTTPAdapter

from paper_assets.errors import InvalidInput, NetworkError, RateLimited
from paper_assets.sources.polite_http import RequestGate, ask, polite_session
from tests.loopback import Answer, Request, refusing_port, serving
from tests.loopback_arxiv import loopback_arxiv
from tests.sources.conftest import FakeTime
from tests.waiting import until

OK = Answer(body=b"fine")


def test_requests_are_an_interval_apart_and_name_us(polite, fake_time):
    with loopback_arxiv(script=[OK, OK, OK]) as arxiv:
        session = polite(contact="someone@example.org")
        for _ in range(3):
            assert ask(session, "GET", arxiv.url).content == b"fine"
    assert fake_time.sleeps == pytest.approx([3.0, 3.0])
    assert arxiv.requests[0].headers["user-agent"].startswith("paper_assets/")
    assert arxiv.requests[0].headers["user-agent"].endswith("(+someone@example.org)")


def test_two_sessions_share_the_gate(polite, fake_time):
    with loopback_arxiv(script=[OK, OK]) as arxiv:
        ask(polite(), "GET", arxiv.url)
        ask(polite(), "GET", arxiv.url)
    assert fake_time.sleeps == pytest.approx([3.0])


def test_waiting_for_our_own_queue_is_not_reported_as_a_request_of_the_source(polite, fake_time):
    with loopback_arxiv(script=[OK]) as arxiv:
        ask(polite(), "GET", arxiv.url)
        with pytest.raises(RateLimited, match=r"our own queue for .* is too long: .* 3 s apart"):
            ask(polite(deadline=1.0), "GET", arxiv.url)
    assert len(arxiv.requests) == 1


def test_a_redirect_waits_its_turn_too(polite, fake_time):
    with loopback_arxiv(script=[Answer(status=302, headers={"Location": "/elsewhere"}), OK]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine"
    assert fake_time.sleeps == pytest.approx([3.0])
    assert arxiv.requests[1].path == "/elsewhere"


def test_endless_redirects_end(polite):
    with (
        loopback_arxiv(script=[Answer(status=302, headers={"Location": "/again"})] * 20) as arxiv,
        pytest.raises(NetworkError, match="circles"),
    ):
        ask(polite(), "GET", arxiv.url)
    assert len(arxiv.requests) == 6


@pytest.mark.parametrize(
    "refusal",
    [
        Answer(status=406),
        Answer(status=429),
        Answer(status=503),
        Answer(body=b"Rate exceeded."),
        Answer(status=403, body=b"Rate exceeded.\n"),
    ],
)
def test_a_refusal_is_tried_again_and_at_last_is_rate_limited(polite, fake_time, refusal):
    with loopback_arxiv(script=[refusal, OK]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine"
    assert fake_time.sleeps == pytest.approx([6.0])
    with loopback_arxiv(script=[refusal] * 10) as arxiv, pytest.raises(RateLimited, match="slow down"):
        ask(polite(), "GET", arxiv.url)
    assert len(arxiv.requests) == 4


def test_an_answer_that_only_mentions_the_words_is_an_answer(polite):
    body = b"Rate exceeded. " * 50
    with loopback_arxiv(script=[Answer(body=body)]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == body


def test_retry_after_in_seconds_is_obeyed(polite, fake_time):
    with loopback_arxiv(script=[Answer(status=429, headers={"Retry-After": "40"}), OK]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine"
    assert fake_time.sleeps == pytest.approx([40.0])


def test_retry_after_as_a_date_is_obeyed(polite, fake_time):
    date = email.utils.formatdate(fake_time.now + 50, usegmt=True)
    with loopback_arxiv(script=[Answer(status=503, headers={"Retry-After": date}), OK]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine"
    assert fake_time.sleeps == pytest.approx([50.0])


@pytest.mark.parametrize("text", ["soon", "-5", "", "1e9", "²", "Mon, 99 Jan 2026"])
def test_an_unreadable_retry_after_is_ignored(polite, fake_time, text):
    with loopback_arxiv(script=[Answer(status=429, headers={"Retry-After": text.encode().decode("latin-1")}), OK]) as a:
        assert ask(polite(), "GET", a.url).content == b"fine"
    assert fake_time.sleeps == pytest.approx([6.0])


def test_a_long_retry_after_says_when_to_come_back_and_holds_for_all_processes(polite, fake_time):
    fake_time.now = 1_800_000_000.0  # 2027-01-15 08:00:00 UTC
    with loopback_arxiv(script=[Answer(status=429, headers={"Retry-After": "3600"}), OK]) as arxiv:
        with pytest.raises(RateLimited, match="2027-01-15 09:00:00 UTC"):
            ask(polite(), "GET", arxiv.url)
        with pytest.raises(RateLimited, match="2027-01-15 09:00:00 UTC"):
            ask(polite(), "GET", arxiv.url)
        assert len(arxiv.requests) == 1 and fake_time.sleeps == []
        fake_time.now += 3600
        assert ask(polite(), "GET", arxiv.url).content == b"fine"


def test_a_server_error_is_tried_again_and_at_last_is_a_network_error(polite):
    with loopback_arxiv(script=[Answer(status=500), Answer(status=502), OK]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine"
    with loopback_arxiv(script=[Answer(status=500)] * 9) as arxiv, pytest.raises(NetworkError, match="HTTP 500"):
        ask(polite(), "GET", arxiv.url)
    assert len(arxiv.requests) == 4


def test_an_answer_cut_off_is_asked_for_again(polite):
    with loopback_arxiv(script=[Answer(body=b"half", missing=4), OK]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine"


def test_a_silent_server_is_given_up(polite):
    with loopback_arxiv(script=[Answer(hang=True)] * 4) as arxiv, pytest.raises(NetworkError, match=r"within 0.1 s"):
        ask(polite(timeout=0.1), "GET", arxiv.url)


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nX-Slow: "])
def test_a_server_that_dribbles_is_given_up(polite, head):
    """Each byte arrives in time, the whole answer never does."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        stop = threading.Event()

        def dribble() -> None:
            with suppress(OSError):  # the client hangs up, at last the server closes
                while True:
                    client, _ = server.accept()
                    with client, suppress(ConnectionError):
                        client.recv(65_536)
                        client.sendall(head)
                        while not stop.wait(0.02):
                            client.sendall(b"x")

        thread = threading.Thread(target=dribble, daemon=True)
        thread.start()
        with pytest.raises(NetworkError, match="no whole answer"):
            ask(polite(timeout=0.2), "GET", f"http://127.0.0.1:{server.getsockname()[1]}/")
        stop.set()
        server.shutdown(socket.SHUT_RDWR)
    thread.join(10)


def test_a_huge_answer_is_not_swallowed(polite):
    with (
        loopback_arxiv(script=[Answer(body=b"x" * 3_000_000)] * 4) as arxiv,
        pytest.raises(NetworkError, match="more than 1 MB"),
    ):
        ask(polite(most_bytes=1_000_000), "GET", arxiv.url)


def test_a_packed_answer_is_unpacked_up_to_the_limit(polite):
    packed = {"Content-Encoding": "gzip"}
    with loopback_arxiv(script=[Answer(body=gzip.compress(b"fine" * 100_000), headers=packed)]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine" * 100_000
    bomb = Answer(body=gzip.compress(bytes(20_000_000)), headers=packed)
    with loopback_arxiv(script=[bomb] * 4) as arxiv, pytest.raises(NetworkError, match="more than 1 MB"):
        ask(polite(most_bytes=1_000_000), "GET", arxiv.url)
    with loopback_arxiv(script=[Answer(body=b"not packed", headers=packed)] * 4) as arxiv, pytest.raises(NetworkError):
        ask(polite(), "GET", arxiv.url)


def test_errors_carry_no_secret(polite):
    with refusing_port() as port, pytest.raises(NetworkError) as caught:
        ask(
            polite(),
            "GET",
            f"http://user:hidden@127.0.0.1:{port}/hidden?key=hidden",
            headers={"x-api-key": "hidden"},
            params={"token": "hidden"},
        )
    assert "hidden" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("url", ["nonsense", "file:///etc/hosts", "http://", "ftp://example.org/x", "http://[::1/"])
def test_an_invalid_url_is_a_network_error(polite, url):
    with pytest.raises(NetworkError):
        ask(polite(), "GET", url)


def test_a_contact_that_is_invalid_in_a_header_is_refused(polite):
    with pytest.raises(InvalidInput, match="PAPER_ASSETS_CONTACT"):
        polite(contact="a@example.org\r\nX-Other: 1")


@pytest.mark.parametrize("text", ["", "nonsense", "1.0", "nan nan", "1 inf", "9e18 1", "\x00\xff", "1 2 3"])
def test_a_damaged_gate_file_delays_by_one_interval_at_most(polite, fake_time, tmp_path, text):
    (tmp_path / "gate").mkdir()
    (tmp_path / "gate" / "next_request").write_bytes(text.encode("latin-1"))
    with loopback_arxiv(script=[OK]) as arxiv:
        assert ask(polite(), "GET", arxiv.url).content == b"fine"
    assert sum(fake_time.sleeps) <= 3.0


def test_a_clock_set_back_does_not_make_us_wait(polite, fake_time):
    with loopback_arxiv(script=[OK, OK]) as arxiv:
        ask(polite(), "GET", arxiv.url)
        fake_time.now -= 86_400
        ask(polite(), "GET", arxiv.url)
    assert fake_time.sleeps == pytest.approx([3.0])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_gate_without_rights_says_what_to_set(polite, tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(InvalidInput, match="PAPER_ASSETS_REQUEST_GATE"):
        ask(polite(gate=folder), "GET", "http://127.0.0.1:9/")


def test_a_gate_that_is_a_file_says_what_to_set(polite, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="PAPER_ASSETS_REQUEST_GATE"):
        ask(polite(gate=tmp_path / "file"), "GET", "http://127.0.0.1:9/")


def test_the_gate_never_writes_through_a_link(polite, tmp_path):
    (tmp_path / "gate").mkdir()
    (tmp_path / "precious").write_text("kept")
    (tmp_path / "gate" / "next_request").symlink_to(tmp_path / "precious")
    with pytest.raises(InvalidInput, match="PAPER_ASSETS_REQUEST_GATE"):
        ask(polite(), "GET", "http://127.0.0.1:9/")
    assert (tmp_path / "precious").read_text() == "kept"


ASK = """
import sys
from pathlib import Path
from paper_assets.sources.polite_http import RequestGate, ask, polite_session
session = polite_session(RequestGate(Path(sys.argv[1]), interval=float(sys.argv[3])), timeout=30.0)
for _ in range(int(sys.argv[4])):
    ask(session, "GET", sys.argv[2])
"""


def _asking(gate, url, *, interval, times):
    return subprocess.Popen([sys.executable, "-c", ASK, str(gate), url, str(interval), str(times)])


def test_all_processes_of_the_machine_wait_for_each_other(tmp_path):
    with loopback_arxiv(script=[OK] * 6) as arxiv:
        processes = [_asking(tmp_path / "gate", arxiv.url, interval=0.2, times=2) for _ in range(3)]
        assert [process.wait(600) for process in processes] == [0, 0, 0]
    times = [request.at for request in arxiv.requests]
    assert len(times) == 6
    # An answer is sent after its time was noted, and the next request starts an interval after that answer.
    assert all(later - earlier >= 0.2 for earlier, later in pairwise(times))


def test_a_killed_process_frees_the_gate_and_its_request_counts(tmp_path):
    gate = tmp_path / "gate"
    with loopback_arxiv(script=[Answer(hang=True), OK]) as arxiv:
        holder = _asking(gate, arxiv.url, interval=600, times=1)
        until(lambda: arxiv.requests)
        impatient = polite_session(RequestGate(gate, interval=3.0), timeout=5.0, deadline=0.2)
        with pytest.raises(RateLimited, match="our own queue for"):
            ask(impatient, "GET", arxiv.url)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait(600)
        later = FakeTime(time.time())
        queue = RequestGate(gate, interval=3.0, clock=later.clock, sleep=later.sleep)
        heir = polite_session(queue, timeout=5.0, deadline=900.0)
        assert ask(heir, "GET", arxiv.url).content == b"fine"
    assert 0 < sum(later.sleeps) <= 600


@pytest.mark.parametrize(("patient", "tries"), [(True, 4), (False, 1)])
def test_an_impatient_session_tries_once_if_no_connection_can_be_made(polite, patient, tries):
    sent = []

    class Counting(HTTPAdapter):
        def send(self, request, **options):
            sent.append(request.url)
            return super().send(request, **options)

    session = polite(patient=patient, transport=Counting())
    with refusing_port() as port, pytest.raises(NetworkError, match="cannot be reached"):
        ask(session, "GET", f"http://127.0.0.1:{port}/pdf")
    assert len(sent) == tries


@pytest.mark.parametrize(
    ("status", "tries", "message"),
    [
        (403, 1, r"the proxy does not allow arxiv\.invalid \(HTTP 403\)"),
        (407, 1, r"the proxy asks for a login to reach arxiv\.invalid \(HTTP 407\)"),
        (503, 4, r"the proxy did not let us reach arxiv\.invalid"),
    ],
)
def test_a_proxys_refusal_is_final_and_its_failure_is_not(polite, status, tries, message):
    asked: list[Request] = []

    def refuse(request: Request) -> Answer:
        asked.append(request)
        return Answer(status=status)

    with serving(refuse) as proxy, pytest.raises(NetworkError, match=message) as raised:
        ask(polite(), "GET", "https://arxiv.invalid/api", proxies={"https": proxy.replace("//", "//ada:hidden@")})
    assert [request.method for request in asked] == ["CONNECT"] * tries
    assert "hidden" not in str(raised.value) and "\n" not in str(raised.value)


def test_a_proxy_without_tls_that_asks_for_a_login_is_named(polite):
    with (
        serving(lambda _: Answer(status=407, body=b"<html>Log in</html>")) as proxy,
        pytest.raises(NetworkError, match="the proxy asks for a login"),
    ):
        ask(polite(), "GET", "http://arxiv.invalid/api", proxies={"http": proxy})


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize(("patient", "tries"), [(True, 4), (False, 1)])
def test_a_proxy_that_cannot_be_reached_is_a_connection_that_cannot_be_made(polite, fake_time, scheme, patient, tries):
    unreached = r"the proxy on the way to arxiv\.invalid cannot be reached"
    with refusing_port() as port, pytest.raises(NetworkError, match=unreached):
        proxies = {scheme: f"http://127.0.0.1:{port}"}
        ask(polite(patient=patient), "GET", f"{scheme}://arxiv.invalid/api", proxies=proxies)
    assert len(fake_time.sleeps) == tries - 1
