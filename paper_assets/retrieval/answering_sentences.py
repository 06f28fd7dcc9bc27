"""Rank sentences as answers to a question, without a language model. Pure.

A sentence answers if it is about each part of the question ("Does A help B?" has two), in its own words or in those of
its paper's title, and states a result. Background counts less: that something is important, needed or difficult.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paper_assets.models.embedder import Embedder
from paper_assets.text.words import FUNCTION_WORDS, stem, stems_in, words_in

ANSWERS = 1.0  # the score from which a sentence answers
_COVERED, _COVERED_ALONE = 0.5, 0.65  # share of a part's words from which a sentence is about it; of all parts' words
_ALIKE = 0.5  # cosine of question and sentence from which that is enough
_NAMED, _NOT_ALIKE = 0.8, 0.25  # share of the words of every part from which a lower cosine is enough, and that cosine
_FINDS, _IN_SENTENCE = 0.2, 0.15  # added to a finding, and to a sentence that is about all parts itself
_PIVOT_VERBS = frozenset(
    stems_in(
        "help improve reduce increase decrease raise lower affect influence benefit hurt harm beat outperform cause "
        "predict enable prevent worsen change lead make work need require depend generalise generalize transfer matter "
        "explain detect solve learn protect preserve replace support limit compare differ scale survive lose gain cost "
        "save speed fail"
    )
)
_PIVOT_WORDS = frozenset(
    words_in("for in on with from than to against by when without under at as across during between")
)
_VAGUE = frozenset(
    stems_in("good better best well effective useful really possible paper papers method way model models large less")
)
_MEASURES = frozenset(stems_in("accuracy quality performance"))
_RESULT = re.compile(
    r"\b(?:show(?:s|ed|n)?|demonstrat\w+|find(?:s|ings?)?|found|reveal\w*|observ\w+|confirm\w*|prov(?:e|es|ed|en)|"
    r"indicat\w+|suggest(?:s|ed)?|establish\w*|improv(?:es|ed|ement\w*)|outperform\w*|achiev(?:es|ed)|reduc(?:es|ed|tion)|"
    r"increas(?:es|ed)|enhanc(?:es|ed)|rais(?:es|ed)|lower(?:s|ed)|surpass\w*|yields?|exceed\w*|correlat\w+|results?|degrad\w+|fails?|"
    r"leads? to)\b|\d\s?%|[×x]\s?\d|\d\s?[×x]\b",
    re.IGNORECASE,
)
_BACKGROUND = re.compile(
    r"\b(?:ha(?:s|ve) (?:recently )?(?:shown|demonstrated|achieved|emerged|become|made|proven)|however|existing|"
    r"conventional|traditional(?:ly)?|increasing(?:ly)? (?:interest|used|deployed)|remains?|often|typically|widely|"
    r"is (?:crucial|essential|important|critical|fundamental)|requires)\b",
    re.IGNORECASE,
)
_PROPOSAL = re.compile(
    r"\b(?:propos|introduc|present|discuss|aim|focus|adopt|releas)\w*\b|\bprovides? (?:the first|an?)\b|\binclude:",
    re.IGNORECASE,
)
_WE_FIND = re.compile(
    r"\b(?:we|results|experiments|findings)(?: \w+)? (?:find|show|reveal|demonstrate|observe|prove|confirm)\b",
    re.IGNORECASE,
)
# Words by which a sentence denies, or says with reserve, what it is about: readers should see them.
RESERVED = re.compile(
    r"\b(?:not|no|nor|never|neither|cannot|without|fail(?:s|ed)? to|doesn't|don't|hardly|rarely|little|"
    r"may|might|could|can|suggests?|potential(?:ly)?|possib(?:le|ly)|likely|unclear|limited|only)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Quotable:
    """A sentence of a paper with the paper's title; `part`: what it states in its abstract, where that is known."""

    sentence: str
    title: str
    part: str = ""


def parts_of(question: str) -> list[list[str]]:
    """Return the words of each part of a question: what comes before and after its verb, or its preposition."""
    words = words_in(question)
    at = _middle(words, lambda word: stem(word) in _PIVOT_VERBS)
    if at is None:
        at = _middle(words, _PIVOT_WORDS.__contains__)
    parts = [words] if at is None else [words[:at], words[at + 1 :]]
    carrying = [[word for word in part if _carries(word)] for part in parts]
    return [part for part in carrying if part]


