"""Today: rating and undo with one key, with and without scripts; messages in view; other people's markup stays text."""

import json
import re
from collections.abc import Iterator
from datetime import date

import pytest
from playwright.sync_api import Browser, Route, expect
from playwright.sync_api import Page as BrowserPage

from paper_assets.interfaces.page.desk import now
from paper_assets.interfaces.page.paper_rows import spans_about
from paper_assets.learning.ratings import rate, ratings_by_id
from paper_assets.ranking.final_list import order_value
from paper_assets.stores.feedback import seen_papers
from paper_assets.stores.rankings import ranking
from paper_assets.text.words import stem
from tests.page.browser import keep_picture, visitor
from tests.page.in_process import page_client
from tests.page.invented_desk import DAYS, HOSTILE, LATEST, PROFILE, Page
from tests.waiting import until


def listed(page: Page) -> list[str]:
    rows = ranking(page.desk.warehouse, LATEST, PROFILE).rows
    return rows.filter(rows.column("shown")).column("paper_id").to_pylist()


def ratings(page: Page) -> dict[str, str]:
    return ratings_by_id(page.desk.warehouse, PROFILE)


def pressed(page: BrowserPage, paper_id: str, rating: str) -> None:
    """Wait until the page shows this rating of the paper and nothing is being sent."""
    article = page.locator(f'[id="paper-{paper_id}"]')
    expect(article).to_have_attribute("data-rating", rating)
    expect(page.locator("[aria-busy]")).to_have_count(0)
    expect(article.locator('[aria-pressed="true"]')).to_have_count(0 if rating == "none" else 1)


@pytest.fixture
def nothing_rated(page_of_a_year: Page) -> Iterator[Page]:
    """The page before any rating or signal; those of a test are removed after it."""
    forget_everything(page_of_a_year)
    yield page_of_a_year
    forget_everything(page_of_a_year)


def forget_everything(page: Page) -> None:
    with page.desk.warehouse.writing() as connection:
        connection.execute("delete from ratings")
        connection.execute("delete from seen_papers")


def test_a_list_is_rated_with_as_many_keys_as_it_has_papers(nothing_rated: Page, browser: Browser) -> None:
    first, second, third, fourth = listed(nothing_rated)
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        expect(page).to_have_title(re.compile(r"^\(4\) traffic"))
        for key in "wlnw":  # no paper is chosen before the first key
            page.keyboard.press(key)
        pressed(page, fourth, "worth")
        expect(page.get_by_role("status")).to_contain_text("worth reading")
        expect(page).to_have_title(re.compile(r"^traffic"))  # nothing is left to read
        keep_picture(page, "today-rated")
    assert ratings(nothing_rated) == {first: "worth", second: "later", third: "no", fourth: "worth"}


def test_undo_reverts_the_latest_rating_and_nothing_else_however_fast(nothing_rated: Page, browser: Browser) -> None:
    first, second, third, _ = listed(nothing_rated)

    def slowly(route: Route) -> None:
        page.wait_for_timeout(300)
        route.continue_()

    with visitor(browser) as page:
        page.route("**/rate", slowly)
        page.goto(nothing_rated.today)
        for key in "wwlu":  # the third rating is undone before its answer has come
            page.keyboard.press(key)
        pressed(page, third, "none")
        pressed(page, second, "worth")
        expect(page.locator(f'[id="paper-{third}"]')).to_be_focused()
        assert ratings(nothing_rated) == {first: "worth", second: "worth"}

        page.keyboard.press("k")
        page.keyboard.press("l")  # worth becomes later, and undo restores worth
        pressed(page, second, "later")
        page.keyboard.press("u")
        pressed(page, second, "worth")
        for _ in range(2):
            page.keyboard.press("u")
        pressed(page, first, "none")
        pressed(page, second, "none")
        page.keyboard.press("u")
        expect(page.get_by_role("status")).to_contain_text("no rating to undo")
    assert ratings(nothing_rated) == {}


