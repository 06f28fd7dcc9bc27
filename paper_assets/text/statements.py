"""Read what a person writes about what they want to read: topics by level, topics to avoid, authors, categories (W1).

The rules work on sentences and bullets, not on lines. A statement is cut into items (bullets, sentences, unwrapped
lines), each item into clauses of one polarity, and each clause into topics. Headings ("Not relevant:") set polarity,
level or kind for what follows. The vocabulary of each step is a table below; to teach a new phrase, add it there and a
statement to `tests/text/test_statements.py`.

Negations that belong to a topic ("non-convex", "learning without labels", "why models are not calibrated") stay: only a
clause that begins with a negation, or a sentence that says that something is not wanted, excludes.
"""

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from paper_assets.text.cleaning import without_controls
from paper_assets.text.introductions import without_introduction
from paper_assets.text.languages import language_of

Level = Literal["primary", "secondary", "exploratory"]
Kind = Literal["topic", "author", "category", "institution"]
LONGEST_STATEMENT = 10_000  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Hold what a statement asks for. `less`: those of `avoid` that are only less interesting. `language`: ISO code of
    a statement that is not English. `notes`: sentences for the reader about what was not understood or is missing.
    """

    primary: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()
    exploratory: tuple[str, ...] = ()
    avoid: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    exclude_categories: tuple[str, ...] = ()
    language: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def wanted(self) -> tuple[str, ...]:
        """Return all topics that are wanted, the most wanted first."""
        return (*self.primary, *self.secondary, *self.exploratory)


@dataclass(frozen=True, slots=True)
class _Mode:
    """What the words at hand are: wanted or not, at which level, of which kind."""

    wanted: bool = True
    mild: bool = False
    level: Level = "primary"
    kind: Kind = "topic"


def read_statement(text: str, *, categories: Mapping[str, str] | None = None) -> Reading:
    """Read a statement of any form. `categories`: names and codes in lower case, with their codes.

    The result depends on the text alone. Longer texts than `LONGEST_STATEMENT` are cut, which a note reports.
    """
    cleaned = without_controls(unicodedata.normalize("NFKC", text)).replace("\t", "    ")
    notes = []
    if len(cleaned) > LONGEST_STATEMENT:
        cleaned = cleaned[:LONGEST_STATEMENT]
        notes.append(f"only the first {LONGEST_STATEMENT:,} characters were read")
    found, mode = _Found(categories=categories or {}), _Mode()
    for item in _items(cleaned.translate(_SAME)):
        mode = _read_item(item, mode, found)
    return _reading(found, _language(cleaned), notes)


def _reading(found: "_Found", language: str | None, notes: list[str]) -> Reading:
    topics = list(found.topics.values())
    if any(mode.wanted and not context for _, mode, context in topics):  # "I work on speech." before real topics
        notes += [f"taken as context, not as a topic: {topic}" for topic, _, context in topics if context]
        topics = [each for each in topics if not each[2]]
    by_level = {
        level: tuple(topic for topic, mode, _ in topics if mode.wanted and mode.level == level)
        for level in ("primary", "secondary", "exploratory")
    }
    if not any(by_level.values()):
        notes.append("nothing says what you want to read; name at least one topic")
    return Reading(
        **by_level,
        avoid=tuple(topic for topic, mode, _ in topics if not mode.wanted),
        less=tuple(topic for topic, mode, _ in topics if not mode.wanted and mode.mild),
        authors=tuple(found.authors),
        categories=tuple(code for code, wanted in found.codes.items() if wanted),
        exclude_categories=tuple(code for code, wanted in found.codes.items() if not wanted),
        language=language,
        notes=tuple(notes),
    )


@dataclass(slots=True)
class _Found:
    """Collect topics (by their folded form), authors and categories while a statement is read."""

    categories: Mapping[str, str]
    topics: dict[str, tuple[str, _Mode, bool]] = field(default_factory=dict)
    authors: dict[str, None] = field(default_factory=dict)
    codes: dict[str, bool] = field(default_factory=dict)

    def add(self, topic: str, mode: _Mode, *, context: bool = False) -> None:
        """Add a topic once; an exclusion replaces a wish in the same words."""
        key = topic.casefold()
        if key not in self.topics or (not mode.wanted and self.topics[key][1].wanted):
            self.topics[key] = topic, mode, context


# --- Vocabulary ----------------------------------------------------------------------------------------------------


@cache
def _vocabulary() -> dict[str, Any]:
    return tomllib.loads(files("paper_assets.text").joinpath("statement_words.toml").read_text(encoding="utf-8"))


_OF_NAMES = ("people", "adjective")  # patterns in which capitals count


@cache
def _pattern(name: str) -> re.Pattern[str]:
    return _compiled(_vocabulary()["english"][name], ignore_case=name not in _OF_NAMES)


@cache
def _table(name: str) -> tuple[tuple[Any, re.Pattern[str]], ...]:
    """Return the patterns of a table in order; the first that matches decides."""
    return tuple((key, _compiled(pattern)) for key, pattern in _vocabulary()["english"][name].items())


@cache
def _words(name: str) -> frozenset[str]:
    return frozenset(_vocabulary()["words"][name].split())


def _compiled(pattern: str, *, ignore_case: bool = True) -> re.Pattern[str]:
    return re.compile(pattern, re.VERBOSE | (re.IGNORECASE if ignore_case else re.NOFLAG))


# --- Items: bullets, sentences, unwrapped lines --------------------------------------------------------------------

_SAME = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "‐": "-", "‑": "-"})
_BULLET = re.compile(r"(?P<indent> *)(?P<mark>[-*•·◦▪+>]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)]|#{1,6}) +(?=\S)")
_LONGEST_SENTENCE = 600  # characters; a longer one is read in pieces
_PROSE_LINE = 45  # characters; text wrapped at fewer is a list
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[^\Wa-zà-ÿ_])|(?<=[。！？])\s*")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|et al|cf|vs|approx|resp|incl|esp|Dr|Prof)|\b[A-Z])\.$")


@dataclass(frozen=True, slots=True)
class _Item:
    text: str
    bullet: bool
    indent: int
    after_gap: bool  # a blank line is before it


def _items(text: str) -> Iterator[_Item]:
    """Yield bullets and paragraphs, with lines that only a margin has cut joined again."""
    current: _Item | None = None
    gap = False
    widest = max((len(line) for line in text.splitlines()), default=0)
    for line in text.splitlines():
        if not line.strip():
            gap = True
            continue
        bullet = _BULLET.match(line)
        words = " ".join((line[bullet.end() :] if bullet else line).split())
        indent = len(line) - len(line.lstrip())
        if current is not None and not bullet and not gap and _continues(current, words, indent, widest):
            current = replace(current, text=f"{current.text} {words}")
            continue
        if current is not None:
            yield current
        current = _Item(words, bullet is not None, indent, gap)
        gap = False
    if current is not None:
        yield current


def _continues(before: _Item, words: str, indent: int, widest: int) -> bool:
    """Return whether a line goes on with the sentence of the item before it."""
    last = before.text
    head, colon, _ = words.partition(":")
    if last.endswith((":", "。")) or (colon and _heading_mode(head, _Mode())):
        return False
    if (
        last.count("(") > last.count(")")
        or _pattern("joins_after").search(last)
        or _pattern("joins_before").match(words)
    ):
        return True
    if before.bullet and indent > before.indent:
        return True
    if last.endswith((".", "!", "?", ";")):
        return widest > _PROSE_LINE and not _heading_mode(words, _Mode())
    lower = words[:1].islower()
    return widest > _PROSE_LINE and len(last) > 0.6 * widest and lower


def _sentences(text: str) -> list[str]:
    """Cut a text after its sentences; abbreviations and initials end none."""
    parts: list[str] = []
    start = 0
    for end in _SENTENCE_END.finditer(text):
        if not _ABBREVIATION.search(text[start : end.start()]):
            parts.append(text[start : end.start()])
            start = end.end()
    return [piece for part in (*parts, text[start:]) for piece in _bounded(part) if piece.strip()]


def _bounded(sentence: str) -> Iterator[str]:
    """Yield a sentence in pieces that the patterns below read in milliseconds."""
    while len(sentence) > _LONGEST_SENTENCE:
        cut = max(sentence.rfind(mark, 0, _LONGEST_SENTENCE) for mark in (",", ";", " ", "、", "，")) + 1
        cut = cut if cut > _LONGEST_SENTENCE // 2 else _LONGEST_SENTENCE
        yield sentence[:cut]
        sentence = sentence[cut:]
    yield sentence


# --- Headings ------------------------------------------------------------------------------------------------------


def _heading_mode(words: str, mode: _Mode) -> _Mode | None:
    """Return what a heading says of the text after it; None if the words are not only a heading's."""
    plain = re.sub(r"[^\w' -]", " ", words.casefold()).split()
    if not plain or len(plain) > 9 or any(word not in _words("heading") and not word.isdigit() for word in plain):
        return None
    return _described(words, _Mode(level=mode.level) if mode.wanted else _Mode())


