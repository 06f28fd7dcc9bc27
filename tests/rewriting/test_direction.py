"""A rewrite that says the opposite of its original, told by words alone (B2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.paper import Paper
from paper_assets.rewriting.direction import turned
from paper_assets.rewriting.gate import stops
from paper_assets.rewriting.writing import new_item
from tests.rewriting.test_gate import GOOD, LONG

TITLE = "FlockNet: Counting Sheep at a Gate"
ABSTRACT = (
    "Counting flocks by hand is slow, and existing counters degrade in the dark. We propose FlockNet, which reduces "
    "the memory of the sketch and can count sheep without any labels. It significantly outperforms existing counters "
    "on night videos and does not need a second camera. Its counts stay robust under rain."
)


@pytest.mark.parametrize(
    ("text", "said", "original"),
    [
        ("The authors' FlockNet increases the memory of the sketch.", "increases", "reduces"),
        ("The authors' FlockNet cannot count sheep without labels.", "cannot", "can"),
        ("The authors' FlockNet needs to count sheep with labels.", "with", "without"),
        ("On night videos FlockNet does worse than earlier counters.", "worse", "significantly outperforms"),
        ("The authors' FlockNet hardly reduces the memory of the sketch.", "hardly reduces", "reduces"),
        ("Here, the counts of FlockNet stay fragile under rain.", "fragile", "robust"),
    ],
)
def test_the_opposite_of_the_original_is_told_with_both_words(text: str, said: str, original: str) -> None:
    found = {each.said: each.original for each in turned(TITLE, ABSTRACT, text)}
    assert said in found, found
    assert found[said] in original or original in found[said], found


@pytest.mark.parametrize(
    "text",
    [
        ABSTRACT,
        "The authors' FlockNet needs less memory for its sketch, and it counts sheep without labels.",
        "FlockNet beats earlier counters on night videos; those fall behind in the dark.",
        "Existing counters do worse on night videos than FlockNet.",
        "A single camera is enough: FlockNet does not need a second one.",
        "By hand, the count is slow. Other counters get worse in the dark.",
        "Rain does not make the counts of FlockNet less robust.",
    ],
)
def test_what_says_the_same_in_other_words_is_let_be(text: str) -> None:
    assert turned(TITLE, ABSTRACT, text) == ()


def test_a_bad_word_on_the_authors_own_work_needs_a_bad_word_in_the_original() -> None:
    text = "The authors tried it in many places. It turned out weaker and more brittle."
    abstract = "Flocks are counted by hand. We propose a sieve that improves every count."
    assert [each.said for each in turned("", abstract, text)] == ["weaker", "brittle"]
    assert turned("", f"{abstract} It is weak in the rain.", text) == ()


def test_the_gate_says_which_word_is_turned_round_and_knows_english_opposites_only() -> None:
    paper = Paper(paper_id="2603.00009", title=TITLE, abstract=ABSTRACT, authors=())
    text = "The authors' FlockNet increases the memory of the sketch."
    told = stops(new_item(paper, "expert"), text)
    assert "the opposite of the original: “increases”, where the original says “reduces”" in told
    assert not any("opposite" in reason for reason in stops(new_item(paper, "expert", language="de"), text))
    assert not any("opposite" in reason for reason in stops(new_item(LONG, "public"), GOOD))


@given(st.text(max_size=300))
def test_no_text_says_the_opposite_of_itself(text: str) -> None:
    assert turned("", text, text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "Earlier counters clearly beat it on night videos.",
        "FlockNet is significantly outperformed by existing counters on night videos.",
        "On night videos FlockNet could not keep up with earlier models.",
        "FlockNet ranks below previous systems on night videos.",
        "The authors' program is no match for other methods at night.",
    ],
)
def test_it_is_told_who_does_better_in_whatever_words(text: str) -> None:
    assert [each.original for each in turned(TITLE, ABSTRACT, text)] == ["significantly outperforms"]


@pytest.mark.parametrize(
    "text",
    [
        "It leaves earlier methods behind on night videos.",
        "On night videos earlier models could not keep up with FlockNet.",
        "Existing systems are outdone by FlockNet on night videos.",
        "Nothing ranks above the authors' program at night.",
        "Where earlier methods fall short of their goal, FlockNet helps.",
        "It counts with no labels at all.",
    ],
)
def test_the_same_winner_in_other_words_is_let_be(text: str) -> None:
    assert turned(TITLE, ABSTRACT, text) == ()


def test_an_original_that_lets_both_sides_win_says_nothing_of_who_does_better() -> None:
    abstract = "We propose a sieve. It outperforms existing methods by day and falls behind other methods by night."
    assert turned("", abstract, "The earlier methods beat it.") == ()
