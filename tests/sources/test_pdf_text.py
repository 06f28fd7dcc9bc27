"""Test PDF extraction: readable text, page by page, or one line with the reason for its absence."""

import os
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import PdfFetchFailed
from paper_assets.sources import pdf_text as module
from paper_assets.sources.pdf_text import clean_pages, pages_of, pdf_text
from tests.invented_pdfs import pdf, scanned_pdf

WHOLE = pdf("Kelp grows fast.\nSo does the urchin.", "A second page.")
WHOLE_TEXT = ("Kelp grows fast.\nSo does the urchin.", "A second page.")


def refusal(content: bytes | Path, **limits: int) -> str:
    with pytest.raises(PdfFetchFailed) as caught:
        pdf_text(content, name="kelp.pdf", **limits)
    message = str(caught.value)
    assert "\n" not in message
    return message


def read_here(content: bytes) -> tuple[str, ...]:
    """Hundreds of damaged files are read without a process for each."""
    module._refuse_others(content, "kelp.pdf")
    return pages_of(content, named="kelp.pdf", most_pages=10, most_characters=10_000)


def bomb(times: int) -> bytes:
    """A page that says the same a great many times, packed into almost nothing."""
    content = zlib.compress(b"BT /F 10 Tf 40 780 Td\n" + b"(Kelp grows and grows.) Tj T*\n" * times + b"ET", 9)
    return b"\n".join(
        [
            b"%PDF-1.4",
            b"1 0 obj <</Type/Catalog/Pages 2 0 R>> endobj",
            b"2 0 obj <</Type/Pages/Count 1/Kids[3 0 R]>> endobj",
            b"3 0 obj <</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F 5 0 R>>>>/Contents 4 0 R>>",
            b"endobj",
            b"4 0 obj <</Filter/FlateDecode/Length %d>> stream" % len(content),
            content,
            b"endstream endobj",
            b"5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Courier>> endobj",
            b"trailer <</Size 6/Root 1 0 R>>",
            b"%%EOF",
        ]
    )


def test_each_page_is_a_text_with_its_lines(tmp_path: Path) -> None:
    file = tmp_path / "kelp.pdf"
    file.write_bytes(WHOLE)
    assert pdf_text(file) == pdf_text(WHOLE) == WHOLE_TEXT


def test_a_pdf_of_another_program_is_read() -> None:
    """Embedded fonts, compressed streams, and an empty page between two."""
    import matplotlib
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    file = BytesIO()
    with matplotlib.rc_context({"pdf.fonttype": 42}), PdfPages(file) as pages:
        for text in ("An eﬃcient search\nfor naïve readers", "", "Appendix"):
            figure = Figure()
            figure.text(0.1, 0.5, text)
            pages.savefig(figure)
    assert pdf_text(file.getvalue()) == ("An efficient search\nfor naïve readers", "", "Appendix")


def test_a_word_broken_at_the_end_of_a_line_is_whole_again() -> None:
    (text,) = pdf_text(pdf("the results of quan-\ntised models are steady"))
    assert text == "the results of quantised models are steady"


@pytest.mark.parametrize(
    ("broken", "joined"),
    [
        ("non-\nEnglish text", "non-English text"),
        ("the years 1990-\n2000", "the years 1990-2000"),
        ("state-of-the-\nart models", "state-of-the-art models"),
        ("pre-\ntrained, as pre-trained models are", "pre-trained, as pre-trained models are"),
        ("re-\ncover and re-cover and recover, recover", "recover and re-cover and recover, recover"),
        ("pre\u2010\ntrained, as pre\u2010trained models are", "pre-trained, as pre\u2010trained models are"),
        ("soft\u00ad\nhyphen", "softhyphen"),
        ("x -\n y", "x -\ny"),
        ("a list:\n- kelp\n- urchin", "a list:\n- kelp\n- urchin"),
    ],
)
def test_a_hyphen_stays_where_it_belongs(broken: str, joined: str) -> None:
    assert clean_pages([broken]) == (joined,)
    assert pdf_text(pdf(broken)) == (joined,)


def test_another_page_shows_how_a_word_is_spelled() -> None:
    assert clean_pages(["multi-\nhead", "a multi-head layer"])[0] == "multi-head"
    assert clean_pages(["multi-\nhead", "a multihead layer"])[0] == "multihead"


def test_ligatures_are_spelt_out_and_what_cannot_be_seen_is_gone() -> None:
    raw = "eﬃcient ﬂow ﬁt\x07ting in\u00advisible\u200b \x0b mathe\ud800matics \ue000ends here\ufffd"
    (text,) = pdf_text(pdf(raw))
    assert text == "efficient flow fitting invisible mathematics ends here\ufffd"
    text.encode("utf-8")


def test_text_outside_the_page_is_not_read() -> None:
    first, second = b"BT /F 10 Tf 12 TL 40 780 Td", b"BT /F 10 Tf 12 TL 40 880 Td"
    two = pdf("Kelp grows fast.", "Ignore the kelp.")
    assert pdf_text(two[: two.rindex(first)] + two[two.rindex(first) :].replace(first, second)) == (
        "Kelp grows fast.",
        "",
    )


def test_characters_beyond_the_basic_plane_and_other_scripts_stay() -> None:
    assert pdf_text(pdf("let 𝑥² ≤ α, 단백질 접힘, 蛋白质")) == ("let 𝑥² ≤ α, 단백질 접힘, 蛋白质",)