def _described(words: str, mode: _Mode) -> _Mode:
    mild = _pattern("mild").search(words) is not None
    wanted = not (mild or _pattern("negative").search(words))
    level = (
        next((level for level, pattern in _table("levels") if pattern.search(words)), mode.level)
        if wanted
        else "primary"
    )
    kind: Kind = next((kind for kind, pattern in _table("kinds") if pattern.search(words)), "topic")
    return _Mode(wanted=wanted, mild=mild, level=level, kind=kind)


def _read_item(item: _Item, mode: _Mode, found: _Found) -> _Mode:
    """Read an item; return the mode of the items after it, which a heading changes."""
    if item.after_gap and not item.bullet:
        mode = _Mode()  # a list has ended
    text = item.text.strip("*_# ") if item.text.startswith(("*", "_", "#")) else item.text
    if text.endswith(":"):
        *before, last = _sentences(text)
        for sentence in before:
            _read_sentence(sentence, mode, found)
        heading = last.rstrip(": ")
        return _heading_mode(heading, _Mode()) or _described(heading, _Mode())
    if "\n" not in text and (heading_alone := _heading_mode(text.rstrip("."), _Mode())) and len(text.split()) > 1:
        return heading_alone  # "Not interested in" on a separate line
    for sentence in _sentences(text):
        _read_sentence(sentence, mode, found)
    return mode


