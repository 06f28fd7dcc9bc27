"""Test that every OAI-PMH record becomes the paper that the API would return, whatever the server sends."""

import gzip
import json
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from paper_assets.errors import IncompleteFeed, InvalidInput, NetworkError
from paper_assets.sources.arxiv_api import fetch_day
from paper_assets.sources.arxiv_oai import page_of_changes, parse_changes, sets_of
from paper_assets.sources.bulk_files import read_papers
from paper_assets.sources.source import PlaceLost
from tests.loopback import Answer
from tests.loopback_arxiv import invented_paper, loopback_arxiv
from tests.loopback_oai import OaiRecord, loopback_oai, oai_error, page, record

FIRST, CHANGED = date(2026, 1, 1), date(2026, 1, 9)
SET = "cs:cs:CL"
_OTHER_FORMAT = "<record><header/><metadata><dc><title>On 2601.00002</title></dc></metadata></record>"


def changes(polite, oai, place=None):
    return page_of_changes(SET, FIRST, None, place, url=oai.url, session=polite())


def test_a_paper_belongs_to_the_same_day_as_by_the_api(polite):
    late = datetime(2026, 1, 5, 23, 59, 40, tzinfo=UTC)
    paper = invented_paper(7, late.date(), published=late, updated=late, categories=("cs.CL", "cs.LG"))
    with loopback_arxiv([paper]) as arxiv:
        [by_api] = fetch_day(late.date(), categories=["cs.CL"], url=arxiv.url, session=polite())
    fields = {"title": paper.title, "authors": ", ".join(paper.authors), "abstract": paper.abstract}
    with loopback_oai([record(paper.paper_id, f"{late:%FT%T}", changed=CHANGED, **fields)]) as oai:
        [by_oai] = changes(polite, oai).papers
    assert by_oai == by_api
    assert by_oai.day == late.date()


def test_a_revised_paper_keeps_its_day_and_has_its_newest_version(polite):
    dates = ("2026-01-05T10:00", "2026-01-06T10:00", "2026-01-08T10:00")
    with loopback_oai([record("2601.00001", *dates, changed=CHANGED)]) as oai:
        [paper] = changes(polite, oai).papers
    assert (paper.version, paper.day) == (3, date(2026, 1, 5))
    assert paper.updated == datetime(2026, 1, 8, 10, tzinfo=UTC)
    assert (paper.authors, paper.affiliations) == (("Ada Example", "Ben Sample"), ("MIT",))


def test_a_withdrawn_paper_is_marked_by_its_comment_or_by_its_empty_last_version(polite):
    dates = ("2026-01-05T10:00", "2026-01-06T10:00")
    withdrawn = record("2601.00001", *dates, changed=CHANGED, comments="This paper has been withdrawn by the author")
    empty = replace(record("2601.00002", *dates, changed=CHANGED), size="0kb", source_type="I")
    kept = replace(record("2601.00003", *dates, changed=CHANGED), size="9kb", source_type="I")
    with loopback_oai([withdrawn, empty, kept]) as oai:
        assert [paper.withdrawn for paper in changes(polite, oai).papers] == [True, True, False]


def test_pages_follow_one_another_and_deleted_records_are_named(polite):
    records = [record(f"2601.{number:05d}", "2026-01-05T10:00", changed=CHANGED) for number in range(4)]
    records.append(OaiRecord(paper_id="hep-th/9901001", changed=CHANGED))
    with loopback_oai(records, each=2) as oai:
        pages = [changes(polite, oai)]
        while pages[-1].next_page:
            pages.append(changes(polite, oai, pages[-1].next_page))
    assert [len(each.papers) for each in pages] == [2, 2, 0]
    assert pages[-1].removed == ("hep-th/9901001",)
    assert oai.queries[0] == {"verb": "ListRecords", "metadataPrefix": "arXivRaw", "set": SET, "from": "2026-01-01"}
    assert all(set(query) == {"verb", "resumptionToken"} for query in oai.queries[1:])


def test_arxiv_is_waited_for_as_long_as_it_asks(polite, fake_time):
    busy = Answer(status=503, headers={"Retry-After": "45"})
    with loopback_oai([record("2601.00001", "2026-01-05T10:00", changed=CHANGED)]) as oai:
        oai.refusals = [busy, busy]
        assert len(changes(polite, oai).papers) == 1
    assert fake_time.sleeps == pytest.approx([45.0, 45.0])


