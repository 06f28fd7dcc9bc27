import pyarrow as pa
import pytest

from paper_assets.text.acronyms import long_forms
from paper_assets.text.bm25 import numbered_words
from paper_assets.text.words import in_usual_spelling, normal_form, stem, stems_in, words_in


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


SPELLINGS = [
    ("Pretraining and fine-tuning", "pre-training and finetuning"),
    ("multiagent systems", "multi-agent systems"),
    ("deep fake detection", "deepfake detection"),
    ("multi-modal models", "multimodal models"),
    ("non-linear, light-weight control", "nonlinear, lightweight control"),
]


@pytest.mark.parametrize(("one", "other"), SPELLINGS)
def test_spellings_of_a_compound_are_one(one: str, other: str) -> None:
    assert normal_form(one) == normal_form(other)
    assert words_in(one) == words_in(other)
    assert words_of_table(one) == words_of_table(other) == sorted(set(words_in(one)))
    assert in_usual_spelling(one).lower() == in_usual_spelling(other).lower()


def words_of_table(text: str) -> list[str]:
    found: dict[str, int] = {}
    numbered_words(pa.array([text]), lambda word: found.setdefault(word, len(found)))
    return sorted(found)


def test_the_text_for_the_model_has_american_spelling_and_long_forms() -> None:
    assert in_usual_spelling("tumour behaviour, modelling; colour") == "tumor behavior, modeling; color"
    assert in_usual_spelling("optimisation of unlabelled data") == "optimization of unlabeled data"
    assert in_usual_spelling("supervised control of four hours") == "supervised control of four hours"
    assert long_forms("GFlowNets and 3DGS of apples") == "generative flow networks and 3d gaussian splatting of apples"
