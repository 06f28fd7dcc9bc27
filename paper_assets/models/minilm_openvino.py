"""all-MiniLM-L6-v2 compiled by OpenVINO: many texts on all cores, in bfloat16 where the processor multiplies it."""

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from paper_assets.models.minilm import WIDTH, token_vectors

_NOT_READ = np.float32(-1e4)  # added to the attention scores of padding: exp of it is 0, and it fits a 16-bit float


def compile_minilm(weights: dict[str, np.ndarray]) -> tuple[Callable[[np.ndarray, np.ndarray], np.ndarray], int]:
    """A function for many threads, and how many of them keep the processor busy.

    The function takes word piece ids (texts, pieces) and which of them are no padding, and returns the sum of each
    text's vectors (texts, 384), which has the direction of their mean.
    """
    # Importing OpenVINO reports to its makers over the network, unless this package of theirs cannot be imported.
    sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
    import openvino  # type: ignore[import-untyped]
    from openvino import opset15 as op

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
    """What `token_vectors` calls, as nodes of a graph; `op` is a module of OpenVINO's operations."""

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
