"""Forward index: normal form and words of each text, computed once for each content and cached by the process.

The profiles of a day rank the same papers, a profile's days overlap, and filters and scores read the same texts: each
text is read once. A text is identified by its content, so changed papers need no invalidation. Questions about many
texts are answered by one pass over arrays.

Texts are kept up to a limit; when more arrive, all are dropped. More texts than the limit at once are not kept.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.text.bm25 import Held, counted_pairs, numbered_words
from paper_assets.text.words import HAS_NO_BORDERS, asks, normal_forms, stem

MOST_TEXTS = 200_000  # 100,000 papers, each with its title and its whole text: some 4 kB each
_AT_ONCE = 10_000  # texts read at once: their words take memory until they are counted


@dataclass(frozen=True, slots=True)
class _Text:
    """A text that was read: the numbers of its words, ascending, and how often it contains each.

    `joining`: it contains a sign that changes a word beside it (`x_1`, `C++`, `C#`). `unbordered`: it contains a script
    without word boundaries, so that words may be inside others.
    """

    normal: str
    words: NDArray[np.int32]
    times: NDArray[np.int32]
    joining: bool
    unbordered: bool


@dataclass(slots=True)
class _Vocabulary:
    """The words of all cached texts, as they are spelled in normal form, by number, and the words of each stem."""

    numbers: dict[str, int] = field(default_factory=dict)
    stems: dict[str, list[str]] = field(default_factory=dict)
    stem_of: list[str] = field(default_factory=list)  # of each word; empty for a small word

    def numbered(self, word: str) -> int:
        """Return the number of a word; the caller holds the lock of the index."""
        number = self.numbers.setdefault(word, len(self.numbers))
        if number == len(self.stem_of):
            self.stem_of.append(stem(word) if asks(word) else "")
            self.stems.setdefault(self.stem_of[-1], []).append(word)
        return number


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTexts:
    """n texts; the words of text `at` are in `words` and `times` from `starts[at]` to `starts[at + 1]`."""

    texts: Sequence[_Text]
    starts: NDArray[np.int64]
    words: NDArray[np.int32]
    times: NDArray[np.int32]
    _known: _Vocabulary

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of words in each text (n,)."""
        return np.diff(np.concatenate(([0], np.cumsum(self.times, dtype=np.int64)))[self.starts])

    def normal(self, positions: NDArray[np.intp]) -> list[str]:
        """Return the normal forms of some of the texts."""
        return [self.texts[at].normal for at in positions.tolist()]

    @property
    def without_borders(self) -> NDArray[np.bool_]:
        """Return which texts (n,) contain a script without word boundaries."""
        return np.array([text.unbordered for text in self.texts], dtype=bool)

    @property
    def joining(self) -> NDArray[np.bool_]:
        """Return which texts (n,) contain a sign that changes a word beside it."""
        return np.array([text.joining for text in self.texts], dtype=bool)

    def beginning(self, start: str) -> list[str]:
        """Return all words with this prefix; some may occur in none of the texts."""
        return [word for word in list(self._known.numbers) if word.startswith(start)]

    def spellings(self, stems: Collection[str]) -> dict[str, list[str]]:
        """Return the words of each stem; some may occur in none of the texts."""
        return {one: list(self._known.stems.get(one, ())) for one in stems}

    def holders_of(self, groups: Sequence[Sequence[str]]) -> list[Held]:
        """Return for each group of words the texts with any of them, and the total count. Groups share no word."""
        group_of = np.zeros(len(self._known.numbers) + 1, dtype=np.min_scalar_type(len(groups)))
        for number, group in enumerate(groups):
            known = (self._known.numbers.get(word, -1) for word in group)
            group_of[[word for word in known if word < len(group_of) - 1]] = number + 1
        group_of[-1] = 0  # that of words in none of the texts
        hits = np.flatnonzero(group_of[self.words])
        groups_hit = group_of[self.words[hits]]
        held_in = np.searchsorted(self.starts, hits, side="right") - 1
        order = np.argsort(groups_hit, kind="stable")
        borders = np.concatenate(([0], np.cumsum(np.bincount(groups_hit, minlength=len(groups) + 1))))
        found = []
        for number in range(1, len(groups) + 1):
            part = order[borders[number] : borders[number + 1]]
            often = np.bincount(held_in[part], weights=self.times[hits[part]], minlength=len(self))
            positions = np.flatnonzero(often)
            found.append((positions.astype(np.int32), often[positions].astype(np.int32)))
        return found

    def times_by_stem(self) -> tuple[Any, list[str]]:
        """Return how often each text contains each stem, as a sparse array (n, stems), and the stems.

        Stems are sorted by name: sums over them must not depend on the order of texts or words.
        """
        from scipy.sparse import csr_array

        present, columns = np.unique(self.words, return_inverse=True)
        stem_of = [self._known.stem_of[word] for word in present.tolist()]
        stems = sorted(set(stem_of) - {""})
        place = {one: at for at, one in enumerate(stems)}
        stem_columns = np.array([place.get(one, -1) for one in stem_of], dtype=np.int32)[columns.ravel()]
        with_stem = np.flatnonzero(stem_columns >= 0)
        rows = np.repeat(np.arange(len(self)), np.diff(self.starts))[with_stem]
        times = self.times[with_stem].astype(np.float64)
        return csr_array((times, (rows, stem_columns[with_stem])), shape=(len(self), len(stems))), stems


