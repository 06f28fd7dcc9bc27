"""Mask phone numbers and mail addresses without touching identifiers, dates and other numbers (B2).

`phonenumbers` finds phones with Leniency.EXACT_GROUPING: valid numbers, grouped as usual in their country. Papers are
full of other digits, so identifiers, dates, ranges and arithmetic are covered before the search.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MASK = "***"

_REGIONS = ("KR", "US")  # numbers of other countries need a +
_COVER = "\ue000"  # private use: neither digit, letter nor punctuation to the matcher

_LETTER = "A-Za-z0-9À-ɏ가-힣"
_LOCAL = rf"[{_LETTER}._%+'-]"
# A last label in mixed case is the next sentence: "edu.We".
_DOMAIN = r"(?:[A-Za-z0-9-]+{dot})+(?:[a-z]{{2,24}}|[A-Z]{{2,24}})(?![A-Za-z0-9-])"
_MAIL = re.compile(
    rf"(?:(?<!{_LOCAL}){_LOCAL}*[{_LETTER}_]|\{{[^{{}}@\n]{{1,200}}\}})@"  # {ada,bo}@example.edu is one address
    rf"(?!\d+\.){_DOMAIN.format(dot='[.]')}(?!:\S)",  # not "recall@10.Then", nor git@host:path
)
_SPELLED_MAIL = re.compile(
    rf"(?<!{_LOCAL}){_LOCAL}*[{_LETTER}_]\s?[\[({{]\s?(?i:at)\s?[\])}}]\s?"
    + _DOMAIN.format(dot=r"(?:[.]|\s?[\[({{]\s?(?i:dot)\s?[\])}}]\s?)"),
)

# Domains in other scripts (IDN), written as they are read: ada@bücher.de, 보람@한국.한국.
_IDN_MAIL = re.compile(
    r"(?<![\w.%+'-])[\w.%+'-]*\w@(?P<domain>(?:[^\W_](?:[\w-]*[^\W_])?[.])+"
    r"(?:한국|рф|бг|укр|срб|бел|қаз|ελ|中国|中國|香港|台湾|台灣|新加坡"
    r"|みんな|ไทย|भारत|مصر|ایران|(?:[a-z]{2,24}|[A-Z]{2,24})(?![A-Za-z0-9-])))"
    r"(?!:\S)"
)
# Full-width letters, points, at signs and odd hyphens as the patterns read them, one for one.
_AS_READ: dict[int, int | str] = {
    **{wide: wide - 0xFEE0 for wide in range(0xFF01, 0xFF5F) if not chr(wide).isdigit()},
    **dict.fromkeys(map(ord, "。｡"), "."),
    **dict.fromkeys(map(ord, "‐‑‒"), "-"),
}

_MONTH, _DAY, _YEAR = r"(?:0?[1-9]|1[0-2])", r"(?:[12]\d|3[01]|0?[1-9])", r"(?:1[89]|20)\d\d"
_DASH = r"\-‐‑–—−－"
_RANGE = rf"\d{{1,5}}\s?[{_DASH}]{{1,2}}\s?\d{{1,5}}"
_NUMBER = r"-?\d[\d.,]{0,20}(?:[ -]\d[\d.,]{0,20}){0,4}"
_COVERED = re.compile(
    "|".join(
        [
            r"https?://\S+",
            r"(?i:\bdoi:?\s?)?\b10\.\d{4,9}/\S+",
            r"(?i:\barxiv:\s?)?(?<![\d.])\d\d(?:0[1-9]|1[0-2])\.\d{4,5}(?:v\d+)?(?!\d|[.-]\d)",
            r"\b[a-z]+(?:-[a-z]+)*(?:\.[A-Z]{2})?/\d{7}(?:v\d+)?(?!\d)",  # arXiv before 2007
            r"(?<!\d)\d{4}-\d{4}-\d{4}-\d{3}[\dX](?!\d)",  # ORCID, ISNI
            r"(?i:\bis[bs]n(?:-1[03])?:?\s?)[\d -]+[\dXx](?!\d)",
            r"(?<!\d)97[89][- ]\d[\d -]{8,11}\d(?!\d)",  # ISBN-13 without its name
            r"(?<!\d)\d{1,5}-\d{1,7}-\d{1,7}-[\dX](?!\d)",  # ISBN-10 without its name
            rf"(?<!\d){_YEAR}(?P<s>[-./])\s?{_MONTH}(?P=s)\s?{_DAY}(?!\d)(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?",
            rf"(?<!\d)(?:{_DAY}[-./]{_MONTH}|{_MONTH}[-./]{_DAY})[-./]{_YEAR}(?!\d)",
            r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d)",  # IP
            r"(?i:\bv(?:er(?:sion)?)?\.?|\brelease)\s?\d+(?:[.-]\d+)+",
            rf"(?<![\d.+])\d+\.\d+(?![.{_DASH}]?\d)",  # decimals
            r"(?<![\d.+])\d+(?:\.\d+){2,4}(?<!\.\d{4})(?!\.?\d)",  # versions; a phone ends in four digits
            r"(?i:\b(?:pp?|pages?|vol(?:ume)?|no|nos|art|sec|fig|eqs?)\b\.?|쪽|권|호)\s?"
            + _RANGE
            + r"(?:\s\d{4}(?!\d))?",
            r"(?<!\d)\d{1,4}\s?\(\d{1,4}\)\s?[,:]\s?" + _RANGE,  # volume(number): pages
            # Two numbers with a dash are a range, unless an area code precedes or a third group follows.
            rf"(?<![\d.+)])(?<![{_DASH}])(?<![{_DASH}]\s)(?<!\d[ .)])(?<![)]\s){_RANGE}"
            rf"(?!\d|\s?[.{_DASH}]\s?\d|\s\d{{3,4}}(?!\d))",
            r"(?<!\d)(?!010\d{8}(?!\d))\d{5,}(?!\d|[-.]\d)",  # without separators only mobile numbers are recognised
            r"\b[A-Za-z][A-Za-z0-9]*[-_/#]\d[\d-]*",  # grants and parts: NRF-2019-123-4567
            r"\$(?=[^$\n]*[=^_\\<>])[^$\n]{1,200}\$",
            r"\\\(.{1,200}?\\\)|\\\[.{1,200}?\\\]",
            rf"[=≈≃∼<>≤≥±×·^*]\s?{_NUMBER}",
            rf"\b{_NUMBER}(?=\s?[=≈≃<>≤≥±×·^*])",
        ]
    )
)
# Three or more numbers in a row; layers are as wide as multiples of 16 or 50, a phone almost never is in every group.
_GROUPS = re.compile(rf"(?<![\d+.])\d{{1,5}}(?:(?:\s?[{_DASH}/.]\s?|\s)\d{{1,5}}){{2,}}(?!\d)")
# Digits right after one of these words are never covered.
_SAID_TO_BE_A_PHONE = re.compile(
    r"(?:\b(?:tel|telephone|phone|mobile|cell|fax|call|whatsapp|hotline)|전화|연락처|휴대폰|휴대전화|핸드폰|팩스|문의|고객센터|대표번호|[☎☏📞📱])"
    r"(?:번호|는|은)?[\s.:=)(-]{0,4}(?:at\s|us\s|to\s)?$|\+\(?(?:\d[\d ().-]*)?$",
    re.IGNORECASE,
)
_BEFORE = 24  # characters searched for such a word
_CALLED_FROM_ABROAD = re.compile(r"(?<![\d.+-])00(?=[ -]?[1-9]\d{0,2}[ .-]\d)")  # 0082-10-… is +82-10-…
# Context that rules out a phone number: a grant, a counted thing.
_OF_A_GRANT = re.compile(
    r"(?:\b(?:grants?|awards?|contracts?|projects?|agreements?|fund(?:ing|ed|s)?|supported|NSF|NIH|NRF|IITP|ERC|DFG|DARPA|"
    r"EPSRC|NSFC|JSPS|KAKENHI)\b|과제|연구비|사업)(?:[^.;\n]|\bnos?\.){0,40}$",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"[ -](?:[a-z]+ )?[a-z]{2,}s(?![A-Za-z])|[ -](?:parameter|token|sample|image|word|hour)(?![A-Za-z])"
)
_MAY_HOLD_A_PHONE = re.compile(rf"\d(?:[\s().{_DASH}]{{0,3}}\d){{6}}")
_VIRTUAL_KOREAN = re.compile(r"(?<![\d.-])05\d\d[-. ]\d{3,4}[-. ]\d{4}(?![\d-])")  # 0505-…: not in the library's groups


@dataclass(frozen=True, slots=True)
class Pii:
    """The position of personal data in a text and its kind, not the data itself."""

    kind: Literal["mail", "phone"]
    start: int
    end: int


def mask_pii(text: str) -> str:
    """Replace each phone number and mail address by `***`. Masking twice equals masking once."""
    while found := find_pii(text):
        for each in reversed(found):
            text = text[: each.start] + MASK + text[each.end :]
    return text


def find_pii(text: str) -> list[Pii]:
    """Return the phone numbers and mail addresses of a text in their order, without overlaps."""
    found: list[Pii] = []
    text = text.translate(_AS_READ)
    if "@" in text or "at" in text.lower():
        spans = {match.span() for pattern in (_MAIL, _SPELLED_MAIL) for match in pattern.finditer(text)}
        spans |= {match.span() for match in _IDN_MAIL.finditer(text) if not match["domain"].isascii()}
        found = [Pii("mail", start, end) for start, end in spans]
    if _MAY_HOLD_A_PHONE.search(text):
        found += [Pii("phone", start, end) for start, end in _phones(text)]
    apart: list[Pii] = []
    for each in sorted(found, key=lambda pii: (pii.start, -pii.end)):
        if not apart or each.start >= apart[-1].end:
            apart.append(each)
    return apart


def _phones(text: str) -> Iterator[tuple[int, int]]:
    read = _CALLED_FROM_ABROAD.sub(" +", text)
    open_to_view = _COVERED.sub(_covered, _GROUPS.sub(_widths_covered, read))
    if not _MAY_HOLD_A_PHONE.search(open_to_view):
        return
    from phonenumbers import Leniency, PhoneNumberMatcher  # imported only for texts that need it

    for region in _REGIONS:
        for match in PhoneNumberMatcher(open_to_view, region, leniency=Leniency.EXACT_GROUPING):
            if _is_no_phone(text, match.start, match.end):
                continue
            unclosed = match.raw_string.count("(") > match.raw_string.count(")")
            abroad = text[match.start] == "0" and match.raw_string.startswith("+")
            yield match.start + unclosed - abroad, match.end  # a bracket around the number stays
    for virtual in _VIRTUAL_KOREAN.finditer(open_to_view):
        yield virtual.span()


def _is_no_phone(text: str, start: int, end: int) -> bool:
    if _SAID_TO_BE_A_PHONE.search(text[max(0, start - _BEFORE) : start]):
        return False
    digits = text[start:end].lstrip("(")
    counts = " " in digits and digits.replace(" ", "").isdigit() and _COUNTED.match(text, end)
    return bool(counts or _OF_A_GRANT.search(text[max(0, start - 80) : start]))


def _widths_covered(match: re.Match[str]) -> str:
    groups = re.findall(r"\d+", match.group())
    widths = all(group[0] != "0" and (int(group) % 16 == 0 or int(group) % 50 == 0) for group in groups)
    return _covered(match) if widths else match.group()


def _covered(match: re.Match[str]) -> str:
    start = match.start()
    if _SAID_TO_BE_A_PHONE.search(match.string[max(0, start - _BEFORE) : start]):
        return match.group()
    return _COVER * len(match.group())
