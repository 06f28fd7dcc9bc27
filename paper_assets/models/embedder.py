"""Embed texts as unit vectors, each text once.

all-MiniLM-L6-v2 is loaded from files on this machine. A few word pieces are computed text by text through numpy in
float32, many through OpenVINO in bfloat16 where the processor supports it (cosine to float32 at least 0.9999, so that
vectors of both ways are comparable), or through sentence-transformers on a GPU. The vectors of small calls are cached,
however they were computed. Any other model is loaded by sentence-transformers. A model that fails, or whose
answer is not one finite unit vector per text, raises ModelUnavailable.

The hub is asked once, with a time limit, whether it has a model, because the libraries retry each absent file for
minutes. It is asked only about a model that the user configured; the default model never causes a request (SPEC 8).
"""

import re
import warnings
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import _CacheInfo, cache
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from paper_assets.errors import ModelUnavailable, PaperAssetsError
from paper_assets.models import minilm
from paper_assets.models.minilm import compile_minilm
from paper_assets.progress import Progress
from paper_assets.text.cleaning import encodable

Batches = Generator[tuple[Sequence[int], np.ndarray], None, None]  # positions and their vectors (k, d)
FEW = 32  # texts of a call that are cached
# Word pieces of a call that go through numpy: about three abstracts. One thread of numpy takes as long for four as
# OpenVINO for loading, compiling and computing them; once it is compiled, OpenVINO is ahead from the first.
FEW_PIECES = 768
_REMEMBERED = 1_024  # texts of small calls kept, 1.5 kB each
_PIECES = 2_048  # word pieces in a batch, padding included
_OTHER_CHARACTERS = 16_384  # characters in a batch of another model, padding included
_SAME = 0.999  # cosine of the vectors that two ways of computing a model give for a text
_LENGTH_TOLERANCE = 1e-3  # the warehouse's tolerance for a unit vector


class _Memory:
    """Cache the vectors of the latest texts of small calls; thread-safe."""

    def __init__(self) -> None:
        self._vectors: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock, self._hits, self._misses = Lock(), 0, 0

    def recall(self, texts: Iterable[str]) -> dict[str, np.ndarray]:
        with self._lock:
            vectors = {text: self._vectors[text] for text in texts if text in self._vectors}
            for text in vectors:
                self._vectors.move_to_end(text)
            self._hits += len(vectors)
        return vectors

    def keep(self, text: str, vector: np.ndarray) -> None:
        with self._lock:
            self._misses += 1
            self._vectors[text] = vector.copy()  # a copy, not a view that keeps its whole batch
            while len(self._vectors) > _REMEMBERED:
                self._vectors.popitem(last=False)

    def info(self) -> _CacheInfo:
        with self._lock:
            return _CacheInfo(self._hits, self._misses, _REMEMBERED, len(self._vectors))


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedder:
    """Represent a loaded model. `name` identifies it permanently: vectors of equal name are comparable."""

    name: str
    dimension: int
    _one: Callable[[str], np.ndarray]  # text -> (d,)
    _many: Callable[[list[str]], Batches]
    _too_long: Callable[[list[str]], list[bool]]
    _one_by_one: Callable[[list[str]], bool] = lambda _texts: True  # whether at most FEW texts go through `_one`
    # How `_many` splits texts into batches, and the vectors of one batch: bit-identical wherever it is computed.
    batches_of: Callable[[list[str]], list[list[int]]] | None = None
    of_batch: Callable[[list[str]], np.ndarray] | None = None
    _memory: _Memory = field(default_factory=_Memory)

    def encode(self, texts: Sequence[str], *, progress: Progress | None = None) -> np.ndarray:
        """Return unit rows (n, d), float32, aligned with `texts`.

        Equal texts are computed once, and the result does not depend on the order of the texts. `progress` receives
        (done, total) in distinct texts. Raises ModelUnavailable if the model fails or returns other than unit vectors,
        ClusterUnavailable if a cluster fails.
        """
        rows = {text: row for row, text in enumerate(sorted({encodable(text) for text in texts}))}
        vectors = np.zeros((len(rows), self.dimension), np.float32)
        small = len(rows) <= FEW
        remembered = self._memory.recall(rows) if small else {}
        for text, vector in remembered.items():
            vectors[rows[text]] = vector
        missing, done = [text for text in rows if text not in remembered], len(remembered)
        if remembered and progress:
            progress(done, len(rows))
        with closing(self._batches(missing, small=small)) as batches:  # stops the work if `progress` raises
            for positions, batch in batches:
                for position, vector in zip(positions, batch, strict=True):
                    vectors[rows[missing[position]]] = vector
                    if small:
                        self._memory.keep(missing[position], vector)
                done += len(positions)
                if progress:
                    progress(done, len(rows))
        if done < len(rows):
            raise ModelUnavailable(f"embedding model {self.name!r} gave {done} vectors for {len(rows)} texts")
        return vectors[[rows[encodable(text)] for text in texts]]

    def _batches(self, texts: list[str], *, small: bool) -> Batches:
        """Yield positions and their vectors, batch by batch, validated."""
        try:
            if small and self._one_by_one(texts):
                for position, text in enumerate(texts):
                    yield [position], self._usable([position], [self._one(text)])
            elif texts:
                with closing(self._many(texts)) as batches:
                    for positions, batch in batches:
                        yield positions, self._usable(positions, batch)
        except PaperAssetsError:
            raise
        except Exception as error:  # any exception of a library; a listener's exception does not pass here
            raise ModelUnavailable(f"embedding model {self.name!r} failed: {reason_of(error)}") from None

    def _usable(self, positions: Sequence[int], answer: object) -> np.ndarray:
        """Return the model's answer as rows (k, d). Raises ModelUnavailable."""
        batch = np.asarray(answer, dtype=np.float32)
        if batch.shape != (len(positions), self.dimension):
            raise ModelUnavailable(
                f"embedding model {self.name!r} gave vectors of the shape {batch.shape}, "
                f"expected {(len(positions), self.dimension)}"
            )
        lengths = np.linalg.norm(batch, axis=1)
        faulty = ~(np.abs(lengths - 1) <= _LENGTH_TOLERANCE)  # also true for nan
        if faulty.any():
            raise ModelUnavailable(
                f"embedding model {self.name!r} gave a vector of length {lengths[faulty.argmax()]:g}, expected 1"
            )
        return batch

    def cut(self, texts: Sequence[str]) -> list[int]:
        """Return positions of the texts that are longer than the model reads; the rest of those is not embedded."""
        return [i for i, long in enumerate(self._too_long([encodable(text) for text in texts])) if long]

    def cache_info(self) -> _CacheInfo:
        """Return hits and misses of the texts of small calls (SPEC B6)."""
        return self._memory.info()


