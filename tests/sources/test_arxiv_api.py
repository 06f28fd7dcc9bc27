"""Test that a day's papers are complete or the day fails (S1, S2), with recorded and invented answers over loopback."""

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paper_assets.errors import IncompleteFeed, InvalidInput, NetworkError, RateLimited
from paper_assets.sources.arxiv_api import fetch_day, parse_feed
from paper_assets.sources.polite_http import ask
from tests.loopback import Answer
from tests.loopback_arxiv import error_xml, feed, feed_xml, invented_paper, loopback_arxiv

DAY = date(2026, 3, 4)
THREE = [invented_paper(number, DAY) for number in range(3)]


def fetch(polite, arxiv, *, day=DAY, categories=("cs.CL", "cs.LG")):
    return fetch_day(day, categories=categories, url=arxiv.url, session=polite())


def test_the_query_is_the_one_of_the_specification(polite):
    with loopback_arxiv(papers=THREE) as arxiv:
        fetch(polite, arxiv)
    query = arxiv.requests[0].query
    assert query["search_query"] == "(cat:cs.CL OR cat:cs.LG) AND submittedDate:[202603040000 TO 202603042359]"
    assert (query["sortBy"], query["sortOrder"]) == ("submittedDate", "ascending")
    assert (query["start"], query["max_results"]) == ("0", "1000")


def test_a_day_gives_its_papers_and_no_others(polite):
    other_day = invented_paper(7, DAY + timedelta(days=1))
    other_field = invented_paper(8, DAY, categories=("math.AG",), primary_category="math.AG")
    with loopback_arxiv(papers=[*THREE, other_day, other_field]) as arxiv:
        papers = fetch(polite, arxiv)
    assert [paper.paper_id for paper in papers] == [paper.paper_id for paper in THREE]
    assert papers[0] == replace(THREE[0], pdf_url=f"https://arxiv.org/pdf/{THREE[0].paper_id}v1")


def test_a_day_of_several_pages_is_whole(polite):
    with loopback_arxiv(papers=[invented_paper(number, DAY) for number in range(25)], most_per_page=10) as arxiv:
        assert len(fetch(polite, arxiv)) == 25
    assert [request.query["start"] for request in arxiv.requests] == ["0", "10", "20"]


def test_a_day_without_papers_is_empty(polite):
    with loopback_arxiv(papers=[]) as arxiv:
        assert fetch(polite, arxiv) == []
    assert len(arxiv.requests) == 1


HTML = Answer(body=b"<!DOCTYPE html><html><body><p>maintenance</body></html>", headers={"Content-Type": "text/html"})


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        pytest.param(HTML, "a web page", id="a web page"),
        pytest.param(Answer(body=b"<html><body/></html>"), "a web page", id="a well-formed web page"),
        pytest.param(Answer(body=b""), "empty", id="nothing"),
        pytest.param(Answer(body=b"please come back"), "plain text", id="plain text"),
        pytest.param(feed([], total=3), "announced 3 papers and gave 0", id="an empty first page"),
        pytest.param(Answer(body=feed_xml(THREE)[:-200]), "cut off", id="cut off"),
        pytest.param(Answer(body=feed_xml(THREE).replace(b"<title>", b"<titel>", 1)), "damaged", id="malformed"),
        pytest.param(Answer(body=error_xml("bad query")), "bad query", id="an error feed with 200"),
        pytest.param(feed(THREE[:2], total=3), "announced 3 papers and gave 2", id="too few"),
        pytest.param(feed(THREE, total=2), "announced 2 papers and gave 3", id="too many"),
        pytest.param(feed([*THREE[:2], THREE[0]]), "gave 2", id="one twice in place of another"),
        pytest.param(feed(THREE, total=214_881), "ignored the query", id="the whole archive"),
        pytest.param(
            Answer(body=feed_xml(THREE).replace(b"totalResults", b"results")), "how many", id="no number of papers"
        ),
        pytest.param(
            Answer(body=feed_xml(THREE).replace(b"/abs/2603.", b"/abs/x2603.", 1)), "not an arXiv id", id="a bad id"
        ),
        pytest.param(
            Answer(body=feed_xml(THREE).replace(b"<published>2026-", b"<published>20-26-", 1)), "date", id="a bad date"
        ),
        pytest.param(Answer(body=feed_xml(THREE).replace(b"published>", b"publisht>", 2)), "published", id="no date"),
    ],
)
def test_a_faulty_answer_is_asked_for_again_and_never_taken_for_fewer_papers(polite, fault, message):
    with loopback_arxiv(script=[fault, feed(THREE)]) as arxiv:
        assert len(fetch(polite, arxiv)) == 3
    with loopback_arxiv(script=[fault] * 20) as arxiv, pytest.raises(IncompleteFeed, match=message):
        fetch(polite, arxiv)


