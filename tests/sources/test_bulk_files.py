"""Test papers from files of every format, streamed; every fault is one line with file and line (S3)."""

import gzip
import json
import subprocess
import sys
import tracemalloc
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from paper_assets.errors import InvalidInput
from paper_assets.paper import paper_to_mapping, papers_from_table, papers_to_table
from paper_assets.paper_id import pdf_address
from paper_assets.sources.bulk_files import read_papers
from tests.loopback_arxiv import error_xml, feed_xml, invented_paper

DAY = date(2026, 3, 4)
SNAPSHOT = {
    "id": "0704.0001",
    "submitter": "Ada Example",
    "authors": "A. \\'Example, B.~Sample (Univ X)",
    "authors_parsed": [["Éxample", "A.", ""], ["Sample", "B.", "Jr", "Univ X"]],
    "title": "On invented\n  matter",
    "comments": "12 pages; code at https://github.com/lab/tool",
    "journal-ref": None,
    "doi": "10.1000/invented",
    "categories": "hep-ph cs.LG",
    "abstract": "  We invent\nmatter.\n",
    "versions": [
        {"version": "v1", "created": "Mon, 2 Apr 2007 19:18:42 GMT"},
        {"version": "v2", "created": "Tue, 24 Jul 2007 20:10:27 GMT"},
    ],
    "update_date": "2008-11-26",
}


@pytest.fixture
def file(tmp_path):
    """`file(content)`: a file holding bytes, a text, or records as JSON lines."""

    def write(content, name="papers.jsonl"):
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return path

    return write


def test_a_snapshot_record_becomes_a_paper(file):
    (paper,) = read_papers(file([SNAPSHOT]))
    assert (paper.paper_id, paper.version) == ("0704.0001", 2)
    assert (paper.title, paper.abstract) == ("On invented matter", "We invent matter.")
    assert paper.authors == ("A. Éxample", "B. Sample Jr")
    assert paper.affiliations == ("Univ X",)
    assert paper.published == datetime(2007, 4, 2, 19, 18, 42, tzinfo=UTC)
    assert paper.updated == datetime(2007, 7, 24, 20, 10, 27, tzinfo=UTC)
    assert (paper.categories, paper.primary_category) == (("hep-ph", "cs.LG"), "hep-ph")
    assert paper.github_url == "https://github.com/lab/tool"
    assert paper.pdf_url == "https://arxiv.org/pdf/0704.0001v2"
    assert paper.doi == "10.1000/invented" and paper.journal_ref is None and not paper.withdrawn


@pytest.mark.parametrize(
    ("changes", "authors"),
    [
        ({"authors_parsed": None}, ("A. Éxample", "B. Sample")),
        ({"authors_parsed": [], "authors": ["A. One", "B.~Tw\\'o"]}, ("A. One", "B. Twó")),
        ({"authors_parsed": None, "authors": None, "authors_raw": "A. One"}, ("A. One",)),
    ],
)
def test_authors_come_in_three_shapes(file, changes, authors):
    record = {**SNAPSHOT, "authors": "A. \\'Example, B.~Sample (Univ X)", **changes}
    (paper,) = read_papers(file([{name: value for name, value in record.items() if value is not None}]))
    assert paper.authors == authors


def test_a_record_of_a_derived_collection_becomes_a_paper(file):
    record = {
        "id": "2603.00001",
        "version": "v3",
        "title": "T",
        "abstract": "A",
        "authors": ["Ada Example"],
        "categories": ["cs.CL", "cs.LG"],
        "primary_category": None,
        "published": "2026-03-04",
        "updated": None,
        "comment": None,
        "code_url": "https://github.com/lab/tool}{this",
    }
    (paper,) = read_papers(file([record]))
    assert (paper.version, paper.primary_category, paper.day) == (3, "cs.CL", DAY)
    assert paper.github_url == "https://github.com/lab/tool"


def test_own_records_come_back_as_they_were(file):
    papers = [invented_paper(0, DAY, doi="10.1/x", affiliations=("Univ Ü",)), invented_paper(1, DAY, version=2)]
    assert list(read_papers(file([paper_to_mapping(paper) for paper in papers]))) == papers