def load_embedder(model: str = minilm.NAME) -> Embedder:
    """Load the embedder of a model's name, hub name or folder, once per process. Raises ModelUnavailable."""
    if known_name(model):
        with _LOADING:  # a second thread waits for the first one instead of loading the model too
            return _load_minilm(minilm.packaged_folder())
    folder = Path(model).expanduser()
    if model and folder.is_dir():
        return _load_other(str(folder.resolve()), in_folder=True)
    return _load_other(model if "/" in model else f"sentence-transformers/{model}", in_folder=False)


def known_name(model: str) -> str | None:
    """Return the name of the embedder of a model, if it is known without loading it."""
    return minilm.NAME if model.removeprefix("sentence-transformers/") == minilm.NAME else None


def plain_name(name: str) -> str:
    """Return a model's name without folder, owner and dimension, such as all-mpnet-base-v2."""
    return name.split(" (")[0].rstrip("/").rsplit("/", 1)[-1]


_LOADING = Lock()


@cache
def _load_minilm(folder: Path) -> Embedder:
    model = _MiniLM(folder)
    return Embedder(
        name=minilm.NAME,
        dimension=minilm.WIDTH,
        _one=model.one,
        _many=model.many,
        _too_long=model.too_long,
        _one_by_one=model.one_by_one,
        batches_of=model.batches_of,
        of_batch=model.of_batch,
    )


