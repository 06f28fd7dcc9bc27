"""Search over two sources: merged by arXiv id, one failing is a warning, both failing an error (I2)."""

import re
from dataclasses import replace

import pytest

from paper_assets.errors import IncompleteFeed, InvalidInput, NetworkError, RateLimited
from paper_assets.interpreting.papers import search_papers, search_to_mapping, wrote
from paper_assets.sources.arxiv_api import search_query
from paper_assets.stores.paper_merging import merge_papers
from tests.interpreting.outside import NOWHERE, Outside, titled
from tests.loopback import Answer
from tests.loopback_arxiv import error_xml
from tests.loopback_semantic_scholar import found_json, scholar_paper


def fill(world: Outside) -> None:
    world.arxiv.papers += [
        titled(1, "Folding caches"),
        titled(2, "Caches of rivers", categories=("cs.LG",), primary_category="cs.LG"),
        titled(3, "Nothing of the kind", authors=("Cleo Third",)),
    ]
    world.scholar.papers += [
        scholar_paper(12, arxiv="2601.05002", title="Caches of rivers"),
        scholar_paper(11, arxiv="2601.05001", title="Folding caches"),
        scholar_paper(14, arxiv="2601.05004", title="Caches elsewhere"),
        scholar_paper(15, title="Caches in print"),
    ]


def test_both_sources_are_one_list_merged_by_arxiv_id(world: Outside) -> None:
    fill(world)
    result = search_papers(world.clients(), "caches")
    by_id = {found.paper.paper_id: found for found in result.papers}
    assert set(by_id) == {"2601.05001", "2601.05002", "2601.05004", f"S2:{15:040x}"}
    assert by_id["2601.05001"].sources == ("arxiv", "semantic_scholar")
    assert by_id["2601.05001"].paper.categories == ("cs.CL",)  # arXiv's record, not the other's
    assert by_id["2601.05001"].citation_count == 11
    assert by_id["2601.05004"].sources == ("semantic_scholar",)
    assert {found.paper.paper_id for found in result.papers[:2]} == {"2601.05001", "2601.05002"}  # both name them
    assert by_id["2601.05004"].url == "https://arxiv.org/abs/2601.05004"
    assert by_id[f"S2:{15:040x}"].url == f"https://www.semanticscholar.org/paper/{15:040x}"
    assert result.warnings == ()


def test_a_paper_in_print_is_its_preprint_of_the_same_title(world: Outside) -> None:
    world.arxiv.papers.append(titled(1, "Folding Caches: a Study"))
    world.scholar.papers.append(scholar_paper(7, title="Folding caches - a study."))
    [found] = search_papers(world.clients(), "folding").papers
    assert (found.paper.paper_id, found.citation_count) == ("2601.05001", 7)


def test_no_more_than_asked_and_the_number_of_all(world: Outside) -> None:
    world.arxiv.papers += [titled(number, f"Caches {number}") for number in range(8)]
    result = search_papers(world.clients(), "caches", max_results=3)
    assert (len(result.papers), result.total_count) == (3, 8)


@pytest.mark.parametrize(
    "answer", [Answer(status=400), Answer(body=b"<html>", status=200), Answer(body=b"Rate exceeded.")]
)
def test_arxiv_failing_leaves_semantic_scholar_and_a_warning(world: Outside, answer: Answer) -> None:
    fill(world)
    world.arxiv.script = [answer] * 4
    result = search_papers(world.clients(), "caches")
    assert len(result.papers) == 4
    assert result.total_count == 4
    assert [line.partition(":")[0] for line in result.warnings] == ["arXiv"]


def test_semantic_scholar_failing_leaves_arxiv_and_a_warning(world: Outside) -> None:
    fill(world)
    world.scholar.script = [Answer(status=429)] * 4
    result = search_papers(world.clients(), "caches")
    assert [found.paper.paper_id for found in result.papers] == ["2601.05001", "2601.05002"]
    assert [found.citation_count for found in result.papers] == [None, None]
    assert [line.partition(":")[0] for line in result.warnings] == ["Semantic Scholar"]


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (Answer(status=429), RateLimited),
        (Answer(status=406), RateLimited),
        (Answer(body=b"Rate exceeded."), RateLimited),
        (Answer(status=500), NetworkError),
        (Answer(body=b"", status=200), IncompleteFeed),
        (Answer(body=error_xml("no such field"), status=400), NetworkError),
    ],
)
def test_both_failing_is_the_error_of_arxiv(world: Outside, answer: Answer, error: type[Exception]) -> None:
    world.arxiv.script = [answer] * 4
    world.scholar.script = [Answer(status=500)] * 4
    with pytest.raises(error, match=r"arXiv|127\.0\.0\.1"):
        search_papers(world.clients(), "caches")


def test_an_unreachable_server_is_a_network_error(world: Outside) -> None:
    clients = world.clients(PAPER_ASSETS_ARXIV_URL=NOWHERE, PAPER_ASSETS_SEMANTIC_SCHOLAR_URL=NOWHERE)
    with pytest.raises(NetworkError, match="cannot be reached"):
        search_papers(clients, "caches")
    unknown = world.clients(
        PAPER_ASSETS_ARXIV_URL="http://no-such-host.invalid/api", PAPER_ASSETS_SEMANTIC_SCHOLAR_URL=NOWHERE
    )
    with pytest.raises(NetworkError, match=r"no-such-host\.invalid cannot be reached"):
        search_papers(unknown, "caches")


def test_a_call_that_runs_out_of_time_reports_it(world: Outside) -> None:
    world.arxiv.script = world.scholar.script = [Answer(hang=True)] * 4
    clients = replace(world.clients(deadline=0.3), clock=lambda: 0.0)  # a busy machine needs 0.3 s before it asks
    with pytest.raises(NetworkError, match="no whole answer within"):
        search_papers(clients, "caches")