# --- Clauses: what is wanted and what is not -----------------------------------------------------------------------


def _read_sentence(sentence: str, mode: _Mode, found: _Found) -> None:
    """Read one sentence: its own heading, its people, then its clauses in order."""
    sentence = sentence.strip().rstrip(".!").strip()
    sentence = _pattern("not_only").sub(r"\1 and ", sentence)
    head, colon, rest = sentence.partition(":")
    if colon and rest.strip():
        own = _heading_mode(head, mode) or (
            _described(head, mode) if _pattern("excludes").fullmatch(f"{head} ") else None
        )
        if own is not None:
            return _read_sentence(rest, own, found)
    if _read_foreign(sentence, mode, found):
        return None
    if mode.kind == "author":
        found.authors |= dict.fromkeys(_names(sentence))
        return None
    if mode.kind == "category":
        for code in re.findall(r"[\w.-]+", sentence):
            _category(code, mode.wanted, found)
        for name in re.split(r"[,;]", sentence):
            _category(name, mode.wanted, found)
        return None
    if mode.kind == "institution":
        return None
    sentence = _take_codes(_take_authors(sentence, found), mode, found)
    for part in _take_exceptions_in_brackets(sentence, mode, found):
        for wanted, mild, clause, first_only in _clauses(part, mode):
            said = replace(mode, wanted=wanted, mild=mild)
            topics = _topics(clause, said, found)
            for place, (topic, level, context) in enumerate(topics):
                kept = mode if first_only and place else said
                found.add(topic, replace(kept, level=level if kept.wanted else "primary"), context=context)


