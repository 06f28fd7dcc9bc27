"""Recognise the language of a statement, and read it if the language has a grammar in `statement_words.toml`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from paper_assets.text.languages import is_ordinary_word, language_of
from paper_assets.text.statement_parts import Found, Mode, compiled, vocabulary, word_list

_KANA, _HANGUL, _HAN = re.compile(r"[぀-ヿ]"), re.compile(r"[가-힣]"), re.compile(r"[一-鿿]")


@dataclass(frozen=True, slots=True)
class _Grammar:
    """How a language excludes (the match's first group is the topic), what is removed from a topic, what separates
    topics, and words that show the language.
    """

    excludes: re.Pattern[str]
    removes: re.Pattern[str]
    separates: re.Pattern[str]
    function_words: frozenset[str]


@cache
def _grammars() -> dict[str, _Grammar]:
    return {
        code: _Grammar(
            excludes=compiled(table["excludes"]),
            removes=compiled(table["removes"]),
            separates=compiled(table["separates"]),
            function_words=frozenset(table.get("function_words", "").split()),
        )
        for code, table in vocabulary()["languages"].items()
    }


def statement_language(text: str) -> str | None:
    """Return the language of a statement if it is not English."""
    letters = [letter for letter in text if letter.isalpha()]
    if not letters:
        return None
    if len(_KANA.findall(text)) * 10 >= len(letters):
        return "ja"
    if len(_HANGUL.findall(text)) * 5 >= len(letters):
        return "ko"
    if len(_HAN.findall(text)) * 5 >= len(letters):
        return "zh"
    words = re.findall(r"[^\W\d_]+", text.casefold())
    scores = {code: len(grammar.function_words & set(words)) for code, grammar in _grammars().items()}
    english = len(word_list("english") & set(words))
    best = max(scores, key=lambda code: scores[code])
    if scores[best] >= 2 and scores[best] > english:
        return best
    if len(words) > 2 and _mostly_unknown(text):
        accented = next((code for code, accents in _ACCENTS.items() if accents & set(text.lower())), None)
        if accented:
            return accented
    latin = sum(letter < "ɐ" for letter in letters)
    if 2 * latin < len(letters):
        code = language_of(text)
        return code if code in _OTHER_SCRIPTS else None
    return language_of(text) if not english and _mostly_unknown(text) else None


def language_within(topic: str, statement: str | None) -> str | None:
    """Return the language of a topic, which is that of its statement if that is given; None for an English topic."""
    whole, own = statement_language(statement or ""), statement_language(topic)
    return (whole or own) if own or (whole and _mostly_unknown(topic)) else None


def _mostly_unknown(text: str) -> bool:
    """Return whether most words are in no English dictionary."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    return 2 * sum(map(is_ordinary_word, words)) < len(words)


_ACCENTS = {"de": set("äöüß"), "fr": set("èêçàâîô"), "es": set("ñ¿")}  # of texts of few function words
_OTHER_SCRIPTS = frozenset(("ar", "bg", "bn", "el", "fa", "he", "hi", "ru", "th", "uk"))


def read_foreign(sentence: str, mode: Mode, found: Found) -> bool:
    """Read a sentence in one of the languages with a grammar above; return whether it is in one. A sentence without an
    English function word counts as written in the statement's language.
    """
    is_english = word_list("english") & set(re.findall(r"[^\W\d_]+", sentence.casefold()))
    grammar = _grammars().get(statement_language(sentence) or (not is_english and found.language) or "")
    if grammar is None:
        return False
    parts = re.split(r"[;；]\s*", sentence.strip(" .。!！"))
    for part in parts:
        for clause, wanted in _foreign_clauses(part, grammar, mode.wanted):
            text = clause.replace("(", "、" if _HAN.search(clause) else "(").replace(
                ")", "" if _HAN.search(clause) else ")"
            )
            for chunk in grammar.separates.split(text):
                topic = _shortened(chunk, grammar)
                if topic:
                    found.add(topic, replace(mode, wanted=wanted))
    return True


def _foreign_clauses(text: str, grammar: _Grammar, wanted: bool) -> Iterator[tuple[str, bool]]:
    if _KANA.search(text):
        pieces = re.split(r"(?<=[がど]、)", text)
    else:
        pieces = re.split(r"(?<=[，,])", text) if _HAN.search(text) else [text]
    for piece in pieces:
        excluded = grammar.excludes.search(piece)
        if excluded is None:
            yield piece, wanted
            continue
        topic = next(group for group in excluded.groups() if group)
        if excluded.start() > 0:
            yield piece[: excluded.start()], wanted
        yield topic, False
        if excluded.end() < len(piece):
            yield piece[excluded.end() :].removeprefix("の"), wanted


def _shortened(chunk: str, grammar: _Grammar) -> str:
    topic = chunk.strip(" ,.，、。:")
    while (shorter := grammar.removes.sub("", topic).strip(" ,.，、。:的")) != topic:
        topic = shorter
    return topic
