"""The critic's answer and what code makes of it (B9): faults first, then five subscores; sum and caps are code's.

The critic is not told what a total is worth: what passes, waits or is archived is decided elsewhere.
"""

from typing import Annotated, Literal, get_args

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

FaultKind = Literal[
    "invented", "wrong_number", "overstated", "turned_round", "other_text", "omission", "level", "wording"
]
_CAPS: dict[str, int] = {"invented": 70, "wrong_number": 70, "overstated": 50, "turned_round": 50, "other_text": 0}
# How models that take no schema call the same.
_MEANT: tuple[tuple[str, FaultKind], ...] = (
    ("invent", "invented"), ("hallucin", "invented"), ("fabricat", "invented"), ("unsupported", "invented"),
    ("added", "invented"), ("number", "wrong_number"), ("figure", "wrong_number"), ("unit", "wrong_number"),
    ("overst", "overstated"), ("exagger", "overstated"), ("stronger", "overstated"), ("turned", "turned_round"),
    ("revers", "turned_round"), ("contradict", "turned_round"), ("another", "other_text"), ("unrelated", "other_text"),
    ("miss", "omission"), ("omi", "omission"), ("level", "level"), ("reader", "level"), ("jargon", "level"),
)  # fmt: skip
SUBSCORES = ("true_to_original", "numbers_and_conditions", "completeness", "fits_the_reader", "clear_writing")
_MOST = 20  # of each subscore; five of them make 100
Text = Annotated[str, StringConstraints(strip_whitespace=True, max_length=600)]
Points = Annotated[int, Field(strict=True, ge=0, le=_MOST)]


def _kind(said: object) -> object:
    if not isinstance(said, str):
        return said
    word = said.strip().lower().replace(" ", "_").replace("-", "_")
    if word in get_args(FaultKind):
        return word
    return next((kind for part, kind in _MEANT if part in word), "wording")


class Fault(BaseModel):
    """One thing that is wrong with the text in hand."""

    kind: Annotated[FaultKind, BeforeValidator(_kind)]
    words: Text  # of the rewrite, or of the original where they are missing
    why: Text = ""


class Critique(BaseModel):
    """The critic's answer, in the order in which it is to think: faults, subscores, advice."""

    faults: list[Fault] = Field(default=[], max_length=20)
    true_to_original: Points
    numbers_and_conditions: Points
    completeness: Points
    fits_the_reader: Points
    clear_writing: Points
    advice: Annotated[str, StringConstraints(strip_whitespace=True, max_length=4_000)] = ""

    @property
    def subscores(self) -> tuple[int, ...]:
        return tuple(getattr(self, name) for name in SUBSCORES)


def total(critique: Critique) -> int:
    """0 to 100: the sum of the subscores, at most what the worst fault allows."""
    return min([sum(critique.subscores), *(_CAPS[fault.kind] for fault in critique.faults if fault.kind in _CAPS)])


def in_words(critique: Critique) -> str:
    """Faults and advice, for the author of the next attempt and for a person."""
    faults = [
        f"{fault.kind.replace('_', ' ')}: “{fault.words}”{f' ({fault.why})' if fault.why else ''}"
        for fault in critique.faults
    ]
    return "\n".join(part for part in (*faults, critique.advice) if part)
