"""Cross-encoder: how well passages answer a question, read together with it (SPEC R6).

Loaded by sentence-transformers, on a GPU if there is one. What it gives are the model's raw outputs: for
`Dongjin-kr/ko-reranker` they are meant to be exponentiated and normalised over the passages, which a sigmoid before
that would flatten, and other models are brought to the same by the softmax of `retrieval.grading`.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models.hub import hub_has, need_on_this_machine, reason_of
from paper_assets.text.cleaning import encodable

DEFAULT = "cross-encoder/ms-marco-MiniLM-L6-v2"  # English, 23 million parameters

_LONGEST = 512  # word pieces of question and passage together, which both models above read
_KIND = "cross-encoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoder:
    """A loaded model. `name` identifies it; `device` is where it runs."""

    name: str
    device: str
    _predict: Callable[[list[tuple[str, str]]], np.ndarray]

    def score(self, question: str, passages: Sequence[str]) -> np.ndarray:
        """Raw scores float64 (n,) of the passages, the higher the better, of any size and sign.

        Equal passages are read once, and the scores do not depend on the order of the passages.
        """
        rows = {text: row for row, text in enumerate(sorted({encodable(passage) for passage in passages}))}
        if not rows:
            return np.zeros(0)
        asked = encodable(question)
        scores = self._predict([(asked, text) for text in rows])
        return scores[[rows[encodable(passage)] for passage in passages]]


def load_cross_encoder(model: str = DEFAULT) -> CrossEncoder:
    """The cross-encoder of a hub name or a folder; loaded once per process. Raises ModelUnavailable."""
    return _load(model_place(model))


def model_place(model: str) -> str:
    """The folder of a model as one absolute path, or its name on the hub as it is."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if model and folder.is_dir() else model


def loaded_model(name: str, *, kind: str, variable: str) -> tuple[Any, np.ndarray]:
    """The model at a `model_place`, and its raw outputs for one pair; `variable` configures it.

    Raises ModelUnavailable.
    """
    local, instead = Path(name).is_absolute(), f"the folder of a model in {variable}"
    if name == DEFAULT:  # which nobody has asked for: no hub is told of it
        need_on_this_machine(name, kind=kind, instead=instead)
        local = True
    elif not local:
        local = not hub_has(name, kind=kind, instead=instead)
    try:
        import sentence_transformers
        import torch

        with _without_bars():
            loaded = sentence_transformers.CrossEncoder(name, local_files_only=local, activation_fn=torch.nn.Identity())
        if loaded.max_seq_length is None or loaded.max_seq_length > _LONGEST:
            loaded.max_seq_length = _LONGEST
        trial: np.ndarray = loaded.predict([("one text", "another text")], show_progress_bar=False)
    except Exception as error:  # any of three libraries, for any damage to a file
        raise ModelUnavailable(f"{kind} {name!r} cannot be loaded: {reason_of(error)}") from None
    if not np.isfinite(trial).all():
        raise ModelUnavailable(f"{kind} {name!r} gives no finite scores; its files may be damaged")
    return loaded, trial


@cache
def _load(name: str) -> CrossEncoder:
    loaded, trial = loaded_model(name, kind=_KIND, variable="PAPER_ASSETS_CROSS_ENCODER")
    if trial.shape != (1,):
        raise ModelUnavailable(f"{_KIND} {name!r} gives {trial.shape[-1]} numbers for a passage; give one that grades")

    def predict(pairs: list[tuple[str, str]]) -> np.ndarray:
        scores: np.ndarray = loaded.predict(pairs, show_progress_bar=False)
        return scores.astype(np.float64)

    return CrossEncoder(name=name, device=str(loaded.device), _predict=predict)


@contextmanager
def _without_bars() -> Iterator[None]:
    """Loading without a bar on standard error, which belongs to whoever asked."""
    from transformers.utils import logging

    enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if enabled:
            logging.enable_progress_bar()
