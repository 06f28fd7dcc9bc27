"""Texts from outside are fenced in a prompt between marks that they cannot contain."""

from hypothesis import given
from hypothesis import strategies as st

from paper_assets.text.cleaning import fenced, introduced


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
