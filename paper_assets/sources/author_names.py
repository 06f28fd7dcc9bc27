r"""Author names: from the one-line author field of arXiv's metadata to names and affiliations. Pure.

The field is written by people: `A. B. M\"uller (1), C. D (2) and E. F ((1) Univ X, (2) Univ Y)`,
`LHCb Collaboration: R. Aaij, et al`, `G. Hu, Jr. (MIT; CERN)`. Affiliations belong to the paper here, not to one
author, so the numbers that join the two are dropped.
"""

import re
import unicodedata

_ACCENTS = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "b": "\u0331", "k": "\u0328",
    "r": "\u030a",
}  # fmt: skip
_LETTERS = {
    "ss": "ß", "o": "ø", "O": "Ø", "l": "ł", "L": "Ł", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å",
    "AA": "Å", "i": "ı", "j": "ȷ", "dh": "ð", "DH": "Ð", "dj": "đ", "DJ": "Đ", "th": "þ", "TH": "Þ", "ng": "ŋ",
}  # fmt: skip
_LETTER = re.compile(r"\\(ss|ae|AE|oe|OE|aa|AA|dh|DH|dj|DJ|th|TH|ng|[oOlLij])(?![A-Za-z])\s*(?:\{\})?")
_ACCENT = re.compile(r"\\(?:(['`^\"~=.])\s*|([uvHcdbkr])(?:\s+|(?=[{\\])))(?:\{\s*(\w)\s*\}|(\w))")
_DOTLESS = str.maketrans("ıȷ", "ij")

_AND = re.compile(r"\s+(?:and|&)\s+|^\s*(?:and|&)\s+", re.IGNORECASE)
_INITIAL = re.compile(r"(?<=\w)\.(?=[^\W\d_])")
_SUFFIX = re.compile(r"(?:jr|sr|ii|iii|iv)\.?", re.IGNORECASE)
_NO_NAME = re.compile(r"(?:et\.?\s*al\.?.*|for\s+the\s.*|on\s+behalf\s.*|\W*)", re.IGNORECASE)
_REFERENCE = re.compile(r"(?:\d|and|[&,;*\s])+", re.IGNORECASE)  # "1,2" or "1 and 3": points into a legend
_LEGEND_MARK = re.compile(r"\(\d+\)\s*:?\s*|(?:^|[;,])\s*\d+\s*[-:.]?\s+(?=[A-Z])")


def plain_tex(text: str) -> str:
    r"""A name with TeX's accents and letters as Unicode: `Te\v{s}anovi\'c` is `Tešanović`. Braces and `~` go."""
    if "\\" in text:
        text = _LETTER.sub(lambda found: _LETTERS[found[1]], text)
        text = _ACCENT.sub(_accented, text)
        text = text.replace("\\,", " ").replace("\\ ", " ").replace("\\&", "&").replace("\\-", "")
    if "{" in text or "}" in text:
        text = text.replace("{", "").replace("}", "")
    return " ".join(text.replace("~", " ").split())


def is_name(text: str) -> bool:
    """False for what stands among authors and is none: `:`, `et al`, `for the X Collaboration`."""
    return not _NO_NAME.fullmatch(text)


def authors_and_affiliations(line: str) -> tuple[list[str], list[str]]:
    """Names in order and affiliations without repeats, from one author line; anything in brackets is no name."""
    outside, brackets = _without_brackets(plain_tex(line))
    names: list[str] = []
    for part in outside.replace(";", ",").replace(": ", ", ").split(","):
        for name in _AND.split(part):
            name = _INITIAL.sub(". ", " ".join(name.split()))
            if _SUFFIX.fullmatch(name) and names:
                names[-1] += f" {name}"
            elif is_name(name):
                names.append(name)
    return names, list(dict.fromkeys(place for inside in brackets for place in _places(inside)))


def _accented(found: re.Match[str]) -> str:
    letter = (found[3] or found[4]).translate(_DOTLESS)
    return unicodedata.normalize("NFC", letter + _ACCENTS[found[1] or found[2]])


def _without_brackets(text: str) -> tuple[str, list[str]]:
    """The text outside of all round brackets, and the contents of the outermost ones. Unbalanced ones are tolerated."""
    if "(" not in text:
        return text, []
    outside: list[str] = []
    brackets: list[str] = []
    depth, start = 0, 0
    for place, letter in enumerate(text):
        if letter == "(":
            if depth == 0:
                outside.append(text[start:place])
                start = place + 1
            depth += 1
        elif letter == ")" and depth:
            depth -= 1
            if depth == 0:
                brackets.append(text[start:place])
                start = place + 1
    (brackets if depth else outside).append(text[start:])
    return " ".join(outside), brackets


def _places(inside: str) -> list[str]:
    """Affiliations in one bracket: none in a reference `1,2`, several in a legend `(1) X, (2) Y` or `X; Y`."""
    if _REFERENCE.fullmatch(inside):
        return []
    parts = (part.strip(" ,;.:") for mark in _LEGEND_MARK.split(inside) for part in mark.split(";"))
    return [part.removesuffix(" and") for part in parts if not (part.isdigit() or _NO_NAME.fullmatch(part))]
