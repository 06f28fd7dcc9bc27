"""Read a value from what a model wrote: lenient in form, strict in content (I3).

Reasoning and text around the answer are dropped and the object that fits is used, the last of several. A whole float or
a number in quotes is a number, null is empty, a single value is a list of one, and too long is cut. Refused: a value
out of range or of another type, an answer that is empty throughout, and a truncated object. Control characters and the
like, which JSON may hold as escapes, are removed from every text (SPEC 8).
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from paper_assets.text.cleaning import without_controls

Value = TypeVar("Value", bound=BaseModel)
_THOUGHT = re.compile(
    r"<(think|thinking|thought|reasoning|reflection)>.*?</\1>|^.*?</(?:think|thinking)>", re.DOTALL | re.IGNORECASE
)
_MOST_OBJECTS = 50  # objects that are tried in an answer
_DEEPEST = 50  # levels; requested answers have at most four
_WHOLE = re.compile(r"\s*[+-]?\d{1,15}(?:\.0*)?\s*")
_DECIMAL = re.compile(r"\s*[+-]?(?:\d{1,15}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?\s*")
Schema = dict[str, Any]


def read_answer(text: str, schema: type[Value]) -> Value:
    """Read the value in an answer. Raises ValidationError, of the closest object."""
    shape = schema.model_json_schema()
    last: ValidationError | None = None
    for candidate in filter(_is_shallow, _objects(text)):
        for one in (candidate, *(inner for inner in candidate.values() if isinstance(inner, dict))):
            fitted = _fitted(one, shape, shape.get("$defs", {}))
            if not _says_something(fitted):
                last = last or _empty(schema, text)
                continue
            try:
                return schema.model_validate_json(json.dumps(fitted))
            except ValidationError as fault:
                last = last or fault
    if last is not None:
        raise last
    return schema.model_validate_json(text)  # reports what is wrong with a text without an object


def _empty(schema: type[BaseModel], text: str) -> ValidationError:
    nothing = PydanticCustomError("empty", "the answer says nothing")
    return ValidationError.from_exception_data(schema.__name__, [{"type": nothing, "loc": (), "input": text[:100]}])


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of an answer, the last first: the whole text, or else what it contains outside of
    reasoning.
    """
    text = text.strip().removeprefix("\ufeff").strip()
    with suppress(ValueError, RecursionError):
        whole = json.loads(text)
        if isinstance(whole, list) and len(whole) == 1:
            whole = whole[0]
        if isinstance(whole, dict):
            yield whole
            return
    for said in dict.fromkeys((_THOUGHT.sub("", text), text)):
        found: list[dict[str, Any]] = []
        bare = _without_trailing_commas(said)
        decoder, at = json.JSONDecoder(), bare.find("{")
        for _ in range(_MOST_OBJECTS):
            if at < 0:
                break
            try:
                one, end = decoder.raw_decode(bare, at)
                found.append(one)
            except (ValueError, RecursionError):
                end = at + 1
            at = bare.find("{", end)
        yield from reversed(found)


def _is_shallow(value: Any) -> bool:
    """Check that a level-by-level walk through the value ends. False for thousands of brackets."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [part for one in level for part in _parts(one)]
        if not level:
            return True
    return False


def _parts(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _without_trailing_commas(text: str) -> str:
    """Remove commas, outside of strings, before the end of an object or list."""
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|,(?=\s*[}\]])', lambda found: found[1] or "", text)


def _fitted(value: Any, shape: Schema, defs: Schema) -> Any:
    """Convert the value to the form of the schema where its content allows it; otherwise return it unchanged."""
    if "$ref" in shape:
        return _fitted(value, defs[shape["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in shape:
        options = [option for option in shape["anyOf"] if option.get("type") != "null"]
        nullable = len(options) < len(shape["anyOf"])
        return None if value is None and nullable else _fitted(value, options[0], defs) if len(options) == 1 else value
    kind = shape.get("type")
    if kind == "object":
        return _fitted_object(value, shape, defs)
    if kind == "array":
        items = [] if value is None or value == "" else value if isinstance(value, list) else [value]
        fitted = [_fitted(item, shape.get("items", {}), defs) for item in items if item is not None]
        return fitted[: shape.get("maxItems", len(fitted))]
    if kind in ("integer", "number"):
        return _fitted_number(value, whole=kind == "integer")
    if kind == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    return _fitted_text(value, shape) if kind == "string" else value


def _fitted_object(value: Any, shape: Schema, defs: Schema) -> Any:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, dict):
        return value
    properties, required = shape.get("properties", {}), shape.get("required", ())
    fitted = {}
    for name, part in value.items():
        if name not in properties:
            fitted[name] = part
        elif part is not None or name in required or _may_be_null(properties[name]):  # else its default
            fitted[name] = _fitted(part, properties[name], defs)
    return fitted


def _may_be_null(shape: Schema) -> bool:
    return any(option.get("type") == "null" for option in shape.get("anyOf", ()))


def _fitted_number(value: Any, *, whole: bool) -> Any:
    if isinstance(value, str):
        if whole and _WHOLE.fullmatch(value):
            return int(float(value))
        return float(value) if not whole and _DECIMAL.fullmatch(value) else value
    if whole and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _fitted_text(value: Any, shape: Schema) -> Any:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    if value and not (value := without_controls(value)):
        return None  # none of it can be stored or displayed
    allowed = shape.get("enum") or ([shape["const"]] if "const" in shape else [])
    if allowed and value not in allowed:
        return next((one for one in allowed if str(one).lower() == value.strip().lower()), value)
    most = shape.get("maxLength")
    return value if most is None or len(value) <= most else value.strip()[:most]


def _says_something(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_says_something, _parts(value)))
    return bool(value.strip()) if isinstance(value, str) else value is not None
