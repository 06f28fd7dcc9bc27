"""BM25: how well texts answer a question by its words, from 0 to 1, over any part of the texts.

The counts of all texts are kept, but the statistics of the asked words are taken from the rows asked about: a score
depends on these alone, so that what a filter shuts out (somebody's private documents) has no say (SPEC R5). It is
what bm25s gives (method `lucene`) when it is built anew over those rows, divided by what no text can reach, however
often it holds every asked word: a share, that can be weighed against a cosine. A text of mean length that holds each
once has 1 / (k1 + 1).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

K1, B = 1.2, 0.4  # saturation and length normalisation, measured together with the fusion; docs/evaluation.md

_BATCH = 10_000  # texts cut into words at once


@dataclass(frozen=True, slots=True, kw_only=True)
class WordIndex:
    """Which of n texts hold which word how often: column by column, the rows of each ascending."""

    columns: dict[str, int]  # a word without its plural's s -> its column
    starts: NDArray[np.int64]  # (columns + 1,): where each column begins in the next two
    rows: NDArray[np.int32]
    times: NDArray[np.int32]
    lengths: NDArray[np.int64]  # (n,): words in each text

    @property
    def size(self) -> int:
        """Bytes in memory, roughly."""
        return self.rows.nbytes + self.times.nbytes + self.lengths.nbytes + 100 * len(self.columns)


def index_words(texts: "Sequence[str] | pa.ChunkedArray") -> WordIndex:
    """Count the words of the texts: runs of letters and digits, without case, accents and plural."""
    import pyarrow as pa
    from scipy.sparse import coo_array

    given = texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([pa.array(texts, pa.string())])
    columns: dict[str, int] = {}
    rows, numbers = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
    for start in range(0, len(given), _BATCH):
        batch = pa.concat_arrays(given.slice(start, _BATCH).chunks)
        for within, spelled, words in _words(batch):
            known = np.array([columns.setdefault(singular(word), len(columns)) for word in spelled], dtype=np.int32)
            rows.append((within + start).astype(np.int32))
            numbers.append(known[words])
    of_row, of_column = np.concatenate(rows), np.concatenate(numbers)
    ones = np.ones(len(of_row), dtype=np.int32)
    counts = coo_array((ones, (of_row, of_column)), shape=(len(given), len(columns))).tocsc()
    return WordIndex(
        columns=columns,
        starts=counts.indptr.astype(np.int64),
        rows=counts.indices.astype(np.int32),
        times=counts.data,
        lengths=np.bincount(of_row, minlength=len(given)),
    )


def bm25(
    index: WordIndex, question: str, *, rows: NDArray[np.intp] | None = None, k1: float = K1, b: float = B
) -> NDArray[np.float64]:
    """Score of each of the rows (None: of all) as if there were no others, 0 to under 1; 0 where no word is shared.

    A word counts as often as it is asked, times idf = ln(1 + (n - df + 0.5) / (df + 0.5)), times
    tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length)) (Robertson & Zaragoza 2009).
    """
    total = len(index.lengths)
    asked = np.arange(total) if rows is None else rows
    scores = np.zeros(total)
    among = np.zeros(total, dtype=bool)
    among[asked] = True
    mean = max(float(index.lengths[asked].mean()), 1.0) if len(asked) else 1.0
    whole = 0.0
    # In the order of the question, so that a score has the same bits whatever else is stored.
    for word, often in Counter(words_asked(question)).items():
        column = index.columns.get(word)
        part = slice(0, 0) if column is None else slice(*index.starts[column : column + 2])
        kept = among[index.rows[part]]
        holders, times = index.rows[part][kept], index.times[part][kept]
        weight = often * np.log1p((len(asked) - len(holders) + 0.5) / (len(holders) + 0.5))
        whole += weight
        scores[holders] += weight * times * (k1 + 1) / (times + k1 * (1 - b + b * index.lengths[holders] / mean))
    return scores[asked] / (whole * (k1 + 1)) if whole else scores[asked]


def words_asked(question: str) -> list[str]:
    """The words of a question as the index counts them, in their order, without those that say nothing."""
    return [word for word in words_in(question) if word not in _small_words()]


def words_in(text: str) -> list[str]:
    """The words of one text in their order, as the index counts them."""
    import pyarrow as pa

    return [singular(spelled[at]) for _, spelled, words in _words(pa.array([text])) for at in words]


def singular(word: str) -> str:
    """A plural without its ending (after Harman, How effective is suffixing?, 1991); it need not be a word."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    return word[:-2] if word.endswith(("ses", "xes", "zes", "ches", "shes")) else word[:-1]


@cache
def _small_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return frozenset(words_in(" ".join(STOPWORDS_EN_PLUS)))


def _words(texts: "pa.Array") -> Iterator[tuple[NDArray[np.int64], list[str], NDArray[np.int32]]]:
    """Per part of the texts: the row and the word of each occurrence, words as numbers into the list of spellings.

    By Arrow and a table of bytes, a third of the time that a loop in Python takes over many abstracts.
    """
    import pyarrow.compute as pc

    ascii_only = pc.string_is_ascii(texts)
    for part, spaced in ((ascii_only, _ascii_spaced), (pc.invert(ascii_only), _spaced)):
        places = np.flatnonzero(part.to_numpy(zero_copy_only=False))
        if not len(places):
            continue
        lists = pc.split_pattern(spaced(texts.filter(part)), " ")
        owners, words = pc.list_parent_indices(lists), pc.list_flatten(lists)
        filled = pc.not_equal(words, "")
        coded = pc.dictionary_encode(words.filter(filled))
        numbers = coded.indices.to_numpy().astype(np.int32)
        yield places[owners.filter(filled).to_numpy()], coded.dictionary.to_pylist(), numbers


def _ascii_spaced(texts: "pa.Array") -> "pa.Array":
    """ASCII texts in lower case with a blank for all that is neither letter nor digit; the offset of `texts` is 0."""
    import pyarrow as pa

    letters = [ord(chr(at).lower()) if at < 128 and chr(at).isalnum() else ord(" ") for at in range(256)]
    _, offsets, written = texts.buffers()
    lowered = np.array(letters, np.uint8)[np.frombuffer(written or b"", dtype=np.uint8)]
    return type(texts).from_buffers(len(texts), offsets, pa.py_buffer(lowered))


def _spaced(texts: "pa.Array") -> "pa.Array":
    """Any texts likewise, and without accents."""
    import pyarrow.compute as pc

    plain = pc.replace_substring_regex(pc.utf8_normalize(texts, "NFKD"), r"\pM+", "")
    return pc.replace_substring_regex(pc.utf8_lower(plain), r"[^\pL\pN]+", " ")
