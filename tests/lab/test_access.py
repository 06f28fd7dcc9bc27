"""Access to a lab: nothing without a token, a person's profiles with it, and others' as if they did not exist."""

import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from paper_assets.interfaces.page.app import OPERATOR_ROUTES, ROUTES
from paper_assets.stores.profiles import add_person, people_file, person_with, read_people, remove_person
from tests.desk import GRAPHS, Desk
from tests.lab.invented_lab import FORM, LATEST, Lab, call

GETS = [path for path, get, _ in (*OPERATOR_ROUTES, *ROUTES) if get]
# for the operator of the desk
FOR_ALL = [path for path in GETS if "health" in path or path.endswith(("/first", "/add", "/settings"))]
POSTS = [path for path, _, post in (*OPERATOR_ROUTES, *ROUTES) if post]
TOLD_TO_NOBODY = ("traffic", "speech", "2603.", "ada", "bob", "Traceback")


def address(lab: Lab, path: str, profile: str, *, things_of: str | None = None) -> str:
    """The route's address; rewrite and best practice are those of `things_of`, or do not exist."""
    return path.replace(":path}", "}").format(
        profile=profile,
        paper_id="2603.00203" if things_of else "2501.00001",
        day=LATEST,
        item=lab.items.get(things_of or "", "nothing"),
        identifier=lab.practices.get(things_of or "", "nothing"),
    )


@pytest.mark.parametrize("path", [*GETS, "/nothing", "/sign-out"])
def test_without_a_session_every_view_is_the_form_to_sign_in(served_lab: Lab, path: str) -> None:
    for cookie in ("", "desk=ada.99999999999.00", "desk=ada", "desk=" + "x" * 9_000):
        status, headers, text = served_lab.asked("GET", address(served_lab, path, "p"), Cookie=cookie)
        assert status == 401
        assert "Your token" in text and headers["Content-Security-Policy"]
        assert not [word for word in TOLD_TO_NOBODY if word in text]


@pytest.mark.parametrize("path", [*POSTS, "/sign-out"])
def test_without_a_session_nothing_is_changed(served_lab: Lab, path: str) -> None:
    form = {"paper": "2603.00203", "rating": "worth", "token": "x"}
    given = address(served_lab, path, "traffic", things_of="traffic")
    assert served_lab.asked("POST", given, form, Origin=served_lab.url, **FORM)[0] == 401


@pytest.mark.parametrize("path", [path for path in GETS if "{profile}" in path and path not in FOR_ALL])
def test_a_person_sees_only_their_profiles_and_not_that_others_exist(served_lab: Lab, path: str) -> None:
    cookie = served_lab.signed_in(served_lab.tokens["ada"])
    own = served_lab.asked("GET", address(served_lab, path, "traffic", things_of="traffic"), Cookie=cookie)
    assert own[0] == (303 if path.endswith("/ask") else 200), own[2]
    beside_papers = re.sub(r"<article.*?</article>", "", own[2], flags=re.DOTALL)
    assert "speech recognition" not in beside_papers and "/p/speech" not in own[2] and "of speech" not in own[2]
    theirs = served_lab.asked("GET", address(served_lab, path, "speech", things_of="speech"), Cookie=cookie)
    nobodys = served_lab.asked("GET", address(served_lab, path, "speed1", things_of="speech"), Cookie=cookie)
    assert theirs[0] == nobodys[0] == 404
    assert theirs[2].replace("speech", "speed1") == nobodys[2].replace(served_lab.items["speech"], "")
    if "{item}" in path or "{identifier}" in path:  # another's thing under one's own name
        theirs = served_lab.asked("GET", address(served_lab, path, "traffic", things_of="speech"), Cookie=cookie)
        nobodys = served_lab.asked("GET", address(served_lab, path, "traffic"), Cookie=cookie)
        known = (served_lab.items["speech"], served_lab.practices["speech"])
        plain = theirs[2]
        for name in known:
            plain = plain.replace(name, "nothing")
        assert (theirs[0], plain) == (nobodys[0], nobodys[2])


@pytest.mark.parametrize("path", POSTS)
def test_a_person_cannot_change_another_persons_profile(served_lab: Lab, path: str) -> None:
    cookie = served_lab.signed_in(served_lab.tokens["ada"])
    form = {"paper": "2603.00204", "rating": "worth", "question": "x?", "decision": "accept", "attempt": "1"}
    form |= {"sure": "yes", "token": served_lab.form_token(cookie)}
    sent = {"Cookie": cookie, "Origin": served_lab.url, **FORM}
    theirs = served_lab.asked("POST", address(served_lab, path, "speech", things_of="speech"), form, **sent)
    nobodys = served_lab.asked("POST", address(served_lab, path, "speed1", things_of="speech"), form, **sent)
    assert (theirs[0], nobodys[0]) == (404, 404)
    assert theirs[2].replace("speech", "speed1") == nobodys[2]
    if "{" in path.replace("{profile}", ""):
        assert (
            served_lab.asked("POST", address(served_lab, path, "traffic", things_of="speech"), form, **sent)[0] != 303
        )
    other = served_lab.form_token(served_lab.signed_in(served_lab.tokens["bob"]))
    own = address(served_lab, path, "traffic", things_of="traffic")
    assert served_lab.asked("POST", own, {**form, "token": other}, **sent)[0] == 403, "a form of another's session"


@pytest.mark.parametrize("path", FOR_ALL)
def test_views_about_all_profiles_are_for_the_operator_only(served_lab: Lab, path: str) -> None:
    cookie = served_lab.signed_in(served_lab.tokens["ada"])
    assert served_lab.asked("GET", address(served_lab, path, "traffic"), Cookie=cookie)[0] == 404


