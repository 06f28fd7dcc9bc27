"""NLI cross-encoder: whether a sentence entails a claim or contradicts it (SPEC R7); loaded as `CrossEncoder`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from paper_assets.errors import ModelUnavailable
from paper_assets.models.cross_encoder import loaded_model, model_place
from paper_assets.text.cleaning import encodable

_NLI_KIND = "NLI cross-encoder"


@dataclass(frozen=True, slots=True, kw_only=True)
class NLIEncoder:
    """A loaded model. `name` identifies it; `device` is where it runs."""

    name: str
    device: str
    _predict: Callable[[list[tuple[str, str]]], np.ndarray]  # raw outputs (n, c)
    _columns: tuple[int, int]  # which output is entailment, which contradiction

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> np.ndarray:
        """For each (premise, hypothesis) the probabilities of entailment and of contradiction, float64 (n, 2).

        Equal pairs are read once, and the result does not depend on their order.
        """
        rows = {pair: row for row, pair in enumerate(sorted({_usable(pair) for pair in pairs}))}
        if not rows:
            return np.zeros((0, 2))
        raw = self._predict(list(rows))
        weights = np.exp(raw - raw.max(axis=1, keepdims=True))
        shares = weights / weights.sum(axis=1, keepdims=True)
        return shares[[rows[_usable(pair)] for pair in pairs]][:, list(self._columns)]


def load_nli(model: str) -> NLIEncoder:
    """The NLI cross-encoder of a hub name or a folder; loaded once per process. Raises ModelUnavailable."""
    return _load_nli(model_place(model))


@cache
def _load_nli(name: str) -> NLIEncoder:
    loaded, trial = loaded_model(name, kind=_NLI_KIND, variable="PAPER_ASSETS_STANCE_MODEL")
    names = {number: str(label).lower() for number, label in dict(loaded.config.id2label).items()}
    found = [[number for number, label in names.items() if label.startswith(each)] for each in ("entail", "contra")]
    if trial.ndim != 2 or any(len(each) != 1 for each in found):
        told = ", ".join(names.values())[:100]
        raise ModelUnavailable(f"{_NLI_KIND} {name!r} does not name entailment and contradiction among {told!r}")

    def predict(pairs: list[tuple[str, str]]) -> np.ndarray:
        scores: np.ndarray = loaded.predict(pairs, show_progress_bar=False)
        return scores.astype(np.float64)

    columns = (found[0][0], found[1][0])
    return NLIEncoder(name=name, device=str(loaded.device), _predict=predict, _columns=columns)


def _usable(pair: tuple[str, str]) -> tuple[str, str]:
    return encodable(pair[0]), encodable(pair[1])
