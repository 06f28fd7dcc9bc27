"""Triage of a long list with the keyboard, and the views of a desk that has no list, no ratings or a broken profile."""

import json
from collections.abc import Iterator
from datetime import date

import pytest
from playwright.sync_api import Browser, expect

from paper_assets.learning.ratings import ratings_by_id
from paper_assets.paper import paper_from_mapping
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.profile import load_profile
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import ranking
from paper_assets.stores.warehouse import Warehouse
from tests.desk import TOPICS, Desk, paper
from tests.mcp.ranked_desk import NOBODY
from tests.page.browser import HEIGHT, keep_picture, misfits, visitor
from tests.page.invented_desk import Page, served
from tests.rewriting.scripted import NOW

DAY = date(2026, 3, 4)
FIFTEEN = {"interests": {"primary": ["traffic forecasting on road networks"]}, "ranking": {"top_k": 15, "threshold": 0}}
ASKED = {"ten": (10, 5), "twelve": (12, 3)}  # papers in a list, and papers asked about after it
KEYS = {"w": "worth", "l": "later", "n": "no"}


@pytest.fixture(scope="module")
def desk_of_fifteen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A list of fifteen papers, a profile without a list, and one whose file is broken."""
    desk = Desk(tmp_path_factory.mktemp("fifteen"))
    settings, warehouse = desk.settings, desk.warehouse
    records = [paper(number, f"{DAY}", TOPICS[number % len(TOPICS)]) for number in range(20)]
    merge_papers(warehouse, [paper_from_mapping(record) for record in records])
    profile = load_profile(desk.profile("reader", FIFTEEN).parent)
    keep_candidates(warehouse, profile_day(warehouse, profile, DAY, settings=settings), settings=settings)
    keep_ranking(warehouse, profile, DAY, embedder=None, verifier=NOBODY, settings=settings, now=NOW)
    for name, (top_k, asked) in ASKED.items():
        content = {**FIFTEEN, "ranking": {**FIFTEEN["ranking"], "top_k": top_k}}
        profile = load_profile(desk.profile(name, content).parent)
        keep_candidates(warehouse, profile_day(warehouse, profile, DAY, settings=settings), settings=settings)
        keep_ranking(warehouse, profile, DAY, embedder=None, verifier=NOBODY, settings=settings, now=NOW)
        below = ranking(warehouse, DAY, name).rows.column("paper_id").to_pylist()[top_k:][:asked]
        _ask_about(warehouse, name, below)
    desk.profile("new", FIFTEEN)
    desk.profile("broken", json.dumps(FIFTEEN)[:-3])
    with served(desk) as page:
        yield page


def _ask_about(warehouse: Warehouse, profile: str, asked: list[str]) -> None:
    with warehouse.writing() as connection:
        kept = connection.execute("select header from ranking_sets where profile = ?", [profile]).fetchone()
        assert kept
        header = json.dumps(json.loads(kept[0]) | {"more_likely": 0, "questions": asked})
        connection.execute("update ranking_sets set header = ? where profile = ?", [header, profile])


@pytest.mark.parametrize(("profile", "width"), list(zip(ASKED, (1280, 390), strict=True)))
def test_list_and_questions_are_rated_with_one_key_for_each_paper(
    desk_of_fifteen: Page, browser: Browser, profile: str, width: int
) -> None:
    warehouse = desk_of_fifteen.desk.warehouse
    warehouse.run("delete from ratings")
    top_k, asked = ASKED[profile]
    with visitor(browser, width=width) as page:
        page.goto(f"{desk_of_fifteen.url}/p/{profile}")
        expect(page.locator("#asks article")).to_have_count(asked)
        papers = [
            each.removeprefix("paper-")
            for each in page.locator("article:visible").evaluate_all("all => all.map((each) => each.id)")
        ]
        assert len(papers) == len(set(papers)) == top_k + asked == 15
        for key in "wlnwlnwlnwlnwln":
            page.keyboard.press(key)
            focused = page.locator("article:focus")
            expect(focused).to_be_in_viewport(ratio=0.5)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        expect(page.locator('article [aria-pressed="true"]')).to_have_count(15)
        expect(page.locator(f'[id="paper-{papers[-1]}"]')).to_be_focused()
        keep_picture(page, f"{profile}-fifteen-rated-{width}")
    given = ratings_by_id(warehouse, profile)
    assert given == {paper_id: KEYS[key] for paper_id, key in zip(papers, "wlnwlnwlnwlnwln", strict=True)}


def test_fifteen_papers_are_rated_with_fifteen_keys(desk_of_fifteen: Page, browser: Browser) -> None:
    desk_of_fifteen.desk.warehouse.run("delete from ratings")
    rows = ranking(desk_of_fifteen.desk.warehouse, DAY, "reader").rows
    listed = rows.filter(rows.column("shown")).column("paper_id").to_pylist()
    assert len(listed) == 15
    with visitor(browser) as page:
        page.goto(f"{desk_of_fifteen.url}/p/reader")
        keep_picture(page, "today-fifteen")
        keys = "wlnwlnwlnwlnwln"
        for key in keys:
            page.keyboard.press(key)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        expect(page.locator(".message")).to_have_count(0)  # the rows show their ratings
        expect(page.locator('.papers [aria-pressed="true"]')).to_have_count(15)
        expect(page.locator(f'[id="paper-{listed[-1]}"]')).to_be_in_viewport()
        keep_picture(page, "today-fifteen-rated")
    given = ratings_by_id(desk_of_fifteen.desk.warehouse, "reader")
    assert given == {paper_id: KEYS[key] for paper_id, key in zip(listed, keys, strict=True)}


ROWS = """() => [...document.querySelectorAll(".papers > li")].map((each) => each.getBoundingClientRect())
  .map(({ top, bottom }) => [Math.round(bottom - top), Math.round(bottom + scrollY)])"""
_WORDS = "() => document.querySelector('main').innerText.split(/\\s+/).length"
_STOPS = """() => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")]
  .filter((each) => each.checkVisibility() && each.tabIndex >= 0).length"""


def test_eight_papers_are_on_the_screen_of_a_laptop_and_five_on_two_of_a_phone(
    desk_of_fifteen: Page, browser: Browser
) -> None:
    with visitor(browser) as page:
        page.goto(f"{desk_of_fifteen.url}/p/reader")
        rows = page.evaluate(ROWS)
        assert max(height for height, _ in rows) <= 90
        head = 150  # of the frame, the day and what the list has; this desk also warns, as it has no model
        assert rows[7][1] - rows[0][1] + rows[0][0] <= 800 - head
        page.set_viewport_size({"width": 390, "height": HEIGHT})
        assert sum(bottom <= 2 * HEIGHT for _, bottom in page.evaluate(ROWS)) >= 5


def test_today_says_little_and_is_short_to_walk_through(desk_of_fifteen: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{desk_of_fifteen.url}/p/ten")
        assert page.locator(".papers > li:visible").count() == 15
        assert page.evaluate(_WORDS) <= 450
        assert page.evaluate(_STOPS) <= 150
        page.goto(f"{desk_of_fifteen.url}/p/reader")
        assert page.evaluate(_STOPS) <= 150
        assert page.locator(".views > *").count() <= 5


STATES = {
    "empty-today": "/p/new",
    "empty-days": "/p/new/days",
    "empty-shelf": "/p/new/shelf",
    "empty-evidence": "/p/new/evidence",
    "empty-rewrites": "/p/new/rewrites",
    "empty-practices": "/p/new/practices",
    "empty-map": "/p/new/map",
    "empty-learned": "/p/new/learned",
    "empty-teach": "/p/new/teach",
    "empty-first": "/p/new/first",
    "empty-search": "/p/new/search?q=nothing+that+is+stored",
    "empty-ask": "/p/new/search?q=Is+anything+stored%3F",
    "broken-today": "/p/broken",
    "broken-profile": "/p/broken/profile",
    "broken-health": "/p/broken/health",
    "home-three": "/?all=1",
    "welcome": "/welcome",
    "no-such-profile": "/p/nobody",
    "no-such-view": "/nowhere/at/all",
    "no-such-paper": "/p/reader/paper/2601.99999",
    "no-such-day": "/p/reader/2020-01-01",
}


def test_views_without_content_or_with_errors_fit_and_are_accessible(desk_of_fifteen: Page, browser: Browser) -> None:
    found = {}
    with visitor(browser) as page:
        for name, path in STATES.items():
            page.goto(desk_of_fifteen.url + path)
            assert page.locator("h1").count() == 1, name
            found |= misfits(page, name)
    assert found == {}
