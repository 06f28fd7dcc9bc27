"""Rewrites on the page: a decision counts once, from any tab and any old page; no difference cuts a formula."""

import json
from dataclasses import replace

from playwright.sync_api import Browser, expect

from paper_assets.interfaces.page.display import with_mathml
from paper_assets.interfaces.page.rewrite_views import whole_formulas
from paper_assets.pipeline.retrievals import ask
from paper_assets.pipeline.rewrite_items import wanted_items
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.profile import load_profile
from paper_assets.retrieval.stance import no_judge
from paper_assets.rewriting.measures import marked
from paper_assets.stores.rewrite_progress import finish, keep_attempt, open_items, replace_set
from paper_assets.stores.rewrites import rewrite_item
from tests.digests.invented import attempt
from tests.loopback_llm import hang, loopback_llm
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import LATEST, PROFILE, Page, served, waiting_item
from tests.page.invented_desk import attempt as written
from tests.rewriting.scripted import NOW, Play, writing


def test_a_rewrite_is_shown_beside_its_original_with_doubtful_numbers_marked(
    page_of_a_year: Page, browser: Browser
) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/rewrites")
        page.locator("section", has_text="Waiting for your decision").get_by_role("link").first.click()
        expect(page.locator("#status")).to_have_text("Attempt 2 waits for your decision.")
        expect(page.locator(".gauge svg")).to_have_attribute("aria-label", "Score 87 of 100; marks at 75, 85, 90, 95")
        expect(page.locator("p.text ins").first).to_contain_text("and forecasts help")
        page.get_by_role("link", name="compare with the original").click()
        expect(page.locator("p.text ins").first).to_contain_text("Roads are full")
        page.locator("table").get_by_role("link", name="1", exact=True).click()
        expect(page.locator("p.text mark")).to_have_text("40")


def test_a_doubtful_number_marks_no_part_of_another_and_formulas_are_mathematics(
    page_of_a_year: Page, browser: Browser
) -> None:
    original = r"Sorting takes 4.7, 4.5 and 4.4 hours, that is $n\log n$ steps."
    made = replace(written(1, 86, f"Of 4 roads: {original}"), unsupported=("4",))
    item = waiting_item(page_of_a_year.desk, made, title=r"Roads sorted in $n\log n$ steps", original_text=original)
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.url}/p/{PROFILE}/rewrites/{item.item}")
        expect(page.locator("p.text mark")).to_have_text(["4"])
        expect(page.locator("p.text").first).to_contain_text("Of 4 roads: Sorting takes 4.7, 4.5 and 4.4 hours")
        expect(page.locator("p.text math")).to_have_count(2)
        expect(page.locator("h1 math")).to_have_count(1)
        assert not {"$", "\\"} & set(page.locator("main").inner_text())
        keep_picture(page, "rewrite-formulas")
        page.goto(f"{page_of_a_year.url}/p/{PROFILE}/rewrites")
        expect(page.locator(".rows h3", has_text="Roads sorted in").locator("math")).to_have_count(1)


def test_a_rewrite_either_waits_for_the_reader_or_runs_to_its_end(page_of_a_year: Page, browser: Browser) -> None:
    desk = page_of_a_year.desk
    newest = wanted_items(desk.warehouse, load_profile(desk.folder / "profiles" / PROFILE), LATEST)
    item = waiting_item(desk, title="A road that is rewritten")
    replace_set(desk.warehouse, LATEST, PROFILE, [*newest, item], now=NOW)
    waiting_item(desk, title="A road of an old list")
    with loopback_llm(lambda request: hang()) as model:
        environ = {**model.environ("openai"), "OPENAI_MODEL": "invented"}
        with served(page_of_a_year.desk, **environ) as with_model, visitor(browser) as page:
            page.goto(f"{with_model.url}/p/{PROFILE}/rewrites")
            waiting = page.locator("section", has=page.get_by_role("heading", name="Waiting for your decision"))
            expect(waiting).to_contain_text("A road that is rewritten")
            expect(waiting).not_to_contain_text("A road of an old list")
            expired = page.locator("section", has=page.get_by_role("heading", name="Not decided while their list"))
            expect(expired).to_contain_text("A road of an old list")
            expect(page.locator("main")).not_to_contain_text("updates itself")
            waiting.get_by_role("link", name="A road that is rewritten").click()
            expect(page.locator("#status")).to_have_text("Attempt 1 waits for your decision.")
            page.get_by_role("button", name="Run to its end").click()
            expect(page.locator("#status")).to_have_text("Running to its end; this page updates itself.")
            expect(page.locator(".decisions button")).to_have_text(["Cancel this rewrite"])
            expect(page.locator("main")).not_to_contain_text("your decision")
            while not model.requests:
                page.wait_for_timeout(100)
            page.goto(f"{with_model.url}/p/{PROFILE}/rewrites")
            expect(waiting).not_to_contain_text("A road that is rewritten")
            row = page.locator(".rows li", has_text="A road that is rewritten")
            expect(row).to_contain_text("Being written")
            expect(row).not_to_contain_text("updates itself")
            behind = waiting_item(desk, title="A road that comes second")
            page.goto(f"{with_model.url}/p/{PROFILE}/rewrites/{behind.item}")
            page.get_by_role("button", name="Retry").click()
            expect(page.locator("#status")).to_contain_text("Waits for 1 other rewrite to be written first; this page")
    replace_set(desk.warehouse, LATEST, PROFILE, newest, now=NOW)


