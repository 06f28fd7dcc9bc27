"""Masking phone numbers and mail addresses, and nothing that merely looks like them (B2).

Phones are found by `phonenumbers` with Leniency.EXACT_GROUPING: valid numbers, written in groups as their country does.
Papers are full of other digits, so what is an identifier, a date, a range or arithmetic is covered before it looks.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

MASK = "***"

_REGIONS = ("KR", "US")  # numbers of other countries are known by their +
_COVER = "\ue000"  # private use: no digit, letter or punctuation to the matcher

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
            r"(?<!\d)\d{1,5}-\d{1,7}-\d{1,7}-[\dX](?!\d)",  # ISBN-10 likewise
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
            # Two numbers with a dash are a range, unless an area code stands before or a third group follows.
            rf"(?<![\d.+)])(?<![{_DASH}])(?<!\d[ .)])(?<![)]\s){_RANGE}(?!\d|\s?[.{_DASH}]\d|\s\d{{3,4}}(?!\d))",
            r"(?<!\d)(?!010\d{8}(?!\d))\d{5,}(?!\d|[-.]\d)",  # in one piece only mobile numbers are known for phones
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
# Right after one of these nothing is covered: it is a phone number if it can be one.
_SAID_TO_BE_A_PHONE = re.compile(
    r"(?:\b(?:tel|telephone|phone|mobile|cell|fax|call|whatsapp|hotline)|전화|연락처|휴대폰|휴대전화|핸드폰|팩스|문의|고객센터|대표번호|[☎☏📞📱])"
    r"(?:번호|는|은)?[\s.:=)(-]{0,4}(?:at\s|us\s|to\s)?$|\+\(?(?:\d[\d ().-]*)?$",
    re.IGNORECASE,
)
_BEFORE = 24  # characters in which such a word is looked for
_MAY_HOLD_A_PHONE = re.compile(rf"\d(?:[\s().{_DASH}]{{0,3}}\d){{6}}")
_VIRTUAL_KOREAN = re.compile(r"(?<![\d.-])05\d\d[-. ]\d{3,4}[-. ]\d{4}(?![\d-])")  # 0505-…: not in the library's groups


@dataclass(frozen=True, slots=True)
class Pii:
    """Where in a text something personal stands; what it is, not the thing itself."""

    kind: Literal["mail", "phone"]
    start: int
    end: int


def mask_pii(text: str) -> str:
    """The text with each phone number and mail address as `***`. Masking twice is the same as masking once."""
    while found := find_pii(text):
        for each in reversed(found):
            text = text[: each.start] + MASK + text[each.end :]
    return text


def find_pii(text: str) -> list[Pii]:
    """The phone numbers and mail addresses of a text in their order, none overlapping."""
    found: list[Pii] = []
    if "@" in text or "at" in text.lower():
        spans = {match.span() for pattern in (_MAIL, _SPELLED_MAIL) for match in pattern.finditer(text)}
        found = [Pii("mail", start, end) for start, end in spans]
    if _MAY_HOLD_A_PHONE.search(text):
        found += [Pii("phone", start, end) for start, end in _phones(text)]
    apart: list[Pii] = []
    for each in sorted(found, key=lambda pii: (pii.start, -pii.end)):
        if not apart or each.start >= apart[-1].end:
            apart.append(each)
    return apart


def _phones(text: str) -> Iterator[tuple[int, int]]:
    from phonenumbers import Leniency, PhoneNumberMatcher

    open_to_view = _COVERED.sub(_covered, _GROUPS.sub(_widths_covered, text))
    if not _MAY_HOLD_A_PHONE.search(open_to_view):
        return
    for region in _REGIONS:
        for match in PhoneNumberMatcher(open_to_view, region, leniency=Leniency.EXACT_GROUPING):
            unclosed = match.raw_string.count("(") > match.raw_string.count(")")
            yield match.start + unclosed, match.end  # a bracket around the number stays
    for virtual in _VIRTUAL_KOREAN.finditer(open_to_view):
        yield virtual.span()


def _widths_covered(match: re.Match[str]) -> str:
    groups = re.findall(r"\d+", match.group())
    widths = all(group[0] != "0" and (int(group) % 16 == 0 or int(group) % 50 == 0) for group in groups)
    return _covered(match) if widths else match.group()


def _covered(match: re.Match[str]) -> str:
    start = match.start()
    if _SAID_TO_BE_A_PHONE.search(match.string[max(0, start - _BEFORE) : start]):
        return match.group()
    return _COVER * len(match.group())
