"""Define and validate the weights of the dimensions (SPEC G8), in profiles and in the environment.

To add a dimension:
1. Here, append a field to `Weights`, and a number to each tuple of `DEFAULT_WEIGHTS`. The field is declared
   `name: Annotated[_Share, Field(exclude_if=lambda share: share == 0.0)] = 0.0`: profiles with custom weights stay
   valid with the same hash, and for them the new dimension has weight 0.
2. In ranking/dimensions.py, write its function and append a line to `DIMENSION_TABLE`.
3. Write a migration that adds its column (`double`, null in old rows) to `rankings` and `previous_rankings`.
4. Raise `CODE_VERSION` in pipeline/day_inputs.py, and give its bar a colour in digests/digest.css.jinja.
Rankings stored earlier are read with value and weight 0 for it.
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

# In the order of DIMENSIONS.
DEFAULT_WEIGHTS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "general": (0.30, 0.10, 0.15, 0.10, 0.20, 0.15),
        "literature_review": (0.35, 0.10, 0.15, 0.10, 0.05, 0.25),
        "implementation": (0.20, 0.10, 0.10, 0.10, 0.10, 0.40),
        "idea_generation": (0.35, 0.10, 0.10, 0.05, 0.35, 0.05),
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
