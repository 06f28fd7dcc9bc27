"""Find the sentences of an abstract that state its problem, task, idea and result, and its key sentence. Pure.

A sentence gets a score for each part: the sum of the weights of what is true of it (`TRAITS`). The weights are those of
a logistic regression on 475 abstracts in which readers marked these passages; `python -m benchmarks.abstract_parts`
fits them and measures the choice on abstracts that the fit has not seen, beside the first sentence and LexRank.

The key sentence says what the paper does and can be read without the others.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from math import exp

from paper_assets.text.sentences import cut_with_ellipsis, sentence_spans
from paper_assets.text.tex import formula_spans

PARTS = ("problem", "task", "idea", "result")
_LIKELY = 0.35  # the least probability with which a part is named in an abstract
_LIKELY_RESULT = 0.2  # the least probability of a sentence that is shown alone as the result
_SHORT, _LONG = 60, 400  # characters
_WORDS = {
    "proposes": r"\b(?:propos|present|introduc|develop|design|releas|devis|formulat)\w*\b",
    "we": r"\b(?:we|our)\b",
    "this paper": r"\bthis (?:paper|work|article|study|survey|report)\b",
    "results": r"\b(?:results?|experiments?|outperform\w*|achiev\w*|demonstrat\w*|show\w*|improv\w*|state-of-the-art|"
    r"evaluat\w*|significant\w*|validat\w*|accuracy|superior)\b",
    "obstacle": r"\b(?:however|but|although|despite|yet|unfortunately|lack\w*|limit\w*|challeng\w*|difficult\w*|"
    r"fail\w*|suffer\w*|problem\w*|remain\w*|costly|expensive|issue\w*)\b",
    "importance": r"\b(?:important|crucial|essential|fundamental|aims?|task|applications?|recent\w*|widely|"
    r"increasing\w*|goal)\b",
    "finding": r"\b(?:find|found|reveal\w*|observ\w*|conclu\w*)\b",
    "number": r"\d",
    "ratio": r"\d\s?%|\btimes\b|×",
    "code": r"\b(?:code|available|https?|github|dataset)\b",
    "detail": r"\b(?:specifically|in particular|first\w*|then|further\w*|moreover|finally|additionally)\b",
    "means": r"\b(?:us(?:e|es|ing)|based on|leverag\w*|via|by)\b",
    "method": r"\b(?:called|named|termed|dubbed|novel|new|framework|method|approach|model)\b",
    "turn": r"^(?:in this|here|this paper|to (?:address|overcome|tackle|solve|this|alleviate|bridge|fill))",
    "statement": r"^(?:\w+[\s-]){1,4}(?:is|are|has|have)\b",
    "refers back": r"^(?:it|they|these|those|this(?! (?:paper|work|article|study))|its|their|such|experiments?|"
    r"extensive|results?)\b",
}
_PATTERNS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _WORDS.items()}
ADVERBS = r"(?:(?:\w+ly|then|also|here|first|thus|instead|therefore|hence)\s+){0,2}"
_ANNOUNCES = re.compile(
    rf"\b(?:we|authors?)\s+{ADVERBS}(?:propose|present|introduce|develop|design|build|release|devise|formulate)\w*\b"
    r"|\bthis (?:paper|work|article|study|survey|report|thesis|review)\s+(?:\w+ly\s+)?"
    r"(?:proposes|presents|introduces|develops|designs|describes|reviews|surveys)\b"
    r"|\b(?:is|are) (?:proposed|presented|introduced) in this\b",
    re.IGNORECASE,
)
_BEFORE = ("proposes", "we", "obstacle")  # also searched in the sentence before
_PLACES = (
    "any", "first", "second", "third", "last", "last but one", "place", "place squared", "length", "short",
    "turning point", "before it", "long before it", "after it", "long after it",
)  # fmt: skip
TRAITS = (*_PLACES, *_WORDS, *(f"{name} before" for name in _BEFORE))


def traits_of(sentences: Sequence[str]) -> list[list[float]]:
    """Return for each sentence a number for each of `TRAITS`: mostly 1 where it holds, else 0."""
    count = len(sentences)
    found = [{name: bool(pattern.search(each)) for name, pattern in _PATTERNS.items()} for each in sentences]
    turns = [at for at, each in enumerate(sentences) if announces(each)]
    turns = turns or [at for at, each in enumerate(found) if each["we"] or each["this paper"]] or [count // 2]
    rows = []
    for at, sentence in enumerate(sentences):
        place = at / max(count - 1, 1)
        row: list[float] = [1, at == 0, at == 1, at == 2, at == count - 1, at == count - 2, place, place**2]
        row += [min(len(sentence), _LONG) / (_LONG / 2), len(sentence) < _SHORT]
        row += [at == turns[0], at == turns[0] - 1, at < turns[0] - 1, at == turns[0] + 1, at > turns[0] + 1]
        row += found[at].values()
        row += [at > 0 and found[at - 1][name] for name in _BEFORE]
        rows.append([float(each) for each in row])
    return rows


def announces(sentence: str) -> bool:
    """Return whether a sentence says that the authors or the paper propose, present or develop something."""
    return bool(_ANNOUNCES.search(sentence))


def scores(sentences: Sequence[str]) -> list[tuple[float, ...]]:
    """Return for each sentence its score for each of `PARTS`, as log odds."""
    by_part = list(zip(*(WEIGHTS[trait] for trait in TRAITS), strict=True))
    return [
        tuple(sum(value * weight for value, weight in zip(row, weights, strict=True)) for weights in by_part)
        for row in traits_of(sentences)
    ]


def likely_parts(sentences: Sequence[str]) -> list[str]:
    """Return for each sentence the part that it states most likely."""
    return [PARTS[max(range(len(PARTS)), key=row.__getitem__)] for row in scores(sentences)]


def named_parts(sentences: Sequence[str]) -> dict[int, str]:
    """Return the position of the sentence that most likely states each part, if that is likely; one part each."""
    rated = scores(sentences)
    found: dict[int, str] = {}
    pairs = ((rated[at][number], at, part) for at in range(len(rated)) for number, part in enumerate(PARTS))
    for score, at, part in sorted(pairs, key=lambda pair: -pair[0]):
        if 1 / (1 + exp(-score)) < _LIKELY:
            break
        if at not in found and part not in found.values():
            found[at] = part
    return dict(sorted(found.items()))


# Of each trait the weight for problem, task, idea and result; written by `python -m benchmarks.abstract_parts --fit`.
WEIGHTS: dict[str, tuple[float, float, float, float]] = {
    "any": (-2.06, -1.65, -2.48, -3.86),
    "first": (-0.45, 2.81, -2.06, -0.73),
    "second": (1.18, -0.04, -0.82, -0.83),
    "third": (1.06, -0.45, -0.10, -0.75),
    "last": (-0.32, -0.15, -0.94, 0.47),
    "last but one": (-0.54, -0.11, 0.08, 0.49),
    "place": (-1.88, -2.08, -0.47, 0.32),
    "place squared": (-1.51, -1.16, -1.32, 1.35),
    "length": (1.14, 0.00, 1.53, 0.90),
    "short": (-0.27, -0.02, -0.43, -0.77),
    "turning point": (-0.54, 0.22, 0.34, -0.39),
    "before it": (0.58, -0.20, -0.97, -1.34),
    "long before it": (-0.75, -0.22, -1.34, -1.49),
    "after it": (-0.57, -0.05, 0.35, -0.23),
    "long after it": (-0.78, -1.39, -0.87, -0.40),
    "proposes": (-0.02, -0.36, 0.18, -0.50),
    "we": (-1.01, 0.07, 0.51, 0.06),
    "this paper": (-0.45, 0.72, 0.75, -0.46),
    "results": (0.08, -0.42, -0.78, 1.36),
    "obstacle": (1.55, -0.14, -0.22, 0.26),
    "importance": (-0.53, 0.53, 0.11, -0.49),
    "finding": (0.14, -0.39, -0.05, -0.37),
    "number": (0.18, 0.06, -0.02, 0.23),
    "ratio": (0.07, -0.14, -0.00, 0.39),
    "code": (-0.20, 0.04, -0.28, -0.29),
    "detail": (-0.44, -0.54, 0.02, -0.74),
    "means": (-0.20, -0.19, 0.46, -0.39),
    "method": (-0.33, 0.21, 0.06, 0.40),
    "turn": (-0.70, 0.10, 0.11, -0.18),
    "statement": (-0.39, 0.16, -0.17, -0.54),
    "refers back": (-0.28, -0.04, -0.04, 0.27),
    "proposes before": (-0.33, -0.38, -0.05, 0.35),
    "we before": (0.01, -0.82, -0.03, -0.12),
    "obstacle before": (-0.63, -0.33, 0.49, -0.50),
}


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
_OPENING_PURPOSE = re.compile(
    rf"^to\s+(?=[^,]*\b{_ANAPHOR}\b)(?:address|overcome|tackle|solve|resolve|mitigate|bridge|fill|close|alleviate|remedy|"
    r"meet|handle|circumvent|counter|counteract|achieve|do|study|investigate|answer|explore|test)\b[^,]{3,110},\s+",
    re.IGNORECASE,
)
_OF_CODE = re.compile(r"https?:|\b(?:code|data|models?|weights)\b.{0,40}\bavailable\b", re.IGNORECASE)
_THEN = re.compile(r"^we (?:then|further|also|therefore|thus|next|additionally|furthermore)\s+", re.IGNORECASE)
_OPENING_WORD = re.compile(
    r"^(?:however|therefore|thus|hence|to this end|to that end|in addition|additionally|furthermore|moreover|"
    r"specifically|in particular|concretely|accordingly|consequently|finally|instead|meanwhile|for this purpose|"
    r"motivated by this|in response|together|overall|notably|importantly|crucially|in contrast|for example|"
    r"for instance|interestingly|remarkably|surprisingly|in summary|ultimately|in this paper|in this work|"
    r"in this article|in this study|here|first(?:ly)?|second(?:ly)?|third(?:ly)?)\s*,\s+",
    re.IGNORECASE,
)
_OPENING_IN_THIS = re.compile(r"^(?:in this (?:paper|work|article|study|report)|here)\s+(?=we\b)", re.IGNORECASE)
_BACK = re.compile(
    r"^(?:it|they|these|those|this(?! (?:paper|work|article|study|survey|report|thesis|review|tutorial))|its|their|"
    r"such|the (?:former|latter|resulting|proposed)|both|our (?:method|approach|framework|model|results?|experiments?)|"
    r"experiments?|extensive|results?|code)\b",
    re.IGNORECASE,
)


@lru_cache(maxsize=4_096)
def key_sentence(abstract: str) -> str:
    """Return the sentence that says what a paper does, readable alone; "" for an empty abstract.

    `abstract` is one line. The sentence is shortened where it refers back or is longer than 330 characters.
    """
    sentences = [abstract[start:end] for start, end in sentence_spans(abstract)]
    return _cut(_standing_alone(sentences[best_sentence(sentences)])) if sentences else ""


def contribution(sentences: Sequence[str]) -> int | None:
    """Return the first sentence, readable alone, that says what the authors propose, else what they do."""
    alone = [at for at, each in enumerate(sentences) if len(each) >= _SHORTEST and not _refers_back(each)]
    found = (at for matches in (announces, _STATES.search) for at in alone if matches(sentences[at]))
    return next(found, None)


def best_sentence(sentences: Sequence[str]) -> int:
    """Return the sentence that states the contribution; else the one that most likely states the idea."""
    if (found := contribution(sentences)) is not None:
        return found
    worth = [at for at, each in enumerate(sentences) if len(each) >= _SHORTEST] or range(len(sentences))
    rated = scores(sentences)
    idea = PARTS.index("idea")
    return max(worth, key=lambda at: (rated[at][idea] - _COST_OF_BACK * _refers_back(sentences[at]), -at))


_FOUND = re.compile(
    r"^(?:(?:extensive|comprehensive|our|the|these|empirical|experimental|numerical|thorough|quantitative|"
    r"qualitative|additional|further|simulation|and|experiments?|results?|evaluations?|analys[ie]s|studies|study|"
    r"findings?|we|also|further|then)\s+)+(?:(?:\([^()]*\)|[^.;:()]){0,160}?\s)??"
    r"(?:show(?:s|ed)?|demonstrate[sd]?|indicate[sd]?|reveal(?:s|ed)?|confirm(?:s|ed)?|suggest(?:s|ed)?|find|found|"
    r"observe[sd]?|prove[sd]?|establish(?:es)?)\s+that\s+",
    re.IGNORECASE,
)


_COST_OF_CUT = 0.4  # by which the probability that a sentence is the result is multiplied if it must be cut
_NAMES_NO_RESULT = re.compile(
    r"^[^,]*\b(?:show|demonstrat|validat|confirm|verif|highlight|illustrat)\w*\s+(?:\w+\s+){0,3}?(?:effectiveness|"
    r"superiority|validity|feasibility|usefulness|benefits?|efficacy)\b(?!.*\d)"
    r"|^(?:first|second|third|next|we (?:evaluate|validate|conduct|perform))\b",
    re.IGNORECASE,
)
_CIRCUMSTANCE = re.compile(
    r"^(?:on|in|across|over|under|through|by|with|using|as|for|at|compared|applied|trained|leveraging|while|although|"
    r"despite|when|without|after|given|based|built|evaluated)\b",
    re.IGNORECASE,
)
_CLAIMS = re.compile(
    r"^(?:we|our|the|this|these|it|its|they|an?|all|both|experiments|results|(?-i:[A-Z])[\w-]*)\b[^,;:]*"
    r"\b(?:outperform|achiev|improv|reduc|deliver|produc|reach|remain|gain|rank|enabl|show|demonstrat|attain|surpass|"
    r"yield|exceed|match|converg|obtain|find|is|are|can|does)\w*\b",
    re.IGNORECASE,
)
_LEAST_OF_A_CLAIM = 35  # characters of a sentence that is cut at a pause
# Where a sentence that is too long is cut: before a clause.
_PAUSE = re.compile(
    r"[;:]\s|\s[—–]\s|,\s(?=(?:while|with|which|where|when|whereas|such|but|even|especially|particularly|"
    r"compared|(?!including)\w+ing)\b)|\s(?=(?:while|whereas|because|although|due to)\b)"
    r"|\s(?=and (?:also |further )?(?:outperform|achiev|improv|reduc|deliver|produc|reach|show|reveal|enabl|provid|"
    r"generaliz|attain|surpass|yield|exceed|match)\w*\b)"
)
_FIGURE = re.compile(  # with the word after it
    r"(?<![\w.-])[$+~≈±−-]*\d[\d.,]*(?:x\b|(?![\w-]))(?:\\[,;:]|[^\s,;:])*"
    r"(?:\s(?!while|whereas|because|although|due)[\w-]+)?"
)
# Words that a cut leaves at the end, and that say nothing without what follows.
_LEFT_OVER = re.compile(
    r"(?:[\s,(–—-]+(?:\([^()\d]*|and|or|to|of|in|on|by|with|for|from|the|an?|that|as|at|than|its|their|up|via|over|across|"
    r"under|between|compared|such|including|achieving|for (?:instance|example)))+(?=…$)"
)


@lru_cache(maxsize=4_096)
def result_sentence(abstract: str, most: int = _LONGEST) -> str:
    """Return the sentence that states what a paper found, without "experiments show that"; else the key sentence.

    `abstract` is one line; the sentence has at most `most` characters. One that fits goes before one that must be cut;
    that loses its opening circumstance, and then its last clauses.
    """
    sentences = [abstract[start:end] for start, end in sentence_spans(abstract)]
    best, shown = 0.0, ""
    for sentence, score in zip(sentences, scores(sentences) if sentences else (), strict=True):
        likely = 1 / (1 + exp(-score[PARTS.index("result")]))
        found = _finding(sentence)
        if (
            likely < _LIKELY_RESULT
            or len(found) < _SHORTEST
            or _OF_CODE.search(sentence)
            or _NAMES_NO_RESULT.search(found)
        ):
            continue
        brief = _in_brief(found, most)
        worth = likely * _COST_OF_CUT ** brief.endswith("…")
        if worth > best:
            best, shown = worth, brief
    return shown or _in_brief(key_sentence(abstract), most)


def _finding(sentence: str) -> str:
    found = _FOUND.sub("", _standing_alone(sentence))
    return found[:1].upper() + found[1:]


def _in_brief(sentence: str, most: int) -> str:
    """Shorten a sentence to its claim: without an opening circumstance, then without its last clauses.

    Its first figure stays, if need be in a sentence that is longer by a third.
    """
    if len(sentence) > most and _CIRCUMSTANCE.match(sentence):
        rests = (sentence[found.end() :] for found in re.finditer(r",\s", sentence))
        if claim := next((rest for rest in rests if _CLAIMS.match(rest)), None):
            sentence = claim[:1].upper() + claim[1:]
    if len(sentence) > most:
        figure = _FIGURE.search(sentence)
        least = figure.end() if figure and figure.end() < most + most // 3 else 0
        most = max(most, least + 1)
        pauses = _PAUSE.finditer(sentence, max(least, _LEAST_OF_A_CLAIM), most)
        most = max((found.start() + 1 for found in pauses), default=most)
    brief = _cut(sentence, most)
    shorter = _LEFT_OVER.sub("", brief)
    return shorter if len(shorter) > _LEAST_OF_A_CLAIM else brief


def _refers_back(sentence: str) -> bool:
    return bool(_BACK.match(_standing_alone(sentence)))


def _standing_alone(sentence: str) -> str:
    """Remove an opening that refers to the previous sentence."""
    shorter = sentence
    for opening in (_OPENING_WORD, _OPENING_CLAUSE, _OPENING_IN_THIS, _OPENING_PURPOSE):
        shorter = opening.sub("", shorter)
    shorter = _THEN.sub("We ", shorter)
    return shorter[:1].upper() + shorter[1:]


def _cut(sentence: str, most: int = _LONGEST) -> str:
    """Shorten a sentence at a word, before a formula rather than inside it."""
    short = cut_with_ellipsis(sentence, most)
    last = len(short) - 1
    inside = next((start for start, end in formula_spans(sentence) if start < last < end), None)
    return short if inside is None or len(short) == len(sentence) else cut_with_ellipsis(sentence, inside + 1)
