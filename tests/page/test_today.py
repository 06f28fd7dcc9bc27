"""Today: a word with one key and its undoing, with and without scripts; why not; other people's markup stays text."""

from playwright.sync_api import Browser, expect

from paper_assets.learning.ratings import ratings_by_id
from paper_assets.stores.rankings import ranking
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import DAYS, HOSTILE, LATEST, PROFILE, Page


def listed(page: Page) -> list[str]:
    rows = ranking(page.desk.warehouse, LATEST, PROFILE).rows
    return rows.filter(rows.column("shown")).column("paper_id").to_pylist()


def words(page: Page) -> dict[str, str]:
    return ratings_by_id(page.desk.warehouse, PROFILE)


def test_papers_are_rated_and_the_word_is_undone_with_one_key_each(page_of_a_year: Page, browser: Browser) -> None:
    first, second, third, *_ = listed(page_of_a_year)
    with visitor(browser) as page:
        page.goto(page_of_a_year.today)
        for key in ("j", "w", "j", "l", "j", "n"):
            page.keyboard.press(key)
            if key != "j":
                pressed = page.locator(f'article:focus-within button[data-key="{key}"][aria-pressed="true"]')
                expect(pressed).to_have_count(1)
        assert words(page_of_a_year) == {first: "worth", second: "later", third: "no"}
        expect(page.get_by_role("status")).to_contain_text("not for me")
        keep_picture(page, "today-rated")

        page.keyboard.press("u")
        expect(page.locator(f'[id="paper-{third}"] [aria-pressed="true"]')).to_have_count(0)
        page.keyboard.press("k")
        page.keyboard.press("w")  # later becomes worth, and the undoing brings later back
        expect(page.locator(f'[id="paper-{second}"] [data-word="worth"][aria-pressed="true"]')).to_have_count(1)
        page.keyboard.press("u")
        expect(page.locator(f'[id="paper-{second}"] [data-word="later"][aria-pressed="true"]')).to_have_count(1)
        assert words(page_of_a_year) == {first: "worth", second: "later"}
        page.keyboard.press("u")
        page.keyboard.press("u")
        expect(page.locator('article [aria-pressed="true"]')).to_have_count(0)
    assert words(page_of_a_year) == {}


def test_the_whole_list_can_be_worked_with_the_tab_key(page_of_a_year: Page, browser: Browser) -> None:
    first = listed(page_of_a_year)[0]
    with visitor(browser) as page:
        page.goto(page_of_a_year.today)
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        button = page.locator(f'[id="paper-{first}"] [data-word="later"]')
        for _ in range(12):
            page.keyboard.press("Tab")
            if button.evaluate("element => element === document.activeElement"):
                break
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "false")
    assert words(page_of_a_year) == {}


def test_without_scripts_a_click_does_the_same(page_of_a_year: Page, browser: Browser) -> None:
    first = listed(page_of_a_year)[0]
    with visitor(browser, java_script_enabled=False) as page:
        page.goto(page_of_a_year.today)
        page.locator(f'[id="paper-{first}"]').get_by_role("button", name="Worth reading").click()
        expect(page.get_by_role("status")).to_contain_text("worth reading")
        assert words(page_of_a_year) == {first: "worth"}
        page.locator(f'[id="paper-{first}"]').get_by_role("button", name="Undo").click()
        expect(page.get_by_role("status")).to_contain_text("no rating")
    assert words(page_of_a_year) == {}


def test_a_title_with_a_script_in_it_is_text(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(page_of_a_year.today)
        expect(page.locator("article h2", has_text="<script>")).to_contain_text(HOSTILE[:30].capitalize()[1:])
        assert "stolen" not in page.title()
        for path in ("profile", "map?span=month", f"{LATEST}/why?paper=2603.00900"):
            page.goto(f"{page_of_a_year.today}/{path}")
            assert "stolen" not in page.title()


def test_why_a_paper_is_not_here_is_found_by_id_and_by_words_of_its_title(
    page_of_a_year: Page, browser: Browser
) -> None:
    with visitor(browser) as page:
        page.goto(page_of_a_year.today)
        page.get_by_label("An arXiv id, or words of its title").fill("protein structure")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Protein structure from sequence alone, part 301").click()
        expect(page.locator(".verdict")).to_have_text("It is not in the list: a filter removed it.")
        expect(page.locator(".sentences")).to_contain_text("protein")
        page.get_by_label("An arXiv id, or words of its title").fill("2603.00300")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_contain_text("It is in the list, at place")
        page.get_by_label("An arXiv id, or words of its title").fill("2501.00001")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_contain_text("No such paper is stored")


def test_earlier_days_have_addresses_of_their_own(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(page_of_a_year.today)
        page.locator('a[rel="prev"]').click()
        assert page.url == f"{page_of_a_year.today}/{DAYS[1]}"
        page.get_by_role("link", name="all days").click()
        expect(page.locator(".days a")).to_have_count(365)
