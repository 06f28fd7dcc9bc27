"""Chunks: never over the size, nothing lost, cut where a reader would cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from semantic_text_splitter import TextSplitter

from paper_assets.errors import InvalidInput
from paper_assets.text import chunks
from paper_assets.text.chunks import chunks_of

SENTENCES = [
    "Kelp forests shelter young fish.",
    "They grow where the water is cold, and they grow fast!",
    "Does an urchin eat all of them?",
    "A model of 3.5 parameters, e.g. a line, says that it depends on the otters that eat the urchins first.",
]
PROSE = st.lists(st.sampled_from(SENTENCES), max_size=30).map(" ".join)
ODD = st.text(st.sampled_from("ab.? \n\r\t,-é단模。👨\u200d👩\u0301\ud83d"), max_size=300)
SIZES = st.tuples(st.integers(1, 120), st.integers(0, 119)).filter(lambda both: both[1] < both[0])


def flowing(text: str) -> str:
    return " ".join(text.encode("utf-8", "replace").decode("utf-8").split())


@given(st.one_of(PROSE, ODD), SIZES)
def test_no_chunk_is_over_the_size_and_nothing_but_white_space_is_lost(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    whole = flowing(text)
    chunks = [flowing(chunk) for chunk in chunks_of(text, size=size, overlap=overlap)]
    ends = {0}  # where the chunks so far may end; text that repeats itself can be read in several ways
    for chunk in chunks:
        assert 0 < len(chunk) <= size
        near = {at for end in ends for at in range(max(0, end - overlap - 1), end + 2)}
        ends = {at + len(chunk) for at in near if whole.startswith(chunk, at)}
    assert len(whole) in ends


@given(st.lists(st.booleans(), max_size=150), st.integers(20, 200), st.integers(0, 19))
def test_chunks_share_whole_words_as_many_as_the_overlap_and_the_size_allow(
    ends: list[bool], size: int, overlap: int
) -> None:
    """Return words that occur once each, some with a full stop, so that a chunk shows its position."""
    text = " ".join(f"W{at:03}{'.' if end else ''}" for at, end in enumerate(ends))
    chunks = chunks_of(text, size=size, overlap=overlap)
    assert set(" ".join(chunks).replace(".", "").split()) == set(text.replace(".", "").split())
    spans = [(text.index(chunk), text.index(chunk) + len(chunk)) for chunk in chunks]
    for (_, until), (start, end) in pairwise(spans):
        assert until - start <= overlap
        before = text[:start].rstrip().rpartition(" ")[2]  # the word that would have come next
        whole_word = text[start - 1] == " "
        assert not whole_word or until - start + len(before) + 1 > overlap or end - start + len(before) + 1 > size


def test_a_chunk_begins_with_the_words_that_ended_the_one_before() -> None:
    text = " ".join(SENTENCES)
    assert chunks_of(text, size=100, overlap=30) == [
        "Kelp forests shelter young fish. They grow where the water is cold, and they grow fast!",
        "is cold, and they grow fast! Does an urchin eat all of them?",
        "A model of 3.5 parameters, e.g. a line, says that it depends on the otters that eat the urchins",
        "otters that eat the urchins first.",
    ]
    assert chunks_of(text, size=100, overlap=0) == [
        "Kelp forests shelter young fish. They grow where the water is cold, and they grow fast!",
        "Does an urchin eat all of them?",
        "A model of 3.5 parameters, e.g. a line, says that it depends on the otters that eat the urchins",
        "first.",
    ]


def test_a_line_end_is_not_a_boundary_but_an_empty_line_is() -> None:
    assert chunks_of("Kelp grows\nfast and\nfar.\n\nUrchins eat it.", size=30, overlap=0) == [
        "Kelp grows fast and far.",
        "Urchins eat it.",
    ]


def test_only_a_word_longer_than_the_size_is_cut() -> None:
    word = "abcdefghij" * 5
    chunks = chunks_of(f"see {word} there", size=20, overlap=5)
    assert all(len(chunk) <= 20 for chunk in chunks)
    assert "".join(chunks).count("abcdefghij") >= 2
    assert chunks[0].startswith("see")
    assert chunks[-1].endswith("there")


def test_text_without_spaces_is_cut_at_its_sentences() -> None:
    chunks = chunks_of("海藻长得很快。海胆吃海藻。" * 10, size=40, overlap=13)
    assert all(chunk.endswith("。") and len(chunk) <= 40 for chunk in chunks)


def test_a_short_text_is_one_chunk_and_an_empty_text_has_none() -> None:
    assert chunks_of(SENTENCES[0], size=300, overlap=50) == [SENTENCES[0]]
    assert chunks_of("", size=300, overlap=50) == chunks_of(" \n\t ", size=300, overlap=50) == []


def test_an_overlap_as_large_as_the_chunk_is_refused() -> None:
    for size, overlap in ((50, 50), (0, 0), (10, -1)):
        with pytest.raises(InvalidInput, match=f"chunks of {size} characters cannot overlap by {overlap}"):
            chunks_of("kelp", size=size, overlap=overlap)


@pytest.mark.parametrize("text", ["{" * 1_000_000, "A long sentence about kelp and tides. " * 20_000])
def test_a_text_of_megabytes_is_split_in_blocks_because_the_splitter_needs_the_square_of_the_length(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[int] = []

    class Splitter:
        def __init__(self, size: int, *, overlap: int) -> None:
            self.real = TextSplitter(size, overlap=overlap)

        def chunk_indices(self, block: str) -> list[tuple[int, str]]:
            lengths.append(len(block))
            return self.real.chunk_indices(block)

    monkeypatch.setattr(chunks, "TextSplitter", Splitter)
    pieces = chunks_of(text, size=1_000, overlap=0)
    assert max(lengths) <= 300_000 and sum(lengths) == len(text)
    assert max(map(len, pieces)) <= 1_000
    assert "".join("".join(pieces).split()) == "".join(text.split())
