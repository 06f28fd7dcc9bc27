"""Read the numbers of a text: value, kind (share, factor or count) and unit.

Supported are digits in the spellings of papers (LaTeX, 1,000 and 1 000, 10^{6}, 7B, 2.5 million), English number words
(three, twenty-five, a hundred, twice, threefold, a third, half) and ranges, where a sign belongs to both ends ("37 to
52 %"). Digits inside a name (GPT-4) are not read; 7B after a name is.

Numbers are compared in the base unit: 500 ms is half a second. To add a unit, add a line to `_BASES`; with a dimension
and prefixes, its numbers are converted, otherwise only its symbol is known (90 aJ for 90 attojoules). Spellings of time
that are not formed with a prefix are in `_TIMES`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile
from typing import Literal

from paper_assets.text.words import FUNCTION_WORDS, stem

NumberKind = Literal["count", "percent", "times", "share"]  # share: half, a third, 1/2

_PREFIXES = {
    "atto": ("a", 1e-18), "femto": ("f", 1e-15), "pico": ("p", 1e-12), "nano": ("n", 1e-9), "micro": ("µ", 1e-6),
    "milli": ("m", 1e-3), "centi": ("c", 1e-2), "kilo": ("k", 1e3), "mega": ("M", 1e6), "giga": ("G", 1e9),
    "tera": ("T", 1e12), "peta": ("P", 1e15),
}  # fmt: skip
_BASES: tuple[tuple[str, str, str, str], ...] = (  # name, symbol, dimension, prefixes with which it is converted
    ("second", "s", "time", "nano micro milli"),
    ("byte", "B", "bytes", "kilo mega giga tera"),
    ("meter", "m", "length", "nano micro milli centi kilo"),
    ("metre", "m", "length", "nano micro milli centi kilo"),
    ("hertz", "Hz", "frequency", "kilo mega giga"),
    ("ampere", "A", "", ""),
    ("gram", "g", "", ""),
    ("joule", "J", "", ""),
    ("newton", "N", "", ""),
    ("pascal", "Pa", "", ""),
    ("volt", "V", "", ""),
    ("watt", "W", "", ""),
    ("watthour", "Wh", "", ""),
)
_TIMES = {
    "s sec secs sekunde sekunden": 1.0,
    "min mins minute minutes minuten": 60.0,
    "h hr hrs hour hours stunde stunden": 3600.0,
    "day days tag tage tagen": 86_400.0,
    "week weeks wk wks woche wochen": 604_800.0,
    "month months mo mos monat monate monaten": 2_629_800.0,
    "year years yr yrs jahr jahre jahren": 31_557_600.0,
    "kyr": 31_557_600.0 * 1e3,
    "myr": 31_557_600.0 * 1e6,
    "gyr": 31_557_600.0 * 1e9,
}
_SYMBOLS = {name: symbol for name, symbol, _, _ in _BASES}
_IN_WORDS = re.compile(f"({'|'.join(_PREFIXES)})({'|'.join(_SYMBOLS)})s?")


def _units() -> dict[str, tuple[str, float]]:
    found = {word: ("time", seconds) for words, seconds in _TIMES.items() for word in words.split()}
    for name, symbol, dimension, prefixes in _BASES:
        if dimension:
            words = [name] if name.endswith("z") else [name, f"{name}s"]
            found |= dict.fromkeys((*words, *(["hz"] if symbol == "Hz" else [])), (dimension, 1.0))
        for prefix in prefixes.split():
            letter, factor = _PREFIXES[prefix]
            letters = ("u", "µ", "μ") if letter == "µ" else (letter,)
            symbols = [f"{each}{symbol}".lower() for each in letters]
            found |= dict.fromkeys((*symbols, *(prefix + word for word in words)), (dimension, factor))
    return found


PREFIX_SCALES = {"μ": 1e-6} | dict(_PREFIXES.values())  # by symbol
UNITS = _units()  # in lower case: dimension, and factor to its base unit


def symbol_of(word: str) -> str | None:
    """Return the symbol of a unit in words: GHz for gigahertz; None for any other word."""
    found = _IN_WORDS.fullmatch(word)
    return _PREFIXES[found[1]][0] + _SYMBOLS[found[2]] if found else None


_ONES = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
ONES = {word: float(value) for value, word in enumerate((*_ONES.split(), "seventeen", "eighteen", "nineteen"))}
_TENS = {
    word: 10.0 * (place + 2)
    for place, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"])
}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12}
_FACTORS = {
    "twice": 2.0, "double": 2.0, "doubles": 2.0, "doubled": 2.0, "doubling": 2.0, "thrice": 3.0, "triple": 3.0,
    "triples": 3.0, "tripled": 3.0, "tripling": 3.0, "quadruple": 4.0, "quadruples": 4.0, "quadrupled": 4.0,
    "quadrupling": 4.0,
}  # fmt: skip
_HALVES = dict.fromkeys(("half", "halve", "halves", "halved", "halving"), 0.5)
_PARTS = {"third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
          "tenth": 10, "eleventh": 11, "twelfth": 12, "twentieth": 20, "hundredth": 100}  # fmt: skip
_LETTERS = re.compile(r"\s?[sh](?!['’\w-])")  # units of one letter, in lower case
_COMMA = "bg ca cs da de el es et fi fr hr hu id it lt lv nl no pl pt ro ru sk sl sv tr uk"
DECIMAL_COMMA = frozenset(_COMMA.split())  # languages that write 3,1 and 1.500

_MOST_DIGITS = 60  # longer numbers and greater powers mean nothing to a reader and overflow floats
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_LOWERED_DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_DIGITS = re.compile(
    r"""
    (?P<sign>(?<![\w.)])[-−])?                                          # a range 10-20 has no negative number
    (?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*|(?<![\d.])\.\d+)
    (?:\s*(?:\\times|\\cdot|[×x*·])\s*10\s*\^?\s*\{?(?P<power>[-−]?\d+)\}?|[eE](?P<exponent>[-+]?\d+)\b)?
    (?:\^\s*\{?(?P<raised>[-−]?\d+)\}?|/(?P<below>[2-9]|10)(?![\d/]|[.,]\d))?
    (?:\s*[-\s]?(?P<scale>hundred|thousand|million|billion|trillion)\b|(?P<suffix>[kKMBT]|bn)(?![\w]))?
    """,
    re.VERBOSE,
)
_SIGN = re.compile(
    r"""
    (?P<percent>\s?%|\s?[-]?(?:percent|per\ cent|pct)\b|\s?-?(?:percentage\ |\bpp\b|absolute\ |%-)?points?\b|\s?pp\b)
    |(?P<times>\s?(?:\\times|×)(?!\s*\d)|\s?[xX](?![\w])(?!\s*\d)|\s?-?fold\b|\s?-?times\b)
    |(?P<unit>\s?-?(?:[A-Z]?[a-zµμ]+|[KMGT]B|[kMG]?Hz|[kMG]yr)\b)
    """,
    re.VERBOSE,
)
_COMPARES = re.compile(r"\s(?:as|more|less|fewer|higher|lower|faster|slower|larger|smaller|better|worse|its|the)\b")
_RANGE = re.compile(r"\s*(?:,?\s*(?:to|and|or|versus|vs\.?|against)|up to|[-–/,±+]|\\pm|--)\s*(?:up to|from)?\s*")
_INSTEAD = re.compile(r"\s(?:instead of|rather than|statt)\s")
_SCALED = re.compile(r"(hundred|thousand|million|billion|trillion|[kKMBT]|bn)$")
_HEDGE = re.compile(
    r"(?:about|around|roughly|nearly|almost|approximately|over|under|some|more than|less than|fewer than|at least|"
    r"up to|close to|just|well|below|above|exceeding|approx\.?|ca\.|circa|rund|etwa|fast|ungefähr|knapp|gut|über|"
    r"mehr als|weniger als|bis zu|≈|∼|>|<)\s*(?:a\s+)?$",
    re.IGNORECASE,
)
_BOUND = re.compile(
    r"(?:(?P<above>less than|fewer than|under|below|almost|nearly|up to|at most|knapp|fast|weniger als|bis zu|<)"
    r"|(?:more than|over|above|at least|exceeding|gut|über|mehr als|mindestens|>))\s*(?:a\s+)?$",
    re.IGNORECASE,
)
_AND_A_HALF = re.compile(
    r"\b(one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\d+) and a half\b", re.IGNORECASE
)
_TIME = "(second|minute|hour|day|week|month|year)"
_UNIT_AND_A_HALF = re.compile(rf"\b(?:(?:an?|one)\s)?{_TIME} and a half\b", re.IGNORECASE)
_UNIT_ALONE = re.compile(rf"\b(?:an?|per|each|every)\s{_TIME}\b", re.IGNORECASE)
_GREEK = re.compile(
    r"\\((?:[Aa]lpha|[Bb]eta|[Gg]amma|[Dd]elta|epsilon|zeta|eta|[Tt]heta|kappa|[Ll]ambda|nu|[Xx]i|[Pp]i|rho|[Ss]igma|tau|"
    r"[Pp]hi|chi|[Pp]si|[Oo]mega))(?![A-Za-z])"
)
_DIGIT_IN_BRACKETS = re.compile(r"(?<![\d.])(\d+)\.(\d+)\((\d{1,2})\)")
_SUBSCRIPT = re.compile(r"(?<=[A-Za-z)\]])\$?_(?:\{([\d.]+)\}|(\d))\$?")  # Na$_{3.1}$, CO$_2$
_HALF_UNIT = re.compile(rf"(?:\s|-)(?:an?\s)?{_TIME}\b")
_QUARTERS_OF = re.compile(rf"(?:an?|one|three)[\s-]quarters?\sof\san?\s{_TIME}\b", re.IGNORECASE)
_FACTOR = re.compile(r"\b(?:factors? of|Faktor(?: von)?) (?:up to |about |around |roughly |bis zu |etwa |rund )?$")
_POWER_OF_METRE = re.compile(r"(?:^|[^A-Za-z])[cdkmnµ]?m\^[-−]?$")  # m^3 has no number
_NOT_TWICE = re.compile(r"\b(?:not|no|none|never|nobody|nothing|without|n['’]t)\b[^.,;:]*$", re.IGNORECASE)
_MORE = re.compile(r"\s(?:more|higher|longer|larger|faster|as much again)\b")
_LESS = re.compile(r"less|fewer|smaller|lower|reduc|faster|speed|shorter|cheaper|compress|sav|improve|accelerat")
WORD = re.compile(r"[^\W_]+(?:['’.+#/_-][^\W_]+)*[+#]*")  # not `text/words.py`: GPT-4, C++ and O'Brien are one word
_ENDS_PHRASE = FUNCTION_WORDS - {"of", "the", "these", "those", "more", "other", "such"} | {"ones", "times"}
_OTHER_PLURALS = frozenset(("corpora", "criteria", "phenomena", "people", "children", "women", "men"))
_ADJECTIVES = frozenset((
    "different", "new", "large", "public", "real", "popular", "standard", "open", "diverse", "main", "key", "major",
    "common", "distinct", "separate", "other", "such", "independent", "widely", "used", "small", "benchmark",
    "challenging", "additional", "recent", "existing", "of", "the", "these", "those", "more",
))  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A number of a text. `kinds`: the kinds it may be of; `decimals` as written, None for a word.

    `unit`: dimension, and its factor to the base unit. `counted`: stem of the counted word. `hedged`: written with
    "about" or similar.
    """

    value: float
    kinds: frozenset[NumberKind]
    shown: str
    start: int
    end: int
    before: str = ""
    unit: tuple[str, float] | None = None
    decimals: int | None = None
    digits: int = 0
    hedged: bool = False
    bound: Literal["", "above", "below"] = ""  # "less than 5" is above what is meant, "over 30" below it
    less: bool = False  # a factor by which something is less
    more: bool = False  # a share by which something is more: "a third more"
    counted: str | None = None


