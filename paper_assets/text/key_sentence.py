"""Choose the one sentence of an abstract that says what the paper does and can be read without the others. Pure.

Most abstracts open with background; the contribution follows as the second or third sentence, often behind a clause
that refers back ("To overcome this limitation, we propose …"). Such a clause is removed; a sentence whose subject
refers back ("It …", "This framework …") is taken only if there is no better one.
"""

import re

from paper_assets.text.sentences import sentence_spans

_LONGEST = 330  # characters; a longer sentence is cut at a word
_SHORTEST = 30  # characters; shorter pieces are headings or fragments
_ADVERBS = r"(?:(?:\w+ly|then|also|here|first|thus|instead|therefore|hence)\s+){0,2}"
_STRONG = re.compile(
    rf"\b(?:we|authors?)\s+{_ADVERBS}(?:propose|present|introduce|develop|design|build|release|devise|formulate)\w*\b"
    r"|\bthis (?:paper|work|article|study|survey|report|thesis|review)\s+(?:\w+ly\s+)?"
    r"(?:proposes|presents|introduces|develops|designs|describes|reviews|surveys)\b"
    r"|\b(?:is|are) (?:proposed|presented|introduced) in this\b",
    re.IGNORECASE,
)
_WEAK = re.compile(
    rf"\b(?:we|authors?)\s+{_ADVERBS}(?:describe|prove|show|study|investigate|examine|evaluate|analy[sz]e|formali[sz]e|"
    r"argue|revisit|address|tackle|explore|derive|report|find|demonstrate|conduct|provide|offer|ask|consider|establish|"
    r"create|construct|contribute|identify|benchmark|compare|characteri[sz]e|suggest|leverage|adapt|extend|unify|"
    r"quantify|measure|combine|train|use|employ|apply)\w*\b"
    r"|\b(?:this|our)\s+(?:paper|work|article|study|survey|report|thesis|review)\b|\bin this (?:paper|work|article)\b",
    re.IGNORECASE,
)
_ANAPHOR = (
    r"(?:this|these|that|those|such|its|their|it|them|above|aforementioned|former|latter|"
    r"the (?:issues?|problems?|gaps?|challenges?|limitations?|shortcomings?|difficult(?:y|ies)))"
)
_OPENING_CLAUSE = re.compile(
    rf"^(?=[^,]*\b{_ANAPHOR}\b)[^,]{{3,140}},\s+(?=(?:we|this paper|this work|I)\b)", re.IGNORECASE
)
_OPENING_WORD = re.compile(
    r"^(?:however|therefore|thus|hence|to this end|to that end|in addition|additionally|furthermore|moreover|"
    r"specifically|in particular|concretely|accordingly|consequently|finally|instead|meanwhile|for this purpose|"
    r"motivated by this|in response|in this paper|in this work|in this article|in this study|here)\s*,\s+",
    re.IGNORECASE,
)
_OPENING_IN_THIS = re.compile(r"^(?:in this (?:paper|work|article|study|report)|here)\s+(?=we\b)", re.IGNORECASE)
_BACK = re.compile(
    r"^(?:it|they|these|those|this(?! (?:paper|work|article|study|survey|report|thesis|review|tutorial))|its|their|"
    r"such|the (?:former|latter|resulting|proposed)|both|our (?:method|approach|framework|model|results?|experiments?)|"
    r"experiments?|extensive|results?|code)\b",
    re.IGNORECASE,
)


def key_sentence(abstract: str) -> str:
    """Return the sentence that says what a paper does, readable alone; "" for an empty abstract.

    `abstract` is one line. The sentence is shortened where it refers back or is longer than 330 characters.
    """
    sentences = [abstract[start:end] for start, end in sentence_spans(abstract)]
    worth = [each for each in sentences if len(each) >= _SHORTEST] or sentences
    if not worth:
        return ""
    best = max(range(len(worth)), key=lambda at: (_rank(worth[at]), -at))
    return _cut(_standing_alone(worth[best]))


def _rank(sentence: str) -> int:
    """Rate how well a sentence says what is new: propose 4, study 3, else 1; minus 2 if its subject refers back."""
    score = 4 if _STRONG.search(sentence) else 3 if _WEAK.search(sentence) else 1
    return score - (2 if _BACK.match(_standing_alone(sentence)) else 0)


def _standing_alone(sentence: str) -> str:
    """Remove an opening that refers to the previous sentence."""
    shorter = sentence
    for opening in (_OPENING_WORD, _OPENING_CLAUSE, _OPENING_IN_THIS):
        shorter = opening.sub("", shorter)
    return shorter[:1].upper() + shorter[1:]


def _cut(sentence: str) -> str:
    return sentence if len(sentence) <= _LONGEST else f"{sentence[: _LONGEST - 1].rsplit(' ', 1)[0]}…"
