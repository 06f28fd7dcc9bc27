"""Sentences of an abstract that state its problem, task, idea and result are found, and the text is left as it is."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.interfaces.page.display import with_mathml, with_parts
from paper_assets.text.abstracts import PARTS, TRAITS, WEIGHTS, key_sentence, named_parts, result_sentence

FROGS = (
    "Counting frogs in ponds is an important task in ecology.",
    "However, existing counters suffer from noise, and labels remain costly.",
    "To address this, we propose CroakNet, a novel framework that counts frogs by their calls.",
    "Specifically, it first separates calls and then groups them.",
    "Experiments on 12 ponds show that CroakNet outperforms state-of-the-art counters by 8%.",
)


def test_each_part_of_an_abstract_is_found() -> None:
    assert named_parts(FROGS) == {0: "task", 1: "problem", 2: "idea", 4: "result"}


def test_the_key_sentence_states_the_idea_and_can_be_read_alone() -> None:
    assert key_sentence(" ".join(FROGS)) == "We propose CroakNet, a novel framework that counts frogs by their calls."


@pytest.mark.parametrize(
    ("last", "shown"),
    [
        (FROGS[4], "CroakNet outperforms state-of-the-art counters by 8%."),
        ("CroakNet achieves an accuracy of 92% on ponds.", "CroakNet achieves an accuracy of 92% on ponds."),
        (
            "Experiments on ponds, lakes (3 lakes, 2 years), and rivers show that CroakNet outperforms counters.",
            "CroakNet outperforms counters.",
        ),
        (
            f"{FROGS[4]} Code and data are available at https://example.org/frogs.",
            "CroakNet outperforms state-of-the-art counters by 8%.",
        ),
    ],
)
def test_the_result_is_shown_without_the_words_that_announce_it(last: str, shown: str) -> None:
    assert result_sentence(" ".join((*FROGS[:4], last))) == shown


def test_without_a_result_the_idea_is_shown_and_a_long_one_is_cut_at_a_word() -> None:
    assert result_sentence(" ".join(FROGS[:3])) == key_sentence(" ".join(FROGS[:3]))
    assert result_sentence(" ".join(FROGS), 38) == "CroakNet outperforms state-of-the-art…"


@pytest.mark.parametrize(
    ("result", "shown"),
    [
        (
            "On ponds, lakes, and rivers, CroakNet achieves an accuracy of 92%, which also holds at night and in rain.",
            "CroakNet achieves an accuracy of 92%…",
        ),
        (
            "CroakNet significantly outperforms every counter of frogs, while it needs no labels and no training.",
            "CroakNet significantly outperforms every counter of frogs…",
        ),
        (
            "On ponds, lakes and rivers the error of all of the counts is 4.5 frogs and 3 toads, as in all rain.",
            "On ponds, lakes and rivers the error of all of the counts is 4.5 frogs…",
        ),
        (
            "CroakNet counts frogs, toads, and newts better than all the people of two countries who tried to.",
            "CroakNet counts frogs, toads, and newts better than all the people…",
        ),
        (
            "CroakNet achieves a significantly higher accuracy for all ponds and improves the counts by 8 frogs.",
            "CroakNet achieves a significantly higher accuracy for all ponds…",
        ),
        (
            "CroakNet significantly outperforms all of the counters, reducing the error by 41.2% to 7 frogs a pond.",
            "CroakNet significantly outperforms all of the counters, reducing the error by 41.2%…",
        ),
        (
            "CroakNet achieves a steady gain for all ponds, all lakes, all rivers compared to (among others) counters.",
            "CroakNet achieves a steady gain for all ponds, all lakes, all rivers…",
        ),
        (
            "The results demonstrate the effectiveness of the proposed framework.",
            "We propose CroakNet, which counts frogs.",
        ),
    ],
)
def test_a_result_that_is_too_long_ends_with_its_claim_and_an_empty_one_is_not_shown(result: str, shown: str) -> None:
    assert result_sentence(f"{FROGS[0]} {FROGS[1]} We propose CroakNet, which counts frogs. {result}", 70) == shown


def test_a_result_that_fits_goes_before_one_that_must_be_cut() -> None:
    long = "CroakNet outperforms all counters by 8% and by even more where the pond is large and the frogs are many."
    assert (
        result_sentence(f"{FROGS[0]} {FROGS[2]} {long} It improves the counts of frogs by 9%.", 60)
        == "It improves the counts of frogs by 9%."
    )


def test_what_the_authors_propose_comes_before_a_detail_of_the_method() -> None:
    detail = "The network splits each recording with a learned filter and then groups the calls by a novel distance."
    assert key_sentence(f"{FROGS[0]} {detail} We present CroakNet, which counts frogs.") == (
        "We present CroakNet, which counts frogs."
    )


def test_without_a_statement_of_the_authors_the_idea_is_shown_and_not_the_background() -> None:
    idea = "CroakNet separates calls with a learned filter and groups them by a distance based on their pitch."
    assert key_sentence(f"{FROGS[0]} {FROGS[1]} {idea} The errors fall by 8%.") == idea


@pytest.mark.parametrize(
    "sentence",
    [
        "To address these gaps, three counters of frogs were built by hand.",
        "We then built three counters of frogs by hand.",
        "However, to overcome this limitation, three counters of frogs were built by hand.",
    ],
)
def test_a_sentence_that_begins_in_the_middle_is_shown_without_its_opening(sentence: str) -> None:
    assert re.fullmatch(r"(We|Three) .*counters of frogs .*by hand\.", found := key_sentence(sentence)), found
    assert not re.match(r"We then", found)


def test_there_is_a_weight_for_each_trait_of_each_part() -> None:
    assert tuple(WEIGHTS) == TRAITS
    assert {len(weights) for weights in WEIGHTS.values()} == {len(PARTS)}


def test_parts_are_named_on_the_page() -> None:
    shown = with_parts(" ".join(FROGS))
    assert re.findall(r'data-part="(\w+)"', shown) == ["task", "problem", "idea", "result"]


@given(st.text(alphabet="Wepropos. $\\{}x^2A\n<&", max_size=200) | st.text(max_size=200))
def test_naming_parts_never_changes_the_text(text: str) -> None:
    bare = re.sub(r'<span class="part" data-part="\w+">|</span>', "", with_parts(text))
    assert unescape(bare) == unescape(with_mathml(text))


def test_a_sentence_that_is_too_long_ends_before_a_formula_and_not_inside_it() -> None:
    words = "We propose a count of frogs " + "near the pond " * 20
    for more in range(30):
        sentence = f"{words}{'x' * more} where $\\Delta\\log p \\leq 1 + n \\log n$ holds " + "in any weather " * 10
        short = key_sentence(f"{sentence.rstrip()}.")
        assert short.endswith("…") and short.count("$") % 2 == 0, short
