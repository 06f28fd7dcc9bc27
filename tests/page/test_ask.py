"""Ask on the page: quotations at once, a cost before anything is paid, and an answer that never blocks the page."""

import json
from dataclasses import replace
from threading import Event
from urllib.parse import quote_plus

from playwright.sync_api import Browser, Route, expect

from paper_assets.models.embedder import load_embedder
from paper_assets.pipeline.retrievals import keep_retrievals
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.profile import load_profile
from paper_assets.retrieval.grading import similarity_grader
from paper_assets.stores.documents import replace_retrievals, retrieval_inputs, retrievals_of
from tests.answering_models import CHEATS, answering_model
from tests.loopback_llm import Request, Says, loopback_llm, says
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import LATEST, PROFILE, Page, served
from tests.rewriting.scripted import NOW

QUESTION = "Is traffic forecasting on road networks simple?"
QUOTE = "The method is simple"
# Log what is said while a button is busy; the first time, stop as the browser's Stop does, and log what is left.
_TELL_WHAT_IS_SAID = """() => {
  const busy = () => document.querySelector("button[aria-busy=true]"), said = document.getElementById("said");
  let stop = () => {
    stop = null;
    window.stop();
    setTimeout(() => console.log(`stopped, ${busy() ? "busy" : "not busy"}: ${said.textContent}`));
  };
  new MutationObserver(() => {
    if (!busy()) return;
    console.log(`${busy().textContent} is busy: ${said.textContent}`);
    if (stop) setTimeout(stop);
  }).observe(said, {childList: true});
}"""


def model(go_on: Event) -> "object":
    """Return a model that judges every passage useful, waits, and quotes one passage truly and one falsely."""

    def respond(request: Request) -> Says:
        shown = [json.loads(line) for line in request.turns[0].splitlines() if line.startswith('{"number"')]
        if "passages" in (request.schema or {}).get("properties", {}):
            return says({"passages": [{"number": each["number"], "relevance": 8} for each in shown]})
        go_on.wait(600)
        true = next(each for each in shown if QUOTE in each["text"])
        return says(
            {
                "answered": True,
                "sentences": [
                    {"text": "The method is simple.", "citations": [{"number": true["number"], "quote": QUOTE}]},
                    {
                        "text": "It is also free.",
                        "citations": [{"number": true["number"], "quote": "It costs nothing at all"}],
                    },
                ],
            }
        )

    return respond


