"""Read the prompts, one file for each task, and build the numbered lists that models are asked to fill.

Models copy identifiers badly (a small one invented 11 of 11 arXiv ids), so everything that is sent has a number from 1
on, and the schema lists the allowed ones. Entries are checked one by one, so an odd one spoils no other.

Adding a prompt: a file in `prompts/` with task, two short examples and the form of the output.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from string import Template
from typing import Annotated, Any

from pydantic import BaseModel, WithJsonSchema, create_model

AskModel = Callable[..., Any]  # `models.llm.LanguageModel.ask`: system, user, schema; raises LLMError


@cache
def _text(name: str) -> str:
    return (files("paper_assets.text") / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip()


def prompt_names() -> list[str]:
    """Return the names of the tasks that have a prompt."""
    found = (each.name.removesuffix(".txt") for each in (files("paper_assets.text") / "prompts").iterdir())
    return sorted(name for name in found if name != "data")


def prompt(name: str, **values: str) -> str:
    """Return the instructions of a task, with the rule that foreign texts are data."""
    return f"{Template(_text(name)).substitute(values) if values else _text(name)}\n\n{_text('data')}"


@cache
def numbered_entries(field: str, count: int, **kinds: str | tuple[str, ...] | tuple[int, ...]) -> type[BaseModel]:
    """Return the schema of an object whose `field` lists entries with a number from 1 to `count` and further keys.

    A kind is a JSON type or the tuple of allowed values. An answer with more entries is not cut, so that `by_number`
    notices two for one number.
    """
    properties: dict[str, Any] = {"number": {"type": "integer", "enum": list(range(1, count + 1))}}
    for name, kind in kinds.items():
        properties[name] = _kind(kind)
    shape = {"type": "array", "items": closed_object(properties), "maxItems": count, "uniqueItems": True}
    return create_model("Answer", **{field: (Annotated[list[Any], WithJsonSchema(shape)], ...)})  # type: ignore[call-overload]


def closed_object(properties: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of an object that has all of these keys and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _kind(kind: str | tuple[str, ...] | tuple[int, ...]) -> dict[str, Any]:
    if isinstance(kind, str):
        return {"type": kind}
    return {"type": "integer" if isinstance(kind[0], int) else "string", "enum": list(kind)}


def by_number(entries: Sequence[Any], count: int) -> dict[int, Mapping[str, Any]]:
    """Return the entries of an answer by their number; a number out of range, or with two entries, has none."""
    found: dict[int, list[Mapping[str, Any]]] = {}
    for entry in entries:
        number = entry.get("number") if isinstance(entry, Mapping) else None
        number = int(number) if isinstance(number, str) and number.strip().isdecimal() else number
        if isinstance(number, int) and not isinstance(number, bool) and 1 <= number <= count:
            found.setdefault(number, []).append(entry)
    return {number: same[0] for number, same in found.items() if all(each == same[0] for each in same)}
