"""The stylesheet: one page with every component in light, dark and print, and one scale of letters."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path

import jinja2
import pytest
from playwright.sync_api import Browser, Route

from paper_assets.digests.entry import ContrastEntry, Part
from paper_assets.digests.evidence import AnswerEntry, AnswerSentence, EvidenceEntry, PassageEntry, Quotation, SideEntry
from paper_assets.interfaces.page.display import templates
from paper_assets.interfaces.page.paper_rows import PaperRow, row_of
from paper_assets.paper import paper_from_mapping
from paper_assets.text.tex import MathText
from tests.desk import paper
from tests.page.browser import keep_picture, misfits, visitor
from tests.page.invented_desk import PROFILE, Page

SHEETS = ("paper_assets/digests/digest.css.jinja", "paper_assets/interfaces/page/assets/desk.css")
ROOT = Path(__file__).parents[2]
PASSAGE = PassageEntry(title="Roads", url="#roads", about="2603.00001, 4 March 2026", text="Roads are full of cars.")
ANSWER = EvidenceEntry(
    question="Are roads full?",
    sides=(
        SideEntry(name="for", passages=(PASSAGE, replace(PASSAGE, quote="Roads are full of cars.")), gap=None),
        SideEntry(
            name="against", passages=(), gap="no stored paper contradicts", warnings=("one passage was not judged",)
        ),
    ),
    notes=("the passages were graded by likeness",),
    examined="12 passages were judged by a model",
    written=AnswerEntry(
        sides=(("", (AnswerSentence(text="Roads are full.", numbers=(1,)),)),),
        quotations=(
            Quotation(number=1, quote="Roads are full of cars.", title="Roads", url="#roads", about="2603.00001"),
        ),
        verdict="",
        by="Written by a model from 12 passages.",
    ),
)
ENTRY = {
    "score": 1.2,
    "parts": (
        Part(name="semantic_relevance", words="relevance", points=1.4),
        Part(name="soft_penalty", words="an avoided word", points=-0.2),
    ),
    "order": "It is like a paper above it.",
    "contrast": ContrastEntry(point="another method", rows=(("method", "trees", "graphs"),)),
    "reason": MathText("roads in title and abstract; code."),
    "why": ["It is about roads."],
}
COLOURS = (
    "semantic_relevance", "recency", "author_trust", "institution_trust", "practicality", "must_keywords", "bonus",
    "learned", "soft_penalty", "diversity_penalty", "for_all",
)  # fmt: skip
# Of the frame, of printed pages, and of a button that only Enter presses.
NO_COMPONENT = {"broken", "default", "signed", "view-map", "view-paper"}


def rows() -> Iterator[PaperRow]:
    titles = ("roads and rivers", "roads with $n^2$ cars", "full roads", f"empty roads {'and rivers ' * 12}")
    for number, title in enumerate(titles):
        row = row_of(paper_from_mapping(paper(number, "2026-03-04", title)), about={"road": True})
        level = {"interest": "roads", "level": "likely", "dots": number} if number else {"score": 0.9}
        yield replace(row, rank=number or None, **level)


def styleguide(page: Page) -> str:
    """The page with every component, made from the templates of the views."""
    own = templates()
    loader = jinja2.ChoiceLoader([jinja2.FileSystemLoader(Path(__file__).parent), own.loader or jinja2.DictLoader({})])
    score = (
        Part(name="semantic_relevance", words="relevance", points=0.6),
        Part(name="recency", words="age", points=0.2),
    )
    said = {
        "verdict": "It is number 1 of the list.",
        "score": 0.8,
        "score_name": "match",
        "parts": score,
        "why": ["It is about roads."],
    }
    return own.overlay(loader=loader).get_template("styleguide.html.jinja").render(
        base="/p/traffic",
        view="today", profile=PROFILE, profile_title="Traffic", profiles=[PROFILE], title_of=str.title, person=None,
        broken=None, day=date(2026, 3, 4), token="t", note="Saved.",
        refresh=None, status=200, rows=list(rows()), lines=list(rows())[1:], said=said,
        rated=[None, "worth", "later", "no"],
        answer=ANSWER, entry=ENTRY, colours=COLOURS, gone=False,
        where={
            **{"profile": PROFILE, "token": "t", "back": "/", "base": f"/p/{PROFILE}"},
            **{"notes": {}, "seen": (), "score": "similar"},
        },
    )  # fmt: skip


def test_every_component_fits_and_is_accessible(page_of_a_year: Page, browser: Browser) -> None:
    html = styleguide(page_of_a_year)

    def answered(route: Route) -> None:
        route.fulfill(body=html, content_type="text/html")

    with visitor(browser) as page:
        page.route("**/styleguide", answered)
        page.goto(f"{page_of_a_year.url}/styleguide")
        assert misfits(page, "styleguide") == {}
        page.emulate_media(media="print")
        assert page.locator("form.rate").first.is_hidden(), "nothing to click is printed"
        assert page.locator(".views").is_hidden()
        assert page.locator("article h3").first.is_visible()
        keep_picture(page, "styleguide-print")


def test_the_styleguide_shows_every_class_of_the_stylesheets(page_of_a_year: Page) -> None:
    sheets = "".join((ROOT / sheet).read_text(encoding="utf-8") for sheet in SHEETS)
    selectors = re.sub(r"/\*.*?\*/|\{[^{}]*\}", " ", sheets, flags=re.DOTALL)
    styled = set(re.findall(r"\.([a-z][\w-]*)", selectors))
    shown = set(re.findall(r"[\w-]+", " ".join(re.findall(r'class="([^"]*)"', styleguide(page_of_a_year)))))
    assert sorted(styled - shown - NO_COMPONENT) == []


@pytest.mark.parametrize("sheet", SHEETS)
def test_sizes_of_letters_come_from_one_scale(sheet: str) -> None:
    text = (ROOT / sheet).read_text(encoding="utf-8")
    sizes = set(re.findall(r"font-size: ([^;}]+)", text))
    relative = {each for each in sizes if each == "inherit" or re.fullmatch(r"[0-9.]+(em|pt|px)", each)}
    named = {each for each in sizes if each.startswith("var(--")}
    assert sizes == relative | named, "a size in rem is one of the scale at the top of the digest's stylesheet"
    scale = (ROOT / SHEETS[0]).read_text(encoding="utf-8")
    assert all(f"{each.removeprefix('var(').removesuffix(')')}:" in scale for each in named)
