"""Sentences, quotations found again in their text, and the section of a quotation."""

import pytest

from paper_assets.text.sentences import cut_with_ellipsis, quoted_sentence, section_of, sentence_spans, without_headings

TEXT = (
    "Retrieval and truth\n\nWe follow Moreau et al. in asking models twice. Retrieved passages cut “errors” by half — "
    "in both languages.\nNothing else changed, e.g. speed! Is it enough?"
)


def test_sentences_end_at_points_and_paragraphs_and_not_after_abbreviations() -> None:
    found = [" ".join(TEXT[start:end].split()) for start, end in sentence_spans(TEXT)]
    assert found == [
        "Retrieval and truth",
        "We follow Moreau et al. in asking models twice.",
        "Retrieved passages cut “errors” by half — in both languages.",
        "Nothing else changed, e.g. speed!",
        "Is it enough?",
    ]
    assert sentence_spans("") == [] and sentence_spans(" \n\n ") == []
    assert len(sentence_spans("文が一つ。もう一つ。")) == 2


@pytest.mark.parametrize(
    ("quotation", "found"),
    [
        ("Retrieved passages cut “errors” by half", "Retrieved passages cut “errors” by half — in both languages."),
        (
            'retrieved  passages cut "errors" by half - in',
            "Retrieved passages cut “errors” by half — in both languages.",
        ),
        ('"Nothing else changed, e.g. speed!"', "Nothing else changed, e.g. speed!"),
        ("…cut “errors” by half…", "Retrieved passages cut “errors” by half — in both languages."),
        (
            "models twice. Retrieved passages",
            "We follow Moreau et al. in asking models twice. "
            "Retrieved passages cut “errors” by half — in both languages.",
        ),
        ("Retrieved passages double errors", None),
        ("cut", None),
        ("", None),
        (" . ", None),
    ],
)
def test_a_quotation_is_the_whole_sentence_as_written_in_the_text_or_nothing(quotation: str, found: str | None) -> None:
    assert quoted_sentence(quotation, TEXT) == found


@pytest.mark.parametrize("end", ["…", "...", r" \ldots"])
def test_a_text_cut_after_its_own_ellipsis_ends_with_one(end: str) -> None:
    text = f"Frogs, newts{end} and many others"
    assert cut_with_ellipsis(text, len("Frogs, newts") + len(end) + 3) == "Frogs, newts…"
    assert cut_with_ellipsis(text, 100) == text


def test_a_short_text_may_be_quoted_whole() -> None:
    assert quoted_sentence("it heals", "It heals.") == "It heals."
    assert quoted_sentence("heals", "It heals.") is None


# Sections


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