def _clauses(sentence: str, mode: _Mode) -> Iterator[tuple[bool, bool, str, bool]]:
    """Yield the clauses with (wanted, mild, text, only the first of its topics is excluded)."""
    after = _pattern("excluded_after").match(sentence)
    if after and re.search(
        r"n't|\b(?:not?|little|irrelevant|out|off-topic|un\w+|boring|excluded)\b", sentence[after.end("what") :], re.I
    ):
        yield False, False, after["what"], False
        return
    wanted, mild, at, first_only = mode.wanted, mode.mild, 0, False
    while at <= len(sentence):
        triggers = [
            each for each in (_pattern("excludes").search(sentence, at), _pattern("bare").search(sentence, at)) if each
        ]
        trigger = min(triggers, key=lambda each: (each.start(), -each.end()), default=None)
        resumed = _pattern("resumes").search(sentence, at) if not wanted and mode.wanted else None
        if resumed and (trigger is None or resumed.start() < trigger.start()):
            yield wanted, mild, sentence[at : resumed.start()], first_only
            wanted, mild, at, first_only = mode.wanted, mode.mild, resumed.end(), False
            continue
        if trigger is None:
            break
        yield wanted, mild, sentence[at : trigger.start()], first_only
        wanted, mild, at = False, bool(trigger.groupdict().get("less")), trigger.end()
        rest = sentence[at:]
        # "A, not B, C" goes on with C; "A, not B, C or D" excludes all three.
        first_only = (
            bool(trigger.groupdict().get("after")) and "," in rest and not re.search(r"\b(?:or|nor|and)\b", rest)
        )
    yield wanted, mild, sentence[at:], first_only


_BRACKET = re.compile(r"\s*\(([^()]*)\)")


def _take_exceptions_in_brackets(sentence: str, mode: _Mode, found: _Found) -> list[str]:
    """Read brackets that exclude ("LLMs (not vision), graphs") separately; return the rest."""
    left = sentence
    for bracket in _BRACKET.finditer(sentence):
        if _pattern("excludes").match(bracket[1]) or _pattern("bare").match(bracket[1]):
            left = left.replace(bracket[0], "", 1)
            _read_sentence(bracket[1], mode, found)
    return [left]


# --- People and categories -----------------------------------------------------------------------------------------


def _take_authors(sentence: str, found: _Found) -> str:
    """Move the people to follow out of a sentence; return the rest."""

    def take(match: re.Match[str]) -> str:
        names = [name for name in _names(match["names"]) if not _pattern("organisation").search(name)]
        before = match.string[: match.start("names")]
        excluded = _pattern("excludes").search(before) or _pattern("bare").search(before)
        if not names or excluded or any(name.casefold() in found.categories for name in names):
            return match[0]
        found.authors.update(dict.fromkeys(names))
        return " "

    left = _pattern("people").sub(take, sentence).strip(" ,;")
    return (
        ""
        if left != sentence
        and re.fullmatch(r"(?:\W|\b(?:always|please|also|include|and|i|we)\b)*", left, re.IGNORECASE)
        else left
    )


def _names(text: str) -> list[str]:
    parts = re.split(r"\s*[;\n]\s*|\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*&\s*", text.strip().rstrip("."))
    return [" ".join(part.split()) for part in parts if re.search(r"\w", part)]


_CODE = re.compile(r"\b[a-z]{2,}(?:-[a-z]{2,4})?\.[A-Za-z-]{2,}\b")
_AND_CODE = re.compile(r"\s*(?:,|/|\band\b|\bor\b|&)\s*(?=[a-z]{2,}(?:-[a-z]{2,4})?\.[A-Za-z-]{2,})")


def _take_codes(sentence: str, mode: _Mode, found: _Found) -> str:
    """Move codes of categories (cs.CL) out of a sentence; return the rest."""
    at = 0
    while (code := _CODE.search(sentence, at)) is not None:
        before = sentence[: code.start()]
        excluded = _pattern("excludes").search(before) is not None or _pattern("bare").search(before) is not None
        at = code.end()
        if _category(code[0], mode.wanted and not excluded, found):
            joined = _AND_CODE.match(sentence, at)
            sentence, at = before + sentence[joined.end() if joined else at :], code.start()
    return sentence


def _category(text: str, wanted: bool, found: _Found) -> bool:
    code = found.categories.get(" ".join(text.split()).strip(" .()").casefold())
    if code is not None and (wanted or found.codes.get(code) is not True):
        found.codes[code] = wanted
    return code is not None


# --- Topics --------------------------------------------------------------------------------------------------------


