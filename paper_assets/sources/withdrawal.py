"""Withdrawal: is the paper withdrawn, as its comment or its abstract says? (SPEC S6). Pure.

arXiv has no field for it: the notice stands in the comment, often also in place of the abstract. A text that only
uses the word ("patients withdrawn from the trial", "withdrawn from a conference") is no notice.
"""

import re

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
_LONGEST_NOTICE = 1000  # characters of an abstract; the longest notice seen in place of an abstract has 640


def is_withdrawn(comment: str | None, abstract: str | None) -> bool:
    """True if a sentence of the comment, or the first of a short abstract, is a withdrawal notice."""
    if comment and _WORD.search(comment):
        for start in _SENTENCE_START.finditer(comment):
            if _NOTICE.match(comment, start.end()):
                return True
    if abstract and len(abstract) <= _LONGEST_NOTICE and _WORD.search(abstract, 0, 300):
        start_of_text = re.match(r"[\s\"'*\[(]*", abstract)
        return bool(start_of_text and _NOTICE.match(abstract, start_of_text.end()))
    return False
