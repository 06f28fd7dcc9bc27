import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import InvalidPaper
from paper_assets.paper import (
    Paper,
    paper_from_mapping,
    paper_to_mapping,
    papers_from_table,
    papers_to_table,
)
from paper_assets.text.cleaning import without_controls

RECORD = {"paper_id": "2501.12345", "title": "A title", "abstract": "An abstract.", "authors": ["Ada Example"]}


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
        title=st.text().map(without_controls).filter(str.strip),
        abstract=st.text().map(without_controls),
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
