"""Stance: whether a passage supports a claim or contradicts it, and the sentence of the passage that says so (SPEC R7).

A judge labels passages; what it labels counts only where it quotes a sentence that stands in the passage. Wording is
no judge: two wordings of a question find the same documents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from paper_assets.text.sentences import quoted_sentence

Stance = Literal["supports", "contradicts"]
STANCES: tuple[Stance, ...] = ("supports", "contradicts")


@dataclass(frozen=True, slots=True)
class Label:
    """What a passage says of the claim. `sentence` as it stands in the passage; None where `stance` is neutral."""

    stance: Stance | Literal["neutral"]
    sentence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text to be judged; a `private` one is shown to no judge outside the machine (M3)."""

    text: str
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """One label a passage, None where it was not judged; `reasons` say why, each once.

    `failed`: asking again later may give more. `over`: nothing further will be judged in this run.
    """

    labels: tuple[Label | None, ...]
    reasons: tuple[str, ...] = ()
    failed: bool = False
    over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StanceJudge:
    """Who judges. `name` is None where nobody can, and `label` then says why; `kind` is for people.

    `label(claim, passages)` does not raise for the sake of a model.
    """

    name: str | None
    kind: str
    label: Callable[[str, Sequence[Passage]], Labels]


def nobody(reason: str) -> StanceJudge:
    """Stands in where no model is configured that could judge."""

    def label(claim: str, passages: Sequence[Passage]) -> Labels:
        return Labels(labels=(None,) * len(passages), reasons=(reason,), over=True)

    return StanceJudge(name=None, kind="nobody", label=label)


def checked_label(stance: Any, sentence: Any, text: str) -> Label | None:
    """The label that a model's words amount to; None where it is no stance or its sentence is not in the text."""
    if stance == "neutral":
        return Label("neutral")
    if stance not in STANCES or not isinstance(sentence, str):
        return None
    found = quoted_sentence(sentence, text)
    return Label(stance, found) if found else None