def _topics(clause: str, mode: _Mode, found: _Found) -> list[tuple[str, Level, bool]]:
    """Return the topics of a clause of one polarity with their level, and whether they only give context."""
    person, short = _pattern("person").match(clause), _pattern("field").match(clause)
    if person:
        clause = clause[person.end() :]
    level = mode.level
    topics: list[tuple[str, Level, bool]] = []
    colon = re.split(r":\s+", clause, maxsplit=1)
    for part in colon:
        for chunk in _chunks(_without_frame(part), mode):
            at_start = _pattern("level_at_start").match(chunk)
            if at_start and mode.wanted:
                level = next((each for each, pattern in _table("levels") if pattern.search(at_start["words"])), level)
                chunk = chunk[at_start.end() :]
            at_end = _pattern("level_at_end").search(chunk)
            own = "exploratory" if at_end else level
            topic = _topic(chunk[: at_end.start()] if at_end else chunk, mode, found)
            if topic:
                field_only = short is not None and len(topic.split()) == 1 and len(colon) == 1
                topics.append((topic, own, person is not None or field_only))
    return topics


def _without_frame(text: str) -> str:
    """Remove the words that introduce a topic, as often as there are any."""
    rest = text.strip(" ,;:-\"'")
    while True:
        level = _pattern("level_at_start").match(rest)
        lead = level["words"] + " " if level else ""
        body = rest[level.end() :] if level else rest
        shorter = _pattern("frames").sub("", _pattern("leads").sub("", body, count=1), count=1).strip(" ,;:")
        shorter = without_introduction(shorter).strip()
        if lead + shorter == rest or not shorter:
            return rest if shorter else ""
        rest = lead + shorter


def _chunks(text: str, mode: _Mode) -> Iterator[str]:
    """Yield the topics of an enumeration: commas and semicolons separate, `and` where both sides are topics."""
    for part in re.split(r"\s*;\s*|\s+(?:as well as|along with|together with)\s+", text):
        example = _pattern("examples").search(part)
        if example and example.start() > 0 and _outside_brackets(part, example.start()):
            head, rest = part[: example.start()].strip(" ,("), _balanced(part[example.end() :])
            if (
                not mode.wanted
                and not _pattern("generic").search(head)
                and example["word"].lower().startswith(("e.g", "for", "such"))
            ):
                yield f"{head} ({rest})"
                continue
            if not _pattern("generic").search(head):
                yield from _enumerated(head)
            yield from _chunks(rest, mode)
            continue
        brackets = re.search(
            r"\((?:including|such as|e\.g\.,?|in particular|especially|like)\s+([^()]*)\)", part, re.IGNORECASE
        )
        if brackets:
            yield from _enumerated((part[: brackets.start()] + part[brackets.end() :]).strip())
            yield from _enumerated(brackets[1])
            continue
        yield from _enumerated(part)


def _balanced(text: str) -> str:
    """Return the text without brackets at its ends that it does not close."""
    return text.strip() if text.count("(") == text.count(")") else text.strip("() ")


def _outside_brackets(text: str, at: int) -> bool:
    return text.count("(", 0, at) == text.count(")", 0, at)


def _enumerated(text: str) -> list[str]:
    parts = [part for part in _split_outside(text, r"\s*,\s*(?:and\s+|or\s+|nor\s+|&\s+)?") if part.strip()]
    if len(parts) > 1 and _shares_its_head(parts, text):
        return [text.strip()]
    if len(parts) < 2:
        return _split_pair(parts[0]) if parts else []
    return [*parts[:-1], *_split_pair(parts[-1], of_list=True)]


def _shares_its_head(parts: Sequence[str], text: str) -> bool:
    """Return whether the parts end one phrase: applications to medicine, satellites or games."""
    *_, last_preposition = [None, *_pattern("preposition").finditer(parts[0])]
    if last_preposition is None:
        return False
    complement = parts[0][last_preposition.end() :].split()
    tail = [word for part in parts[1:] for word in re.split(r"\s+(?:or|and)\s+", part)]
    longest = max((len(part.split()) for part in tail), default=0)
    alternative = re.search(r"\bor\b", text) is not None
    return 0 < len(complement) <= (2 if alternative else 1) and longest <= (2 if alternative else 1)