class _MiniLM:
    """Compute vectors of all-MiniLM-L6-v2: of few word pieces with numpy, of many with OpenVINO or on a GPU."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._weights, self._tokenizer = minilm.read_model(folder)
        self._compiling = Lock()
        self._network: minilm.Compiled | None = None

    def one(self, text: str) -> np.ndarray:
        (ids,) = self._pieces_of([text])
        with minilm.one_blas_thread():
            return _unit(minilm.vector_sum(self._weights, ids)[None])[0]

    def one_by_one(self, texts: list[str]) -> bool:
        return sum(map(len, self._pieces_of(texts))) <= FEW_PIECES

    def many(self, texts: list[str]) -> Batches:
        if other := self._other_backend():
            yield from other._many(texts)
            return
        pieces = self._pieces_of(texts)
        batches = list(_batches([len(ids) for ids in pieces], _PIECES))
        # One batch per core: each step of a batch over all cores makes the cores wait for one another.
        pool = ThreadPoolExecutor(self._compiled()[1])
        try:
            vectors = pool.map(self._vectors, ([pieces[i] for i in positions] for positions in batches))
            yield from zip(batches, vectors, strict=True)
        finally:
            pool.shutdown(cancel_futures=True)

    def batches_of(self, texts: list[str]) -> list[list[int]]:
        if (other := self._other_backend()) and other.batches_of:
            return other.batches_of(texts)
        return list(_batches([len(ids) for ids in self._pieces_of(texts)], _PIECES))

    def of_batch(self, texts: list[str]) -> np.ndarray:
        if (other := self._other_backend()) and other.of_batch:
            return other.of_batch(texts)
        return self._vectors(self._pieces_of(texts))

    def too_long(self, texts: list[str]) -> list[bool]:
        return [cut for _ids, cut in minilm.word_pieces(self._tokenizer, texts)]

    def _pieces_of(self, texts: list[str]) -> list[np.ndarray]:
        return [ids for ids, _cut in minilm.word_pieces(self._tokenizer, texts)]

    def _vectors(self, pieces: Sequence[np.ndarray]) -> np.ndarray:
        lengths = np.array([len(each) for each in pieces])
        is_piece = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(is_piece.shape, np.int32)
        ids[is_piece] = np.concatenate(pieces)
        return _unit(self._compiled()[0](ids, is_piece))

    def _compiled(self) -> minilm.Compiled:
        with self._compiling:
            if self._network is None:
                whole = {name: weight for name, weight in self._weights.items() if weight.dtype == np.float32}
                self._network = compile_minilm(whole)
            return self._network

    def _other_backend(self) -> Embedder | None:
        return _load_other(str(self._folder), in_folder=True) if _has_gpu() or not find_spec("openvino") else None


@cache
def _load_other(name: str, *, in_folder: bool) -> Embedder:
    require_extra(f"embedding model {name!r}")
    local = in_folder or not hub_has(name, kind="embedding model", instead=f"{minilm.NAME}, or the folder of a model")
    try:
        from sentence_transformers import SentenceTransformer

        with quiet_transformers():
            loaded = SentenceTransformer(name, local_files_only=local)
        dimension = len(loaded.encode("", show_progress_bar=False))
    except Exception as error:  # any of three libraries, for any damage to a file
        raise ModelUnavailable(f"embedding model {name!r} cannot be loaded: {reason_of(error)}") from None

    def batches_of(texts: list[str]) -> list[list[int]]:
        return list(_batches([len(text) for text in texts], _OTHER_CHARACTERS))

    def of_batch(texts: list[str]) -> np.ndarray:
        return _unit(np.asarray(loaded.encode(texts, batch_size=len(texts), show_progress_bar=False), np.float32))

    compiled = cache(lambda: _compiled_other(loaded))

    def many(texts: list[str]) -> Batches:
        vectors = (compiled() if len(texts) > FEW else None) or of_batch
        for positions in batches_of(texts):
            yield positions, vectors([texts[i] for i in positions])

    def one(text: str) -> np.ndarray:
        ((_positions, row),) = many([text])
        return row[0]

    def too_long(texts: list[str]) -> list[bool]:
        most = loaded.max_seq_length
        if not texts or not most or not callable(loaded.tokenizer):
            return [False] * len(texts)
        return [len(ids) > most for ids in loaded.tokenizer(texts, truncation=False, verbose=False)["input_ids"]]

    return Embedder(
        name=f"{name} ({dimension})",
        dimension=dimension,
        _one=one,
        _many=many,
        _too_long=too_long,
        batches_of=batches_of,
        of_batch=of_batch,
    )


def _compiled_other(loaded: Any) -> Callable[[list[str]], np.ndarray] | None:
    """Return a function from texts to unit rows that OpenVINO computes, in a quarter of the time (bfloat16).

    None on a GPU, without OpenVINO, and for models that are not a transformer whose token vectors are averaged.
    """
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    words, pooling, *others = loaded
    averages = isinstance(pooling, Pooling) and pooling.get_config_dict().get("pooling_mode") == "mean"
    plain = isinstance(words, Transformer) and averages and all(isinstance(each, Normalize) for each in others)
    if not plain or _has_gpu() or not find_spec("openvino"):
        return None
    openvino = minilm.import_openvino()

    def pieces(texts: list[str], kind: str) -> dict[str, Any]:
        longest = loaded.max_seq_length
        read = loaded.tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors=kind)
        return {name: read[name] for name in ("input_ids", "attention_mask")}

    samples = ["two", "short texts", "and a longer one, " * 50]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about its own tracing
        graph = openvino.convert_model(words.auto_model, example_input=pieces(samples[:2], "pt"))
    network = openvino.Core().compile_model(graph, "CPU", {"PERFORMANCE_HINT": "LATENCY"})

    def vectors(texts: list[str]) -> np.ndarray:
        read = pieces(texts, "np")
        weights = read["attention_mask"][..., None].astype(np.float32)
        return _unit((network(read)[0] * weights).sum(1) / weights.sum(1))

    exact = _unit(np.asarray(loaded.encode(samples, show_progress_bar=False), np.float32))
    return vectors if ((vectors(samples) * exact).sum(axis=1) >= _SAME).all() else None


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Load a model without a progress bar and remarks on standard error, which belongs to the caller."""
    from transformers.utils import logging

    enabled, level = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if enabled:
            logging.enable_progress_bar()