def plain(text: str, *, language: str = "en") -> str:
    """Spell LaTeX, Unicode and the decimal comma of some languages the way the patterns read them."""
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda found: "^" + found.group().translate(_SUPERSCRIPTS), text)
    if language in DECIMAL_COMMA:
        text = re.sub(r"(?<![\d.,])\d{1,3}(?:\.\d{3})+(?![\d.])", lambda found: found[0].replace(".", ""), text)
        text = re.sub(r"(?<![\d.,])(\d+),(\d+)(?!,?\d)", r"\1.\2", text)
    text = text.translate(_LOWERED_DIGITS)
    text = _GREEK.sub(lambda found: unicodedata.lookup(_letter(found[1])), text)
    text = _SUBSCRIPT.sub(lambda found: found[1] or found[2], text)
    text = _AND_A_HALF.sub(lambda found: f"{ONES.get(found[1].lower(), 0) or float(found[1]):g}.5", text)
    text = _UNIT_AND_A_HALF.sub(r"1.5 \1s", text)
    text = text.translate({0x2010: "-", 0x2011: "-", 0x2012: "-", 0x2013: "-", 0x2212: "-"})
    for mark, digits in (("½", " 1/2"), ("⅓", " 1/3"), ("⅔", " 2/3"), ("¼", " 1/4"), ("¾", " 3/4"), ("％", "%")):
        text = text.replace(mark, digits)
    text = re.sub(r"\\pm(?![A-Za-z])", " ± ", text)
    text = _DIGIT_IN_BRACKETS.sub(_with_uncertainty, text)
    text = re.sub(r"\\(?:sim|simeq|approx|geq?|leq?|gtrsim|lesssim)(?![A-Za-z])", " ≈ ", text)
    text = re.sub(r"\\?\$?\\mu(?![A-Za-z])\$?\s?(?:\\?(?:mathrm|text)\s?\{)?", "µ", text)
    text = re.sub(r"\\\$\s?(?=\d)", "US dollar ", text)
    text = text.replace("{,}", ",").replace("\\%", "%").replace("$", "").replace("~", " ")
    text = re.sub(r"(?<=\d)(?:\\[,;: !]|[\u00a0\u2009\u202f'’])(?=\d{3}(?!\d))", ",", text)  # 1\,000, 1 000, 1'000
    text = re.sub(r"(?<![\d.,])(\d{1,3}) (?=\d{3}(?!\d))", r"\1,", text)
    text = re.sub(r"\\[,;:! ]", " ", text)
    text = re.sub(r"(?<=[A-Za-z])\^\{([-−]?\d)\}", r"^\1", text)  # GeV^{-1}
    text = re.sub(r"\\(?:d|t)?frac\s*\{(\d+)\}\s*\{(\d+)\}", r"\1/\2", text)
    return re.sub(r"\\(?:mathrm|mathbf|mathcal|text\w*|emph|operatorname|url)\s*\{([^{}]*)\}", r"\1", text)


