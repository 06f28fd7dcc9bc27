"""Find best practices by meaning and by words (B3), and format them as the prompt's examples.

In the prompt each example is fenced as data and all of them are bounded together.
"""

import re
from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from paper_assets.retrieval.merge import reciprocal_rank_fusion
from paper_assets.settings import RetrievalConfig, RewritingConfig
from paper_assets.stores.best_practices import BestPractice, practices_for
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.vectors import nearest
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.bm25 import bm25, query_words
from paper_assets.text.cleaning import fenced
from paper_assets.text.forward_index import indexed


def best_fitting(
    warehouse: Warehouse,
    index: VectorIndex,
    collection: str,
    text: str,
    vector: NDArray[np.float32] | None,
    *,
    level: str,
    other_levels: bool,
    excluded: Collection[str],
    paper_id: str | None,
    model: str | None,
    n: int,
    config: RewritingConfig,
    retrieval: RetrievalConfig,
) -> list[BestPractice]:
    """Return the n most relevant best practices of a level, or of all others, in the order of their scores.

    Those of `paper_id` and of the `excluded` originals are left out, and those with too low a score. Meaning: the
    nearest of the Chroma collection, or of the table while Chroma cannot answer.
    """
    with warehouse.reading() as connection:
        practices, cosines = practices_for(
            connection,
            collection,
            level=level,
            other_levels=other_levels,
            least_score=config.recalled,
            model=model,
            vector=vector,
        )
        named = None
        if vector is not None and model is not None and practices:
            own_level = {"target_level": {"$ne" if other_levels else "$eq": level}}
            where = {"$and": [own_level, {"score": {"$gte": config.recalled}}]}
            k = config.recall_depth + len(excluded)
            answer = nearest(index, connection, collection, vector, k=k, model=model, where=where)
            named = None if answer.reason else set(answer.ids)
    allowed = np.array(
        [
            not (paper_id and practice.paper_id == paper_id) and practice.original_text not in excluded
            for practice in practices
        ],
        dtype=bool,
    )
    chosen = [practice for practice, ok in zip(practices, allowed, strict=True) if ok]
    similarities = cosines[allowed] if vector is not None else None
    return most_relevant(chosen, text, similarities, named=named, n=n, config=config, retrieval=retrieval)


def most_relevant(
    practices: Sequence[BestPractice],
    text: str,
    cosines: NDArray[np.float64] | None,
    *,
    named: Collection[str] | None = None,
    n: int,
    config: RewritingConfig,
    retrieval: RetrievalConfig,
) -> list[BestPractice]:
    """Return the n most relevant by meaning and words, best score first.

    `practices` are ascending by id, `cosines` (n,) those of their originals (None: words alone), `named` the nearest
    that Chroma knows (None: all). Best practices with too distant a meaning are removed before ranks are assigned, so
    that they displace no other. The score decides only the order of what is shown.
    """
    kept = [at for at in range(len(practices)) if cosines is None or cosines[at] >= config.recall_floor]
    originals = [f"{practices[at].original_text} {' '.join(practices[at].keywords)}" for at in kept]
    texts = indexed(pa.chunked_array([pa.array(originals, pa.string())]))
    words = query_words(text)
    holders = texts.holders_of([word.forms for word in words])
    by_words = bm25(words, holders, texts.lengths, k1=retrieval.bm25_k1, b=retrieval.bm25_b)
    rankings = [_best_first([practices[at].id for at in kept], by_words, above=0.0, most=config.recall_depth)]
    if cosines is not None:
        near = [at for at in kept if named is None or practices[at].id in named]
        ids = [practices[at].id for at in near]
        rankings.append(_best_first(ids, cosines[near], above=-1.0, most=config.recall_depth))
    fused = reciprocal_rank_fusion(rankings, constant=retrieval.fusion_constant)
    by_id = {practice.id: practice for practice in practices}
    return sorted((by_id[each] for each in list(fused)[:n]), key=lambda practice: -practice.score)


def _best_first(ids: Sequence[str], scores: NDArray[np.floating], *, above: float, most: int) -> list[str]:
    """Return at most `most` ids with a score above `above`; ids are ascending, which decides ties."""
    order = np.argsort(-scores, kind="stable")[:most]
    return [ids[at] for at in order.tolist() if scores[at] > above]


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
