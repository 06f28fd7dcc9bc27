"""Test author lines in free text, and TeX's accents."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.sources.paper_fields import authors_and_affiliations, plain_tex


@pytest.mark.parametrize(
    ("tex", "plain"),
    [
        (r"Te\v{s}anovi\'c", "Tešanović"),
        (r"Te\v sanovi\'{c}", "Tešanović"),
        (r"{\O}ster{\aa}s", "Østerås"),
        (r"Mei{\ss}ner", "Meißner"),
        (r"Pucha{\l}a", "Puchała"),
        (r"Ka{\^a}niche", "Kaâniche"),
        (r"D\'{\i}az", "Díaz"),
        (r"D\'\i az", "Díaz"),
        (r"G\"ahler", "Gähler"),
        (r"Lan\c{c}on", "Lançon"),
        (r"N\'u\~nez", "Núñez"),
        (r"Juzeli\=unas", "Juzeliūnas"),
        (r"Erd\H{o}s", "Erdős"),
        (r"A.~B. Name", "A. B. Name"),
        ("Ünal Çelik", "Ünal Çelik"),
    ],
)
def test_tex_accents_become_letters(tex, plain):
    assert plain_tex(tex) == plain


@pytest.mark.parametrize(
    ("line", "names", "places"),
    [
        ("A. One, B. Two and C. Three", ["A. One", "B. Two", "C. Three"], []),
        ("A. One, B. Two, and C. Three", ["A. One", "B. Two", "C. Three"], []),
        ("A.B.One (Univ X), C. Two (Inst Y, City)", ["A. B. One", "C. Two"], ["Univ X", "Inst Y, City"]),
        ("A. One (1), B. Two (1 and 2) ((1) Univ X, (2) Univ Y)", ["A. One", "B. Two"], ["Univ X", "Univ Y"]),
        ("A. One (1,2) (1 Univ X; 2 Univ Y)", ["A. One"], ["Univ X", "Univ Y"]),
        ("Big Collaboration: A. One, et al", ["Big Collaboration", "A. One"], []),
        ("A. One, Jr., B. Two III", ["A. One Jr.", "B. Two III"], []),
        ("A. One (for the Big Collaboration)", ["A. One"], []),
        ("A. One (Univ X", ["A. One"], ["Univ X"]),
        ("Anderson Andrade and Sandy Land", ["Anderson Andrade", "Sandy Land"], []),
        ("", [], []),
    ],
)
def test_names_and_affiliations_are_distinguished(line, names, places):
    assert authors_and_affiliations(line) == (names, places)


@given(st.text(alphabet="aB.,;:()&1\\'{} and", max_size=200))
def test_no_line_breaks_the_reading(line):
    names, places = authors_and_affiliations(line)
    assert all(name == " ".join(name.split()) and name for name in (*names, *places))