def _with_uncertainty(found: re.Match[str]) -> str:
    """Return 1.6(4) as 1.6 ± 0.4."""
    decimals = len(found[2])
    return f"{found[1]}.{found[2]} ± {int(found[3]) / 10**decimals:.{decimals}f}"


def _letter(name: str) -> str:
    """Return the Unicode name of a Greek letter of LaTeX."""
    return f"GREEK {'CAPITAL' if name[0].isupper() else 'SMALL'} LETTER {name.upper().replace('LAMBDA', 'LAMDA')}"


def quantities(text: str) -> list[Quantity]:
    """Return the numbers of a text made `plain`, in their order; both ends of a range have its sign."""
    found = sorted([*_in_digits(text), *_in_words(text)], key=lambda each: each.start)
    spread: list[Quantity] = []
    for each in found:
        if spread and each.start < spread[-1].end:
            continue
        spread.append(each)
    for _ in range(3):  # a list "10, 20 and 30 %" is filled from its end
        for place, (one, other) in enumerate(pairwise(spread)):
            between = text[one.end : other.start]
            if (
                _INSTEAD.fullmatch(between)
                and one.unit
                and other.kinds == {"count"}
                and not (other.unit or other.counted)
            ):
                spread[place + 1] = replace(other, unit=one.unit)  # "20 min instead of 15"
            if not _RANGE.fullmatch(between):
                continue
            if one.kinds == {"count"} and one.unit is None and (other.kinds != {"count"} or other.unit):
                spread[place] = replace(one, kinds=one.kinds | other.kinds, unit=other.unit)
            elif other.kinds == {"count"} and other.unit is None and "percent" in one.kinds:
                spread[place + 1] = replace(other, kinds=other.kinds | one.kinds)
    return spread


