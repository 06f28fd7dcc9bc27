"""Every view in the states that something failed, waits or is refused: accessible, in its width, with a way forward."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from threading import Event
from typing import Any
from urllib.parse import quote_plus

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as BrowserPage

from paper_assets.interfaces.background import Job, write_job
from paper_assets.learning.ratings import erase_ratings
from paper_assets.processes import this_process
from paper_assets.settings import load_settings
from paper_assets.stores.rankings import ranking
from paper_assets.stores.rewrite_progress import finish, keep_attempt
from tests.desk import Desk
from tests.loopback_llm import Request, Says, fault, hang, loopback_llm, says
from tests.page.browser import misfits, visitor
from tests.page.invented_desk import LATEST, PROFILE, Page, attempt, served, waiting_item

QUESTION = "Is traffic forecasting on road networks solved?"  # not that of test_ask, whose answers are kept
JOB = Job(arguments=("start",), title="Fetching 7 days for traffic", profile=PROFILE, stage="fetching", total=7)
REFUSED = "arXiv asks us to wait; try again in an hour with `paper-assets start --days 7`"
Opening = Callable[[BrowserPage, Page], None]


def at(path: str) -> Opening:
    return lambda page, desk: page.goto(desk.url + path) and None


def sent(path: str, form: str, **values: str) -> Opening:
    """Submit a form with values that its fields would not accept."""

    def open_view(page: BrowserPage, desk: Page) -> None:
        page.goto(desk.url + path)
        with page.expect_navigation():
            page.evaluate(
                """([selector, values]) => {
                    const form = document.querySelector(selector);
                    for (const [name, value] of Object.entries(values)) form.elements[name].value = value;
                    form.noValidate = true;
                    form.requestSubmit();
                }""",
                [form, values],
            )

    return open_view


def work(path: str, **changed: Any) -> Opening:
    """Open a view while a command in the background runs, or after it ended."""

    def open_view(page: BrowserPage, desk: Page) -> None:
        home = load_settings(desk.desk.environment, desk.desk.folder).home
        write_job(home, replace(JOB, **changed))
        page.goto(desk.url + path)
        page.evaluate("() => { for (let last = setTimeout(() => 0); last; last--) clearTimeout(last); }")  # no reload
        (home / "background.json").unlink()

    return open_view


def rewrite(*, score: int, outcome: str | None = None, attempts: int = 1) -> Opening:
    """Open a rewrite that waits, failed or was cancelled."""

    def open_view(page: BrowserPage, desk: Page) -> None:
        item = waiting_item(desk.desk).item
        for number in range(2, attempts + 1):
            keep_attempt(desk.desk.warehouse, item, attempt(number, score, "Roads are full. It costs 40 apples."))
        if outcome:
            kept = None if outcome == "cancelled" else attempts
            finish(desk.desk.warehouse, item, outcome=outcome, kept=kept, note="not archived: 40 is in question")
        page.goto(f"{desk.url}/p/{PROFILE}/rewrites/{item}")

    return open_view


def retry(page: BrowserPage, desk: Page) -> None:
    item = waiting_item(desk.desk, original_text="Rivers are full of boats.").item  # no model has rewritten it yet
    page.goto(f"{desk.url}/p/{PROFILE}/rewrites/{item}")
    page.get_by_role("button", name="Retry").click()


def retried(page: BrowserPage, desk: Page) -> None:
    """Ask for another attempt, which the language model fails to write."""
    retry(page, desk)
    expect(page.locator("#status")).to_contain_text("Paused: openai")
    expect(page.get_by_role("button", name="Continue")).to_be_visible()


def asked(page: BrowserPage, desk: Page) -> None:
    """Ask for a written answer, which the language model fails to write."""
    page.goto(f"{desk.url}/p/{PROFILE}/search?q={quote_plus(QUESTION)}")
    page.get_by_role("button", name="Write an answer").click()
    expect(page.get_by_role("alert")).to_contain_text("The answer could not be written: openai")
    expect(page.get_by_role("button", name="Write an answer")).to_be_visible()
    expect(page.locator(".footnotes blockquote").first).to_be_visible()


def ask_slowly(page: BrowserPage, desk: Page) -> None:
    """Ask for a written answer, for which the language model needs long."""
    page.goto(f"{desk.url}/p/{PROFILE}/search?q={quote_plus(QUESTION)}")
    page.get_by_role("button", name="Write an answer").click()
    expect(page.locator(".working")).to_be_visible()
    expect(page.locator(".hint")).to_contain_text("You may leave it and come back")
    expect(page.locator(".footnotes blockquote").first).to_be_visible()


def compare_slowly(page: BrowserPage, desk: Page) -> None:
    """Ask for papers for and against, which the language model judges slowly."""
    page.goto(f"{desk.url}/p/{PROFILE}/evidence?question={quote_plus(QUESTION)}")
    expect(page.locator(".working")).to_contain_text("for and against")
    expect(page.locator(".hint")).to_contain_text("You may leave it and come back")


def compare_in_vain(page: BrowserPage, desk: Page) -> None:
    """Ask for papers for and against, which the language model does not judge."""
    page.goto(f"{desk.url}/p/{PROFILE}/evidence?question={quote_plus(QUESTION)}")
    expect(page.locator("#answer .note").first).to_contain_text("Stance could not be judged, so this is one list")
    expect(page.locator("#answer .passage").first).to_be_visible()


def side_refused(page: BrowserPage, desk: Page) -> None:
    """Type a side without a name: the fault is at the sides, not at the question."""
    page.goto(f"{desk.url}/p/{PROFILE}/evidence?question={quote_plus(QUESTION)}&split=own&sides=%3A")
    expect(page.get_by_label("Own sides")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#question")).not_to_have_attribute("aria-invalid", "true")


def retry_slowly(page: BrowserPage, desk: Page) -> None:
    """Ask for another attempt, for which the language model needs long."""
    retry(page, desk)
    expect(page.locator("#status")).to_have_text("Being written; this page updates itself.")
    expect(page.get_by_role("button", name="Cancel this rewrite")).to_be_visible()


GARBLED: Mapping[str, Opening] = {"ask": asked, "evidence": compare_in_vain, "rewrite": retried}
SLOW: Mapping[str, Opening] = {"ask": ask_slowly, "evidence": compare_slowly, "rewrite": retry_slowly}
STATES: Mapping[str, Opening] = {
    "ask-failed": asked,
    "ask-refused": at(f"/p/{PROFILE}/search?q=%3F%3F"),
    "evidence-side-refused": side_refused,
    "evidence-refused": at(f"/p/{PROFILE}/evidence?question=%3F%3F&split=own&sides=%3A"),
    "evidence-failed": at(f"/p/{PROFILE}/evidence?question={quote_plus(QUESTION)}"),
    "rewrite-retried": retried,
    "rewrite-warning": rewrite(score=70, outcome="best_with_warning", attempts=3),
    "rewrite-cancelled": rewrite(score=70, outcome="cancelled"),
    "rewrite-held": rewrite(score=87, attempts=2),
    "rewrites-mixed": at(f"/p/{PROFILE}/rewrites"),
    "no-such-rewrite": at(f"/p/{PROFILE}/rewrites/none"),
    "practices-refused": at(f"/p/{PROFILE}/practices?score=many"),
    "practices-none": at(f"/p/{PROFILE}/practices?keyword=nothing+has+this"),
    "first-running": work(f"/p/{PROFILE}/first", process=f"{this_process()}", done=3, counts={f"{LATEST}": 9}),
    "first-starting": work(f"/p/{PROFILE}/first", process=f"{this_process()}", stage="starting", total=0),
    "first-stopped": work(f"/p/{PROFILE}/first", state="stopped", counts={f"{LATEST}": 9}),
    "first-failed": work(f"/p/{PROFILE}/first", state="failed", message=REFUSED, counts={f"{LATEST}": 9}),
    "health-running": work("/health", process=f"{this_process()}", done=3),
    "health-failed": work("/health", state="failed", message=REFUSED),
    "settings-hours": sent("/settings", "#morning form", at="", zone=""),
    "settings-price": sent("/settings", "#model form", key="some", price_in="cheap"),
    "settings-call": sent("/settings", "#model form", key="some", url="http://127.0.0.1:9/v1"),
    "profile-refused": sent(f"/p/{PROFILE}/profile", "form[data-preview]", **{"ranking-top_k": "many"}),
    "welcome-refused": sent("/welcome", "#welcome", interests="roads", other_categories="cs.Nothing"),
    "search-nothing": at(f"/p/{PROFILE}/search?q=zebra+crossings+of+1904"),
    "shelf-nothing": at(f"/p/{PROFILE}/shelf?show=worth&q=zebra"),
    "why-nothing": at(f"/p/{PROFILE}/{LATEST}/why?paper=zebra"),
    "map-day": at(f"/p/{PROFILE}/{LATEST}/map"),
    "day-without-list": at(f"/p/{PROFILE}/{LATEST + timedelta(days=2)}"),
    "no-such-kept": at(f"/p/{PROFILE}/search?kept=99"),
}
EMPTY = (
    "/",
    "/welcome",
    "/health",
    "/settings",
    "/search",
    "/search?q=roads",
    "/search?q=roads",
    "/search?q=Why+roads%3F",
    "/map",
)


@pytest.fixture(scope="module")
def failing(page_of_a_year: Page) -> Iterator[Page]:
    """The desk with a language model that answers every call with an error."""
    with loopback_llm(lambda request: fault(500)) as model:
        limits = {"PAPER_ASSETS_LLM_DEADLINE": "1", "PAPER_ASSETS_LLM_TIMEOUT": "1"}
        with served(page_of_a_year.desk, **model.environ("openai"), OPENAI_MODEL="invented", **limits) as page:
            yield page


@pytest.fixture(scope="module")
def garbled(page_of_a_year: Page) -> Iterator[Page]:
    """The desk with a language model that answers with words that fit no question."""
    with (
        loopback_llm(lambda request: says('Roads! {"answer": <b>roads</b>} $\\road$')) as model,
        served(page_of_a_year.desk, **model.environ("openai"), OPENAI_MODEL="invented") as page,
    ):
        yield page


@pytest.fixture(scope="module")
def slow(page_of_a_year: Page) -> Iterator[Page]:
    """The desk with a language model that does not answer as long as the test runs."""
    with (
        loopback_llm(lambda request: hang()) as model,
        served(page_of_a_year.desk, **model.environ("openai"), OPENAI_MODEL="invented") as page,
    ):
        yield page


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A home without papers and profiles."""
    with served(Desk(tmp_path_factory.mktemp("empty"))) as page:
        yield page