def test_semantic_scholar_is_not_waited_for_when_it_asks_for_long(world: Outside) -> None:
    fill(world)
    world.scholar.script = [Answer(status=429, headers={"Retry-After": "60"})]
    result = search_papers(world.clients(), "caches")
    assert len(result.papers) == 2
    assert "asks us to wait" in result.warnings[0]
    assert len(search_papers(world.clients(), "caches").papers) == 2
    assert world.asked == (2, 1), "nor asked again before its time"


def test_the_pages_of_a_search_are_of_one_list_for_a_while(world: Outside) -> None:
    fill(world)
    now = [100.0]
    clients = replace(world.clients(), clock=lambda: now[0])
    first = search_papers(clients, "caches")
    world.arxiv.script = [Answer(status=500)] * 9
    assert search_papers(replace(clients, progress=lambda done, total, what: None), "caches") == first
    assert world.asked == (1, 1)
    assert search_papers(clients, "caches", max_results=2).warnings, "another question"
    now[0] += 601
    assert search_papers(clients, "caches").warnings
    world.arxiv.script = None
    assert search_papers(clients, "caches") == first, "what one source alone said was not kept"


def test_an_author_is_asked_of_arxiv_and_checked_in_the_others_papers(world: Outside) -> None:
    fill(world)
    world.scholar.papers.append(
        scholar_paper(16, arxiv="2601.05006", title="Caches of Third", authors=[{"name": "C. Third"}])
    )
    result = search_papers(world.clients(), "", author="Cleo Third")
    assert {found.paper.paper_id for found in result.papers} == {"2601.05003", "2601.05006"}


def test_a_category_returns_only_papers_known_to_be_in_it(world: Outside) -> None:
    fill(world)
    clients = world.clients()
    result = search_papers(clients, "caches", category="cs.LG")
    assert {found.paper.paper_id for found in result.papers} == {"2601.05002"}
    merge_papers(clients.warehouse, [titled(4, "Caches elsewhere", categories=("cs.LG",))])
    result = search_papers(world.clients(), "caches", category="cs.LG")
    assert {found.paper.paper_id for found in result.papers} == {"2601.05002", "2601.05004"}


def test_a_key_is_sent_and_an_invalid_one_is_a_warning_that_does_not_show_it(world: Outside) -> None:
    fill(world)
    search_papers(world.clients(SEMANTIC_SCHOLAR_API_KEY="s2-hidden"), "caches")
    assert world.scholar.requests[-1].headers["x-api-key"] == "s2-hidden"
    result = search_papers(world.clients(SEMANTIC_SCHOLAR_API_KEY="s2 hidden"), "caches")
    assert len(result.papers) == 2
    assert "SEMANTIC_SCHOLAR_API_KEY" in result.warnings[0] and "hidden" not in result.warnings[0]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"query": ""}, "query"),
        ({"query": "  ?!  "}, "word"),
        ({"query": "x" * 2001}, "2,000"),
        ({"query": "a " * 41}, "41 words"),
        ({"query": "a", "max_results": 0}, "max_results"),
        ({"query": "a", "max_results": 101}, "max_results"),
        ({"query": "a", "category": "cs.CL OR cat:*"}, "category"),
        ({"query": "a", "author": "()"}, "author"),
    ],
)
def test_a_bad_question_is_refused_before_anybody_is_asked(world: Outside, arguments: dict, named: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(named)):
        search_papers(world.clients(), **arguments)
    assert world.asked == (0, 0)


def test_a_person_s_words_cannot_become_the_grammar_of_the_query() -> None:
    assert search_query("state-space models") == 'all:"state space" AND all:"models"'
    assert search_query('"long context" caches') == 'all:"long context" AND all:"caches"'
    assert search_query("a OR b) ANDNOT ti:c*") == 'all:"a" AND all:"OR" AND all:"b" AND all:"ANDNOT" AND all:"ti c"'
    assert search_query("", author='M"uller OR x', category="cs.CL") == 'au:"M uller OR x" AND cat:cs.CL'
    assert search_query("Übersetzung 模型") == 'all:"Übersetzung" AND all:"模型"'


@pytest.mark.parametrize(
    ("author", "authors", "expected"),
    [
        ("Ada Example", ["A. Example"], True),
        ("Example, Ada", ["Ada B. Example"], True),
        ("Ada Example", ["Bo Example"], False),
        ("Müller", ["Jana Muller"], True),
        ("Ann", ["Joann"], False),
        ("Ada Example", [], False),
    ],
)
def test_an_author_is_known_by_last_name_and_initial(author: str, authors: list[str], expected: bool) -> None:
    assert wrote(author, authors) is expected


def test_odd_answers_of_semantic_scholar_are_read_as_far_as_they_go(world: Outside) -> None:
    odd = [
        None,
        7,
        {"paperId": "short", "title": "x"},
        {"paperId": "a" * 40},
        {"paperId": "b" * 40, "title": "Odd", "authors": 3},
    ]
    world.scholar.script = [found_json({"total": 5, "data": odd})]
    result = search_papers(world.clients(), "odd")
    assert [found.paper.title for found in result.papers] == ["Odd"]
    mapping = search_to_mapping(result)
    assert mapping["papers"][0]["paper_id"] == "S2:" + "b" * 40 and mapping["total_count"] == 1


@pytest.mark.parametrize(
    "answer", [Answer(body=b"no json"), found_json([1]), found_json({"total": "many"}), Answer(status=302)]
)
def test_an_invalid_answer_is_a_warning(world: Outside, answer: Answer) -> None:
    world.scholar.script = [answer]
    assert "Semantic Scholar" in search_papers(world.clients(), "caches").warnings[0]
