"""Check whether a sentence that a model wrote is supported by the words that it cites (SPEC B10). Pure.

Answers, analyses and rewrites share this checker. Code settles what is clear: a sentence with a number or name that its
source lacks, or about something else, is unsupported; one that repeats its source is supported. The others are
questions, asked in one batch apart from the writing (`settled`). Models agree too easily, so pairs with known answers
are among the questions: a model that fails them decides nothing.

Both error rates: `python -m benchmarks.support`, docs/evaluation.md.
"""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from paper_assets.errors import LLMError
from paper_assets.text.cleaning import introduced
from paper_assets.text.languages import is_in_language, is_ordinary_word
from paper_assets.text.prompts import AskModel, by_number, numbered_entries, prompt
from paper_assets.text.sentences import quoted_sentence, sentence_spans
from paper_assets.text.words import FUNCTION_WORDS, normal_form, stem, words_in

Verdict = Literal["supported", "doubtful", "unsupported"]

# Measured on half of 153 pairs written from real abstracts; the error rates are of the other half.
_MEASURED_WITH = "all-MiniLM-L6-v2"
_NEAR = 0.43  # cosine of sentence and cited words from which they are about the same
_NEW = 0.3  # share of content words that the source lacks, from which a low cosine counts
_FEW = 3  # content words of a sentence that is too short for that
_MOST_NEW = 0.74  # share from which a sentence says something else, whatever the cosine
_IN_ORDER = 0.85  # share of the sentence's words that must follow each other as in the source to repeat it
_MOST_OF_ONE = 3  # sentences that the same words support; further ones are questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A sentence, the words that it rests on, and the whole source: passages, title, and the question it answers."""

    text: str
    cited: str
    source: str


@cache
def _lists() -> dict[str, Any]:
    return tomllib.loads((files("paper_assets.text") / "support_words.toml").read_text(encoding="utf-8"))


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_lists()[name].split())


@cache
def _stems(name: str) -> frozenset[str]:
    return frozenset(map(stem, _words(name)))


Similarities = Callable[[Sequence[tuple[str, str]]], NDArray[np.float64]]


# --- what is never shown -------------------------------------------------------------------------------------------

_LINK = re.compile(
    r"(?:https?|ftp|javascript|data|mailto)\s?:|\bwww\.|\b[\w.-]+@[\w-]+\.\w"
    r"|\b[a-z0-9-]+\.(?:com|org|net|edu|gov|info|biz|example|io|app|xyz|ru|cn|co|dev|ai|me|link|site|online)\b(?!\()",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"<\s*[/!]?\s*[a-z][^<>]*>|<\s*(?:script|iframe|img|svg)\b|\]\s*\(|!\[|```", re.IGNORECASE)
_ORDER = re.compile(
    r"\byou\s+(?:should|must|need|can|may|have|will|are)\b|\b(?:ignore|disregard|forget)\s+(?:all|any|the|every|previous)\b"
    r"|^\W*(?:please|visit|click|go\s+to|download|subscribe|send|pay|buy|call|contact|reply|open|run|install)\b"
    r"|\bsystem\s+prompt\b|\bas\s+an\s+ai\b",
    re.IGNORECASE,
)
_FEWEST_WORDS = 7  # of a sentence that is English only if it has an English function word


def refusal(text: str, *, language: str = "en") -> str | None:
    """Return why a sentence is never shown: a link, markup, an instruction, another language; None if nothing is."""
    if _LINK.search(text):
        return "a link"
    if _MARKUP.search(text):
        return "markup"
    if _ORDER.search(text):
        return "an instruction"
    words = text.lower().split()
    foreign = language == "en" and len(words) >= _FEWEST_WORDS and not _words("english") & set(words)
    return "another language" if foreign or not is_in_language(text, language) else None


_STEERS = re.compile(
    r"\b(?:ignore|disregard|forget|override)\s+(?:all|any|the|your|every|previous|earlier|prior)\b"
    r".{0,40}\b(?:instruction|order|prompt|rule|above|guideline)"
    r"|\b(?:rate|rank|score|grade|judge)\s+(?:all\s+|the\s+|every\s+)?(?:others?|this\s+paper|it)\b"
    r".{0,20}\b(?:zero|highest|lowest|first|last|best|maximum|[0-9])\b"
    r"|\b(?:dear|note\s+to(?:\s+the)?)\s+(?:AI\s+)?(?:model|assistant|reviewer|LLM|AI)\b"
    r"|\byou\s+(?:must|should|are\s+now)\b",
    re.IGNORECASE | re.DOTALL,
)


