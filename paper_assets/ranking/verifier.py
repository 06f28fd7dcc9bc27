"""Have a language model judge papers of doubtful relevance: the questions, and what the answers may do (SPEC G5).

In the fused modes it grades the first papers of the list from 0 to 3. A grade is evidence: it moves a paper by a
bounded number of points (log odds), more for a model that has agreed with the reader's ratings. In the seed mode it
scores the papers of a band of relevance, and the score replaces theirs.

The text of a paper is not trusted and may contain instructions to the model. It is sent as escaped JSON in a fence
(`text/cleaning.py`), under a number. A paper that addresses the model, or has words in another language, is judged
alone, and a batch whose grades contradict the list beyond chance is asked again, paper by paper. Verdicts are cached
one by one: a paper is judged again only if its version, its text, the reader's words, the prompt or the model change.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import BaseModel

from paper_assets.errors import LLMBudgetReached, LLMConfigError, LLMError
from paper_assets.models.llm_config import Budget, Usage, cost, llm_config
from paper_assets.profile import Interests, ProfileContent
from paper_assets.settings import ScoringConfig
from paper_assets.text.cleaning import introduced
from paper_assets.text.languages import has_foreign_words
from paper_assets.text.numbers import cost_in_words, count_of
from paper_assets.text.prompts import AskModel, by_number, numbered_entries, prompt
from paper_assets.text.support import addresses_reader

if TYPE_CHECKING:  # asked by few rankings
    from paper_assets.models.llm import Completion, Questions

GRADED = 20  # papers of a list, best first, that are graded
_MOST_FAILURES = 2  # number of failed batches after which no more are sent
_LONGEST_TITLE = 300  # characters; longer ones are not titles
_MOST_LIKED, _LONGEST_STATEMENT = 8, 1_500  # liked titles, and characters of a statement, in a prompt

PROMPT_VERSION = sha256((prompt("grade_papers") + prompt("score_papers")).encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """The language model of one run, and the cache of its verdicts.

    Attributes:
        ask: calls the model; it has the budget of the run.
        model: the model's name; None if no model is available.
        known: returns cached verdicts by key.
        keep: stores the verdicts of one batch by key, as JSON text.
        right: the model's `reliability` for the reader.
        report: called with what is about to be asked and may cost, in words.
        at_most: says what these questions cost at most.
    """

    ask: AskModel
    model: str | None
    known: Callable[[Sequence[str]], Mapping[str, str]] = lambda keys: {}
    keep: Callable[[Mapping[str, str]], None] = lambda verdicts: None
    right: float = 0.8
    report: Callable[[str], None] = lambda what: None
    at_most: "Callable[[Questions], str]" = lambda questions: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """What the model receives about the reader: interests by level, what to avoid, the statement, titles they liked."""

    interests: Mapping[str, tuple[str, ...]]
    avoid: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    statement: str = ""
    liked: tuple[str, ...] = ()

    def in_words(self) -> str:
        """Return the reader's words for a prompt."""
        lines = [f"{level}: {'; '.join(names)}" for level, names in self.interests.items() if names]
        lines += [f"not wanted: {'; '.join(self.avoid)}"] if self.avoid else []
        lines += [f"less wanted: {'; '.join(self.less)}"] if self.less else []
        lines += [f"in their own words: {self.statement}"] if self.statement else []
        lines += [f"liked papers: {'; '.join(self.liked)}"] if self.liked else []
        return "\n".join(lines)


def reader_of_profile(interests: Interests, content: ProfileContent | None) -> Reader:
    """Return what the model receives of a profile; `interests` are its wishes apart from what it excludes."""
    liked = [paper.title for paper in content.interests.papers if paper.title] if content else []
    return reader_of(interests, liked=liked, statement=(content.statement or "") if content else "")


