"""Parse fields of paper metadata: author names, code links and notices of withdrawal. Pure functions.

Author names: the one-line author field of arXiv's metadata is free text: `A. B. M\\"uller (1), C. D (2) and E. F ((1)
Univ X, (2) Univ Y)`, `LHCb Collaboration: R. Aaij, et al`, `G. Hu, Jr. (MIT; CERN)`. Affiliations are stored per paper,
not per author, so the numbers that link the two are dropped.

Code links: the URL of a paper's code, or of its project page, found in comment or abstract (SPEC S5). A data set on
Hugging Face is not code, and neither is a project page: it may promise code, show a film, or be empty. To add a host of
code, extend `_ADDRESS` and `_repository_path`.

Withdrawals (SPEC S6): arXiv has no field for them; the notice is in the comment, often also in place of the abstract. A
text that only uses the word ("patients withdrawn from the trial", "withdrawn from a conference") is not a notice.
"""

import re
import unicodedata
from dataclasses import replace

from paper_assets.paper import Paper

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
    """Convert TeX's accents and letters to Unicode: `Te\v{s}anovi\'c` becomes `Tešanović`; drop braces and `~`."""
    if "\\" in text:
        text = _LETTER.sub(lambda found: _LETTERS[found[1]], text)
        text = _ACCENT.sub(_accented, text)
        text = text.replace("\\,", " ").replace("\\ ", " ").replace("\\&", "&").replace("\\-", "")
    if "{" in text or "}" in text:
        text = text.replace("{", "").replace("}", "")
    return " ".join(text.replace("~", " ").split())


def is_name(text: str) -> bool:
    """Return False for entries that are not names: `:`, `et al`, `for the X Collaboration`."""
    return not _NO_NAME.fullmatch(text)


def authors_and_affiliations(line: str) -> tuple[list[str], list[str]]:
    """Return names in order and unique affiliations from one author line; text in brackets is not a name."""
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
    """Split off the text outside of all round brackets, and the contents of the outermost ones. Unbalanced ones are
    tolerated.
    """
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
    """Return the affiliations in a bracket: none in a reference `1,2`, several in a legend `(1) X, (2) Y` or `X; Y`."""
    if _REFERENCE.fullmatch(inside):
        return []
    parts = (part.strip(" ,;.:") for mark in _LEGEND_MARK.split(inside) for part in mark.split(";"))
    return [part.removesuffix(" and") for part in parts if not (part.isdigit() or _NO_NAME.fullmatch(part))]


_CODE_HOSTS = ("github.com", "gitlab.com", "anonymous.4open.science")
_MODEL_HOST = "huggingface.co"
_ADDRESS = re.compile(
    r"(?<![\w.-])(?:https?://)?(?:www\.)?(github\.com|gitlab\.com|huggingface\.co|anonymous\.4open\.science)[/:]([\w.~%/-]+)",
    re.IGNORECASE,
)
DATA_SET = r"^(?:https?://)?(?:www\.)?huggingface\.co/datasets/"  # such a link may have been given, or stored earlier
_NAME = re.compile(r"[A-Za-z0-9_.-]*[A-Za-z0-9_][A-Za-z0-9_.-]*")
# Every text that names a project page contains one of these; most texts contain none, and the check is cheap.
MAY_NAME_PAGE = ("://", ".io", "4open.science", "sites.google")
_PAGE_HOSTS = (".github.io", ".gitlab.io", "4open.science/w/", "sites.google.com/view/")
_ON_PAGE_HOST = re.compile(
    r"(?<![\w./-])(?:https?://)?(?:www\.)?"
    r"((?:[a-z0-9-]+\.(?:github|gitlab)\.io|anonymous\.4open\.science/w/|sites\.google\.com/view/)[\w.~%/-]*)",
    re.IGNORECASE,
)
_SAID_TO_BE_PAGE = re.compile(
    r"\bproject(?:(?:'s)?(?: ?web| ?home)?[ -]?(?:page|site|url|link)\b[^.\n]{0,30}?|: ?)"
    r"https?://([\w.-]+\.[a-z]{2,}[\w.~%/-]*)",
    re.IGNORECASE,
)
# First path parts that are pages of the site, not accounts.
_NO_OWNER = {
    "github.com": {"about", "apps", "collections", "features", "marketplace", "orgs", "search", "sponsors", "topics"},
    "gitlab.com": {"explore", "groups", "help", "users"},
    "huggingface.co": {"blog", "collections", "datasets", "docs", "learn", "organizations", "papers", "posts", "tasks"},
}
_GITLAB_PAGES = frozenset(("-", "tree", "blob", "raw", "issues", "wikis", "merge_requests"))


def code_url(comment: str | None, abstract: str | None) -> str | None:
    """Find the URL of the repository named in the comment, else in the abstract; None if neither names one.

    Within one text a code host precedes Hugging Face, whose link is often a model beside the code. The result is
    canonical: https, no `www.`, no `.git`, nothing below the repository.
    """
    for text in (comment, abstract):
        if text and (found := _repository_in(text)):
            return found
    return None


def with_code_url(paper: Paper) -> Paper:
    """Return the paper with the code that its comment or abstract names, unless it has a URL: the same for every
    source.
    """
    if paper.github_url:
        return paper
    found = code_url(paper.comment, paper.abstract)
    return replace(paper, github_url=found) if found else paper


