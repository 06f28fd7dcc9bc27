"""Whether a rewrite copies an example that its prompt has shown (B2): an archive of copies teaches nothing new.

Measured as the share of its word triples (Lyon, Malcolm & Dickerson 2001) that the example holds. Of 200,000 pairs of
real abstracts of one field all but one in ten thousand share less than 6 %; an example in which every fourth word
was exchanged still shares 25 %, where longer runs of words would see nothing.
"""

import re

_RUN = 3
# Not `text/words.py`: copies are found by their very letters, accents too; a script without word spaces is read letter
# by letter.
_WORD = re.compile(r"[぀-ヿ㐀-鿿]|[^\W_぀-ヿ㐀-鿿]+")


def copied_share(rewrite: str, example: str, *, original: str) -> float:
    """Share, 0..1, of the rewrite's word triples that stand in the example and not in its own original.

    A rewrite of fewer than three words is a copy (1) if it is the example, otherwise none (0).
    """
    words = _words(rewrite)
    triples = _triples(words)
    if not triples:
        return float(bool(words) and words == _words(example))
    taken = set(_triples(_words(example))) - set(_triples(_words(original)))
    return sum(triple in taken for triple in triples) / len(triples)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _triples(words: list[str]) -> list[tuple[str, ...]]:
    return list(zip(*(words[at:] for at in range(_RUN)), strict=False))
