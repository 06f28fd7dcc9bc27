"""Find best practices by meaning and by words (B3), and format them as the prompt's examples.

A process keeps whole collections in memory. While the warehouse file is unchanged, memory is used as it is; after a
write the ids show whether the archive has changed, and only new entries are read. In the prompt each example is fenced
as data and all of them are bounded together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from paper_assets.retrieval.merge import reciprocal_rank_fusion
from paper_assets.settings import RetrievalConfig, RewritingConfig
from paper_assets.small_files import file_state
from paper_assets.stores.best_practices import BestPractice, ids_of, with_vectors
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.bm25 import WordIndex, bm25, index_words
from paper_assets.text.cleaning import fenced

_KEPT = 4  # collections in memory; 10,000 best practices take 60 MB
_lock = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A collection in memory: n best practices ascending by id, and the indexes that find them."""

    mark: str | None  # state of the warehouse file before it was read
    practices: tuple[BestPractice, ...]
    levels: NDArray[np.str_]  # (n,)
    scores: NDArray[np.int64]  # (n,)
    vectors: NDArray[np.float32]  # (n, d); zeros, or d = 0, where there is none
    whole: bool  # all have a vector
    words: WordIndex  # of originals and keywords

    @property
    def ids(self) -> list[str]:
        """Return the ids, ascending."""
        return [practice.id for practice in self.practices]


_remembered: dict[tuple[Path, str, str | None], Remembered] = {}


def remembered(warehouse: Warehouse, collection: str, *, model: str | None) -> Remembered:
    """Return the present collection with the vectors that `model` has made."""
    key = (warehouse.path, collection, model)
    with _lock:
        present = _remembered.get(key)
        mark = file_state(warehouse.files)
        if present is None or present.mark != mark:
            present = _remembered[key] = _refreshed(warehouse, collection, model, present, mark)
            for oldest in list(_remembered)[:-_KEPT]:
                del _remembered[oldest]
        return present


def memory_of(practices: Sequence[BestPractice], vectors: NDArray[np.float32], *, mark: str | None) -> Remembered:
    """Index best practices, ascending by id, with the vectors (n, d) of their originals."""
    return Remembered(
        mark=mark,
        practices=tuple(practices),
        levels=np.array([each.target_level for each in practices], dtype=np.str_),
        scores=np.array([each.score for each in practices], dtype=np.int64),
        vectors=vectors,
        whole=not practices or bool(vectors.shape[1] and vectors.any(axis=1).all()),
        words=index_words([f"{each.original_text} {' '.join(each.keywords)}" for each in practices]),
    )


def best_fitting(
    memory: Remembered,
    text: str,
    vector: NDArray[np.float32] | None,
    wanted: NDArray[np.bool_],
    *,
    n: int,
    config: RewritingConfig,
    retrieval: RetrievalConfig,
) -> list[BestPractice]:
    """Return the n most relevant of the `wanted` (n,) by meaning and words, in the order of their scores.

    Best practices with too low a score or too distant a meaning are removed before ranks are assigned, so that they
    displace no other. The score decides only the order of what is shown.
    """
    rows = np.flatnonzero(wanted & (memory.scores >= config.recalled))
    meanings = memory.vectors[rows] @ vector if vector is not None and memory.vectors.shape[1] else None
    if meanings is not None:
        near = meanings >= config.recall_floor
        rows, meanings = rows[near], meanings[near]
    by_words = bm25(memory.words, text, rows=rows, k1=retrieval.bm25_k1, b=retrieval.bm25_b)
    rankings = [_best_first(by_words, rows, above=0.0, most=config.recall_depth)]
    if meanings is not None:
        rankings.append(_best_first(meanings, rows, above=-1.0, most=config.recall_depth))
    named = [[memory.practices[row].id for row in ranking] for ranking in rankings]
    place = {memory.practices[row].id: row for ranking in rankings for row in ranking}
    fused = reciprocal_rank_fusion(named, constant=retrieval.fusion_constant)
    relevant = [memory.practices[place[identifier]] for identifier in list(fused)[:n]]
    return sorted(relevant, key=lambda practice: -practice.score)