def starts_of_ranges(found: Sequence[Quantity], text: str) -> Iterator[Quantity]:
    """Yield the first ends of ranges whose scale is written only once: the 7 billion of "7 to 70 billion"."""
    for one, other in pairwise(found):
        scale = _SCALED.search(other.shown)
        bare = (
            one.kinds == {"count"} and one.unit is None and one.decimals is not None and not _SCALED.search(one.shown)
        )
        if scale and bare and re.fullmatch(r"\s?(?:to|-|--)\s?", text[one.end : other.start]):
            factor = _SCALES.get(scale[1]) or _SUFFIXES[scale[1].lower()]
            yield replace(one, value=one.value * factor)


def with_scales(found: Sequence[Quantity], text: str) -> Iterator[Quantity]:
    """Yield the numbers; those of lists like "0.4/1.3/2.8B" get the scale that is written only at the end."""
    scale: tuple[int, str] | None = None  # where the number begins that has the scale, and the scale
    scaled = []
    for each in reversed(found):
        own = _SCALED.search(each.shown) if each.kinds == {"count"} and each.decimals is not None else None
        if own:
            scale = each.start, own[1]
        elif scale and each.kinds == {"count"} and each.decimals is not None and text[each.end : scale[0]] == "/":
            factor = _SCALES.get(scale[1]) or _SUFFIXES[scale[1].lower()]
            each, scale = replace(each, value=each.value * factor), (each.start, scale[1])
        else:
            scale = None
        scaled.append(each)
    yield from reversed(scaled)