def project_page(comment: str | None, abstract: str | None) -> str | None:
    """Find the URL of the project page named in the comment, else in the abstract; None if neither names one."""
    for text in (comment, abstract):
        lowered = (text or "").lower()
        patterns = [_ON_PAGE_HOST] if any(host in lowered for host in _PAGE_HOSTS) else []
        patterns += [_SAID_TO_BE_PAGE] if "://" in lowered and "project" in lowered else []
        for found in (found for pattern in patterns for found in pattern.finditer(_plain(text or ""))):
            if not _repository_in(found[1]):
                return "https://" + found[1].rstrip(".-/")
    return None


def _plain(text: str) -> str:
    """Remove TeX's escapes, which occur inside URLs; a URL contains no backslash."""
    return text.replace("{\\_}", "_").replace("\\_", "_").replace("\\%", "%").replace("\\-", "").replace("\\", " ")


def _repository_in(text: str) -> str | None:
    lowered = text.lower()  # most texts name no host; looking first is 30 times as fast as the pattern
    if not any(host in lowered for host in (*_CODE_HOSTS, _MODEL_HOST)):
        return None
    found: dict[bool, str] = {}
    for match in _ADDRESS.finditer(_plain(text)):
        host = match[1].lower()
        path = _repository_path(host, match[2])
        if path:
            found.setdefault(host in _CODE_HOSTS, f"https://{host}/{path}")
    return found.get(True, found.get(False))


def _repository_path(host: str, path: str) -> str | None:
    """Return `owner/name` (Hugging Face: also below `spaces/`; GitLab: with subgroups); 4open.science: `r/name`."""
    parts = [part.rstrip(".").removesuffix(".git") for part in path.split("/")]
    kind: list[str] = []
    if host == _MODEL_HOST and parts[0] == "spaces":
        kind = [parts.pop(0)]
    if host == "anonymous.4open.science":
        if parts[0] not in ("r", "repository"):
            return None
        parts[0] = "r"
    if host == "gitlab.com":
        end = next((place for place, part in enumerate(parts) if part in _GITLAB_PAGES or not part), len(parts))
        parts = parts[:end]
    else:
        parts = parts[:2]
    no_owner = _NO_OWNER.get(host, set())
    if len(parts) < 2 or parts[0].lower() in no_owner or not all(_NAME.fullmatch(part) for part in parts):
        return None
    return "/".join(kind + parts)


_WORK = r"(?:papers?|articles?|manuscript|submission|pre-?print|e-?print|work|note|letter|document|thesis|draft)"
_THIS = rf"(?:(?:this|the|our|my|present|current|arxiv|entire|whole)\s+)*{_WORK}|this"
_ASIDE = r"(?:\s*\([^)]{0,120}\)|\s*,[^,.;]{0,80},)?"
_BE = r"(?:(?:has|have|had|is|was|are|been|being|be|will|must|now|temporarily|hereby|also)\s+)*"
# What may follow: an end, or the reason. "withdrawn from PRL" or "withdrawn students" is something else.
_AFTER = (
    r"(?=\s*(?:$|[.,;:!)\]\[(-]|(?:by|due|owing|because|since|as|at|for|pending|until|to|after|on|and|in\s+favou?r|"
    r"while|temporarily|from\s+(?:the\s+)?arxiv)\b))"
)
_GONE = rf"(?:withdrawn{_AFTER}|retracted{_AFTER}|removed\s+(?:from\s+arxiv|by\s+(?:the\s+)?arxiv))"
_NOTICE = re.compile(
    rf"(?:(?:{_THIS}){_ASIDE}\s+{_BE}{_GONE}"
    rf"|{_BE}{_GONE}"
    rf"|(?:the\s+|this\s+)?(?:authors?|author\(s\)|we|i)\s+(?:has\s+|have\s+|had\s+)?"
    rf"(?:(?:decided|wish|wishes|want|would\s+like|chosen)\s+to\s+)?"
    rf"(?:withdraws?|withdrew|withdrawn|retract(?:s|ed)?)\s+(?:this|the|our|my)\s+{_WORK}\b)",
    re.IGNORECASE,
)
_SENTENCE_START = re.compile(r"(?:^|[.;!\n]\s+|\.\)\s+|[,:]\s+(?=this\s))[\s\"'*\[(]*", re.IGNORECASE)
_WORD = re.compile(r"withdr|retract|removed", re.IGNORECASE)
_LONGEST_NOTICE = 1000  # characters of an abstract; the longest known notice in place of an abstract has 640


def is_withdrawn(comment: str | None, abstract: str | None) -> bool:
    """Check whether a sentence of the comment, or the first of a short abstract, is a withdrawal notice."""
    if comment and _WORD.search(comment):
        for start in _SENTENCE_START.finditer(comment):
            if _NOTICE.match(comment, start.end()):
                return True
    if abstract and len(abstract) <= _LONGEST_NOTICE and _WORD.search(abstract, 0, 300):
        start_of_text = re.match(r"[\s\"'*\[(]*", abstract)
        return bool(start_of_text and _NOTICE.match(abstract, start_of_text.end()))
    return False