@pytest.mark.parametrize("path", EMPTY)
def test_every_view_of_an_empty_home_is_accessible_and_leads_on(empty: Page, browser: Browser, path: str) -> None:
    with visitor(browser) as page:
        page.goto(empty.url + path)
        if path == "/health":
            expect(page.get_by_role("link", name="Make a profile")).to_have_attribute("href", "/welcome")
        name = path.partition("?")[0].strip("/").replace("/", "-") or "home"
        check(page, f"empty-home-{name}{'-asked' if '?' in path else ''}")


@pytest.mark.parametrize("state", STATES)
def test_a_view_in_which_something_failed_or_waits_is_accessible_and_leads_on(
    failing: Page, browser: Browser, state: str
) -> None:
    with visitor(browser) as page:
        STATES[state](page, failing)
        check(page, f"state-{state}")


@pytest.mark.parametrize("state", GARBLED)
def test_an_answer_of_a_model_that_makes_no_sense_is_explained(garbled: Page, browser: Browser, state: str) -> None:
    with visitor(browser) as page:
        GARBLED[state](page, garbled)
        assert "<b>roads</b>" not in page.locator("main").inner_text(), "the garbled answer itself is not shown"
        check(page, f"garbled-{state}")


@pytest.mark.parametrize("state", SLOW)
def test_while_a_model_is_slow_the_view_reports_it_and_shows_what_it_has(
    slow: Page, browser: Browser, state: str
) -> None:
    with visitor(browser) as page:
        SLOW[state](page, slow)
        check(page, f"slow-{state}")


