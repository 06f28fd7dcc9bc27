"""Texts for pages: one line, bounded, only characters that every format accepts; URLs of the web or none."""

from datetime import date
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.digests.plain_text import in_words, lead, paragraphs, web_address, weekday
from paper_assets.text.cleaning import one_line


@given(st.text())
def test_clean_text_is_one_line_without_what_xml_cannot_hold(text: str) -> None:
    line = one_line(text)
    assert line == one_line(line) and line.splitlines() in ([], [line])
    assert not {char for char in line if char < " " or 0xD800 <= ord(char) <= 0xDFFF or ord(char) & 0xFFFE == 0xFFFE}


def test_words_that_only_a_line_end_or_a_control_character_parts_stay_apart() -> None:
    assert one_line("a\u2028b\x0bc\x1cd\r\ne \x00 f") == "a b c d e f"


def test_a_mark_that_turns_the_direction_of_what_follows_is_taken_out() -> None:
    assert one_line("gpj.\u202efdp") == "gpj.fdp"
    assert one_line("שלום\u200f!") == "שלום\u200f!"


@pytest.mark.parametrize("plane", [1, 2, 16])
def test_the_last_two_code_points_of_each_plane_are_removed(plane: int) -> None:
    assert one_line(f"a{chr(plane << 16 | 0xFFFE)}b{chr(plane << 16 | 0xFFFF)}c") == "abc"
    assert one_line(f"a{chr(plane << 16 | 0xFFFD)}b") == f"a{chr(plane << 16 | 0xFFFD)}b"


def test_paragraphs_are_parted_by_blank_lines() -> None:
    assert paragraphs("one\ntwo\r\n\r\nthree\n \n\n") == ("one two", "three")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("One. Two.", "One. Two."),
        ("A first sentence. A second one that does not fit any more.", "A first sentence."),
        ("No. Then words without any end follow here.", "No. Then words without…"),
        ("No. Then words without, any end follow here.", "No. Then words without…"),
        ("A rate of 3.5 or more is what we report here", "A rate of 3.5 or more is…"),
    ],
)
def test_the_lead_ends_with_a_sentence_if_that_is_half_of_it(text: str, shown: str) -> None:
    assert lead(text, 25) == shown


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("Twelve chars", 12, "Twelve chars"),
        ("Two ends. Here it goes on", 9, "Two ends."),
        ("Abc. Defg hijk", 8, "Abc."),
        ("Ab. Cdefg hijk", 8, "Ab.…"),
    ],
)
def test_what_just_fits_is_not_shortened_and_what_is_just_half_is_enough(text: str, most: int, shown: str) -> None:
    assert lead(text, most) == shown


@given(st.text(min_size=1), st.integers(1, 40))
def test_the_lead_is_never_longer_than_asked(text: str, most: int) -> None:
    assert len(lead(one_line(text), most)) <= most


@given(st.text())
def test_an_address_is_one_of_the_web_or_none_and_ends_no_link(url: str) -> None:
    for given_url in (url, f"https://{url}", f"http://example.org/{url}"):
        found = web_address(given_url)
        if found is not None:
            assert urlsplit(found).scheme in ("http", "https") and urlsplit(found).netloc
            assert not set(found) & set(" \t\n<>\"'`\\()[]{}|")


@pytest.mark.parametrize(
    "url", ["https://arxiv.org/abs/2603.00001", "http://a.example/x?y=1&z=%20#part", "https://a.b:8/~x/"]
)
def test_an_ordinary_address_stays_as_it_is(url: str) -> None:
    assert web_address(url) == url


def test_days_are_written_in_words_in_every_locale() -> None:
    assert f"{weekday(date(2026, 3, 13))}, {in_words(date(2026, 3, 13))}" == "Friday, 13 March 2026"
