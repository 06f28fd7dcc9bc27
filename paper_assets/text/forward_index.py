"""Forward index: normal form and words of each text, computed once for each content and cached by the process.

The profiles of a day rank the same papers, a profile's days overlap, and filters and scores read the same texts: each
text is read once. A text is identified by its content, so changed papers need no invalidation. Questions about many
texts are answered by one pass over arrays.

The most recently used texts are kept, up to a limit; when more arrive, the old ones are dropped. More texts than the
limit at once are read and not kept.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.text.bm25 import Held, TimesByStem, counted_pairs, words_of
from paper_assets.text.words import HAS_NO_BORDERS, asks, normal_forms, stem

# Of 100,000 papers, each with its title and its whole text, which takes some 3.5 kB: the text as it came, its normal
# form, its words as numbers.
MOST_TEXTS = 200_000
_AT_ONCE = 10_000  # texts read at once: their words take memory until they are counted
_FEW = 4  # a part smaller than a fourth of all is copied before it is searched

_Number = TypeVar("_Number", bound=np.generic)

_NO_BORDERS, _JOINING = 1, 2  # properties of a text, as bits
_UNKNOWN, _NO, _YES = range(3)


@dataclass(slots=True)
class _Kept:
    """Cached texts by row. Arrays only grow and rows never change, so arrays that were handed out stay valid."""

    row_of: dict[str, int] = field(default_factory=dict)
    normal: list[str] = field(default_factory=list)
    columns: dict[str, int] = field(default_factory=dict)  # a word as it is spelled in normal form -> its number
    stems: dict[str, int] = field(default_factory=dict)  # of words with a meaning -> its number
    spelled: list[list[str]] = field(default_factory=list)  # the words of each stem
    stem_of: NDArray[np.int32] = field(
        default_factory=lambda: np.zeros(0, np.int32)
    )  # of each word; -1: a small word without one
    by_name: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))  # place of each stem by its name
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    words: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    times: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    stem_starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    stems_held: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))  # of a text by name
    stem_times: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    holds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    marks: dict[tuple[str, ...], NDArray[np.uint8]] = field(default_factory=dict)  # what the rows are
    lock: Lock = field(default_factory=Lock)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedTexts:
    """n texts; the words of text `at` are in `words` and `times` from `starts[at]` to `starts[at + 1]`."""

    at: NDArray[np.intp]  # (n,)
    rows: NDArray[np.intp]  # (n,) in what is kept
    starts: NDArray[np.int64]
    words: NDArray[np.int32]
    times: NDArray[np.int32]
    _kept: _Kept

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of words in each text (n,)."""
        ends = np.concatenate(([0], np.cumsum(self.times, dtype=np.int64)))[self.starts]
        lengths: NDArray[np.int64] = np.diff(ends)[self.at]
        return lengths

    def normal(self, positions: NDArray[np.intp]) -> list[str]:
        """Return the normal forms of some of the texts."""
        kept = self._kept.normal
        return [kept[row] for row in self.rows[positions].tolist()]

    @property
    def without_borders(self) -> NDArray[np.bool_]:
        """Return which texts (n,) contain a script without word boundaries, so that words may be inside others."""
        return (self._kept.holds[self.rows] & _NO_BORDERS) != 0

    @property
    def joining(self) -> NDArray[np.bool_]:
        """Return which texts (n,) contain a sign that changes a word beside it: `x_1`, `C++`, `C#`."""
        return (self._kept.holds[self.rows] & _JOINING) != 0

    def holding(self, marks: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return which texts (n,) contain any of the marks in normal form; each text is searched once per mark."""
        kept = self._kept
        with kept.lock:
            known = kept.marks.get(marks, np.zeros(0, np.uint8))
            if len(known) < len(kept.normal):
                known = kept.marks[marks] = np.concatenate((known, np.zeros(len(kept.normal) - len(known), np.uint8)))
            for row in set(self.rows[known[self.rows] == _UNKNOWN].tolist()):
                text = kept.normal[row]
                known[row] = _YES if any(map(text.__contains__, marks)) else _NO
            return known[self.rows] == _YES

    def beginning(self, start: str) -> list[str]:
        """Return all words with this prefix; some may occur in none of the texts."""
        with self._kept.lock:
            return [word for word in self._kept.columns if word.startswith(start)]

    def spellings(self, stems: Collection[str]) -> dict[str, list[str]]:
        """Return the words of each stem; some may occur in none of the texts."""
        kept = self._kept
        with kept.lock:
            _stem_words(kept)
            return {one: list(kept.spelled[kept.stems[one]]) if one in kept.stems else [] for one in stems}

    def holders_of(self, groups: Sequence[Sequence[str]]) -> list[Held]:
        """Return for each group of words the texts with any of them, and the total count. Groups share no word."""
        kept = self._kept
        with kept.lock:
            group_of = np.zeros(len(kept.columns) + 1, dtype=np.min_scalar_type(len(groups)))
            for number, group in enumerate(groups):
                group_of[[kept.columns.get(word, -1) for word in group]] = number + 1
        group_of[-1] = 0  # that of words in none of the texts
        hits = np.flatnonzero(group_of[self.words])
        held_in = np.repeat(np.arange(len(self.starts) - 1), np.diff(np.searchsorted(hits, self.starts)))
        groups_hit, times = group_of[self.words[hits]], self.times[hits]
        order = np.argsort(groups_hit, kind="stable")
        borders = np.concatenate(([0], np.cumsum(np.bincount(groups_hit, minlength=len(groups) + 1))))
        found, column = [], np.zeros(len(self.starts) - 1, dtype=np.int32)
        for number in range(1, len(groups) + 1):
            part = order[borders[number] : borders[number + 1]]
            np.add.at(column, held_in[part], times[part])
            often = column[self.at]
            positions = np.flatnonzero(often)
            found.append((positions.astype(np.int32), often[positions]))
            column[held_in[part]] = 0
        return found

    def times_by_stem(self) -> TimesByStem:
        """Count each stem in each text."""
        kept = self._kept
        with kept.lock:
            _stem_words(kept)
            if len(kept.stem_starts) < len(kept.normal) + 1:
                _stem_rows(kept, len(kept.normal))
            begins = kept.stem_starts[self.rows]
            sizes = kept.stem_starts[self.rows + 1] - begins
            entries = _entries(begins, sizes)
            stems, times = kept.stems_held[entries], kept.stem_times[entries]
            present = np.flatnonzero(np.bincount(stems, minlength=len(kept.stems)))
            present = present[np.argsort(kept.by_name[present])]
            names = list(kept.stems)
        column = np.zeros(len(names), dtype=np.int32)
        column[present] = np.arange(len(present))
        return TimesByStem(
            starts=np.concatenate(([0], np.cumsum(sizes))),
            columns=column[stems],
            times=times,
            stems=[names[one] for one in present.tolist()],
        )


class ForwardIndex:
    """The cache, shared by all threads of the process."""

    def __init__(self, most: int = MOST_TEXTS) -> None:
        self._kept, self._most, self._lock = _Kept(), most, Lock()

    def of(self, texts: pa.ChunkedArray) -> IndexedTexts:
        """Return the texts; read those that are not cached."""
        given: list[str] = texts.to_pylist()
        with self._lock:
            kept = self._kept
            found = [kept.row_of.get(text, -1) for text in given]
            new = list(dict.fromkeys(text for text, row in zip(given, found, strict=True) if row < 0))
            if new and len(kept.normal) + len(new) > self._most:
                kept, new = _Kept(), list(dict.fromkeys(given))
                if len(new) <= self._most:
                    self._kept = kept
            for start in range(0, len(new), _AT_ONCE):
                _read(kept, new[start : start + _AT_ONCE])
            if new:
                found = [kept.row_of[text] for text in given]
            rows = np.array(found, dtype=np.intp)
            starts = kept.starts[: len(kept.normal) + 1]
            words, times = kept.words[: starts[-1]], kept.times[: starts[-1]]
        at = rows
        if _FEW * len(rows) < len(starts):
            sizes = np.diff(starts)[rows] if len(rows) else np.zeros(0, np.int64)
            entries = _entries(starts[rows], sizes)
            starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
            at, words, times = np.arange(len(rows)), words[entries], times[entries]
        return IndexedTexts(at=at, rows=rows, starts=starts, words=words, times=times, _kept=kept)

    def forget(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._kept = _Kept()


def _read(kept: _Kept, texts: list[str]) -> None:
    """Append texts that are not cached yet."""
    begin = len(kept.normal)
    forms = normal_forms(texts)
    rows, columns = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)]
    with kept.lock:
        for within, spelled, numbers in words_of(pa.array(forms, pa.string()), normal=True):
            known = np.array([kept.columns.setdefault(word, len(kept.columns)) for word in spelled], dtype=np.int32)
            rows.append(within.astype(np.int32))
            columns.append(known[numbers])
    starts, words, times = counted_pairs(np.concatenate(rows), np.concatenate(columns), len(texts))
    used = int(kept.starts[begin])
    kept.starts = _with(kept.starts, begin + 1, starts[1:] + used)
    kept.words, kept.times = _with(kept.words, used, words), _with(kept.times, used, times)
    kept.holds = _with(kept.holds, begin, np.array([_held_signs(form) for form in forms], dtype=np.uint8))
    kept.normal += forms
    kept.row_of.update((text, begin + row) for row, text in enumerate(texts))


def _stem_words(kept: _Kept) -> None:
    """Find the stems of new words."""
    if len(kept.stem_of) == len(kept.columns):
        return
    found = []
    for word in islice(kept.columns, len(kept.stem_of), None):
        if not asks(word):
            found.append(-1)
            continue
        number = kept.stems.setdefault(stem(word), len(kept.stems))
        if number == len(kept.spelled):
            kept.spelled.append([])
        kept.spelled[number].append(word)
        found.append(number)
    kept.stem_of = np.concatenate((kept.stem_of, np.array(found, dtype=np.int32)))


def _stem_rows(kept: _Kept, until: int) -> None:
    """Count the stems of new texts, sorted by name within a text: sums over them must not depend on the order of texts
    or words.
    """
    begin = len(kept.stem_starts) - 1
    names = list(kept.stems)
    kept.by_name = np.zeros(len(names), dtype=np.int64)
    kept.by_name[sorted(range(len(names)), key=names.__getitem__)] = np.arange(len(names))
    part = slice(kept.starts[begin], kept.starts[until])
    stems, times = kept.stem_of[kept.words[part]], kept.times[part]
    rows = np.repeat(np.arange(until - begin), np.diff(kept.starts[begin : until + 1]))
    with_stem = np.flatnonzero(stems >= 0)
    pairs = (rows[with_stem] << 32) | kept.by_name[stems[with_stem]]
    order = np.argsort(pairs)
    first = np.flatnonzero(np.diff(pairs[order], prepend=-1))
    counts = np.bincount(rows[with_stem][order][first], minlength=until - begin)
    kept.stems_held = np.concatenate((kept.stems_held, stems[with_stem][order][first]))
    kept.stem_times = np.concatenate(
        (kept.stem_times, np.add.reduceat(times[with_stem][order], first).astype(np.int32))
    )
    kept.stem_starts = np.concatenate((kept.stem_starts, kept.stem_starts[-1] + np.cumsum(counts)))


def _held_signs(form: str) -> int:
    joining = "_" in form or "#" in form or "++" in form
    unbordered = not form.isascii() and HAS_NO_BORDERS.search(form) is not None
    return _JOINING * joining + _NO_BORDERS * unbordered


def _with(array: NDArray[_Number], used: int, more: NDArray[_Number]) -> NDArray[_Number]:
    """Append `more` after the first `used` elements; copy into an array of twice the length if it does not fit."""
    if len(array) < used + len(more):
        larger = np.empty(max(2 * len(array), used + len(more)), dtype=array.dtype)
        larger[:used] = array[:used]
        array = larger
    array[used : used + len(more)] = more
    return array


def _entries(begins: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices of the entries of parts with these starts and sizes, part by part."""
    before = np.cumsum(sizes) - sizes
    return np.repeat(begins - before, sizes) + np.arange(int(sizes.sum()))


_INDEX = ForwardIndex()


def indexed(texts: pa.ChunkedArray) -> IndexedTexts:
    """Return the texts from the process's index; read and cache new ones."""
    return _INDEX.of(texts)


def forget_texts() -> None:
    """Empty the process's index."""
    _INDEX.forget()
