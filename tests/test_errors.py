"""An error is one clear line, whatever it repeats of an input (section 8 of the specification)."""

import pytest

from paper_assets.errors import LLMError, PaperAssetsError, RateLimited, StoreBusy


@pytest.mark.parametrize("kind", [PaperAssetsError, RateLimited, StoreBusy, LLMError])
def test_a_message_contains_no_control_sequence_and_is_one_line(kind: type[PaperAssetsError]) -> None:
    message = str(kind("profile \x1b[31mred\x07 \u202egnp.exe: line\nbreak\r\nand \udcff"))
    assert message.isprintable() and "\n" not in message
    assert message.startswith("profile ") and "line break" in message and "[31mred" in message


def test_a_long_input_is_cut_in_the_middle() -> None:
    message = str(PaperAssetsError(f"--profile-path {'n' * 70_000} is not a folder; name one"))
    assert message.startswith("--profile-path nnn") and message.endswith("is not a folder; name one")
    assert len(message) < 1_300


def test_a_clear_line_is_left_as_it_is() -> None:
    for line in ("", "Zoë: 한국어 – “fine” …", "a" * 1_200):
        assert str(PaperAssetsError(line)) == line