def test_an_entry_without_a_title_is_left_out_and_named(polite, caplog):
    nameless = feed([replace(THREE[0], title=" "), *THREE[1:]])
    with loopback_arxiv(script=[nameless]) as arxiv:
        assert [paper.paper_id for paper in fetch(polite, arxiv)] == [paper.paper_id for paper in THREE[1:]]
    assert f"left out: entry {THREE[0].paper_id} has no title" in caplog.messages


def test_a_field_beyond_the_limits_is_cut_and_the_comment_reports_it():
    huge = replace(THREE[0], title="x" * 1_048_576, comment="12 pages")
    [paper, other, _] = parse_feed(feed_xml([huge, *THREE[1:]])).papers
    assert paper.title == "x" * 1_999 + "…"
    assert paper.comment == "[Cut at import: title has 1,048,576 characters, at most 2,000] 12 pages"
    assert (other.title, other.comment) == (THREE[1].title, None)


def test_a_feed_that_declares_entities_is_refused():
    """Unresolved they would cut a text off, resolved they could fill the memory."""
    declared = b'<!DOCTYPE feed [<!ENTITY a "aaaaaaaaaa">]>' + feed_xml(THREE).split(b"?>", 1)[1]
    with pytest.raises(IncompleteFeed):
        parse_feed(declared.replace(b"On invented", b"On &a;", 1))


def test_a_page_that_overlaps_the_last_one_fails(polite):
    pages = [feed(THREE[:2], total=3), feed(THREE[1:2], total=3)]
    with (
        loopback_arxiv(script=pages * 2) as arxiv,
        pytest.raises(IncompleteFeed, match="announced 3 papers and gave 2"),
    ):
        fetch(polite, arxiv)


def test_an_empty_page_in_the_middle_fails(polite):
    pages = [feed(THREE[:2], total=3), feed([], total=3)]
    with loopback_arxiv(script=pages * 2) as arxiv, pytest.raises(IncompleteFeed, match="gave 2"):
        fetch(polite, arxiv)


def test_a_total_that_changes_between_pages_fails(polite):
    pages = [feed(THREE[:2], total=3), feed(THREE[2:], total=4), feed([], total=4)]
    with loopback_arxiv(script=pages * 2) as arxiv, pytest.raises(IncompleteFeed, match="announced 3 then 4 papers"):
        fetch(polite, arxiv)


def test_a_short_page_is_followed_where_it_ends(polite):
    pages = [feed(THREE[:1], total=3), feed(THREE[1:], total=3)]
    with loopback_arxiv(script=pages) as arxiv:
        assert len(fetch(polite, arxiv)) == 3
    assert arxiv.requests[1].query["start"] == "1"


def test_a_server_that_repeats_one_paper_does_not_hold_us_for_ever(polite):
    with loopback_arxiv(script=[feed(THREE[:1], total=900)] * 50) as arxiv, pytest.raises(IncompleteFeed):
        fetch(polite, arxiv)
    assert len(arxiv.requests) < 20


def test_two_versions_of_a_paper_are_one_row_with_the_newer(polite):
    newer = replace(THREE[0], version=2, title="On invented matter, corrected")
    for both in ([newer, THREE[0]], [THREE[0], newer]):
        with loopback_arxiv(script=[feed([*both, THREE[1]], total=2)]) as arxiv:
            papers = fetch(polite, arxiv)
        assert [(paper.version, paper.title) for paper in papers] == [(2, newer.title), (1, THREE[1].title)]


@pytest.mark.parametrize("away", [-1, 1])
def test_a_paper_of_the_neighbouring_day_comes_with_the_day_that_lists_it(polite, away):
    stray = invented_paper(5, DAY + timedelta(days=away))
    with loopback_arxiv(script=[feed([*THREE, stray])]) as arxiv:
        assert [paper.day for paper in fetch(polite, arxiv)] == [DAY] * 3 + [stray.day]


@pytest.mark.parametrize("away", [-2, 2])
def test_a_paper_two_days_away_means_that_the_query_was_ignored(polite, away):
    stray = invented_paper(5, DAY + timedelta(days=away))
    with (
        loopback_arxiv(script=[feed([*THREE, stray])]) as arxiv,
        pytest.raises(IncompleteFeed, match=f"{stray.paper_id} of {stray.day} to the query for {DAY}"),
    ):
        fetch(polite, arxiv)


def test_a_paper_of_another_month_means_that_the_query_was_ignored(polite):
    with (
        loopback_arxiv(script=[feed([*THREE, invented_paper(5, date(2020, 1, 1))])]) as arxiv,
        pytest.raises(IncompleteFeed, match="2020-01-01"),
    ):
        fetch(polite, arxiv)


def test_one_refusal_does_not_end_the_day(polite):
    with loopback_arxiv(
        script=[Answer(status=429), feed(THREE[:2], total=3), Answer(status=503), feed(THREE[2:], total=3)]
    ) as arxiv:
        assert len(fetch(polite, arxiv)) == 3


