"""Choose the embedding model, on the command line or the page: the measured ones, and keeping the choice.

A process uses one model from its start to its end. `paper-assets up` starts its programs again after a change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from paper_assets.errors import InvalidInput
from paper_assets.models import minilm
from paper_assets.stores.kept_settings import EMBEDDING_MODEL, forget_variables, keep_variables

VARIABLE = "PAPER_ASSETS_EMBEDDING_MODEL"


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """An embedding model that was measured on judged lists, with its price and its gain in words."""

    name: str
    price: str
    gain: str


MEASURED = (
    MeasuredModel(minilm.NAME, "90 MB, part of the program", "the default"),
    MeasuredModel(
        "all-mpnet-base-v2",
        "440 MB, the extra `models`, six times as long for a paper",
        "a better order: nDCG@10 of judged lists .872 instead of .857",
    ),
)


def keep_model(home: Path, model: str, environ: Mapping[str, str]) -> None:
    """Use this model from now on. Raises InvalidInput if the environment has another one, StoreUnwritable."""
    given = environ.get(VARIABLE, "").strip()
    if given and given != model:
        raise InvalidInput(f"{VARIABLE} in the environment replaces the choice; unset it, or set it to {model}")
    if model == minilm.NAME:
        forget_variables(home, EMBEDDING_MODEL)
    else:
        keep_variables(home, {VARIABLE: model}, EMBEDDING_MODEL)


def named_or_placed(model: str) -> str:
    """Return a model as it is kept: a name, or the absolute path of a folder."""
    folder = Path(model).expanduser()
    return str(folder.resolve()) if folder.is_dir() else model.removeprefix("sentence-transformers/")
