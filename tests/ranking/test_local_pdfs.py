from pathlib import Path

from paper_assets.ranking.local_pdfs import local_pdfs, pdf_files


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
