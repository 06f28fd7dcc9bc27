"""Two readers and a run of Dagster at the same time: every rating counts, and no reader sees a traceback."""

import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as BrowserPage

from paper_assets.learning.ratings import ratings_by_id
from paper_assets.stores.rankings import ranking
from tests.page.browser import visitor
from tests.page.invented_desk import DAYS, LATEST, PROFILE, Page, served


@pytest.fixture
def page_of_its_own(page_of_a_year: Page, tmp_path: Path) -> Page:
    """A copy of the desk's last days: a run changes it, and writes every digest that is missing."""
    desk = type(page_of_a_year.desk)(tmp_path / "copy")
    shutil.copytree(page_of_a_year.desk.folder, desk.folder)
    with desk.warehouse.writing() as connection:
        for table in ("rankings", "ranking_sets", "candidates", "candidate_sets"):
            connection.execute(f"delete from {table} where day < ?", [DAYS[0]])
    return Page(desk, "")


def rate_until_counted(page: BrowserPage, paper_id: str, rating: str) -> None:
    """Rate; where the page reports that another process writes, rate again, as a reader would.

    A new list may replace the row meanwhile.
    """
    row = f'[id="paper-{paper_id}"]'
    counted, refused = f'{row}:not([aria-busy]) [data-word="{rating}"][aria-pressed="true"]', f"{row} .row-fault"
    for _ in range(20):
        page.locator(f'{row} [data-word="{rating}"]').click()
        expect(page.locator(f"{counted}, {refused}").first).to_be_visible()
        if page.locator(counted).count():
            return
        expect(page.locator(refused)).to_contain_text("Could not save")
    raise AssertionError(f"{rating} on {paper_id} was never counted")


def test_two_readers_and_a_run_do_not_lose_each_others_work(page_of_its_own: Page, browser: Browser) -> None:
    desk = page_of_its_own.desk
    rows = ranking(desk.warehouse, LATEST, PROFILE).rows
    papers = rows.filter(rows.column("shown")).column("paper_id").to_pylist()
    file = desk.folder / "profiles" / PROFILE / "profile.json"
    file.write_text(file.read_text("utf-8").replace('"top_k": 4', '"top_k": 5'), encoding="utf-8")
    with served(desk) as page, visitor(browser) as one, visitor(browser) as other:
        run = desk.start("run", "--profile", PROFILE)
        for reader in (one, other):
            reader.goto(f"{page.url}/p/{PROFILE}/{LATEST}")
            expect(reader.locator("article").first).to_be_visible()
        unrated = dict(zip(papers, ("worth", "later", "no", "worth"), strict=True))
        while run.poll() is None or unrated:
            if unrated:
                paper_id, rating = unrated.popitem()
                rate_until_counted(one if len(unrated) % 2 else other, paper_id, rating)
            one.goto(f"{page.url}/p/{PROFILE}/{LATEST}")
            assert "Traceback" not in one.content() and "could not be shown" not in one.content()
            one.wait_for_timeout(400)  # a reader reads
        _, err = run.communicate(timeout=600)
        assert run.returncode == 0, err
        one.goto(f"{page.url}/p/{PROFILE}/{LATEST}")
        expect(one.locator(".papers article:visible")).to_have_count(5)
    kept = ratings_by_id(desk.warehouse, PROFILE)
    assert kept == dict(zip(papers, ("worth", "later", "no", "worth"), strict=True))
