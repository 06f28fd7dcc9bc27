"""Choose the one sentence of an abstract that says what the paper does and can be read without the others. Pure.

Most abstracts open with background; the contribution follows as the second or third sentence, often behind a clause
that refers back ("To overcome this limitation, we propose …"). Such a clause is removed. The first sentence that says
what the authors propose is taken, else the first that says what they do, and in an abstract with neither the one that
most probably states the idea (`abstract_parts`). That model alone finds the idea more often, but mostly by a detail of
the method, which cannot be read without the sentence before.
"""

import re
from collections.abc import Sequence

from paper_assets.text.abstract_parts import ADVERBS, PARTS, announces, scores
from paper_assets.text.sentences import sentence_spans

_LONGEST = 330  # characters; a longer sentence is cut at a word
_SHORTEST = 30  # characters; shorter pieces are headings or fragments
_COST_OF_BACK = 1.0  # log odds that a sentence loses whose subject refers back
_STATES = re.compile(
    rf"\b(?:we|authors?)\s+{ADVERBS}(?:describe|prove|show|study|investigate|examine|evaluate|analy[sz]e|formali[sz]e|"
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
    return _cut(_standing_alone(sentences[best_sentence(sentences)])) if sentences else ""


def best_sentence(sentences: Sequence[str]) -> int:
    """Return the position of the first sentence, readable alone, that says what the authors propose, else what they do.

    If there is none, it is the sentence that most probably states the idea; one that refers back only if need be.
    """
    worth = [at for at, each in enumerate(sentences) if len(each) >= _SHORTEST] or range(len(sentences))
    alone = [at for at in worth if not _refers_back(sentences[at])]
    for matches in (announces, _STATES.search):
        found = next((at for at in alone if matches(sentences[at])), None)
        if found is not None:
            return found
    rated = scores(sentences)
    idea = PARTS.index("idea")
    return max(worth, key=lambda at: (rated[at][idea] - _COST_OF_BACK * _refers_back(sentences[at]), -at))


def _refers_back(sentence: str) -> bool:
    return bool(_BACK.match(_standing_alone(sentence)))


def _standing_alone(sentence: str) -> str:
    """Remove an opening that refers to the previous sentence."""
    shorter = sentence
    for opening in (_OPENING_WORD, _OPENING_CLAUSE, _OPENING_IN_THIS):
        shorter = opening.sub("", shorter)
    return shorter[:1].upper() + shorter[1:]


def _cut(sentence: str) -> str:
    return sentence if len(sentence) <= _LONGEST else f"{sentence[: _LONGEST - 1].rsplit(' ', 1)[0]}…"
