"""The guard of the page: how requests of other sites, other host names and other methods are answered."""

import http.client
import re
from urllib.parse import urlencode, urlsplit

import lxml.html
import pytest

from paper_assets.interfaces.page.app import OPERATOR_ROUTES, ROUTES
from tests.page.invented_desk import LATEST, PROFILE, Page

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
VIEWS = [
    path for path, get, _ in (*OPERATOR_ROUTES, *ROUTES) if get and "{item}" not in path and "{identifier}" not in path
]
WRITES = [path for path, _, post in (*OPERATOR_ROUTES, *ROUTES) if post]


def asked(
    page: Page, method: str, path: str, body: dict[str, str] | None = None, **headers: str
) -> tuple[int, http.client.HTTPMessage, str]:
    address = urlsplit(page.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=600)
    try:
        connection.request(method, path, urlencode(body) if body is not None else None, headers)
        answer = connection.getresponse()
        return answer.status, answer.msg, answer.read().decode()
    finally:
        connection.close()


def address_of(path: str) -> str:
    known = path.replace(":path}", "}")
    return known.format(profile=PROFILE, day=LATEST, item="x", identifier="x", paper_id="2603.00201")


def token(page: Page) -> str:
    found = re.search(r'name="token" value="([^"]+)"', asked(page, "GET", f"/p/{PROFILE}")[2])
    assert found
    return found[1]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8787", "127.0.0.1.evil.example", "[", ""])
def test_a_foreign_name_is_not_answered(page_of_a_year: Page, host: str) -> None:
    status, _, text = asked(page_of_a_year, "GET", f"/p/{PROFILE}", Host=host)
    assert status in (400, 421)
    assert "traffic" not in text


def test_the_names_of_this_machine_are_answered_on_any_port(page_of_a_year: Page) -> None:
    for host in ("localhost", "127.0.0.1:9999", "[::1]:1"):
        assert asked(page_of_a_year, "GET", "/assets/icon.svg", Host=host)[0] == 200


@pytest.mark.parametrize("path", WRITES)
def test_a_change_needs_our_origin_and_our_token(page_of_a_year: Page, path: str) -> None:
    page, address = page_of_a_year, address_of(path)
    good = {"token": token(page), "paper": "2603.00100", "rating": "worth"}
    for origin in ("https://evil.example", "null", page.url.replace("127.0.0.1", "localhost")):
        assert asked(page, "POST", address, good, Origin=origin, **FORM)[0] == 403
    assert asked(page, "POST", address, good, **FORM)[0] == 403, "no Origin at all"
    assert asked(page, "POST", address, good, Origin=page.url, **FORM, **{"Sec-Fetch-Site": "cross-site"})[0] == 403
    for wrong in ({}, {**good, "token": ""}, {**good, "token": good["token"] + "x"}):
        assert asked(page, "POST", address, wrong, Origin=page.url, **FORM)[0] == 403
    assert asked(page, "POST", address, good, Origin=page.url, **{"Content-Type": "text/plain"})[0] == 415
    assert page.desk.warehouse.path.exists()
    assert ratings(page) == {}


@pytest.mark.parametrize("path", [path for path, get, post in (*OPERATOR_ROUTES, *ROUTES) if post and not get])
def test_what_changes_something_is_not_done_by_a_get(page_of_a_year: Page, path: str) -> None:
    given = urlencode({"token": token(page_of_a_year), "paper": "2603.00100", "rating": "worth", "decision": "accept"})
    assert asked(page_of_a_year, "GET", f"{address_of(path)}?{given}")[0] in (400, 404, 405)
    assert ratings(page_of_a_year) == {}


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(page_of_a_year: Page, method: str) -> None:
    assert asked(page_of_a_year, method, f"/p/{PROFILE}", Origin=page_of_a_year.url)[0] == 405


def test_a_form_beyond_reason_is_refused(page_of_a_year: Page) -> None:
    body = {"token": token(page_of_a_year), "question": "x" * 2_100_000}
    refused = asked(page_of_a_year, "POST", f"/p/{PROFILE}/questions", body, Origin=page_of_a_year.url, **FORM)
    assert refused[0] == 413


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_forbids_what_is_not_ours_and_keeps_nothing(page_of_a_year: Page, path: str) -> None:
    status, headers, text = asked(page_of_a_year, "GET", address_of(path))
    assert status == (303 if path.endswith("/ask") else 200), text
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["Cache-Control"] == "no-store"
    if "html" in headers.get("Content-Type", ""):
        tree = lxml.html.fromstring(text.encode())
        assert [script.get("src") for script in tree.iter("script")] == ["/assets/desk.js"]
        assert not [name for each in tree.iter() for name in each.attrib if name.startswith("on") or name == "style"]
        assert tree.find(".//style") is None


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/p/nobody", "there is no profile"),
        ("/p/..%2f..%2fetc", "no page at this address"),
        (f"/p/{PROFILE}/2026-99-99", "must be a day"),
        (f"/p/{PROFILE}/2020-01-01", "has no list of"),
        (f"/p/{PROFILE}/rewrites/none", "no rewrite"),
        (f"/p/{PROFILE}/practices/none", "no best practice"),
        (f"/p/{PROFILE}/practices?score=x", "must be a number"),
        ("/nothing", "no page at this address"),
    ],
)
def test_a_missing_page_is_reported_in_one_line_without_a_trace(page_of_a_year: Page, path: str, message: str) -> None:
    status, _, text = asked(page_of_a_year, "GET", path)
    assert status in (400, 404)
    assert message in text.lower() or message in text
    assert "Traceback" not in text


def ratings(page: Page) -> dict[str, str]:
    from paper_assets.learning.ratings import ratings_by_id

    return {paper: word for paper, word in ratings_by_id(page.desk.warehouse, PROFILE).items() if paper == "2603.00100"}
