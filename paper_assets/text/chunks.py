"""Cut texts into chunks at sentence and word boundaries (R6)."""

import re
from collections.abc import Iterator
from itertools import pairwise

from semantic_text_splitter import TextSplitter

from paper_assets.errors import InvalidInput
from paper_assets.text.cleaning import encodable
from paper_assets.text.sentences import sentence_spans

_LONGEST_SENTENCE = 1_000  # characters of one that a passage repeats whole
_BLOCK = 300_000  # characters that are split at once; the splitter's time grows with the square of the length
_LINE_END = re.compile(r"(?<!\n)\n(?!\n)")  # alone it is layout; the splitter would take it for more than a sentence


def chunks_of(text: str, *, size: int, overlap: int) -> list[str]:
    """Cut a text into pieces of at most `size` characters that contain all of it except white space between pieces.

    Pieces end at the end of a paragraph or sentence if one fits, otherwise of a word; only a word longer than `size` is
    cut. Each begins with the last words of the previous piece, up to `overlap` characters, as far as `size` allows:
    whole sentences take precedence. Lone surrogates become question marks. Raises InvalidInput.
    """
    if not 0 <= overlap < size:
        raise InvalidInput(f"chunks of {size} characters cannot overlap by {overlap}; give 0 to {size - 1}")
    flowing = _flowing(text)
    spans = list(_spans(flowing, TextSplitter(size, overlap=overlap)))
    # The splitter repeats only whole sentences that fit into the overlap, which are few: 7 % of the pairs of chunks
    # of arXiv abstracts. So the words before are added where they fit.
    chunks = [flowing[start:end] for start, end in spans[:1]]
    for (before, until), (start, end) in pairwise(spans):
        first = max(before + 1, until - overlap, end - size)
        chunks.append(flowing[_word_start(flowing, first, start) : end])
    return chunks


def passage_of(text: str, chunk: str, *, title: str = "") -> str | None:
    """Return the whole sentences of the text that a chunk of it holds, for reading; None if that is only the title.

    A sentence that begins before the chunk is left out if another one follows, since chunks overlap. A sentence of more
    than 1,000 characters is not completed.
    """
    flowing = _flowing(text)
    at = flowing.find(chunk)
    if at < 0:
        return chunk
    until = at + len(chunk)
    body = len(title) if title and flowing.startswith(title) else 0
    touched = [(start, end) for start, end in sentence_spans(flowing) if start < until and end > at and end > body]
    within = [(start, end) for start, end in touched if start >= max(at, body)] or touched
    if not within:
        return None
    first, last = max(within[0][0], body), within[-1][1]
    if last - first > len(chunk) + _LONGEST_SENTENCE:
        first, last = max(at, body), until
    return flowing[first:last].strip() or None


def _spans(flowing: str, splitter: TextSplitter) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(flowing):
        end = start + _BLOCK
        if end < len(flowing):
            space = max(flowing.rfind(blank, start + _BLOCK // 2, end) for blank in (" ", "\n"))
            end = space + 1 if space > 0 else end
        for at, piece in splitter.chunk_indices(flowing[start:end]):
            yield start + at, start + at + len(piece)
        start = end


def _flowing(text: str) -> str:
    return _LINE_END.sub(" ", encodable(text.replace("\r\n", "\n")))


def _word_start(text: str, first: int, last: int) -> int:
    """Return the first start of a word after white space from `first` on and before `last`; otherwise `last`."""
    for at in range(first, last):
        if text[at - 1].isspace() and not text[at].isspace():
            return at
    return last
