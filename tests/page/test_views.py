"""Every view at three widths: it fits the screen, is accessible, and starts at the same left edge; screenshots."""

import pytest
from playwright.sync_api import Browser, expect

from paper_assets.learning.ratings import ratings_by_id
from paper_assets.stores.rewrites import rewrites_of
from tests.page.browser import HEIGHT, SIZES, axe_script, keep_picture, misfits, serious_findings, visitor
from tests.page.invented_desk import LATEST, PROFILE, Page
from tests.waiting import until


def views(page: Page) -> dict[str, str]:
    waiting, done = rewrites_of(page.desk.warehouse, profile=PROFILE, day=LATEST)
    return {
        "home": "/",
        "today": f"/p/{PROFILE}",
        "days": f"/p/{PROFILE}/days",
        "search": f"/p/{PROFILE}/search?q=traffic+forecasting+category:cs.LG",
        "search-start": f"/p/{PROFILE}/search",
        "search-fault": f"/p/{PROFILE}/search?q=roads+is:foo",
        "search-empty": f"/p/{PROFILE}/search?q=is:worth",
        "similar": f"/p/{PROFILE}/search?like=2603.00201",
        "search-all": "/search?q=roads",
        "paper": f"/p/{PROFILE}/paper/2603.00900",
        "paper-all": "/paper/2603.00900",
        "shelf": f"/p/{PROFILE}/shelf?show=worth",
        "ask": f"/p/{PROFILE}/search?q=Is+traffic+forecasting+simple%3F&sides=1",
        "why": f"/p/{PROFILE}/{LATEST}/why?paper=2603.00201",
        "why-not": f"/p/{PROFILE}/{LATEST}/why?paper=protein",
        "changes": f"/p/{PROFILE}/{LATEST}/changes",
        "evidence": f"/p/{PROFILE}/evidence?question=Are+roads+full%3F",
        "rewrites": f"/p/{PROFILE}/rewrites",
        "rewrite": f"/p/{PROFILE}/rewrites/{waiting.item}",
        "rewrite-done": f"/p/{PROFILE}/rewrites/{done.item}",
        "practices": f"/p/{PROFILE}/practices",
        "practice": f"/p/{PROFILE}/practices/00000000-0000-4000-8000-000000000000?remove=ask",
        "map": f"/p/{PROFILE}/map?span=month",
        "learned": f"/p/{PROFILE}/learned",
        "teach": f"/p/{PROFILE}/teach",
        "profile": f"/p/{PROFILE}/profile",
        "health": f"/p/{PROFILE}/health",
        "fault": "/p/nobody",
    }


def test_every_view_fits_its_screen_and_is_accessible(page_of_a_year: Page, browser: Browser) -> None:
    found, edges = {}, set()
    with visitor(browser) as page:
        for name, path in views(page_of_a_year).items():
            page.goto(page_of_a_year.url + path)
            assert page.locator("h1").count() == 1, name
            assert page.locator(".unshown").count() == 0, name
            for width, _ in SIZES.values():
                page.set_viewport_size({"width": width, "height": HEIGHT})
                left = page.locator("h1").evaluate("element => Math.round(element.getBoundingClientRect().left)")
                edges.add((width, left))
            found |= misfits(page, name)
    assert found == {}
    assert len(edges) == len({width for width, _ in edges}), f"the views start at different left edges: {edges}"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rated_unsaved_and_waiting_rows_are_accessible(
    page_of_a_year: Page, browser: Browser, scheme: str, axe: str | None
) -> None:
    found: dict[str, list[str]] = {}
    is_cut = False
    with visitor(browser, color_scheme=scheme) as page:
        page.route("**/rate", lambda route: route.abort() if is_cut else route.continue_())  # a late route misses some
        page.goto(page_of_a_year.today)
        for key in "wln":
            page.keyboard.press(key)
        expect(page.locator('.papers [aria-pressed="true"]')).to_have_count(3)
        until(lambda: page.evaluate("1") and len(ratings_by_id(page_of_a_year.desk.warehouse, PROFILE)) == 3)
        is_cut = True
        page.keyboard.press("w")
        expect(page.locator(".row-fault")).to_be_visible()
        keep_picture(page, f"today-states-{scheme}")
        if axe:
            found["rated"] = serious_findings(page, axe)
        page.goto(page_of_a_year.today)
        for key in ("Escape", "x"):
            page.keyboard.press("u")
            expect(page.locator(".message")).to_contain_text("no rating to undo")
            if axe:
                found[f"message {key}"] = serious_findings(page, axe)
            page.keyboard.press(key)
            expect(page.locator(".message")).to_have_count(0)
        page.keyboard.press("?")
        if axe:
            found["keys"] = serious_findings(page, axe)
        page.goto(f"{page_of_a_year.today}/shelf?show=no")
        expect(page.locator(".found article")).to_have_count(1)
        if axe:
            found["shelf"] = serious_findings(page, axe)
    page_of_a_year.desk.warehouse.run("delete from ratings")
    assert {name: findings for name, findings in found.items() if findings} == {}


def test_accessibility_was_checked(axe: str | None) -> None:
    if axe is None:
        pytest.skip("axe-core cannot be had here (Node, npm and its registry), so the views were not checked by it")
    assert "axe.run" in axe or "axe" in axe[:200]


@pytest.fixture(scope="module")
def axe() -> str | None:
    return axe_script()
