"""List the units that numbers of a text are compared in, with their spellings and symbols: 500 ms is half a second.

To add a unit, add a line to `_BASES`; with a dimension and prefixes, its numbers are converted, otherwise only its
symbol is known (90 aJ for 90 attojoules). Spellings of time that are not formed with a prefix are in `_TIMES`.
"""

import re

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


def _spellings() -> dict[str, tuple[str, float]]:
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
UNITS = _spellings()  # in lower case: dimension, and factor to its base unit


def symbol_of(word: str) -> str | None:
    """Return the symbol of a unit in words: GHz for gigahertz; None for any other word."""
    found = _IN_WORDS.fullmatch(word)
    return _PREFIXES[found[1]][0] + _SYMBOLS[found[2]] if found else None
