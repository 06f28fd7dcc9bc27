"""The ranking options as parameters of a command or tool, so that `RankingOptions` is the only list of them."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from paper_assets.profile import RankingOptions

# The options that a call may override. The others (weights, learning, hybrid_of) are set in the profile.
CALL_OPTIONS = (
    "top_k",
    "purpose",
    "ranking_mode",
    "include_contrastive",
    "contrastive_type",
    "enable_llm_verification",
    "interest_mode",
    "threshold",
)


def with_ranking_options(
    annotation: Callable[[Any], Any], *, names: tuple[str, ...] = CALL_OPTIONS
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace the parameter `options` of a function by one parameter for each ranking option, default None.

    Args:
        annotation: makes the type of a parameter from a field of `RankingOptions`, in the form that Typer or the MCP
            SDK expects.
        names: the options to accept.

    The function receives the options that were given as a dict.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        added = [
            inspect.Parameter(
                name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=None,
                annotation=annotation(RankingOptions.model_fields[name]),
            )
            for name in names
        ]
        signature = inspect.signature(function)
        parameters = []
        for parameter in signature.parameters.values():
            parameters.extend(added if parameter.name == "options" else [parameter])

        def collected(given: dict[str, Any]) -> dict[str, Any]:
            chosen = {name: given.pop(name, None) for name in names}
            return {**given, "options": {name: value for name, value in chosen.items() if value is not None}}

        if inspect.iscoroutinefunction(function):

            @wraps(function)
            async def wrapper(*arguments: Any, **given: Any) -> Any:
                return await function(*arguments, **collected(given))

        else:

            @wraps(function)
            def wrapper(*arguments: Any, **given: Any) -> Any:
                return function(*arguments, **collected(given))

        wrapper.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        annotations = {parameter.name: parameter.annotation for parameter in parameters}
        wrapper.__annotations__ = {
            name: kind for name, kind in annotations.items() if kind is not inspect.Parameter.empty
        } | {"return": signature.return_annotation}
        return wrapper

    return decorate
