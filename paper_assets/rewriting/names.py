"""Find names in a rewrite that the original lacks: words with a capital or digit inside, and capitalised words.

A capitalised word at the start of a sentence is a name unless it is an ordinary word (`text/languages.py`) or
occurs in the original; `names.toml` lists the exceptions. Names match whole: GPT-5 is not GPT-4, and three words with
the right initials do not expand GNN. Expansions are known from `acronyms.tsv` and from the words of the original.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from paper_assets.rewriting.quantities import WORD, symbol_of
from paper_assets.text.languages import is_ordinary_word
from paper_assets.text.words import FUNCTION_WORDS

_SENTENCE_END = re.compile(r"(?:^|\s['\"“‘](?=$)|[.!?:;…]['\"”’)\]]*\s+|\n\s*)(?:[-*•#>]+\s+|\d+[.)]\s+)?['\"“‘(\[]*$")
_AMOUNT = re.compile(r"[\d.,]+[kKMBT]?(?:[-/][\d.,]+[kKMBT]?)*")  # 14M, 0.5B-9B
_ADJECTIVE = re.compile(r"(?:s|es|ish|ic|ism|ist|ists|ian|ians|an|ans|n|ns|ese|i|is)$")
_LONG_ACRONYM = 4  # letters; shorter ones fit some words of most abstracts by chance
_LONG_WORD = 4
_INSIDE = frozenset(("of", "from", "for", "in", "by", "to", "at", "on", "and", "the"))
_ENGLISH = "en"
_COUNTED_COMPOUND = re.compile(r"^\d+(?:[.,]\d+)?-(?=[^\W\d_][a-zäöüß])")
_NOUNS_HAVE_CAPITALS = frozenset(("de", "lb"))


def new_names(source: str, text: str, *, language: str = _ENGLISH) -> Iterator[str]:
    """Yield the names of `text` that `source` lacks, as they are written, each once; both texts made `plain`."""
    words = words_of(source)
    acronyms = {name_key(word).removesuffix("s") for word in words if _is_acronym(word)}
    spaced = f" {' '.join(_lowered(word) for word in words)} "
    known, hyphenated = _known(source) | _defined(text, spaced), _initials_of_compounds(source)
    reported: set[str] = set()
    for run in _capitalised_runs(text):
        spelt_out = _spelling(run, acronyms, spaced)
        for place, (word, begins) in enumerate(run):
            name = _name_in(_COUNTED_COMPOUND.sub("", word, count=1) if language in _NOUNS_HAVE_CAPITALS else word)
            letters = name_key(name)
            if len(letters) < 2 or _AMOUNT.fullmatch(name) or place in spelt_out or letters in reported:
                continue
            if (
                letters in _word_list("everyday")
                or name_key(word) in known
                or _is_known_name(name, known, hyphenated, spaced)
                or not known.isdisjoint(_implied_by(letters))
                or (language in _NOUNS_HAVE_CAPITALS and _is_compound_of(name, known, hyphenated, spaced))
                or (_is_acronym(name) and _abbreviates(letters, hyphenated, spaced))
            ):
                continue
            if not _is_marked(name):
                if begins and _is_beginning(letters, language):
                    continue
                if language in _NOUNS_HAVE_CAPITALS:
                    continue
            reported.add(letters)
            yield word


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are written, GPT-4 as one."""
    return WORD.findall(text)


def name_key(word: str) -> str:
    """Return a word without case, accents, punctuation and the possessive s."""
    word = re.sub(r"['’]s$", "", word)
    return "".join(letter for letter in unicodedata.normalize("NFKD", word) if letter.isalnum()).casefold()


def _is_beginning(letters: str, language: str) -> bool:
    """Return whether a capital only marks the start of a sentence. Only English words are known."""
    return language != _ENGLISH or (is_ordinary_word(letters) and letters not in _word_list("names"))


def _is_marked(name: str) -> bool:
    """Return whether there is a capital or digit inside, as in RoBERTa, LLM, GPT-4."""
    return name[1:] != name[1:].lower() or any(letter.isdigit() for letter in name)


def _known(source: str) -> set[str]:
    words = words_of(source)
    parts = [part for word in words for part in _parts(word)]
    known = {name_key(word) for word in (*words, *parts)}
    known |= {_root(name_key(word)) for word in (*words, *parts) if word[:1].isupper()}
    known |= {name_key(one + other) for one, other in pairwise(parts)}  # "GPT 4" for "GPT-4"
    return known | {name_key(symbol) for symbol in map(symbol_of, known) if symbol}  # GHz for gigahertz


