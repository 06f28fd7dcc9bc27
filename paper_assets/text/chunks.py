"""Texts cut into chunks on sentence and word boundaries (SPEC R6)."""

import re
from itertools import pairwise

from semantic_text_splitter import TextSplitter

from paper_assets.errors import InvalidInput
from paper_assets.text.cleaning import encodable

_LINE_END = re.compile(r"(?<!\n)\n(?!\n)")  # alone it is layout; the splitter would take it for more than a sentence


def chunks_of(text: str, *, size: int, overlap: int) -> list[str]:
    """Pieces of at most `size` characters that hold all of the text but the white space between them.

    They end at the end of a paragraph or a sentence where one fits, else of a word, and only a word longer than
    `size` is cut. Each begins with the words that end the one before, up to `overlap` characters of them, as far as
    `size` leaves room: whole sentences come first. Lone surrogates become question marks. Raises InvalidInput.
    """
    if not 0 <= overlap < size:
        raise InvalidInput(f"chunks of {size} characters cannot overlap by {overlap}; give 0 to {size - 1}")
    flowing = _LINE_END.sub(" ", encodable(text.replace("\r\n", "\n")))
    spans = [(at, at + len(piece)) for at, piece in TextSplitter(size, overlap=overlap).chunk_indices(flowing)]
    # The splitter repeats only whole sentences that fit into the overlap, which are few: 7 % of the pairs of chunks
    # of arXiv abstracts. So the words before are added where there is room.
    chunks = [flowing[start:end] for start, end in spans[:1]]
    for (before, until), (start, end) in pairwise(spans):
        first = max(before + 1, until - overlap, end - size)
        chunks.append(flowing[_word_start(flowing, first, start) : end])
    return chunks


def _word_start(text: str, first: int, last: int) -> int:
    """The first place from `first` on, before `last`, where a word begins after white space; else `last`."""
    for at in range(first, last):
        if text[at - 1].isspace() and not text[at].isspace():
            return at
    return last
