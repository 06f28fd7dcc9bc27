"""Keys, whole and in parts, as they are and as encoded, are in no text that is shown (SPEC 8)."""

import base64
import random
import string
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paper_assets.text.secrets import Secrets, hiding

KEY = "sk-proj-9fK2xQ7LmZ84TbRw0aVdE51yNc6HuJpS"
WITH_SIGNS = "aZ9+/k3==Qw7~pL0x%Tt 5&8"


def leaks(key: str, text: str) -> list[str]:
    """The parts of six characters of a key that a text holds."""
    return [key[at : at + 6] for at in range(len(key) - 5) if key[at : at + 6] in text]


@given(st.integers(6, len(KEY)), st.sampled_from(["first", "last"]), st.text(max_size=20), st.text(max_size=20))
def test_no_beginning_and_no_end_of_a_key_is_shown(length: int, which: str, before: str, after: str) -> None:
    part = KEY[:length] if which == "first" else KEY[-length:]
    shown = Secrets({"OPENAI_API_KEY": KEY}).hide(f"{before}{part}{after}")
    assert leaks(KEY, shown) == []


@pytest.mark.parametrize("key", [KEY, WITH_SIGNS])
@pytest.mark.parametrize("around", [b"", b"a", b"ab", b"user:", b"Bearer "])
def test_a_key_in_base64_is_hidden_at_any_position_in_the_text(key: str, around: bytes) -> None:
    secrets = Secrets({"A_TOKEN": key})
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        packed = encode(around + key.encode() + around).decode()
        shown = secrets.hide(f"sent {packed}").removeprefix("sent ")
        assert "***" in shown
        # At either end a group of four characters may contain part of the text around the key, and so is shown.
        assert len(shown.replace("***", "")) <= 2 * len(encode(around)) + 4


@pytest.mark.parametrize("key", [KEY, WITH_SIGNS])
def test_a_key_as_addresses_write_it_is_not_shown(key: str) -> None:
    packed = quote(key, safe="")
    assert leaks(packed, Secrets({"A_TOKEN": key}).hide(f"?sig={packed}&x=1")) == []
    assert leaks(packed, Secrets({"A_TOKEN": key}).hide(f"?sig={packed[:20]}")) == []


def test_ordinary_texts_stay_as_they_are() -> None:
    chosen = random.Random(5)
    words = [KEY, "ollama", "any-text-will-do", "correct horse battery staple", "secret-word-in-parts"]
    secrets = Secrets({f"KEY_{at}": word for at, word in enumerate(words)})
    letters = string.ascii_letters + string.digits + "  .,-"
    for _ in range(50):
        text = "".join(chosen.choice(letters) for _ in range(2_000))
        assert secrets.hide(text) == text
    for text in ("ollama is set up", "parts of a word", "the battery and the horse", "we discuss keys of 16 letters"):
        assert secrets.hide(text) == text


def test_a_word_in_the_middle_of_a_key_is_still_a_word() -> None:
    secrets = Secrets({"KEY": "sk-invented-0123456789"})
    assert secrets.hide("an invented paper") == "an invented paper"
    assert secrets.hide("got sk-invented-01") == "got ***"


def test_an_answer_keeps_a_placeholder_given_as_key() -> None:
    assert hiding("placeholder").without_keys("a placeholder token") == "a placeholder token"
    assert hiding(KEY).without_keys(f"it says {KEY[:20]}...") == "it says ***..."
    assert hiding(None).hide("nothing to hide") == "nothing to hide"