def _has_gpu() -> bool:
    """Check whether torch finds an Nvidia GPU; only if there is a driver, because importing torch is slow."""
    if not Path("/proc/driver/nvidia").exists() or not has_extra():
        return False
    import torch

    return torch.cuda.is_available()


def _batches(lengths: list[int], most: int) -> Iterator[list[int]]:
    """Yield positions by falling length, in batches that padded to their longest hold at most `most` (or one text)."""
    order = sorted(range(len(lengths)), key=lambda i: -lengths[i])
    start = 0
    while start < len(order):
        size = max(1, most // max(1, lengths[order[start]]))
        yield order[start : start + size]
        start += size


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.float32(1e-12))


def has_extra() -> bool:
    """Return whether the optional extra `models` is installed."""
    return bool(find_spec("torch") and find_spec("sentence_transformers"))


def require_extra(model: str) -> None:
    """Raise ModelUnavailable, with the command that installs the extra `models`, unless it is installed."""
    if not has_extra():
        raise ModelUnavailable(f"{model} needs an optional extra: pip install 'paper-assets[models]'")


_ERRNO = re.compile(r"\[Errno -?\d+\]\s*")
_TIMEOUT = 10.0  # seconds until the hub counts as unreachable


def hub_has(name: str, *, kind: str, instead: str) -> bool:
    """Check whether the hub has the model; False if only the local cache has it.

    Raises ModelUnavailable if neither has it; `kind` and `instead` name in it what is missing and the alternative.
    """
    # With its HTTP client a tenth of a second, which a machine with the packaged model does not need.
    from huggingface_hub import model_info, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        model_info(name, timeout=_TIMEOUT)
    except HFValidationError:
        raise ModelUnavailable(f"{kind} {name!r} is neither a folder nor a name on the hub") from None
    except Exception as error:  # offline, unreachable, unknown there, or access denied
        if isinstance(try_to_load_from_cache(name, "config.json"), str):
            return False
        raise ModelUnavailable(
            f"{kind} {name!r} is not on this machine and the hub does not give it ({reason_of(error)}); give {instead}"
        ) from None
    return True


def require_in_cache(name: str, *, kind: str, instead: str) -> None:
    """Raise ModelUnavailable, with the command that downloads it, unless the model is in the local cache."""
    from huggingface_hub import try_to_load_from_cache

    if not isinstance(try_to_load_from_cache(name, "config.json"), str):
        raise ModelUnavailable(
            f"{kind} {name!r} is not on this machine; fetch it once with `hf download {name}`, or give {instead}"
        )


def reason_of(error: Exception) -> str:
    """Return the first line of a library's error message, without the system's error number."""
    line = (str(error).strip() or type(error).__name__).splitlines()[0]
    return _ERRNO.sub("", line)[:200]
