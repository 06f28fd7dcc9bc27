import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import InvalidArxivId, InvalidPaper
from paper_assets.paper import (
    Paper,
    paper_from_mapping,
    paper_to_mapping,
    papers_from_table,
    papers_to_table,
    split_arxiv_id,
    unversioned,
)

RECORD = {"paper_id": "2501.12345", "title": "A title", "abstract": "An abstract.", "authors": ["Ada Example"]}


@pytest.mark.parametrize(
    ("text", "identifier", "version"),
    [
        ("2501.12345", "2501.12345", None),
        (" 2501.12345v3 ", "2501.12345", 3),
        ("arXiv:0704.0001v1", "0704.0001", 1),
        ("hep-th/9901001", "hep-th/9901001", None),
        ("math.GT/0309136v2", "math/0309136", 2),
        ("https://arxiv.org/abs/2501.12345v2", "2501.12345", 2),
        ("http://export.arxiv.org/pdf/hep-th/9901001v1.pdf", "hep-th/9901001", 1),
    ],
)
def test_an_id_is_read_however_it_is_written(text: str, identifier: str, version: int | None) -> None:
    assert split_arxiv_id(text) == (identifier, version)


@pytest.mark.parametrize("text", ["", "2501.1", "../etc/passwd", "2501.12345v0", "x" * 10_000, "２５０１.12345"])
def test_what_is_no_id_is_refused_in_one_short_line(text: str) -> None:
    with pytest.raises(InvalidArxivId) as refusal:
        split_arxiv_id(text)
    assert len(str(refusal.value)) < 200


def test_ids_of_other_sources_compare_as_they_are() -> None:
    assert unversioned(" s2:abc ") == "s2:abc"


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"paper_id": None}, "paper_id"),
        ({"paper_id": 250112345}, "paper_id"),
        ({"title": "  "}, "title"),
        ({"abstract": ["text"]}, "abstract"),
        ({"authors": "Ada Example"}, "authors"),
        ({"authors": ["Ada", 3]}, "authors"),
        ({"published": "yesterday"}, "published"),
        ({"categories": {"cs.CL": 1}}, "categories"),
        ({"version": True}, "version"),
        ({"withdrawn": "yes"}, "withdrawn"),
        ({"title": "half a pair \ud800"}, "title"),
        ({"authors": ["a\0b"]}, "authors"),
    ],
)
def test_a_malformed_paper_is_refused_with_its_place_and_field(change: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidPaper, match=named) as refusal:
        paper_from_mapping({**RECORD, **change}, position=6)
    assert "paper 7" in str(refusal.value)


def test_the_day_is_that_of_submission_in_utc() -> None:
    late = paper_from_mapping({**RECORD, "published": "2026-03-01T23:30:00-05:00"})
    assert f"{late.day}" == "2026-03-02"
    assert paper_from_mapping(RECORD).day is None


@given(
    st.builds(
        Paper,
        paper_id=st.from_regex(r"\A\d{4}\.\d{5}\Z"),
        title=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(str.strip),
        abstract=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
        authors=st.tuples(st.just("José Núñez")),
        version=st.integers(1, 99),
        comment=st.none() | st.just("8 pages"),
        categories=st.just(("cs.CL", "cs.LG")),
        withdrawn=st.booleans(),
    )
)
def test_a_paper_comes_back_from_json_and_from_arrow_as_it_was(paper: Paper) -> None:
    assert paper_from_mapping(paper_to_mapping(paper)) == paper
    assert papers_from_table(papers_to_table([paper])) == [paper]
