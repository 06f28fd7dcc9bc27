"""Paper ids are read in every common form and stored in one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets import paper_id as arxiv_ids
from paper_assets.errors import InvalidArxivId
from paper_assets.paper_id import PaperId, split_arxiv_id, split_paper_id, unversioned
from paper_assets.settings import KNOWN_HOSTS


@pytest.mark.parametrize(
    ("text", "identifier", "version"),
    [
        ("2501.12345", "2501.12345", None),
        (" 2501.12345v3 ", "2501.12345", 3),
        ("arXiv:0704.0001v1", "0704.0001", 1),
        ("oai:arXiv.org:hep-th/9901001", "hep-th/9901001", None),
        ("hep-th/9901001", "hep-th/9901001", None),
        ("math.GT/0309136v2", "math/0309136", 2),
        ("https://arxiv.org/abs/2501.12345v2", "2501.12345", 2),
        ("https://arxiv.org/html/2501.12345v2", "2501.12345", 2),
        ("10.48550/arXiv.2501.12345", "2501.12345", None),
        ("https://doi.org/10.48550/arxiv.hep-th/9901001", "hep-th/9901001", None),
        ("http://export.arxiv.org/pdf/hep-th/9901001v1.pdf", "hep-th/9901001", 1),
    ],
)
def test_an_id_is_read_however_it_is_written(text: str, identifier: str, version: int | None) -> None:
    assert split_arxiv_id(text) == (identifier, version)


@pytest.mark.parametrize("text", ["", "2501.1", "../etc/passwd", "2501.12345v0", "x" * 10_000, "２５０１.12345"])
def test_an_invalid_id_is_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(InvalidArxivId) as refusal:
        split_arxiv_id(text)
    assert len(str(refusal.value)) < 200


def test_ids_of_other_sources_compare_as_they_are() -> None:
    assert unversioned(" s2:abc ") == "s2:abc"


@pytest.mark.parametrize(
    ("text", "source", "value", "version"),
    [
        ("arXiv:2501.12345v2", "arxiv", "2501.12345", 2),
        (" hep-th/9901001 ", "arxiv", "hep-th/9901001", None),
        ("biorxiv:10.1101/2026.01.02.123456", "biorxiv", "10.1101/2026.01.02.123456", None),
        ("S2:0123abcd", "S2", "0123abcd", None),
        ("https://arxiv.org/abs/2501.12345", "arxiv", "2501.12345", None),
    ],
)
def test_an_id_knows_its_source(text: str, source: str, value: str, version: int | None) -> None:
    assert split_paper_id(text) == (PaperId(source, value), version)


@pytest.mark.parametrize("text", ["p1", "https://example.org/x", "biorxiv:", "biorxiv: a", "arxiv:xyz", "1:2", ":2"])
def test_an_id_of_an_unknown_source_is_refused_as_input_and_stored_unchanged(text: str) -> None:
    with pytest.raises(InvalidArxivId):
        split_paper_id(text)
    assert unversioned(f" {text} ") == text


ARXIV_IDS = st.from_regex(r"([0-9]{4}\.[0-9]{4,5}|[a-z]{2,5}/[0-9]{7})", fullmatch=True)


@given(ARXIV_IDS, st.from_regex(r"[a-z]{2,8}", fullmatch=True))
def test_the_stored_form_is_read_back_and_ids_of_two_sources_never_collide(value: str, source: str) -> None:
    ours, theirs = PaperId("arxiv", value), PaperId(source, value)
    assert split_paper_id(str(ours)) == (ours, None)
    assert str(ours) == value
    if source != "arxiv":
        assert split_paper_id(str(theirs)) == (theirs, None)
        assert str(theirs) != str(ours)


@given(ARXIV_IDS, st.integers(1, 99) | st.none())
def test_an_address_that_is_built_is_read_back(paper_id: str, version: int | None) -> None:
    pdf = arxiv_ids.pdf_address(paper_id, version)
    assert arxiv_ids.split_arxiv_address(pdf) == split_arxiv_id(pdf) == (paper_id, version)
    assert arxiv_ids.split_arxiv_address(arxiv_ids.abs_address(paper_id)) == (paper_id, None)
    assert arxiv_ids.names_version(pdf) == (version is not None)
    assert arxiv_ids.is_text_of(pdf, paper_id, version or 1) == (version is not None)
    assert arxiv_ids.pdf_name(pdf) == paper_id + (f"v{version}" if version else "")


def test_an_address_is_arxivs_or_not() -> None:
    assert arxiv_ids.split_arxiv_address("https://www.biorxiv.org/abs/2501.12345") is None
    with pytest.raises(InvalidArxivId, match="not name a paper"):
        arxiv_ids.split_arxiv_address("https://arxiv.org/list/cs.CL/recent")
    assert arxiv_ids.pdf_name("https://example.org/pdf/2501.12345") is None
    assert [arxiv_ids.is_arxiv_host(host) for host in ("arxiv.org", "export.arxiv.org", "biorxiv.org")] == [
        True,
        True,
        False,
    ]
    assert all(arxiv_ids.is_arxiv_host(host) == ("arxiv" in host) for host in KNOWN_HOSTS)
