"""Prompts of actor and critic, the shapes of their answers, and the personas they write for (B9).

Text by other people or models (the paper, an earlier rewrite, its critique, the examples) is data and is fenced
(`text/cleaning.py`), apart from the instructions (`text/prompts/`). Personas are data too: `personas.toml`. The critic
lists faults and then gives five subscores; code computes the total and its caps. The critic does not see the
thresholds. Whether each sentence is supported is asked apart (`text/support.py`).
"""

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from paper_assets.errors import InvalidInput
from paper_assets.settings import RewritingConfig
from paper_assets.stores.best_practices import BestPractice
from paper_assets.stores.rewrites import Attempt, NewItem
from paper_assets.text.cleaning import fenced
from paper_assets.text.languages import LANGUAGES
from paper_assets.text.prompts import prompt


@dataclass(frozen=True, slots=True, kw_only=True)
class Persona:
    """The reader of a level. `words`: least and most words requested; `lix`: highest readable LIX, None for any.

    `shared_words`: least share of the words that must be in the original too.
    """

    reader: str
    role: str
    tone: str
    vocabulary: str
    structure: str
    words: tuple[int, int]
    shared_words: float
    lix: int | None = None
    critic: tuple[str, ...]

    @property
    def length(self) -> str:
        """Return the requested length in words for the prompt."""
        return f"{self.words[0]} to {self.words[1]} words"


@cache
def personas() -> dict[str, Persona]:
    """Return the packaged personas by level."""
    record = tomllib.loads(Path(__file__).with_name("personas.toml").read_text(encoding="utf-8"))
    return {
        level: Persona(**{**entry, "words": tuple(entry["words"]), "critic": tuple(entry["critic"])})
        for level, entry in record.items()
    }


def persona(level: str) -> Persona:
    """Return the persona of a level. Raises InvalidInput."""
    by_level = personas()
    if level not in by_level:
        raise InvalidInput(f"level {level!r} is unknown; use one of {', '.join(by_level)}")
    return by_level[level]


FaultKind = Literal[
    "invented", "wrong_number", "overstated", "turned_round", "other_text", "omission", "level", "wording"
]
_CAPS: dict[str, int] = {"invented": 70, "wrong_number": 70, "overstated": 50, "turned_round": 50, "other_text": 0}
SUBSCORES = ("true_to_original", "numbers_and_conditions", "completeness", "fits_the_reader", "clear_writing")
_MOST = 20  # of each subscore; five of them make 100
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=300)]
Points = Annotated[int, Field(strict=True, ge=0, le=_MOST)]


def _kind(given: object) -> object:
    """Take the name of a kind in any spelling; a fault of an unknown kind counts as wording."""
    word = given.strip().lower().replace(" ", "_").replace("-", "_") if isinstance(given, str) else given
    return word if not isinstance(word, str) or word in get_args(FaultKind) else "wording"


class Fault(BaseModel):
    """One thing that is wrong with the text in hand."""

    kind: Annotated[FaultKind, BeforeValidator(_kind)]
    words: Text  # of the rewrite, or of the original where they are missing
    why: Text = ""


class Critique(BaseModel):
    """The critic's answer, in the order in which it is to think: faults, subscores, advice."""

    faults: list[Fault] = Field(default=[], max_length=12)
    true_to_original: Points
    numbers_and_conditions: Points
    completeness: Points
    fits_the_reader: Points
    clear_writing: Points
    advice: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1_000)] = ""

    @property
    def subscores(self) -> tuple[int, ...]:
        """Return the five subscores by name."""
        return tuple(getattr(self, name) for name in SUBSCORES)


def total(critique: Critique, *, unsupported: int = 0) -> int:
    """Return the total, 0 to 100: the sum of the subscores, capped by the worst fault and by unsupported sentences."""
    kinds = [fault.kind for fault in critique.faults] + ["invented"] * bool(unsupported)
    return min([sum(critique.subscores), *(_CAPS[kind] for kind in kinds if kind in _CAPS)])


def in_words(critique: Critique) -> str:
    """Format faults and advice for the author of the next attempt and for a person."""
    faults = [
        f"{fault.kind.replace('_', ' ')}: “{fault.words}”{f' ({fault.why})' if fault.why else ''}"
        for fault in critique.faults
    ]
    return "\n".join(part for part in (*faults, critique.advice) if part)


_MOST_ORIGINAL = 12_000  # characters; a longer text is not an abstract
_MOST_TEXT, _MOST_CRITIQUE = 6_000, 6_000  # characters of a rewrite, and of its critique in the next prompt
Keyword = Annotated[str, StringConstraints(strip_whitespace=True, max_length=80)]