def test_a_question_that_takes_long_is_answered_on_the_open_page_and_asked_once(
    page_of_a_year: Page, browser: Browser
) -> None:
    asked, answering = Event(), Event()

    def respond(request: Request) -> Says:
        asked.set()
        answering.wait(600)
        return says({"labels": []})

    with (
        loopback_llm(respond) as model,
        served(page_of_a_year.desk, **model.environ("openai"), OPENAI_MODEL="invented") as desk,
        visitor(browser, width=390) as page,
        visitor(browser) as other,
    ):
        compare_slowly(page, desk)
        assert asked.wait(600)
        compare_slowly(other, desk)
        prompts = [request.turns[-1] for request in model.requests]
        assert len(prompts) == len(set(prompts)), "the second reader waits for the same answer"
        answering.set()
        for reader in (page, other):
            expect(reader.locator("#answer .passage").first).to_be_visible()
        expect(page.get_by_role("status")).to_have_text("The question is answered.")
        check(page, "slow-evidence-answered")


def test_a_view_waits_for_another_process_that_writes_and_keeps_what_was_typed(
    page_of_a_year: Page, browser: Browser
) -> None:
    today = page_of_a_year.today
    with visitor(browser, java_script_enabled=False) as page:
        page.goto(today)
        paper = page.locator("article").first.get_attribute("id")
        with page_of_a_year.desk.warehouse.writing():
            page.goto(today)
            expect(page.locator("h1")).to_have_text("One moment")
            expect(page.get_by_role("link", name="Try again now")).to_have_attribute("href", f"/p/{PROFILE}")
        page.get_by_role("link", name="Try again now").click()
        expect(page.locator(f'[id="{paper}"]')).to_be_visible()
    with visitor(browser) as page:
        with page_of_a_year.desk.warehouse.writing():
            page.goto(today)
            check(page, "busy-read")
        expect(page.locator(f'[id="{paper}"]')).to_be_visible()  # it was loaded again
        row = page.locator(f'[id="{paper}"]')
        row.locator("form.rate").evaluate("form => form.classList.remove('rate')")  # as without scripts
        with page_of_a_year.desk.warehouse.writing(), page.expect_navigation():
            row.get_by_role("button", name="Later").click()
        expect(page.locator("#fault")).to_contain_text("Your change was not saved yet.")
        check(page, "busy-write")
        page.get_by_role("button", name="Try again").click()
        expect(row).to_have_attribute("data-rating", "later")
    erase_ratings(page_of_a_year.desk.warehouse, PROFILE, profiles_dir=page_of_a_year.desk.folder / "profiles")


