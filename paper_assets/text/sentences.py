"""Split a text into sentences, find a quotation in it, and find the section that a passage is in.

Sections are found by the headings that texts from arXiv's HTML and LaTeX have.
"""

import re

# After "et al.", "e.g." and single letters a point ends no sentence.
_END = re.compile(r"(?:[.!?][\"'”’)\]]*(?=\s)|[。！？]+|\n\s*\n)")
_ABBREVIATED = re.compile(r"(?:\b(?:et al|e\.g|i\.e|cf|vs|Fig|Figs|Eq|Eqs|Sec|Dr|Prof|resp|approx|No)|\b[A-Z])\.$")
_LONGEST = 10  # characters back to the beginning of an abbreviation; further would be quadratic
_SAME = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "‐": "-", "‑": "-", "−": "-"}
)
_AROUND = " \t\r\n\"'.…"  # what a model puts around a quotation; the words between are what counts
_FEWEST_LETTERS = 8  # letters; a shorter quotation occurs by chance, and must be the whole text

_BEFORE_ELLIPSIS = re.compile(
    r"(?:…|\.\.\.|\\l?dots|[ ,;:]|\s(?:a|an|and|as|at|by|for|from|in|its|of|on|or|our|that|the|their|to|with))+$"
)


def cut_with_ellipsis(text: str, most: int) -> str:
    """Cut a text at a word if it has more than `most` characters, and end it with one ellipsis."""
    if len(text) <= most:
        return text
    head = text[: most - 1]
    if text[most - 1] not in " ,;:":
        head = head.rsplit(" ", 1)[0]
    return f"{_BEFORE_ELLIPSIS.sub('', head)}…"


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return start and end of each sentence, ascending, without the white space between them."""
    spans: list[tuple[int, int]] = []
    start = 0
    for found in [*_END.finditer(text), None]:
        end = found.end() if found else len(text)
        if found and _ABBREVIATED.search(text, max(start, found.start() - _LONGEST), found.start() + 1):
            continue
        inner = text[start:end]
        if inner.strip():
            spans.append((start + len(inner) - len(inner.lstrip()), start + len(inner.rstrip())))
        start = end
    return spans


def quoted_sentence(quotation: str, text: str) -> str | None:
    """Return the whole sentences that contain the quotation, as the text has them; None if it is not found.

    White space, capitals, kinds of quotation marks and dashes, and punctuation around the quotation are ignored. A
    quotation of fewer than 8 letters must be the whole text.
    """
    wanted, _ = _normal(quotation.translate(_SAME).strip(_AROUND))
    whole, places = _normal(text)
    at = whole.find(wanted) if wanted else -1
    if at < 0:
        return None
    if sum(map(str.isalnum, wanted)) < _FEWEST_LETTERS and wanted != whole.strip(_AROUND):
        return None
    first, last = places[at], places[at + len(wanted) - 1]
    touched = [(start, end) for start, end in sentence_spans(text) if start <= last and end > first]
    return " ".join(text[touched[0][0] : touched[-1][1]].split()) if touched else None


def _normal(text: str) -> tuple[str, list[int]]:
    """Return the text in one spelling, and for each character the position of its original."""
    letters: list[str] = []
    places: list[int] = []
    for at, letter in enumerate(text.translate(_SAME)):  # one character for one, so that places stay
        if letter.isspace():
            if letters and letters[-1] != " ":
                letters.append(" ")
                places.append(at)
            continue
        for each in letter.casefold():
            letters.append(each)
            places.append(at)
    return "".join(letters), places


_HEADING = re.compile(r"^#{1,6} [^\n]*$", re.MULTILINE)
_SECTION = re.compile(r"^#{2,6} +([^\n]*\S)[ \t]*$", re.MULTILINE)  # one # is the title
_LONGEST_HEADING = 120  # characters of a heading that are shown


def section_of(before: str, passage: str, quote: str) -> str | None:
    """Return the heading under which a quote of a passage is, for example `4.2 Ablations`; None without headings.

    `before` is the text before the passage.
    """
    words = r"\s+".join(map(re.escape, quote.split()))
    found = re.search(words, passage, re.IGNORECASE) if words else None
    headings = _SECTION.findall(f"{before}\n\n{passage[: found.start()] if found else ''}")
    return f"{headings[-1]}"[:_LONGEST_HEADING] if headings else None


def without_headings(text: str) -> str:
    """Return a text with its headings as spaces, so that positions stay the same."""
    return _HEADING.sub(lambda heading: " " * len(heading[0]), text)