def _best_first(scores: NDArray[np.floating], rows: NDArray[np.intp], *, above: float, most: int) -> list[int]:
    """Return at most `most` rows with a score above `above`, ties in the order of their ids."""
    order = np.argsort(-scores, kind="stable")[:most]
    return [int(rows[at]) for at in order if scores[at] > above]


def _refreshed(
    warehouse: Warehouse, collection: str, model: str | None, previous: Remembered | None, mark: str | None
) -> Remembered:
    ids = ids_of(warehouse, collection)
    if previous is not None and previous.whole and previous.ids == ids:
        return replace(previous, mark=mark)
    # Entries never change, except that one without a vector may have got it.
    kept = zip(previous.practices, previous.vectors, strict=True) if previous is not None and previous.whole else ()
    known = {each.id: (each, row) for each, row in kept}
    new, rows = with_vectors(warehouse, collection, [each for each in ids if each not in known], model=model)
    known |= {each.id: (each, row) for each, row in zip(new, rows, strict=True)}
    found = [known[each] for each in ids if each in known]  # one may have been removed since its id was read
    width = max((len(row) for _, row in found), default=0)
    vectors = np.zeros((len(found), width), dtype=np.float32)
    for at, (_, row) in enumerate(found):
        vectors[at, : len(row)] = row
    return memory_of([each for each, _ in found], vectors, mark=mark)


_BYTES_A_TOKEN = 3  # tokenizers rarely need more than one token for three bytes
_CUT = "…"


def example_block(examples: Sequence[BestPractice], *, config: RewritingConfig) -> str:
    """Return the examples for the prompt, "" without any (TC6), in at most `config.example_tokens` with the fences.

    The first `config.examples` are pairs of original and rewrite with their level, each text cut at a word to
    `config.example_characters`, paragraphs kept; shorter if not all of them fit.
    """
    chosen = [each for each in examples if each.text.strip()][: config.examples]
    room = config.example_tokens * _BYTES_A_TOKEN
    shown: list[str] = []
    for place, example in enumerate(chosen):
        name = f"example-{place + 1}"
        share = room // (len(chosen) - place) - _size(fenced(name, _pair(example.target_level, "", ""))) - 1
        rewrite = _within(cut_at_word(_paragraphs(example.text), config.example_characters), share)
        original = cut_at_word(_paragraphs(example.original_text), config.example_characters)
        if _size(rewrite) + _size(original) > share:  # the rewrite is what is imitated, so it gets the larger part
            rewrite = _within(rewrite, max(share * 2 // 3, share - _size(original)))
            original = _within(original, share - _size(rewrite))
        if rewrite:
            shown.append(fenced(name, _pair(example.target_level, original, rewrite)))
            room -= _size(shown[-1]) + 1
    return "\n".join(shown)


def _pair(level: str, original: str, rewrite: str) -> str:
    return f"original:\n{original}\n\nrewrite for {level}:\n{rewrite}"


def _paragraphs(text: str) -> str:
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in parts if part)


def cut_at_word(text: str, most: int) -> str:
    """Return the text, cut at a word and ended by an ellipsis if it has more characters than the limit."""
    if len(text) <= most:
        return text
    head = text[: max(most - len(_CUT), 0)]
    if head and not text[len(head)].isspace():
        head = re.sub(r"\s\S*$", "", head) or head  # a single long word is cut inside
    return f"{head.rstrip()}{_CUT}" if head.strip() else ""


def _within(text: str, most: int) -> str:
    """Cut the text by bytes: a Korean letter has three."""
    if _size(text) <= most:
        return text
    letters = len(text.encode("utf-8", "replace")[: max(most - len(_CUT.encode()), 0)].decode("utf-8", "ignore"))
    return cut_at_word(text, letters + len(_CUT)) if letters else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
