"""What ratings teach, on the page: their effect on the list, words and papers to forget, and a first set to rate."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, expect

from paper_assets.learning.ratings import erase_ratings, ratings_by_id
from paper_assets.models.embedder import load_embedder
from paper_assets.paper import papers_from_table
from paper_assets.pipeline.preferences import STEP
from paper_assets.pipeline.rankings import keep_ranking
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.profile import load_profile
from paper_assets.stores.feedback import NewRating, append_ratings, forgotten
from paper_assets.stores.papers import papers_between
from paper_assets.stores.rankings import ranking
from tests.mcp.ranked_desk import NOBODY
from tests.page.browser import keep_picture, visitor
from tests.page.invented_desk import LATEST, PROFILE, Page
from tests.rewriting.scripted import NOW


def rank_again(page: Page) -> None:
    desk = page.desk
    settings = desk.settings
    workspace = open_workspace(settings, desk.environment, clock=lambda: NOW + timedelta(days=2))
    assert not STEP.make(workspace, [Partition(profile=PROFILE)], STEP.makes).failures
    profile = load_profile(desk.folder / "profiles" / PROFILE)
    embedder = load_embedder(settings.embedding_model)
    keep_ranking(desk.warehouse, profile, LATEST, embedder=embedder, verifier=NOBODY, settings=settings, now=NOW)


@pytest.fixture
def taught(page_of_a_year: Page) -> Iterator[Page]:
    """The reader likes speech and retrieval instead of traffic and trees; afterwards the ratings are removed."""
    warehouse = page_of_a_year.desk.warehouse
    given = [
        NewRating(paper_id=each.paper_id, rating="worth" if each.title.startswith(("Speech", "Retrieval")) else "no")
        for each in papers_from_table(papers_between(warehouse, None, None))
        if each.day != LATEST
    ]
    append_ratings(warehouse, PROFILE, given, given_in="page", now=NOW)
    rank_again(page_of_a_year)
    warehouse.run(
        "update rankings set semantic_relevance = 0, learned = 0.6 where day = ? and profile = ? and rank = 4",
        [LATEST, PROFILE],
    )
    yield page_of_a_year
    erase_ratings(warehouse, PROFILE, profiles_dir=page_of_a_year.desk.folder / "profiles")
    rank_again(page_of_a_year)


def test_today_names_the_papers_that_ratings_brought_and_removed_and_a_word_can_be_forgotten(
    taught: Page, browser: Browser
) -> None:
    warehouse = taught.desk.warehouse
    with visitor(browser) as page:
        page.goto(taught.today)
        page.get_by_text("About this list").click()
        block = page.locator("#learned")
        expect(block.get_by_role("heading", level=2)).to_have_text("What your ratings changed")
        expect(block).to_contain_text("Here because of your ratings")
        expect(block).to_contain_text("0 → 60 % on topic")
        article = page.locator(".papers article").nth(3)
        article.get_by_role("button", name="Worth reading").click()  # it is here because the reader chose it
        expect(article).to_have_attribute("data-rating", "worth")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        page.reload()
        page.get_by_text("About this list").click()
        expect(block.or_(page.get_by_text("moved no other paper"))).to_be_visible()
        expect(page.get_by_text("Here because of your ratings")).to_have_count(0)
        page.locator(".papers article").nth(3).get_by_role("button", name="Worth reading").click()
        expect(article).to_have_attribute("data-rating", "none")
        expect(page.locator("[aria-busy]")).to_have_count(0)
        page.reload()
        page.get_by_text("About this list").click()
        keep_picture(page, "today-learned")
        block.get_by_role("link").click()
        expect(page.get_by_text("Your ratings count ").first).to_be_visible()
        expect(page.get_by_text("Some are words of your interests")).to_be_visible()
        expect(page.locator("ul.words li", has_text="in your interests").first).to_be_visible()
        keep_picture(page, "learned-words")
        for among in page.locator("ul.taught:visible").all():
            assert among.get_by_role("button").count() <= 4, "more are behind one click"
        folded = page.locator("section details.more").first
        expect(folded.get_by_role("button").first).to_be_hidden()
        folded.locator("summary").click()
        expect(folded.get_by_role("button").first).to_be_visible()
        first = page.get_by_role("button", name="Forget this: ").first
        word = (first.get_attribute("aria-label") or "").removeprefix("Forget this: ")
        first.click()
        message = page.get_by_role("status")
        expect(message).to_contain_text("Forgotten")
        box, content = message.bounding_box(), page.locator("main").bounding_box()
        assert box and content and box["y"] + box["height"] <= content["y"]  # the message covers no row
        [kept] = forgotten(warehouse, PROFILE).words
        assert word.startswith(kept[:4])
        page.get_by_role("button", name=f"Learn from it again: {word}").click()
        expect(page.get_by_role("status")).to_contain_text("counts again")
    assert forgotten(warehouse, PROFILE).words == ()


def test_a_new_reader_is_offered_a_first_set_of_papers_and_rates_them_by_key(
    page_of_a_year: Page, browser: Browser
) -> None:
    warehouse = page_of_a_year.desk.warehouse
    wanted = ranking(warehouse, LATEST, PROFILE).header["teach"]
    assert wanted
    with visitor(browser) as page:
        page.goto(page_of_a_year.today)
        with page.expect_navigation():  # a key pressed before the next page is loaded would be lost
            page.locator("#teach a").click()
        keep_picture(page, "teach-first-set")
        page.keyboard.press("w")
        expect(page.locator('[data-rating="worth"]')).to_have_count(1)
        expect(page.locator("[aria-busy]")).to_have_count(0)
    assert ratings_by_id(warehouse, PROFILE) == {wanted[0]: "worth"}
    erase_ratings(warehouse, PROFILE, profiles_dir=page_of_a_year.desk.folder / "profiles")
