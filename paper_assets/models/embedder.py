"""Embedder: texts to unit vectors, each text once.

all-MiniLM-L6-v2 comes from files on this machine. A few texts go one by one through numpy in float32 (each is
remembered), many go through OpenVINO in bfloat16 where the processor has it (cosine to float32 at least 0.9999), or
through sentence-transformers on a GPU. Any other model is loaded by sentence-transformers.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models import minilm
from paper_assets.models.hub import hub_has, reason_of

if TYPE_CHECKING:
    from functools import _CacheInfo, _lru_cache_wrapper

Progress = Callable[[int, int], None]
Batches = Generator[tuple[Sequence[int], np.ndarray], None, None]  # positions and their vectors (k, d)

FEW = 32  # up to here texts are remembered; numpy is done with short ones before OpenVINO is ready
_REMEMBERED = 1_024  # texts of small calls kept, 1.5 kB each
_PIECES = 2_048  # word pieces in a batch, padding included
_OTHER_CHARACTERS = 16_384  # characters in a batch of another model, likewise


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """A loaded model. `name` identifies it for good: vectors of equal name may be compared."""

    name: str
    dimension: int
    _one: "_lru_cache_wrapper[np.ndarray]"  # text -> (d,), remembered
    _many: Callable[[list[str]], Batches]
    _too_long: Callable[[list[str]], list[bool]]

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Unit rows (n, d), float32, aligned with `texts`.

        Equal texts are computed once, and the result does not depend on the order of the texts. `progress` is told
        (done, total) in distinct texts.
        """
        rows = {text: row for row, text in enumerate(sorted({_encodable(text) for text in texts}))}
        distinct = list(rows)
        vectors = np.zeros((len(distinct), self.dimension), np.float32)
        batches = self._many(distinct) if len(distinct) > FEW else (([i], self._one(t)) for t, i in rows.items())
        done = 0
        with closing(batches):  # stops the work if `progress` raises
            for positions, batch in batches:
                vectors[positions] = batch
                done += len(positions)
                if progress:
                    progress(done, len(distinct))
        return vectors[[rows[_encodable(text)] for text in texts]]

    def cut(self, texts: Sequence[str]) -> list[int]:
        """Positions of the texts that are longer than the model reads; the rest of those is not embedded."""
        return [i for i, long in enumerate(self._too_long([_encodable(text) for text in texts])) if long]

    def cache_info(self) -> "_CacheInfo":
        """Hits and misses of the texts of small calls (SPEC B6)."""
        return self._one.cache_info()


def load_embedder(model: str = minilm.NAME) -> Embedder:
    """The embedder of a model's name, hub name or folder; loaded once per process. Raises ModelUnavailable."""
    if model.removeprefix("sentence-transformers/") == minilm.NAME:
        return _load_minilm(minilm.packaged_folder())
    folder = Path(model).expanduser()
    if model and folder.is_dir():
        return _load_other(str(folder.resolve()), in_folder=True)
    return _load_other(model if "/" in model else f"sentence-transformers/{model}", in_folder=False)


@cache
def _load_minilm(folder: Path) -> Embedder:
    weights, tokenizer = minilm.read_model(folder)

    @lru_cache(_REMEMBERED)
    def one(text: str) -> np.ndarray:
        ((ids, _cut),) = minilm.word_pieces(tokenizer, [text])
        return _unit(minilm.token_vectors(weights, ids[None], minilm.NUMPY).sum(1))[0]

    @cache
    def compiled() -> tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], int]:
        from paper_assets.models.minilm_openvino import compile_minilm

        return compile_minilm({name: weight for name, weight in weights.items() if weight.dtype == np.float32})

    def many(texts: list[str]) -> Batches:
        if _has_gpu() or not find_spec("openvino"):
            yield from _load_other(str(folder), in_folder=True)._many(texts)
            return
        sums, threads = compiled()
        pieces = [ids for ids, _cut in minilm.word_pieces(tokenizer, texts)]

        def vectors(positions: list[int]) -> np.ndarray:
            lengths = np.array([len(pieces[i]) for i in positions])
            given = np.arange(lengths.max()) < lengths[:, None]
            ids = np.zeros(given.shape, np.int32)
            ids[given] = np.concatenate([pieces[i] for i in positions])
            return _unit(sums(ids, given))

        batches = list(_batches([len(ids) for ids in pieces], _PIECES))
        # One batch per core: each step of a batch over all cores makes the cores wait for one another.
        pool = ThreadPoolExecutor(threads)
        try:
            yield from zip(batches, pool.map(vectors, batches), strict=True)
        finally:
            pool.shutdown(cancel_futures=True)

    def too_long(texts: list[str]) -> list[bool]:
        return [cut for _ids, cut in minilm.word_pieces(tokenizer, texts)]

    return Embedder(name=minilm.NAME, dimension=minilm.WIDTH, _one=one, _many=many, _too_long=too_long)


@cache
def _load_other(name: str, *, in_folder: bool) -> Embedder:
    local = in_folder or not hub_has(name, kind="embedding model", instead=f"{minilm.NAME}, or the folder of a model")
    try:
        from sentence_transformers import SentenceTransformer

        loaded = SentenceTransformer(name, local_files_only=local)
        dimension = len(loaded.encode("", show_progress_bar=False))
    except Exception as error:  # any of three libraries, for any damage to a file
        raise ModelUnavailable(f"embedding model {name!r} cannot be loaded: {reason_of(error)}") from None

    def many(texts: list[str]) -> Batches:
        for positions in _batches([len(text) for text in texts], _OTHER_CHARACTERS):
            rows = loaded.encode([texts[i] for i in positions], batch_size=len(positions), show_progress_bar=False)
            yield positions, _unit(rows.astype(np.float32))

    @lru_cache(_REMEMBERED)
    def one(text: str) -> np.ndarray:
        ((_positions, row),) = many([text])
        return row[0]

    def too_long(texts: list[str]) -> list[bool]:
        most = loaded.max_seq_length
        if not texts or not most or not callable(loaded.tokenizer):
            return [False] * len(texts)
        return [len(ids) > most for ids in loaded.tokenizer(texts, truncation=False, verbose=False)["input_ids"]]

    return Embedder(name=f"{name} ({dimension})", dimension=dimension, _one=one, _many=many, _too_long=too_long)


def _has_gpu() -> bool:
    """Whether torch finds a GPU of Nvidia's; asked only where there is a driver, because importing torch is slow."""
    if not Path("/proc/driver/nvidia").exists():
        return False
    import torch

    return torch.cuda.is_available()


def _batches(lengths: list[int], most: int) -> Iterator[list[int]]:
    """Positions by falling length, in batches that padded to their longest hold at most `most` (or one text)."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, most // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))


def _encodable(text: str) -> str:
    """The text with lone surrogates, which JSON may carry and no tokenizer takes, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
