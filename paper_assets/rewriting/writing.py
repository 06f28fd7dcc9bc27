"""One attempt: recall examples, let the actor write, count what the original lacks, let the critic judge (SPEC 4).

An attempt is whole or it is not: where one of the two calls fails, LLMError goes up and nothing was attempted (B4).
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Protocol, TypeVar

from pydantic import BaseModel

from paper_assets.errors import LLMConfigError, LLMError, StoreError
from paper_assets.models import llm
from paper_assets.models.llm import Answer, AnswerCache
from paper_assets.models.llm_budget import Budget, Usage, cost
from paper_assets.models.llm_config import llm_config
from paper_assets.paper import Paper
from paper_assets.rewriting.best_practices import Archive, retrieve_best_practices
from paper_assets.rewriting.example_block import example_block
from paper_assets.rewriting.faithfulness import unsupported
from paper_assets.rewriting.policy import Level
from paper_assets.rewriting.prompts import Critique, Draft, Question, actor_question, critic_question, prompt_version
from paper_assets.settings import Rewriting
from paper_assets.stores.best_practices import BestPractice
from paper_assets.stores.rewrites import Attempt, NewItem

Value = TypeVar("Value", bound=BaseModel)

_MOST_KEYWORDS = 8


class Ask(Protocol):
    """`models.llm.ask` with its configuration, budget and cache already given. Raises LLMError."""

    def __call__(self, *, system: str, user: str, schema: type[Value], prompt_version: str) -> Answer[Value]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Whom to ask, ready for one run with its budget; `model` is None where nobody can be asked.

    `archive` None: no examples are shown and none is kept (B7).
    """

    ask: Ask
    model: str | None
    archive: Archive | None
    clock: Callable[[], datetime]
    numbers: Rewriting = field(default_factory=Rewriting)
    price: Callable[[Usage], float | None] = lambda usage: None


def open_writer(
    environ: Mapping[str, str],
    *,
    archive: Archive | None,
    cache: AnswerCache | None,
    clock: Callable[[], datetime],
    numbers: Rewriting,
    model: str | None = None,
) -> Writer:
    """The writer that the environment's LLM allows (I3), with a fresh budget; without one its `ask` says why."""
    try:
        config = llm_config(environ, model=model)
    except LLMConfigError as error:
        return Writer(ask=_unavailable(error), model=None, archive=archive, clock=clock, numbers=numbers)
    budget = Budget(calls=config.budget_calls, tokens=config.budget_tokens)
    return Writer(
        ask=partial(llm.ask, config, budget=budget, cache=cache),
        model=config.model,
        archive=archive,
        clock=clock,
        numbers=numbers,
        price=partial(cost, config),
    )


def new_item(paper: Paper, level: Level) -> NewItem:
    """The task of rewriting a paper's abstract for a level; the same task has the same `item`."""
    prompt = prompt_version(level)
    content = [paper.paper_id, f"{paper.version}", paper.title, paper.abstract, level, prompt]
    return NewItem(
        item=sha256("\0".join(content).encode("utf-8", "surrogatepass")).hexdigest()[:32],
        paper_id=paper.paper_id,
        version=paper.version,
        title=paper.title,
        category=paper.primary_category,
        target_level=level,
        original_text=paper.abstract,
        prompt=prompt,
    )


def write_attempt(writer: Writer, item: NewItem, earlier: Sequence[Attempt]) -> Attempt:
    """The attempt that follows `earlier`. Raises LLMError; then nothing was attempted."""
    number = len(earlier) + 1
    examples = recalled(writer, item)
    shown = example_block(examples, numbers=writer.numbers)
    question = actor_question(item, previous=earlier[-1] if earlier else None, examples=shown)
    # The attempt's number is part of what is asked: a second attempt is never answered with the first one's answer,
    # and a new version of a paper with the same words costs nothing.
    drafted = _put(writer, question, Draft, f"attempt {number}")
    text = _storable(drafted.value.text)
    if not text:
        raise LLMError("the model's rewrite is empty")
    found = unsupported(f"{item.title}\n{item.original_text}", text)
    judged = _put(writer, critic_question(item, text, found), Critique, f"attempt {number}")
    keywords = (_storable(word).replace(",", " ").strip() for word in drafted.value.keywords)
    return Attempt(
        attempt=number,
        text=text,
        keywords=tuple(dict.fromkeys(word for word in keywords if word))[:_MOST_KEYWORDS],
        score=judged.value.score,
        critique=_storable(judged.value.critique),
        unsupported=found.all,
        examples=tuple(example.id for example in examples[: writer.numbers.examples]) if shown else (),
        model=drafted.model,
        input_tokens=drafted.usage.input_tokens + judged.usage.input_tokens,
        output_tokens=drafted.usage.output_tokens + judged.usage.output_tokens,
        made_at=writer.clock(),
    )


def recalled(writer: Writer, item: NewItem) -> list[BestPractice]:
    """Best practices like the original; none where the archive cannot be used: they help, they are not needed."""
    if writer.archive is None:
        return []
    try:
        return retrieve_best_practices(writer.archive, item.original_text, item.target_level)
    except StoreError:
        return []


def _put(writer: Writer, question: Question, schema: type[Value], version: str) -> Answer[Value]:
    return writer.ask(system=question.system, user=question.user, schema=schema, prompt_version=version)


def _unavailable(error: LLMError) -> Ask:
    def ask(*, system: str, user: str, schema: type[Value], prompt_version: str) -> Answer[Value]:
        raise error

    return ask


def _storable(text: str) -> str:
    """Without control characters and half surrogate pairs, which no table and no page takes."""
    text = text.encode("utf-8", "ignore").decode("utf-8").replace("\r\n", "\n")
    return "".join(letter for letter in text if letter in "\n\t" or unicodedata.category(letter) != "Cc").strip()
