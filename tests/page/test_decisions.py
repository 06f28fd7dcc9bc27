"""Rewrites on the page: a word counts once, whoever says it and from however old a page."""

import json

from playwright.sync_api import Browser, expect

from paper_assets.stores.rewrites import rewrite_item
from tests.loopback_llm import loopback_llm
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import PROFILE, Page, served, waiting_item
from tests.rewriting.scripted import Play


def test_a_rewrite_stands_beside_its_original_with_doubtful_numbers_marked(
    page_of_a_year: Page, browser: Browser
) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/rewrites")
        page.locator("section", has_text="Waiting for your decision").get_by_role("link").first.click()
        expect(page.locator(".gauge svg")).to_have_attribute("aria-label", "Score 87 of 100; marks at 75, 85, 90, 95")
        expect(page.locator("p.text ins").first).to_contain_text("and forecasts help")
        page.get_by_role("link", name="against the original").click()
        expect(page.locator("p.text ins").first).to_contain_text("Roads are full")
        page.locator("table").get_by_role("link", name="1", exact=True).click()
        expect(page.locator("p.text mark")).to_have_text("40")


def test_a_word_given_twice_in_two_tabs_counts_once_and_says_so(page_of_a_year: Page, browser: Browser) -> None:
    item = waiting_item(page_of_a_year.desk)
    address = f"{page_of_a_year.url}/p/{PROFILE}/rewrites/{item.item}"
    with visitor(browser) as one, visitor(browser) as other:
        one.goto(address)
        other.goto(address)
        one.get_by_role("button", name="Accept").click()
        expect(one.get_by_role("status")).to_contain_text("attempt 1 is accepted")
        other.get_by_role("button", name="Retry").click()
        expect(other.get_by_role("status")).to_contain_text("already accepted; nothing was changed")
        expect(other.get_by_role("button", name="Accept")).to_have_count(0)
    stands = rewrite_item(page_of_a_year.desk.warehouse, item.item)
    assert (stands.outcome, dict(stands.decisions)) == ("accepted", {1: "accept"})


def test_a_retry_goes_on_by_itself_and_a_page_from_before_decides_nothing(
    page_of_a_year: Page, browser: Browser
) -> None:
    item = waiting_item(page_of_a_year.desk)
    path = f"/p/{PROFILE}/rewrites/{item.item}"
    with loopback_llm(Play(86, 88, 93)) as model:
        environ = {**model.environ("openai"), "OPENAI_MODEL": "invented"}
        with (
            served(page_of_a_year.desk, **environ) as page_with_model,
            visitor(browser) as one,
            visitor(browser) as old,
        ):
            for page in (one, old):
                page.goto(page_with_model.url + path)
            one.get_by_role("button", name="Retry").click()
            expect(one.locator(".gauge strong")).to_have_text("88")
            keep_picture(one, "rewrite-resumed")
            old.get_by_role("button", name="Accept").click()  # of attempt 1, which its page still shows
            expect(old.get_by_role("status")).to_contain_text("nothing was changed")
            one.get_by_role("button", name="Auto: run to its end").click()
            expect(one.locator(".sum")).to_contain_text("passed")
            while rewrite_item(page_of_a_year.desk.warehouse, item.item).outcome is None:  # good enough, then closed
                one.wait_for_timeout(100)
        stands = rewrite_item(page_of_a_year.desk.warehouse, item.item)
        assert [attempt.score for attempt in stands.attempts] == [86, 88, 93]
        assert (stands.outcome, dict(stands.decisions)) == ("passed", {1: "retry", 2: "retry"})
        assert len(model.requests) == 4, "two questions an attempt, none asked twice"


def test_a_best_practice_is_removed_after_one_more_question(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/practices?level=expert")
        expect(page.locator(".rows li")).to_have_count(1)
        page.locator(".rows a").click()
        page.get_by_role("link", name="Remove it").click()
        page.get_by_role("button", name="Yes, remove it").click()
        expect(page.get_by_role("status")).to_contain_text("is removed")
        expect(page.locator(".sum").first).to_contain_text("2 rewrites are kept")


def test_a_question_is_asked_at_once_and_kept_once(page_of_a_year: Page, browser: Browser) -> None:
    file = page_of_a_year.desk.folder / "profiles" / PROFILE / "questions.json"
    before = json.loads(file.read_text("utf-8"))
    with visitor(browser) as page, visitor(browser) as other:
        page.goto(f"{page_of_a_year.today}/evidence")
        page.get_by_label("Ask a question").fill("Do trees know when they are wrong?")
        page.get_by_text("Sides: ").click()
        page.get_by_label("One a line").fill("yes: calibration of tree ensembles\nno: speech recognition")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#answer h4")).to_have_text(["yes", "no"])
        expect(page.locator("#answer .passage").first).to_contain_text("tree")
        other.goto(page.url)
        assert json.loads(file.read_text("utf-8")) == before, "asking keeps nothing"
        for tab, said in ((page, "is kept"), (other, "kept already; nothing was changed")):
            tab.get_by_role("button", name="Keep this question").click()
            expect(tab.get_by_role("status")).to_contain_text(said)
    after = json.loads(file.read_text("utf-8"))
    assert after[:-1] == before
    assert after[-1]["question"] == "Do trees know when they are wrong?"
    file.write_text(json.dumps(before), encoding="utf-8")
