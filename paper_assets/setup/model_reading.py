"""Have the configured language model read a statement, beside the rules of `text/statements.py` (SPEC W1, W4).

The model names topics in English, so that an interest in another language is translated. What it answers is checked:
people must be named in the text, topics of an English text must share half of their words with it, and links, markup
and orders are dropped.
"""

import re
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, Field

from paper_assets.models.llm import LanguageModel, upper_bound
from paper_assets.models.llm_config import LLMConfig, cost
from paper_assets.stores.llm_answers import StoredAnswers
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import introduced, one_line
from paper_assets.text.names import name_form
from paper_assets.text.numbers import cost_in_words
from paper_assets.text.prompts import AskModel, prompt
from paper_assets.text.statements import LONGEST_STATEMENT, Reading
from paper_assets.text.support import refusal
from paper_assets.text.words import stems_in

_NOT_OF_NAMES = re.compile(r"['’]s\b|[^\w\s.'’-]")  # characters around a name in a sentence
_MOST = 40  # entries of a list
_Topics = Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=_MOST)]
_TOPICS = ("primary", "secondary", "exploratory", "avoid", "less")


class _Answer(BaseModel):
    primary: _Topics
    secondary: _Topics
    exploratory: _Topics
    avoid: _Topics
    less: _Topics
    authors: _Topics


def reading_model(config: LLMConfig, warehouse: Warehouse) -> AskModel:
    """Return what asks the model, and keeps answers by content."""
    return LanguageModel(config=config, purpose="readings of statements", cache=StoredAnswers(warehouse)).ask


def most_for_reading(config: LLMConfig, text: str = "x" * LONGEST_STATEMENT) -> str:
    """Return the model and what it costs at most to read a text, or the longest one, as people read it."""
    bound = upper_bound([(prompt("read_statement") + _introduced(text), _Answer)], config=config)
    return f"{config.model}: at most {cost_in_words(bound.calls, bound.tokens, cost(config, bound))}"


def read_by_model(text: str, by_rules: Reading, *, ask: AskModel, config: LLMConfig | None = None) -> Reading:
    """Return the model's reading of a statement, with notes on where that of the rules differs, and on what it cost.

    Categories are those that the rules found, and the language too. A model that finds no topic changes nothing.
    `config`: the model's prices. Raises LLMError.
    """
    completion = ask(system=prompt("read_statement"), user=_introduced(text), schema=_Answer)
    answer: _Answer = completion.value
    if config and completion.usage.calls:
        used = cost_in_words(completion.usage.calls, completion.usage.tokens, cost(config, completion.usage))
        by_rules = replace(by_rules, notes=(*by_rules.notes, f"paid to {config.model}: {used}"))
    written, named = set(stems_in(text)), f" {name_form(_NOT_OF_NAMES.sub(' ', text))} "
    foreign = by_rules.language is not None

    def kept(topics: list[str]) -> tuple[str, ...]:
        found = (one_line(topic) for topic in topics)
        return tuple(dict.fromkeys(each for each in found if each and fits(each) and refusal(each) is None))

    def fits(topic: str) -> bool:
        stems = set(stems_in(topic))
        return foreign or len(written & stems) * 2 >= max(len(stems), 1)

    by_list: dict[str, Any] = {name: kept(getattr(answer, name)) for name in _TOPICS}
    people = (one_line(name) for name in answer.authors)
    reading = replace(
        by_rules,
        **{**by_list, "avoid": tuple(dict.fromkeys((*by_list["avoid"], *by_list["less"])))},
        authors=tuple(
            dict.fromkeys(
                name
                for name in people
                if name and any(f" {name_form(form)} " in named for form in (name, name.replace(",", " ")))
            )
        ),
    )
    if by_rules.wanted and not reading.wanted:  # a weak model answers with empty lists
        return replace(by_rules, notes=(*by_rules.notes, "the language model found no topic; the rules read this"))
    return replace(reading, notes=(*by_rules.notes, *_differences(by_rules, reading)))


def _introduced(text: str) -> str:
    return introduced("The statement is", "statement", text)


def _differences(by_rules: Reading, by_model: Reading) -> list[str]:
    """Return a sentence for each list that the rules read otherwise."""
    names = {"wanted": "looking for", "avoid": "not", "less": "less interested in", "authors": "people"}
    found = ((words, getattr(by_rules, name), getattr(by_model, name)) for name, words in names.items())
    return [
        f"{words}: the rules read {'; '.join(one) or 'nothing'}, the model {'; '.join(other) or 'nothing'}"
        for words, one, other in found
        if {each.casefold() for each in one} != {each.casefold() for each in other}
    ]