def test_authors_of_own_records_have_no_tex(file):
    record = {"paper_id": "2603.00001", "title": "T", "abstract": "A", "authors": [r"J\"urgen Te\v{s}i\'c", "Ada ~ B"]}
    (paper,) = read_papers(file([record]))
    assert paper.authors == ("Jürgen Tešić", "Ada ~ B")


def test_an_own_record_without_them_gets_its_link_and_its_withdrawal(file):
    record = {"paper_id": "2603.00001", "title": "T", "abstract": "Withdrawn.", "authors": []}
    (paper,) = read_papers(file([{**record, "comment": "github.com/lab/tool"}]))
    assert paper.github_url == "https://github.com/lab/tool" and paper.withdrawn


def test_an_atom_file_gives_the_papers_of_the_feed(file):
    papers = [invented_paper(number, DAY) for number in range(300)]
    expected = [replace(paper, pdf_url=pdf_address(paper.paper_id, 1)) for paper in papers]
    assert list(read_papers(file(feed_xml(papers), "feed.txt"))) == expected
    assert list(read_papers(file(gzip.compress(feed_xml(papers)), "feed.txt"))) == expected


def test_an_empty_feed_holds_no_papers(file):
    assert list(read_papers(file(feed_xml([])))) == []


@pytest.mark.parametrize("pack", [lambda content: content, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"], ids=["no mark", "byte order mark"])
def test_packing_and_a_byte_order_mark_do_not_matter(file, pack, bom):
    content = bom + b"\n" + json.dumps(SNAPSHOT).encode() + b"\r\n\n" + json.dumps(SNAPSHOT).encode()
    assert len(list(read_papers(file(pack(content), "named.csv")))) == 2


def test_a_repeated_id_is_read_as_often_as_it_occurs(file):
    assert len(list(read_papers(file([SNAPSHOT, SNAPSHOT])))) == 2


RECORD = {"paper_id": "2603.00001", "title": "T", "abstract": "A", "authors": ["Ada"]}
BAD_LINES = {
    "no JSON": (b"{nonsense", "not valid JSON"),
    "no object": (b"[1, 2]", "expected an object"),
    "no id": (b'{"title": "T"}', "no paper_id"),
    "an invalid id": (b'{"id": "x/1", "title": "T"}', "not an arXiv id"),
    "a number as title": (json.dumps({**RECORD, "title": 7}).encode(), "title must be a text, got a number"),
    "a number as snapshot title": (json.dumps({**SNAPSHOT, "title": 7}).encode(), "title must be a text"),
    "an empty title": (json.dumps({**SNAPSHOT, "title": " "}).encode(), "title is empty"),
    "no authors": (json.dumps({"id": "2603.00001", "title": "T", "abstract": "A"}).encode(), "authors"),
    "an invalid date": (json.dumps({**RECORD, "published": "soon"}).encode(), "published must be a date"),
    "a date out of reach": (
        json.dumps({**RECORD, "published": "0001-01-01T00:00:00+14:00"}).encode(),
        "published must be a date",
    ),
    "an invalid mail date": (
        json.dumps({**SNAPSHOT, "versions": [{"version": "v1", "created": "Xyz, 99 Foo"}]}).encode(),
        "published must be a date",
    ),
    "a version out of reach": (json.dumps({**RECORD, "version": 10**12}).encode(), "version must be"),
    "categories of numbers": (json.dumps({**SNAPSHOT, "categories": [1]}).encode(), "categories must be"),
    "half a surrogate pair": (b'{"paper_id": "2603.00001", "title": "\\ud800"}', "not valid JSON"),
    "a NUL": (json.dumps({**RECORD, "abstract": "a\0b"}).encode(), "abstract contains a NUL"),
    "a NUL in an author": (json.dumps({**RECORD, "authors": ["a\0b"]}).encode(), "authors contains a NUL"),
    "bytes that are not UTF-8": (b'{"paper_id": "\xff"}', "not valid JSON"),
    "nested too deeply": (b'{"a":' * 3000 + b"1" + b"}" * 3000, "not valid JSON"),
    "NaN": (b'{"paper_id": NaN}', "not valid JSON"),
}


@pytest.mark.parametrize(("line", "message"), BAD_LINES.values(), ids=BAD_LINES.keys())
def test_a_bad_line_stops_the_reading_or_is_reported_and_skipped(file, line, message):
    good = json.dumps(RECORD).encode()
    path = file(good + b"\n" + line + b"\n" + good + b"\n")
    with pytest.raises(InvalidInput, match=f"^{path}:2: .*{message}") as caught:
        list(read_papers(path))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400
    faults = []
    assert len(list(read_papers(path, on_fault=faults.append))) == 2
    assert faults == [str(caught.value)]


def test_a_record_that_cannot_be_used_is_named_and_a_damaged_line_still_stops_the_reading(file):
    good, untitled = ({**RECORD, "paper_id": f"2603.0000{number}"} for number in (1, 2))
    untitled["title"] = " "
    faults = []
    path = file([good, untitled, {**good, "paper_id": "2603.00003"}])
    read = [paper.paper_id for paper in read_papers(path, on_unusable=faults.append)]
    assert (read, faults) == (
        ["2603.00001", "2603.00003"],
        [f"{path}:2: paper (2603.00002): title is empty; fix or remove the line"],
    )
    with pytest.raises(InvalidInput, match=":2: not valid JSON"):
        list(read_papers(file(json.dumps(good).encode() + b"\n{nonsense\n"), on_unusable=faults.append))


def test_a_gigantic_line_is_refused_without_being_held_in_memory(file):
    good = json.dumps(RECORD).encode() + b"\n"
    path = file(gzip.compress(good + b'{"paper_id": "' + b"x" * 80_000_000 + b'"}\n' + good, 1))
    faults = []
    tracemalloc.start()
    assert len(list(read_papers(path, on_fault=faults.append))) == 2
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "2: the line is longer than 10 MB" in faults[0] and len(faults) == 1
    assert peak < 40_000_000
    with pytest.raises(InvalidInput, match="2: the line is longer"):
        list(read_papers(path))


COUNT = """
import re, sys
from pathlib import Path
from paper_assets.sources.bulk_files import read_papers
print(sum(1 for _ in read_papers(Path(sys.argv[1]))))
print(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the memory of a process is asked of Linux")
def test_a_large_feed_is_not_held_in_memory(file):
    """Measure a separate process, because the XML library does not return memory."""

    def memory(count):
        path = file(feed_xml([invented_paper(0, DAY, abstract="word " * 5000)] * count), "feed.xml")
        answer = subprocess.run([sys.executable, "-c", COUNT, path], capture_output=True, check=True, text=True)
        read, kilobytes = map(int, answer.stdout.split())
        assert read == count
        return kilobytes

    assert memory(2000) < memory(20) + 20_000  # the larger feed has 50,000 kB


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": "x" * 1_048_576}, "title has 1,048,576 characters, at most 2,000"),
        ({"abstract": "x" * 50_001}, "abstract has 50,001 characters, at most 50,000"),
        ({"authors": ["A. Example"] * 10_001}, "authors has 10,001 entries, at most 10,000"),
        ({"affiliations": ["x" * 3_000]}, "an entry of affiliations has 3,000 characters, at most 2,000"),
    ],
)
def test_a_paper_beyond_the_limits_is_refused_by_name_and_the_rest_is_read(file, changes, message):
    good = paper_to_mapping(invented_paper(1, DAY))
    path = file([{**good, "paper_id": "2603.09999", **changes}, good])
    faults = []
    assert [paper.paper_id for paper in read_papers(path, on_unusable=faults.append)] == [good["paper_id"]]
    [fault] = faults
    assert fault == f"{path}:1: paper 2603.09999 is refused: {message}; shorten or remove it"


def test_an_entry_of_a_feed_file_beyond_the_limits_is_refused_by_name(file):
    huge = replace(invented_paper(1, DAY), title="x" * 1_048_576)
    path = file(feed_xml([huge, invented_paper(2, DAY)]), "feed.xml")
    faults = []
    assert len(list(read_papers(path, on_unusable=faults.append))) == 1
    [fault] = faults
    assert f"paper {huge.paper_id} is refused: title has 1,048,576 characters, at most 2,000" in fault


def test_a_truncated_last_line_is_reported(file):
    path = file(json.dumps(RECORD) + "\n" + json.dumps(RECORD)[:30])
    with pytest.raises(InvalidInput, match=r":2: the last line .* truncated"):
        list(read_papers(path))


def test_a_truncated_gzip_file_is_reported_after_its_papers(file):
    lines = "".join(json.dumps({**RECORD, "abstract": f"{number * 7919}"}) + "\n" for number in range(20_000))
    path = file(gzip.compress(lines.encode())[:-5000])
    faults = []
    papers = list(read_papers(path, on_fault=faults.append))
    assert 0 < len(papers) < 20_000
    assert len(faults) == 1 and "truncated or damaged" in faults[0]
    with pytest.raises(InvalidInput, match="truncated or damaged"):
        list(read_papers(path))


def test_a_truncated_feed_is_reported_after_its_papers(file):
    whole = feed_xml([invented_paper(number, DAY) for number in range(500)])
    path = file(whole[:-100])
    faults = []
    assert len(list(read_papers(path, on_fault=faults.append))) == 499
    assert len(faults) == 1 and "not well-formed" in faults[0]
    with pytest.raises(InvalidInput, match="not well-formed"):
        list(read_papers(path))


def test_a_bad_entry_of_a_feed_is_named_by_its_line(file):
    papers = [invented_paper(number, DAY) for number in range(3)]
    path = file(feed_xml(papers).replace(papers[1].paper_id.encode(), b"nonsense", 1))
    with pytest.raises(InvalidInput, match=r":5: entry id .*nonsense"):
        list(read_papers(path))
    faults = []
    assert [paper.paper_id for paper in read_papers(path, on_fault=faults.append)] == [
        papers[0].paper_id,
        papers[2].paper_id,
    ]
    assert len(faults) == 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"<!DOCTYPE html><html><body>error</body></html>", "not an Atom feed but <html>"),
        (b"<html><p>unclosed", "not an Atom feed but <html>"),
        (b"<", "not well-formed"),
        (b"<a:b/>", "not an Atom feed but <a:b>"),
        (b"<?xml version='1.0'?><OAI-PMH/>", "not an Atom feed but <OAI-PMH>"),
        (b"[{}]", "one record per line"),
        (b"\x1f\x8bnonsense", "truncated or damaged"),
        (bytes(range(256)) * 100, "1: not valid JSON"),
        ('{"id": 1}'.encode("utf-16"), "save it as UTF-8"),
        (error_xml("bad query"), "bad query"),
    ],
)
def test_a_file_that_holds_no_papers_says_why(file, content, message):
    path = file(content)
    with pytest.raises(InvalidInput, match=message) as caught:
        list(read_papers(path))
    assert str(caught.value).startswith(str(path))
    with pytest.raises(InvalidInput):
        list(read_papers(path, on_fault=lambda _: None))


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(InvalidInput, match="does not exist"):
        list(read_papers(tmp_path / "nowhere.jsonl"))
    with pytest.raises(InvalidInput, match="is a folder"):
        list(read_papers(tmp_path))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([SNAPSHOT, RECORD]), st.dictionaries(st.sampled_from([*SNAPSHOT, *RECORD, "version"]), JSON))
def test_whatever_a_field_holds_the_record_is_refused_by_name_or_fits_a_table(file, base, changes):
    path = file([{**base, **changes}])
    try:
        papers = list(read_papers(path))
    except InvalidInput as error:
        assert str(error).startswith(f"{path}:1: ")
        return
    assert papers_from_table(papers_to_table(papers)) == papers


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from([b"", b"<", b"{", b"\x1f\x8b", b"\xef\xbb\xbf", b"<feed>"]))
def test_no_bytes_break_the_reading(file, content, start):
    try:
        list(read_papers(file(start + content)))
    except InvalidInput as error:
        assert "\n" not in str(error)


def test_real_records_are_read(shared_data):
    faults = []
    papers = list(read_papers(shared_data / "arxiv_papers" / "papers.jsonl.gz", on_fault=faults.append))
    assert len(papers) == len({paper.paper_id for paper in papers}) == 8267 and faults == []
    odd = list(read_papers(shared_data / "arxiv_odd_records" / "records.jsonl.gz", on_fault=faults.append))
    assert len(odd) == 1191 and len(faults) == 1  # one of the 1,192 records is empty
    assert papers_to_table([*papers, *odd]).num_rows == 9458
    assert not any("\\" in name or "{" in name for paper in odd for name in paper.authors)
    assert not any("(" in name or ")" in name for paper in odd for name in paper.authors)