@pytest.mark.parametrize("refusal", [Answer(status=429), Answer(status=503), Answer(body=b"Rate exceeded.")])
def test_lasting_refusal_is_rate_limited(polite, refusal):
    with loopback_arxiv(script=[refusal] * 10) as arxiv, pytest.raises(RateLimited):
        fetch(polite, arxiv)


def test_a_refused_query_says_why_and_is_not_repeated(polite):
    script = [Answer(status=400, body=error_xml("cat is odd"))]
    with loopback_arxiv(script=script) as arxiv, pytest.raises(NetworkError, match=r"HTTP 400.*cat is odd"):
        fetch(polite, arxiv)
    assert len(arxiv.requests) == 1


@pytest.mark.parametrize("categories", [[], ["cs.CL OR all:x"], ["CS"], [""], ["cs.CL)"]])
def test_what_cannot_be_a_category_is_refused_before_asking(polite, categories):
    with loopback_arxiv(papers=THREE) as arxiv, pytest.raises(InvalidInput):
        fetch(polite, arxiv, categories=categories)
    assert arxiv.requests == []


def test_text_is_one_line_and_links_and_withdrawal_are_read():
    body = feed_xml(
        [
            invented_paper(
                0,
                DAY,
                title="A title\n  over two lines",
                abstract="  First line\nsecond line.\n",
                authors=("Zoë  Müller", " "),
                comment="This paper has been withdrawn; code at\n \\url{https://github.com/lab/the\\_tool}.",
                journal_ref="J. Inv.\n 1",
            )
        ]
    )
    paper = parse_feed(body).papers[0]
    assert (paper.title, paper.abstract) == ("A title over two lines", "First line second line.")
    assert paper.authors == ("Zoë Müller",)
    assert paper.github_url == "https://github.com/lab/the_tool"
    assert paper.withdrawn and paper.journal_ref == "J. Inv. 1"
    assert paper.published == datetime(2026, 3, 4, tzinfo=UTC)


def test_a_comment_in_the_xml_does_not_cut_a_text_off():
    body = feed_xml(THREE).replace(b"On invented", b"On <!-- really? --><?odd?>invented")
    assert [paper.title for paper in parse_feed(body).papers] == [paper.title for paper in THREE]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=4), st.integers(0, 6))
def test_whatever_pages_come_the_papers_are_as_many_as_announced(polite, pages, total):
    papers = [invented_paper(number, DAY) for number in range(6)]
    script = [feed([papers[number] for number in page], total=total) for page in pages]
    with loopback_arxiv(script=[*script, feed([], total=total), feed([], total=total)] * 2) as arxiv:
        try:
            found = fetch(polite, arxiv)
        except IncompleteFeed:
            return
    assert len(found) == len({paper.paper_id for paper in found}) == total


def test_recorded_answers_are_read_whole(polite, shared_data):
    """33 real answers, 2016 to 2026, served over loopback: every entry becomes a paper with the recorded id."""
    folder = shared_data / "arxiv_api_atom"
    index = [json.loads(line) for line in (folder / "INDEX.jsonl").read_text(encoding="utf-8").splitlines()]
    script = [Answer(body=(folder / one["file"]).read_bytes(), status=one["status"] or 200) for one in index]
    seen = {}
    with loopback_arxiv(script=script) as arxiv:
        session = polite()
        for one in index:
            content = ask(session, "GET", arxiv.url).content
            if one["error"]:
                with pytest.raises(IncompleteFeed, match="incorrect id format for abc"):
                    parse_feed(content)
                continue
            page = parse_feed(content)
            assert (len(page.papers), page.total) == (one["entries"], int(one["totalResults"])), one["file"]
            ids = [f"{paper.paper_id}v{paper.version}" for paper in page.papers]
            assert ids[: len(one["ids"])] == one["ids"], one["file"]
            assert sum(bool(paper.doi) for paper in page.papers) == one["doi"]
            assert sum(bool(paper.journal_ref) for paper in page.papers) == one["journal_ref"]
            assert sum(bool(paper.comment) for paper in page.papers) == one["comment"]
            for paper in page.papers:
                assert paper.authors and paper.abstract and paper.primary_category in paper.categories
                assert paper.published.utcoffset() == timedelta(0) and "\n" not in paper.title + paper.abstract
                seen[paper.paper_id] = paper
    assert len(index) == 33 and len(seen) == 141
    assert seen["astro-ph/0601001"].affiliations == ("Ohio State", "CfA", "Warsaw University Observatory")
    assert any("ü" in name for name in seen["1707.08567"].authors)
    assert not any(paper.withdrawn for paper in seen.values())


def test_overlapping_recorded_pages_are_not_taken_for_a_whole_query(polite, shared_data):
    """Real pages of one query that overlap and are far fewer than the 214,881 it announces."""
    folder = shared_data / "arxiv_api_atom" / "raw_xml"
    pages = [Answer(body=file.read_bytes()) for file in sorted(folder.glob("arxivpy__q_testing*"))]
    with loopback_arxiv(script=pages * 2) as arxiv, pytest.raises(IncompleteFeed, match="214881"):
        fetch(polite, arxiv)
