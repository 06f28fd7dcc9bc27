"""Ask a language model one question and return a validated value: the project's only way to call one (I3).

One policy for every provider: a timeout per exchange, a deadline for the whole, retries where they can help, the
server's Retry-After respected if it fits, one repair of an answer that does not fit the schema. Providers' protocols
are in `llm_providers.py` only.

An answer is read leniently in form and strictly in content. Reasoning and text around the answer are dropped and the
object that fits is used, the last of several. A whole float or a number in quotes is a number, null is empty, a single
value is a list of one, and too long is cut. Refused: a value out of range or of another type, an answer that is empty
throughout, and a truncated object. Control characters and the like, which JSON may hold as escapes, are removed from
every text (SPEC 8).
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticCustomError

from paper_assets.errors import LLMError, LLMRateLimited, LLMUnreachable
from paper_assets.models.llm_config import Budget, LLMConfig, Usage, check_month, estimated_tokens
from paper_assets.models.llm_providers import Prompt, Reply, SchemaRefused, TryFailed, exchange, load, prompt_room
from paper_assets.retrying import RetryPolicy
from paper_assets.text.cleaning import encodable, without_controls

Value = TypeVar("Value", bound=BaseModel)
_REASONING = re.compile(
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
            if not _has_content(fitted):
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
    """Yield the JSON objects of an answer, the last first: the whole text, or else those outside of reasoning."""
    text = text.strip().removeprefix("\ufeff").strip()
    with suppress(ValueError, RecursionError):
        whole = json.loads(text)
        if isinstance(whole, list) and len(whole) == 1:
            whole = whole[0]
        if isinstance(whole, dict):
            yield whole
            return
    for candidate in dict.fromkeys((_REASONING.sub("", text), text)):
        objects: list[dict[str, Any]] = []
        bare = _without_trailing_commas(candidate)
        decoder, at = json.JSONDecoder(), bare.find("{")
        for _ in range(_MOST_OBJECTS):
            if at < 0:
                break
            try:
                one, end = decoder.raw_decode(bare, at)
                objects.append(one)
            except (ValueError, RecursionError):
                end = at + 1
            at = bare.find("{", end)
        yield from reversed(objects)


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
        return fitted if shape.get("uniqueItems") else fitted[: shape.get("maxItems", len(fitted))]
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


def _has_content(value: Any) -> bool:
    if isinstance(value, dict | list):
        return any(map(_has_content, _parts(value)))
    return bool(value.strip()) if isinstance(value, str) else value is not None


_LONGEST_BAD_ANSWER = 4_000  # characters of an answer that are sent back to its model for repair
# Structured outputs refuse these; they are checked here.
_NUMBER_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_TEXT_BOUNDS = ("minLength", "maxLength", "pattern", "format")
_LIST_BOUNDS = ("minItems", "maxItems", "uniqueItems")
_WORDS_FOR_PEOPLE = ("default", "examples", "title", "description")  # small models copy docstrings into their answers
_NOT_ON_THE_WIRE = frozenset((*_NUMBER_BOUNDS, *_TEXT_BOUNDS, *_LIST_BOUNDS, *_WORDS_FOR_PEOPLE))


class AnswerCache(Protocol):
    """Cache answers by content (I5); `stores/llm_answers.py` keeps them in the warehouse."""

    def get(self, key: str) -> str | None:
        """Return the stored answer; None if there is none."""
        ...

    def put(self, key: str, answer: str, *, model: str, input_tokens: int, output_tokens: int) -> None:
        """Store an answer with the model that gave it and the tokens that it cost."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion(Generic[Value]):
    """A value that fits its schema, the model that returned it and the use of it; a cached one used nothing."""

    value: Value
    model: str
    usage: Usage
    cached: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A configured language model for one use: `purpose` names it in the record of the month, `budget` is the run's.

    `clock` and `sleep` measure seconds and wait; tests replace them.
    """

    config: LLMConfig
    purpose: str = "other"
    budget: Budget | None = None
    cache: AnswerCache | None = None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def ask(
        self,
        *,
        system: str,
        user: str,
        schema: type[Value],
        prompt_version: str = "",
        deadline: float | None = None,
        complaint: Callable[[Value], str | None] = lambda value: None,
    ) -> Completion[Value]:
        """Ask once and return a value of `schema`. `deadline`: seconds for all of it (default: the config's).

        `complaint` says what is wrong with a value that fits, for example missing entries. The model receives it once;
        what it answers then is returned, and not kept if the complaint is still true. Raises LLMConfigError,
        LLMBudgetReached or LLMError, each with one line and, as `usage`, what was spent.
        """
        config, cache = self.config, self.cache
        key = answer_key(config.model, system=system, user=user, schema=schema, prompt_version=prompt_version)
        if cache is not None and (stored := cache.get(key)) is not None:
            with suppress(ValidationError):
                value = schema.model_validate_json(stored)
                if not complaint(value):
                    return Completion(value=value, model=config.model, usage=Usage(), cached=True)
        spent = Budget()
        # The run's budget may refuse, so it is checked first.
        meters = (spent,) if self.budget is None else (self.budget, spent)
        ends = self.clock() + (config.deadline if deadline is None else deadline)
        prompt = Prompt(
            system=encodable(system),
            turns=(encodable(user),),
            schema=wire_schema(schema),
            most_output=output_cap(schema, config=config),
        )
        load(config)
        try:
            text, prompt = _complete(self, prompt, meters=meters, ends=ends)
            first: Value | None = None
            try:
                first = value = read_answer(text, schema)
                wrong = complaint(value)
            except ValidationError as fault:
                wrong = _faults(fault, most=5)
            if wrong:
                try:
                    text, _ = _complete(self, _repair(prompt, answer=text, wrong=wrong), meters=meters, ends=ends)
                    value = read_answer(text, schema)
                except (LLMError, ValidationError):
                    if first is None:
                        raise
                wrong = complaint(value)
        except ValidationError as fault:
            error = LLMError(f"{config.named} twice {_in_words(fault)}; try again or use another model")
            error.usage = spent.usage
            raise error from None
        except LLMError as error:
            error.usage = spent.usage
            raise
        if cache is not None and not wrong:
            used = spent.usage
            tokens = {"input_tokens": used.input_tokens, "output_tokens": used.output_tokens}
            cache.put(key, value.model_dump_json(), model=config.model, **tokens)
        return Completion(value=value, model=config.model, usage=spent.usage)


def answer_key(model: str, *, system: str, user: str, schema: type[BaseModel], prompt_version: str = "") -> str:
    """Return a hash of everything that determines the answer; the provider's URL does not."""
    content = [prompt_version, model, system, user, schema.model_json_schema()]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def wire_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the schema in the form of structured outputs: every key required, none added, no bounds."""
    return _strict(schema.model_json_schema())


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(part) for part in node]
    if not isinstance(node, dict):
        return node
    strict: dict[str, Any] = {}
    for word, part in node.items():
        if word in ("properties", "$defs"):  # names of our fields, not keywords of JSON Schema
            strict[word] = {name: _strict(inner) for name, inner in part.items()}
        elif word not in _NOT_ON_THE_WIRE:
            strict[word] = _strict(part)
    if "properties" in strict:
        strict |= {"required": list(strict["properties"]), "additionalProperties": False}
    return strict


def output_cap(schema: type[BaseModel], *, config: LLMConfig) -> int:
    """Return the most tokens of an answer: what the schema can hold, and a reserve to think."""
    shape = schema.model_json_schema()
    room = config.num_ctx // 2 if config.num_ctx else config.most_output_tokens
    return min(_longest(shape, shape.get("$defs", {})) + config.thinking_tokens, config.most_output_tokens, room)


_TOKENS_OF_TEXT, _ENTRIES, _TOKENS_OF_VALUE = 200, 20, 12  # where a schema states no bound, and of a number or a key


def _longest(shape: Schema, defs: Schema) -> int:
    if "$ref" in shape:
        return _longest(defs[shape["$ref"].rpartition("/")[2]], defs)
    if "anyOf" in shape:
        return max(_longest(option, defs) for option in shape["anyOf"])
    if "properties" in shape:
        return sum(_TOKENS_OF_VALUE + _longest(part, defs) for part in shape["properties"].values())
    if shape.get("type") == "array":
        return int(shape.get("maxItems", _ENTRIES)) * _longest(shape.get("items", {}), defs)
    if shape.get("type") == "string" and "enum" not in shape:
        return -(-int(shape.get("maxLength", 3 * _TOKENS_OF_TEXT)) // 3)
    return _TOKENS_OF_VALUE


Questions = Sequence[tuple[str, type[BaseModel]]]  # prompts, each with the schema of its answer


def upper_bound(questions: Questions, *, config: LLMConfig) -> Usage:
    """Return what asking these prompts, each with the schema of its answer, costs at most, each repaired once."""
    total = Usage()
    for text, schema in questions:
        prompt, most = estimated_tokens(text) + _AROUND, output_cap(schema, config=config)
        repaired = prompt + -(-_LONGEST_BAD_ANSWER // 3) + _AROUND
        total += Usage(calls=2, input_tokens=prompt + repaired, output_tokens=2 * most)
    return total


_AROUND = 200  # tokens of a chat's own marks, of the schema where a server counts it, and of the words of a repair


def _with_schema(prompt: Prompt) -> Prompt:
    """Describe the answer in the instructions, for a server that refuses structured outputs."""
    shape = json.dumps(prompt.schema, ensure_ascii=False)
    demand = "Answer with one JSON object and nothing else. It must fit this JSON Schema:"
    return replace(prompt, system=encodable(f"{prompt.system}\n\n{demand}\n{shape}"), schema=None)


def _repair(prompt: Prompt, *, answer: str, wrong: str) -> Prompt:
    answer_sent = encodable(answer.strip()[:_LONGEST_BAD_ANSWER]) or "(empty)"
    demand = f"This answer cannot be used:\n{wrong}\nSend the whole corrected JSON object only."
    return replace(prompt, turns=(*prompt.turns, answer_sent, demand))


def _faults(fault: ValidationError, *, most: int) -> str:
    faults = fault.errors(include_url=False, include_input=False, include_context=False)
    if faults[0]["type"] == "json_invalid":
        return "it is not one complete JSON object"
    lines = [f"{'.'.join(map(str, part['loc'])) or 'the answer'}: {part['msg']}" for part in faults[:most]]
    return "\n".join(" ".join(line.split())[:200] for line in lines)


def _in_words(fault: ValidationError) -> str:
    """Say for a reader what was wrong with an answer."""
    first = fault.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "json_invalid":
        return "answered with something other than the JSON object that was asked for"
    if first["type"] == "missing":
        return f"left {place!r} out of its answer"
    if first["type"] == "empty":
        return "gave an empty answer"
    return f"gave an answer that does not fit: {_faults(fault, most=1)}"


def _complete(model: LanguageModel, prompt: Prompt, *, meters: Sequence[Budget], ends: float) -> tuple[str, Prompt]:
    """Return the model's whole text, after as many tries as the policy allows, and the prompt that was accepted."""
    config = model.config
    most = prompt_room(config, prompt.tokens)
    if prompt.tokens > most:
        raise LLMError(
            f"the prompt of about {prompt.tokens:,} tokens is too long for {config.named}: at most {most:,} "
            "(PAPER_ASSETS_LLM_CONTEXT is the size of its context)"
        )
    policy = RetryPolicy(tries=config.tries, first_wait=config.first_wait)
    number, last = 1, TryFailed("no time for a try")

    def answer(attempt: int) -> Reply:
        """Try once, asking in an older form where the server refuses the schema; that is no failure."""
        nonlocal prompt, number, last
        number = attempt
        while True:
            left = ends - model.clock()
            if left <= 0:
                outcome = f"{attempt - 1} tries; last: {last}"
                raise _final_error(config, f"gave no answer before the deadline ({outcome})", last)
            check_month(config)
            for meter in meters:
                meter.count_call()
            try:
                return exchange(config, prompt, timeout=min(config.try_timeout, left))
            except SchemaRefused as refused:
                _take_back(meters)
                older = config.provider == "openai" and refused.takes_objects and not prompt.as_object
                prompt = replace(prompt, as_object=True) if older else _with_schema(prompt)
            except TryFailed as failed:
                last = failed
                if not failed.late:
                    _take_back(meters)
                raise

    try:
        reply = policy.call(
            answer,
            # A model that was too slow would be as slow again, and both times are paid for.
            is_temporary=lambda error: isinstance(error, TryFailed) and not error.late,
            ends=ends,
            clock=model.clock,
            sleep=model.sleep,
        )
    except TryFailed as failed:
        if failed.late:
            raise _final_error(config, f"failed: {failed}", failed) from None
        if number == config.tries:
            times = f" {number} times; last" if number > 1 else ""
            raise _final_error(config, f"failed{times}: {failed}", failed) from None
        asked = failed.retry_after
        step = "another try" if asked is None else f"waiting the {asked:.3g} s it asks for"
        raise _final_error(config, f"failed: {failed}; {step} would pass the deadline", failed) from None
    for meter in meters:
        meter.add_tokens(reply.input_tokens, reply.output_tokens)
    if config.monthly:
        config.monthly.add(model.purpose, reply.input_tokens, reply.output_tokens)
    return _whole(config, reply), prompt


def _take_back(meters: Sequence[Budget]) -> None:
    """Uncount a call that the server refused to work on."""
    for meter in meters:
        meter.uncount_call()


def _final_error(config: LLMConfig, what: str, last: TryFailed) -> LLMUnreachable:
    """Turn the last failed try into an error: the server is unreachable or too slow, or it asks to slow down."""
    line = f"{config.named} {what}"
    if not last.slow_down:
        if last.late and config.tries > 1:  # a trial of the settings has one try and its own limit
            line += "; for a slow model raise PAPER_ASSETS_LLM_TIMEOUT and PAPER_ASSETS_LLM_DEADLINE"
        return LLMUnreachable(line, variable=last.variable)
    wait = None if last.retry_after is None else f"{last.retry_after:.3g} s"
    asks = f"; it asks to wait {wait}" if wait and wait not in line else ""
    error = LLMRateLimited(f"{line}{asks}")
    error.retry_after = last.retry_after
    return error


def _whole(config: LLMConfig, reply: Reply) -> str:
    if reply.ended == "refused":
        raise LLMError(f"{config.named} refused to answer")
    if reply.ended == "cut off":
        raise LLMError(f"{config.named} was cut off after {reply.output_tokens} tokens; the answer is incomplete")
    return reply.text
