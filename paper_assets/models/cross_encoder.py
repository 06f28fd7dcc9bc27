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

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models.hub import hub_has, reason_of

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
        rows = {text: row for row, text in enumerate(sorted({_encodable(passage) for passage in passages}))}
        if not rows:
            return np.zeros(0)
        asked = _encodable(question)
        scores = self._predict([(asked, text) for text in rows])
        return scores[[rows[_encodable(passage)] for passage in passages]]


def load_cross_encoder(model: str = DEFAULT) -> CrossEncoder:
    """The cross-encoder of a hub name or a folder; loaded once per process. Raises ModelUnavailable."""
    folder = Path(model).expanduser()
    if model and folder.is_dir():
        return _load(str(folder.resolve()), in_folder=True)
    return _load(model, in_folder=False)


@cache
def _load(name: str, *, in_folder: bool) -> CrossEncoder:
    local = in_folder or not hub_has(name, kind=_KIND, instead="the folder of a model in PAPER_ASSETS_CROSS_ENCODER")
    try:
        import sentence_transformers
        import torch

        with _without_bars():
            loaded = sentence_transformers.CrossEncoder(name, local_files_only=local, activation_fn=torch.nn.Identity())
        if loaded.max_seq_length is None or loaded.max_seq_length > _LONGEST:
            loaded.max_seq_length = _LONGEST
        trial = loaded.predict([("one question", "one passage")], show_progress_bar=False)
    except Exception as error:  # any of three libraries, for any damage to a file
        raise ModelUnavailable(f"{_KIND} {name!r} cannot be loaded: {reason_of(error)}") from None
    if trial.shape != (1,):
        raise ModelUnavailable(f"{_KIND} {name!r} gives {trial.shape[-1]} numbers for a passage; give one that grades")
    if not np.isfinite(trial).all():
        raise ModelUnavailable(f"{_KIND} {name!r} gives no finite scores; its files may be damaged")

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


def _encodable(text: str) -> str:
    """The text with lone surrogates, which no tokenizer takes, as question marks."""
    return text.encode("utf-8", "replace").decode("utf-8")
