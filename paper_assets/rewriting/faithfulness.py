"""Find numbers and names in a rewrite that its original lacks (B10), for the critic and for the gate, and mark them.

The meaning of sentences is not judged. Different spellings of the same thing match: 1,000 and 1000, 50% and half and
0.5, 10^{6} and a million, three and 3, 3x and threefold, 90 minutes and 1.5 hours, a rounded number (93.7 and 94, or
"about 90"), an acronym and its expansion. Numbers of another kind, unit or scale differ: 12 % is not 12 times, 500 ms
not 500 s, and no number is itself times 100. Precision and recall on synthetic corruptions:
docs/evaluation-rewrites.md (`python -m benchmarks.faithfulness`).

Rules cannot know every form. `certain` are only numbers whose digits the original has with another power of ten, sign
or unit. Everything else, every computed number and every name included, is a question to the critic and holds nothing
back without its answer.

A computed number is supported if the rewrite shows its sum: "it falls from 0.213 to 0.127, by 40 %". Both numbers are
in the original, and a reader can check the third. To add a sum, write what joins its terms into a pattern, and yield
the result in `_shown_sums`: any two numbers of a sentence, joined by nothing, would give almost every number.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from paper_assets.rewriting.names import name_key, new_names, words_of
from paper_assets.rewriting.quantities import (
    DECIMAL_COMMA,
    PREFIX_SCALES,
    NumberKind,
    Quantity,
    plain,
    quantities,
    starts_of_ranges,
    units_alone,
    with_scales,
)
from paper_assets.text.languages import language_of
from paper_assets.text.words import FUNCTION_WORDS, stem, stems_in

_ENGLISH = "en"
_ANY_KIND: frozenset[NumberKind] = frozenset({"count", "percent", "times"})  # where signs in words are not read
_SCALES = (1e3, 1e6, 1e9)
_PERCENTILE = re.compile(r"\b[pP](\d\d(?:\.\d+)?)\b|\b(\d\d(?:\.\d+)?)th percentile")
_VERSION = re.compile(r"\b[vV](\d+)\b")
_CENTS = re.compile(r"\s?(?:cents?\b|¢)", re.IGNORECASE)
_IN_A_HUNDRED = re.compile(r"\b(?:of|in|out of|von) (?:every )?(?:100|hundred|a hundred|hundert)\b")
_OUT_OF = re.compile(r"\s(?:[a-z]+\s)?(?:in|of|out of|von|aus)\s(?:every\s)?(?:about\s)?")
_HEDGED = 0.06  # relative tolerance for a number with "about"
_NEXT_ROUND = 0.2  # relative tolerance for the next round number of "more than"
_BOUNDED = 0.1  # relative tolerance for the round number of "less than"
_SHARE = 0.035  # tolerance of a share in words: "a third" for 35 %
_LONGEST_ITEM = 7  # words
_SHARE_OF_ONE = 0.01  # "three quarters" for 0.74; most other numbers below one are not shares
_SHARE_BESIDE_WORDS = 0.005  # if the original has shares in words, "half" and 34.1 % do not add up to a third
_MOST_LISTED = 7  # longest list that a rewrite may have counted itself
_CLAUSES = re.compile(r"[.;:()]\s|[.;:()]$|--")
_LAST_ITEM = re.compile(r",?\s(?:and|or|as well as)\s")
_ANNOUNCED = re.compile(r"(?:\s[\w-]+){1,4}:\s([^.:]*;\s(?:and|or)\s[^.;:]*)\.(?!\d)")
_OF_WHAT = re.compile(
    r"\s(?:as\s|of\s|the\s|its\s|their\s|that\s|all\s|more\s|less\s|fewer\s)*((?:[\w.-]*\w%?\s?){1,2})"
)
_JOINED = re.compile(r"[A-Za-zΑ-ω)]\s?[-+=]\s?$")
_ONE_TO_ONE = re.compile(r"(?<!\d)1:1(?!\d)")
_TELLING = 2  # least digits, zeros at the ends aside, of a number that is recognised again in another power of ten
_SAME = 1e-9  # of a power of ten
_PREFIXED = re.compile(r"\s?(?P<prefix>[nµμmkMG])(?P<unit>[A-Z]|eV|g)(?![A-Za-z])")
_BEFORE = 60  # characters before a share in which its noun may be: "memory falls by half"
_SET = re.compile(r"(?:\\in|∈)\s*\\?\{([^{}]*)\\?\}")
_NUMBERED = re.compile(r"\((?:[1-9]|i{1,3}|iv|v|[a-g])\)")

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Numbers and names as the rewrite writes them, each once, in order; `certain`: the numbers that the original
    contradicts.
    """

    numbers: tuple[str, ...]
    names: tuple[str, ...]
    certain: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Return the numbers, then the names."""
        return self.numbers + self.names


def unsupported(original: str, rewrite: str, *, language: str = "en") -> Unsupported:
    """Return the numbers and names of `rewrite`, written in `language`, that are not in `original` (title and abstract
    together).
    """
    spoken = _ENGLISH if language == _ENGLISH else language_of(original) or _ENGLISH
    source, text = plain(original, language=spoken), plain(rewrite, language=language)
    numbers = dict(_new_numbers(source, text, language))
    percentiles = " ".join(f"p{found[1] or found[2]}" for found in _PERCENTILE.finditer(source))
    return Unsupported(
        numbers=tuple(numbers),
        names=tuple(new_names(f"{source}\n{percentiles}", text, language=language)),
        certain=tuple(shown for shown, certain in numbers.items() if certain),
    )


def claim_key(claim: str) -> str:
    """Return the normal form by which an accepted number or name is recognised again."""
    return " ".join(claim.casefold().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Original:
    """What the numbers of a rewrite are compared with.

    Attributes:
        text: the original, in the form of `plain`, with percentiles and versions spelt out.
        known: its numbers.
        rates: the rates that it states as a pair of numbers.
        names: the names in it, `name_key`.
        counted: its numbers by what they count.
        lists: the lengths of its lists.
        share: tolerance of a share in words.
    """

    text: str
    known: Sequence[Quantity]
    rates: Sequence[float]
    names: frozenset[str]
    counted: dict[str, set[float]]
    lists: set[float]
    share: float


def _read_original(source: str) -> _Original:
    text = _VERSION.sub(r"\g<0> (\1)", _PERCENTILE.sub(_spelt_percentile, source))
    known = quantities(text)
    rates = list(_rates_of(known, text))
    known += [*starts_of_ranges(known, text), *units_alone(text)]
    has_shares_in_words = any(given.kinds == {"share"} and given.decimals is None for given in known)
    return _Original(
        text=text,
        known=known,
        rates=rates,
        names=frozenset(name_key(word) for word in words_of(text) if not word[0].isdigit()),
        counted=_by_counted(known),
        lists=_lengths_of_lists(text),
        share=_SHARE_BESIDE_WORDS if has_shares_in_words else _SHARE,
    )


def _new_numbers(source: str, text: str, language: str) -> Iterator[tuple[str, bool]]:
    """Yield the numbers of `text` that `source` lacks, and whether it contradicts them."""
    original, numbers = _read_original(source), [*with_scales(quantities(text), text)]
    sums = {number.start for number in _shown_sums(numbers, original.known, text)}
    numbers = _with_possible_kinds(numbers, text, language)
    together = _read_together(numbers, original.known, text, original.rates)
    reported: set[tuple[float, frozenset[str]]] = set()
    for number in numbers:
        if (
            (number.value, number.kinds) in reported
            or number in together
            or number.start in sums
            or _is_pronoun(number)
            or _is_formula(number, text)
            or _is_derived(number, text, original)
            or _is_part_of_name(number, original)
            or _is_length_of_list(number, text, original)
            or _is_supported(number, text, original, language)
        ):
            continue
        reported.add((number.value, number.kinds))
        written = number.shown.replace(".", ",") if language in DECIMAL_COMMA else number.shown
        yield written, _is_contradicted(number, original.known)


def _is_derived(number: Quantity, text: str, original: _Original) -> bool:
    """Return whether it follows from numbers of the original: a difference, a part, a rate, another unit, a year."""
    known, rates = original.known, original.rates
    if "share" in number.kinds and number.decimals is not None and any(_close(rate, number.value) for rate in rates):
        return True
    if "percent" in number.kinds and any(_is_rounded(100 * rate, number) for rate in rates):
        return True
    return (
        _is_difference(number, text, known)
        or _is_half_of_a_count(number, known, original.text)
        or _is_prefixed(number, text, known, original.text)
        or _is_year(number, text, known)
    )


def _is_part_of_name(number: Quantity, original: _Original) -> bool:
    """Return whether it belongs to a name of the original that is written apart: "GPT 4" for "GPT-4"."""
    return bool(
        number.decimals is not None and number.before and name_key(number.before + number.shown) in original.names
    )


def _is_length_of_list(number: Quantity, text: str, original: _Original) -> bool:
    """Return whether it counts, in words, the items of a list of the original."""
    return (
        number.decimals is None
        and number.value in original.lists
        and number.kinds == {"count"}
        and not _miscounts(number, text)
        and not _contradicts(number, original.counted)
    )


def _is_supported(number: Quantity, text: str, original: _Original, language: str) -> bool:
    """Return whether the original gives the same amount, of the same thing."""
    supporting = _supporting(number, text, original.known, language, share=original.share)
    return bool(
        supporting
        and not _contradicts(number, original.counted)
        and not _miscounts(number, text)
        and not _another_part(number, text, supporting, original.known, original.text)
    )


def _with_possible_kinds(numbers: Sequence[Quantity], text: str, language: str) -> list[Quantity]:
    """Add the kinds that a number of a rewrite may also be of; outside English only numbers in digits are kept."""
    if _IN_A_HUNDRED.search(text):  # "in 58 of 100 cases, the others in 43"
        numbers = [
            replace(number, kinds=number.kinds | {"percent"}) if _is_bare(number) and not number.counted else number
            for number in numbers
        ]
    if language == _ENGLISH:
        return list(numbers)
    return [
        replace(number, kinds=_ANY_KIND if number.kinds == {"count"} else number.kinds, counted=None)
        for number in numbers
        if number.decimals is not None
    ]


def _supporting(
    number: Quantity, text: str, known: Sequence[Quantity], language: str, *, share: float
) -> list[Quantity]:
    """Return the numbers of the original that give the same amount as a number of the rewrite.

    `share`: tolerance of a share in words.
    """
    candidates = known
    if (unit := number.unit) and any(given.unit and _close(given.value, number.value) for given in known):
        candidates = [
            given for given in known if given.unit and _is_same_measure(given.value, given.unit, number.value, unit)
        ]
    supporting = [given for given in candidates if _supports(given, number, share=share)]
    if language != _ENGLISH and not supporting:  # the words for thousand and million are not known
        larger = [replace(number, value=number.value * scale, hedged=True) for scale in _SCALES]
        supporting = [given for given in known for other in larger if _supports(given, other, share=share)]
    if _CENTS.match(text, number.end):
        supporting += [given for given in known if _close(given.value, number.value / 100)]
    return supporting


def _is_contradicted(number: Quantity, known: Sequence[Quantity]) -> bool:
    """Return whether the original has the digits of a number only with another power of ten, sign or unit: 40 % or
    4,000 students for 400 students is a contradiction, 59 may be 28 + 31.
    """
    if (
        number.decimals is None
        or number.digits < _TELLING
        or any(_supports(given, number, share=_SHARE) for given in known)
    ):
        return False
    same = [given for given in known if _close(given.value, number.value)]
    if any(map(_is_bare, (number, *same))):
        same = []
    return bool(same) or any(_has_digits_of(given, number) for given in known)


def _is_same_measure(value: float, unit: tuple[str, float], other: float, others: tuple[str, float]) -> bool:
    """Return whether two numbers with units are exactly the same: a year and 12 months."""
    return unit[0] == others[0] and _close(value * unit[1] / others[1], other)


def _is_bare(number: Quantity) -> bool:
    return number.kinds == {"count"} and number.unit is None


def _has_digits_of(given: Quantity, number: Quantity) -> bool:
    """Return whether two numbers of the same thing, kind and dimension differ only in the power of ten."""
    if given.kinds.isdisjoint(number.kinds) or (
        _is_bare(number) and (number.counted is None or given.counted != number.counted)
    ):
        return False
    (dimension, scale), (other, others) = number.unit or ("", 1.0), given.unit or ("", 1.0)
    if dimension != other or given.value * number.value <= 0:
        return False
    power = math.log10(number.value * scale / (given.value * others))
    return abs(power - round(power)) < _SAME and round(power) != 0


def _spelt_percentile(found: re.Match[str]) -> str:
    value = float(found[1] or found[2])
    return f"{found[0]} ({value:g}, {value:g} %; {100 - value:g} %)"


def _is_formula(number: Quantity, text: str) -> bool:
    """Return whether it is the 1 of "n + 1", "k = 1" or "1:1", or the zero at which a range begins."""
    if number.value not in (0, 1, 2) or number.decimals != 0:
        return False
    if number.value == 0 and re.match(r"-\d", text[number.end :]):
        return True  # the upper ten centimetres are 0-10 cm
    return bool(
        _JOINED.search(text[max(0, number.start - 6) : number.start])
        or _ONE_TO_ONE.search(text, max(0, number.start - 2), number.end + 2)
    )


def _is_prefixed(number: Quantity, text: str, known: Sequence[Quantity], source: str) -> bool:
    """Return whether it has the unit of a number of the original with a prefix: 1.8 mS/cm for 0.0018 S/cm."""
    unit = _PREFIXED.match(text, number.end)
    if number.unit or unit is None:
        return False
    value = number.value * PREFIX_SCALES[unit["prefix"]]
    same = re.compile(rf"\s?{re.escape(unit['unit'])}(?![A-Za-z])")
    return any(abs(given.value - value) <= 1e-6 * abs(value) and same.match(source, given.end) for given in known)


def _is_pronoun(number: Quantity) -> bool:
    """Return whether it may be the pronoun: "one of them", "with one another"."""
    return number.shown == "one" and number.kinds == {"count"} and number.unit is None


def _is_year(number: Quantity, text: str, known: Sequence[Quantity]) -> bool:
    """Return whether it is the second year of a range: the 24 of 2015-24."""
    first = re.search(r"\b((?:19|20)\d\d)[-/]$", text[max(0, number.start - 5) : number.start])
    year = int(first[1]) // 100 * 100 + number.value if first and number.value < 100 else None
    return any(given.value == year for given in known)


def _read_together(
    numbers: Sequence[Quantity], known: Sequence[Quantity], text: str, rates: Sequence[float]
) -> list[Quantity]:
    """Return the numbers of pairs that the original has as one: "3 in 10,000" for 0.03 %, "four or five" for 4.6."""
    values = [given.value / 100 if "percent" in given.kinds else given.value for given in known]
    values += rates
    found: list[Quantity] = []
    for first, second in pairwise(numbers):
        between = text[first.end : second.start]
        if _OUT_OF.fullmatch(between) and 0 < first.value < second.value:
            rate = first.value / second.value
            if any(abs(rate - value) <= min(0.5 / second.value, 0.1 * rate) for value in values):
                found += [first, second]
        elif (
            between == " or "
            and second.value == first.value + 1
            and any(first.value < v < second.value for v in values)
        ):
            found += [first, second]
    return found


def _by_counted(known: Iterable[Quantity]) -> dict[str, set[float]]:
    """Return the numbers of the original by what they count; numbers of an unknown thing could be of anything."""
    found: dict[str, set[float]] = {}
    for given in known:
        if given.counted:
            found.setdefault(given.counted, set()).add(given.value)
    unknown = {
        given.value
        for given in known
        if given.counted is None and given.kinds == {"count"} and _close(given.value, round(given.value))
    }  # 6.9B too
    return {thing: values | unknown for thing, values in found.items()}


def _contradicts(number: Quantity, counted: dict[str, set[float]]) -> bool:
    """Return whether the original counts the same things and always gives another number."""
    if number.counted not in counted or not _close(number.value, round(number.value)):
        return False
    if number.bound:  # "less than five euros" for 4.60 euros
        return not any(_near(value, number, decimals=None) for value in counted[number.counted])
    return not any(_close(value, number.value) for value in counted[number.counted])


def _miscounts(number: Quantity, text: str) -> bool:
    """Return whether the rewrite itself lists another number of things: "two parts: this; that; and a third"."""
    listed = _ANNOUNCED.match(text, number.end) if number.kinds == {"count"} else None
    return listed is not None and listed[1].count(";") + 1 != number.value


def _another_part(
    number: Quantity, text: str, supporting: Sequence[Quantity], known: Sequence[Quantity], source: str
) -> bool:
    """Return whether the original gives another share or multiple of the same thing, and this one only of something
    else.
    """
    thing = _shared(number, text)
    if not thing or not any(thing & _shared(given, source) for given in known):
        return False
    before = (
        re.split(r"[,;:()]|\.\s", source[max(0, given.start - _BEFORE) : given.start])[-1] for given in supporting
    )
    things = (
        _shared(given, source) | frozenset(stems_in(words)) for given, words in zip(supporting, before, strict=True)
    )
    return not any(thing & words for words in things)


def _shared(number: Quantity, text: str) -> frozenset[str]:
    """Return the stems of what a share, percentage or multiple is of: "half of the network", "twice its size"."""
    if number.kinds.isdisjoint(("share", "percent", "times")):
        return frozenset()
    found = _OF_WHAT.match(text, number.end)
    words = found[1].lower().split() if found else []
    noun_phrase = list(takewhile(lambda word: word not in FUNCTION_WORDS, words))
    return frozenset(map(stem, noun_phrase))


def _lengths_of_lists(source: str) -> set[float]:
    """Return the counts that a rewrite may state though the original does not: lengths of its lists, and always zero,
    one and two.

    "Clutter, lost detail, and poor fusion" are three reasons, although the word "three" is missing. A list is counted
    from its end for as long as its items are short; the words before its first item belong to the introduction.
    """
    lengths = {0, 1, 2, len(set(_NUMBERED.findall(source)))}
    lengths |= {found[1].count(",") + 1 for found in _SET.finditer(source)}
    for clause in _CLAUSES.split(source):
        for last in _LAST_ITEM.finditer(clause):
            length = 2
            for item in reversed(clause[: last.start()].split(",")[1:]):
                if len(item.split()) > _LONGEST_ITEM:
                    break
                length += 1
            lengths.add(length)
    return {float(length) for length in lengths if length <= _MOST_LISTED}


def _supports(source: Quantity, number: Quantity, *, share: float) -> bool:
    if not source.kinds.isdisjoint(number.kinds) and _same_amount(source, number):
        return True
    if "percent" in number.kinds:
        if "share" in source.kinds or ("count" in source.kinds and 0 < source.value < 1):
            return _near(source.value * 100, number, decimals=source.decimals and max(source.decimals - 2, 0))
        if "count" in source.kinds and source.decimals:  # "an accuracy of 93.7"
            return _near(source.value, number, decimals=source.decimals)
    below_one = "count" in number.kinds and 0 < number.value < 1 and not (source.unit or number.unit)
    if ("share" in number.kinds or below_one) and _share_of(source, number, within=share):
        return True
    if (
        number.kinds == {"times"}
        and number.hedged
        and source.kinds == {"count"}
        and source.decimals
        and not source.unit
    ):
        return _near(source.value, number, decimals=source.decimals)  # "about four times as wide" for 4.12 Earth radii
    if "times" in number.kinds and "percent" in source.kinds and _close(source.value / 100 + 1, number.value):
        return True  # 100 % more is twice
    if number.kinds == {"percent"} and "times" in source.kinds and source.value > 1:
        whole = 0 if number.more or number.less else 100 * source.value  # 1.7 times is 70 % more, and 170 %
        return _close(100 * (source.value - 1), number.value) or _close(whole, number.value)
    if number.kinds == {"count"} and number.decimals and not source.kinds.isdisjoint(("percent", "times")):
        return _close(source.value, number.value)  # a table's 93.7 for 93.7 %
    return False


def _share_of(source: Quantity, number: Quantity, *, within: float) -> bool:
    """Return whether "half", "1/3" or 0.93 expresses a percentage, its remainder, or a factor of the original."""
    in_words = number.decimals is None
    if "percent" in source.kinds:
        part = source.value / 100
        if in_words and number.bound == "below" and 0 <= part - number.value <= _BOUNDED * part:
            return True  # "more than half" for 54.9 %
        if in_words:
            return abs(part - number.value) <= within or (source.less and abs(1 - part - number.value) <= within)
        return _close(part, number.value)
    if "count" in source.kinds and 0 < source.value < 1:
        return _close(source.value, number.value) or (in_words and abs(source.value - number.value) <= _SHARE_OF_ONE)
    if "times" in source.kinds and number.more and in_words:  # "a third more" for 1.3 times
        return abs(source.value - 1 - number.value) <= _SHARE
    if "times" in source.kinds and source.value > 1 and source.less:
        return _close(1 / source.value, number.value) or (in_words and abs(1 / source.value - number.value) <= within)
    return "share" in source.kinds and _close(source.value, number.value)


def _same_amount(source: Quantity, number: Quantity) -> bool:
    if source.unit and number.unit:
        if source.unit[0] != number.unit[0]:
            return False
        scale = source.unit[1] / number.unit[1]
        return _near(source.value * scale, number, decimals=source.decimals)
    return _near(source.value, number, decimals=source.decimals)


def _near(value: float, number: Quantity, *, decimals: int | None) -> bool:
    """Return whether the numbers are equal, one is the other with fewer decimals, or a hedged one is a rounder one."""
    if _close(value, number.value):
        return True
    if number.decimals is not None and number.digits >= 2 and not _close(value, round(value)):
        if (decimals is None or number.decimals < decimals) and _close(round(value, number.decimals), number.value):
            return True
        if number.decimals == 0 and decimals is None and _close(round(value), number.value):
            return True
    if number.bound and not number.decimals and _is_next_round(value, number):
        return True
    if number.bound and number.digits <= 2 and not number.decimals:  # "less than five" for 4.60
        apart = number.value - value if number.bound == "above" else value - number.value
        if 0 <= apart <= _BOUNDED * value:
            return True
    if (
        number.hedged and number.decimals == 1 and _close(2 * number.value, round(2 * number.value))
    ):  # "about 2.5" for 2.6
        return abs(value - number.value) <= _HEDGED * abs(value)
    rounder = number.decimals is None or number.digits < len(f"{value:.6g}".replace(".", "").strip("0"))
    return number.hedged and rounder and abs(value - number.value) <= _HEDGED * abs(value)


def _is_next_round(value: float, number: Quantity) -> bool:
    """Return whether a bound is the next round number: "more than three times" for 3.4, "nearly twice" for 1.8."""
    if value <= 0 or abs(value - number.value) > _NEXT_ROUND * value:
        return False
    step = 10.0 ** math.floor(math.log10(value))
    return _close(number.value, step * (math.ceil if number.bound == "above" else math.floor)(value / step))


def _is_difference(number: Quantity, text: str, known: Sequence[Quantity]) -> bool:
    """Return whether it is the difference in points of two percentages of the original."""
    if "percent" not in number.kinds or not _POINTS.search(text[number.start : number.end + _AFTER]):
        return False
    shares = {given.value for given in known if "percent" in given.kinds}
    return any(_close(round(one - other, 6), number.value) for one in shares for other in shares if one > other)


def _is_half_of_a_count(number: Quantity, known: Sequence[Quantity], source: str) -> bool:
    """Return whether it is "half" where the original counts a whole and its half, or has two equal parts."""
    if number.kinds != {"share"} or number.value != 0.5:
        return False
    if _TWO_EQUAL.search(source):
        return True
    counts = {
        given.value for given in known if given.kinds == {"count"} and given.unit is None and given.value >= _COUNTED
    }
    return any(2 * count in counts for count in counts)


def _rates_of(known: Sequence[Quantity], source: str) -> Iterator[float]:
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


def _is_rounded(value: float, number: Quantity) -> bool:
    """Return whether a number in digits is the value, rounded to the number's decimals."""
    return _close(round(value, number.decimals), abs(number.value)) if number.decimals is not None else False


def _shown_sums(numbers: Sequence[Quantity], known: Sequence[Quantity], text: str) -> Iterator[Quantity]:
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
        return _is_rounded(100 * abs(first.value - second.value) / first.value, result)
    if "times" in result.kinds and (change or second.end <= result.start):
        return _is_rounded(max(first.value, second.value) / min(first.value, second.value), result)
    total = second.end <= result.start and _TOTAL.search(text[second.end : result.end + 20])
    return bool(total) and result.kinds == {"count"} and _close(first.value * second.value, result.value)


def _is_known(number: Quantity, known: Sequence[Quantity]) -> bool:
    return any(_close(given.value, number.value) and given.unit == number.unit for given in known)


def _close(value: float, other: float) -> bool:
    return abs(value - other) <= 1e-9 * max(1.0, abs(value), abs(other))
