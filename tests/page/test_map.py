"""The map: what its legend names, which colour a paper has, and whether it can be read on a phone."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations

import pytest
from playwright.sync_api import Browser, expect
from playwright.sync_api import Page as BrowserPage

from paper_assets.interfaces.page.paper_map import numbers
from paper_assets.pipeline.paper_map import PlacedPaper
from paper_assets.stores.rankings import RankedOften, ranking
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import CONTENT, LATEST, PROFILE, Page

NEAR, FAR = 0.8, 0.1  # probabilities of being on topic
NONE = "close to none of your interests"


@contextmanager
def interests(page: Page, *, primary: list[str]) -> Iterator[None]:
    """Give the profile other main interests, which its stored rankings do not know."""
    file = page.desk.folder / "profiles" / PROFILE / "profile.json"
    before = file.read_text("utf-8")
    changed = {**CONTENT, "interests": {**CONTENT["interests"], "primary": primary}}  # type: ignore[dict-item]
    file.write_text(json.dumps(changed), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(before, encoding="utf-8")


@pytest.fixture
def only_one_is_near(page_of_a_year: Page) -> Iterator[tuple[Page, str, str]]:
    """A latest list outside which one likely paper is: the first of the list, and that."""
    warehouse = page_of_a_year.desk.warehouse
    where = (LATEST, PROFILE)
    rows = ranking(warehouse, LATEST, PROFILE).rows.to_pylist()
    first = next(row["paper_id"] for row in rows if row["rank"] == 1)
    near = next(row["paper_id"] for row in rows if not row["shown"] and row["nearest"])
    set_relevance = """
        update rankings set semantic_relevance = ?, learned = ? where day = ? and profile = ? and paper_id = ?
    """
    with warehouse.writing() as connection:
        changed = [(NEAR if row["paper_id"] == near else FAR, 0.0, *where, row["paper_id"]) for row in rows]
        connection.executemany(set_relevance, changed)
    yield page_of_a_year, first, near
    with warehouse.writing() as connection:
        kept = [(row["semantic_relevance"], row["learned"], *where, row["paper_id"]) for row in rows]
        connection.executemany(set_relevance, kept)


def colour(page: BrowserPage, paper_id: str) -> str:
    """The class of a paper's dot that decides its colour: that of an interest, or `other`."""
    dot = page.locator(f'.chart a[href$="paper={paper_id}"] circle').first
    return (dot.get_attribute("class") or "").split()[0]


def test_the_maps_legend_names_every_interest_and_what_no_interest_explains(
    page_of_a_year: Page, browser: Browser
) -> None:
    with visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/map?span=month")
        legend = page.locator(".legend li")
        for words in ("traffic forecasting on road networks", "calibration of tree ensembles", NONE):
            expect(legend.filter(has_text=words)).to_have_count(1)


def test_an_interest_without_a_paper_and_a_ninth_interest_are_in_the_legend(
    page_of_a_year: Page, browser: Browser
) -> None:
    named = [f"botany of glacier {number}" for number in range(8)]
    with interests(page_of_a_year, primary=[*named, "traffic forecasting on road networks"]), visitor(browser) as page:
        page.goto(f"{page_of_a_year.today}/map")
        legend = page.locator(".legend li")
        for words in (*named, "traffic forecasting on road networks"):
            expect(legend.filter(has_text=words)).to_have_count(1)
        expect(legend.filter(has_text=named[0]).locator("small")).to_have_text("0")
        expect(legend.filter(has_text="traffic").locator("small")).not_to_have_text("0")
        ninth = legend.filter(has_text="traffic").locator("i")
        expect(ninth).to_have_class("other")  # without a colour, because nine cannot be distinguished
        painted = ninth.evaluate("element => getComputedStyle(element).backgroundColor")
        assert painted == legend.filter(has_text=NONE).locator("i").evaluate(
            "element => getComputedStyle(element).backgroundColor"
        )


def test_the_first_paper_has_a_colour_and_an_unlikely_paper_has_none(
    only_one_is_near: tuple[Page, str, str], browser: Browser
) -> None:
    desk, first, near = only_one_is_near
    rows = ranking(desk.desk.warehouse, LATEST, PROFILE).rows.to_pylist()
    far = [row["paper_id"] for row in rows if not row["shown"] and row["paper_id"] != near]
    with visitor(browser) as page:
        page.goto(f"{desk.today}/map")
        assert colour(page, first) == "lane0", "a paper of the list belongs to its interest, whatever its probability"
        assert colour(page, near) in ("lane0", "lane1")
        assert far and {colour(page, each) for each in far} == {"other"}
        expect(page.locator(".legend li").filter(has_text=NONE).locator("small")).to_have_text(f"{len(far)}")
        keep_picture(page, "map-far")


def test_the_numbers_of_papers_at_one_place_of_the_map_can_all_be_read() -> None:
    spots = {"a": (0.3, 0.3), "b": (0.3, 0.302), "c": (0.31, 0.3), "d": (0.9, 0.9)}
    papers = [
        PlacedPaper(paper=RankedOften(paper_id=name, nearest=None, relevance=0.9, shown=True), title=name, x=x, y=y)
        for name, (x, y) in spots.items()
    ]
    found = numbers(papers, {"b": 1, "a": 2, "c": 3, "d": 4})
    assert [each.place for each in found] == [1, 2, 3, 4]
    assert all(abs(one.x - other.x) >= 2.1 or abs(one.y - other.y) >= 2.1 for one, other in combinations(found, 2)), (
        found
    )
    assert all(each.x >= 100 * spots[name][0] + 1.6 for each, name in zip(found, "bacd", strict=True)), "beside its dot"


def test_letters_and_dots_of_the_map_are_large_enough_on_a_phone(page_of_a_year: Page, browser: Browser) -> None:
    heights = """all => all.map((each) =>
      parseFloat(getComputedStyle(each).fontSize) * each.ownerSVGElement.getScreenCTM().a)"""
    widths = "all => all.map((each) => each.getBoundingClientRect().width)"
    with visitor(browser, width=390) as page:
        page.goto(f"{page_of_a_year.today}/map?span=month")
        letters = page.locator(".chart .place")
        assert letters.count() > 2
        assert min(letters.evaluate_all(heights)) >= 11, "pixels"
        assert min(page.locator(".chart circle:not(.mark)").evaluate_all(widths)) >= 8