def test_a_rewrite_made_by_the_command_is_listed_and_linked_from_its_paper(
    page_of_a_year: Page, browser: Browser
) -> None:
    desk = page_of_a_year.desk
    profile = load_profile(desk.folder / "profiles" / PROFILE)
    item = replace(wanted_items(desk.warehouse, profile, LATEST)[0], item="by-command", target_level="expert")
    open_items(desk.warehouse, [item], now=NOW)
    keep_attempt(desk.warehouse, item.item, written(1, 86, "Roads are full."))
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/rewrites")
        row = page.locator(".rows li", has_text="for an expert")
        expect(row).to_contain_text("waits for your decision")
        page.goto(f"{page_of_a_year.today}/paper/{item.paper_id}")
        page.get_by_role("link", name="for an expert").click()
        expect(page.locator("#status")).to_have_text("Attempt 1 waits for your decision.")
        page.goto(f"{page_of_a_year.url}/p/speech/rewrites")
        expect(page.locator("main")).not_to_contain_text("for an expert")


def test_a_decision_made_in_two_tabs_counts_once(page_of_a_year: Page, browser: Browser) -> None:
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


def test_a_retry_continues_automatically_and_an_outdated_page_decides_nothing(
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
            one.get_by_role("button", name="Run to its end").click()
            expect(one.locator("#status")).to_contain_text("passed")
            while rewrite_item(page_of_a_year.desk.warehouse, item.item).outcome is None:  # good enough, then closed
                one.wait_for_timeout(100)
        stands = rewrite_item(page_of_a_year.desk.warehouse, item.item)
        assert [attempt.score for attempt in stands.attempts] == [86, 88, 93]
        assert (stands.outcome, dict(stands.decisions)) == ("passed", {1: "retry", 2: "retry"})
        assert len(writing(model)) == 4, "two questions an attempt, none asked twice"
        assert len(model.requests) == 6, "and one check of its sentences"


def test_a_best_practice_is_removed_after_one_more_question(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/practices?level=expert")
        expect(page.locator(".rows li")).to_have_count(1)
        page.locator(".rows a").click()
        page.get_by_role("link", name="Remove").click()
        page.get_by_role("button", name="Remove permanently").click()
        expect(page.get_by_role("status")).to_contain_text("is removed")
        expect(page.locator(".sum").first).to_contain_text("2 rewrites kept")


def test_a_question_is_asked_at_once_and_kept_once(page_of_a_year: Page, browser: Browser) -> None:
    file = page_of_a_year.desk.folder / "profiles" / PROFILE / "questions.json"
    before = json.loads(file.read_text("utf-8"))
    with visitor(browser) as page, visitor(browser) as other:
        page.goto(f"{page_of_a_year.today}/evidence")
        page.get_by_label("Ask a question").fill("Do trees know when they are wrong?")
        page.locator("summary", has_text="Compare").click()
        page.get_by_label("sides of my own").check()
        page.get_by_label("Own sides, one a line").fill("yes: calibration of tree ensembles\nno: speech recognition")
        page.get_by_role("button", name="Ask").click()
        expect(page.locator("#answer h4")).to_have_text(["yes", "no"])
        expect(page.locator("#answer .passage").first).to_contain_text("tree")
        other.goto(page.url)
        assert json.loads(file.read_text("utf-8")) == before, "asking keeps nothing"
        for tab, message in ((page, "is kept"), (other, "kept already; nothing was changed")):
            tab.get_by_role("button", name="Keep this question").click()
            expect(tab.get_by_role("status")).to_contain_text(message)
    after = json.loads(file.read_text("utf-8"))
    assert after[:-1] == before
    assert after[-1]["question"] == "Do trees know when they are wrong?"
    file.write_text(json.dumps(before), encoding="utf-8")


def test_best_practices_are_listed_by_title_and_a_wrong_filter_is_explained(
    page_of_a_year: Page, browser: Browser
) -> None:
    with visitor(browser, java_script_enabled=False) as page:
        page.goto(f"{page_of_a_year.today}/practices?level=public")
        expect(page.locator(".rows h2")).to_have_text(["Quantised inference for language models, part 100"])
        page.get_by_label("Minimum score").fill("many")
        page.get_by_role("button", name="Filter").click()
        expect(page.get_by_role("alert")).to_contain_text("must be a number")
        expect(page.get_by_label("Minimum score")).to_have_value("many")


def test_a_question_asked_at_once_is_judged_by_the_judge_of_stances(page_of_a_year: Page) -> None:
    desk = page_of_a_year.desk
    settings = desk.settings
    opened = open_workspace(settings, desk.environment, clock=lambda: NOW)
    workspace = replace(opened, load_judge=lambda: no_judge("this judge rests today"))
    record = {"question": "Do roads help?", "filters": {"sides": [{"name": "for", "stance": "supports"}]}}
    record |= {"rewritten_question": "traffic forecasting on road networks", "generation_required": True}
    answer = ask(workspace, load_profile(desk.folder / "profiles" / PROFILE), record, as_of=LATEST)
    assert "this judge rests today" in str(answer["sides"])


def test_a_question_is_answered_for_and_against_unless_the_reader_chooses_otherwise(
    page_of_a_year: Page, browser: Browser
) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/evidence?question=Do+roads+help%3F")
        expect(page.locator("#answer h2")).to_have_text("Do roads help?")
        expect(page.locator("#answer")).not_to_contain_text("cs.LG")
        expect(page.locator("#answer")).not_to_contain_text("`")


def test_a_name_that_was_not_checked_is_marked_and_can_be_accepted(page_of_a_year: Page, browser: Browser) -> None:
    item, desk = waiting_item(page_of_a_year.desk), page_of_a_year.desk
    keep_attempt(desk.warehouse, item.item, attempt(2, 97, "Zorvax says that roads are full."))
    finish(desk.warehouse, item.item, outcome="passed", kept=2, note="not archived")
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.url}/p/{PROFILE}/rewrites/{item.item}")
        expect(page.locator("p.text mark")).to_have_text("Zorvax")
        expect(page.locator(".hint").first).to_contain_text("not checked against the original")
        page.get_by_role("button", name="Accept as it is").click()
        expect(page.get_by_role("status")).to_contain_text("attempt 2 is accepted")
        expect(page.locator(".hint").first).not_to_contain_text("not checked")
        expect(page.locator("p.text mark")).to_have_count(0)
    assert rewrite_item(desk.warehouse, item.item).accepted >= {"zorvax"}


def test_a_difference_never_cuts_a_formula() -> None:
    before, after = "It takes $n^2$ steps and $x$.", "It takes $n^3$ steps, $x$ and 7 more."
    pieces = marked(after, before, ["7", "3"])
    whole = whole_formulas(pieces)
    assert "".join(piece.text for piece in whole) == after
    [formula] = [piece for piece in whole if "n^3" in piece.text]
    assert formula.text.strip() == "$n^3$"
    assert formula.new
    assert formula.doubtful
    shown = "".join(with_mathml(piece.text) for piece in whole)
    assert shown.count("<math") == 2
    assert "$" not in shown


def test_pieces_without_formulas_stay_as_they_are() -> None:
    pieces = marked("Roads cost 4 apples.", "Roads cost apples.", ["4"])
    assert whole_formulas(pieces) == pieces