def _capitalised_runs(text: str) -> Iterator[list[tuple[str, bool]]]:
    """Yield runs of neighbouring capitalised words, and whether each word begins a sentence."""
    run: list[tuple[str, bool]] = []
    end = 0
    for found in WORD.finditer(text):
        word = found.group()
        if run and text[end : found.start()].strip(" \n-"):
            yield run
            run = []
        if any(letter.isupper() for letter in word):
            run.append((word, bool(_SENTENCE_END.search(text[max(0, found.start() - 12) : found.start()]))))
        elif run:
            yield run
            run = []
        end = found.end()
    if run:
        yield run


def _spelling(run: list[tuple[str, bool]], acronyms: set[str], spaced: str) -> set[int]:
    """Return the places of the words in a run that expand an acronym of the original in a known way."""
    letters = [
        (name_key(part)[:1], name_key(part), place) for place, (word, _) in enumerate(run) for part in _parts(word)
    ]
    found: set[int] = set()
    for acronym in acronyms:
        for start in range(len(letters) - len(acronym) + 1):
            part = letters[start : start + len(acronym)]
            if "".join(initial for initial, _, _ in part) != acronym or len(acronym) < 2:
                continue
            expansion = " ".join(_singular(word) for _, word, _ in part)
            if expansion in _expansions().get(acronym, ()) or all(f" {word}" in spaced for _, word, _ in part):
                found |= {place for _, _, place in part}
    return found


def _abbreviates(acronym: str, hyphenated: str, spaced: str) -> bool:
    """Return whether words of the original are known to expand the acronym, or a hyphenated word or, for a long
    acronym, its words in a row have its initials.
    """
    short = acronym.removesuffix("s")
    initials = "".join(word[:1] for word in spaced.split())
    if len(short) >= _LONG_ACRONYM and short in initials:
        return True
    if any(_is_initials_of(each, spaced) for each in {acronym, short}):
        return True
    if any(f" {expansion}" in spaced for each in (acronym, short) for expansion in _expansions().get(each, ())):
        return True
    return f"-{short}-" in hyphenated


def _is_initials_of(acronym: str, spaced: str) -> bool:
    """Return whether two or three words in a row have these initials: three long words, or words that are there at
    least twice. Of acronyms of other abstracts three long words fit by chance in 6 of 1,000.

    A preposition may be between the first word and the last of words that are there twice.
    """
    size = len(acronym)
    if size not in (2, 3):
        return False
    words = spaced.replace("-", " ").split()
    phrases = Counter(tuple(words[at : at + size]) for at in range(len(words) - size + 1))
    return any(
        (count > 1 or (size == 3 and len(phrase[1]) >= _LONG_WORD and FUNCTION_WORDS.isdisjoint(phrase)))
        and "".join(word[0] for word in phrase) == acronym
        and all(len(word) >= _LONG_WORD for word in (phrase[0], phrase[-1]))
        and all(len(word) >= _LONG_WORD or word in _INSIDE for word in phrase)
        for phrase, count in phrases.items()
    )


def _initials_of_compounds(source: str) -> str:
    """Return the initials of the hyphenated words, alone and with the word before or after, separated by spaces.

    "Whole-slide images" gives WSI, "learning-to-defer" LTD and L2D.
    """
    words = list(WORD.finditer(source))
    found: list[str] = []
    for place, word in enumerate(words):
        if "-" not in word.group():
            continue
        parts = [name_key(part) for part in _parts(word.group())]
        alone = {"".join(part[:1] for part in parts), "".join("2" if part == "to" else part[:1] for part in parts)}
        before = words[place - 1].group() if place and source[words[place - 1].end() : word.start()] == " " else ""
        after = (
            words[place + 1].group() if source[word.end() : word.end() + 1] == " " and place + 1 < len(words) else ""
        )
        found += [
            f"-{first}{initials}{last}-"
            for initials in alone
            for first, last in (("", ""), (_initial_of_neighbour(before), ""), ("", _initial_of_neighbour(after)))
        ]
    return " ".join(found)


def _initial_of_neighbour(word: str) -> str:
    """Return the initial of a word that may belong to an acronym; of a short or hyphenated one nothing."""
    return name_key(word)[:1] if len(word) >= _LONG_WORD and "-" not in word else ""


