"""A first user in a browser, with the daemon running: read, rate, ask why, decide, edit, ask."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from paper_assets.learning.ratings import ratings_by_id
from paper_assets.pipeline.rewrite_items import wanted_items
from paper_assets.profile import load_profile
from paper_assets.stores.rankings import ranking
from paper_assets.stores.rewrite_progress import keep_attempt, replace_set
from paper_assets.stores.rewrites import rewrite_item
from tests.desk import Desk, week
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import attempt, served
from tests.rewriting.scripted import NOW

DAYS = ("2026-03-02", "2026-03-03")
LATEST = date(2026, 3, 3)
RANKED = 900_000  # milliseconds for what the daemon does within about 20 s on an idle machine
CONTENT = {
    "interests": {"primary": ["traffic forecasting on road networks"]},
    "keywords": {"exclude": {"hard": ["protein"]}},
    "ranking": {"top_k": 3, "threshold": 0},
    "rewriting": {"target_levels": ["student"], "papers": 1},
}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Start a daemon that ticks every two seconds, with two ranked days and a waiting rewrite."""
    desk = Desk(tmp_path)
    file = desk.profile("reader", CONTENT)
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))))
    desk.run("run")
    [item] = wanted_items(desk.warehouse, load_profile(file.parent), LATEST)
    replace_set(desk.warehouse, LATEST, "reader", [item], now=NOW)
    keep_attempt(desk.warehouse, item.item, attempt(1, 88, "Roads fill up; forecasts say when."))
    with desk.daemon(interval=2):
        yield desk


@pytest.mark.timeout(2_400)
def test_a_first_user_reads_rates_asks_decides_and_edits(desk: Desk, browser: Browser) -> None:
    with served(desk) as served_page, visitor(browser) as page, visitor(browser) as left_open:
        left_open.goto(served_page.url)
        page.goto(served_page.url)  # one profile: Today opens at once
        expect(page.locator(".papers article:visible")).to_have_count(3)
        first = page.locator(".papers article").first.get_attribute("id")
        for key in "wwn":  # each key rates a paper and goes to the next
            page.keyboard.press(key)
        expect(page.locator('.papers [aria-pressed="true"]')).to_have_count(3)
        assert sorted(ratings_by_id(desk.warehouse, "reader").values()) == ["no", "worth", "worth"]

        page.get_by_text("About this list").click()
        page.get_by_label("arXiv id, or words of its title").fill("2603.00101")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_have_text("It is not in the list: a filter removed it.")
        expect(page.locator(".sentences")).to_contain_text("protein")

        page.locator(".gear summary").click()
        page.get_by_role("link", name="Rewrites").click()
        page.locator("section", has_text="Waiting for your decision").get_by_role("link").click()
        page.wait_for_url("**/rewrites/*")
        item = page.url.rpartition("/")[2].partition("?")[0]
        page.get_by_role("button", name="Accept").click()
        expect(page.get_by_role("status")).to_contain_text("is accepted")
        assert rewrite_item(desk.warehouse, item).outcome == "accepted"

        page.get_by_role("link", name="Profile", exact=True).click()
        interests = page.get_by_label("Main interests")
        interests.fill("speech recognition for rare languages")
        entering = page.locator("#preview li.new")
        expect(entering.first).to_contain_text("Speech recognition")
        papers = page.locator("#preview li[data-paper]")
        foreseen = [papers.nth(at).get_attribute("data-paper") for at in range(papers.count())]
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Profile saved")

        expect(left_open.get_by_role("status")).to_have_text("The list was ranked again.", timeout=RANKED)
        expect(left_open.locator(".papers article").first).not_to_have_attribute("id", first or "", timeout=RANKED)
        rows = ranking(desk.warehouse, LATEST, "reader").rows
        assert rows.filter(rows.column("shown")).column("paper_id").to_pylist() == foreseen
        keep_picture(left_open, "first-user")

        answered = page.goto(f"{served_page.url}/p/reader/search?q=Does+speech+recognition+work+for+rare+languages%3F")
        assert answered is not None and answered.ok and "peech recognition" in page.content()