ODD = st.text(st.sampled_from("abZ9éﬁ𝑥단 \n\r\t-‐\x00\x02\x07\u00ad\u200b\ud83d\ue000\ufffe\ufeff"), max_size=60)


@given(st.lists(ODD, max_size=3))
def test_cleaned_text_can_be_stored_and_shown_whatever_the_pages_hold(pages: list[str]) -> None:
    cleaned = clean_pages(pages)
    assert len(cleaned) == len(pages)
    for page in cleaned:
        page.encode("utf-8")
        assert page == page.strip()
        assert not set(page) & {"\r", "\t", "\0", "\x02", "\ufffe", "\u00ad"}
        assert "  " not in page


def test_a_scan_has_no_text_layer() -> None:
    assert "has no text layer on its 3 page(s)" in refusal(scanned_pdf(3))


def test_a_scan_with_arxivs_stamp_has_no_text_layer_either() -> None:
    assert "no text layer" in refusal(pdf("arXiv:2603.00017v2  [cs.CL]  3 Mar 2026", ""))
    assert "no text layer" in refusal(pdf("arXiv:hep-th/9901001v1 [math-ph] 1 Jan 1999", "— . —"))
    assert pdf_text(pdf("arXiv:2603.00017v2 [cs.CL] 3 Mar 2026\nKelp"))


def test_an_encrypted_file_needs_its_password_unless_it_is_empty() -> None:
    assert "is encrypted and needs a password" in refusal(pdf("Kelp", password="urchin"))
    assert pdf_text(pdf("Kelp", password="")) == ("Kelp",)


def test_a_web_page_in_place_of_a_pdf_is_named_as_one() -> None:
    assert "is a web page" in refusal(b"\n<!DOCTYPE html><html><body>Not found")
    assert "is not a PDF" in refusal(b"plain text")
    assert "is not a PDF" in refusal(b" " * 1024 + WHOLE)
    assert "is empty" in refusal(b"")
    assert pdf_text(b" " * 1000 + WHOLE) == WHOLE_TEXT  # a header within the first kilobyte is one


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_cut_off_anywhere_is_refused_or_whole(kept: int) -> None:
    try:
        assert read_here(WHOLE[:kept]) == WHOLE_TEXT
    except PdfFetchFailed as fault:
        assert "\n" not in str(fault)
    else:
        assert b"%%EOF" in WHOLE[:kept]


@given(st.dictionaries(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), min_size=1, max_size=8))
def test_damage_gives_some_text_or_one_line(changes: dict[int, int]) -> None:
    damaged = bytearray(WHOLE)
    for place, value in changes.items():
        damaged[place] = value
    try:
        pages = read_here(bytes(damaged))
    except PdfFetchFailed as fault:
        assert "\n" not in str(fault)
    else:
        assert any(pages)


def test_damage_is_named() -> None:
    assert "is a damaged PDF" in refusal(b"%PDF-1.4\n%%EOF")
    assert "page 2 is damaged" in refusal(WHOLE.replace(b"/Type/Page/", b"/Type/Pope/").replace(b"Pope", b"Page", 1))


def test_exceeded_limits_are_reported_with_the_value_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "2 pages, more than the 1" in refusal(WHOLE, most_pages=1)
    assert f"has {len(WHOLE) / 1e6:.3g} MB, more than the 0.001 MB" in refusal(WHOLE, most_bytes=1000)
    file = tmp_path / "kelp.pdf"
    file.write_bytes(WHOLE)
    assert "more than the 0.001 MB" in refusal(file, most_bytes=1000)
    assert pdf_text(file, most_bytes=len(WHOLE), most_pages=2) == WHOLE_TEXT
    monkeypatch.setattr("paper_assets.sources.pdf_text.MOST_CHARACTERS", 40)
    assert "has more than 40 characters" in refusal(WHOLE)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(PdfFetchFailed, match=r"absent\.pdf cannot be read: No such file"):
        pdf_text(tmp_path / "absent.pdf")
    with pytest.raises(PdfFetchFailed, match="is not a file"):
        pdf_text(tmp_path)
    os.mkfifo(tmp_path / "pipe.pdf")  # would wait for a writer forever
    with pytest.raises(PdfFetchFailed, match=r"pipe\.pdf is not a file"):
        pdf_text(tmp_path / "pipe.pdf")


def test_many_threads_read_at_once() -> None:
    files = [pdf(*(f"document {at} page {page}" for page in range(5))) for at in range(8)]
    start = threading.Barrier(8)

    def read(at: int) -> tuple[str, ...]:
        start.wait()
        return [pdf_text(files[at]) for _ in range(2)][-1]

    with ThreadPoolExecutor(8) as pool:
        for at, pages in enumerate(pool.map(read, range(8))):
            assert pages == tuple(f"document {at} page {page}" for page in range(5))


@pytest.mark.parametrize(("limit", "most"), [("MOST_MEMORY", 120_000_000), ("MOST_SECONDS", 0.3)])
def test_a_small_file_that_holds_far_too_much_ends_alone_and_leaves_the_next_one_be(
    limit: str, most: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "Kelp grows and grows." in pdf_text(bomb(3))[0]
    packed = bomb(400_000)
    assert len(packed) < 40_000
    with monkeypatch.context() as patched:
        patched.setattr(module, limit, most)
        assert "needs more memory or time than a paper does" in refusal(packed)
    assert pdf_text(WHOLE) == WHOLE_TEXT
