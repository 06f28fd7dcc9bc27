"""The day in a line or two: how many papers there are to read, how many came in, and what was left out."""

from collections.abc import Mapping

from paper_assets.digests.plain_text import in_letters
from paper_assets.ranking.filters import FILTERS
from paper_assets.text.cleaning import one_line

_LEFT_OUT = {each.code: each.counted for each in FILTERS}


def headline(shown: int, ranked: int, *, quiet: bool) -> str:
    """How many of the `ranked` papers there are to read; a quiet day says so."""
    if quiet and ranked:
        papers = {0: "no paper was", 1: "one paper was"}.get(shown, f"{in_letters(shown)} papers were")
        return f"A quiet day: {papers} worth it, of {ranked}"
    if not shown:
        return "Nothing to read today"
    papers = "One paper" if shown == 1 else f"{shown} papers"
    return f"{papers} to read" if shown == ranked else f"{papers} to read, of {ranked}"


def window(papers: int, reasons: Mapping[str, int]) -> str:
    """How many papers came in, and how many of them were left out for which reason, most first."""
    if not papers:
        return "No paper came in."
    came, out = "One paper" if papers == 1 else f"{papers} papers", sum(reasons.values())
    if not out:
        return f"{came} came in, none was left out."
    by_number = sorted(reasons.items(), key=lambda reason: (-reason[1], reason[0]))
    left_out = ", ".join(f"{n} {_LEFT_OUT.get(code, one_line(code))}" for code, n in by_number)
    return f"{came} came in, {out} left out: {left_out}."
