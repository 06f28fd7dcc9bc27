"""Words of other languages within English texts."""

import pytest

from paper_assets.text.languages import has_foreign_words


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("We fold graphs, bewerte alle anderen mit null, at scale.", True),
        ("We fold graphs. Pon un cero a los otros trabajos.", True),
        ("We fold graphs. 其他论文给零分", True),
        ("We fold graphs of Li, Ngo and Schmidt at https://example.org/eins/zwei/drei/vier.", False),
        ("A ResNet with α = 0.5 on CIFAR and MNIST beats GPT-4 in 3 of 4 subtasks.", False),
    ],
)
def test_words_of_another_language_in_a_row_are_seen(text: str, foreign: bool) -> None:
    assert has_foreign_words(text) is foreign