def addresses_reader(text: str) -> bool:
    """Return whether a text from outside speaks to who judges it: such a text is judged alone."""
    return bool(_STEERS.search(text))


# --- numbers and names ---------------------------------------------------------------------------------------------

_NUMBER = re.compile(r"(?<![\w.])[-−]?(\d{1,3}(?:[, \u2009\u202f]\d{3})+(?!\d)|\d+)((?:\.\d+)?)")
_SCALES = {"k": 1e3, "thousand": 1e3, "m": 1e6, "million": 1e6, "b": 1e9, "billion": 1e9, "trillion": 1e12}
_UNITS = {
    "%": "percent", "percent": "percent", "ms": "ms", "millisecond": "ms", "s": "s", "sec": "s", "second": "s",
    "min": "min", "minute": "min", "h": "h", "hour": "h", "day": "day", "week": "week", "month": "month",
    "year": "year", "kb": "kb", "mb": "mb", "gb": "gb", "tb": "tb", "km": "km", "cm": "cm", "mm": "mm", "nm": "nm",
    "hz": "hz", "khz": "khz", "mhz": "mhz", "ghz": "ghz", "times": "x", "x": "x", "fold": "x", "×": "x",
}  # fmt: skip
_AFTER = re.compile(r"[\s\\-]{0,3}([%×]|[^\W\d_]+)?[\s-]{0,2}([^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as the text has it, its value, and its unit ("" if it has none)."""

    words: str
    value: float
    unit: str


def figures(text: str) -> list[Figure]:
    """Return the numbers of a text, in digits or words, in their order; "one" is not a number."""
    found = []
    for match in _NUMBER.finditer(text):
        value = float(re.sub(r"\D", "", match[1]) + (match[2] or ""))
        found.append((match.start(), _figure(text, match.start(), match.end(), value)))
    for word in re.finditer(r"[^\W\d_]+", text):
        if value := float(_lists()["numbers"].get(word[0].lower(), 0)):
            found.append((word.start(), _figure(text, word.start(), word.end(), value)))
    return [figure for _, figure in sorted(found, key=lambda each: each[0])]


def _figure(text: str, start: int, end: int, value: float) -> Figure:
    unit, last = "", end
    if after := _AFTER.match(text, end):
        for place in (1, 2):
            word = (after[place] or "").lower()
            if place == 1 and word in _SCALES:
                value, last = value * _SCALES[word], after.end(1)
                continue
            unit = _UNITS.get(word) or _UNITS.get(word.removesuffix("s")) or ""
            last = after.end(place) if unit else last
            break
    return Figure(" ".join(text[start:last].split()), value, unit)


def missing_numbers(text: str, source: str) -> list[str]:
    """Return the numbers of a text that its source has in no form: exact, rounded, or as a share."""
    known = figures(source)
    values = [(each.value, each.unit) for each in known]
    values += [(value / 10**digits, unit) for value, unit in values for digits in (3, 6, 9) if value >= 10**digits]
    shares = [(each.value / 100, "") for each in known if each.unit == "percent"]
    shares += [(each.value * 100, "percent") for each in known if each.value < 1 and not each.unit]
    return [
        each.words
        for each in figures(text)
        if not any(_is_same(each, *other) for other in values)
        and not any(each.unit == unit and _is_same(each, value, unit) for value, unit in shares)
    ]


def _is_same(figure: Figure, value: float, unit: str) -> bool:
    if figure.unit and unit and figure.unit != unit:
        return False
    decimals = len(re.sub(r"\D*$", "", figure.words).partition(".")[2])
    near = abs(figure.value - value) <= 1e-9 * max(abs(value), 1)
    rounded = value >= 2 and decimals < 6 and round(value, decimals) == figure.value
    return near or (rounded and value != round(value))


_NAME = re.compile(r"(?<![\w-])(?:[A-Z][\w-]*[A-Z\d][\w-]*|[a-z]+[A-Z][\w-]*|[A-Z][\w-]{2,})")


def missing_names(text: str, source: str) -> list[str]:
    """Return the capitalised names of a text that its source lacks; initials of words there are not missing."""
    flat = re.sub(r"[\W_]+", "", normal_form(source))
    words = [word for word in words_in(source) if word not in FUNCTION_WORDS]
    initials = "".join(word[0] for word in words)
    starts = {start for start, _ in sentence_spans(text)}
    missing = []
    for found in _NAME.finditer(text):
        name = found[0]
        ordinary = found.start() in starts and name[1:].islower() and is_ordinary_word(name.lower())
        short = re.sub(r"[\W_]+", "", normal_form(name))
        parts = [re.sub(r"[\W_]+", "", normal_form(part)) for part in name.split("-")]
        known = short in flat or short.removesuffix("s") in flat or all(part in flat for part in parts)
        spelled = name.removesuffix("s").isupper() and short.removesuffix("s") in initials
        if not (ordinary or known or spelled) and name not in missing:
            missing.append(name)
    return missing


def missing(text: str, source: str) -> list[str]:
    """Return the numbers and names of a text that its source lacks."""
    return [*missing_numbers(text, source), *missing_names(text, source)]


# --- what a sentence says ------------------------------------------------------------------------------------------

_DENIALS = re.compile(
    r"\b(?:not|no|never|without|cannot|neither|nor|none|nothing|hardly|rarely|fails?|failed|lacks?|lacking|unable)\b"
    r"|\bnon-|n['’]t\b|-free\b|\b(?:rather|other)\s+than\b|\binstead\s+of\b|\bavoid\w*",
    re.IGNORECASE,
)
_HEDGES = re.compile(
    r"\b(?:may|might|could|can|suggest\w*|hypothe\w+|suspect\w*|conjectur\w*|potential\w*|likely|aim\w*)\b",
    re.IGNORECASE,
)
_CERTAIN = re.compile(r"\b(?:prov\w+|demonstrat\w*|certain\w*|guarantee\w*|confirm\w*|always|establish\w*)\b", re.I)


def content(text: str) -> list[str]:
    """Return the stems of a text's content words in order, without words that sentences about papers share."""
    words = (word for word in words_in(text) if word not in FUNCTION_WORDS and len(word) > 1 and not word.isdecimal())
    return [each for each in map(stem, words) if each not in _stems("about_papers")]


def new_share(text: str, source: str) -> float:
    """Return the share, 0 to 1, of a text's content words that its source lacks."""
    words, known = set(content(text)), set(content(source))
    beginnings = {each[:5] for each in known if len(each) > 4}
    lacking = [each for each in words if each not in known and not (len(each) > 4 and each[:5] in beginnings)]
    return len(lacking) / len(words) if words else 0.0


def turned_round(text: str, cited: str) -> bool:
    """Return whether a sentence may say the opposite of the words it cites, or more: a denial, a direction, "all"."""
    if len(_DENIALS.findall(text)) % 2 != len(_DENIALS.findall(cited)) % 2:
        return True
    words, known = {stem(word) for word in words_in(text)}, {stem(word) for word in words_in(cited)}
    added, left = words - known, known - words
    up, down = _stems("up"), _stems("down")
    if (added & down and left & up) or (added & up and left & down):
        return True
    if set(words_in(text)) & _words("every") - set(words_in(cited)):
        return True
    if _HEDGES.search(cited) and _CERTAIN.search(text) and not _CERTAIN.search(cited):
        return True
    numbers = [each.value for each in figures(text)]
    same = [each.value for each in figures(cited) if each.value in numbers]
    return len(set(numbers)) > 1 and len(numbers) == len(same) and numbers != same  # in another order


def _common_run(words: Sequence[str], others: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(others) + 1)
    for word in words:
        before = row
        row = [0]
        for at, other in enumerate(others):
            row.append(before[at] + 1 if word == other else max(row[at], before[at + 1]))
    return row[-1]


def check(
    statements: Sequence[Statement],
    similarities: Similarities | None,
    *,
    language: str = "en",
    retelling: bool = False,
) -> list[Verdict]:
    """Return what code finds about each statement. Without a model for `similarities` nothing is too far away.

    `retelling`: the sentences may explain terms and use other words, so whatever is not clear is a question.
    """
    pairs = [(each.text, each.cited) for each in statements]
    cosines = similarities(pairs) if similarities and pairs else np.ones(len(pairs))
    uses: Counter[str] = Counter()
    found = []
    for each, cosine in zip(statements, cosines, strict=True):
        uses[each.cited] += 1
        one = _of_one(each, float(cosine), known=similarities is not None, language=language)
        if retelling and one == "unsupported" and not refusal(each.text, language=language):
            one = "doubtful"
        if one == "supported" and uses[each.cited] > _MOST_OF_ONE:
            one = "doubtful"
        found.append(one)
    return found


def _of_one(statement: Statement, cosine: float, *, known: bool, language: str) -> Verdict:
    text, cited, source = statement.text, statement.cited, f"{statement.cited}\n{statement.source}"
    if refusal(text, language=language) or missing(text, source):
        return "unsupported"
    share = new_share(text, f"{cited} {statement.source}" if not known else cited)
    few = len(set(content(text))) <= _FEW
    if share >= _MOST_NEW or (cosine < _NEAR and share > _NEW and not few):
        return "unsupported"
    words, theirs = content(text), content(cited)
    repeats = not set(words) - set(theirs) and _common_run(words, theirs) >= _IN_ORDER * len(words)
    return "supported" if repeats and not turned_round(text, cited) else "doubtful"


class Encoder(Protocol):
    """An embedding model, as `models.embedder.Embedder`."""

    @property
    def name(self) -> str: ...

    def encode(self, texts: Sequence[str], /) -> NDArray[Any]: ...


def similarities_of(model: Encoder | None) -> Similarities | None:
    """Return the function that compares pairs by cosine; None without the model with which `_NEAR` was measured."""
    if model is None or model.name != _MEASURED_WITH:
        return None
    encode = model.encode

    def similarities(pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        vectors = np.asarray(encode(list(rows)), dtype=np.float64)
        return np.array([vectors[rows[one]] @ vectors[rows[other]] for one, other in pairs])

    return similarities


_CANDIDATES, _EVIDENCE = 8, 2  # sentences of a source that are compared, and that a sentence rests on


def evidence(sentences: Sequence[str], source: str, similarities: Similarities | None) -> list[str]:
    """Return for each sentence the words of the source that it rests on most likely, for texts without citations."""
    parts = [" ".join(source[start:end].split()) for start, end in sentence_spans(source)]
    stems = [set(content(part)) for part in parts]
    frequency = Counter(word for own in stems for word in own)
    found = []
    for sentence in sentences:
        words = set(content(sentence))
        shared = [sum(1 / frequency[word] for word in words & own) for own in stems]
        best = sorted(range(len(parts)), key=lambda at: -shared[at])[:_CANDIDATES]
        if similarities and best:
            cosines = similarities([(sentence, parts[at]) for at in best])
            best = [at for _, at in sorted(zip(-cosines, best, strict=True))]
        found.append(" ".join(parts[at] for at in sorted(best[:_EVIDENCE])))
    return found


# --- questions ------------------------------------------------------------------------------------------------------


# What becomes of a sentence: shown as supported, shown as the model's words that were not checked, or dropped.
Outcome = Literal["supported", "unchecked", "dropped"]
_AT_ONCE, _MOST_ASKED = 20, 60  # pairs in one question, and in all questions about one text
_LONGEST_SENTENCE, _LONGEST_PASSAGE = 600, 1_000  # bytes in a question
# Pairs with a known answer, asked among the others: a model that fails them agrees with anything, or with nothing.
CONTROLS = (
    ("The heat pump needs more power in frost.", "In frost the heat pump draws 30 % more power.", "yes"),
    ("The new filter removes more dust than the old one.", "The new filter removes less dust than the old one.", "no"),
    ("The survey covered twelve villages.", "We describe a recipe for bread with oats and barley.", "no"),
)
_ANSWERS = ("yes", "partly", "no")
Probabilities = Callable[[Sequence[tuple[str, str]]], NDArray[np.float64]]


def settled(
    statements: Sequence[Statement],
    checked: Sequence[Verdict],
    *,
    ask: AskModel | None = None,
    nli: Probabilities | None = None,
    retelling: bool = False,
    most: int = _MOST_ASKED,
) -> list[Outcome]:
    """Return what becomes of each sentence, after asking about the first `most` doubtful ones.

    `nli` gives the probabilities of entailment and contradiction of pairs; without it a language model is asked. A
    failing model leaves them unchecked.
    """
    outcomes = [_WITHOUT_ANSWER[each] for each in checked]
    doubtful = [at for at, each in enumerate(checked) if each == "doubtful"]
    if nli is not None and doubtful:
        shares = nli([(statements[at].cited, statements[at].text) for at in doubtful])
        for at, (entails, contradicts) in zip(doubtful, shares, strict=True):
            outcomes[at] = _answered("yes" if entails >= _SURE else "no" if contradicts >= _SURE else "")
    elif ask is not None:
        doubtful = doubtful[:most]
        for start in range(0, len(doubtful), _AT_ONCE):
            batch = doubtful[start : start + _AT_ONCE]
            try:
                answers = _asked([statements[at] for at in batch], ask, retelling=retelling)
            except LLMError:
                break  # they stay unchecked
            for at, answer in zip(batch, answers, strict=True):
                outcomes[at] = _answered(answer)
    return outcomes


_SURE = 0.5


_WITHOUT_ANSWER: dict[Verdict, Outcome] = {"supported": "supported", "unsupported": "dropped", "doubtful": "unchecked"}


def _answered(answer: str) -> Outcome:
    return "supported" if answer in ("yes", "explains") else "dropped" if answer == "no" else "unchecked"


def _asked(statements: Sequence[Statement], ask: AskModel, *, retelling: bool) -> list[str]:
    """Return the model's answers, "" where it gave none that counts; all are "" if it fails a control.

    "yes" counts only with words of the passage, "explains" only without a number or name that the source lacks.
    """
    system, user, schema, places = question(statements, retelling=retelling)
    count = len(statements) + len(CONTROLS)
    entries = by_number(ask(system=system, user=user, schema=schema).value.pairs, count)
    answers = {number: str(entry.get("answer")) for number, entry in entries.items()}
    for place, (_, _, right) in zip(places, CONTROLS, strict=True):
        if answers.get(place) != right:
            return [""] * len(statements)
    own = [number for number in range(1, count + 1) if number not in places]
    for number, each in zip(own, statements, strict=True):
        words = str(entries.get(number, {}).get("words") or "")
        if answers.get(number) == "yes" and not quoted_sentence(words, each.cited):
            answers[number] = ""
        if answers.get(number) == "explains" and missing(each.text, each.source):
            answers[number] = ""
    return [answers.get(number, "") for number in own]


def question(
    statements: Sequence[Statement], *, retelling: bool = False
) -> tuple[str, str, type[BaseModel], tuple[int, ...]]:
    """Return instructions, text and schema of the question about these pairs, and the numbers of the controls."""
    pairs = [(_cut(each.text, _LONGEST_SENTENCE), _cut(each.cited, _LONGEST_PASSAGE)) for each in statements]
    places = (1, len(pairs) // 2 + 2, len(pairs) + len(CONTROLS))
    for place, (text, cited, _) in zip(places, CONTROLS, strict=True):
        pairs.insert(place - 1, (text, cited))
    lines = "\n".join(
        json.dumps({"number": number, "passage": cited, "sentence": text}, ensure_ascii=False)
        for number, (text, cited) in enumerate(pairs, 1)
    )
    answers = _ANSWERS + ("explains",) * retelling
    schema = numbered_entries("pairs", len(pairs), answer=answers, words="string")
    system = prompt("support_retold" if retelling else "support")
    return system, introduced("Pairs, one JSON object on each line", "pairs", lines), schema, places


def _cut(text: str, most: int) -> str:
    return text.encode("utf-8", "replace")[:most].decode("utf-8", "ignore")


def longest_questions(most: int = _MOST_ASKED, *, retelling: bool = False) -> list[tuple[str, type[BaseModel]]]:
    """Return the longest prompts that `settled` may send about `most` sentences, with the schemas of the answers."""
    left, found = most, []
    while left > 0:
        one = Statement(text="x" * _LONGEST_SENTENCE, cited="x" * _LONGEST_PASSAGE, source="")
        longest = [one] * min(left, _AT_ONCE)
        system, user, schema, _ = question(longest, retelling=retelling)
        found.append((system + user, schema))
        left -= _AT_ONCE
    return found
