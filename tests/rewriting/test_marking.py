"""A rewrite beside another text: what is new and what is doubted is marked, and nothing of the text is lost."""

from hypothesis import given
from hypothesis import strategies as st

from paper_assets.rewriting.marking import marked


def test_new_words_and_doubtful_numbers_are_marked() -> None:
    pieces = marked("Frogs count 40 loud toads.", "Frogs count toads.", ["40"])
    assert [piece.text for piece in pieces if piece.doubtful] == ["40"]
    assert "".join(piece.text for piece in pieces if piece.new) == "40 loud"
    assert not any(piece.doubtful for piece in marked("140 frogs", "", ["40"])), "140 is another number"


def test_a_text_beside_itself_has_nothing_new_whatever_its_capitals() -> None:
    assert [(piece.text, piece.new) for piece in marked("Loud Frogs", "loud frogs", [])] == [("Loud Frogs", False)]


@given(st.text(max_size=80), st.text(max_size=80), st.lists(st.text(max_size=5), max_size=3))
def test_the_pieces_join_to_the_text_again(text: str, against: str, doubtful: list[str]) -> None:
    assert "".join(piece.text for piece in marked(text, against, doubtful)) == text
