"""Acronyms that abstracts define ("sparse autoencoders (SAEs)"), so that either form of an interest finds the other.

`acronyms.tsv` lists an acronym, what it means, how many papers of the background define it that way, and the first of
them. It leaves out
acronyms of several meanings and those that are words (`map`, `clip`). `python -m benchmarks.calibrate` makes it.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

from paper_assets.text.words import singular, spellings, words_in

TABLE = "acronyms.tsv"
_CAPITALS = re.compile(r"\b\w*[A-Z0-9]\w*[A-Z]\w*\b")


@cache
def table_text() -> str:
    """Return the table as it is in the package: acronym, meaning, number of papers and example, separated by tabs."""
    return (files("paper_assets.text") / TABLE).read_text(encoding="utf-8")


@cache
def meanings() -> Mapping[str, tuple[str, ...]]:
    """Return the words of each acronym's meaning; acronyms in lower case and in the singular."""
    rows = (line.split("\t") for line in table_text().splitlines())
    return {singular(acronym): tuple(words_in(meaning)) for acronym, meaning, *_ in rows}


def spelled_out(words: Sequence[str]) -> list[str]:
    """Return the words with each acronym replaced by the words that it means."""
    return [each for word in words for each in meanings().get(singular(word), (word,))]


def long_forms(text: str) -> str:
    """Return a text with its acronyms, written in capitals, replaced by the words that they stand for."""
    return _CAPITALS.sub(lambda word: " ".join(meanings().get(singular(word[0].lower()), (word[0],))), text)


def acronyms_of_phrases(words: Sequence[str]) -> list[tuple[int, int, str]]:
    """Return (start, end, acronym) of each phrase among the words that an acronym stands for."""
    forms = tuple(map(_form, words))
    return [
        (start, start + len(meaning), acronym)
        for start, form in enumerate(forms)
        for acronym, meaning in _meanings_by_first_word().get(form, ())
        if forms[start : start + len(meaning)] == meaning
    ]


def acronyms_ending_in(words: Sequence[str]) -> list[str]:
    """Return the acronyms of kinds of a phrase of several words: LLM and VLM of "language models"."""
    ending = tuple(map(_form, words))
    if len(ending) < 2:
        return []
    return [acronym for acronym, forms in _forms_of_meanings() if forms[-len(ending) :] == ending]


@cache
def _forms_of_meanings() -> list[tuple[str, tuple[str, ...]]]:
    return [(acronym, tuple(map(_form, meaning))) for acronym, meaning in meanings().items()]


@cache
def _meanings_by_first_word() -> Mapping[str, list[tuple[str, tuple[str, ...]]]]:
    found: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
    for acronym, forms in _forms_of_meanings():
        found.setdefault(forms[0], []).append((acronym, forms))
    return found


def _form(word: str) -> str:
    """Return one form for singular and plural in British and American spelling."""
    return min(spellings(singular(word)))
