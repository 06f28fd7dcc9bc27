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
from paper_assets.settings import load_settings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.rankings import ranking
from tests.desk import TOPICS, Desk, paper
from tests.mcp.ranked_desk import NOBODY
from tests.page.browser import axe_script, keep_picture, serious_findings, small_targets, visitor
from tests.page.invented_desk import Page, served
from tests.rewriting.scripted import NOW

DAY = date(2026, 3, 4)
FIFTEEN = {"interests": {"primary": ["traffic forecasting on road networks"]}, "ranking": {"top_k": 15, "line": 0}}
KEYS = {"w": "worth", "l": "later", "n": "no"}


@pytest.fixture(scope="module")
def desk_of_fifteen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A list of fifteen papers, a profile without a list, and one whose file is broken."""
    desk = Desk(tmp_path_factory.mktemp("fifteen"))
    settings, warehouse = load_settings(desk.environment, desk.folder), desk.warehouse
    records = [paper(number, f"{DAY}", TOPICS[number % len(TOPICS)]) for number in range(20)]
    merge_papers(warehouse, [paper_from_mapping(record) for record in records])
    profile = load_profile(desk.profile("reader", FIFTEEN).parent)
    keep_candidates(warehouse, profile_day(warehouse, profile, DAY, settings=settings), settings=settings)
    keep_ranking(warehouse, profile, DAY, embedder=None, verifier=NOBODY, settings=settings, now=NOW)
    desk.profile("new", FIFTEEN)
    desk.profile("broken", json.dumps(FIFTEEN)[:-3])
    with served(desk) as page:
        yield page


@pytest.mark.parametrize("view", ["", "/week"])
def test_fifteen_papers_are_rated_with_fifteen_keys(desk_of_fifteen: Page, browser: Browser, view: str) -> None:
    with desk_of_fifteen.desk.warehouse.writing() as connection:
        connection.execute("delete from ratings")
    rows = ranking(desk_of_fifteen.desk.warehouse, DAY, "reader").rows
    listed = rows.filter(rows.column("shown")).column("paper_id").to_pylist()
    assert len(listed) == 15
    with visitor(browser) as page:
        page.goto(f"{desk_of_fifteen.url}/p/reader{view}")
        keep_picture(page, f"{view.strip('/') or 'today'}-fifteen")
        keys = "wlnwlnwlnwlnwln"
        for key in keys:
            page.keyboard.press(key)
        expect(page.locator("[aria-busy]")).to_have_count(0)
        message = page.locator("#said").bounding_box()
        assert message is None or message["height"] <= 1, f"the message covers a row: {message}"
        expect(page.locator('.papers [aria-pressed="true"]')).to_have_count(15)
        expect(page.locator(f'[id="paper-{listed[-1]}"]')).to_be_in_viewport()
        keep_picture(page, f"{view.strip('/') or 'today'}-fifteen-rated")
    given = ratings_by_id(desk_of_fifteen.desk.warehouse, "reader")
    assert given == {paper_id: KEYS[key] for paper_id, key in zip(listed, keys, strict=True)}


STATES = {
    "empty-today": "/p/new",
    "empty-days": "/p/new/days",
    "empty-week": "/p/new/week",
    "empty-shelf": "/p/new/shelf",
    "empty-evidence": "/p/new/evidence",
    "empty-rewrites": "/p/new/rewrites",
    "empty-practices": "/p/new/practices",
    "empty-map": "/p/new/map",
    "empty-learned": "/p/new/learned",
    "empty-teach": "/p/new/teach",
    "empty-first": "/p/new/first",
    "empty-search": "/p/new/search?q=nothing+that+is+stored",
    "empty-ask": "/p/new/ask?question=Is+anything+stored%3F",
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


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "light"), (1280, "dark")])
def test_views_without_content_or_with_errors_fit_and_are_accessible(
    desk_of_fifteen: Page, browser: Browser, width: int, scheme: str
) -> None:
    axe, found = axe_script(), {}
    with visitor(browser, width=width, color_scheme=scheme) as page:
        for name, path in STATES.items():
            page.goto(desk_of_fifteen.url + path)
            assert page.locator("h1").count() == 1, name
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow <= 0, f"{name} is wider than {width} px"
            keep_picture(page, f"{name}-{width}-{scheme}")
            if width == 390 and (small := small_targets(page)):
                found[f"{name}: targets"] = small
            if axe and (findings := serious_findings(page, axe)):
                found[name] = findings
    assert found == {}