def reader_of(interests: Interests, *, liked: Sequence[str] = (), statement: str = "") -> Reader:
    """Return what the model receives; sorted and each once, so that an order does not change the key of a verdict."""
    levels = ("primary", "secondary", "exploratory")
    return Reader(
        interests={level: tuple(sorted(set(getattr(interests, level)))) for level in levels},
        avoid=tuple(sorted(set(interests.avoid))),
        less=tuple(sorted(set(interests.less))),
        statement=" ".join(statement.split())[:_LONGEST_STATEMENT],
        liked=tuple(sorted({" ".join(title.split())[:_LONGEST_TITLE] for title in liked}))[:_MOST_LIKED],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMCheck:
    """What the model said, and what the check did; arrays are aligned with the candidates."""

    values: NDArray[np.float64]  # (n,) relevance after the check (seed), or points of log odds (grades)
    verified: NDArray[np.bool_]  # (n,) the model judged the paper: evaluation_method embedding+llm
    doubtful: int  # papers to be judged
    cached: int  # of these, papers with a cached verdict
    usage: Usage
    warning: str | None  # why some were not judged, and which tried to steer the model
    failed: bool = False  # the model failed, and asking again later may help

    @property
    def used(self) -> bool:
        """Whether any verdict is the model's."""
        return bool(self.verified.any())


# A grade counts as this part of the model's whole evidence.
_PARTS = (-1.0, -0.4, 0.5, 1.0)
_MOST_POINTS = 2.5  # of log odds: no verdict carries a paper over the whole scale
_USUAL, _USUAL_COUNT = 0.8, 10  # share of right verdicts assumed of a model, and as how many that counts


def reliability(agreed: int, judged: int) -> float:
    """Return the share of right verdicts to expect, from how many of those on rated papers agreed with the rating."""
    return (agreed + _USUAL * _USUAL_COUNT) / (judged + _USUAL_COUNT)


def points_of(grades: NDArray[np.float64], right: float) -> NDArray[np.float64]:
    """Return the points of log odds that grades (n,) are worth from a model that is `right` so often; NaN gives 0."""
    right = min(max(right, 0.5), 0.99)
    most = min(math.log(right / (1 - right)), _MOST_POINTS)
    known = np.nan_to_num(grades, nan=0.0).astype(int)
    return np.where(np.isnan(grades), 0.0, most * np.array(_PARTS)[known])


def grade_papers(
    candidates: pa.Table,
    rows: NDArray[np.int64],
    reader: Reader,
    *,
    verifier: Verifier,
    scoring: ScoringConfig,
) -> LLMCheck:
    """Have the model grade these rows, best first, and return the points of each candidate.

    A failure of the model becomes a warning.
    """
    found = _verdicts(candidates, rows, reader, _GRADES, verifier=verifier, scoring=scoring)
    grades = np.full(candidates.num_rows, np.nan)
    for row, grade in found.verdicts.items():
        grades[row] = grade
    return _checked(found, points_of(grades, verifier.right), ~np.isnan(grades), asked=len(rows))


def check_relevance(
    candidates: pa.Table,
    relevance: NDArray[np.float64],
    interests: Interests,
    *,
    verifier: Verifier,
    scoring: ScoringConfig,
    asked_first: Callable[[NDArray[np.int64]], NDArray[np.int64]] = lambda doubtful: doubtful,
) -> LLMCheck:
    """Have the model score the papers whose relevance (n,) is in `scoring.llm_band`; the score replaces it.

    `asked_first` selects the rows worth sending and returns them in the order of sending, so that an exhausted budget
    omits the least important ones.
    """
    low, high = scoring.llm_band
    doubtful = asked_first(np.flatnonzero((relevance >= low) & (relevance < high)))
    asked = _Question(name="score_papers", key="score", allowed=None)
    found = _verdicts(candidates, doubtful, reader_of(interests), asked, verifier=verifier, scoring=scoring)
    after, verified = np.array(relevance, dtype=np.float64), np.zeros(len(relevance), dtype=bool)
    for row, score in found.verdicts.items():
        after[row], verified[row] = score, True
    return _checked(found, after, verified, asked=len(doubtful))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """The question about each paper: the prompt's name, the key of the answer, and its values (None: 0 to 1)."""

    name: str
    key: str
    allowed: tuple[int, ...] | None

    def schema(self, count: int) -> type[BaseModel]:
        kind: str | tuple[int, ...] = "number" if self.allowed is None else self.allowed
        return numbered_entries("papers", count, **{self.key: kind})

    def values(self, answer: BaseModel, count: int) -> dict[int, float]:
        """Return the valid values of an answer by number."""
        entries = by_number(getattr(answer, "papers", ()), count)
        return {
            number: value for number, entry in entries.items() if (value := self.valid(entry.get(self.key))) is not None
        }

    def valid(self, value: object) -> float | None:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return None
        right = 0 <= value <= 1 if self.allowed is None else value in self.allowed  # false for NaN
        return float(value) if right else None

    def missing(self, answer: BaseModel, count: int) -> str | None:
        lacking = sorted(set(range(1, count + 1)) - set(self.values(answer, count)))
        allowed = "from 0 to 1" if self.allowed is None else f"of {', '.join(map(str, self.allowed))}"
        return f"a {self.key} {allowed} is missing for the papers {', '.join(map(str, lacking))}" if lacking else None


_GRADES = _Question(name="grade_papers", key="grade", allowed=(0, 1, 2, 3))


def agreement(
    rated: pa.Table, worth: Mapping[str, bool], reader: Reader, *, verifier: Verifier, scoring: ScoringConfig
) -> float:
    """Return the model's `reliability` for a reader, from its stored grades of papers that the reader has rated.

    `worth`: by paper, whether the reader found it worth reading.
    """
    rows = range(rated.num_rows)
    sent = {row: _shown(rated, row, scoring) for row in rows}
    keys = {row: _key(rated, row, sent[row], reader, _GRADES, model=verifier.model or "") for row in rows}
    known, papers = verifier.known(list(keys.values())) if keys else {}, rated.column("paper_id").to_pylist()
    grades = {papers[row]: _GRADES.valid(json.loads(known[key])) for row, key in keys.items() if key in known}
    judged = [(grade >= _RELEVANT) == worth[paper] for paper, grade in grades.items() if grade is not None]
    return reliability(sum(judged), len(judged))


_RELEVANT = 2  # grade from which a paper is worth reading


@dataclass(slots=True, kw_only=True)
class _Found:
    """Verdicts by row, the cost, and the reason of the last failure ("" if there was none)."""

    verdicts: dict[int, float]
    cached: int = 0
    usage: Usage = field(default_factory=Usage)
    reason: str = ""
    singly: int = 0  # papers that address the model


def _verdicts(
    candidates: pa.Table,
    rows: NDArray[np.int64],
    reader: Reader,
    asked: _Question,
    *,
    verifier: Verifier,
    scoring: ScoringConfig,
) -> _Found:
    """Return the verdicts on rows, from the cache or the model, and store the new ones.

    Stops after the second failed batch, and at once if the budget is spent or the configuration is wrong.
    """
    sent = {row: _shown(candidates, row, scoring) for row in rows.tolist()}
    keys = {row: _key(candidates, row, text, reader, asked, model=verifier.model or "") for row, text in sent.items()}
    earlier = verifier.known(list(keys.values())) if keys else {}
    known = {row: asked.valid(json.loads(earlier[key])) for row, key in keys.items() if key in earlier}
    found = _Found(verdicts={row: value for row, value in known.items() if value is not None})
    found.cached = len(found.verdicts)
    left = [row for row in keys if row not in found.verdicts]
    texts = {row: ". ".join(sent[row].values()) for row in left}
    steering = {row for row, text in texts.items() if addresses_reader(text)}
    alone = [row for row, text in texts.items() if row in steering or has_foreign_words(text)]
    found.singly = len(steering)
    others = [row for row in left if row not in alone]
    queue = [others[start : start + scoring.llm_batch] for start in range(0, len(others), scoring.llm_batch)]
    queue += [[row] for row in alone]
    failures = 0
    if queue and verifier.model:
        # A batch that contradicts the list is asked again, paper by paper.
        possible = queue + [[row] for row in others if asked.allowed]
        questions = [_question([sent[row] for row in batch], reader, asked) for batch in possible]
        bound = verifier.at_most([(system + user, schema) for system, user, schema in questions])
        verifier.report(f"asking {verifier.model} about {count_of(len(left), 'paper')}: at most {bound}")
    while queue:
        batch = queue.pop(0)
        try:
            values = _asked([sent[row] for row in batch], reader, asked, verifier, found)
        except LLMError as error:
            found.usage += getattr(error, "usage", None) or Usage()
            failures, found.reason = failures + 1, str(error)
            if isinstance(error, LLMConfigError | LLMBudgetReached) or failures == _MOST_FAILURES:
                break
            continue
        if asked.allowed and _contradicts(values):  # `rows` are the best first
            queue = [[row] for row in batch] + queue
            continue
        judged = {batch[number - 1]: value for number, value in values.items()}
        verifier.keep({keys[row]: json.dumps(value) for row, value in judged.items()})
        found.verdicts |= judged
    return found


_FEWEST_COMPARED, _CHANCE = 8, 2.6  # verdicts, and standard deviations beyond which a contradiction is not chance


def _contradicts(values: Mapping[int, float]) -> bool:
    """Return whether grades by place in the list run against its order so clearly that a paper may have ordered it."""
    if len(values) < _FEWEST_COMPARED or len(set(values.values())) == 1:
        return False
    places, grades = np.array(list(values), dtype=float), np.array(list(values.values()))
    ranks = np.argsort(np.argsort(grades, kind="stable"), kind="stable").astype(float)
    for grade in set(grades.tolist()):
        ranks[grades == grade] = ranks[grades == grade].mean()
    agreement = -float(np.corrcoef(places, ranks)[0, 1])
    return agreement * math.sqrt(len(values) - 1) < -_CHANCE


def _question(
    papers: Sequence[Mapping[str, str]], reader: Reader, asked: _Question
) -> tuple[str, str, type[BaseModel]]:
    """Return instructions, text and schema of the question about these papers."""
    lines = "\n".join(json.dumps({"number": at, **paper}, ensure_ascii=False) for at, paper in enumerate(papers, 1))
    user = (
        f"{introduced('The researcher', 'reader', reader.in_words())}\n\n"
        f"{introduced('Papers, one JSON object on each line', 'papers', lines)}\n\n"
        f"Give one {asked.key} for each of these {len(papers)} papers."
    )
    return prompt(asked.name), user, asked.schema(len(papers))


def _asked(
    papers: Sequence[Mapping[str, str]], reader: Reader, asked: _Question, verifier: Verifier, found: _Found
) -> dict[int, float]:
    """Ask about these papers and return the verdicts by number from 1. Raises LLMError."""
    system, user, schema = _question(papers, reader, asked)
    complaint = partial(asked.missing, count=len(papers))
    answer = verifier.ask(system=system, user=user, schema=schema, complaint=complaint)
    found.usage += answer.usage
    values = asked.values(answer.value, len(papers))
    if not values:
        raise LLMError("the model judged none of the papers that it was asked about")
    return values


def unavailable(error: LLMError) -> AskModel:
    """Return a replacement for an LLM that cannot be set up: each call raises `error`."""

    def ask(**question: Any) -> "Completion[Any]":
        raise error.with_traceback(None)  # a traceback would keep the frames of earlier rankings in memory

    return ask


def _checked(found: _Found, values: NDArray[np.float64], verified: NDArray[np.bool_], *, asked: int) -> LLMCheck:
    return LLMCheck(
        values=values,
        verified=verified,
        doubtful=asked,
        cached=found.cached,
        usage=found.usage,
        failed=bool(found.reason),
        warning=_warning(asked, judged=len(found.verdicts), reason=found.reason, singly=found.singly),
    )


def _warning(doubtful: int, *, judged: int, reason: str, singly: int) -> str | None:
    """Say for a reader how many papers were not judged and why, and how many tried to steer the model."""
    notes = []
    if judged < doubtful:
        cause = reason or "its answers leave them out"
        done = f"a language model judged {judged} of {doubtful} papers" if judged else "no language model judged them"
        notes.append(f"{done}; the others keep their estimates: {cause}" if judged else f"{done}: {cause}")
    if singly:
        notes.append(f"{singly} of the papers address the model in their text and were judged alone")
    return "; ".join(notes) or None


def _shown(candidates: pa.Table, row: int, scoring: ScoringConfig) -> dict[str, str]:
    """Return what is sent of a paper: title and abstract, shortened and without line breaks."""
    title, abstract = (" ".join(candidates.column(name)[row].as_py().split()) for name in ("title", "abstract"))
    return {"title": title[:_LONGEST_TITLE], "abstract": abstract[: scoring.llm_abstract]}


def _key(
    candidates: pa.Table, row: int, sent: Mapping[str, str], reader: Reader, asked: _Question, *, model: str
) -> str:
    paper, version = candidates.column("paper_id")[row].as_py(), candidates.column("version")[row].as_py()
    content = ["llm check", prompt(asked.name), model, reader.in_words(), paper, version, sent]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def open_verifier(
    environ: Mapping[str, str],
    *,
    known: Callable[[Sequence[str]], Mapping[str, str]] = lambda keys: {},
    keep: Callable[[Mapping[str, str], str], None] = lambda verdicts, model: None,
    deadline: Callable[[], float | None] = lambda: None,
) -> Verifier:
    """Return the verifier for the LLM that the environment configures (I3), with a full budget.

    If none can be set up, the verifier reports the reason when papers are to be checked. `deadline`: the seconds left
    for a question to the model, None for its own limit.
    """
    try:
        config = llm_config(environ)
    except LLMConfigError as error:
        return Verifier(ask=unavailable(error), model=None)
    from paper_assets.models.llm import LanguageModel, upper_bound  # imported late: most rankings need no LLM

    budget = Budget(calls=config.budget_calls, tokens=config.budget_tokens)
    model = LanguageModel(config=config, purpose="checks of doubtful papers", budget=budget)

    def ask(**question: Any) -> "Completion[Any]":
        left = deadline()
        seconds = config.deadline if left is None else min(left, config.deadline)
        return model.ask(**question, deadline=seconds)

    def at_most(questions: "Questions") -> str:
        bound = budget.capped(upper_bound(questions, config=config))
        return cost_in_words(bound.calls, bound.tokens, cost(config, bound))

    return Verifier(
        ask=ask,
        model=config.model,
        at_most=at_most,
        known=known,
        keep=lambda verdicts: keep(verdicts, config.model),
    )