def units_alone(text: str) -> Iterator[Quantity]:
    """Yield the units of time without a number: "within a year" is within 12 months."""
    for found in _UNIT_ALONE.finditer(text):
        yield from quantities(f"1 {found[1]}")


def _in_digits(text: str) -> Iterator[Quantity]:
    for found in _DIGITS.finditer(text):
        start = found.start("digits")
        inside = _inside_name(text, start)
        if inside and not (found["suffix"] and text[start - 1] == "-"):
            continue
        digits = found["digits"].replace(",", "")
        if digits.count(".") > 1 or len(digits) > _MOST_DIGITS:  # 3.1.4 is a version
            continue
        value = float(digits)
        if found["power"] is not None:
            value *= 10.0 ** _bounded(found["power"])
        elif found["exponent"] is not None:
            value *= 10.0 ** _bounded(found["exponent"])
        elif found["raised"] is not None and value <= 1000:
            value = value ** _bounded(found["raised"]) if value or _bounded(found["raised"]) > 0 else 0.0
        if found["scale"]:
            value *= _SCALES[found["scale"]]
        elif found["suffix"]:
            value *= _SUFFIXES[found["suffix"].lower()]
        kind: NumberKind = "count"
        if found["below"]:
            value, kind = value / float(found["below"]), "share"
        before = re.search(r"(\w+)\s$", text[max(0, start - 30) : start])
        yield _signed(
            text,
            Quantity(
                value=value,
                kinds=frozenset({kind}),
                shown=found.group().strip(),
                start=found.start(),
                end=found.end(),
                before=before[1] if before else "",
                decimals=len(digits.partition(".")[2]),
                digits=len(digits.replace(".", "").strip("0")),
            ),
        )


_Words = list[tuple[str, int, int, bool]]  # in lower case, start, end, and whether it is part of a compound


def _in_words(text: str) -> Iterator[Quantity]:
    """Yield numbers in words: twenty-five, three hundred, a thousand, twice, threefold, two thirds, half."""
    words = [
        (found.group().lower(), whole.start() + found.start(), whole.start() + found.end(), "-" in whole.group())
        for whole in WORD.finditer(text)
        for found in re.finditer(r"[^-]+", whole.group())
    ]
    place = 0
    while place < len(words):
        if part := _part_of_a_unit(text, words, place):
            found, place = part
            yield found
        else:
            first = place
            value, kind, place = _value_in_words(text, words, first)
            if value is not None:
                yield _quantity(text, words, first, place, value=value, kind=kind)
        place += 1


