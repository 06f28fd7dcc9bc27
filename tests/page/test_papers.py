"""A paper's own page and the shelf: mathematics, history, citations, similar papers, ratings to change and export."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from paper_assets.interfaces.page.desk import now
from paper_assets.learning.ratings import rate, ratings_by_id
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import PROFILE, Page


@pytest.fixture
def two_for_later(page_of_a_year: Page) -> Iterator[Page]:
    """The page with two papers rated `later`; no rating is left after the test."""
    desk = page_of_a_year.desk
    for paper_id in ("2603.00300", "2603.00201"):
        rate(
            desk.warehouse, PROFILE, paper_id, "later",
            given_in="command line", now=now(), profiles_dir=desk.folder / "profiles",
        )  # fmt: skip
    yield page_of_a_year
    desk.warehouse.run("delete from ratings")


def test_formulas_are_mathml_in_the_list_and_on_the_papers_page(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}?layout=comfortable")
        listed = page.locator('[id="paper-2603.00900"] .abstract')
        expect(listed.locator("math")).to_have_count(2)
        expect(listed).to_contain_text("from $5 to $6")
        page.goto(f"{page_of_a_year.today}/paper/2603.00900")
        shown = page.locator(".text-of")
        expect(shown.locator("math mfrac")).to_be_visible()
        assert "\\log" not in shown.inner_text()
        keep_picture(page, "paper-formulas")


def test_a_papers_page_says_what_became_of_it_and_leads_on(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(page_of_a_year.today)
        page.locator(".papers h2 a").first.click()
        expect(page.locator(".history li").first).to_contain_text("no. 1 of the list")
        expect(page.locator("h1 mark").first).to_be_visible()
        page.goto(f"{page_of_a_year.today}/paper/2603.00201")
        expect(page.locator(".history li")).to_have_count(2)
        expect(page.locator(".history li").first).to_contain_text("protein")
        expect(page.locator("#similar article")).not_to_have_count(0)
        page.get_by_role("button", name="Copy BibTeX").click()
        expect(page.get_by_role("status")).to_have_text("Copied.")
        assert "@misc" in page.evaluate("navigator.clipboard.readText()")
        with page.expect_download() as download:
            page.get_by_role("link", name="RIS file").click()
        assert "TI  - Protein structure" in download.value.path().read_text("utf-8")
        page.locator("article .by a").first.click()
        expect(page.get_by_role("searchbox")).to_have_value(re.compile("author:"))


def test_a_paper_that_is_not_stored_has_a_page_that_reports_it(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        answer = page.goto(f"{page_of_a_year.today}/paper/2001.00001")
        assert answer is not None
        assert answer.status == 404
        expect(page.get_by_role("alert")).to_contain_text("is not stored")


def test_ratings_are_found_exported_and_changed_on_the_shelf(two_for_later: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(two_for_later.today)
        page.get_by_role("link", name="Shelf").click()
        expect(page.locator(".found article")).to_have_count(2)
        keep_picture(page, "shelf")
        with page.expect_download() as download:
            page.get_by_role("link", name="BibTeX", exact=True).click()
        assert download.value.path().read_text("utf-8").count("@misc") == 2
        with page.expect_download() as download:
            page.get_by_role("link", name="Markdown", exact=True).click()
        assert [line[:3] for line in download.value.path().read_text("utf-8").splitlines()] == ["- ["] * 2
        page.locator(".found article").first.get_by_role("button", name="Worth reading").click()
        expect(page.locator(".found article")).to_have_count(1)  # it left this shelf
        page.keyboard.press("u")
        expect(page.locator(".found article")).to_have_count(2)
        page.get_by_role("searchbox").fill("protein")
        page.keyboard.press("Enter")
        expect(page.locator(".found article")).to_have_count(1)
        page.goto(f"{two_for_later.today}/shelf")
        for left in (1, 0):
            page.locator(".found article").first.get_by_role("button", name="Worth reading").click()
            expect(page.locator(".found article")).to_have_count(left)
        page.get_by_role("link", name="Shelf").click()
        expect(page.get_by_role("link", name="Worth reading 2")).to_have_attribute("aria-current", "true")
        for left in (1, 0):
            page.locator(".found article").first.get_by_role("button", name="Later").click()
            expect(page.locator(".found article")).to_have_count(left)
        page.get_by_role("link", name="Not for me").click()
        expect(page.get_by_text("This shelf is empty")).to_be_visible()
    assert set(ratings_by_id(two_for_later.desk.warehouse, PROFILE).values()) == {"later"}


def test_a_neutral_remark_on_evidence_is_not_shown_as_a_warning(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/evidence?question=Are+roads+full%3F")
        remark = page.locator("#answer > .note").first
        expect(remark).to_be_visible()
        warning = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--warn')")
        probe = "color => { const p = document.createElement('p'); p.style.color = color; document.body.append(p); "
        shown = page.evaluate(probe + "const found = getComputedStyle(p).color; p.remove(); return found; }", warning)
        assert remark.evaluate("element => getComputedStyle(element).color") != shown
        expect(page.locator("#answer")).not_to_contain_text("`")
        expect(page.locator("#answer")).not_to_contain_text("API_KEY")
        setting = page.locator("#answer").get_by_role("link", name="Set up a language model")
        expect(setting).to_have_attribute("href", f"/p/{PROFILE}/settings#model")
