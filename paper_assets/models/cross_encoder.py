"""Load cross-encoders: how well passages answer a question (SPEC R6), and whether a sentence entails a claim (R7).

Loaded by sentence-transformers, on a GPU if there is one. Scores are the model's raw outputs: for
`Dongjin-kr/ko-reranker` they are meant to be exponentiated and normalised over the passages, which a sigmoid before
that would flatten; other models reach the same scale by the softmax of `retrieval.grading`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models.embedder import hub_has, quiet_transformers, reason_of, require_extra, require_in_cache
from paper_assets.text.cleaning import encodable

DEFAULT = "cross-encoder/ms-marco-MiniLM-L6-v2"  # English, 23 million parameters
_LONGEST = 512  # word pieces of question and passage together, which both models above read
_KIND = "cross-encoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoder:
    """Represent a loaded model. `name` identifies it; `device` is where it runs."""

    name: str
    device: str
    _predict: Callable[[list[tuple[str, str]]], np.ndarray]

    def score(self, question: str, passages: Sequence[str]) -> np.ndarray:
        """Return raw scores float64 (n,) of the passages, the higher the better, of any size and sign.

        Equal passages are read once, and the scores do not depend on the order of the passages.
        """
        pairs = [(question, passage) for passage in passages]
        return _each_once(self._predict, pairs) if pairs else np.zeros(0)


def load_cross_encoder(model: str = DEFAULT) -> CrossEncoder:
    """Load the cross-encoder of a hub name or a folder, once per process. Raises ModelUnavailable."""
    return _load(model_place(model))


def model_place(model: str) -> str:
    """Return the folder of a model as an absolute path, or its name on the hub unchanged."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if model and folder.is_dir() else model


def loaded_model(name: str, *, kind: str, variable: str) -> tuple[Any, np.ndarray]:
    """Load the model at a `model_place` and return it with its raw outputs for one pair; `variable` configures it.

    Raises ModelUnavailable.
    """
    require_extra(f"{kind} {name!r}")
    local, instead = Path(name).is_absolute(), f"the folder of a model in {variable}"
    if name == DEFAULT:  # not chosen by the user, so the hub is not contacted
        require_in_cache(name, kind=kind, instead=instead)
        local = True
    elif not local:
        local = not hub_has(name, kind=kind, instead=instead)
    try:
        import sentence_transformers
        import torch

        with quiet_transformers():
            loaded = sentence_transformers.CrossEncoder(name, local_files_only=local, activation_fn=torch.nn.Identity())
        if loaded.max_seq_length is None or loaded.max_seq_length > _LONGEST:
            loaded.max_seq_length = _LONGEST
        trial: np.ndarray = loaded.predict([("one text", "another text")], show_progress_bar=False)
    except Exception as error:  # any of three libraries can raise any exception for a damaged file
        raise ModelUnavailable(f"{kind} {name!r} cannot be loaded: {reason_of(error)}") from None
    if not np.isfinite(trial).all():
        raise ModelUnavailable(f"{kind} {name!r} gives no finite scores; its files may be damaged")
    return loaded, trial


def _predicted(loaded: Any, pairs: list[tuple[str, str]]) -> np.ndarray:
    scores: np.ndarray = loaded.predict(pairs, show_progress_bar=False)
    return scores.astype(np.float64)


@cache
def _load(name: str) -> CrossEncoder:
    loaded, trial = loaded_model(name, kind=_KIND, variable="PAPER_ASSETS_CROSS_ENCODER")
    if trial.shape != (1,):
        raise ModelUnavailable(f"{_KIND} {name!r} gives {trial.shape[-1]} numbers for a passage; give one that grades")

    return CrossEncoder(name=name, device=str(loaded.device), _predict=partial(_predicted, loaded))


_NLI_KIND = "NLI cross-encoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class NLIEncoder:
    """Represent a loaded model. `name` identifies it; `device` is where it runs."""

    name: str
    device: str
    _predict: Callable[[list[tuple[str, str]]], np.ndarray]  # raw outputs (n, c)
    _columns: tuple[int, int]  # which output is entailment, which contradiction

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """Return for each (premise, hypothesis) the probabilities of entailment and contradiction, float64 (n, 2).

        Equal pairs are read once, and the result does not depend on their order.
        """
        if not pairs:
            return np.zeros((0, 2))
        raw = _each_once(self._predict, pairs)
        weights = np.exp(raw - raw.max(axis=1, keepdims=True))
        return (weights / weights.sum(axis=1, keepdims=True))[:, list(self._columns)]


def load_nli(model: str) -> NLIEncoder:
    """Load the NLI cross-encoder of a hub name or a folder, once per process. Raises ModelUnavailable."""
    return _load_nli(model_place(model))


@cache
def _load_nli(name: str) -> NLIEncoder:
    loaded, trial = loaded_model(name, kind=_NLI_KIND, variable="PAPER_ASSETS_STANCE_MODEL")
    names = {number: str(label).lower() for number, label in dict(loaded.config.id2label).items()}
    outputs = [[number for number, label in names.items() if label.startswith(each)] for each in ("entail", "contra")]
    if trial.ndim != 2 or any(len(each) != 1 for each in outputs):
        labels = ", ".join(names.values())[:100]
        raise ModelUnavailable(f"{_NLI_KIND} {name!r} does not name entailment and contradiction among {labels!r}")

    columns = (outputs[0][0], outputs[1][0])
    return NLIEncoder(name=name, device=str(loaded.device), _predict=partial(_predicted, loaded), _columns=columns)


def _each_once(predict: Callable[[list[tuple[str, str]]], np.ndarray], pairs: Sequence[tuple[str, str]]) -> np.ndarray:
    """Return the outputs of the pairs; equal ones are read once, in an order that does not depend on theirs."""
    usable = [(encodable(one), encodable(other)) for one, other in pairs]
    rows = {pair: row for row, pair in enumerate(sorted(set(usable)))}
    return predict(list(rows))[[rows[pair] for pair in usable]]
