"""A reading desk over arXiv. Its calls from Python are in `interfaces/python.py`, imported when one is used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paper_assets.interfaces.python import (
        archive_best_practice,
        generate_with_critic_loop,
        rank_and_filter_papers,
        retrieve_balanced,
        retrieve_best_practices,
        retrieve_standard,
    )
    from paper_assets.rewriting.loop import OptimizerState

__all__ = [
    "OptimizerState",
    "archive_best_practice",
    "generate_with_critic_loop",
    "rank_and_filter_papers",
    "retrieve_balanced",
    "retrieve_best_practices",
    "retrieve_standard",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "rewriting.loop" if name == "OptimizerState" else "interfaces.python"
    return getattr(import_module(f"{__name__}.{module}"), name)