def _follows(words: _Words, place: int) -> str:
    """Return the word after a place, "" at the end."""
    return words[place + 1][0] if place + 1 < len(words) else ""


def _part_of_a_unit(text: str, words: _Words, place: int) -> tuple[Quantity, int] | None:
    """Return "half an hour" or "three quarters of an hour", if it begins at a place, and the place of its last word."""
    word, start, end, _ = words[place]
    count = frozenset[NumberKind]({"count"})
    if word == "half" and (time := _HALF_UNIT.match(text, end)):
        unit = UNITS[time[1]]
        return Quantity(value=0.5, kinds=count, shown=word, start=start, end=time.end(), unit=unit, decimals=1), place
    if _follows(words, place) in ("quarter", "quarters") and (time := _QUARTERS_OF.match(text, start)):
        value, unit = 0.25 * ONES.get(word, 1.0), UNITS[time[1].lower()]
        found = Quantity(value=value, kinds=count, shown=time[0], start=start, end=time.end(), unit=unit, decimals=2)
        return found, place + 1
    return None


def _value_in_words(text: str, words: _Words, place: int) -> tuple[float | None, NumberKind, int]:
    """Return the number that begins at a place (None: no number), its kind, and the place of its last word."""
    word, start, _, compound = words[place]
    follows = _follows(words, place)
    if word == "twice" and _NOT_TWICE.search(text[max(0, start - 40) : start]):
        return None, "count", place  # "none is counted twice" says how often, not how much
    if word in _FACTORS:
        return _FACTORS[word], "times", place
    if word == "half" and follows in ("a", "an"):
        scale = _SCALES.get(_follows(words, place + 1))  # "half a circle" explains and counts nothing
        return (0.5 * scale, "count", place + 2) if scale else (None, "count", place)
    if word in _HALVES and not (word == "halves" and words[max(0, place - 1)][0] in ("two", "both")):
        return _HALVES[word], "share", place
    if word in ("a", "an", "one", "another") and follows in _PARTS and _is_share(words, place + 1):
        return 1 / _PARTS[follows], "share", place + 1
    if ONES.get(word, 0) > 1 and follows.removesuffix("s") in _PARTS and follows != "seconds":
        return ONES[word] / _PARTS[follows.removesuffix("s")], "share", place + 1
    if word in ("a", "an", "every") and follows in _SCALES:
        value, last = _scaled(1.0, words, place)
        return value, "count", last
    if word.endswith("fold") and word.removesuffix("fold") in ONES | _TENS:
        return (ONES | _TENS)[word.removesuffix("fold")], "times", place
    if word in _TENS or word in ONES or word == "dozen":
        value, last = _TENS.get(word, ONES.get(word, 12.0)), place
        if word in _TENS and 0 < ONES.get(follows, 0) < 10:
            value, last = value + ONES[follows], place + 1
        value, last = _scaled(value, words, last)
        if compound and word in ("zero", "one") and last == place:
            return None, "count", place  # zero-shot, one-dimensional
        return value, "count", last
    return None, "count", place


def _scaled(value: float, words: _Words, place: int) -> tuple[float, int]:
    """Multiply by the scales that follow a place, as in "a hundred thousand"; return the place of the last one too."""
    while _follows(words, place) in _SCALES:
        value, place = value * _SCALES[words[place + 1][0]], place + 1
    return value, place


def _quantity(text: str, words: _Words, first: int, last: int, *, value: float, kind: NumberKind) -> Quantity:
    """Return the number in the words from `first` to `last`, with its sign, bound and counted word."""
    start, end = words[first][1], words[last][2]
    found = Quantity(
        value=value,
        kinds=frozenset({kind}),
        shown=" ".join(each[0] for each in words[first : last + 1]),
        start=start,
        end=end,
        before=words[first - 1][0] if first else "",
    )
    signed = _signed(text, found) if kind == "count" else _of_words(text, found)
    compound = words[last][3] and last == first and last + 1 < len(words) and words[last + 1][1] == end + 1
    if compound and kind == "count":
        return replace(signed, counted=f"-{stem(_follows(words, first))}")  # two-stage
    return signed


