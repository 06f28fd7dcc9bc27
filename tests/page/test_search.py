"""Search on the page: marked hits, filters as chips, errors, and searches kept in a profile."""

import json
import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from paper_assets.learning.ratings import ratings_by_id
from paper_assets.paper import paper_from_mapping
from paper_assets.profile import load_profile
from paper_assets.stores.paper_merging import merge_papers
from tests.desk import paper
from tests.mcp.ranked_desk import ranked_desk
from tests.page.browser import keep_picture, visitor
from tests.page.in_process import page_client
from tests.page.invented_desk import PROFILE, Page


def test_a_search_marks_its_words_and_its_filters_are_chips_to_remove(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/search")
        page.get_by_label('Words, "phrases" and filters').fill("traffic forecasting from:2026-03-03 category:cs.LG")
        page.keyboard.press("Enter")
        first = page.locator(".found article").first
        expect(first.locator("h2 mark").first).to_have_text("Traffic")
        expect(first.locator(".lead mark").first).to_be_visible()
        keep_picture(page, "search-found")
        page.wait_for_load_state()
        before = page.locator(".found article").count()
        page.get_by_role("link", name="Remove the filter from:2026-03-03").click()
        expect(page.get_by_role("searchbox")).to_have_value("traffic forecasting category:cs.LG")
        expect(page.locator(".found article").nth(before)).to_be_visible()


OLD = {
    "/p/{}/ask?question=Are+roads+full%3F": "/p/{}/search?q=Are+roads+full%3F",
    "/ask?question=Are+roads+full%3F&sides=1": "/search?q=Are+roads+full%3F&sides=1",
    "/p/{}/ask": "/p/{}/search",
    "/p/{}/evidence?question=Are+roads+full%3F": "",
    "/p/{}/rewrites": "",
    "/p/{}/map": "",
}


def test_an_old_address_leads_to_where_its_view_is_now(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        for old, new in OLD.items():
            answer = page.goto(page_of_a_year.url + old.format(PROFILE))
            assert answer is not None and answer.ok, old
            expect(page).to_have_url(re.compile(re.escape((new or old).format(PROFILE)) + "$"))
            assert page.locator(".views > [aria-current], .gear summary[aria-current]").count() == 1, old
            if "question" in old:
                expect(page.locator("main")).to_contain_text("Are roads full?")


def test_an_error_in_a_query_points_at_its_place(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/search?q=roads is:foo trees")
        expect(page.get_by_role("alert")).to_contain_text("This search cannot be read: is: at character 7")
        expect(page.get_by_role("alert")).to_contain_text("use worth, later, no, shown, unseen")
        expect(page.get_by_role("searchbox")).to_have_attribute("aria-invalid", "true")
        keep_picture(page, "search-error")


def test_a_found_paper_is_rated_and_leads_to_similar_ones_and_to_its_authors(
    page_of_a_year: Page, browser: Browser
) -> None:
    desk = page_of_a_year.desk
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/search?q=protein")
        article = page.locator(".found article").first
        paper_id = (article.get_attribute("id") or "").removeprefix("paper-")
        page.keyboard.press("w")
        expect(page.locator(f'[id="paper-{paper_id}"]')).to_have_attribute("data-rating", "worth")
        expect(page.get_by_role("status")).to_contain_text("worth reading")
        assert ratings_by_id(desk.warehouse, PROFILE)[paper_id] == "worth"
        page.keyboard.press("u")
        expect(page.get_by_role("status")).to_contain_text("rating removed")
        page.keyboard.press("a")
        page.locator(".found article").first.locator(".by a").first.click()
        expect(page.get_by_role("searchbox")).to_have_value('author:"Author 301"')
        expect(page.locator(".found article")).to_have_count(1)
        page.wait_for_load_state()
        page.keyboard.press("a")
        page.get_by_role("link", name="More like this").click()
        expect(page.locator(".verdict")).to_contain_text("Papers like Protein structure")
        page.wait_for_load_state()
        expect(page.locator(f'[id="paper-{paper_id}"]')).to_have_count(0)
    desk.warehouse.run("delete from ratings")


def test_a_search_becomes_an_interest_or_a_question_with_one_click(page_of_a_year: Page, browser: Browser) -> None:
    folder = page_of_a_year.desk.folder / "profiles" / PROFILE
    kept = {file: file.read_bytes() for file in (folder / "profile.json", folder / "questions.json")}
    try:
        with visitor(browser) as page:
            page.goto(f"{page_of_a_year.today}/search?q=quantum roads category:cs.LG")
            page.get_by_role("button", name="Make this an interest").click()
            expect(page.get_by_role("status")).to_contain_text("“quantum roads” is a main interest of traffic now")
            page.get_by_role("button", name="Make this an interest").click()
            expect(page.get_by_role("status")).to_contain_text("is an interest of traffic already")
            page.get_by_role("button", name="Make this a question").click()
            expect(page.get_by_role("status")).to_contain_text("is a question of traffic now")
        profile = load_profile(folder)
        assert profile.content.interests.primary == ["traffic forecasting on road networks", "quantum roads"]
        assert json.loads((folder / "questions.json").read_text("utf-8"))[-1]["question"] == "quantum roads"
    finally:
        for file, content in kept.items():
            file.write_bytes(content)


def test_pages_of_a_search_do_not_overlap(page_of_a_year: Page, browser: Browser) -> None:
    old = [paper_from_mapping(paper(5_000 + number, "2020-05-01", "old roads")) for number in range(45)]
    merge_papers(page_of_a_year.desk.warehouse, old)
    with visitor(browser, java_script_enabled=False) as page:
        found: list[str] = []
        page.goto(f"{page_of_a_year.url}/search?q=to:2020")
        while True:
            found += [each.get_attribute("id") or "" for each in page.locator(".found article").all()]
            following = page.locator('a[rel="next"]')
            if not following.count():
                break
            with page.expect_navigation():
                following.click()
        page.goto(f"{page_of_a_year.url}/search?q=to:2020&page=9")
        expect(page.get_by_text("There is no page 9 of these results.")).to_be_visible()
        page.get_by_role("link", name="← Page 1").click()
        expect(page.locator(".found article").first).to_be_visible()
    assert sorted(found) == sorted(f"paper-{each.paper_id}" for each in old)


def test_a_search_in_an_unknown_profile_is_refused(tmp_path: Path) -> None:
    with page_client(ranked_desk(tmp_path)) as client:
        refused = client.get("/p/traffic/search", params={"q": "in:trafic roads"})
        assert refused.status_code == 400
        assert "there is no profile" in refused.text
        assert client.get("/p/traffic/search", params={"q": "in:speech roads"}).status_code == 200


def test_a_day_without_papers_offers_to_search_for_the_interests(tmp_path: Path) -> None:
    desk, words = ranked_desk(tmp_path), "/p/traffic/search?q=traffic%20forecasting%20on%20road%20networks"
    with page_client(desk) as client:
        assert words not in client.get("/p/traffic").text
        desk.warehouse.run("update rankings set shown = false")
        assert words in client.get("/p/traffic").text
        assert client.get(words).status_code == 200