def _defined(text: str, spaced: str) -> set[str]:
    """Return acronyms in brackets after the words that they abbreviate, if the original has these words too."""
    found = set()
    for bracket in re.finditer(r"\(([A-Za-z]*[A-Z][A-Za-z]*)\)", text):
        acronym = name_key(bracket[1]).removesuffix("s")
        words = [
            part for word in words_of(text[max(0, bracket.start() - 120) : bracket.start()]) for part in _parts(word)
        ]
        expansion = [_singular(name_key(word)) for word in words][-len(acronym) :]
        if "".join(word[:1] for word in expansion) == acronym and all(f" {word} " in spaced for word in expansion):
            found.add(name_key(bracket[1]))
    return found


def _is_known_name(name: str, known: set[str], hyphenated: str, spaced: str) -> bool:
    """Return whether a name, or each of its parts, is known: 1D-CNN for a 1D convolutional network."""
    whole = name_key(name)
    if _forms(whole) & known:
        return True
    if name.startswith("Δ") and len(name) > 2:  # ΔEM
        return _is_known_name(name[1:], known, hyphenated, spaced) or _abbreviates(
            name_key(name[1:]), hyphenated, spaced
        )
    if _shortens(name, spaced):
        return True
    parts = [part for part in _parts(name) if len(part) > 1 or "_" not in name]  # M_Earth
    if any(part.isdigit() for part in parts):  # GPT-5 is not GPT-4 with a 5 from elsewhere
        return False
    return all(
        _forms(name_key(part)) & known
        or (_is_acronym(part) and len(parts) > 1 and _abbreviates(name_key(part), hyphenated, spaced))
        for part in parts
        if any(letter.isupper() or letter.isdigit() for letter in part)
    )


def _shortens(name: str, spaced: str) -> bool:
    """Return whether it is the beginnings of words in a row: AbsRel of "absolute relative error"."""
    if not re.fullmatch(r"(?:[A-Z][a-z]{2,}){2,}", name):
        return False
    begins = r"[a-z]* ".join(part.lower() for part in re.findall(r"[A-Z][a-z]+", name))
    return re.search(rf" {begins}[a-z]* ", spaced) is not None


def _forms(word: str) -> set[str]:
    """Return what a name counts as: itself, its singular and plural, and Islam for Islamic, Jew for Jewish."""
    return {word, word.removesuffix("s"), word + "s", word.removesuffix("es"), _root(word)}


def _root(word: str) -> str:
    found = _ADJECTIVE.search(word)
    root = word[: found.start()] if found else word
    return f"{root}-" if len(root) >= (3 if word.endswith(("ish", "s")) else 4) else word


def _is_compound_of(name: str, known: set[str], hyphenated: str, spaced: str) -> bool:
    """Return whether the marked parts of a compound are known: "CPU-Kerne" has a noun beside a name."""
    parts = _parts(name)
    marked = [name_key(part) for part in parts if _is_marked(part)]
    return len(parts) > 1 and all(
        _forms(part) & known or _implied_by(part) & known or _abbreviates(part, hyphenated, spaced) for part in marked
    )


def _name_in(word: str) -> str:
    """Return the word from its first to its last part with a capital or a digit: BERT of BERT-based."""
    parts = re.split(r"([-/_.'’+])", re.sub(r"['’]s$", "", word))
    named = [place for place, part in enumerate(parts) if any(one.isupper() or one.isdigit() for one in part)]
    return "".join(parts[named[0] : named[-1] + 1]) if named else ""


def _is_acronym(word: str) -> bool:
    return sum(letter.isupper() for letter in word) >= 2


def _parts(word: str) -> list[str]:
    return [part for part in re.split(r"[-/_.'’]", word) if part] or [word]


def _lowered(word: str) -> str:
    return " ".join(_singular(name_key(part)) for part in _parts(word))


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


@cache
def _expansions() -> dict[str, tuple[str, ...]]:
    """Return the expansions of the field's acronyms, in lower case and the singular; an acronym may have several."""
    lines = Path(__file__).with_name("acronyms.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line and not line.startswith("#")]
    return {row[0]: tuple(" ".join(map(_singular, words.split())) for words in row[1:]) for row in rows}


def _implied_by(name: str) -> frozenset[str]:
    """Return the words that imply a name: the original's kappa is Cohen's."""
    return frozenset(_lists()["implied"].get(name, "").split())


@cache
def _word_list(name: str) -> frozenset[str]:
    return frozenset(_lists()[name].split())


@cache
def _lists() -> dict[str, Any]:
    """Return the lists of `names.toml` by name."""
    return tomllib.loads(Path(__file__).with_name("names.toml").read_text(encoding="utf-8"))
