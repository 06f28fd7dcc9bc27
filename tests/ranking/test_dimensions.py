from datetime import UTC, date, datetime

import numpy as np
import pytest

from paper_assets.paper import papers_to_table
from paper_assets.ranking.dimensions import (
    DIMENSION_TABLE,
    author_trust,
    institution_trust,
    must_keywords,
    practicality,
    recency,
)
from paper_assets.ranking.filters import ages_in_days
from paper_assets.settings import ScoringConfig
from paper_assets.text.names import name_form
from paper_assets.weights import DIMENSIONS
from tests.ranking.invented import paper


def test_the_share_of_keywords_counts_and_none_asked_is_full() -> None:
    assert must_keywords(np.array([[True, False, False, True], [False] * 4])).tolist() == [0.5, 0.0]
    assert must_keywords(np.zeros((2, 0), dtype=bool)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Müller, Ana", "ana muller"),
        ("Jean-Pierre  Serre", "Serre, Jean Pierre"),
        ("J.K. Doe", "Doe, J. K."),
        ("Søren Łukasz", "Soren Lukasz"),
        ("King, Ana, Jr.", "Ana King, Jr."),
        ("Nguyễn Văn A", "Nguyen Van A"),
        ("李伟", "李伟"),
        ("Maria O'Connor", "Maria O’Connor"),
        ("O`Connor, Maria", "Maria OʼConnor"),
        ("D´Arcy, Ana", "Ana D'Arcy"),
    ],
)
def test_the_same_person_is_recognised(one: str, other: str) -> None:
    assert name_form(one) == name_form(other)


@pytest.mark.parametrize(
    ("one", "other"), [("J. Smith", "John Smith"), ("Li Wei", "Wei Li"), ("Ana Li", "Ana Lin"), ("A Li", "Ana Li")]
)
def test_another_person_is_not_taken_for_a_preferred_one(one: str, other: str) -> None:
    assert name_form(one) != name_form(other)


@pytest.mark.parametrize(
    ("preferred", "author", "same"),
    [
        ("Maria O'Connor", "Maria K. O’Connor", True),
        ("Maria K. O’Connor", "Maria O'Connor", True),
        ("O'Connor, Maria K.", "Maria K O’Connor", True),
        ("John Smith, Jr.", "John Q. R. Smith, Jr.", True),
        ("Maria K. O'Connor", "Maria L. O'Connor", False),
        ("J. Smith", "John Smith", False),
        ("J. Smith", "J. K. Smith", False),
        ("John Smith", "J. K. Smith", False),
        ("Ana Li", "Ana B", False),
        ("Ana", "Ana B. Ana", False),
    ],
)
def test_middle_initials_may_lack_but_not_differ(preferred: str, author: str, same: bool) -> None:
    assert author_trust(papers_to_table([paper("1", authors=(author,))]), [preferred]).tolist() == [float(same)]


def test_any_author_may_be_the_preferred_one() -> None:
    table = papers_to_table(
        [paper("1", authors=("A B", "Müller, Ana")), paper("2", authors=("A B",)), paper("3", authors=())]
    )
    assert author_trust(table, ["Ana Muller"]).tolist() == [1.0, 0.0, 0.0]
    assert author_trust(table.slice(1), ["A B"]).tolist() == [1.0, 0.0]
    assert author_trust(table, []).tolist() == [1.0, 1.0, 1.0]
    assert author_trust(table, ["."]).tolist() == [0.0, 0.0, 0.0]
    assert author_trust(table.slice(0, 0), ["A B"]).tolist() == []


def test_an_institution_matches_as_whole_words_of_an_affiliation() -> None:
    places = [("CSAIL, MIT, Cambridge",), ("Smith College",), (), ("X", "Université de Genève"), ("Univ", "of Y")]
    table = papers_to_table([paper(f"{number}", affiliations=place) for number, place in enumerate(places)])
    assert institution_trust(table, ["mit", "Universite de Geneve"]).tolist() == [1.0, 0.0, 0.0, 1.0, 0.0]
    assert institution_trust(table, ["Univ of"]).tolist() == [0.0] * 5
    assert institution_trust(table, []).tolist() == [1.0] * 5


def test_recency_falls_in_steps_with_the_age() -> None:
    ages = [-3, 0, 14, 15, 30, 31, 90, 91, 180, 181, 365, 366, 9999, float("nan")]
    worth = [1.0, 1.0, 1.0, 0.85, 0.85, 0.7, 0.7, 0.5, 0.5, 0.3, 0.3, 0.1, 0.1, 0.1]
    assert recency(np.array(ages), ScoringConfig()).tolist() == worth


def test_age_is_counted_in_days_of_utc() -> None:
    papers = [
        paper("1", published=datetime(2026, 3, 30, 23, 59, tzinfo=UTC)),
        paper("2", published=datetime(2026, 3, 31, 0, 0, tzinfo=UTC)),
        paper("3", published=datetime(1999, 12, 31, tzinfo=UTC)),
        paper("4", published=None),
    ]
    ages = ages_in_days(papers_to_table(papers), date(2026, 3, 31)).tolist()
    assert ages[:3] == [1, 0, (date(2026, 3, 31) - date(1999, 12, 31)).days]
    assert np.isnan(ages[3])


def test_code_and_a_pdf_at_hand_add_up() -> None:
    code, pdf = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert practicality(code, pdf, ScoringConfig()).tolist() == [0.8, 0.5, 0.3, 0.0]
    assert practicality(code, pdf, ScoringConfig(practicality_code=0.9)).max() == 1.0


def test_every_dimension_has_a_weight_and_words() -> None:
    assert tuple(each.name for each in DIMENSION_TABLE) == DIMENSIONS
    assert all(each.words.strip() for each in DIMENSION_TABLE)
