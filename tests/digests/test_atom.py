"""The feed is valid and stable, and its times are those of the days."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from functools import partial

import lxml.html
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from paper_assets.digests import html
from paper_assets.digests.html import Issue, html_page, title_and_body, updated
from paper_assets.text.cleaning import without_controls
from tests.digests.invented import DAY, HOSTILE, digest, paper

atom_feed = partial(html.atom_feed, desk="https://desk.example.org")
ATOM = {"a": "http://www.w3.org/2005/Atom"}


def issue(day: date = DAY, title: str = "One paper to read", body: str = "<p>Frogs.</p>") -> Issue:
    return Issue(day=day, title=title, body=body)


def texts(feed: bytes, path: str) -> list[str]:
    return [element.text or "" for element in etree.fromstring(feed).findall(path, ATOM)]


def test_a_feed_has_all_that_the_standard_asks_for_once_each() -> None:
    feed = etree.fromstring(atom_feed("ponds", [issue(), issue(DAY - timedelta(days=1))]))
    assert feed.tag == "{http://www.w3.org/2005/Atom}feed"
    assert feed.get("{http://www.w3.org/XML/1998/namespace}lang") == "en"
    for element in (feed, *feed.findall("a:entry", ATOM)):
        for name in ("id", "title", "updated"):
            assert len(element.findall(f"a:{name}", ATOM)) == 1
    assert [name.text for name in feed.findall("a:author/a:name", ATOM)] == ["paper_assets"]
    links = [(link.get("rel"), link.get("href")) for link in feed.findall(".//a:link", ATOM)]
    desk = "https://desk.example.org/p/ponds"
    assert links == [("alternate", desk), ("alternate", f"{desk}/2026-03-13"), ("alternate", f"{desk}/2026-03-12")]
    assert {content.get("type") for content in feed.findall(".//a:content", ATOM)} == {"html"}


def test_ids_are_tags_that_differ_by_profile_and_day_and_never_change() -> None:
    ids = texts(atom_feed("ponds", [issue()]), ".//a:id")
    assert ids == [
        "tag:paper-assets.invalid,2026:digests/ponds",
        "tag:paper-assets.invalid,2026:digests/ponds/2026-03-13",
    ]


def test_an_entry_is_published_on_its_day_and_updated_when_its_page_last_changed() -> None:
    later = datetime(2026, 3, 20, 8, 30, 1, 999, tzinfo=UTC)
    feed = atom_feed("ponds", [issue(), replace(issue(DAY - timedelta(days=1)), updated=later)])
    assert texts(feed, "a:updated") == ["2026-03-20T08:30:01Z"]
    assert texts(feed, "a:entry/a:updated") == ["2026-03-13T00:00:00Z", "2026-03-20T08:30:01Z"]
    assert texts(feed, "a:entry/a:published") == ["2026-03-13T00:00:00Z", "2026-03-12T00:00:00Z"]


def test_a_page_says_when_it_last_changed_and_an_older_programs_page_does_not() -> None:
    page = html_page(digest(paper(), decided_at=datetime(2026, 3, 20, 8, tzinfo=UTC)))
    assert updated(page) == datetime(2026, 3, 20, 8, tzinfo=UTC)
    assert updated(page.replace("dcterms.modified", "x")) is None
    assert updated(page.replace("2026-03-20T08:00:00+00:00", "2026-03-20")) is None


def test_the_newest_comes_first_and_times_are_the_days() -> None:
    days = [DAY - timedelta(days=back) for back in (2, 0, 1)]
    feed = atom_feed("ponds", [issue(day) for day in days])
    assert texts(feed, "a:updated") == ["2026-03-13T00:00:00Z"]
    assert texts(feed, "a:entry/a:updated") == [f"2026-03-{day}T00:00:00Z" for day in (13, 12, 11)]
    assert feed == atom_feed("ponds", [issue(day) for day in sorted(days)])


@given(st.one_of(st.text(st.characters()), st.sampled_from(HOSTILE)))
def test_any_text_goes_through_the_feed_but_for_what_xml_cannot_hold(text: str) -> None:
    feed = atom_feed("ponds", [issue(title=text, body=text)])
    assert texts(feed, "a:entry/a:title") == texts(feed, "a:entry/a:content") == [without_controls(text)]


def test_a_hostile_paper_stays_text_in_the_content_of_its_entry() -> None:
    for hostile in HOSTILE:
        page = html_page(digest(paper(title=f"x{hostile}", abstract=hostile)))
        title, body = title_and_body(page)
        [content] = texts(atom_feed("ponds", [issue(title=title, body=body)]), ".//a:content")
        shown = lxml.html.fragment_fromstring(content, create_parent="div")
        plain = lxml.html.fragment_fromstring(title_and_body(html_page(digest(paper())))[1], create_parent="div")
        assert {element.tag for element in shown.iter()} <= {element.tag for element in plain.iter()} | {"p"}
        assert not shown.xpath("//script | //img | //iframe")
