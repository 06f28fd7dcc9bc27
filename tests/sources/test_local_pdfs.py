from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.paper_id import arxiv_id_of_file
from paper_assets.sources.pdf_files import local_pdfs, pdf_files


def test_a_file_beginning_with_the_id_is_the_papers() -> None:
    names = ["2603.00001.pdf", "2603.00002v3.pdf", "2603.00003_a_title.pdf", "2603.00004 A title.PDF", "notes.pdf"]
    ids = [f"2603.0000{number}" for number in range(1, 6)]
    assert local_pdfs(ids, names) == dict(zip(ids[:4], names[:4], strict=True))


def test_a_longer_number_is_another_paper() -> None:
    assert local_pdfs(["0704.0001", "p1"], ["0704.00012.pdf", "p10.pdf", "xp1.pdf"]) == {}
    assert local_pdfs(["p1", "p10"], ["p10.pdf"]) == {"p10": "p10.pdf"}


def test_the_slash_of_an_old_id_may_be_written_in_several_ways() -> None:
    for name in ("hep-th_9901001.pdf", "hep-th-9901001v2.pdf", "hep-th9901001.pdf"):
        assert local_pdfs(["hep-th/9901001"], [name]) == {"hep-th/9901001": name}


def test_only_pdf_files_of_the_folder_count(tmp_path: Path) -> None:
    for name in ("b.pdf", "a.PDF", "c.txt"):
        (tmp_path / name).touch()
    assert pdf_files(tmp_path) == ("a.PDF", "b.pdf")
    assert pdf_files(tmp_path / "absent") == ()


def test_a_file_name_gives_the_paper_and_its_version() -> None:
    assert arxiv_id_of_file("2603.00017v2.pdf") == ("2603.00017", 2)
    assert arxiv_id_of_file("0704.0001 kelp.PDF") == ("0704.0001", None)
    assert arxiv_id_of_file("2603.00017v2beta.pdf") == ("2603.00017", 2)
    for name in ("hep-th_9901001.pdf", "hep-th-9901001v3.pdf", "hep-th9901001_title.pdf", "math-ph_0001002.pdf"):
        assert arxiv_id_of_file(name) == local_id(name)


def local_id(name: str) -> tuple[str, int | None]:
    ((paper_id, found),) = local_pdfs(["hep-th/9901001", "math-ph/0001002"], [name]).items()
    assert found == name
    return paper_id, 3 if "v3" in name else None


def test_a_name_that_only_looks_like_an_id_is_not_one() -> None:
    for name in ("2413.00017.pdf", "2603.000171.pdf", "notes2024010.pdf", "hep-th_9913001.pdf", "x2603.00017.pdf"):
        assert arxiv_id_of_file(name) is None


IDS = st.from_regex(r"([0-9]{2}0[1-9]\.[0-9]{4,5}|cs/[0-9]{2}1[0-2][0-9]{3})\Z", fullmatch=True)


@given(IDS, st.text("v12_ x.", max_size=6))
def test_both_ways_of_reading_a_name_agree(paper_id: str, rest: str) -> None:
    name = f"{paper_id.replace('/', '_')}{rest}.pdf"
    found = arxiv_id_of_file(name)
    assert (local_pdfs([paper_id], [name]) == {paper_id: name}) == (found is not None and found[0] == paper_id)


@pytest.mark.parametrize(
    "name",
    [
        "10.48550_arxiv.2603.00017.pdf",
        "10.48550_arXiv.2603.00017v2.pdf",
        "10.48550_ARXIV.2603.00017.v2.PDF",
        "10.48550%2FarXiv.2603.00017 A title.pdf",
        "doi_10.48550-arXiv.2603.00017_v2.pdf",
        "arXiv_2603.00017.pdf",
        "arxiv-2603.00017v2.pdf",
        "arXiv2603.00017 A title.pdf",
        "ArXiv 2603.00017.pdf",
        "arXiv%3A2603.00017.pdf",
        "2603.00017V2.pdf",
    ],
)
def test_a_pdf_named_by_its_doi_or_with_arxiv_before_the_id_is_found(name: str) -> None:
    assert local_pdfs(["2603.00017", "2603.0001"], [name]) == {"2603.00017": name}
    assert arxiv_id_of_file(name) == ("2603.00017", 2 if "v2" in name.lower()[-7:] else None)


def test_an_old_id_after_the_doi_s_prefix_is_found() -> None:
    for name in ("10.48550_arXiv.hep-th_9901001.pdf", "arXiv_Hep-Th-9901001.v3.pdf"):
        assert local_pdfs(["hep-th/9901001"], [name]) == {"hep-th/9901001": name}
        assert arxiv_id_of_file(name) == ("hep-th/9901001", 3 if "v3" in name else None)


def test_another_doi_or_another_word_before_the_digits_is_not_an_arxiv_id() -> None:
    for name in ("10.1145_2603.00017.pdf", "10.48550_2603.00017.pdf", "xarxiv_2603.00017.pdf", "arxiv_12603.00017.pdf"):
        assert local_pdfs(["2603.00017"], [name]) == {}
        assert arxiv_id_of_file(name) is None


def test_ids_that_differ_only_in_case_keep_their_own_files() -> None:
    assert local_pdfs(["Kelp", "kelp"], ["Kelp.pdf", "kelp.pdf"]) == {"Kelp": "Kelp.pdf", "kelp": "kelp.pdf"}


def test_a_title_that_begins_with_v_is_not_a_version() -> None:
    assert arxiv_id_of_file("2603.00017_v2vision.pdf") == ("2603.00017", None)
