"""Names are compared in one form everywhere: letters, particles, order, initials and short forms."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.stores.papers import _FOLDED_NAME
from paper_assets.text.names import maybe_same_person, name_form, same_person
from paper_assets.text.words import words_in

THE_SAME = [
    ("Matthias Nießner", "Matthias Niessner"), ("Nießner, Matthias", "Matthias Nießner"),
    ("Jørgen Ås", "Jorgen As"), ("Łukasz Kaiser", "Lukasz Kaiser"), ("KAISER, ŁUKASZ", "Łukasz Kaiser"),
    ("Đorđe Miladinović", "Dorde Miladinovic"), ("Æsa Bjørk", "Aesa Bjork"), ("Yıldız Çelik", "Yildiz Celik"),
    ("Jean-Pierre Serre", "Jean Pierre Serre"), ("Serre, Jean-Pierre", "Jean-Pierre Serre"),
    ("Laurens van der Maaten", "van der Maaten, Laurens"), ("Maria O'Connor", "Maria O’Connor"),
    ("Martin Luther King, Jr.", "King, Martin Luther, Jr."), ("José García", "Jose Garcia"),
    ("Zdeněk Žabokrtský", "Zdenek Zabokrtsky"), ("Björn Ommer", "Bjorn Ommer"), ("Şişman, Ayşe", "Ayse Sisman"),
    ("Nguyễn Văn An", "Nguyen Van An"), ("J. K. Rowling", "J.K. Rowling"), ("Maria K. O'Connor", "Maria O'Connor"),
    ("Percy S. Liang", "Percy Liang"), ("Dan  Jurafsky", "dan jurafsky"), ("李伟", "李伟"),
    ("Þór Þorsteinsson", "Thor Thorsteinsson"), ("Œuvre Dupont", "Oeuvre Dupont"),
]  # fmt: skip
PERHAPS = [
    ("Chris Potts", "Christopher Potts"), ("C. Potts", "Christopher Potts"), ("Christopher Potts", "C. Potts"),
    ("Mike Lewis", "Michael Lewis"), ("Bill Dolan", "William B. Dolan"), ("Dan Klein", "Daniel Klein"),
    ("Alex Rush", "Alexander M. Rush"), ("Matt Gardner", "Matthew Gardner"), ("Tom Mitchell", "Thomas Mitchell"),
    ("Dave Bacon", "David Bacon"), ("Andy Barto", "Andrew Barto"), ("Steve Young", "Stephen Young"),
    ("Zhang Wei", "Wei Zhang"), ("L. van der Maaten", "Laurens van der Maaten"),
    ("Laurens Maaten", "Laurens van der Maaten"), ("J. P. Serre", "Jean-Pierre Serre"), ("Ed Hovy", "Edward Hovy"),
]  # fmt: skip
OTHERS = [
    ("Ana Li", "Ana Lin"), ("Chris Potts", "Carla Potts"), ("C. Potts", "David Potts"), ("Ana", "Ana B. Ana"),
    ("Maria K. O'Connor", "Maria L. O'Connor"), ("Ed Hovy", "Edgar Hovy"), ("John Smith", "Jane Smith"),
    ("J. Smith", "K. Smith"),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), THE_SAME)
def test_spellings_of_one_name_are_the_same_person(one: str, other: str) -> None:
    assert same_person([one], [other]).all() and same_person([other], [one]).all()
    assert maybe_same_person([one], [other]).all()


@pytest.mark.parametrize(("one", "other"), PERHAPS)
def test_initials_and_short_forms_may_be_the_same_person(one: str, other: str) -> None:
    for first, second in ((one, other), (other, one)):
        assert maybe_same_person([first], [second]).all() and not same_person([first], [second]).any()


@pytest.mark.parametrize(("one", "other"), OTHERS)
def test_other_names_are_other_people(one: str, other: str) -> None:
    assert not maybe_same_person([one], [other]).any() and not maybe_same_person([other], [one]).any()


names = st.text(st.sampled_from("abczßøłđæœıþéüñÅŞ -'."), min_size=1, max_size=16)


@given(names)
def test_a_form_is_its_own_form_and_case_does_not_count(name: str) -> None:
    assert name_form(name_form(name)) == name_form(name)
    assert bool(same_person([name], [name]).any()) == bool(name_form(name))


@pytest.mark.parametrize(
    "name", sorted({name for pair in THE_SAME for name in pair if name.isascii() or "," not in name})
)
def test_the_search_folds_names_as_everything_else_does(name: str) -> None:
    with duckdb.connect() as connection:
        connection.execute(_FOLDED_NAME)
        [(folded,)] = connection.execute("select folded_name(?)", [name]).fetchall()
    assert all(f" {word}" in f" {folded}" for word in words_in(name))
