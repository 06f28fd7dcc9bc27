"""Recognise the words by which a person introduces an interest ("papers on", "I work on"): they name no topic.

Interests are compared with papers by meaning and by words. Abstracts do not contain these words, so a paper on the
topic would seem to lack a part of the interest. Only the beginning of a text is examined; the profile keeps it as it
was written.
"""

import re

_OFTEN = r"(?:(?:also|currently|especially|mainly|mostly|particularly|really|very)\s+)*"
_ACTS = "|".join(
    (
        r"interested\s+in",
        r"work(?:ing)?\s+(?:about|at|in|on|with)",
        r"research(?:ing)?(?:\s+(?:in|on))?",
        r"stud(?:y|ying)",
        r"do(?:ing)?\s+(?:a\s+phd|my\s+phd|research|work)\s+(?:about|in|into|on)",
        r"look(?:ing)?\s+for",
        r"follow(?:ing)?",
        r"care\s+about",
        r"need",
        r"(?:want|wish|like|love|would\s+like|would\s+love)(?:\s+to)?(?:\s+(?:find|hear|know|learn|read(?:ing)?|see)"
        r"(?:\s+(?:more|everything|papers))?(?:\s+(?:about|of|on))?)?",
    )
)
_THINGS = (
    r"(?:an?\s+|any\s+|some\s+|the\s+|all\s+)?(?:(?:good|interesting|latest|new|newest|recent|relevant)\s+)*"
    r"(?:anything|articles?|everything|literature|news|papers?|preprints?|publications?|research|results?|something"
    r"|stud(?:y|ies)|work|works)(?:\s+(?:interesting|new|recent))?"
    r"\s+(?:about|concerning|dealing\s+with|in|of|on|related\s+to|that|to\s+do\s+with|which)"
)
_OWN = (
    r"(?:my|our)\s+(?:dissertation|group|lab|ph\.?d|project|research|team|thesis|work)\s+"
    r"(?:(?:is|are|looks|works|working|focuses)\s+)*(?:about|at|in|on)"
)
_REQUEST = (
    r"(?:please\s+)?(?:(?:find|give|send|show)\s+me|tell\s+me(?:\s+(?:about|more\s+about))?"
    r"|keep\s+me\s+(?:informed|posted|updated|up\s+to\s+date)\s+(?:about|on|with)"
    r"|what(?:\s*['\u2019]s|\s+is)\s+new\s+(?:about|in|on))"
)
_PEOPLE = (
    r"(?:how|what|when|where|whether|why)\s+(?:others|people|researchers|scientists|they|we)"
    r"(?:\s+(?:are|can|could|do|have|might|should|try(?:ing)?\s+to))*"
)
_INTRODUCTION = re.compile(
    rf"\s*(?:(?:(?:i|we)(?:\s*['\u2019](?:m|re|d|ve)|\s+am|\s+are)?\s+{_OFTEN}(?:{_ACTS})|{_OWN}"
    rf"|{_OFTEN}(?:curious\s+about|interested\s+in|keen\s+on|looking\s+for|working\s+on)"
    rf"|{_REQUEST}|{_PEOPLE}|{_THINGS})\s+)+",
    re.IGNORECASE,
)


def without_introduction(text: str) -> str:
    """Return an interest without the words that introduce it; the text itself if nothing else would be left."""
    found = _INTRODUCTION.match(text)
    rest = text[found.end() :].strip() if found else ""
    return rest or text