def test_a_session_cookie_is_for_this_site_alone_and_no_script_reads_it(served_lab: Lab) -> None:
    form = {"key": served_lab.tokens["ada"], "back": "//evil.example/"}
    status, headers, _ = served_lab.asked("POST", "/sign-in", form, Origin=served_lab.url, **FORM)
    assert (status, headers["Location"]) == (303, "/")
    cookie = headers["Set-Cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "secure" not in cookie
    behind = {"X-Forwarded-Proto": "https", "Origin": served_lab.url.replace("http:", "https:")}
    assert "secure" in served_lab.asked("POST", "/sign-in", form, **behind, **FORM)[1]["Set-Cookie"].lower()
    assert served_lab.tokens["ada"] not in cookie


def test_only_known_names_are_answered_and_other_sites_may_not_ask(served_lab: Lab) -> None:
    token = served_lab.tokens["ada"]
    for path in ("/", "/assets/desk.css", "/mcp"):
        assert served_lab.asked("GET", path, Host="evil.example", Authorization=f"Bearer {token}")[0] == 421
    assert served_lab.asked("GET", "/", Host="desk.example.org")[0] == 401
    foreign = {"Origin": "https://evil.example"}
    assert served_lab.asked("POST", "/sign-in", {"key": token}, **foreign, **FORM)[0] == 403
    assert served_lab.asked("POST", "/mcp", {}, Authorization=f"Bearer {token}", **foreign)[0] == 403


def test_mcp_takes_a_token_in_the_header_and_nowhere_else(served_lab: Lab) -> None:
    token = served_lab.tokens["ada"]
    cookie = served_lab.signed_in(token)
    for path, headers in (
        ("/mcp", {}),
        (f"/mcp?token={token}", {}),
        (f"/mcp?access_token={token}", {}),
        ("/mcp", {"Cookie": cookie}),
        ("/mcp", {"Authorization": f"Basic {token}"}),
        ("/mcp", {"Authorization": "Bearer "}),
    ):
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            status, response_headers, text = served_lab.asked(method, path, **headers)
            assert (status, response_headers["WWW-Authenticate"], text) == (401, "Bearer", "a token is needed\n")


def test_with_a_token_there_is_no_stream_to_listen_to_and_no_session_to_end(served_lab: Lab) -> None:
    for method in ("GET", "DELETE"):
        status, response_headers, _ = served_lab.asked(
            method, "/mcp", Authorization=f"Bearer {served_lab.tokens['ada']}"
        )
        assert (status, response_headers["Allow"]) == (405, "POST")


def test_a_removed_person_is_out_at_the_next_request(served_lab: Lab) -> None:
    file = people_file(served_lab.desk.folder / "data")
    token = add_person(file, "dora", ["traffic"])
    cookie = served_lab.signed_in(token)
    asked = {"profile": "traffic"}
    assert served_lab.asked("GET", "/p/traffic", Cookie=cookie)[0] == 200
    assert call(served_lab, token, "todays_ranking", asked)[0] == 200
    remove_person(file, "dora")
    assert served_lab.asked("GET", "/p/traffic", Cookie=cookie)[0] == 401
    assert call(served_lab, token, "todays_ranking", asked)[0] == 401


def test_no_token_is_written_anywhere(served_lab: Lab) -> None:
    token = served_lab.tokens["ada"]
    served_lab.signed_in(token)
    assert call(served_lab, token, "todays_ranking", {"profile": token})[0] == 200
    served_lab.asked("GET", f"/mcp?token={token}")
    written = [file for file in served_lab.desk.folder.rglob("*") if file.is_file()]
    assert served_lab.log in written
    for file in written:
        content = file.read_bytes()
        assert not [name for name, one in served_lab.tokens.items() if one.encode() in content], file


def test_nothing_is_served_beyond_this_machine_without_a_registered_person(tmp_path: Path) -> None:
    refused = Desk(tmp_path).refused("lab", "serve", "--host", "0.0.0.0", "--port", "0")
    assert refused.startswith("error: --host 0.0.0.0: no person has access yet")


@pytest.mark.parametrize("query", ["speech in:speech", "speech in:speed1", "speech in:rewrites"])
def test_a_search_leads_to_nothing_of_another_person(served_lab: Lab, query: str) -> None:
    cookie = served_lab.signed_in(served_lab.tokens["ada"])
    address = f"/p/traffic/search?{urlencode({'q': query})}"
    status, _, text = served_lab.asked("GET", address, Cookie=cookie)
    assert status == 400 and 'class="papers found"' not in text
    assert "is not a profile of yours" in text or "rewrites belong to profiles" in text


def test_the_command_line_searches_no_profile_of_another_person_for_a_profile(served_lab: Lab) -> None:
    desk = served_lab.desk
    message = desk.refused("find", "speech", "in:speech", "--profile", "traffic")
    assert "in:speech is not a profile of those who have traffic" in message
    desk.run("find", "traffic", "in:traffic", "--profile", "traffic")


# `paper-assets lab`: a token shown once, a typing error reported


def test_people_are_added_listed_and_removed_and_a_token_is_shown_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    file = people_file(tmp_path / "data")
    token = desk.run("lab", "add", "ada", "--profile", "graphs").strip()
    ada = person_with(read_people(file), token)
    assert ada and ada.name == "ada"
    listed = desk.run("lab", "list", "--json")
    assert json.loads(listed) == [{"name": "ada", "profiles": ["graphs"]}]
    assert "there is no profile 'graph' in" in desk.refused("lab", "add", "bob", "--profile", "graph")
    desk.run("lab", "remove", "ada")
    assert read_people(file) == ()
