"""Recognise the numbers of a rewrite that follow from other numbers: differences, shares of counts, sums it shows.

"It falls from 0.213 to 0.127, by 40 %" shows its sum: both numbers are in the original, and a reader can check the
third. A computed number whose terms the rewrite does not show is a question to the critic. To add a sum, write what
joins its terms into a pattern, and yield the result in `shown_sums`: any two numbers of a sentence, joined by nothing,
would give almost every number.
"""

import math
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from paper_assets.rewriting.quantities import Quantity

_PART_OF = re.compile(r"\s(?:out )?of (?:all )?(?:the )?")
_OF_ALL = re.compile(r"\bof (?:the )?$", re.IGNORECASE)
_THINGS = re.compile(r"\s[\w\s-]{1,40},\s")
_TWO_EQUAL = re.compile(r"\b(?:two|both)\b[^.;,]{0,30}\bequal", re.IGNORECASE)
_POINTS = re.compile("point|punkt", re.IGNORECASE)
_AFTER = 30  # characters after a percentage in which "points" may be
_COUNTED = 10  # least count of which a half is one
_FROM = re.compile(r"\b(?:from|von)\s(?:[a-z]+\s)?$", re.IGNORECASE)
_TO = re.compile(r"\s(?:to|auf)\s(?:[a-z]+\s)?")
_TOTAL = re.compile(r"\bin total\b|\baltogether\b|\binsgesamt\b|\bin all\b")
_SENTENCE_END = re.compile(r"[.!?]\s|\n")


def is_difference(number: Quantity, text: str, known: Sequence[Quantity]) -> bool:
    """Return whether it is the difference in points of two percentages of the original."""
    if "percent" not in number.kinds or not _POINTS.search(text[number.start : number.end + _AFTER]):
        return False
    shares = {given.value for given in known if "percent" in given.kinds}
    return any(_close(round(one - other, 6), number.value) for one in shares for other in shares if one > other)


def is_part(number: Quantity, known: Sequence[Quantity], source: str) -> bool:
    """Return whether it is "half" where the original counts a whole and its half, or has two equal parts."""
    if number.kinds != {"share"} or number.value != 0.5:
        return False
    if _TWO_EQUAL.search(source):
        return True
    counts = {
        given.value for given in known if given.kinds == {"count"} and given.unit is None and given.value >= _COUNTED
    }
    return any(2 * count in counts for count in counts)


def rates_of(known: Sequence[Quantity], source: str) -> Iterator[float]:
    """Yield the shares that the original gives as two counts: "71 of 90", "of 90 cases, 71"."""
    for first, second in pairwise(known):
        if _PART_OF.fullmatch(source[first.end : second.start]) and 0 < first.value < second.value:
            yield first.value / second.value
        elif (
            0 < second.value < first.value
            and _OF_ALL.search(source[max(0, first.start - 8) : first.start])
            and _THINGS.fullmatch(source[first.end : second.start])
        ):
            yield second.value / first.value


def is_rounded(value: float, number: Quantity) -> bool:
    """Return whether a number in digits is the value, rounded to the number's decimals."""
    return _close(round(value, number.decimals), abs(number.value)) if number.decimals is not None else False


def shown_sums(numbers: Sequence[Quantity], known: Sequence[Quantity], text: str) -> Iterator[Quantity]:
    """Yield the numbers of a rewrite that a sentence shows to follow from two numbers of the original before or after.

    The change "from a to b" in percent or as a factor, the factor between two numbers just before it, and the product
    of two numbers just before it, if it is said to be the total.
    """
    numbers = [number for number in numbers if number.shown != "one"]  # the pronoun
    for place, number in enumerate(numbers):
        if number.decimals is None:
            continue
        for first in range(max(0, place - 2), min(place + 2, len(numbers) - 1)):
            one, other = numbers[first], numbers[first + 1]
            if number in (one, other) or not (_is_known(one, known) and _is_known(other, known)):
                continue
            start, end = min(one.start, number.start), max(other.end, number.end)
            if _SENTENCE_END.search(text[start:end]):
                continue
            if _follows(number, one, other, text):
                yield number


def _follows(result: Quantity, first: Quantity, second: Quantity, text: str) -> bool:
    if first.value <= 0 or second.value <= 0 or first.value == second.value:
        return False
    change = _FROM.search(text[max(0, first.start - 12) : first.start]) and _TO.fullmatch(
        text[first.end : second.start]
    )
    if change and "percent" in result.kinds:
        return is_rounded(100 * abs(first.value - second.value) / first.value, result)
    if "times" in result.kinds and (change or second.end <= result.start):
        return is_rounded(max(first.value, second.value) / min(first.value, second.value), result)
    total = second.end <= result.start and _TOTAL.search(text[second.end : result.end + 20])
    return bool(total) and result.kinds == {"count"} and _close(first.value * second.value, result.value)


def _is_known(number: Quantity, known: Sequence[Quantity]) -> bool:
    return any(_close(given.value, number.value) and given.unit == number.unit for given in known)


def _close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-9)
