"""Define stance labels: whether a passage supports or contradicts a claim, and the sentence that shows it (SPEC R7).

A label counts only with a sentence that occurs in the passage. Wording does not separate stances: two wordings of a
question find the same documents.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Stance = Literal["supports", "contradicts"]
STANCES: tuple[Stance, ...] = ("supports", "contradicts")


@dataclass(frozen=True, slots=True)
class Label:
    """The stance of a passage on the claim. `sentence` as it occurs in the passage; None if `stance` is neutral."""

    stance: Stance | Literal["neutral"]
    sentence: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A text to be judged; a `private` one is not sent to a judge outside the machine (M3)."""

    text: str
    private: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Labels:
    """One label for each passage, None if it was not judged; `reasons`: why, each once.

    `failed`: asking again later may help. `over`: no further passage can be judged in this run.
    """

    labels: tuple[Label | None, ...]
    reasons: tuple[str, ...] = ()
    failed: bool = False
    over: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StanceJudge:
    """A judge of stances. If none is available, it has no `name`, and `label` returns the reason; `kind` is for people.

    `label(claim, passages)` does not raise if a model fails.
    """

    name: str | None
    kind: str
    label: Callable[[str, Sequence[Passage]], Labels]


def no_judge(reason: str) -> StanceJudge:
    """Return the judge to use when no model is configured."""

    def label(claim: str, passages: Sequence[Passage]) -> Labels:
        return Labels(labels=(None,) * len(passages), reasons=(reason,), over=True)

    return StanceJudge(name=None, kind="nobody", label=label)
