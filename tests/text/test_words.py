import pytest

from paper_assets.text.words import stem, stems_in


@pytest.mark.parametrize(
    "family",
    [
        "robot robots robotic robotics",
        "hallucination hallucinations hallucinate hallucinating",
        "prune pruned pruning",
        "map maps",
        "segmentation segmentations",
        "quantization quantizations",
        "faithful faithfulness",
        "study studies",
        "class classes",
    ],
)
def test_words_of_a_family_have_one_stem(family: str) -> None:
    assert len({stem(word) for word in family.split()}) == 1


@pytest.mark.parametrize("pair", ["case ca", "pha phase", "news new", "loss lo", "gpt4 gpt"])
def test_words_that_only_look_alike_stay_apart(pair: str) -> None:
    one, other = pair.split()
    assert stem(one) != stem(other)


def test_small_words_and_single_letters_ask_for_nothing() -> None:
    assert stems_in("The C of a graph: β-VAE, GPT_4") == ["graph", "vae", "gpt"]


def test_words_that_belong_to_topics_ask_for_something() -> None:
    assert stems_in("few-shot attacks against over-smoothing") == ["few", "shot", "attack", "against", "over", "smooth"]
