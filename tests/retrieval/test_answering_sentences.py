"""Sentences are ranked as answers: about each part of the question, findings before background, or none."""

import pytest

from paper_assets.retrieval.answering_sentences import ANSWERS, Quotable, answer_scores, parts_of, reserved_spans

QUESTION = "Does uncertainty estimation help medical image segmentation?"
ANSWER = Quotable("Uncertainty estimation improves medical image segmentation by 4% Dice.", "Ponds")
BACKGROUND = Quotable("Medical image segmentation and uncertainty estimation remain important challenges.", "Ponds")
HALF = Quotable("Our network improves medical image segmentation by 4% Dice.", "Ponds")
BY_TITLE = Quotable("Uncertainty estimation reduces the error by 4%.", "Better medical image segmentation")


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        (QUESTION, [["uncertainty", "estimation"], ["medical", "image", "segmentation"]]),
        ("What is the role of frogs in ponds?", [["role", "frogs"], ["ponds"]]),
        ("Are frogs green?", [["frogs", "green"]]),
        ("Are frogs common across lakes?", [["frogs", "common"], ["lakes"]]),
        ("Why?", []),
    ],
)
def test_a_question_is_divided_at_its_verb_or_preposition(question: str, parts: list[list[str]]) -> None:
    assert parts_of(question) == parts


def test_a_sentence_answers_if_it_is_about_both_parts_and_states_a_finding() -> None:
    answer, background, half, by_title = answer_scores(QUESTION, [ANSWER, BACKGROUND, HALF, BY_TITLE], None)
    assert answer > by_title >= ANSWERS > max(background, half)


@pytest.mark.parametrize(
    ("sentence", "answers"),
    [
        ("UE reduces the errors of medical image segmentation by 4%.", True),  # initials of words of the question
        ("Uncertain estimates of an image show 4% more noise.", False),  # half of each part
        ("Does uncertainty estimation reduce errors of medical image segmentation by 4%?", False),
    ],
)
def test_initials_stand_for_their_words_and_neither_halves_nor_questions_answer(sentence: str, answers: bool) -> None:
    [score] = answer_scores(QUESTION, [Quotable(sentence, "Ponds")], None)
    assert bool(score >= ANSWERS) == answers


def test_what_papers_measure_a_method_by_is_one_word() -> None:
    [score] = answer_scores("Do frogs hurt accuracy?", [Quotable("Frogs reduce the performance by 4%.", "Ponds")], None)
    assert score >= ANSWERS


def test_what_an_abstract_states_as_its_problem_is_no_finding() -> None:
    sentence = "Uncertainty estimation reduces errors of medical image segmentation."
    found, problem = answer_scores(
        QUESTION, [Quotable(sentence, "Ponds", "result"), Quotable(sentence, "Ponds", "problem")], None
    )
    assert found >= ANSWERS > problem


def test_denials_and_hedges_are_found_where_they_are() -> None:
    text = "Frogs may not help."
    assert [text[start:end] for start, end in reserved_spans(text)] == ["may", "not"]