def answer_scores(question: str, quotables: Sequence[Quotable], embedder: Embedder | None) -> NDArray[np.float64]:
    """Return for each sentence how well it answers, from 0; `ANSWERS` and more if it is about every part."""
    if not quotables:
        return np.zeros(0)
    parts = [set(map(_meaning, part)) for part in parts_of(question) or [list(words_in(question))]]
    initials = _initials(words_in(question))
    titles = {each.title: _stems(each.title, initials) for each in quotables}
    sentences = [_stems(each.sentence, initials) for each in quotables]
    own = np.array([[_share(part, found) for part in parts] for found in sentences])
    with_title = np.array(
        [
            [_share(part, found | titles[each.title]) for part in parts]
            for each, found in zip(quotables, sentences, strict=True)
        ]
    )
    fit, alike = own.mean(axis=1), np.ones(len(quotables))
    if embedder:
        vectors = embedder.encode([question, *(" ".join(each.sentence.split()) for each in quotables)])
        alike = (vectors[1:] @ vectors[0]).astype(np.float64)
        fit = (fit + alike) / 2
    about = (with_title >= _COVERED).all(axis=1) & (own >= _COVERED).any(axis=1)
    about &= with_title.mean(axis=1) >= _COVERED_ALONE
    about &= (alike >= _ALIKE) | ((alike >= _NOT_ALIKE) & (with_title >= _NAMED).all(axis=1))
    finds = np.array([_finds(each) for each in quotables])
    scores = fit + _FINDS * finds + _IN_SENTENCE * (own >= _COVERED).all(axis=1)
    nearest = np.clip(scores / 2, 0, 0.99 * ANSWERS)
    return np.asarray(np.where(about & finds, ANSWERS + nearest, nearest))


def _finds(quotable: Quotable) -> bool:
    """Return whether a sentence states a result, not background, an aim or a question."""
    if quotable.sentence.rstrip().endswith("?"):
        return False
    if _WE_FIND.search(quotable.sentence):
        return True
    background = _BACKGROUND.search(quotable.sentence) or _PROPOSAL.search(quotable.sentence)
    return not background and quotable.part not in ("problem", "task") and bool(_RESULT.search(quotable.sentence))


def reserved_spans(text: str) -> list[tuple[int, int]]:
    """Return where a sentence denies or hedges what it says."""
    return [found.span() for found in RESERVED.finditer(text)]


def _middle(words: Sequence[str], divides: Callable[[str], bool]) -> int | None:
    """Return the first place of a dividing word that has words of a topic before and after it."""
    for at, word in enumerate(words):
        if (
            divides(word)
            and not word.endswith("ing")
            and any(map(_carries, words[:at]))
            and any(map(_carries, words[at + 1 :]))
        ):
            return at
    return None


def _carries(word: str) -> bool:
    return len(word) > 1 and word not in FUNCTION_WORDS and stem(word) not in _VAGUE


def _share(part: set[str], found: set[str]) -> float:
    return len(part & found) / len(part)


def _meaning(word: str) -> str:
    """Return the stem of a word; what papers measure a method by is one word."""
    found = stem(word)
    return "quality" if found in _MEASURES else found


def _initials(words: Sequence[str]) -> dict[str, set[str]]:
    """Return what initials may stand for: "RAG" the words of "retrieval-augmented generation" in the question."""
    spans = (words[start:end] for start in range(len(words)) for end in range(start + 2, len(words) + 1))
    return {"".join(word[0] for word in span).upper(): set(map(_meaning, span)) for span in spans}


def _stems(text: str, initials: Mapping[str, set[str]]) -> set[str]:
    """Return the stems of a text, with those of the words that its initials stand for."""
    short = (initials.get(found.removesuffix("s"), set()) for found in _SHORT.findall(text))
    return {_meaning(word) for word in words_in(_LANGUAGE_MODEL.sub(r"\g<0> language model", text))}.union(*short)


_SHORT = re.compile(r"\b[A-Z]{2,6}s?\b")
_LANGUAGE_MODEL = re.compile(r"\b[LS]LMs?\b")