class Draft(BaseModel):
    """The actor's answer."""

    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_MOST_TEXT)]
    keywords: list[Keyword] = Field(default=[], max_length=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """What a model is sent: system and user part."""

    system: str
    user: str


def prompt_version(level: str) -> str:
    """Return a hash that changes with anything that goes into the level's prompts."""
    parts: list[Any] = [prompt("rewrite"), prompt("criticise"), repr(persona(level))]
    parts += [Draft.model_json_schema(), Critique.model_json_schema()]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


def longest_questions(item: NewItem, *, examples: str) -> tuple[Prompt, Prompt]:
    """Return the longest prompts that an attempt may send to actor and critic."""
    letter = "x" if item.language == "en" else "가"  # three bytes, as many as a letter of most scripts has at most
    text, critique = letter * _MOST_TEXT, letter * _MOST_CRITIQUE
    previous = Attempt(
        attempt=1, text=text, keywords=(), score=0, critique=critique, unsupported=(), examples=(), model="",
        input_tokens=0, output_tokens=0, made_at=datetime(1, 1, 1, tzinfo=UTC),
    )  # fmt: skip
    return actor_question(item, previous=previous, examples=examples), critic_question(item, text, readability=99.0)


def actor_question(item: NewItem, *, previous: Attempt | None, held: Sequence[str] = (), examples: str) -> Prompt:
    """Ask for a rewrite; from the second attempt on with the previous one and its faults.

    `held`: why the gate stopped the previous one. `examples` may be empty.
    """
    of_level = persona(item.target_level)
    parts = [fenced("original", _original(item))]
    if examples:
        parts.append(
            "Originals of other papers, and rewrites of them that were good. Take style and tone from them, never "
            "content.\n" + fenced("examples", examples)
        )
    if previous is not None:
        stopped = f"It cannot be used as it is: {'; '.join(held)}.\n" if held else ""
        parts.append(
            f"Your attempt {previous.attempt} got {previous.score} of 100 points.\n"
            + fenced("attempt", previous.text)
            + "\nThe critic said:\n"
            + fenced("critique", (stopped + previous.critique)[:_MOST_CRITIQUE])
            + "\nWrite the whole text again and correct what was criticised."
        )
    parts.append("Rewrite the original for your reader.")
    system = prompt(
        "rewrite",
        role=of_level.role,
        reader=of_level.reader,
        tone=of_level.tone,
        vocabulary=of_level.vocabulary,
        structure=of_level.structure,
        length=of_level.length,
        readable=_readable(of_level),
        language=_language(item),
    )
    return Prompt(system=system, user="\n\n".join(parts))


def critic_question(item: NewItem, text: str, *, readability: float | None = None) -> Prompt:
    """Ask for faults, subscores and advice, with the original beside the rewrite and how hard it is to read."""
    of_level = persona(item.target_level)
    system = prompt(
        "criticise",
        reader=of_level.reader,
        points="; ".join(of_level.critic),
        language=_language(item),
        length=of_level.length,
        structure=of_level.structure,
    )
    parts = [fenced("original", _original(item)), fenced("rewrite", text)]
    if readability is not None and of_level.lix is not None:
        parts.append(f"Readability (LIX, lower is easier): {readability:.0f}; for this reader at most {of_level.lix}.")
    return Prompt(system=system, user="\n\n".join([*parts, "Judge the rewrite."]))


def _readable(of_level: Persona) -> str:
    if of_level.lix is None:
        return ""
    words = max(12, of_level.lix // 3)
    return f" Easy to read: sentences of at most {words} words on average, few words of more than six letters."


def _language(item: NewItem) -> str:
    return LANGUAGES.get(item.language, item.language)


def _original(item: NewItem) -> str:
    return f"{' '.join(item.title.split())[:500]}\n\n{item.original_text[:_MOST_ORIGINAL]}"


_BYTES_A_TOKEN = 3  # tokenizers rarely need more than one token for three bytes
_CUT = "…"


def example_block(examples: Sequence[BestPractice], *, config: RewritingConfig) -> str:
    """Return the examples for the prompt, "" without any (TC6), in at most `config.example_tokens` with the fences.

    The first `config.examples` are pairs of original and rewrite with their level, each text cut at a word to
    `config.example_characters`, paragraphs kept; shorter if not all of them fit.
    """
    chosen = [each for each in examples if each.text.strip()][: config.examples]
    room = config.example_tokens * _BYTES_A_TOKEN
    shown: list[str] = []
    for place, example in enumerate(chosen):
        name = f"example-{place + 1}"
        share = room // (len(chosen) - place) - _size(fenced(name, _pair(example.target_level, "", ""))) - 1
        rewrite = _within(cut_at_word(_paragraphs(example.text), config.example_characters), share)
        original = cut_at_word(_paragraphs(example.original_text), config.example_characters)
        if _size(rewrite) + _size(original) > share:  # the rewrite is what is imitated, so it gets the larger part
            rewrite = _within(rewrite, max(share * 2 // 3, share - _size(original)))
            original = _within(original, share - _size(rewrite))
        if rewrite:
            shown.append(fenced(name, _pair(example.target_level, original, rewrite)))
            room -= _size(shown[-1]) + 1
    return "\n".join(shown)


def _pair(level: str, original: str, rewrite: str) -> str:
    return f"original:\n{original}\n\nrewrite for {level}:\n{rewrite}"


def _paragraphs(text: str) -> str:
    parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", text))
    return "\n\n".join(part for part in parts if part)


def cut_at_word(text: str, most: int) -> str:
    """Return the text, cut at a word and ended by an ellipsis if it has more characters than the limit."""
    if len(text) <= most:
        return text
    head = text[: max(most - len(_CUT), 0)]
    if head and not text[len(head)].isspace():
        head = re.sub(r"\s\S*$", "", head) or head  # a single long word is cut inside
    return f"{head.rstrip()}{_CUT}" if head.strip() else ""


def _within(text: str, most: int) -> str:
    """Cut the text by bytes: a Korean letter has three."""
    if _size(text) <= most:
        return text
    letters = len(text.encode("utf-8", "replace")[: max(most - len(_CUT.encode()), 0)].decode("utf-8", "ignore"))
    return cut_at_word(text, letters + len(_CUT)) if letters else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
