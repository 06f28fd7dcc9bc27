"""Find the section of a text that a passage is in, by the headings that texts from arXiv's HTML and LaTeX have."""

import re

_HEADING = re.compile(r"^#{1,6} [^\n]*$", re.MULTILINE)
_SECTION = re.compile(r"^#{2,6} +([^\n]*\S)[ \t]*$", re.MULTILINE)  # one # is the title
_LONGEST = 120  # characters of a heading that are shown


def section_of(before: str, passage: str, quote: str) -> str | None:
    """Return the heading under which a quote of a passage is, for example `4.2 Ablations`; None without headings.

    `before` is the text before the passage.
    """
    words = r"\s+".join(map(re.escape, quote.split()))
    found = re.search(words, passage, re.IGNORECASE) if words else None
    headings = _SECTION.findall(f"{before}\n\n{passage[: found.start()] if found else ''}")
    return f"{headings[-1]}"[:_LONGEST] if headings else None


def without_headings(text: str) -> str:
    """Return a text with its headings as spaces, so that positions stay the same."""
    return _HEADING.sub(lambda heading: " " * len(heading[0]), text)