def _split_pair(text: str, *, of_list: bool = False) -> list[str]:
    """Split `A and B` where each is a separate topic; not `pretraining and finetuning of X`."""
    if re.search(r"\b(?:whether|between|both|either)\b", text, re.IGNORECASE):
        return [text]
    sides = _split_outside(text, r"\s+(?:and|or|nor|&)\s+(?:(?:on|about|in)\s+(?=\w))?")
    if len(sides) < 2:
        return [text]
    result = [sides[0]]
    for side in sides[1:]:
        one, other = result[-1].split(), side.split()
        preposition = _pattern("preposition").search(side)
        if of_list:
            split = True
        elif len(one) == 1 and len(other) == 1:
            split = _pattern("adjective").search(one[0]) is None or _pattern("adjective").search(other[0]) is not None
        elif len(one) == 1:
            shared = (
                preposition is not None
                or other[-1].lower() in _words("shared_heads")
                or _pattern("adjective").search(one[0])
            )
            split = not shared
        elif len(other) == 1:
            split = _pattern("preposition").search(result[-1]) is None
        else:
            split = _pattern("adjective").search(one[-1]) is None
        if split:
            result.append(side)
        else:
            between = text[
                text.index(result[-1]) + len(result[-1]) : text.index(side, text.index(result[-1]) + len(result[-1]))
            ]
            result[-1] = f"{result[-1]}{between}{side}"
    return result


def _split_outside(text: str, separator: str) -> list[str]:
    """Split at a separator outside brackets."""
    parts: list[str] = []
    start = 0
    for match in re.finditer(separator, text):
        if _outside_brackets(text, match.start()):
            parts.append(text[start : match.start()])
            start = match.end()
    return [*parts, text[start:]]


def _topic(chunk: str, mode: _Mode, found: _Found) -> str:
    """Return the topic of a chunk without framing words; empty if nothing is left. Categories are noted."""
    for bracket in _BRACKET.finditer(chunk):
        if _category(bracket[1], mode.wanted, found):
            chunk = chunk.replace(bracket[0], "", 1)
    named = re.match(r"(?:from|in)\s+(.+)", chunk.strip())
    plain = named[1] if named else chunk.strip()
    if plain.casefold() in found.categories and (named or "." in plain or (plain.istitle() and " " in plain)):
        _category(plain, mode.wanted, found)
    text = _without_frame(plain).strip(" ,;:.\"'-")
    text = _pattern("adjectives").sub("", text).strip().removeprefix("by ")
    shorter = _pattern("trailing").sub("", text).strip(" ,;:.")
    if len(shorter.split()) > 1 + bool(_pattern("adjective").search(shorter.lower())):  # "position papers" stays
        text = shorter
    text = re.sub(r",?\s+unless\b.*", "", text)
    text = re.sub(r"\s+(?:but|and|or)$", "", _balanced(text))
    words = re.findall(r"[\w'-]+", text.casefold())
    if not words or all(word in _words("fillers") for word in words) or not any(letter.isalpha() for letter in text):
        return ""
    return text


# --- Other languages -----------------------------------------------------------------------------------------------

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
            excludes=_compiled(table["excludes"]),
            removes=_compiled(table["removes"]),
            separates=_compiled(table["separates"]),
            function_words=frozenset(table.get("function_words", "").split()),
        )
        for code, table in _vocabulary()["languages"].items()
    }


def _language(text: str) -> str | None:
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
    english = len(_words("english") & set(words))
    best = max(scores, key=lambda code: scores[code])
    if scores[best] >= 2 and scores[best] > english:
        return best
    latin = sum(letter < "ɐ" for letter in letters)
    code = language_of(text) if 2 * latin < len(letters) else None
    return code if code in _OTHER_SCRIPTS else None


_OTHER_SCRIPTS = frozenset(("ar", "bg", "bn", "el", "fa", "he", "hi", "ru", "th", "uk"))


def _read_foreign(sentence: str, mode: _Mode, found: _Found) -> bool:
    """Read a sentence in one of the languages with a grammar above; return whether it is in one."""
    grammar = _grammars().get(_language(sentence) or "")
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
    pieces = re.split(r"(?<=[，,])", text) if _HAN.search(text) and not _KANA.search(text) else [text]
    for piece in pieces:
        excluded = grammar.excludes.search(piece)
        if excluded is None:
            yield piece, wanted
            continue
        topic = next(group for group in excluded.groups() if group)
        if excluded.start() > 0:
            yield piece[: excluded.start()], wanted
        yield topic, False


def _shortened(chunk: str, grammar: _Grammar) -> str:
    topic = chunk.strip(" ,.，、。:")
    while (shorter := grammar.removes.sub("", topic).strip(" ,.，、。:的")) != topic:
        topic = shorter
    return topic
