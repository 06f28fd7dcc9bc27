"""Find numbers and names in a rewrite that its original lacks (B10), for the critic and for the gate, and mark them.

The meaning of sentences is not judged. Different spellings of the same thing match: 1,000 and 1000, 50% and half and
0.5, 10^{6} and a million, three and 3, 3x and threefold, 90 minutes and 1.5 hours, a rounded number (93.7 and 94, or
"about 90"), an acronym and its expansion. Numbers of another kind, unit or scale differ: 12 % is not 12 times, 500 ms
not 500 s, and no number is itself times 100. Precision and recall on synthetic corruptions are in docs/evaluation.md
(`python -m benchmarks.faithfulness`).

Rules cannot know every form. `certain` are only numbers whose digits the original has with another power of ten, sign
or unit. Everything else, every computed number and every name included, is a question to the critic and holds nothing
back without its answer.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import groupby, pairwise, takewhile

from paper_assets.rewriting.names import new_names, squeezed, words_of
from paper_assets.rewriting.quantities import (
    DECIMAL_COMMA,
    Kind,
    Quantity,
    plain,
    quantities,
    starts_of_ranges,
    units_alone,
    with_scales,
)
from paper_assets.rewriting.sums import is_difference, is_part, is_rounded, rates_of, shown_sums
from paper_assets.rewriting.units import PREFIX_SCALES
from paper_assets.text.languages import language_of
from paper_assets.text.words import FUNCTION_WORDS, stem, stems_in

_ENGLISH = "en"
_ANY_KIND: frozenset[Kind] = frozenset({"count", "percent", "times"})  # where signs in words are not read
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


def _new_numbers(source: str, text: str, language: str) -> Iterator[tuple[str, bool]]:
    """Yield the numbers of `text` that `source` lacks, and whether it contradicts them."""
    source = _VERSION.sub(r"\g<0> (\1)", _PERCENTILE.sub(_spelt_percentile, source))
    known, said = quantities(source), quantities(text)
    said = [*with_scales(said, text)]
    rates = list(rates_of(known, source))
    known += [*starts_of_ranges(known, source), *units_alone(source)]
    shown = {one.start for one in shown_sums(said, known, text)}
    if _IN_A_HUNDRED.search(text):  # "in 58 of 100 cases, the others in 43"
        said = [
            replace(each, kinds=each.kinds | {"percent"}) if _is_bare(each) and not each.counted else each
            for each in said
        ]
    if language != _ENGLISH:
        said = [replace(each, kinds=_ANY_KIND if each.kinds == {"count"} else each.kinds, counted=None)
                for each in said if each.decimals is not None]  # fmt: skip
    names = {squeezed(word) for word in words_of(source) if not word[0].isdigit()}
    counted, lists = _by_counted(known), _lengths_of_lists(source)
    in_words = any(one.kinds == {"share"} and one.decimals is None for one in known)
    share = _SHARE_BESIDE_WORDS if in_words else _SHARE
    together = _read_together(said, known, text, rates)
    reported: set[tuple[float, frozenset[str]]] = set()
    for each in said:
        if (each.value, each.kinds) in reported or each in together or _is_pronoun(each) or _is_formula(each, text):
            continue
        if (
            is_difference(each, text, known)
            or is_part(each, known, source)
            or each.start in shown
            or _is_prefixed(each, text, known, source)
            or ("share" in each.kinds and each.decimals is not None and any(_close(rate, each.value) for rate in rates))
            or ("percent" in each.kinds and any(is_rounded(100 * rate, each) for rate in rates))
            or _is_year(each, text, known)
        ):
            continue
        if each.decimals is not None and each.before and squeezed(each.before + each.shown) in names:
            continue  # "GPT 4" for "GPT-4"
        if (
            each.decimals is None
            and each.value in lists
            and not _miscounts(each, text)
            and each.kinds == {"count"}
            and not _contradicts(each, counted)
        ):
            continue
        others = known
        if each.unit and any(one.unit and _close(one.value, each.value) for one in known):
            others = [one for one in known if one.unit and _is_same_measure(one.value, one.unit, each.value, each.unit)]
        supporting = [one for one in others if _supports(one, each, share=share)]
        if language != _ENGLISH and not supporting:  # the words for thousand and million are not known
            larger = [replace(each, value=each.value * scale, hedged=True) for scale in _SCALES]
            supporting = [one for one in known for other in larger if _supports(one, other, share=share)]
        if _CENTS.match(text, each.end):
            supporting += [one for one in known if _close(one.value, each.value / 100)]
        if (
            supporting
            and not _contradicts(each, counted)
            and not _miscounts(each, text)
            and not _another_part(each, text, supporting, known, source)
        ):
            continue
        reported.add((each.value, each.kinds))
        written = each.shown.replace(".", ",") if language in DECIMAL_COMMA else each.shown
        yield written, _is_contradicted(each, known)


def _is_contradicted(each: Quantity, known: Sequence[Quantity]) -> bool:
    """Return whether the original has the digits of a number only with another power of ten, sign or unit: 40 % or
    4,000 students for 400 students is a contradiction, 59 may be 28 + 31.
    """
    if each.decimals is None or each.digits < _TELLING or any(_supports(one, each, share=_SHARE) for one in known):
        return False
    same = [one for one in known if _close(one.value, each.value)]
    if any(map(_is_bare, (each, *same))):
        same = []
    return bool(same) or any(_has_digits_of(one, each) for one in known)


def _is_same_measure(value: float, unit: tuple[str, float], other: float, others: tuple[str, float]) -> bool:
    """Return whether two numbers with units are exactly the same: a year and 12 months."""
    return unit[0] == others[0] and _close(value * unit[1] / others[1], other)


def _is_bare(each: Quantity) -> bool:
    return each.kinds == {"count"} and each.unit is None


def _has_digits_of(one: Quantity, each: Quantity) -> bool:
    """Return whether two numbers of the same thing, kind and dimension differ only in the power of ten."""
    if one.kinds.isdisjoint(each.kinds) or (_is_bare(each) and (each.counted is None or one.counted != each.counted)):
        return False
    (dimension, scale), (other, others) = each.unit or ("", 1.0), one.unit or ("", 1.0)
    if dimension != other or one.value * each.value <= 0:
        return False
    power = math.log10(each.value * scale / (one.value * others))
    return abs(power - round(power)) < _SAME and round(power) != 0


def _spelt_percentile(found: re.Match[str]) -> str:
    value = float(found[1] or found[2])
    return f"{found[0]} ({value:g}, {value:g} %; {100 - value:g} %)"


def _is_formula(each: Quantity, text: str) -> bool:
    """Return whether it is the 1 of "n + 1", "k = 1" or "1:1", or the zero at which a range begins."""
    if each.value not in (0, 1, 2) or each.decimals != 0:
        return False
    if each.value == 0 and re.match(r"-\d", text[each.end :]):
        return True  # the upper ten centimetres are 0-10 cm
    return bool(
        _JOINED.search(text[max(0, each.start - 6) : each.start])
        or _ONE_TO_ONE.search(text, max(0, each.start - 2), each.end + 2)
    )


def _is_prefixed(each: Quantity, text: str, known: Sequence[Quantity], source: str) -> bool:
    """Return whether it has the unit of a number of the original with a prefix: 1.8 mS/cm for 0.0018 S/cm."""
    unit = _PREFIXED.match(text, each.end)
    if each.unit or unit is None:
        return False
    value = each.value * PREFIX_SCALES[unit["prefix"]]
    same = re.compile(rf"\s?{re.escape(unit['unit'])}(?![A-Za-z])")
    return any(abs(one.value - value) <= 1e-6 * abs(value) and same.match(source, one.end) for one in known)


def _is_pronoun(each: Quantity) -> bool:
    """Return whether it may be the pronoun: "one of them", "with one another"."""
    return each.shown == "one" and each.kinds == {"count"} and each.unit is None


def _is_year(each: Quantity, text: str, known: Sequence[Quantity]) -> bool:
    """Return whether it is the second year of a range: the 24 of 2015-24."""
    first = re.search(r"\b((?:19|20)\d\d)[-/]$", text[max(0, each.start - 5) : each.start])
    year = int(first[1]) // 100 * 100 + each.value if first and each.value < 100 else None
    return any(one.value == year for one in known)


def _read_together(
    said: Sequence[Quantity], known: Sequence[Quantity], text: str, rates: Sequence[float]
) -> list[Quantity]:
    """Return the numbers of pairs that the original has as one: "3 in 10,000" for 0.03 %, "four or five" for 4.6."""
    values = [one.value / 100 if "percent" in one.kinds else one.value for one in known]
    values += rates
    found: list[Quantity] = []
    for one, other in pairwise(said):
        between = text[one.end : other.start]
        if _OUT_OF.fullmatch(between) and 0 < one.value < other.value:
            rate = one.value / other.value
            if any(abs(rate - value) <= min(0.5 / other.value, 0.1 * rate) for value in values):
                found += [one, other]
        elif between == " or " and other.value == one.value + 1 and any(one.value < v < other.value for v in values):
            found += [one, other]
    return found


def _by_counted(known: Iterable[Quantity]) -> dict[str, set[float]]:
    """Return the numbers of the original by what they count; numbers of an unknown thing could be of anything."""
    found: dict[str, set[float]] = {}
    for each in known:
        if each.counted:
            found.setdefault(each.counted, set()).add(each.value)
    unknown = {
        each.value
        for each in known
        if each.counted is None and each.kinds == {"count"} and _close(each.value, round(each.value))
    }  # 6.9B too
    return {thing: values | unknown for thing, values in found.items()}


def _contradicts(each: Quantity, counted: dict[str, set[float]]) -> bool:
    """Return whether the original counts the same things and always gives another number."""
    if each.counted not in counted or not _close(each.value, round(each.value)):
        return False
    if each.bound:  # "less than five euros" for 4.60 euros
        return not any(_near(value, each, decimals=None) for value in counted[each.counted])
    return not any(_close(value, each.value) for value in counted[each.counted])


def _miscounts(each: Quantity, text: str) -> bool:
    """Return whether the rewrite itself lists another number of things: "two parts: this; that; and a third"."""
    listed = _ANNOUNCED.match(text, each.end) if each.kinds == {"count"} else None
    return listed is not None and listed[1].count(";") + 1 != each.value


def _another_part(
    each: Quantity, text: str, supporting: Sequence[Quantity], known: Sequence[Quantity], source: str
) -> bool:
    """Return whether the original gives another share or multiple of the same thing, and this one only of something
    else.
    """
    thing = _shared(each, text)
    if not thing or not any(thing & _shared(one, source) for one in known):
        return False
    before = (re.split(r"[,;:()]|\.\s", source[max(0, one.start - _BEFORE) : one.start])[-1] for one in supporting)
    told = (_shared(one, source) | frozenset(stems_in(words)) for one, words in zip(supporting, before, strict=True))
    return not any(thing & words for words in told)


def _shared(each: Quantity, text: str) -> frozenset[str]:
    """Return the stems of what a share, percentage or multiple is of: "half of the network", "twice its size"."""
    if each.kinds.isdisjoint(("share", "percent", "times")):
        return frozenset()
    found = _OF_WHAT.match(text, each.end)
    words = found[1].lower().split() if found else []
    said = list(takewhile(lambda word: word not in FUNCTION_WORDS, words))
    return frozenset(map(stem, said))


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


def _supports(source: Quantity, said: Quantity, *, share: float) -> bool:
    if not source.kinds.isdisjoint(said.kinds) and _same_amount(source, said):
        return True
    if "percent" in said.kinds:
        if "share" in source.kinds or ("count" in source.kinds and 0 < source.value < 1):
            return _near(source.value * 100, said, decimals=source.decimals and max(source.decimals - 2, 0))
        if "count" in source.kinds and source.decimals:  # "an accuracy of 93.7"
            return _near(source.value, said, decimals=source.decimals)
    below_one = "count" in said.kinds and 0 < said.value < 1 and not (source.unit or said.unit)
    if ("share" in said.kinds or below_one) and _share_of(source, said, within=share):
        return True
    if said.kinds == {"times"} and said.hedged and source.kinds == {"count"} and source.decimals and not source.unit:
        return _near(source.value, said, decimals=source.decimals)  # "about four times as wide" for 4.12 Earth radii
    if "times" in said.kinds and "percent" in source.kinds and _close(source.value / 100 + 1, said.value):
        return True  # 100 % more is twice
    if said.kinds == {"percent"} and "times" in source.kinds and source.value > 1:
        whole = 0 if said.more or said.less else 100 * source.value  # 1.7 times is 70 % more, and 170 %
        return _close(100 * (source.value - 1), said.value) or _close(whole, said.value)
    if said.kinds == {"count"} and said.decimals and not source.kinds.isdisjoint(("percent", "times")):
        return _close(source.value, said.value)  # a table's 93.7 for 93.7 %
    return False


def _share_of(source: Quantity, said: Quantity, *, within: float) -> bool:
    """Return whether "half", "1/3" or 0.93 expresses a percentage, its remainder, or a factor of the original."""
    in_words = said.decimals is None
    if "percent" in source.kinds:
        part = source.value / 100
        if in_words and said.bound == "below" and 0 <= part - said.value <= _BOUNDED * part:
            return True  # "more than half" for 54.9 %
        if in_words:
            return abs(part - said.value) <= within or (source.less and abs(1 - part - said.value) <= within)
        return _close(part, said.value)
    if "count" in source.kinds and 0 < source.value < 1:
        return _close(source.value, said.value) or (in_words and abs(source.value - said.value) <= _SHARE_OF_ONE)
    if "times" in source.kinds and said.more and in_words:  # "a third more" for 1.3 times
        return abs(source.value - 1 - said.value) <= _SHARE
    if "times" in source.kinds and source.value > 1 and source.less:
        return _close(1 / source.value, said.value) or (in_words and abs(1 / source.value - said.value) <= within)
    return "share" in source.kinds and _close(source.value, said.value)


def _same_amount(source: Quantity, said: Quantity) -> bool:
    if source.unit and said.unit:
        if source.unit[0] != said.unit[0]:
            return False
        scale = source.unit[1] / said.unit[1]
        return _near(source.value * scale, said, decimals=source.decimals)
    return _near(source.value, said, decimals=source.decimals)


def _near(value: float, said: Quantity, *, decimals: int | None) -> bool:
    """Return whether the numbers are equal, one is the other with fewer decimals, or a hedged one is a rounder one."""
    if _close(value, said.value):
        return True
    if said.decimals is not None and said.digits >= 2 and not _close(value, round(value)):
        if (decimals is None or said.decimals < decimals) and _close(round(value, said.decimals), said.value):
            return True
        if said.decimals == 0 and decimals is None and _close(round(value), said.value):
            return True
    if said.bound and not said.decimals and _is_next_round(value, said):
        return True
    if said.bound and said.digits <= 2 and not said.decimals:  # "less than five" for 4.60
        apart = said.value - value if said.bound == "above" else value - said.value
        if 0 <= apart <= _BOUNDED * value:
            return True
    if said.hedged and said.decimals == 1 and _close(2 * said.value, round(2 * said.value)):  # "about 2.5" for 2.6
        return abs(value - said.value) <= _HEDGED * abs(value)
    rounder = said.decimals is None or said.digits < len(f"{value:.6g}".replace(".", "").strip("0"))
    return said.hedged and rounder and abs(value - said.value) <= _HEDGED * abs(value)


def _is_next_round(value: float, said: Quantity) -> bool:
    """Return whether a bound is the next round number: "more than three times" for 3.4, "nearly twice" for 1.8."""
    if value <= 0 or abs(value - said.value) > _NEXT_ROUND * value:
        return False
    step = 10.0 ** math.floor(math.log10(value))
    return _close(said.value, step * (math.ceil if said.bound == "above" else math.floor)(value / step))


def _close(value: float, other: float) -> bool:
    return abs(value - other) <= 1e-9 * max(1.0, abs(value), abs(other))


_TOKEN = re.compile(r"\s+|[^\W_]+(?:['’.,+#/%_-]+[^\W_]+)*%?|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text. `new`: missing from the other text; `doubtful`: a number or name that the original lacks."""

    text: str
    new: bool
    doubtful: bool


