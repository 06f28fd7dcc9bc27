"""Name how likely a paper is to be on topic, and describe a list in a sentence (SPEC G17, G17b).

Readers see levels; probabilities are one step away. In the mode `seed` relevance is not a probability, and papers have
no level.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LIKELY = 0.5  # the probability from which a paper is likely; docs/evaluation.md has the share that is right by level


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """How likely a paper is: a name for readers, dots from 1 to 3, and the least probability."""

    name: str
    dots: int
    least: float


LEVELS = (
    Level(name="very likely", dots=3, least=0.9),
    Level(name="likely", dots=2, least=LIKELY),
    Level(name="possible", dots=1, least=0.0),
)


def level_of(probability: float) -> Level:
    """Return the level of a paper that is in a list."""
    return next(level for level in LEVELS if probability >= level.least)


def learned_of(row: Mapping[str, Any]) -> float:
    """Return by how much the reader's ratings changed the probability of a row (L4); 0 if they were not used."""
    return row.get("learned") or 0.0


def probability_of(row: Mapping[str, Any]) -> float:
    """Return the probability by which a row was ordered: its relevance plus what was learned from ratings."""
    return row["semantic_relevance"] + learned_of(row)


def level_of_row(row: Mapping[str, Any], header: Mapping[str, Any]) -> Level | None:
    """Return the level of a row of a stored ranking; None in the mode `seed`, and for a paper that is not possible."""
    floor, probability = header.get("threshold"), probability_of(row)
    return None if floor is None or probability < floor else level_of(probability)


def counted(probabilities: Iterable[float]) -> dict[str, int]:
    """Count papers by the name of their level, as headers store it (`levels`)."""
    names = [level_of(probability).name for probability in probabilities]
    return {level.name: names.count(level.name) for level in LEVELS}


def headline_of(header: Mapping[str, Any], shown: int) -> str:
    """Describe a list of `shown` papers, without a dot: "5 papers for you: 3 likely, 2 possible. 8 more likely"."""
    if header.get("quiet"):
        return "A quiet day: no paper is about your interests"
    if not shown:
        return "Nothing to read today"
    papers, levels = f"{'1 paper' if shown == 1 else f'{shown} papers'} for you", header.get("levels")
    if levels is None:
        return papers
    counts = {"likely": levels["very likely"] + levels["likely"], "possible": levels["possible"]}
    named = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    more = f". {header['more_likely']} more likely" if header.get("more_likely") else ""
    return f"{papers}: {named}{more}"
