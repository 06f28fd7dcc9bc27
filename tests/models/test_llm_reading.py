"""Test that the form of a model's answer is ignored and its content validated (SPEC I3)."""

import gzip
import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from paper_assets.errors import LLMError
from paper_assets.models.llm import LanguageModel, read_answer
from paper_assets.models.llm_config import PROVIDERS, Provider
from paper_assets.models.llm_providers import _MOST_BYTES
from tests.loopback_llm import Raw, loopback_llm
from tests.models.test_llm_recorded import Exchanges, exchanges, structured

__all__ = ["exchanges"]  # a fixture


class Verdict(BaseModel):
    score: int = Field(strict=True, ge=0, le=100)
    critique: Annotated[str, StringConstraints(strip_whitespace=True, max_length=50)] = ""
    kind: Literal["good", "bad"] = "good"
    names: list[Annotated[str, StringConstraints(max_length=10)]] = Field(default=[], max_length=40)
    sure: float | None = None


class Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"score": 88.0}', {"score": 88}),
        ('{"score": "92"}', {"score": 92}),
        ('{"score": " 92.0 "}', {"score": 92}),
        ('Sure! Here is my verdict: {"score": 92} I hope that it helps.', {"score": 92}),
        ('<think>Perhaps {"score": 10}? No.</think>\n{"score": 92}', {"score": 92}),
        ('It may be {"score": 10} …\n</think>{"score": 92}', {"score": 92}),
        ('{"score": 92, "names": ["a", "b",],}', {"score": 92, "names": ["a", "b"]}),
        ('{"score": 92, "critique": "a, ] and , } stay"}', {"critique": "a, ] and , } stay"}),
        (json.dumps({"score": 92, "critique": "x" * 900}), {"critique": "x" * 50}),
        (json.dumps({"score": 92, "names": [f"n{n}" for n in range(45)]}), {"names": [f"n{n}" for n in range(40)]}),
        ('{"score": 92, "names": null, "critique": null, "kind": null, "sure": null}', {"names": [], "critique": ""}),
        ('{"score": 92, "names": "Ada"}', {"names": ["Ada"]}),
        ('{"score": 92, "names": ["Ada", null]}', {"names": ["Ada"]}),
        ('{"score": 92, "kind": "BAD"}', {"kind": "bad"}),
        ('{"score": 92, "sure": "0.5"}', {"sure": 0.5}),
        ('{"answer": {"score": 92}}', {"score": 92}),
        ('[{"score": 92}]', {"score": 92}),
        ('The shape is {"score": "whole number"}.\n```json\n{"score": 92}\n```', {"score": 92}),
    ],
)
def test_the_form_does_not_matter(text: str, expected: dict[str, Any]) -> None:
    found = read_answer(text, Verdict)
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 101}',
        '{"score": 87.5}',
        '{"score": "good"}',
        '{"score": "92/100"}',
        '{"score": true}',
        '{"score": null}',
        '{"score": 92, "kind": "neither"}',
        '{"critique": "no score"}',
        '{"score": 92',
        "The score is 92.",
        "{}",
        "",
        "[" * 50_000,
        '{"a":' * 50_000,
    ],
)
def test_the_content_does(text: str) -> None:
    with pytest.raises(ValidationError):
        read_answer(text, Verdict)


def test_an_answer_without_content_is_refused() -> None:
    for text in ("{}", '{"summary": "", "points": [], "more": null}', '{"summary": " "}'):
        with pytest.raises(ValidationError):
            read_answer(text, type("Summary", (BaseModel,), {"__annotations__": {"summary": str}}))


@pytest.mark.parametrize("levels", [60, 490, 980, 100_000])
def test_an_answer_of_brackets_in_brackets_is_refused_and_one_beside_it_is_read(levels: int) -> None:
    for opening, closing in (('{"a":', "}"), ("[", "]")):
        nested = f'{{"score": {opening * levels}1{closing * levels}}}'
        with pytest.raises(ValidationError):
            read_answer(nested, Verdict)
        assert read_answer(f'{{"score": 92}}\n{nested}', Anything).model_extra == {"score": 92}


WRAPPERS = [
    "%s",
    "\ufeff%s\n",
    "```json\n%s\n```",
    "Here you are:\n```\n%s\n```\nAnything else?",
    "<think>First I weigh {this} against [that].\nThen I answer.</think>\n\n%s",
    "I weigh {this} and } that.\n</think>%s",
    "Sure. The answer: %s That is all {I} know.",
]


@given(
    value=st.dictionaries(
        st.text(min_size=1, max_size=5),
        st.recursive(
            st.text(max_size=20) | st.integers(-(10**9), 10**9) | st.booleans(),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        min_size=1,
        max_size=4,
    ),
    wrapper=st.sampled_from(WRAPPERS),
)
def test_any_object_comes_out_of_any_wrapper_as_it_was(value: dict[str, Any], wrapper: str) -> None:
    value = {"says": "something", **{f"_{name}".replace("_model", "x"): part for name, part in value.items()}}
    value = {name: part for name, part in value.items() if name.isidentifier() and not name.startswith("__")}
    assert read_answer(wrapper % json.dumps(value), Anything).model_extra == {
        name: part for name, part in value.items() if name not in Anything.model_fields
    }


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("trailing_comma", [False, True])
def test_every_structured_answer_comes_out_of_every_wrapper(
    exchanges: Exchanges,
    wrapper: str,
    trailing_comma: bool,
) -> None:
    answers = structured(exchanges)
    assert answers
    for _, _, text in answers:
        sent = text.rstrip().removesuffix("}") + ",}" if trailing_comma and json.loads(text) else text
        assert read_answer(wrapper % sent, Anything).model_extra == json.loads(text)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_packed_answer_is_unpacked_and_one_that_unpacks_to_a_gigabyte_is_not(provider: Provider) -> None:
    answer = {"message": {"content": '{"score": 92}'}, "choices": [{"message": {"content": '{"score": 92}'}}]}
    body = json.dumps({**answer, "content": [{"type": "text", "text": '{"score": 92}'}]}).encode()
    packed = {"content-type": "application/json", "content-encoding": "gzip"}
    bomb = gzip.compress(b'{"a": "' + b"x" * 100_000_000 + b'"}')
    assert len(bomb) < _MOST_BYTES / 10
    with loopback_llm(Raw(200, gzip.compress(body), packed), Raw(200, bomb, packed)) as server:
        config = server.config(provider)
        assert LanguageModel(config=config).ask(system="s", user="u", schema=Verdict).value.score == 92
        with pytest.raises(LLMError, match="more than 5 MB"):
            LanguageModel(config=config).ask(system="s", user="u", schema=Verdict)
        assert "gzip" in server.requests[0].headers["accept-encoding"]


def test_an_answer_in_an_encoding_that_was_not_requested_is_one_line() -> None:
    with loopback_llm(Raw(200, b"\x00", {"content-encoding": "br"})) as server:
        config = server.config("ollama", PAPER_ASSETS_LLM_DEADLINE="1")
        with pytest.raises(LLMError, match="'br', which was not requested"):
            LanguageModel(config=config).ask(system="s", user="u", schema=Verdict)
