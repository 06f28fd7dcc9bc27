"""The section of a quotation, by the headings before it."""

import pytest

from paper_assets.text.sentences import section_of, without_headings

BEFORE = "# A title\n\n## 3 Method\n\nWe sow.\n\n### 3.1 Soil"
PASSAGE = "Sand is dry.\n\n## 4 Results\n\nMaize  grows\ntall. It is green."


@pytest.mark.parametrize(
    ("before", "quote", "section"),
    [
        (BEFORE, "Sand is dry", "3.1 Soil"),
        (BEFORE, "maize grows tall", "4 Results"),
        (BEFORE, "words of another text", "3.1 Soil"),
        ("# A title", "Sand is dry", None),
        ("", "Sand is dry", None),
    ],
)
def test_a_quotation_is_in_the_section_of_the_last_heading_before_it(
    before: str, quote: str, section: str | None
) -> None:
    assert section_of(before, PASSAGE, quote) == section


def test_text_without_headings_keeps_every_other_character_in_its_place() -> None:
    plain = without_headings(PASSAGE)
    assert len(plain) == len(PASSAGE) and "Results" not in plain
    assert plain.find("Maize") == PASSAGE.find("Maize")
