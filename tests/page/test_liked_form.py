"""Test the papers that a reader likes on the page: own papers by name, a Zotero library, and adding them later."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from html import unescape
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from starlette.testclient import TestClient

from paper_assets.paper import Paper
from paper_assets.stores.feedback import last_ratings
from tests.desk import Desk
from tests.library.test_formats import zotero_library
from tests.loopback import Answer
from tests.loopback_arxiv import invented_paper, loopback_arxiv
from tests.loopback_zotero import loopback_zotero
from tests.page.browser import axe_script, keep_picture, serious_findings, visitor
from tests.page.in_process import TOKEN, page_client
from tests.page.invented_desk import served

DAY = date(2026, 3, 2)
MINE = [
    ("2501.00001", "Trees that forecast traffic", ("Ada Writer", "Ben Sample"), ("cs.LG", "stat.ML")),
    ("2502.00002", "Forecasts on road networks", ("Ada Writer",), ("cs.LG",)),
    ("2503.00003", "On medieval letters", ("Ada Writer", "Cem Other"), ("cs.DL",)),
    ("2504.00004", "Somebody else's work", ("Eva Else",), ("cs.CL",)),
]


def papers() -> list[Paper]:
    return [
        invented_paper(
            number,
            DAY,
            paper_id=paper_id,
            title=title,
            abstract=f"We study {title}.",
            authors=authors,
            categories=categories,
            primary_category=categories[0],
        )
        for number, (paper_id, title, authors, categories) in enumerate(MINE)
    ]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@contextmanager
def serving(desk: Desk, **environ: str) -> Iterator[TestClient]:
    with page_client(desk, **{"PAPER_ASSETS_REQUEST_INTERVAL": "0", **environ}) as client:
        yield client


def hidden(text: str, name: str) -> list[str]:
    return [unescape(value) for value in re.findall(rf'name="{name}" value="([^"]*)"', text)]


def kept_in(text: str) -> dict[str, list[str] | str]:
    """The fields that a browser would send again with the papers that were found."""
    names = ("found_name", "found_total", "found")
    return {"own_name": "Ada Writer", **{name: hidden(text, name) for name in names}}


def test_own_papers_are_found_by_name_chosen_and_liked(desk: Desk) -> None:
    with loopback_arxiv(papers()) as arxiv, serving(desk, PAPER_ASSETS_ARXIV_URL=arxiv.url) as client:
        form = {"token": TOKEN, "own_name": "Ada Writer", "keywords": "kept words"}
        found = client.post("/welcome/own-papers", data=form)
        assert "3 papers by Ada Writer" in found.text
        assert "Somebody else" not in found.text
        assert "kept words" in found.text
        assert found.text.count('name="mine"') == 3 == len(re.findall(r" checked(?: autofocus)?> <span", found.text))
        chosen = {"token": TOKEN, **kept_in(found.text), "mine": ["2501.00001", "2502.00002"]}
        seen = client.post("/welcome/preview", data=chosen).text
        assert "cs.LG Machine Learning" in seen
        assert "cs.DL" not in seen.partition("<aside")[2]
        assert seen.count('name="mine"') == 3
        made = client.post("/welcome", data={**chosen, "name": "mine"})
        assert made.url.path == "/p/mine/first", made.text
        assert len(arxiv.requests) == 1
    assert desk.content("mine")["interests"] == {
        "papers": [
            {"paper_id": paper_id, "title": title, "abstract": f"We study {title}."}
            for paper_id, title, *_ in MINE[1::-1]  # the newest first
        ]
    }
    assert desk.content("mine")["feed"]["categories"][:2] == ["cs.LG", "stat.ML"]  # type: ignore[index]


def test_a_name_that_was_only_typed_is_looked_up_before_a_profile_is_made(desk: Desk) -> None:
    with loopback_arxiv(papers()) as arxiv, serving(desk, PAPER_ASSETS_ARXIV_URL=arxiv.url) as client:
        asked = client.post("/welcome", data={"token": TOKEN, "own_name": "Ada Writer", "interests": "forecasting"})
        assert asked.url.path == "/welcome"
        assert "Check those that are yours" in asked.text
        assert not (desk.folder / "profiles").exists()
        form = {"token": TOKEN, **kept_in(asked.text), "interests": "forecasting"}
        assert client.post("/welcome", data=form).url.path == "/p/forecasting/first"
    assert desk.content("forecasting")["interests"] == {"primary": ["forecasting"]}  # none was chosen


def test_many_papers_of_a_frequent_name_are_not_chosen_in_advance(desk: Desk) -> None:
    many = [invented_paper(number, DAY, authors=("Wei Li",)) for number in range(80)]
    with loopback_arxiv(many) as arxiv, serving(desk, PAPER_ASSETS_ARXIV_URL=arxiv.url) as client:
        found = client.post("/welcome/own-papers", data={"token": TOKEN, "own_name": "Wei Li"}).text
    assert "80 papers by Wei Li; the first 50 are shown" in found
    assert " checked> <span" not in found


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "arXiv has no paper by "),
        (Answer(status=503, headers={"Retry-After": "900"}), "asks us to wait"),
        (Answer(status=429, body=b"Rate exceeded.", headers={"Retry-After": "900"}), "asks us to wait"),
    ],
)
def test_a_search_without_an_answer_is_explained_beside_the_name(desk: Desk, answer: Answer | None, words: str) -> None:
    with (
        loopback_arxiv(papers(), script=[answer] * 9 if answer else None) as arxiv,
        serving(desk, PAPER_ASSETS_ARXIV_URL=arxiv.url) as client,
    ):
        form = {"token": TOKEN, "own_name": "Nora None", "interests": "kept"}
        refused = client.post("/welcome/own-papers", data=form)
    assert refused.status_code == 400
    assert words in refused.text.partition('id="own_name-fault">')[2][:200]
    assert "kept" in refused.text


def test_hidden_fields_that_the_page_did_not_write_are_ignored(desk: Desk) -> None:
    with serving(desk) as client:
        odd = ["{", "[]", '{"paper_id": 3}', json.dumps(dict.fromkeys(("paper_id", "title"), "x")), "[" * 3000]
        form = {"token": TOKEN, "interests": "a", "own_name": "A", "found_name": "A", "found": odd, "mine": ["x", ""]}
        assert client.post("/welcome", data={**form, "name": "odd"}).url.path == "/p/odd/first"
    assert desk.content("odd")["interests"] == {"primary": ["a"]}


def test_a_library_on_zoteros_server_makes_a_profile_and_its_key_is_not_saved(desk: Desk) -> None:
    titles = [f"On traffic {number}" for number in range(130)]
    with (
        loopback_zotero(titles, key="a-secret-key") as zotero,
        serving(desk, PAPER_ASSETS_ZOTERO_URL=zotero.url) as client,
    ):
        form = {"token": TOKEN, "name": "mine", "zotero_number": "4711", "zotero_key": "wrong"}
        refused = client.post("/welcome", data=form)
        assert refused.status_code == 400
        assert "Zotero did not return the user library" in refused.text.partition('id="zotero_number-fault">')[2][:200]
        assert "wrong" not in refused.text
        made = client.post("/welcome", data={**form, "zotero_key": "a-secret-key"})
        assert made.url.path == "/p/mine/first", made.text
        assert "130 works of your library are liked" in made.text
    assert len(last_ratings(desk.warehouse, "mine")) == 130
    files = [each for each in desk.folder.rglob("*") if each.is_file()]
    assert not [each for each in files if b"a-secret-key" in each.read_bytes()]


def test_the_zotero_of_this_computer_is_offered_and_read_and_its_file_can_be_uploaded(
    desk: Desk, tmp_path: Path
) -> None:
    file = tmp_path / "reader" / "Zotero" / "zotero.sqlite"
    file.parent.mkdir(parents=True)
    zotero_library(file)
    with serving(desk, HOME=str(tmp_path / "reader")) as client:
        assert "The Zotero library on this computer" in client.get("/welcome").text
        form = {"token": TOKEN, "name": "mine", "zotero_local": "1"}
        assert client.post("/welcome", data=form).url.path == "/p/mine/first"
    assert {each.paper_id for each in last_ratings(desk.warehouse, "mine")} == {"2601.05000", "doi:10.1000/xyz"}
    with serving(desk, HOME=str(tmp_path)) as client:
        assert "on this computer" not in client.get("/welcome").text
        upload = {"library": ("zotero.sqlite", file.read_bytes())}
        made = client.post("/welcome", data={"token": TOKEN, "name": "uploaded"}, files=upload)
        assert made.url.path == "/p/uploaded/first"
        refused = client.post("/welcome", data={"token": TOKEN}, files={"library": ("zotero.sqlite", b"no")})
        assert 'id="library-fault">zotero.sqlite' in refused.text


def test_papers_are_added_to_a_profile_and_a_library_adds_only_what_is_new(desk: Desk) -> None:
    desk.profile("traffic", {"interests": {"primary": ["traffic"]}})
    bib = b"@article{a, title={Trees that learn}, author={Writer, Ada}, eprint={2501.12345}, archivePrefix={arXiv}}"
    with loopback_arxiv(papers()) as arxiv, serving(desk, PAPER_ASSETS_ARXIV_URL=arxiv.url) as client:
        assert 'href="/p/traffic/add"' in client.get("/p/traffic/profile").text
        form = {"token": TOKEN, "papers": "https://arxiv.org/abs/2501.12345v2"}
        assert "1 paper added" in client.post("/p/traffic/add", data=form).text
        assert "No new papers" in client.post("/p/traffic/add", data=form).text
        for words in ("1 work of the library read, 1 newly liked", "1 work of the library read, 0 newly liked"):
            text = client.post("/p/traffic/add", data={"token": TOKEN}, files={"library": ("a.bib", bib)}).text
            assert words in text
        found = client.post("/p/traffic/add", data={"token": TOKEN, "own_name": "Ada Writer"})
        assert "Check those that are yours" in found.text
        form = {"token": TOKEN, **kept_in(found.text), "mine": ["2501.00001"]}
        assert "1 paper added" in client.post("/p/traffic/add", data=form).text
        nothing = client.post("/p/traffic/add", data={"token": TOKEN})
        assert nothing.status_code == 400
        assert 'id="papers-fault">name a paper' in nothing.text
    kept = desk.content("traffic")["interests"]
    assert [each if isinstance(each, str) else each["paper_id"] for each in kept["papers"]] == [  # type: ignore[index]
        "2501.12345",
        "2501.00001",
    ]


@pytest.mark.parametrize("width", [1280, 390])
def test_own_papers_are_chosen_with_the_keyboard_alone(desk: Desk, browser: Browser, width: int) -> None:
    with (
        loopback_arxiv(papers()) as arxiv,
        served(desk, PAPER_ASSETS_ARXIV_URL=arxiv.url, PAPER_ASSETS_REQUEST_INTERVAL="0") as page,
        visitor(browser, width=width) as view,
    ):
        view.goto(page.url)
        view.locator("#own summary").focus()
        view.keyboard.press("Enter")
        view.keyboard.press("Tab")
        view.keyboard.type("Ada Writer")
        view.keyboard.press("Enter")  # looks the name up, and makes no profile yet
        expect(view.locator("#own legend")).to_contain_text("3 papers by Ada Writer")
        keep_picture(view, f"own-papers-{width}")
        if script := axe_script():
            assert serious_findings(view, script) == []
        everything = view.locator("input[name=mine_field]").first
        expect(everything).to_be_focused()
        view.keyboard.press("Space")  # all papers of that field
        expect(everything).to_be_checked()
        view.locator("#name").focus()
        view.keyboard.type("mine")
        view.keyboard.press("Enter")
        view.wait_for_url("**/p/mine/first*")
    assert [each["paper_id"] for each in desk.content("mine")["interests"]["papers"]]  # type: ignore[index]
