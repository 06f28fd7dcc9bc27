"""Harmful characters are removed from texts, which are fenced in a prompt between marks that they cannot contain."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.errors import InvalidPaper
from paper_assets.paper import Paper, paper_from_mapping
from paper_assets.text.cleaning import encodable, fenced, introduced, one_line, without_controls

HARMFUL = {
    "\x1b[31mred\x1b[0m": "[31mred[0m",
    "title\x07 that rings": "title that rings",
    "\x9b31mred": "31mred",
    "gpj.\u202egnikaerb": "gpj.gnikaerb",
    "a\u2066b\u2069c": "abc",
    "harmless\U000e0069\U000e0067": "harmless",
    "half \ud83d a pair": "half  a pair",
    "\ufefftitle": "title",
    "page\x0cbreak": "page break",
    "one\rtwo\r\nthree": "one\ntwo\nthree",
}
UNTOUCHED = [
    "two\nlines\tand a tab",
    "می\u200cخواهم",  # Persian, with a non-joiner
    "क्\u200dष",  # Devanagari, with a joiner
    "שלום\u200f!",  # Hebrew, with a mark for its punctuation
    "👩\u200d🔬 naïve 그래프 𝑥 ﬁ",
    "no\u00a0break, soft\u00adhyphen",
]


@pytest.mark.parametrize(("text", "clean"), HARMFUL.items())
def test_characters_that_control_a_terminal_reverse_text_or_break_a_store_are_removed(text: str, clean: str) -> None:
    assert without_controls(text) == clean


@pytest.mark.parametrize("text", UNTOUCHED)
def test_what_a_script_needs_stays(text: str) -> None:
    assert without_controls(text) == text


@given(st.text())
def test_a_clean_text_is_clean(text: str) -> None:
    once = without_controls(text)
    assert without_controls(once) == once and "\x1b" not in once
    line = one_line(text)
    assert one_line(line) == line and line.splitlines() in ([], [line])


@given(st.text(st.one_of(st.characters(), st.sampled_from("\ud83d\udc00"))))
def test_what_is_sent_can_be_sent(text: str) -> None:
    assert encodable(text).encode().decode() == encodable(text)
    assert len(encodable(text)) == len(text)


def test_a_paper_is_cleaned_where_it_comes_in() -> None:
    record = {
        "paper_id": "2601.00001",
        "title": "A \x1b[1mbold\u202e title",
        "abstract": "First\r\n\r\nsecond می\u200cخواهم.\x07",
        "authors": ["Ada\u2067 B.", "Bo"],
        "affiliations": ["Uni\x9bversity"],
        "comment": "12 pages\x0cNeurIPS",
        "doi": None,
    }
    paper = paper_from_mapping(json.loads(json.dumps(record)))
    assert paper == Paper(
        paper_id="2601.00001",
        title="A [1mbold title",
        abstract="First\n\nsecond می\u200cخواهم.",
        authors=("Ada B.", "Bo"),
        affiliations=("University",),
        comment="12 pages NeurIPS",
    )
    with pytest.raises(InvalidPaper, match="title is empty"):
        paper_from_mapping({**record, "title": "\u202e\x1b"})


# Fences


@given(st.text())
def test_a_text_cannot_close_its_own_fence(text: str) -> None:
    first, *inside, last = fenced("papers", text).split("\n")
    assert "\n".join(inside) == text
    assert last == first.replace("<", "</", 1) and last not in text


def test_another_text_has_another_mark_and_the_same_text_the_same() -> None:
    assert len({fenced("x", text).split("\n")[0] for text in ("a", "b", "c")}) == 3
    assert fenced("x", "a") == fenced("x", "a")


def test_the_line_before_names_the_mark() -> None:
    line, first, _, last = introduced("One paper", "text", "words").split("\n")
    mark = first.removeprefix("<text ").removesuffix(">")
    assert line == f"One paper between the two lines that hold {mark}" and last == f"</text {mark}>"
