"""Write one attempt: recall examples, let the actor write, and the critic judge what code does not refuse (SPEC 4).

If one of the two calls fails, LLMError is raised and the attempt does not count (B4).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, TypeVar

from pydantic import BaseModel

from paper_assets.errors import LLMConfigError, LLMError, StoreError
from paper_assets.models.llm import AnswerCache, Completion, LanguageModel, Questions, upper_bound
from paper_assets.models.llm_config import Budget, Usage, cost, critic_config, llm_config
from paper_assets.paper import Paper
from paper_assets.rewriting.best_practices import Archive, retrieve_best_practices, topic_fit_of
from paper_assets.rewriting.gate import check_sentences, most_asked, stop_reasons
from paper_assets.rewriting.measures import lix
from paper_assets.rewriting.policy import Level
from paper_assets.rewriting.prompts import (
    Critique,
    Draft,
    Prompt,
    actor_question,
    critic_question,
    example_block,
    in_words,
    longest_questions,
    prompt_version,
    total,
)
from paper_assets.settings import RewritingConfig
from paper_assets.stores.best_practices import BestPractice
from paper_assets.stores.rewrite_progress import new_holder
from paper_assets.stores.rewrites import Attempt, NewItem
from paper_assets.text.cleaning import without_controls
from paper_assets.text.languages import language_of
from paper_assets.text.numbers import cost_in_words
from paper_assets.text.support import Probabilities, similarities_of
from paper_assets.text.support import longest_questions as longest_support_questions

Value = TypeVar("Value", bound=BaseModel)

_MOST_KEYWORDS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """The models, budget and settings of one run; `actor` is the reason if no language model is configured.

    `archive` None: no examples are shown and none is archived (B7). `holder` claims the items being written, for
    `lease` at a time. `nli` decides doubtful sentences instead of the critic.
    """

    actor: LanguageModel | LLMConfigError
    critic: LanguageModel | None
    archive: Archive | None
    clock: Callable[[], datetime]
    config: RewritingConfig = field(default_factory=RewritingConfig)
    nli: Probabilities | None = None
    budget: Budget = field(default_factory=Budget)
    holder: str = field(default_factory=new_holder)
    lease: timedelta = timedelta(minutes=10)
    sleep: Callable[[float], None] = time.sleep

    @property
    def model(self) -> str | None:
        """Return the name of the model that writes; None without one."""
        return self.actor.config.model if isinstance(self.actor, LanguageModel) else None

    def ask(self, question: Prompt, schema: type[Value], version: str, *, as_critic: bool = False) -> Completion[Value]:
        """Ask the actor, or the critic. Raises LLMError."""
        if isinstance(self.actor, LLMConfigError) or self.critic is None:
            raise self.actor if isinstance(self.actor, LLMConfigError) else LLMError("there is no critic")
        model = self.critic if as_critic else self.actor
        return model.ask(system=question.system, user=question.user, schema=schema, prompt_version=version)

    def price(self, usage: Usage) -> float | None:
        """Return what the use costs; None without prices, and with another critic: they are the actor's."""
        if isinstance(self.actor, LLMConfigError) or self.critic is None or self.critic.config != self.actor.config:
            return None
        return cost(self.actor.config, usage)

    @property
    def paid(self) -> str:
        """Say what was paid so far."""
        return self._in_words(self.budget.usage)

    def at_most(self, items: Sequence[NewItem]) -> str:
        """Say what writing these rewrites to their end costs at most, repairs and the run's budget considered."""
        if isinstance(self.actor, LLMConfigError) or self.critic is None:
            return "nothing: no language model is set up"
        attempts, bound = self.config.attempts + self.config.more_attempts, Usage()
        for item in items:
            actor, critic = _longest(item, self.config)
            one = upper_bound(actor, config=self.actor.config) + upper_bound(critic, config=self.critic.config)
            bound += one * max(attempts - len(getattr(item, "attempts", ())), 1)
        return self._in_words(self.budget.capped(bound))

    def _in_words(self, usage: Usage) -> str:
        return cost_in_words(usage.calls, usage.tokens, self.price(usage))


def _longest(item: NewItem, config: RewritingConfig) -> tuple[Questions, Questions]:
    """Return the longest prompts of one attempt to the actor and to the critic, with the schemas of the answers."""
    examples = "x" * 3 * config.example_tokens if config.examples else ""
    draft, critique = longest_questions(item, examples=examples)
    checks = longest_support_questions(most_asked(item.target_level), retelling=True)
    return [(draft.system + draft.user, Draft)], [(critique.system + critique.user, Critique), *checks]