class ForwardIndex:
    """The cache, shared by all threads of the process."""

    def __init__(self, most: int = MOST_TEXTS) -> None:
        self._texts, self._known, self._most, self._lock = dict[str, _Text](), _Vocabulary(), most, Lock()

    def of(self, texts: pa.ChunkedArray) -> IndexedTexts:
        """Return the texts; read those that are not cached."""
        given: list[str] = texts.to_pylist()
        with self._lock:
            new = list(dict.fromkeys(text for text in given if text not in self._texts))
            if new and len(self._texts) + len(new) > self._most:
                self._texts, self._known = {}, _Vocabulary()
                new = list(dict.fromkeys(given))
            for start in range(0, len(new), _AT_ONCE):
                self._texts |= _read(new[start : start + _AT_ONCE], self._known)
            found, known = [self._texts[text] for text in given], self._known
            if len(self._texts) > self._most:
                self._texts, self._known = {}, _Vocabulary()
        sizes = np.array([len(text.words) for text in found], dtype=np.int64)
        nothing = [np.zeros(0, np.int32)]
        return IndexedTexts(
            texts=found,
            starts=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            words=np.concatenate(nothing + [text.words for text in found]),
            times=np.concatenate(nothing + [text.times for text in found]),
            _known=known,
        )


def _read(texts: list[str], known: _Vocabulary) -> dict[str, _Text]:
    """Read texts, and add their words to those known."""
    forms = normal_forms(texts)
    rows, columns = numbered_words(pa.array(forms, pa.string()), known.numbered, normal=True)
    starts, words, times = counted_pairs(rows, columns, len(texts))
    return {
        text: _Text(
            normal=form,
            words=words[start:end],
            times=times[start:end],
            joining="_" in form or "#" in form or "++" in form,
            unbordered=not form.isascii() and HAS_NO_BORDERS.search(form) is not None,
        )
        for text, form, start, end in zip(texts, forms, starts[:-1], starts[1:], strict=True)
    }


_INDEX = ForwardIndex()


def indexed(texts: pa.ChunkedArray) -> IndexedTexts:
    """Return the texts from the process's index; read and cache new ones."""
    return _INDEX.of(texts)


def forget_texts() -> None:
    """Empty the process's index."""
    with _INDEX._lock:
        _INDEX._texts, _INDEX._known = {}, _Vocabulary()
