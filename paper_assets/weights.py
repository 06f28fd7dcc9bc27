"""Define and validate the weights of the dimensions (SPEC G8), in profiles and in the environment.

To add a dimension:
1. Here, append a field to `Weights`, and its weight to the purposes of `DEFAULT_WEIGHTS` that use it. The field is
   declared `name: Annotated[_Share, Field(exclude_if=lambda share: share == 0.0)] = 0.0`: profiles with custom weights
   stay valid with the same hash, and for them the new dimension has weight 0.
2. In ranking/dimensions.py, write its function and append a line to `DIMENSION_TABLE`.
3. In stores/migrations, add its column to `rankings`: in `schema.sql`, or after a release by a migration that adds it
   to `previous_rankings` too (`double default 0`). Headers stored earlier are read with weight 0 for it.
4. Raise `CODE_VERSION` in pipeline/day_inputs.py, so that stored days are ranked again.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from paper_assets.errors import InvalidInput
from paper_assets.small_files import first_fault, parse_json

_Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Weights(BaseModel):
    """The weight of each dimension; they sum to 1. Dimensions without a default must be named."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    semantic_relevance: _Share
    must_keywords: _Share
    author_trust: _Share
    institution_trust: _Share
    recency: _Share
    practicality: _Share

    @model_validator(mode="after")
    def _sum_to_one(self) -> Self:
        total = sum(self.in_order)
        if not math.isclose(total, 1.0, abs_tol=1e-9):
            raise ValueError(f"the weights sum to {total:g}; they must sum to 1")
        return self

    @property
    def in_order(self) -> tuple[float, ...]:
        """The weights in the order of DIMENSIONS."""
        return tuple(getattr(self, name) for name in DIMENSIONS)


DIMENSIONS = tuple(Weights.model_fields)


def _in_order(**weight_of: float) -> tuple[float, ...]:
    """Return weights in the order of DIMENSIONS; 0 for a dimension that is not named."""
    return tuple(weight_of.get(name, 0.0) for name in DIMENSIONS)


DEFAULT_WEIGHTS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "general": _in_order(
            semantic_relevance=0.30,
            must_keywords=0.10,
            author_trust=0.15,
            institution_trust=0.10,
            recency=0.20,
            practicality=0.15,
        ),
        "literature_review": _in_order(
            semantic_relevance=0.35,
            must_keywords=0.10,
            author_trust=0.15,
            institution_trust=0.10,
            recency=0.05,
            practicality=0.25,
        ),
        "implementation": _in_order(
            semantic_relevance=0.20,
            must_keywords=0.10,
            author_trust=0.10,
            institution_trust=0.10,
            recency=0.10,
            practicality=0.40,
        ),
        "idea_generation": _in_order(
            semantic_relevance=0.35,
            must_keywords=0.10,
            author_trust=0.10,
            institution_trust=0.05,
            recency=0.35,
            practicality=0.05,
        ),
    }
)


def weights_from_json(text: str, *, given_as: str) -> Mapping[str, tuple[float, ...]]:
    """Return DEFAULT_WEIGHTS, overridden by `text`: a JSON object of the weights by purpose.

    Raises InvalidInput: one line with `given_as`, the purpose, the key and how to fix it.
    """
    try:
        record = parse_json(text, source=given_as)
    except InvalidInput:
        record = None
    if not isinstance(record, dict):
        raise InvalidInput(f'{given_as} must be JSON like {{"general": {{"semantic_relevance": 0.3, ...}}}}')
    chosen = dict(DEFAULT_WEIGHTS)
    for purpose, weights in record.items():
        if purpose not in DEFAULT_WEIGHTS:
            raise InvalidInput(f"{given_as}: {purpose[:40]!r} is not a purpose; use {', '.join(DEFAULT_WEIGHTS)}")
        try:
            chosen[purpose] = Weights.model_validate(weights).in_order
        except ValidationError as error:
            raise InvalidInput(f"{given_as}: {purpose}: {first_fault(error)}") from None
    return MappingProxyType(chosen)
