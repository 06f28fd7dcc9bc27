"""The profile on the page: the preview is what the run then stores; invalid and outdated edits are not saved."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Dialog, Route, expect
from playwright.sync_api import Page as BrowserPage

from paper_assets.models.embedder import load_embedder
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.profile import load_profile
from paper_assets.ranking.levels import level_of_row
from paper_assets.stores.profiles import keep_profile
from paper_assets.stores.rankings import ranking, ranking_inputs
from tests.desk import Desk
from tests.mcp.ranked_desk import NOBODY
from tests.page.browser import axe_script, keep_picture, serious_findings, small_targets, visitor
from tests.page.in_process import page_client
from tests.page.invented_desk import CONTENT, LATEST, PROFILE, Page
from tests.rewriting.scripted import NOW
from tests.waiting import until


def file_of(page: Page) -> Path:
    return page.desk.folder / "profiles" / PROFILE / "profile.json"


def ranked_by_a_run(desk: Desk) -> list[tuple[str, str]]:
    """Rank the profile as its file is now; return paper and level of the stored list."""
    settings = desk.settings
    profile = load_profile(desk.folder / "profiles" / PROFILE)
    keep_profile(desk.warehouse, profile)
    keep_candidates(desk.warehouse, profile_day(desk.warehouse, profile, LATEST, settings=settings), settings=settings)
    embedder = load_embedder(settings.embedding_model)
    keep_ranking(desk.warehouse, profile, LATEST, embedder=embedder, verifier=NOBODY, settings=settings, now=NOW)
    stored = ranking(desk.warehouse, LATEST, PROFILE)
    shown = stored.rows.filter(stored.rows.column("shown")).to_pylist()
    levels = [level_of_row(row, stored.header) for row in shown]
    return [(row["paper_id"], level.name if level else "") for row, level in zip(shown, levels, strict=True)]


def previewed(page: BrowserPage) -> list[tuple[str, str]]:
    """Return the papers of the preview and how likely each is."""
    items = page.locator("#preview li[data-paper]")
    return [
        (items.nth(at).get_attribute("data-paper") or "", items.nth(at).locator("small").inner_text())
        for at in range(items.count())
    ]


def test_a_preview_shows_what_the_run_then_stores_and_stores_nothing_itself(
    page_of_a_year: Page, browser: Browser
) -> None:
    desk = page_of_a_year.desk
    before = ranking_inputs(desk.warehouse, LATEST, PROFILE), file_of(page_of_a_year).read_bytes()
    keep_profile(desk.warehouse, load_profile(desk.folder / "profiles" / PROFILE))
    try:
        with visitor(browser) as page:
            page.goto(f"{page_of_a_year.today}/profile")
            page.get_by_label("Main interests").fill("speech recognition for rare languages")
            page.get_by_label("Preferred keywords").fill("speech\nlanguages")
            page.get_by_label("Excluded keywords").fill("protein\ntree")
            expect(page.locator("#edits li")).to_have_text(
                [
                    "Main interests: + speech recognition for rare languages, - traffic forecasting on road networks",
                    "Preferred keywords: + speech, + languages, - traffic",
                    re.compile(r"“tree” removes 3 of 19 papers"),
                ]
            )
            page.get_by_label("Excluded keywords").fill("protein")
            expect(page.locator("#edits li")).to_have_count(2)
            expect(page.locator("#preview li[data-paper].new").first).to_be_visible()
            keywords = page.locator("#preview ul", has_text="“languages”")
            expect(keywords).to_contain_text("“speech”: in ")
            expect(page.locator("#preview .changes")).to_contain_text("your edit: relevance to your interests")
            expect(page.locator("#preview .changes")).not_to_contain_text("interests.primary")
            expect(page.locator("#preview .changes")).not_to_contain_text("embedding model")
            keep_picture(page, "profile-preview")
            seen = previewed(page)
            assert (ranking_inputs(desk.warehouse, LATEST, PROFILE), file_of(page_of_a_year).read_bytes()) == before
            page.get_by_role("button", name="Save").click()
            expect(page.get_by_role("status")).to_contain_text("Profile saved")
        written = json.loads(file_of(page_of_a_year).read_text("utf-8"))
        assert written["interests"] == {**CONTENT["interests"], "primary": ["speech recognition for rare languages"]}
        assert written["rewriting"] == CONTENT["rewriting"], "what was not edited stays as it was written"
        stored = ranked_by_a_run(desk)
        assert {level for _, level in stored} > {"possible"}, "a list in which levels differ"
        assert seen == [
            (paper, level + (", new" if "new" in words else ""))
            for (paper, level), (_, words) in zip(stored, seen, strict=True)
        ]
        with page_client(desk) as client:
            today, changes = (client.get(f"/p/{PROFILE}{view}").text for view in ("", f"/{LATEST}/changes?since=edit"))
        assert "your edit: relevance to your interests" in today and "interests.primary" not in today
        assert "<li>Main interests: + speech recognition for rare languages" in changes
    finally:
        file_of(page_of_a_year).write_bytes(before[1])
        ranked_by_a_run(desk)


def test_an_edit_that_is_faster_than_the_script_is_previewed_and_not_lost(
    page_of_a_year: Page, browser: Browser
) -> None:
    scripts: list[Route] = []
    with visitor(browser) as page:
        page.route("**/desk.js", lambda route: scripts.append(route))  # it comes once the reader has typed
        page.goto(f"{page_of_a_year.today}/profile", wait_until="commit")
        page.get_by_label("Main interests").fill("speech recognition for rare languages")
        until(lambda: page.evaluate("1") and scripts)  # evaluating lets events in
        scripts[0].continue_()
        expect(page.locator("#preview")).to_contain_text("Speech recognition")
        expect(page.get_by_text("Unsaved changes")).to_be_visible()


def test_a_wrong_value_is_refused_and_marked_at_its_field(page_of_a_year: Page, browser: Browser) -> None:
    before = file_of(page_of_a_year).read_bytes()
    with visitor(browser, java_script_enabled=False) as page:
        page.goto(f"{page_of_a_year.today}/profile")
        page.get_by_label("Use these weights").check()
        page.get_by_label("how recent it is").fill("0.9")
        page.get_by_label("Papers per day", exact=True).fill("ten")
        page.get_by_role("button", name="Preview").click()
        expect(page.locator("#preview .warning")).to_contain_text("Correct the marked fields")
        expect(page.get_by_label("Papers per day", exact=True)).to_have_attribute("aria-invalid", "true")
        expect(page.locator("#ranking-top_k-fault")).to_have_text("Enter a whole number.")
        page.get_by_label("Papers per day", exact=True).fill("3")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("Could not save the profile")
        expect(page.locator("#own-weights-fault")).to_contain_text("they must sum to 1")
        expect(page.get_by_label("how recent it is")).to_have_value("0.9")
    assert file_of(page_of_a_year).read_bytes() == before


def test_a_field_marked_while_typing_is_accessible(page_of_a_year: Page, browser: Browser) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/profile")
        field = page.get_by_label("Papers per day", exact=True)
        field.fill("0")
        expect(field).to_have_attribute("aria-invalid", "true")
        assert (script := axe_script()) is None or serious_findings(page, script) == []
        field.fill("3")
        expect(page.locator("#ranking-top_k-fault")).to_have_count(0)
        expect(field).not_to_have_attribute("aria-invalid", "true")
        field.fill("4")  # the stored value, so that nothing is unsaved


def test_an_edit_made_elsewhere_is_overwritten_only_on_request(page_of_a_year: Page, browser: Browser) -> None:
    file = file_of(page_of_a_year)
    before = file.read_bytes()
    with visitor(browser, java_script_enabled=False) as page:
        page.goto(f"{page_of_a_year.today}/profile")
        page.get_by_label("Exploratory").fill("quantised inference")
        elsewhere = {**CONTENT, "preferred_authors": ["Edited Elsewhere"]}
        file.write_text(json.dumps(elsewhere), encoding="utf-8")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("alert")).to_contain_text("edited elsewhere meanwhile")
        assert json.loads(file.read_text("utf-8")) == elsewhere
        expect(page.get_by_label("Exploratory")).to_have_value("quantised inference")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Profile saved")
    written = json.loads(file.read_text("utf-8"))
    assert written["interests"]["exploratory"] == ["quantised inference"]
    assert [*file.parent.glob(".*")] == [], "nothing unfinished is left"
    file.write_bytes(before)


def test_save_is_in_view_and_unsaved_changes_are_not_lost_without_a_warning(
    page_of_a_year: Page, browser: Browser
) -> None:
    before = file_of(page_of_a_year).read_bytes()
    asked: list[str] = []
    with visitor(browser) as page:

        def stay(dialog: Dialog) -> None:
            asked.append(dialog.type)
            dialog.dismiss()

        page.on("dialog", stay)
        page.goto(f"{page_of_a_year.today}/profile")
        expect(page.get_by_role("button", name="Save")).to_be_in_viewport()
        expect(page.get_by_text("Unsaved changes")).to_be_hidden()
        page.get_by_label("Secondary").fill("gradient methods")
        expect(page.get_by_text("Unsaved changes")).to_be_visible()
        with page.expect_event("dialog"):
            page.get_by_role("link", name="Today").click(no_wait_after=True)
        assert asked == ["beforeunload"]
        assert page.url.endswith("/profile")
        page.get_by_label("Papers per day", exact=True).fill("0")
        expect(page.locator("#ranking-top_k-fault")).to_have_text("Enter a number of at least 1.")
        expect(page.get_by_label("Secondary")).to_have_value("gradient methods")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_label("Papers per day", exact=True)).to_be_focused()
        keep_picture(page, "profile-refused")
        page.get_by_label("Papers per day", exact=True).fill("4")
        page.get_by_label("Secondary").fill("calibration of tree ensembles")
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("No changes to save")
        page.remove_listener("dialog", stay)
    assert asked == ["beforeunload"], "saving asks nothing"
    assert file_of(page_of_a_year).read_bytes() == before


# Where the focused field and its label are, and the free part of the window: the bar of buttons covers the rest.
_FOCUSED = """async () => {
    for (const _ of [1, 2]) await new Promise(requestAnimationFrame);  // the browser scrolls in the next frame
    const field = document.activeElement, bar = document.querySelector(".buttons"), label = (field.labels || [])[0];
    const boxes = [field, label || field].map((each) => each.getBoundingClientRect());
    return [field.id || field.name || field.tagName, Math.min(...boxes.map((box) => box.top)),
            Math.max(...boxes.map((box) => box.bottom)),
            bar && !bar.contains(field) ? bar.getBoundingClientRect().top : innerHeight, field.tagName === "BODY"];
}"""


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("path", [f"/p/{PROFILE}/profile", f"/p/{PROFILE}/add", "/settings", "/welcome"])
def test_a_field_that_tab_reaches_is_never_covered(
    page_of_a_year: Page, browser: Browser, path: str, width: int
) -> None:
    with visitor(browser, width=width) as page:
        page.goto(f"{page_of_a_year.url}{path}")
        for key in ("Tab", "Shift+Tab"):
            for _ in range(120):
                page.keyboard.press(key)
                name, top, bottom, free, at_the_end = page.evaluate(_FOCUSED)
                if at_the_end:
                    break
                assert top >= -1 and bottom <= free + 1, f"{name} is covered: {top:.0f} to {bottom:.0f} of {free:.0f}"
            assert at_the_end


def test_liked_papers_are_shown_by_title_and_removed(page_of_a_year: Page, browser: Browser) -> None:
    file = file_of(page_of_a_year)
    before = file.read_bytes()
    liked = ["2603.00900", {"title": "A paper from elsewhere", "abstract": "Of ponds."}, {"paper_id": "2603.00201"}]
    file.write_text(json.dumps({**CONTENT, "keywords": {}, "interests": {"papers": liked}}), encoding="utf-8")
    try:
        with visitor(browser, width=390) as page:
            page.goto(f"{page_of_a_year.today}/profile")
            papers = page.get_by_role("group", name="Papers you like")
            assert small_targets(page) == []
            papers.get_by_label("A paper from elsewhere").check()
            papers.get_by_role("checkbox").first.check()
            assert papers.locator("label").first.inner_text().strip() != "2603.00900"
            page.get_by_role("button", name="Save").click()
            expect(page.get_by_role("status")).to_contain_text("Profile saved")
            assert json.loads(file.read_text("utf-8"))["interests"] == {"papers": liked[2:]}
            papers.get_by_role("checkbox").check()
            page.get_by_role("button", name="Save").click()
            expect(page.locator("#interests-primary-fault")).to_contain_text("keep a paper you like")
    finally:
        file.write_bytes(before)