def open_writer(
    environ: Mapping[str, str],
    *,
    archive: Archive | None,
    cache: AnswerCache | None,
    clock: Callable[[], datetime],
    config: RewritingConfig,
    nli: Probabilities | None = None,
) -> Writer:
    """Return the writer for the configured language model (I3); without one, asking it raises the reason."""
    try:
        provider = llm_config(environ)
        critic = critic_config(environ, actor=provider)
    except LLMConfigError as error:
        return Writer(actor=error, critic=None, archive=archive, clock=clock, config=config)
    budget = Budget(calls=provider.budget_calls, tokens=provider.budget_tokens)
    actor = LanguageModel(config=provider, purpose="rewrites", budget=budget, cache=cache)
    return Writer(
        actor=actor,
        critic=replace(actor, config=critic),
        archive=archive,
        clock=clock,
        config=config,
        nli=nli,
        budget=budget,
        lease=timedelta(seconds=provider.deadline + critic.deadline + 60),
    )


def new_item(paper: Paper, level: Level, *, language: str | None = None) -> NewItem:
    """Return the task of rewriting a paper's abstract for a level; equal tasks have the same `item`.

    `language`: ISO 639-1 of the rewrite, by default that of the original (B11).
    """
    prompt = prompt_version(level)
    spoken = language or language_of(paper.abstract) or "en"
    content = [paper.paper_id, f"{paper.version}", paper.title, paper.abstract, level, prompt, spoken]
    return NewItem(
        item=sha256("\0".join(content).encode("utf-8", "surrogatepass")).hexdigest()[:32],
        paper_id=paper.paper_id,
        version=paper.version,
        title=paper.title,
        category=paper.primary_category,
        target_level=level,
        original_text=paper.abstract,
        prompt=prompt,
        language=spoken,
    )


def write_attempt(writer: Writer, item: NewItem, earlier: Sequence[Attempt], *, held: Sequence[str] = ()) -> Attempt:
    """Write the attempt that follows `earlier`; `held`: why the gate holds back the last of them.

    Raises LLMError; then no attempt was made.
    """
    number = len(earlier) + 1
    examples = recalled(writer, item)
    shown = example_block(examples, config=writer.config)
    question = actor_question(item, previous=earlier[-1] if earlier else None, held=held, examples=shown)
    # The attempt's number is part of the cache key: a second attempt never gets the first one's answer, and a new
    # version of a paper with the same words costs nothing.
    version = f"attempt {number}"
    drafted = writer.ask(question, Draft, version)
    text = without_controls(drafted.value.text).strip()
    if not text:
        raise LLMError("the model's rewrite is empty")
    measured = lix(text, language=item.language)
    embedder = writer.archive.embedder if writer.archive else None
    stopped = stop_reasons(item, text, fit=topic_fit_of(embedder, item, text, examples))
    spent, judged, checked = [drafted.usage], None, None
    if not stopped:  # what code refuses needs no critic

        def ask_critic(*, system: str, user: str, schema: type[Value], **more: Any) -> Completion[Value]:
            done = writer.ask(Prompt(system=system, user=user), schema, version, as_critic=True)
            spent.append(done.usage)
            return done

        asked = critic_question(item, text, readability=measured)
        judged = ask_critic(system=asked.system, user=asked.user, schema=Critique)
        checked = check_sentences(item, text, similarities=similarities_of(embedder), ask=ask_critic, nli=writer.nli)
    used = sum(spent, Usage())
    keywords = (without_controls(word).replace(",", " ").strip() for word in drafted.value.keywords)
    return Attempt(
        attempt=number,
        text=text,
        keywords=tuple(dict.fromkeys(word for word in keywords if word))[:_MOST_KEYWORDS],
        score=total(judged.value, unsupported=checked.dropped) if judged and checked else 0,
        critique=without_controls(in_words(judged.value)).strip() if judged else "",
        unsupported=checked.wrong if checked else (),
        examples=tuple(example.id for example in examples[: writer.config.examples]) if shown else (),
        model=drafted.model,
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        made_at=writer.clock(),
        stopped=(*stopped, *(checked.reasons if checked else ())),
        subscores=judged.value.subscores if judged else (),
        readability=measured,
        critic=judged.model if judged else None,
        unchecked=checked.unchecked if checked else None,
        disputed=checked.answered if checked else (),
    )


def recalled(writer: Writer, item: NewItem) -> list[BestPractice]:
    """Return best practices like the original; none if the archive cannot be used, because examples are optional."""
    if writer.archive is None or not writer.config.examples:
        return []
    try:
        return retrieve_best_practices(
            writer.archive, item.original_text, item.target_level, writer.config.examples, paper_id=item.paper_id
        )
    except StoreError:
        return []