def test_a_damaged_page_is_asked_for_once_more(polite):
    with loopback_oai([record("2601.00001", "2026-01-05T10:00", changed=CHANGED)]) as oai:
        whole = page(oai.records).body
        oai.refusals = [Answer(body=whole[: len(whole) // 2])]
        assert len(changes(polite, oai).papers) == 1
        oai.refusals = [Answer(body=b"<html>down</html>")] * 2
        with pytest.raises(IncompleteFeed, match="not OAI-PMH"):
            changes(polite, oai)
        oai.refusals = [Answer(status=404, body=b"gone")] * 2
        with pytest.raises(NetworkError, match="HTTP 404"):
            changes(polite, oai)


def test_entities_and_document_types_are_refused(polite):
    whole = page([record("2601.00001", "2026-01-05T10:00", changed=CHANGED)]).body.decode()
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY f SYSTEM "file:///etc/passwd">]>'
    hostile = whole.replace("?>\n", f"?>\n{bomb}", 1).replace("On 2601", "&b;&f; 2601")
    with pytest.raises(IncompleteFeed):
        parse_changes(hostile.encode())


def test_control_characters_are_removed_on_reading(polite):
    with loopback_oai(
        [record("2601.00001", "2026-01-05T10:00", changed=CHANGED, title="Good\u202egnorw\u009b31m")]
    ) as oai:
        [paper] = changes(polite, oai).papers
    assert paper.title.isprintable()


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (record("2601.00002", changed=CHANGED), "first submitted"),
        (replace(record("2601.00002", changed=CHANGED), older=True), "first submitted"),
        (replace(record("2601.00002", changed=CHANGED), xml=_OTHER_FORMAT), "neither of the formats"),
        (record("2601.00002", "2026-01-05T10:00", changed=CHANGED, title=""), "title"),
        (record("../etc", "2026-01-05T10:00", changed=CHANGED), "not an arXiv id"),
    ],
    ids=["no versions", "no day", "another format", "no title", "no id"],
)
def test_an_invalid_record_is_named_and_the_others_are_kept(polite, broken, reason):
    good = record("2601.00001", "2026-01-05T10:00", changed=CHANGED)
    with loopback_oai([good, broken]) as oai:
        found = changes(polite, oai)
    assert [paper.paper_id for paper in found.papers] == ["2601.00001"]
    [fault] = found.faults
    assert reason in fault
    with loopback_oai([broken]) as oai, pytest.raises(IncompleteFeed, match="none of arXiv's 1 records"):
        changes(polite, oai)


def test_what_arxiv_says_of_a_question_becomes_one_line(polite):
    with loopback_oai() as oai:
        assert changes(polite, oai).papers == ()  # nothing has changed
        oai.refusals = [oai_error("badArgument", "no such set")]
        with pytest.raises(InvalidInput, match=r"no such set \(badArgument\); check the days and --set"):
            changes(polite, oai)
        oai.refusals = [oai_error("badResumptionToken", "it has expired")]
        with pytest.raises(PlaceLost, match="it has expired"):
            changes(polite, oai, "token")


def test_followed_categories_are_found_in_arxivs_sets():
    assert sets_of(["cs.CL", "stat.ML", "hep-th", "astro-ph.GA", "math-ph", "cs.*", "q-bio", "cs.CL"]) == (
        "cs:cs:CL",
        "stat:stat:ML",
        "physics:hep-th",
        "physics:astro-ph:GA",
        "physics:math-ph",
        "cs:cs",
        "q-bio:q-bio",
    )
    with pytest.raises(InvalidInput):
        sets_of(["cs.CL&verb=Identify"])


