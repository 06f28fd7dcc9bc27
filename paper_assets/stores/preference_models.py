"""What ratings have taught, one model a profile, replaced as a whole, with the proof whether it may take part."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredModel:
    """The weights of a linear model of a profile, what it was trained on (`inputs`), and its proof (JSON values)."""

    profile: str
    inputs: str
    version: str
    proof: Mapping[str, Any]
    vector: NDArray[np.float64]
    words: Mapping[str, float]
    dimensions: NDArray[np.float64]
    rated: tuple[str, ...]
    pull: NDArray[np.float64]


def replace_model(warehouse: Warehouse, model: StoredModel) -> None:
    """Keep the model as that of its profile."""
    with warehouse.writing() as connection:
        connection.execute("delete from preference_models where profile = ?", [model.profile])
        connection.execute(
            "insert into preference_models values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                model.profile,
                model.inputs,
                model.version,
                json.dumps(dict(model.proof), sort_keys=True),
                model.vector.tolist(),
                list(model.words),
                list(model.words.values()),
                model.dimensions.tolist(),
                list(model.rated),
                model.pull.tolist(),
            ],
        )


def stored_model(warehouse: Warehouse, profile: str) -> StoredModel | None:
    """The profile's model; None if there is none."""
    with warehouse.reading() as connection:
        rows = connection.execute("select * from preference_models where profile = ?", [profile]).fetchall()
    if not rows:
        return None
    [(_, inputs, version, proof, vector, words, weights, dimensions, rated, pull)] = rows
    return StoredModel(
        profile=profile,
        inputs=inputs,
        version=version,
        proof=json.loads(proof),
        vector=np.array(vector, dtype=np.float64),
        words=dict(zip(words, weights, strict=True)),
        dimensions=np.array(dimensions, dtype=np.float64),
        rated=tuple(rated),
        pull=np.array(pull, dtype=np.float64),
    )


def model_inputs(warehouse: Warehouse) -> dict[str, str]:
    """What each profile's model was trained on."""
    with warehouse.reading() as connection:
        rows = connection.execute("select profile, inputs from preference_models").fetchall()
    return dict(rows)
