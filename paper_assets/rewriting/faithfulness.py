"""Numbers and names in a rewrite that the original lacks, counted by code and shown to the critic.

A hint, not a verdict: it knows nothing of meaning. What is the same in another spelling counts as there: 1,000 and
1000, 50% and 50 percent and 0.5, 10^{6} and a million, three and 3, a number rounded (93.7 to 94), an acronym for
words of the original and words for an acronym of it. A capital at the beginning of a sentence makes no name.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_UNITS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
_WORDS = {word: float(value) for value, word in enumerate((*_UNITS.split(), "seventeen", "eighteen", "nineteen"))}
_TENS = {
    word: 10.0 * (place + 2)
    for place, word in enumerate(["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"])
}
_SCALES = {"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12}
_SUFFIXES = {"k": 1e3, "m": 1e6, "b": 1e9, "bn": 1e9, "t": 1e12}
_TIMES_WORDS = {"half": 0.5, "twice": 2.0, "double": 2.0, "doubles": 2.0, "thrice": 3.0, "triple": 3.0, "dozen": 12.0}
_MOST_DIGITS = 60  # longer ones, and greater powers, say nothing to a reader, and floats have an end
_SMALL_WORDS = 20  # number words below it are everyday language ("one of the two"): no claims, only support

_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_NUMBER = re.compile(
    r"""
    (?P<sign>(?<![\w.)])[-−])?                                          # a range 10-20 has no negative number
    (?P<digits>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)*|(?<![\d.])\.\d+)
    (?:\s*(?:\\times|[×x*])\s*10\s*\^?\s*\{?(?P<power>[-−]?\d+)\}?|[eE](?P<exponent>[-+]?\d+)\b)?
    (?:\^\s*\{?(?P<raised>[-−]?\d+)\}?)?
    (?:\s*[-\s]?(?P<scale>hundred|thousand|million|billion|trillion)\b|(?P<suffix>[kKMBT]|bn)(?![\w]))?
    (?:\s?%)?
    """,
    re.VERBOSE,
)
_WORD = re.compile(r"[^\W_]+(?:['’.+#/_-][^\W_]+)*[+#]*")
_SENTENCE_END = re.compile(r"(?:^|[.!?:;…]['\"”’)\]]*\s+|\n\s*)(?:[-*•#>]+\s+|\d+[.)]\s+)?['\"“‘(\[]*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """As they stand in the rewrite, each once, in order."""

    numbers: tuple[str, ...]
    names: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        return self.numbers + self.names


def unsupported(original: str, rewrite: str) -> Unsupported:
    """What stands in `rewrite` and not in `original` (title and abstract together)."""
    source, text = _plain(original), _plain(rewrite)
    return Unsupported(numbers=tuple(_new_numbers(source, text)), names=tuple(_new_names(source, text)))


def _plain(text: str) -> str:
    """LaTeX and Unicode spelt the way the patterns read it."""
    text = unicodedata.normalize("NFC", text)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda found: "^" + found.group().translate(_SUPERSCRIPTS), text)
    text = text.replace("{,}", ",").replace("\\%", "%").replace("$", "").replace("~", " ")
    text = re.sub(r"(?<=\d)(?:\\[,;: !]|[\u00a0\u2009\u202f'’])(?=\d{3}(?!\d))", ",", text)  # 1\,000, 1 000, 1'000
    text = re.sub(r"(?<![\d.,])(\d{1,3}) (?=\d{3}(?!\d))", r"\1,", text)
    text = re.sub(r"\\(?:d|t)?frac\s*\{(\d+)\}\s*\{(\d+)\}", r"\1/\2", text)
    text = re.sub(r"\\(?:mathrm|mathbf|mathcal|text\w*|emph|operatorname|url)\s*\{([^{}]*)\}", r"\1", text)
    return text.translate({0x2010: "-", 0x2011: "-", 0x2012: "-", 0x2013: "-", 0x2212: "-"})


# Numbers


def _new_numbers(source: str, text: str) -> Iterator[str]:
    known = {value for _, _, values in _numbers(source) for value in values}
    known |= {value for value, _ in _number_words(source)}
    known |= {value / 100 for value in known} | {value * 100 for value in known}  # 50% and 0.5
    names = {_squeezed(word) for word in _words(source) if not word.isdigit()}
    told: set[float] = set()
    for before, shown, values in _numbers(text):
        if values[0] in told or _squeezed(before + shown) in names:  # "GPT 4" for "GPT-4"
            continue
        meant = values if shown[-1].isalpha() else values[:1]  # 3T may be three tesla, 10^7 is not ten
        if not any(_close(value, other) for value in meant for other in known) and not _rounded(shown, values, known):
            told.add(values[0])
            yield shown
    for value, shown in _number_words(text):
        if value >= _SMALL_WORDS and value not in told and not any(_close(value, other) for other in known):
            told.add(value)
            yield shown


def _numbers(text: str) -> Iterator[tuple[str, str, tuple[float, ...]]]:
    """The word before, the number as written and what it may mean, the likeliest first; GPT-4 holds no number."""
    for found in _NUMBER.finditer(text):
        if _in_name(text, found.start("digits")):
            continue
        digits = found["digits"].replace(",", "")
        if digits.count(".") > 1 or len(digits) > _MOST_DIGITS:  # 3.1.4 is a version
            continue
        plain = float(digits)
        value = plain
        if found["power"] is not None:
            value *= 10.0 ** _bounded(found["power"])
        elif found["exponent"] is not None:
            value *= 10.0 ** _bounded(found["exponent"])
        elif found["raised"] is not None and plain <= 1000:
            value = plain ** _bounded(found["raised"]) if plain or _bounded(found["raised"]) > 0 else 0.0
        if found["scale"]:
            value *= _SCALES[found["scale"]]
        elif found["suffix"]:
            value *= _SUFFIXES[found["suffix"].lower()]
        before = re.search(r"(\w+)\s$", text[max(0, found.start("digits") - 30) : found.start("digits")])
        yield before[1] if before else "", found.group().strip(), tuple(dict.fromkeys((value, plain)))


def _number_words(text: str) -> Iterator[tuple[float, str]]:
    """Numbers in words: twenty-five, three hundred, two million."""
    words = [word for compound in _words(text) for word in compound.lower().split("-")]
    place = 0
    while place < len(words):
        start, value = place, None
        if words[place] in _TIMES_WORDS:
            value = _TIMES_WORDS[words[place]]
            place += 1
        else:
            if words[place] in _TENS:
                value = _TENS[words[place]]
                place += 1
                if place < len(words) and 0 < _WORDS.get(words[place], 0) < 10:
                    value += _WORDS[words[place]]
                    place += 1
            elif words[place] in _WORDS:
                value = _WORDS[words[place]]
                place += 1
            while value is not None and place < len(words) and words[place] in _SCALES:
                value *= _SCALES[words[place]]
                place += 1
        if value is None:
            word = words[place]
            tenfold = word.removesuffix("fold")
            if word != tenfold and tenfold in _WORDS | _TENS:
                value = (_WORDS | _TENS)[tenfold]
            place += 1
        if value is not None:
            yield value, " ".join(words[start:place])


def _in_name(text: str, start: int) -> bool:
    """Whether the digits belong to a name: a letter touches them before, or a hyphen after a capitalised word does."""
    before = re.search(r"[^\s(\[,;]*$", text[max(0, start - 40) : start])
    touching = before.group() if before else ""
    if not touching:
        return False
    if touching[-1].isalpha() or touching[-1] == "_":
        return True
    return touching[-1] in "-." and any(letter.isupper() for letter in touching)


def _rounded(shown: str, values: tuple[float, ...], known: set[float]) -> bool:
    """Whether it is a number of the original with fewer decimals; to one digit is too coarse to count."""
    found = re.search(r"\d[\d,]*(?:\.(\d+))?", shown)
    if found is None or len(re.sub(r"\D", "", found.group()).lstrip("0")) < 2:
        return False
    decimals = len(found[1] or "")
    return any(abs(round(other, decimals) - values[0]) < 1e-9 for other in known if other != int(other))


def _close(value: float, other: float) -> bool:
    return abs(value - other) <= 1e-9 * max(1.0, abs(value), abs(other))


def _bounded(exponent: str) -> int:
    return max(-_MOST_DIGITS, min(_MOST_DIGITS, int(exponent[:6].replace("−", "-"))))


# Names


def _new_names(source: str, text: str) -> Iterator[str]:
    words = [part for word in _words(source) for part in _parts(word)]
    known = {_squeezed(word) for word in _words(source)} | {_squeezed(word) for word in words}
    known |= {_squeezed(one + other) for one, other in pairwise(words)}  # "GPT 4" for "GPT-4"
    initials = "".join(_squeezed(word)[:1] for word in words)
    acronyms = [_squeezed(word).removesuffix("s") for word in _words(source) if _is_acronym(word)]
    told: set[str] = set()
    for run in _capitalised_runs(text):
        spelt_out = _spelling(run, acronyms)
        for place, (word, begins) in enumerate(run):
            squeezed = _squeezed(word)
            if place in spelt_out or squeezed in told or _stands_in(word, known):
                continue
            if begins and word[1:] == word[1:].lower() and not any(letter.isdigit() for letter in word):
                continue
            if _is_acronym(word) and squeezed.removesuffix("s") in initials:
                continue
            told.add(squeezed)
            yield word


def _capitalised_runs(text: str) -> Iterator[list[tuple[str, bool]]]:
    """Neighbouring words with a capital, and whether each begins a sentence."""
    run: list[tuple[str, bool]] = []
    end = 0
    for found in _WORD.finditer(text):
        word = found.group()
        if run and text[end : found.start()].strip(" \n-"):
            yield run
            run = []
        if any(letter.isupper() for letter in word) and word not in ("I", "A"):
            run.append((word, bool(_SENTENCE_END.search(text[max(0, found.start() - 12) : found.start()]))))
        elif run:
            yield run
            run = []
        end = found.end()
    if run:
        yield run


def _spelling(run: list[tuple[str, bool]], acronyms: list[str]) -> set[int]:
    """Places of the words in a run whose initials are an acronym of the original."""
    letters = [(_squeezed(part)[:1], place) for place, (word, _) in enumerate(run) for part in _parts(word)]
    initials = "".join(letter for letter, _ in letters)
    if len(initials) != len(letters):  # a part of marks alone
        return set()
    found: set[int] = set()
    for acronym in acronyms:
        start = initials.find(acronym) if len(acronym) > 1 else -1
        if start >= 0:
            found |= {place for _, place in letters[start : start + len(acronym)]}
    return found


def _stands_in(word: str, known: set[str]) -> bool:
    squeezed = _squeezed(word)
    forms = {squeezed, squeezed.removesuffix("s"), squeezed + "s", squeezed.removesuffix("es")}
    return bool(forms & known) or all(
        {_squeezed(part), _squeezed(part).removesuffix("s"), _squeezed(part) + "s"} & known for part in _parts(word)
    )


def _is_acronym(word: str) -> bool:
    return sum(letter.isupper() for letter in word) >= 2


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _parts(word: str) -> list[str]:
    return [part for part in re.split(r"[-/_.'’]", word) if part] or [word]


def _squeezed(word: str) -> str:
    """Without case, accents, marks and the possessive s."""
    word = re.sub(r"['’]s$", "", word)
    plain = unicodedata.normalize("NFKD", word)
    return "".join(letter for letter in plain if letter.isalnum()).casefold()