def test_real_records_come_as_they_do_from_a_file(polite, shared_data: Path, tmp_path: Path):
    """1,191 odd records of 1991 to 2024, put into arXivRaw: the same papers as by import, whole lists of versions."""
    packed = gzip.decompress((shared_data / "arxiv_odd_records" / "records.jsonl.gz").read_bytes())
    given = [json.loads(line) for line in packed.splitlines()]
    given = [each for each in given if each["title"] and each["authors_raw"] and each["versions"]]
    file = tmp_path / "records.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in given), encoding="utf-8")
    imported = {paper.paper_id: paper for paper in read_papers(file)}
    optional = {"comments": "comment", "doi": "doi", "journal-ref": "journal_ref"}
    records = [
        OaiRecord(
            paper_id=each["id"],
            changed=CHANGED,
            sets=(SET,),
            versions=tuple(datetime.fromisoformat(one["created"]) for one in each["versions"]),
            fields={
                "title": each["title"],
                "authors": each["authors_raw"],
                "categories": " ".join(each["categories"]),
                "abstract": each["abstract"],
                **{theirs: each[ours] for theirs, ours in optional.items() if each[ours]},
            },
        )
        for each in given
    ]
    with loopback_oai(records, each=500) as oai:
        pages = [changes(polite, oai)]
        while pages[-1].next_page:
            pages.append(changes(polite, oai, pages[-1].next_page))
    found = {paper.paper_id: paper for each in pages for paper in each.papers}
    assert [fault for each in pages for fault in each.faults] == []
    assert len(found) > 1_100
    assert found == imported


def test_the_older_format_gives_the_same_paper_but_for_times_and_the_number_of_versions(polite):
    dates = ("2026-01-05T10:00", "2026-01-06T10:00", "2026-01-08T10:00")
    same = {"changed": CHANGED, "comments": "5 pages", "doi": "10.1/x", "authors": "Ada Example (MIT), Ben Sample"}
    records = [record("2601.00001", *dates, **same), record("2601.00002", dates[0], **same)]
    with loopback_oai(records) as oai:
        full = changes(polite, oai).papers
    with loopback_oai([replace(each, older=True) for each in records]) as oai:
        revised, first = changes(polite, oai).papers
    assert [revised.day, first.day] == [each.day for each in full]
    assert (revised.updated, first.updated) == (datetime(2026, 1, 8, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC))
    # Revised at least once: whatever is known to be newer stays, and the PDF is that of the newest.
    assert (revised.version, revised.pdf_url) == (2, "https://arxiv.org/pdf/2601.00001")
    assert (first.version, first.pdf_url) == (1, full[1].pdf_url)
    untimed = {"published": None, "updated": None, "version": 1, "pdf_url": None}
    assert [replace(each, **untimed) for each in (revised, first)] == [replace(each, **untimed) for each in full]


def test_authors_in_parts_become_names_and_invalid_ones_are_left_out(polite):
    parts = (
        "<author><keyname>Collaboration</keyname><forenames>Sample</forenames><affiliation>Lab A, City</affiliation>"
        "</author><author><keyname>:</keyname><affiliation>Lab A, City</affiliation></author>"
        "<author><keyname>Two</keyname><keyname>Part</keyname><forenames>Ada B.</forenames><suffix>Jr</suffix></author>"
    )
    body = page([replace(record("2601.00001", "2026-01-05T10:00", changed=CHANGED, authors="X Y"), older=True)]).body
    one = "<author><keyname>Y</keyname><forenames>X</forenames></author>"
    [paper] = parse_changes(body.decode().replace(one, parts).encode()).papers
    assert paper.authors == ("Sample Collaboration", "Ada B. Two Part Jr")
    assert paper.affiliations == ("Lab A, City",)


def test_recorded_pages_of_arxiv_are_read_record_by_record(shared_data: Path):
    """Real ListRecords answers of 2017, in the format `arXiv`, beside what another reader made of them."""
    folder = shared_data / "arxiv_oai_pmh" / "raw_xml"
    expected = json.loads((folder / "functional__arxiv__fixtures__arxiv_expected.json").read_text("utf-8"))
    by_id = {each["arxiv_eprints"][0]["value"]: each for each in expected}
    found = [parse_changes(file.read_bytes()) for file in sorted(folder.glob("functional*physics*.xml"))]
    papers = [paper for each in found for paper in each.papers]
    assert [each.faults for each in found] == [(), ()]
    assert {paper.paper_id for paper in papers} == by_id.keys()
    for paper in papers:
        theirs = by_id[paper.paper_id]
        assert f"{paper.published:%F}" == theirs["preprint_date"]
        assert paper.title == theirs["titles"][0]["title"]
        assert paper.abstract == theirs["abstracts"][0]["value"]
        assert set(paper.categories) == set(theirs["arxiv_eprints"][0]["categories"])
        assert paper.doi == next((each["value"] for each in theirs.get("dois", ())), None)
        assert sorted(name.split()[-1] for name in paper.authors) == sorted(
            each["full_name"].split(",")[0].split()[-1] for each in theirs["authors"]
        )