def test_the_last_rating_of_a_first_set_says_that_it_is_done_and_leads_on(
    page_of_a_year: Page, browser: Browser
) -> None:
    wanted = ranking(page_of_a_year.desk.warehouse, LATEST, PROFILE).header["teach"]
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/teach")
        expect(page.locator("#progress")).to_have_text(f"0 of {len(wanted)} done.")
        for key, _ in zip("wln" * len(wanted), wanted, strict=False):
            page.keyboard.press(key)
        expect(page.locator("#progress")).to_contain_text("are rated; your next list uses them.")
        expect(page.locator("#progress").get_by_role("link", name="Back to Today")).to_be_visible()
        check(page, "teach-done")
    erase_ratings(page_of_a_year.desk.warehouse, PROFILE, profiles_dir=page_of_a_year.desk.folder / "profiles")


_COVERS = """() => [...document.querySelectorAll("#said, .message")].some(
    (each) => getComputedStyle(each).position === "fixed" && each.textContent.trim())"""


def check(page: BrowserPage, name: str) -> None:
    page.wait_for_load_state()  # a form was sent: what is awaited can be there before the stylesheet
    assert not page.evaluate(_COVERS), "a message covers what it is about"
    assert page.locator("h1").count() == 1
    assert page.locator("main").locator("a, button").count() > 0, "nothing leads on from here"
    assert misfits(page, name) == {}
