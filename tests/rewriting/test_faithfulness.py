"""What code finds in a rewrite that the original lacks: numbers and names, in whatever spelling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.rewriting.faithfulness import unsupported
from paper_assets.rewriting.measures import marked

ORIGINAL = (
    "FlockNet: Counting Sheep with Key-Value Sieves\n"
    "We train FlockNet-2 on 1,000 hours of video and on the CIFAR-10 images, with three seeds. Accuracy rises by "
    "12.5\\% to 93.7%, with 50% of the memory of BERT-base, $10^{6}$ parameters, 2.5 million tokens, $\\frac{1}{2}$ of "
    "the data and a batch of 4{,}096 at 7B scale. Large language models (LLMs) and the Ångström lab in São Paulo help."
)


def numbers(text: str, original: str = ORIGINAL) -> tuple[str, ...]:
    return unsupported(original, text).numbers


def names(text: str, original: str = ORIGINAL) -> tuple[str, ...]:
    return unsupported(original, text).names


@pytest.mark.parametrize(
    "text",
    [
        "It saw 1000 hours.",
        "It saw 1 000 hours, or 1\u202f000 hours, or 1\\,000 hours.",
        "It saw a thousand hours.",
        "Half the memory, that is 50 percent, 50 % or 0.5 of it.",
        "It has 1,000,000 parameters, a million, 1e6, 10⁶ or 1 \\times 10^6 of them.",
        "It read 2,500,000 tokens.",
        "It uses 3 seeds and a batch of 4096.",
        "It has seven billion weights, 7,000,000,000 in full.",
        "Accuracy is about 94% (93.7 exactly), 12.5 points more.",
        "Half of the data is enough: 1/2.",
        "One of the two ideas is new, and the first step comes second.",
        "See CIFAR10, CIFAR 10 and FlockNet 2.",
    ],
)
def test_the_same_number_in_another_spelling_is_supported(text: str) -> None:
    assert numbers(text) == ()


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("It saw 2,000 hours.", ("2,000",)),
        ("It gains 42% and loses 3.3%.", ("42%", "3.3%")),
        ("Accuracy is 95%, then 95% again.", ("95%",)),
        ("It read 25 million tokens.", ("25 million",)),
        ("It took twenty-four days.", ("twenty four",)),
        ("It is 9x faster and uses 6-bit weights.", ("9", "6")),
        ("From 10-20 sheep.", ("10", "20")),
        ("It is 10^7 strong.", ("10^7",)),
        ("Accuracy is 90%.", ("90%",)),  # 93.7 is not 90
    ],
)
def test_a_number_that_the_original_lacks_is_found_as_it_is_written(text: str, invented: tuple[str, ...]) -> None:
    assert numbers(text) == invented


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("It saw 100,000 hours.", ("100,000",)),  # a known number times 100
        ("It saw 10 hours.", ("10",)),
        ("Accuracy rises by 12.5 times.", ("12.5",)),  # 12.5 percent
        ("Accuracy rises by 0.125%.", ("0.125%",)),
        ("It saw 1,000 days of video.", ("1,000",)),  # hours
        ("It used five seeds.", ("five",)),  # three
        ("It needs a third of the memory.", ("a third",)),  # half
        ("It is twice as good.", ("twice",)),
        ("A 7T model.", ("7T",)),  # 7B
        ("It is tenfold better.", ("tenfold",)),
    ],
)
def test_units_scale_and_number_words_are_kept_apart(text: str, invented: tuple[str, ...]) -> None:
    assert numbers(text) == invented


@pytest.mark.parametrize(
    "text",
    [
        "It runs for nearly a thousand hours, 999.99 or about 1,000.",
        "One video of 3,600,000 seconds was seen.",
        "Four things help: half of the memory, and two more.",  # the original lists as many
        "Half the memory: a saving of 50%.",
    ],
)
def test_rounder_numbers_other_units_and_counts_of_a_list_are_supported(text: str) -> None:
    original = f"{ORIGINAL} It needs sieves, gates, dogs, and barns. It runs for 999.99 hours and saves 50%."
    assert numbers(text, original) == ()


@pytest.mark.parametrize(
    ("text", "invented"),
    [
        ("It costs half its size.", ("half",)),  # twice its size
        ("A quarter of the memory is needed.", ("a quarter",)),  # half of the memory
        ("It costs twice its size and half of the memory. 25% of its corpus is English.", ()),
        ("A quarter of the corpus is English.", ()),
    ],
)
def test_a_share_must_be_of_the_same_thing_as_in_the_original(text: str, invented: tuple[str, ...]) -> None:
    original = "It needs half of the memory of a model twice its size. 25% of its corpus is English, and 50% is code."
    assert numbers(text, original) == invented


def test_a_number_of_things_that_are_listed_behind_it_is_their_number() -> None:
    original = "The sieve has a gate, a dog and a barn."
    assert numbers("Two parts: a gate; a dog; and a barn.", original) == ("two",)
    assert numbers("Three parts: a gate; a dog; and a barn.", original) == ()


@pytest.mark.parametrize("name", ["Stanford", "Google", "Zorvax", "Llama", "GPT-5", "Amazon's"])
def test_a_name_at_the_start_of_a_sentence_is_a_name(name: str) -> None:
    assert names(f"The sheep are counted. {name} confirms that it works.") == (name,)


def test_initials_are_not_a_name_and_another_number_is_another_name() -> None:
    assert names("The Gary Neil Norton predicts traffic.", "A GNN predicts traffic.") == ("Gary", "Neil", "Norton")
    assert names("FlockNet-3 counts; so does BERT-large.") == ("FlockNet-3", "BERT-large")[:1]
    assert names("The ABC method helps.", "Animals behave at closed gates.") == ("ABC",)


def test_digits_inside_names_and_versions_are_not_numbers() -> None:
    assert numbers("We use YOLOv8, GPT-4, L2 and version 3.1.4 of v1.5.") == ()


@pytest.mark.parametrize(
    "text",
    [
        "Counting works. However, the sheep move.\nFinally it ends.",
        "The Sieves count. It is Flocknet's merit, says the FLOCKNET lab.",
        "An LLM helps. So do LLMs and Large Language Models.",
        "A Key-Value store (KV) is kept; key value sieves too.",
        "“Sheep” count. (They do.) 1. First, we look. - Then we count.",
        "BERT was used in Sao Paulo, at Angstrom.",
        "I think that A is enough: Here it ends.",
    ],
)
def test_a_known_name_in_another_form_and_a_capital_at_a_sentence_start_are_not_new_names(text: str) -> None:
    assert names(text) == ()


def test_a_name_that_the_original_lacks_is_found_once() -> None:
    assert names("The model beats RoBERTa-large and, at Stanford, ResNet-50; RoBERTa-large again.") == (
        "RoBERTa-large",
        "Stanford",
        "ResNet-50",
    )
    assert names("It was tested by the World Health Organization.") == ("World", "Health", "Organization")


def test_words_spelling_out_an_acronym_of_the_original_are_not_new_names() -> None:
    original = "A GNN predicts traffic."
    assert names("The Graph Neural Network predicts traffic.", original) == ()
    assert names("The Giant Nice Thing predicts traffic.", original) == ("Giant", "Nice", "Thing")


def test_scripts_without_capitals_are_taken_for_their_numbers_only() -> None:
    found = unsupported("양 1,000마리를 센다.", "양 1000마리와 염소 7마리를 센다.")
    assert (found.numbers, found.names, found.all) == (("7",), (), ("7",))


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_is_read_and_everything_found_occurs_in_the_rewrite(original: str, rewrite: str) -> None:
    found = unsupported(original, rewrite)
    assert len(set(found.names)) == len(found.names)
    assert unsupported(rewrite, rewrite).all == ()


def test_numbers_beyond_all_bounds_are_let_be() -> None:
    huge = f"{'1' * 5000} and 1000^{'9' * 400} and 3e999999999 and 10^-{'9' * 30}"
    assert "5000" in unsupported(huge, f"{huge} and 5000").numbers


@given(st.lists(st.floats(0.001, 1e9).map(lambda value: f"{value:.6g}"), max_size=8))
def test_numbers_copied_with_thousands_separated_are_supported(figures: list[str]) -> None:
    original = "; ".join(f"value {figure} units" for figure in figures)
    separated = "; ".join(f"value {float(figure):,} units" for figure in figures)
    assert numbers(separated, original) == ()


def test_new_words_and_doubtful_numbers_are_marked() -> None:
    pieces = marked("Frogs count 40 loud toads.", "Frogs count toads.", ["40"])
    assert [piece.text for piece in pieces if piece.doubtful] == ["40"]
    assert "".join(piece.text for piece in pieces if piece.new) == "40 loud"
    assert not any(piece.doubtful for piece in marked("140 frogs", "", ["40"])), "140 is another number"
    pieces = marked("4 frogs, 4.7 and 4,500 toads, 0.4 newts", "", ["4"])
    assert [piece.text for piece in pieces if piece.doubtful] == ["4"], "a part of a number is another number"


def test_a_text_beside_itself_has_nothing_new_whatever_its_capitals() -> None:
    assert [(piece.text, piece.new) for piece in marked("Loud Frogs", "loud frogs", [])] == [("Loud Frogs", False)]


@given(st.text(max_size=80), st.text(max_size=80), st.lists(st.text(max_size=5), max_size=3))
def test_the_pieces_join_to_the_text_again(text: str, against: str, doubtful: list[str]) -> None:
    assert "".join(piece.text for piece in marked(text, against, doubtful)) == text


MEASURED = (
    "TailGuard for Islamic Finance\nWith $\\approx$1.9M parameters, TailGuard lowers p99 latency to 310 ms at 62 Hz in "
    "80 $\\mu$s. Errors occur at a rate of $3.1 \\times 10^{-4}$, Jewish or Muslim customs get 3.4 times as many, "
    "the teacher covers 4.6 modes, and a comment costs \\$0.09. In 780 runs it is faster by a third. We use AUC, "
    "intersection over union, and a convolutional network on 14 million requests. "
    "Traffic is followed again by YOLO (v5, v8) and 5D video."
)


@pytest.mark.parametrize(
    "text",
    [
        "It has 1.9M parameters, or 1.9 million, or roughly 1.9 million, or ~1.9M.",
        "The slowest one percent, beyond the 99th percentile, now takes 310 milliseconds.",
        "It acts 62 times per second, within 80 µs.",
        "It errs about 3 in 10,000 times, and knows four or five ways for 9 cents.",
        "The rate is 3.4. It was run 780 times. It is quicker by about one third.",
        "Islam, Jews and Muslims are named, with one another.",
        "ROC curves, IoU and a CNN (14M requests).",
        "TIFA (version 5) and YOLOv5/v8 see half a circle with a CNN-5D.",
    ],
)
def test_what_rewrites_commonly_do_with_numbers_and_names_is_supported(text: str) -> None:
    assert unsupported(MEASURED, text).all == ()


FORMS = (
    "Dutch and Danish trials of whole-slide imaging and learning-to-defer: latency at the 99th percentile falls by a "
    "factor of 3.2, at one eleventh of the compute, in a quarter of an hour, not three-quarters of an hour. Models "
    "of 7 to 70 billion parameters need 5 gigabytes. Experts agreed in 71 of 90 cases, with $1.4\\pm0.1$ errors per "
    "m$^3$ and 100,000 visits from 2015 to 2024."
)


@pytest.mark.parametrize(
    "text",
    [
        "Trials in Denmark and the Netherlands, with WSI and L2D: p99 falls 3.2x, or 3.2-fold.",
        "It needs about nine percent of the compute.",
        "It took 15 min, not 45 min, for a hundred thousand visits (2015-24), 1.4 ± 0.1 errors/m³.",
        "Models of 7B to 70B need 5 GB. Almost four of five experts agreed, 79% or 78.9%.",
    ],
)
def test_common_forms_of_numbers_units_and_abbreviations_raise_no_question(text: str) -> None:
    assert unsupported(FORMS, text).all == ()


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Trials in Norway, with WSD and L3D.", ("Norway", "WSD", "L3D")),
        ("It is 32x faster, at 11x higher cost, and takes 17 min.", ("32", "11", "17")),
        ("Models of 9B need 6 GB in 2015-26; 72% agreed.", ("9B", "6", "26", "72%")),
        ("In five of nine cases they agreed.", ("nine",)),
    ],
)
def test_another_value_in_these_forms_is_still_a_question(text: str, asked: tuple[str, ...]) -> None:
    assert unsupported(FORMS, text).all == asked


PLAIN = (
    "Of 27 outbreaks, 21 were preceded by a drop within a year. Growth is 1.7 times as fast, in 83% against 57%, at 90 "
    "attojoules, after 1.5 seconds. A ten-minute schedule served 412,000 residents, after two weeks of 38 minutes."
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("A drop came first in 78%, within 12 mo. Growth is 70% higher, at 90 aJ, after a second and a half.", "en"),
        ("Mehr als 400.000 Menschen haben einen 10-Minuten-Takt.", "de"),
        ("Nach 14 Tagen zu 38 Minuten sind es 26 Prozentpunkte weniger.", "de"),
    ],
)
def test_shares_of_counts_unit_symbols_and_german_units_raise_no_question(text: str, language: str) -> None:
    assert unsupported(PLAIN, text, language=language).all == ()


@pytest.mark.parametrize(
    ("text", "language", "asked"),
    [
        ("A drop came first in 87%, within 13 mo, at 90 fJ. Growth is 170% higher.", "en", ("87%", "13", "170%", "fJ")),
        ("Mehr als 600.000 Menschen haben einen 14-Minuten-Takt.", "de", ("600000", "14")),
        ("Nach 38 Stunden sind es 36 Prozentpunkte weniger.", "de", ("38", "36")),
    ],
)
def test_other_shares_and_units_are_still_questions(text: str, language: str, asked: tuple[str, ...]) -> None:
    assert unsupported(PLAIN, text, language=language).all == asked


OTHER_FORMS = (
    "Exact match for retrieval-augmented language models with 0.4B, 1.3B and 2.8B parameters. The absolute relative "
    "error falls from 0.213 to 0.127 at strengths $s \\in \\{0, 0.25, 0.5, 1\\}$ on the critical success index of five "
    "domains with 40B tokens each. It takes 3.4$\\times$ the memory, 1.3 times the steps and 54.9\\% of the citations "
    "on an A100, a factor of $1.6 \\pm 0.4$, worse in 7 of 10 problems. Marks cut errors by another fifth but "
    "43\\% stay in the upper ten centimetres, at one eleventh of the cost of 2.3 million dollars."
)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("RAG with LLMs: 0.4/1.3/2.8B params, AbsRel from 0.213 to 0.127 (-40%), CSI, ΔEM.", "en"),
        ("Four strengths. Chatbots need more than three times the memory, or about a third more steps.", "en"),
        ("Five domains of 40 billion tokens, so 200 billion in total. 130% of the steps on an NVIDIA A100.", "en"),
        ("More than half of the citations; 1.6(4); worse in 7/10; a further 20% fewer errors in 0-10 cm.", "en"),
        ('It asks "Where?" of over two million dollars. In 43 of 100 it stays, the rest 55.', "en"),
        ("Die KI kostet 2,3 Mio. US-Dollar.", "de"),
    ],
)
def test_numbers_in_another_form_and_sums_that_are_shown_raise_no_question(text: str, language: str) -> None:
    assert unsupported(OTHER_FORMS, text, language=language).all == ()


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("RAD with LVMs: 0.4/1.9/2.8B params, RelAbs from 0.213 to 0.127 (-60%), CSR.",
         ("1.9", "-60%", "RAD", "LVMs", "RelAbs", "CSR")),
        ("Nine strengths. More than four times the memory, or half more steps.", ("nine", "four", "half")),
        ("Five domains of 40 billion tokens, so 400 billion in total. 140% of the steps.", ("400 billion", "140%")),
        ("More than two thirds of the citations; 1.6(3); worse in 9/10.", ("two thirds", "0.3", "9/10")),
        ("Marks cut a further 35%.", ("35%",)),
        ("Over three million dollars.", ("three million",)),
    ],
)  # fmt: skip
def test_other_values_in_such_forms_and_sums_that_are_wrong_are_questions(text: str, asked: tuple[str, ...]) -> None:
    assert set(asked) <= set(unsupported(OTHER_FORMS, text).all)


@pytest.mark.parametrize(("text", "new"), [("It takes 80 ms.", ("80",)), ("It takes 310 s.", ("310",))])
def test_another_unit_is_another_number_in_latex_and_with_one_letter(text: str, new: tuple[str, ...]) -> None:
    assert unsupported(MEASURED, text).numbers == new


def test_a_decimal_comma_and_grouping_points_are_read_in_languages_that_have_them() -> None:
    original = "HeatCast improves the score by 14.2% on 1,500 CPU cores and 5.7 million trips, at \\$0.09."
    text = "HeatCast ist um 14,2 Prozent besser auf 1.500 CPU-Kernen, mit 5,7 Mio. Fahrten für 9 Cent (0,09 US-Dollar)."
    assert unsupported(original, text, language="de").all == ()
    assert unsupported(original, "Er ist um 41,2 % besser.", language="de").all == ("41,2 %",)


@pytest.mark.parametrize(
    ("claim", "certain"),
    [
        ("22.4 times as many were wrong.", True),  # 22.4 %
        ("Errors fall to 2.24%.", True),
        ("It runs for 95 minutes.", True),  # 95 seconds
        ("It runs for 9.5 s.", True),
        ("Experts agreed in 7,100 cases.", True),
        ("It needs 7,100 queries.", False),  # 71 are cases
        ("It runs on 512 GPUs.", False),  # it may be computed
        ("It takes 21.3% of the time.", False),
        ("It is twice as much work.", False),
        ("It wins on five tasks.", False),  # the original counts tasks: three
        ("Almost 22 were wrong.", False),  # 22.4 %
        ("A kappa of 1 would be perfect.", False),
        ("It is right in 77.6%.", False),  # 100 - 22.4
        ("Errors fall by 11.2 points, by 33%.", False),  # from 33.6 to 22.4
        ("It covers the years from 2015 to 24.", False),
        ("The CI of GPT-5, Anna and MNIST is wide.", False),
    ],
)
def test_only_digits_of_the_original_in_another_scale_or_unit_are_certainly_wrong(claim: str, certain: bool) -> None:
    original = (
        "The model wins on three tasks. Errors fall from 33.6% to 22.4% in 95 s. It gains 0.35 macro-F1. Experts "
        "agreed in 71 of 90 cases from 2015 to 2024."
    )
    found = unsupported(original, claim)
    assert bool(found.certain) == certain and found.all, found