def test_without_a_model_a_question_is_answered_with_quotations(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/search")
        expect(page.get_by_label("Full texts to fetch")).to_have_count(0)  # they are fetched for written answers only
        page.get_by_role("searchbox").fill(QUESTION)
        page.keyboard.press("Enter")
        first = page.locator(".footnotes li").first
        expect(first.locator("blockquote")).to_contain_text("traffic forecasting")
        expect(page.get_by_role("button", name="Write an answer")).to_have_count(0)
        note = page.locator(".note", has_text="without a language model")
        expect(note).not_to_contain_text("API_KEY")
        expect(note.get_by_role("link")).to_have_attribute("href", f"/p/{PROFILE}/settings#model")
        keep_picture(page, "ask-quoted")
        with page.expect_download() as download:
            page.get_by_role("link", name="Save as Markdown").click()
        assert "```bibtex" in download.value.path().read_text("utf-8")
        first.get_by_role("link").click()
        expect(page.locator("h1")).to_contain_text("raffic forecasting on road networks")


def test_an_answer_that_takes_a_moment_is_announced_at_its_button(page_of_a_year: Page, browser: Browser) -> None:
    held: list[Route] = []
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/search")
        page.route("**/search?q=*", lambda route: held.append(route))
        page.get_by_role("searchbox").fill("What predicts traffic?")
        page.evaluate(_TELL_WHAT_IS_SAID)  # while a page is awaited, Playwright looks at nothing in the old one
        with page.expect_console_message(lambda message: message.text == "stopped, not busy: "):
            page.keyboard.press("Enter")
        with page.expect_console_message(lambda message: message.text == "Search is busy: One moment …"):
            page.keyboard.press("Enter")
        held[-1].continue_()
        expect(page.locator(".footnotes blockquote").first).to_be_visible()
        expect(page.get_by_role("status")).to_be_empty()


def test_a_written_answer_states_its_cost_and_shows_only_quotations_that_are_in_their_papers(
    page_of_a_year: Page, browser: Browser
) -> None:
    go_on = Event()
    with loopback_llm(model(go_on)) as llm:
        environ = {**llm.environ("openai"), "OPENAI_MODEL": "invented"}
        with served(page_of_a_year.desk, **environ) as desk, visitor(browser) as page:
            page.goto(f"{desk.today}/search?q={quote_plus(QUESTION)}")
            expect(page.locator(".offer")).to_contain_text("invented: at most")
            expect(page.locator(".offer")).to_contain_text("calls")
            assert llm.requests == []
            page.get_by_role("button", name="Write an answer").click()
            expect(page.locator(".working")).to_be_visible()
            expect(page.locator(".footnotes li").first).to_be_visible()  # the page does not wait for the model
            keep_picture(page, "ask-running")
            page.get_by_role("button", name="Cancel").click()
            page.get_by_role("button", name="Write an answer").click()
            expect(page.locator(".working")).to_be_visible()
            go_on.set()
            expect(page.locator(".written li")).to_have_count(1)
            expect(page.locator(".written")).to_contain_text("The method is simple.")
            expect(page.locator(".footnotes blockquote")).to_have_text(QUOTE)
            expect(page.locator("#answer")).to_contain_text("1 sentence left out: not supported by a quotation")
            page.locator("sup a").click()
            expect(page.locator("#note-1")).to_be_in_viewport()
            keep_picture(page, "ask-written")
            asked = len(llm.requests)
            page.reload()
            expect(page.locator(".written li")).to_have_count(1)
            assert len(llm.requests) == asked


def test_what_was_found_stays_when_the_model_finds_no_answer(page_of_a_year: Page, browser: Browser) -> None:
    with loopback_llm(answering_model(CHEATS["invents quotes"])) as llm:
        environ = {**llm.environ("openai"), "OPENAI_MODEL": "cheat"}
        with served(page_of_a_year.desk, **environ) as desk, visitor(browser) as page:
            page.goto(f"{desk.today}/search?q={quote_plus(QUESTION)}")
            page.get_by_role("button", name="Write an answer").click()
            expect(page.locator("#answer .verdict")).to_have_text("The stored papers do not answer this.")
            expect(page.locator("#answer")).to_contain_text("none answers the question for certain")
            expect(page.locator("#answer .footnotes blockquote").first).to_contain_text("traffic forecasting")
            keep_picture(page, "ask-unanswered")


def test_a_question_that_is_too_long_or_has_no_words_is_refused(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.url}/p/{PROFILE}/search?q=%3F%3F")
        expect(page.get_by_role("alert")).to_contain_text("A question needs words")


def test_a_question_that_is_kept_is_answered_in_sentences_every_day(page_of_a_year: Page, browser: Browser) -> None:
    desk = page_of_a_year.desk
    folder, settings = desk.folder / "profiles" / PROFILE, desk.settings
    before, stored = (folder / "questions.json").read_bytes(), retrievals_of(desk.warehouse, LATEST, PROFILE)
    inputs = retrieval_inputs(desk.warehouse, LATEST, PROFILE)
    try:
        with visitor(browser) as page:
            page.goto(f"{page_of_a_year.today}/search?q={quote_plus(QUESTION)}")
            page.get_by_role("button", name="Make this a question").click()
            expect(page.get_by_role("status")).to_contain_text("From the next run on it is answered every day")
            assert json.loads((folder / "questions.json").read_text("utf-8"))[-1]["answer"] is True
            embedder = load_embedder()
            workspace = open_workspace(settings, {}, clock=lambda: NOW)
            workspace = replace(workspace, load_grader=lambda: similarity_grader(embedder))
            keep_retrievals(workspace, load_profile(folder), LATEST)
            page.goto(f"{page_of_a_year.url}/p/{PROFILE}/{LATEST}/evidence")
            answer = page.locator("section.question", has_text=QUESTION)
            expect(answer).to_contain_text("Quoted without a language model")
            expect(answer).to_contain_text("The stored papers do not answer this")  # no sentence states a finding
            keep_picture(page, "evidence-written")
    finally:
        (folder / "questions.json").write_bytes(before)
        replace_retrievals(desk.warehouse, LATEST, PROFILE, stored, inputs=str(inputs))


def test_a_question_that_is_made_one_is_shown_at_once_while_it_is_answered(
    page_of_a_year: Page, browser: Browser
) -> None:
    questions, go_on = page_of_a_year.desk.folder / "profiles" / PROFILE / "questions.json", Event()
    before = questions.read_bytes()
    with loopback_llm(model(go_on)) as llm:
        environ = {**llm.environ("openai"), "OPENAI_MODEL": "slow"}
        with served(page_of_a_year.desk, **environ) as desk, visitor(browser) as page:
            try:
                page.goto(f"{desk.today}/search?q={quote_plus(QUESTION)}")
                page.get_by_role("button", name="Make this a question").click()
                expect(page.locator("#answer h2")).to_have_text(QUESTION)
                expect(page.locator("#answer .working")).to_contain_text("Reading what the papers say")
                go_on.set()
                expect(page.locator("#answer")).to_contain_text("The method is simple.")
                expect(page.locator(".working")).to_have_count(0)
            finally:
                go_on.set()
                questions.write_bytes(before)


def test_a_kept_answer_is_listed_shown_and_asked_again(page_of_a_year: Page, browser: Browser) -> None:
    desk = page_of_a_year.desk
    desk.run("ask", "--extractive", "--keep", QUESTION)
    try:
        with visitor(browser) as page:
            page.goto(f"{page_of_a_year.today}/search")
            page.get_by_role("link", name=QUESTION).click()
            expect(page.locator("#answer")).to_contain_text("Kept on")
            expect(page.locator(".footnotes blockquote").first).to_contain_text("traffic forecasting")
            page.get_by_role("link", name="Ask again").click()
            expect(page.locator("#quoted .footnotes li").first).to_be_visible()
            assert page.goto(f"{page_of_a_year.today}/search?kept=99").status == 404  # type: ignore[union-attr]
    finally:
        desk.run("answers", "remove", "1")