def marked(text: str, against: str, doubtful: Iterable[str]) -> tuple[Piece, ...]:
    """Split a rewrite into pieces that join to it again, marking what is new against another text and what is
    `doubtful` (from `unsupported`).

    Words are compared without case, longest common runs first (Ratcliff & Obershelp 1988, as in difflib).
    """
    tokens = _TOKEN.findall(text)
    words = [at for at, token in enumerate(tokens) if not token.isspace()]
    mine = [tokens[at].casefold() for at in words]
    theirs = [token.casefold() for token in _TOKEN.findall(against) if not token.isspace()]
    kept = {
        words[at]
        for block in SequenceMatcher(None, theirs, mine, autojunk=False).get_matching_blocks()
        for at in range(block.b, block.b + block.size)
    }
    doubted = _places(text, tokens, doubtful)
    new = [at not in kept for at in range(len(tokens))]
    for at, token in enumerate(tokens):
        if token.isspace():  # a blank is new between two new words
            new[at] = 0 < at < len(tokens) - 1 and new[at - 1] and at + 1 not in kept
    runs = groupby(range(len(tokens)), key=lambda at: (new[at], at in doubted))
    return tuple(Piece("".join(tokens[at] for at in run), *kind) for kind, run in runs)


def _places(text: str, tokens: list[str], wanted: Iterable[str]) -> set[int]:
    """Return the tokens that any of the given words covers."""
    spans = [
        found.span()
        for word in wanted
        if word.strip()
        for found in re.finditer(rf"(?<!\w)(?<!\d[.,]){re.escape(word.strip())}(?!\w|[.,]\d)", text)
    ]
    places, start = set(), 0
    for at, token in enumerate(tokens):
        end = start + len(token)
        if any(start < last and end > first for first, last in spans):
            places.add(at)
        start = end
    return places
