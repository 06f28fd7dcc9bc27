"""Test invented records of the same shapes as the recorded ones, so that a fresh clone covers them too.

The feeds in `invented_feeds/` have the layouts in which the API answered in 2016 and answers today.
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import requests

from paper_assets.errors import IncompleteFeed, NetworkError
from paper_assets.paper import papers_to_table
from paper_assets.sources.arxiv_api import fetch_day, parse_feed
from paper_assets.sources.bulk_files import read_papers
from paper_assets.sources.paper_fields import code_url, is_withdrawn
from paper_assets.sources.polite_http import ask
from paper_assets.sources.semantic_scholar import Scholar, details, match_title, read_paper, search
from tests.loopback import Answer
from tests.loopback_arxiv import error_xml, feed, invented_paper, loopback_arxiv
from tests.loopback_semantic_scholar import found_json, loopback_semantic_scholar, missing, scholar_paper

FEEDS = Path(__file__).parent / "invented_feeds"
Polite = Callable[..., requests.Session]


def read_over_http(name: str, polite: Polite) -> Any:
    with loopback_arxiv(script=[Answer(body=(FEEDS / name).read_bytes())]) as arxiv:
        return parse_feed(ask(polite(), "GET", arxiv.url).content)


def test_a_feed_of_today_is_read_whole(polite: Polite) -> None:
    page = read_over_http("layout_2026.xml", polite)
    old, new = page.papers
    assert (page.total, old.paper_id, old.version, new.paper_id, new.version) == (
        2,
        "hep-zz/9901001",
        1,
        "2603.00007",
        3,
    )
    assert old.title == "How Often Invented Planets Meet Their Moons"
    assert old.abstract.startswith("We invent planets (IPs) with 3--5 moons") and "Example & Sample" in old.abstract
    assert old.authors == ("Ada Example", "Ben Sample", "Zoë Müster")
    assert old.affiliations == ("Pond University", "Marsh Observatory")
    assert (old.journal_ref, old.doi) == ("ActaInvented.56:1-50,1999", None)
    assert (old.comment, new.comment) == ("62 pages including 16 invented figures", None)
    assert (new.doi, new.categories, new.primary_category) == ("10.1000/invented.7", ("cs.CL", "cs.LG"), "cs.CL")
    assert new.published == datetime(2026, 3, 4, 9, tzinfo=UTC)
    assert not old.withdrawn and not new.withdrawn


def test_a_feed_of_2016_with_local_times_is_read_in_universal_time(polite: Polite) -> None:
    page = read_over_http("layout_2016.xml", polite)
    new, old = page.papers
    assert (page.total, new.paper_id, new.version, old.paper_id) == (41, "1601.99001", 2, "cond-mat/0501999")
    assert new.published == datetime(2016, 1, 2, 2, tzinfo=UTC) and f"{new.day}" == "2016-01-02"
    assert new.categories == ("cond-mat.stat-mech", "82B20") and new.primary_category == "cond-mat.stat-mech"
    assert (new.doi, new.journal_ref) == ("10.1000/InventedB.1.2", "Inv. Rev. B 1, 2 (2016)")
    assert new.pdf_url == "https://arxiv.org/pdf/1601.99001v2"
    assert (old.doi, old.comment, old.journal_ref) == (None, None, None)


def test_a_feed_in_which_nothing_was_found_is_empty_and_a_bad_id_an_error(polite: Polite) -> None:
    page = read_over_http("nothing_found.xml", polite)
    assert (page.papers, page.total) == ((), 0)
    with pytest.raises(IncompleteFeed, match="incorrect id format for abc"):
        parse_feed(error_xml("incorrect id format for abc"))


def test_many_overlapping_pages_of_a_large_query_are_not_taken_for_the_whole(polite: Polite) -> None:
    day = datetime(2026, 3, 4, tzinfo=UTC).date()
    papers = [invented_paper(number, day) for number in range(60)]
    pages = [feed(papers[start : start + 10], total=2_881) for start in (0, 5, 5, 9, 10, 20, 30, 40, 50)]
    with loopback_arxiv(script=pages * 2) as arxiv, pytest.raises(IncompleteFeed, match="2881"):
        fetch_day(day, categories=["cs.CL"], url=arxiv.url, session=polite())


# Shapes in which Semantic Scholar answers: whole, with nulls, with half a paper, with next to nothing.
WHOLE = scholar_paper(
    1,
    arxiv="2601.00001",
    affiliations=["Pond University"],
    journal={"name": "Invented Letters", "volume": "3"},
    openAccessPdf={"url": "https://papers.example/1.pdf", "status": "GREEN"},
    externalIds={"CorpusId": 1, "ArXiv": "2601.00001", "DOI": "10.1000/invented.1", "MAG": "7"},
)
SPARSE = {"paperId": f"{2:040x}", "title": "Sparse  matter", "authors": [], "externalIds": None, "citationCount": None}
NULLS = scholar_paper(3, abstract=None, publicationDate=None, externalIds={}, journal={}, citationCount=0)
NAMELESS = {"paperId": f"{4:040x}", "title": None}
UNKNOWN = {"paperId": None, "title": "On the unknown"}


def asked(url: str, polite: Polite) -> Scholar:
    return Scholar(session=polite(interval=0), url=url)


def test_missing_fields_of_a_scholar_record_are_empty() -> None:
    whole, sparse, nulls = read_paper(WHOLE), read_paper(SPARSE), read_paper(NULLS)
    assert whole and sparse and nulls
    assert (whole.arxiv_id, whole.doi, whole.journal) == ("2601.00001", "10.1000/invented.1", "Invented Letters")
    assert whole.authors == ("A. Example", "Ben Sample") and whole.affiliations == ("Pond University",)
    assert (whole.published, whole.citation_count) == (datetime(2026, 1, 5, tzinfo=UTC), 1)
    assert (whole.pdf_url, whole.scholar_id) == ("https://papers.example/1.pdf", f"{1:040x}")
    assert (sparse.title, sparse.authors, sparse.arxiv_id, sparse.citation_count) == ("Sparse matter", (), None, None)
    assert (nulls.abstract, nulls.published, nulls.journal, nulls.citation_count) == (None, None, None, 0)
    assert [read_paper(record) for record in (NAMELESS, UNKNOWN, None)] == [None, None, None]


def test_a_scholar_search_gives_its_papers_and_its_total(polite: Polite) -> None:
    pages: list[dict[str, Any]] = [
        {"total": 4711, "offset": 0, "next": 3, "data": [WHOLE, NAMELESS, SPARSE]},
        {"total": 0, "offset": 0},
        {"total": 1, "offset": 0, "data": [WHOLE, NULLS]},  # counts fewer than it gives
    ]
    with loopback_semantic_scholar(script=[found_json(page) for page in pages]) as server:
        found = [search(asked(server.url, polite), "anything", limit=100) for _ in pages]
    assert [([paper.title for paper in papers], total) for papers, total in found] == [
        (["On invented matter 1", "Sparse matter"], 4711),
        ([], 0),
        (["On invented matter 1", "On invented matter 3"], 2),
    ]


def test_a_scholar_title_match_is_a_paper_or_none(polite: Polite) -> None:
    script = [found_json({"data": [{**WHOLE, "matchScore": 174.2}]}), missing("Title match not found")]
    with loopback_semantic_scholar(script=script) as server:
        found, none = (match_title(asked(server.url, polite), "anything") for _ in script)
    assert found and found.scholar_id == f"{1:040x}" and none is None


def test_a_scholar_batch_has_null_for_what_is_unknown_and_may_be_refused(polite: Polite) -> None:
    ids = ["2601.00001", "2601.00002", "2601.00003", "2601.00004"]
    another = scholar_paper(9, arxiv="2601.00099")  # not the paper that was asked for
    script = [found_json([WHOLE, None, SPARSE, another]), Answer(status=403, body=b'{"message":"Forbidden"}')]
    with loopback_semantic_scholar(script=script) as server:
        assert list(details(asked(server.url, polite), ids)) == ["2601.00001", "2601.00003"]
        with pytest.raises(NetworkError, match="SEMANTIC_SCHOLAR_API_KEY"):
            details(asked(server.url, polite), ids)


# Records as the collections have them: (id, comment, abstract, repository, withdrawn).
RECORDS: list[tuple[str, str | None, str, str | None, bool]] = [
    (
        "2601.90001",
        "9 pages. Code: https://github.com/pond/frogs.",
        "We count.",
        "https://github.com/pond/frogs",
        False,
    ),
    (
        "2601.90002",
        None,
        "Code is at \\url{https://github.com/pond/toad\\_s}.",
        "https://github.com/pond/toad_s",
        False,
    ),
    ("2601.90003", "Models: huggingface.co/pond/heron-7b", "We train.", "https://huggingface.co/pond/heron-7b", False),
    ("2601.90004", "A collection: https://huggingface.co/collections/pond/all", "We collect.", None, False),
    ("2601.90005", "Code will be at https://github.com/pond", "We promise.", None, False),
    ("2601.90006", "https://github.com/[your-repo]", "We forgot.", None, False),
    ("0704.90007", "This paper has been withdrawn by the author due to an error in eq. (2)", "We erred.", None, True),
    ("0704.90008", None, "This paper has been withdrawn.", None, True),
    ("0704.90009", "v2: a withdrawn claim is corrected", "We show that funds withdraw.", None, False),
]


def test_the_repository_and_the_withdrawal_of_each_record_are_found() -> None:
    assert [code_url(comment, abstract) for _, comment, abstract, _, _ in RECORDS] == [one[3] for one in RECORDS]
    assert [is_withdrawn(comment, abstract) for _, comment, abstract, _, _ in RECORDS] == [one[4] for one in RECORDS]


def test_records_of_a_collection_with_odd_authors_are_read_and_the_empty_one_is_named(tmp_path: Path) -> None:
    odd = [
        "Z. M\\\"uster, A.~\\'Example and B. Sample",
        "Ada Example (1), Ben Sample (2) ((1) Pond University, (2) Marsh Observatory)",
        "{\\L}. Invented, C. \\v{S}ample (Pond Collaboration)",
    ]
    records: list[dict[str, Any]] = [
        {"id": one[0], "title": f"On {one[0]}", "comment": one[1], "abstract": one[2], "authors": ["A. B"]}
        for one in RECORDS
    ]
    records += [
        {
            "id": f"acc-zz/941100{n}",
            "title": "Odd",
            "abstract": "Old.",
            "authors_raw": authors,
            "categories": ["acc-zz"],
        }
        for n, authors in enumerate(odd)
    ]
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(one) + "\n" for one in [*records, {}]), encoding="utf-8")
    faults: list[str] = []
    papers = list(read_papers(file, on_fault=faults.append))
    assert len(papers) == len(records) and papers_to_table(papers).num_rows == len(records)
    assert len(faults) == 1 and "records.jsonl" in faults[0] and str(len(records) + 1) in faults[0]
    assert [paper.authors for paper in papers[-3:]] == [
        ("Z. Müster", "A. Éxample", "B. Sample"),
        ("Ada Example", "Ben Sample"),
        ("Ł. Invented", "C. Šample"),
    ]
    assert [paper.withdrawn for paper in papers[: len(RECORDS)]] == [one[4] for one in RECORDS]
    assert [paper.github_url for paper in papers[: len(RECORDS)]] == [one[3] for one in RECORDS]
