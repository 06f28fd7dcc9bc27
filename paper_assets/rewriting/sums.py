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


def is_difference(each: Quantity, text: str, known: Sequence[Quantity]) -> bool:
    """Return whether it is the difference in points of two percentages of the original."""
    if "percent" not in each.kinds or not _POINTS.search(text[each.start : each.end + _AFTER]):
        return False
    shares = {one.value for one in known if "percent" in one.kinds}
    return any(_close(round(one - other, 6), each.value) for one in shares for other in shares if one > other)


def is_part(each: Quantity, known: Sequence[Quantity], source: str) -> bool:
    """Return whether it is "half" where the original counts a whole and its half, or has two equal parts."""
    if each.kinds != {"share"} or each.value != 0.5:
        return False
    if _TWO_EQUAL.search(source):
        return True
    counts = {one.value for one in known if one.kinds == {"count"} and one.unit is None and one.value >= _COUNTED}
    return any(2 * one in counts for one in counts)


def rates_of(known: Sequence[Quantity], source: str) -> Iterator[float]:
    """Yield the shares that the original gives as two counts: "71 of 90", "of 90 cases, 71"."""
    for one, other in pairwise(known):
        if _PART_OF.fullmatch(source[one.end : other.start]) and 0 < one.value < other.value:
            yield one.value / other.value
        elif (
            0 < other.value < one.value
            and _OF_ALL.search(source[max(0, one.start - 8) : one.start])
            and _THINGS.fullmatch(source[one.end : other.start])
        ):
            yield other.value / one.value


def is_rounded(value: float, each: Quantity) -> bool:
    return _close(round(value, each.decimals), abs(each.value)) if each.decimals is not None else False


def shown_sums(said: Sequence[Quantity], known: Sequence[Quantity], text: str) -> Iterator[Quantity]:
    """Yield the numbers of a rewrite that a sentence shows to follow from two numbers of the original before or after.

    The change "from a to b" in percent or as a factor, the factor between two numbers just before it, and the product
    of two numbers just before it, if it is said to be the total.
    """
    said = [each for each in said if each.shown != "one"]  # the pronoun
    for place, each in enumerate(said):
        if each.decimals is None:
            continue
        for first in range(max(0, place - 2), min(place + 2, len(said) - 1)):
            one, other = said[first], said[first + 1]
            if each in (one, other) or not (_is_known(one, known) and _is_known(other, known)):
                continue
            start, end = min(one.start, each.start), max(other.end, each.end)
            if _SENTENCE_END.search(text[start:end]):
                continue
            if _follows(each, one, other, text):
                yield each


def _follows(each: Quantity, one: Quantity, other: Quantity, text: str) -> bool:
    if one.value <= 0 or other.value <= 0 or one.value == other.value:
        return False
    change = _FROM.search(text[max(0, one.start - 12) : one.start]) and _TO.fullmatch(text[one.end : other.start])
    if change and "percent" in each.kinds:
        return is_rounded(100 * abs(one.value - other.value) / one.value, each)
    if "times" in each.kinds and (change or other.end <= each.start):
        return is_rounded(max(one.value, other.value) / min(one.value, other.value), each)
    total = other.end <= each.start and _TOTAL.search(text[other.end : each.end + 20])
    return bool(total) and each.kinds == {"count"} and _close(one.value * other.value, each.value)


def _is_known(each: Quantity, known: Sequence[Quantity]) -> bool:
    return any(_close(one.value, each.value) and one.unit == each.unit for one in known)


def _close(value: float, other: float) -> bool:
    return math.isclose(value, other, rel_tol=1e-9)