_BEHIND = """text => [...document.querySelectorAll("p")]
  .filter((each) => each.textContent === text && each.getBoundingClientRect().height > 1)
  .flatMap((message) => {
    const { left, top, width, height } = message.getBoundingClientRect();
    const points = [0.05, 0.5, 0.95].map((part) => document.elementsFromPoint(left + part * width, top + height / 2));
    return points.flat().filter((each) => !each.contains(message)).map((each) => each.outerHTML.slice(0, 80));
  })"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("layout", ["compact", "comfortable"])
def test_a_message_covers_nothing_however_far_the_reader_has_scrolled(
    nothing_rated: Page, browser: Browser, width: int, layout: str
) -> None:
    text = "There is no rating to undo in this tab."
    with visitor(browser, width=width, reduced_motion="reduce") as page:
        page.goto(f"{nothing_rated.today}?layout={layout}")
        height = page.evaluate("document.documentElement.scrollHeight - innerHeight")
        for part in range(5):
            page.evaluate("y => scrollTo(0, y)", height * part // 4)
            page.keyboard.press("u")
            shown = page.locator("p:not([role=status])").get_by_text(text, exact=True)
            expect(page.get_by_role("status")).to_have_text(text)
            keep_picture(page, f"message-{layout}-{part}-{width}")
            assert page.evaluate(_BEHIND, text) == []
            expect(shown).to_be_in_viewport(ratio=1)
            keep_picture(page, f"message-{layout}-{part}-{width}")
            page.keyboard.press("Escape")
            expect(shown).to_have_count(0)


def test_the_message_of_an_undo_that_changed_nothing_is_at_its_paper(nothing_rated: Page, browser: Browser) -> None:
    paper = listed(nothing_rated)[-1]
    with visitor(browser, width=390) as page:
        page.goto(nothing_rated.today)
        form = page.locator(f'[id="paper-{paper}"] form.rate')
        form.evaluate("""form => {
            form.classList.remove("rate");  // as where the script did not start
            form.querySelector('[value="later"]').click();
        }""")
        message = page.locator(f'[id="paper-{paper}"] .message')
        expect(message).to_contain_text("for later.")
        expect(message).to_be_in_viewport(ratio=1)
        page.locator(f'[id="paper-{paper}"]').get_by_role("button", name="Later").click()
        pressed(page, paper, "none")


def test_a_message_is_in_view_wherever_the_reader_is(nothing_rated: Page, browser: Browser) -> None:
    last = listed(nothing_rated)[-1]
    with visitor(browser, width=390) as page:
        page.route("**/rate", lambda route: route.abort())
        page.goto(f"{nothing_rated.today}?layout=comfortable")
        page.locator(f'[id="paper-{last}"]').get_by_role("button", name="Later").click()
        expect(page.get_by_role("status")).to_contain_text("Could not save the rating")
        pressed(page, last, "none")
        row = page.locator(f'[id="paper-{last}"] .row-fault')
        expect(row).to_contain_text("Could not save the rating: the desk does not answer.")
        expect(row).to_be_in_viewport()
        page.keyboard.press("u")
        expect(page.locator(".message")).to_have_text("There is no rating to undo in this tab.")
        expect(page.locator(".message")).to_be_in_viewport(ratio=1)
        assert ratings(nothing_rated) == {}
        page.unroute("**/rate")
        row.get_by_role("button", name="Try again").click()
        pressed(page, last, "later")
        expect(row).to_have_count(0)
    assert ratings(nothing_rated) == {last: "later"}


def test_the_list_of_keys_opens_over_the_page_and_returns_the_focus(nothing_rated: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        page.keyboard.press("j")
        page.keyboard.press("j")
        second = page.locator(f'[id="paper-{listed(nothing_rated)[1]}"]')
        expect(second).to_be_focused()
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        keep_picture(page, "today-keys")
        page.keyboard.press("w")  # rates nothing while the list of keys is open
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog", name="Keys")).to_be_hidden()
        expect(second).to_be_focused()
        page.keyboard.press("?")
        page.keyboard.press("?")
        expect(second).to_be_focused()
    assert ratings(nothing_rated) == {}


def test_the_abstract_and_the_reasons_are_one_key_away(nothing_rated: Page, browser: Browser) -> None:
    first = listed(nothing_rated)[0]
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        article = page.locator(f'[id="paper-{first}"]')
        expect(article.locator(".lead")).to_be_visible()
        expect(article.locator(".abstract")).to_be_hidden()
        page.keyboard.press("j")
        page.keyboard.press("a")
        expect(article.locator(".abstract")).to_be_visible()
        page.keyboard.press("w")  # the answer replaces the paper, whose details stay open
        pressed(page, first, "worth")
        expect(article.locator(".abstract")).to_be_visible()
        page.keyboard.press("k")
        page.keyboard.press("y")
        expect(article.locator(".why ul")).to_be_in_viewport()


def test_the_chosen_layout_is_remembered(nothing_rated: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        page.get_by_role("link", name="abstracts", exact=True).click()
        expect(page.locator("article .abstract").first).to_be_visible()
        page.goto(f"{nothing_rated.today}/{DAYS[1]}")
        expect(page.locator("article .abstract").first).to_be_visible()
        page.get_by_role("link", name="compact", exact=True).click()
        expect(page.locator("article .abstract").first).to_be_hidden()


def test_another_tab_shows_a_rating_without_a_reload(nothing_rated: Page, browser: Browser) -> None:
    first = listed(nothing_rated)[0]
    desk = nothing_rated.desk
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        rate(
            desk.warehouse, PROFILE, first, "later",
            given_in="command line", now=now(), profiles_dir=desk.folder / "profiles",
        )  # fmt: skip
        pressed(page, first, "later")
        expect(page.get_by_role("status")).to_contain_text("Ratings from another tab")


def test_a_rating_that_is_being_sent_is_not_replaced_by_an_older_state(nothing_rated: Page, browser: Browser) -> None:
    first, second = listed(nothing_rated)[:2]
    desk, views, sent = nothing_rated.desk, list[Route](), list[Route]()
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        page.route(nothing_rated.today, lambda route: views.append(route))
        rate(
            desk.warehouse, PROFILE, second, "later",
            given_in="command line", now=now(), profiles_dir=desk.folder / "profiles",
        )  # fmt: skip
        until(lambda: page.evaluate("1") and views)  # the page asks for what another tab rated
        page.route("**/rate", lambda route: sent.append(route))
        page.keyboard.press("w")
        until(lambda: page.evaluate("1") and sent)
        with page.expect_request_finished(lambda request: request.url == nothing_rated.today):
            views[0].continue_()
        page.wait_for_timeout(300)
        expect(page.locator(f'[id="paper-{first}"]')).to_have_attribute("data-rating", "worth")
        page.unroute(nothing_rated.today)
        sent[0].continue_()
        pressed(page, first, "worth")
        pressed(page, second, "later")


def test_a_rating_is_kept_when_the_page_is_left_at_once(nothing_rated: Page, browser: Browser) -> None:
    first, second, third = listed(nothing_rated)[:3]
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        with page.expect_navigation():  # the first is being sent, the others wait for it
            page.evaluate(
                """(ids) => {
                    const article = (id) => document.getElementById(`paper-${id}`);
                    const press = (id, word) => article(id).querySelector(`[data-word="${word}"]`).click();
                    press(ids[0], "worth"); press(ids[1], "later"); press(ids[2], "no");
                    location.reload();
                }""",
                [first, second, third],
            )
        pressed(page, first, "worth")  # the page follows what the desk has stored
        pressed(page, second, "later")
        pressed(page, third, "no")
    assert ratings(nothing_rated) == {first: "worth", second: "later", third: "no"}


def test_undo_reverts_no_rating_of_another_tab(nothing_rated: Page, browser: Browser) -> None:
    first, second = listed(nothing_rated)[:2]
    with visitor(browser) as one:
        one.goto(nothing_rated.today)
        other = one.context.new_page()
        other.goto(nothing_rated.today)
        one.bring_to_front()
        for key in "wl":
            one.keyboard.press(key)
        pressed(one, second, "later")
        other.bring_to_front()
        pressed(other, second, "later")  # seen there without a reload
        other.keyboard.press("u")
        expect(other.get_by_role("status")).to_contain_text("no rating to undo in this tab")
        assert ratings(nothing_rated) == {first: "worth", second: "later"}
        other.locator(f'[id="paper-{second}"] [data-word="no"]').click()
        pressed(other, second, "no")
        one.bring_to_front()
        one.keyboard.press("u")
        expect(one.get_by_role("status")).to_contain_text("that rating is kept")
        pressed(one, second, "no")
        one.keyboard.press("u")  # its own earlier rating
        pressed(one, first, "none")
    assert ratings(nothing_rated) == {second: "no"}


def test_the_whole_list_can_be_worked_with_the_tab_key(nothing_rated: Page, browser: Browser) -> None:
    first = listed(nothing_rated)[0]
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        button = page.locator(f'[id="paper-{first}"] [data-word="later"]')
        for _ in range(14):
            page.keyboard.press("Tab")
            if button.evaluate("element => element === document.activeElement"):
                break
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "true")
        expect(button).to_be_focused()
        page.keyboard.press("Enter")
        expect(button).to_have_attribute("aria-pressed", "false")
    assert ratings(nothing_rated) == {}


_BELOW_THE_BUTTONS = """row => {
  const at = (each) => row.querySelector(each).getBoundingClientRect();
  return at(".rate").bottom <= at(".message").top && at(".message").bottom <= row.getBoundingClientRect().bottom;
}"""


def test_without_scripts_a_click_does_the_same(nothing_rated: Page, browser: Browser) -> None:
    first = listed(nothing_rated)[0]
    with visitor(browser, java_script_enabled=False) as page:
        page.goto(nothing_rated.today)
        row = page.locator(f'[id="paper-{first}"]')
        row.get_by_role("button", name="Worth reading").click()
        expect(page.get_by_role("status")).to_contain_text("worth reading")
        message = row.locator(".message")
        expect(message).to_contain_text("worth reading")
        expect(message).to_be_in_viewport()
        assert row.evaluate(_BELOW_THE_BUTTONS)
        keep_picture(page, "today-rated-without-scripts")
        assert ratings(nothing_rated) == {first: "worth"}
        row.get_by_role("button", name="Worth reading").click()
        expect(message).to_contain_text("rating removed")
        page.goto(nothing_rated.today)
        expect(message).to_have_count(0)
    assert ratings(nothing_rated) == {}


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
        page.get_by_text("About this list").click()
        page.get_by_label("arXiv id, or words of its title").fill("protein structure")
        page.keyboard.press("Enter")
        page.get_by_role("link", name="Protein structure from sequence alone, part 301").click()
        expect(page.locator(".verdict")).to_have_text("It is not in the list: a filter removed it.")
        expect(page.locator(".sentences")).to_contain_text("protein")
        stored = ranking(page_of_a_year.desk.warehouse, LATEST, PROFILE)
        row = stored.listed[-1]
        page.get_by_label("arXiv id, or words of its title").fill(row["paper_id"])
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_contain_text("It is number")
        orders = order_value(row, stored.header)
        assert f"{orders:.2f}" != f"{row['final']:.2f}"
        expect(page.locator(".score .final")).to_have_text(f"{orders:.2f} match")  # not the score
        page.get_by_label("arXiv id, or words of its title").fill("2501.00001")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_contain_text("Paper 2501.00001 is not stored")
        page.get_by_label("arXiv id, or words of its title").fill("words of no title")
        page.keyboard.press("Enter")
        expect(page.locator(".verdict")).to_contain_text("No stored paper has this id or these words in its title.")


def test_each_earlier_day_has_its_url(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(page_of_a_year.today)
        page.locator('a[rel="prev"]').click()
        expect(page).to_have_url(f"{page_of_a_year.today}/{DAYS[1]}")
        page.get_by_role("link", name="days", exact=True).click()
        expect(page.locator(".days a")).to_have_count(365)


def test_the_likely_papers_after_the_list_are_one_click_away_and_can_be_rated(
    nothing_rated: Page, browser: Browser
) -> None:
    warehouse, day = nothing_rated.desk.warehouse, DAYS[1]
    rows = ranking(warehouse, date.fromisoformat(day), PROFILE).rows.to_pylist()
    more = [row["paper_id"] for row in rows if not row["shown"]][:2]
    with warehouse.writing() as connection:
        [(header,)] = connection.execute(
            "select header from ranking_sets where day = ? and profile = ?", [day, PROFILE]
        ).fetchall()
        set_header = "update ranking_sets set header = ? where day = ? and profile = ?"
        changed = json.loads(header) | {"more_likely": len(more), "questions": more[:1]}
        connection.execute(set_header, [json.dumps(changed), day, PROFILE])
    try:
        with visitor(browser) as page:
            page.goto(f"{nothing_rated.today}/{day}")
            ids = page.locator("article[id]").evaluate_all("all => all.map((each) => each.id)")
            assert len(ids) == len(set(ids)), "a likely paper is not asked about a second time"
            expect(page.locator("#more h2")).to_have_text(f"{len(more)} more likely")
            assert page.locator("#more article").evaluate_all("all => all.map((each) => each.id)") == [
                f"paper-{each}" for each in more
            ]
            article = page.locator(f'#more [id="paper-{more[0]}"]')
            article.get_by_role("button", name="Later").click()
            pressed(page, more[0], "later")
            keep_picture(page, "today-more-likely")
    finally:
        warehouse.run(set_header, [header, day, PROFILE])
    assert ratings(nothing_rated) == {more[0]: "later"}


def test_the_best_possible_papers_follow_behind_one_click_and_can_be_rated(
    nothing_rated: Page, browser: Browser
) -> None:
    rows = ranking(nothing_rated.desk.warehouse, LATEST, PROFILE).rows.to_pylist()
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        outside = page.locator("#possible article")
        ids = outside.evaluate_all("all => all.map((each) => each.id.replace('paper-', ''))")
        ranks = [row["rank"] for row in rows if row["paper_id"] in ids and not row["shown"]]
        assert len(ranks) == len(ids) > 0
        assert ranks == sorted(ranks)
        everything = page.locator("article[id]").evaluate_all("all => all.map((each) => each.id)")
        assert len(everything) == len(set(everything)), "no paper stands on the page twice"
        expect(outside.first).to_be_hidden()
        page.locator("#possible > summary").click()
        expect(outside.first).to_be_visible()
        outside.first.get_by_role("button", name="Not for me").click()
        pressed(page, ids[0], "no")
        keep_picture(page, "today-possible")
    assert ratings(nothing_rated) == {ids[0]: "no"}


def test_a_row_has_what_one_decides_by_and_everything_else_is_behind_a_key_or_below(
    nothing_rated: Page, browser: Browser
) -> None:
    first = listed(nothing_rated)[0]
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        row = page.locator(f'[id="paper-{first}"]')
        expect(row.locator("h2 mark").first).to_have_text("Traffic")
        expect(row.locator(".abstract mark").first).to_be_attached()
        parts = [each.split("\n")[0] for each in row.locator(".brief .facts > span").all_inner_texts()]
        assert parts[:3] == [first[-3:], "cs.LG", "4 Mar"] and parts[3].startswith("traffic forecasting on")
        expect(row.locator(".level [role=img]")).to_have_attribute("aria-label", "very likely")
        opacity = "element => getComputedStyle(element).opacity"
        later = row.get_by_role("button", name="Later")
        assert later.evaluate(opacity) == "0", "buttons are quiet until the row is pointed at"
        row.hover()
        assert later.evaluate(opacity) == "1"
        below = page.locator("main > ol.papers ~ :is(section, form, details)")
        assert below.last.get_attribute("id") == "about"
        for words in ("Why is a paper not here?", "What changed", "Preferences to check"):
            expect(page.locator("#about").get_by_text(words).first).to_be_hidden()
    with visitor(browser, has_touch=True, is_mobile=True, width=390) as page:
        page.goto(nothing_rated.today)
        later = page.locator(f'[id="paper-{first}"]').get_by_role("button", name="Later")
        assert later.evaluate(opacity) == "1", "always visible on touch"


def test_a_usual_word_of_an_interest_is_marked_beside_a_telling_one_only() -> None:
    text, about = "Images, and medical-image segmentation of an image", {stem("medical"): True, stem("image"): False}
    assert [text[start:end] for start, end in spans_about(text, about)] == ["medical", "image"]
    assert spans_about(text, {stem("image"): False}) == []


def test_back_returns_to_the_paper_that_one_left(nothing_rated: Page, browser: Browser) -> None:
    last = listed(nothing_rated)[-1]
    with visitor(browser, width=390) as page:
        page.goto(nothing_rated.today)
        row = page.locator(f'[id="paper-{last}"]')
        expect(row).not_to_be_in_viewport()
        row.get_by_role("link").first.click()
        page.wait_for_url("**/paper/*")
        page.go_back()
        expect(row).to_be_focused()
        expect(row).to_be_in_viewport()


def test_a_paper_that_was_passed_over_twice_is_not_asked_about_again(nothing_rated: Page, browser: Browser) -> None:
    warehouse = nothing_rated.desk.warehouse
    rows = ranking(warehouse, date.fromisoformat(DAYS[0]), PROFILE).rows.to_pylist()
    asked = [row["paper_id"] for row in rows if not row["shown"]][-1]
    headers = {day: ranking(warehouse, date.fromisoformat(day), PROFILE).header for day in DAYS}
    set_header = "update ranking_sets set header = ? where day = ? and profile = ?"
    others = "update ranking_sets set header = json_merge_patch(header, '{\"questions\": []}') where day < ?"
    with warehouse.writing() as connection:
        kept = connection.execute("select header, day, profile from ranking_sets").fetchall()
        connection.execute(others, [DAYS[0]])
        for day, header in headers.items():
            connection.execute(set_header, [json.dumps(header | {"questions": [asked]}), day, PROFILE])
    try:
        with visitor(browser) as page:
            for day, times in zip(DAYS, (1, 1, 0), strict=True):
                page.goto(f"{nothing_rated.today}/{day}")
                expect(page.locator(f'#asks [id="paper-{asked}"]')).to_have_count(times)
    finally:
        with warehouse.writing() as connection:
            connection.executemany(set_header, kept)


def test_what_is_left_of_a_list_is_marked_as_seen_with_one_key_and_unmarked(
    nothing_rated: Page, browser: Browser
) -> None:
    first, *others = listed(nothing_rated)
    warehouse = nothing_rated.desk.warehouse
    with visitor(browser) as page:
        page.goto(nothing_rated.today)
        page.keyboard.press("w")
        pressed(page, first, "worth")
        expect(page.locator("#all-seen")).to_contain_text("3 papers without a rating")
        page.keyboard.press("s")
        expect(page.get_by_role("status")).to_contain_text("3 papers marked as seen")
        expect(page.locator("small.seen")).to_have_count(3)
        assert seen_papers(warehouse, PROFILE) == frozenset(others)
        keep_picture(page, "today-seen")
        page.keyboard.press("u")  # reverts what was done last
        expect(page.locator("small.seen")).to_have_count(0)
        page.get_by_role("button", name="All seen").click()
        expect(page.locator("small.seen")).to_have_count(3)
        page.get_by_role("button", name="Mark unrated papers as unseen").click()
        expect(page.locator("small.seen")).to_have_count(0)
    assert seen_papers(warehouse, PROFILE) == frozenset()
    assert ratings(nothing_rated) == {first: "worth"}


def test_a_list_and_a_paper_are_shared_as_markdown(nothing_rated: Page, browser: Browser) -> None:
    first, *others = listed(nothing_rated)
    with visitor(browser, permissions=["clipboard-read", "clipboard-write"]) as page:
        page.goto(nothing_rated.today)
        page.get_by_text("About this list").click()
        page.get_by_role("button", name="Copy", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("Copied")
        copied = page.evaluate("navigator.clipboard.readText()").split("\n")
        assert len(copied) == 1 + len(others)
        assert copied[0].startswith("- [") and f"](https://arxiv.org/abs/{first}" in copied[0]
        assert "<script>" not in "".join(copied)  # a title from outside stays text in HTML made of this Markdown
        page.goto(f"{nothing_rated.today}/paper/{first}")
        page.get_by_role("button", name="Copy as Markdown").click()
        expect(page.get_by_role("status")).to_contain_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()") == copied[0]


def test_a_day_that_was_ranked_once_says_that_there_is_nothing_to_compare(page_of_a_year: Page) -> None:
    with page_client(page_of_a_year.desk) as client:
        shown = client.get(f"/p/{PROFILE}/{DAYS[0]}/changes?since=edit").text
    assert "is the first of that day; nothing to compare." in shown
    assert "Nothing that a reader would notice" not in shown


def test_the_lists_of_a_removed_profile_say_that_it_was_removed(page_of_a_year: Page) -> None:
    folder = page_of_a_year.desk.folder / "profiles" / PROFILE
    with page_client(page_of_a_year.desk) as client:
        assert "was removed" not in client.get(f"/p/{PROFILE}").text
        aside = folder.rename(folder.with_name("aside"))
        try:
            assert f"The profile {PROFILE} was removed and gets no new lists." in client.get(f"/p/{PROFILE}").text
        finally:
            aside.rename(folder)
