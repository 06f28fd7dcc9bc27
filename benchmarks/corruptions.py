"""Corrupt texts in one place and one way, for the benchmarks of faithfulness, critic and checks.

Used by `python -m benchmarks.faithfulness` and `python -m benchmarks.mutate_and_judge`. The random generator is passed
in.

Adding a kind: a function like those below, and a line in `NUMBERS_AND_NAMES` or `BY_MEANING`.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Corrupt = Callable[[str, "Strangers", random.Random], str | None]

_NUMBER = re.compile(r"(?<![\w.,\\^{/-])(\d{1,3}(?:,\d{3})+|\d+(?:\.\d+)?)(?![\w^]|[.,]\d|-)")
_PERCENT = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?)(?:\\%|\s?%)")
_WORDS = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_NUMBER_WORD = re.compile(
    rf"\b({'|'.join(_WORDS)})\b(?![- ](?:fold|hundred|thousand|million|third|fifth))", re.IGNORECASE
)
_FRACTION = re.compile(r"\b(half of|a third of|one third of|two thirds of|twice|threefold)(?= [a-z])", re.IGNORECASE)
_FRACTIONS = ("half of", "a third of", "a quarter of", "three quarters of", "twice", "four times", "tenfold")
_UNIT = re.compile(
    r"(?<![\w.])(\d+(?:\.\d+)?)\s?-?(ms|seconds?|minutes?|hours?|days?|weeks?|months?|years?|[KMGT]B|km|cm|mm|[kMG]?Hz)\b"
)
_UNITS = ("ms", "seconds", "minutes", "hours", "days", "weeks", "months", "years", "MB", "GB", "TB", "km", "cm", "mm")
_NAME = re.compile(r"(?<![.!?:;]\s)(?<!^)(?<=\s)([A-Z][A-Za-z]*[A-Z0-9][\w-]*|[A-Z][a-z]{3,})(?=[\s,.;)])")
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_VERBS = ("improves", "shows", "outperforms", "reports", "confirms", "was used in")
_TURNED = {
    "improves": "worsens", "improve": "worsen", "outperforms": "falls behind", "outperform": "fall behind",
    "increases": "decreases", "increase": "decrease", "reduces": "increases", "reduce": "increase", "higher": "lower",
    "better": "worse", "faster": "slower", "more": "less", "without": "with", "significantly": "hardly",
    "effective": "ineffective", "robust": "fragile", "achieves": "fails to achieve", "enables": "prevents",
    "lower": "higher", "fewer": "more", "smaller": "larger", "can": "cannot", "stable": "unstable",
    "improved": "worsened", "improving": "worsening", "outperforming": "falling behind", "increased": "decreased",
    "increasing": "decreasing", "reduced": "increased", "reducing": "increasing", "superior": "inferior",
    "surpasses": "trails", "surpassing": "trailing", "stronger": "weaker", "enhances": "impairs", "enhance": "impair",
    "worse": "better", "cannot": "can", "does not": "does", "do not": "do", "efficient": "inefficient",
    "accurate": "inaccurate", "reliable": "unreliable", "beat": "lost to", "beats": "loses to",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Strangers:
    """What other papers say: their names (each with the text it is from), and their rewrites or abstracts."""

    names: Sequence[str]
    texts: Sequence[str]


def times_100(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Multiply a number by a hundred."""
    return _number(text, chance, lambda value: f"{value * 100:,.10g}" if value >= 1 else f"{value * 100:.10g}")


def by_100(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Divide a number by a hundred."""
    return _number(text, chance, lambda value: f"{value / 100:.10g}")


def invented_figure(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Replace a number by another of the same size."""
    return _number(text, chance, lambda value: f"{value * chance.uniform(1.2, 1.9) + 1:.4g}")


def number_word(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Replace a number word by another."""
    return _replaced(text, _NUMBER_WORD, chance, lambda found: chance.choice([w for w in _WORDS if w != found.lower()]))


def fraction(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Replace half by a third, twice by four times."""
    return _replaced(
        text, _FRACTION, chance, lambda found: chance.choice([f for f in _FRACTIONS if f != found.lower()])
    )


def percent_to_times(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Replace 12 % by 12 times."""
    return _replaced(text, _PERCENT, chance, lambda found: f"{re.sub(r'[^0-9.]', '', found)} times")


def other_unit(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Replace 500 ms by 500 hours."""

    def another(found: str) -> str:
        value, unit = re.match(r"([\d.]+)\s?-?(.*)", found).groups()  # type: ignore[union-attr]
        return f"{value} {chance.choice([u for u in _UNITS if u.rstrip('s') != unit.rstrip('s')])}"

    return _replaced(text, _UNIT, chance, another)


def swapped_name(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Replace a name by one of another paper."""
    name = _stranger(text, strangers, chance)
    return _replaced(text, _NAME, chance, lambda found: name) if name else None


def name_at_start(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Begin a sentence with a name of another paper."""
    name = _stranger(text, strangers, chance)
    sentences = _SENTENCE.split(text)
    if not name or len(sentences) < 2:
        return None
    place = chance.randrange(1, len(sentences))
    subject, _, rest = sentences[place].partition(" ")
    if chance.random() < 0.5 or not rest:
        sentences.insert(place, f"{name} {chance.choice(_VERBS)} the same.")
    else:
        sentences[place] = f"{name} {chance.choice(_VERBS)} {subject[0].lower()}{subject[1:]} {rest}"
    return " ".join(sentences)


def invented_name(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Begin a sentence with an invented name."""
    letters = "".join(chance.choice(pair) for pair in ("ZVKB", "aeo", "rlv", "aiu", "nkm", "eio", "tx"))
    sentences = _SENTENCE.split(text)
    sentences.insert(chance.randrange(len(sentences)) + 1, f"{letters} {chance.choice(_VERBS)} the same.")
    return " ".join(sentences)


def turned_round(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Reverse a result."""
    words = re.compile(rf"\b({'|'.join(_TURNED)})\b")
    return _replaced(text, words, chance, lambda found: _TURNED[found])


def other_text(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    """Return a good text about another paper."""
    others = [each for each in strangers.texts if each != text]
    return chance.choice(others) if others else None


NUMBERS_AND_NAMES: Mapping[str, Corrupt] = {
    "number x 100": times_100,
    "number / 100": by_100,
    "invented figure": invented_figure,
    "number word": number_word,
    "half, twice, a third": fraction,
    "12 % -> 12 times": percent_to_times,
    "another unit": other_unit,
    "swapped name": swapped_name,
    "name begins sentence": name_at_start,
    "invented name begins": invented_name,
}
BY_MEANING: Mapping[str, Corrupt] = {"turned round": turned_round, "another paper's": other_text}


def names_in(text: str) -> list[str]:
    """Return the names of a text that do not begin a sentence."""
    return _NAME.findall(text)


def _stranger(text: str, strangers: Strangers, chance: random.Random) -> str | None:
    held = text.casefold()
    for _ in range(20):
        name = chance.choice(strangers.names)
        if name.casefold().rstrip("s") not in held:
            return name
    return None


def _number(text: str, chance: random.Random, change: Callable[[float], str]) -> str | None:
    return _replaced(text, _NUMBER, chance, lambda found: change(float(found.replace(",", ""))))


def _replaced(text: str, pattern: re.Pattern[str], chance: random.Random, change: Callable[[str], str]) -> str | None:
    found = list(pattern.finditer(text))
    if not found:
        return None
    one = chance.choice(found)
    changed = f"{text[: one.start()]}{change(one.group())}{text[one.end() :]}"
    return changed if changed != text else None