def _of_words(text: str, found: Quantity) -> Quantity:
    """Add to a share or factor in words how it is bounded, and whether it is one that comes on top."""
    return replace(
        found,
        hedged=_is_hedged(text, found.start),
        bound=_bound(text, found.start),
        more=bool(_MORE.match(text, found.end)),
    )


def _is_share(words: _Words, part: int) -> bool:
    """Return whether it is a share: "a third of", "a third less", not "a third method"."""
    last = part + 1 == len(words) or words[part + 1][1] - words[part][2] > 1  # "by a third."
    after = "" if last else words[part + 1][0]
    by = part > 1 and words[part - 2][0] == "by"  # "by another fifth but"
    return (
        by
        or words[part - 1][0] == "one"
        or after in ("of", "the", "less", "more", "fewer", "as", "lower", "higher", "")
    )


def _signed(text: str, found: Quantity) -> Quantity:
    """Add the sign or unit that follows, and the counted word."""
    sign = _SIGN.match(text, found.end)
    end, kinds, unit = found.end, found.kinds, None
    if sign and sign["percent"]:
        end, kinds = sign.end(), frozenset({"percent"})
        if sign["percent"].strip(" -") in ("point", "points"):
            kinds = frozenset({"percent", "count"})  # "0.2 points" for 0.2 macro-F1
    elif sign and sign["times"]:
        end, kinds = sign.end(), frozenset({"times"})
        if sign["times"].strip() == "times" and not _COMPARES.match(text, end):
            kinds = frozenset({"times", "count"})  # "tried 780 times"
    elif kinds == {"count"} and _FACTOR.search(text[max(0, found.start - 25) : found.start]):
        kinds = frozenset({"times", "count"})  # "a factor of 3.2" for 3.2x
    elif sign and sign["unit"]:
        written = sign["unit"].lstrip(" -")
        if written.lower() in UNITS and (len(written) > 1 or _LETTERS.fullmatch(sign["unit"])):
            end, unit = sign.end(), UNITS[written.lower()]
    per_cent = text[found.end : end] if text[found.end : end].strip() == "%" else ""
    counted = None if unit or kinds != {"count"} else _counted(text[end : end + 60])
    return replace(
        found,
        kinds=kinds,
        unit=unit,
        end=end,
        shown=f"{found.shown}{per_cent}",
        counted=counted,
        hedged=_is_hedged(text, found.start),
        bound=_bound(text, found.start),
        less=bool(_LESS.search(text[max(0, found.start - 30) : found.start]) or _LESS.search(text[end : end + 30])),
        more=bool(_MORE.match(text, end)),
    )


def _counted(after: str) -> str | None:
    """Return the stem of the first plural among the next five words, up to the end of the noun phrase."""
    words = re.match(r"\s([\w-]+)(?:\s([\w-]+))?(?:\s([\w-]+))?(?:\s([\w-]+))?(?:\s([\w-]+))?", after.lower())
    phrase = takewhile(lambda word: word and word not in _ENDS_PHRASE, words.groups() if words else ())
    things = (word for word in phrase if word not in _ADJECTIVES)
    return next(
        (
            stem(word)
            for word in things
            if word in _OTHER_PLURALS or (len(word) > 3 and word.endswith("s") and not word.endswith("ss"))
        ),
        None,
    )


def _bound(text: str, start: int) -> Literal["", "above", "below"]:
    found = _BOUND.search(text[max(0, start - 20) : start])
    return "" if found is None else "above" if found["above"] else "below"


def _is_hedged(text: str, start: int) -> bool:
    return bool(_HEDGE.search(text[max(0, start - 20) : start]))


def _inside_name(text: str, start: int) -> bool:
    """Return whether the digits belong to a name: after a letter, or after a capitalised word and a hyphen."""
    before = re.search(r"[^\s(\[,;]*$", text[max(0, start - 40) : start])
    touching = before.group() if before else ""
    if not touching:
        return False
    if touching[-1].isalpha() or touching[-1] == "_" or _POWER_OF_METRE.search(touching):
        return True
    return touching[-1] in "-." and any(letter.isupper() for letter in touching)


def _bounded(exponent: str) -> int:
    return max(-_MOST_DIGITS, min(_MOST_DIGITS, int(exponent[:6].replace("−", "-"))))
