"""The inverted index of words: which texts contain a word, and how often (SPEC R2, Q1).

Two tables. `texts` numbers each different text once; `postings` has a row for each word of each text, in normal form.
Both are written in the transaction that writes the papers or documents, so that a search sees all of them or none.
A text is known by its hash, as in `embeddings`: a changed paper has another text, and an unused text is found by no
search, because a search begins with the documents that meet its filter.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from duckdb import DuckDBPyConnection
from numpy.typing import NDArray

from paper_assets.stores.warehouse import value_of
from paper_assets.text.bm25 import QueryWord, counted_pairs, numbered_words
from paper_assets.text.words import word_forms

_FEW_TEXTS = 100  # that contain a word; in a small store a share says little
_AT_ONCE = 10_000  # texts whose words are in memory at once, about 100 MB


def count_words(connection: DuckDBPyConnection, texts: pa.Table) -> None:
    """Count the words of the texts (columns text_hash, text) that have not been counted yet."""
    for start in range(0, len(texts), _AT_ONCE):
        connection.register("incoming_texts", texts.slice(start, _AT_ONCE).select(["text_hash", "text"]))
        new = connection.sql(
            """
            select text_hash, any_value(text) as text
            from incoming_texts
            anti join texts using (text_hash)
            group by text_hash
            order by text_hash
            """
        ).to_arrow_table()
        connection.unregister("incoming_texts")
        if len(new):
            first: int = value_of(connection, "select coalesce(max(number) + 1, 0) from texts")
            _write(connection, new, first=first)


def forget_unused_texts(connection: DuckDBPyConnection) -> None:
    """Remove the words of texts that no paper or document has any more, for example those of a removed private PDF."""
    connection.execute("delete from texts where text_hash not in (select text_hash from retrievable)")
    connection.execute("delete from postings where number not in (select number from texts)")


def holders_of(
    connection: DuckDBPyConnection, words: Sequence[QueryWord]
) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """Return for each word the numbers of the texts that contain it in any form, ascending, and how often each does."""
    asked = pa.table(
        {
            "word": pa.array([form for word in words for form in word.forms], pa.string()),
            "place": pa.array([place for place, word in enumerate(words) for _ in word.forms], pa.uint16()),
        }
    )
    connection.register("asked_words", asked)
    found = connection.execute("select place, number, times from postings join asked_words using (word)").fetchnumpy()
    connection.unregister("asked_words")
    # Sorted and added up here: DuckDB needs three times as long, because it does not know that numbers are small.
    order = np.argsort(found["place"], kind="stable")
    borders = np.searchsorted(found["place"][order], np.arange(len(words) + 1)).tolist()
    holders = []
    for start, end in pairwise(borders):
        rows = order[start:end]
        times = np.bincount(found["number"][rows], weights=found["times"][rows])
        numbers = np.flatnonzero(times)
        holders.append((numbers.astype(np.int32), times[numbers].astype(np.int32)))
    return holders


def words_of_many(connection: DuckDBPyConnection, words: Sequence[str]) -> set[str]:
    """Return those of the words that more than a fourth of the stored texts contain in some form; none of few texts."""
    asked = pa.table(
        {
            "asked": pa.array([word for word in words for _ in word_forms(word)], pa.string()),
            "word": pa.array([form for word in words for form in word_forms(word)], pa.string()),
        }
    )
    connection.register("asked_words", asked)
    rows = connection.execute(
        """
        select asked
        from postings join asked_words using (word)
        group by asked
        having count(distinct number) > (select greatest(count(*) / 4, $few) from texts)
        """,
        {"few": _FEW_TEXTS},
    ).fetchall()
    connection.unregister("asked_words")
    return {word for (word,) in rows}


def _write(connection: DuckDBPyConnection, new: pa.Table, *, first: int) -> None:
    """Insert the texts with numbers from `first`, and their postings sorted by word, so that DuckDB skips most."""
    numbers: dict[str, int] = {}
    of_row, of_word = numbered_words(new["text"].combine_chunks(), lambda word: numbers.setdefault(word, len(numbers)))
    spellings = sorted(numbers)
    rank = np.zeros(len(spellings), dtype=np.int32)
    rank[[numbers[word] for word in spellings]] = np.arange(len(spellings))
    starts, held, times = counted_pairs(rank[of_word], of_row, len(spellings))
    each = np.repeat(np.arange(len(spellings), dtype=np.int32), np.diff(starts))
    postings = pa.table(
        {
            "word": pa.DictionaryArray.from_arrays(pa.array(each), pa.array(spellings, pa.string())),
            "number": held + first,
            "times": times,
        }
    )
    texts = pa.table(
        {
            "number": np.arange(first, first + len(new), dtype=np.int32),
            "text_hash": new["text_hash"],
            "words": np.bincount(of_row, minlength=len(new)).astype(np.int32),
        }
    )
    for table, incoming in (("texts", texts), ("postings", postings)):
        connection.register("counted", incoming)
        connection.table("counted").insert_into(table)
        connection.unregister("counted")
