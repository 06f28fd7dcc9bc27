"""Read what a person writes about what they want to read: topics by level, topics to avoid, authors, categories (W1).

The rules work on sentences and bullets, not on lines. A statement is cut into items (bullets, sentences, unwrapped
lines), each item into clauses of one polarity (`statement_opinions.py`), and each clause into topics. Headings ("Not
relevant:") set polarity, level or kind for what follows. To teach a new phrase, add it to `statement_words.toml`, and a
statement to `tests/text/test_statements.py`.

Negations that belong to a topic ("non-convex", "learning without labels", "why models are not calibrated") stay: only a
clause that begins with a negation, or a sentence that says that something is not wanted, excludes.
"""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from paper_assets.text.cleaning import without_controls
from paper_assets.text.statement_languages import read_foreign, statement_language
from paper_assets.text.statement_opinions import is_opinion, plain_clauses, rejects
from paper_assets.text.statement_parts import (
    BRACKET,
    Found,
    Kind,
    Mode,
    expression,
    expressions,
    note_category,
    word_list,
)
from paper_assets.text.statement_topics import topics_of

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


def read_statement(text: str, *, categories: Mapping[str, str] | None = None) -> Reading:
    """Read a statement of any form. `categories`: names and codes in lower case, with their codes.

    The result depends on the text alone. Longer texts than `LONGEST_STATEMENT` are cut, which a note reports.
    """
    cleaned = without_controls(unicodedata.normalize("NFKC", text)).replace("\t", "    ")
    notes = []
    if len(cleaned) > LONGEST_STATEMENT:
        cleaned = cleaned[:LONGEST_STATEMENT]
        notes.append(f"only the first {LONGEST_STATEMENT:,} characters were read")
    language = statement_language(cleaned)
    found, mode = Found(categories=categories or {}, language=language), Mode()
    plain = re.sub(r"^([a-z]+)\s*=\s+(?=\w)", r"\1: ", cleaned.translate(_SAME), flags=re.MULTILINE)
    items = list(_items(_without_letter(plain)))
    if {"+", "-"} <= {item.mark for item in items}:  # a list of wanted and unwanted topics
        items = [replace(item, text=f"not {item.text}") if item.mark == "-" else item for item in items]
    for item in items:
        mode = _read_item(item, mode, found)
    if expression("phrase").fullmatch(cleaned.strip()) and not any(mode.wanted for _, mode, _ in found.topics.values()):
        found.topics.clear()  # "skip connections": a phrase that denies nothing is a topic
        found.add(cleaned.strip(), Mode())
    return _reading(found, notes)


@lru_cache(1024)
def topic_in(interest: str) -> str:
    """Return the topic of an interest, however it is introduced ("I work on …"): words that frame it are left out."""
    reading = read_statement(interest)
    return reading.wanted[0] if len(reading.wanted) == 1 and not reading.authors else interest


def _reading(found: Found, notes: list[str]) -> Reading:
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
        language=found.language,
        notes=tuple(notes),
    )


# --- Items: bullets, sentences, unwrapped lines --------------------------------------------------------------------

_SAME = str.maketrans(
    {
        **dict.fromkeys("❌🚫👎⛔✗✘", "not "),
        **dict.fromkeys("✅👍✓✔⭐", "yes "),
        "“": '"',
        "”": '"',
        "‘": "'",
        "’": "'",
        "–": "-",
        "—": "-",
        "‐": "-",
        "‑": "-",
    }
)
_BULLET = re.compile(r"(?P<indent> *)(?P<mark>[-*•·◦▪+>]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)]|#{1,6}) +(?=\S)")
_UNDERLINE = re.compile(r"\s*[=~_-]{3,}\s*")
_LONG_HEADING = 7  # words; an underlined line with as many is not a heading
_NUMBER = re.compile(r"(^|[:,;.]|\b(?:and|or)\b|(?<=\s))\s*\(?(?:\d{1,2}|[a-h]|[ivx]{1,4})\)\s+", re.IGNORECASE)
_LONGEST_SENTENCE = 600  # characters; a longer one is read in pieces
_PROSE_LINE = 45  # characters; text wrapped at fewer is a list
_SENTENCE_END = re.compile(
    r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?(?:[^\Wa-zà-ÿ_]|[a-z]{2,}(?:-[a-z]+)?\.[A-Z]{2}))|(?<=[。！？])\s*|(?<=!)\s+"
)
_LOWER_SENTENCE_END = re.compile(r"(?<=[^\W\d_]{2}[.!?])\s+(?=[^\W\d_])|(?<=[。！？])\s*")  # of a text without capitals
_HEADERS = re.compile(r"\A\s*(?:(?:subject|to|from|date|cc):[^\n]*\n\s*)+", re.IGNORECASE)
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|et al|cf|vs|approx|resp|incl|esp|Dr|Prof)|\b[A-Z])\.$")


@dataclass(frozen=True, slots=True)
class _Item:
    text: str
    mark: str  # of its bullet; empty without one
    indent: int
    after_gap: bool  # a blank line is before it


def _without_letter(text: str) -> str:
    """Return the text of a mail or letter without its greeting, its thanks, and all from its closing words on."""
    text = _HEADERS.sub("", text)
    closing = expression("closing").search(text)
    return expression("thanks").sub("", expression("greeting").sub("", text[: closing.start()] if closing else text))


def _items(text: str) -> Iterator[_Item]:
    """Yield bullets and paragraphs, with lines that only a margin has cut joined again."""
    current: _Item | None = None
    gap = False
    widest = max((len(line) for line in text.splitlines()), default=0)
    for line in text.splitlines():
        if not line.strip():
            gap = True
            continue
        if current is not None and _UNDERLINE.fullmatch(line) and not current.mark and not gap:
            if len(current.text.split()) < _LONG_HEADING and not current.text.endswith((".", "!", "?", ":")):
                current = replace(current, text=f"{current.text}:")
            continue
        bullet = _BULLET.match(line)
        words = " ".join((line[bullet.end() :] if bullet else line).split())
        if bullet and bullet["mark"].startswith("#"):
            words = f"{words.rstrip(':')}:"  # a heading of Markdown
        indent = len(line) - len(line.lstrip())
        if current is not None and not bullet and not gap and _continues(current, words, indent, widest):
            current = replace(current, text=f"{current.text} {words}")
            continue
        if current is not None:
            yield current
        current = _Item(words, bullet["mark"] if bullet else "", indent, gap)
        gap = False
    if current is not None:
        yield current


def _continues(before: _Item, words: str, indent: int, widest: int) -> bool:
    """Return whether a line goes on with the sentence of the item before it."""
    last = before.text
    head, colon, _ = words.partition(":")
    if last.endswith((":", "。")) or (colon and _heading_mode(head, Mode())):
        return False
    if (
        last.count("(") > last.count(")")
        or expression("joins_after").search(last)
        or expression("joins_before").match(words)
    ):
        return True
    if before.mark and indent > before.indent:
        return True
    if last.endswith((".", "!", "?", ";")):
        return widest > _PROSE_LINE and not _heading_mode(words, Mode())
    lower = words[:1].islower()
    return widest > _PROSE_LINE and len(last) > 0.6 * widest and lower


def _sentences(text: str) -> list[str]:
    """Cut a text after its sentences; abbreviations and initials end none."""
    parts: list[str] = []
    start = 0
    ends = _LOWER_SENTENCE_END if text == text.lower() else _SENTENCE_END
    for end in ends.finditer(text):
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


def _heading_mode(words: str, mode: Mode) -> Mode | None:
    """Return what a heading says of the text after it; None if the words are not only a heading's."""
    plain = re.sub(r"[^\w' -]", " ", words.casefold()).split()
    if not plain or len(plain) > 9 or any(word not in word_list("heading") and not word.isdigit() for word in plain):
        return None
    return _described(words, Mode(level=mode.level) if mode.wanted else Mode())


def _described(words: str, mode: Mode) -> Mode:
    mild = expression("mild").search(words) is not None
    wanted = not (mild or rejects(words))
    level = (
        next((level for level, pattern in expressions("levels") if pattern.search(words)), mode.level)
        if wanted
        else "primary"
    )
    kind: Kind = next((kind for kind, pattern in expressions("kinds") if pattern.search(words)), "topic")
    return Mode(wanted=wanted, mild=mild, level=level, kind=kind)


def _read_item(item: _Item, mode: Mode, found: Found) -> Mode:
    """Read an item; return the mode of the items after it, which a heading changes."""
    if item.after_gap and not item.mark:
        mode = Mode()  # a list has ended
    text = item.text.strip("*_# ") if item.text.startswith(("*", "_", "#")) else item.text
    if text.endswith(":"):
        *before, last = _sentences(text)
        for sentence in before:
            _read_sentence(sentence, mode, found)
        heading = last.rstrip(": ")
        return _heading_mode(heading, Mode()) or _described(heading, Mode())
    text = re.sub(r"\s+[/|]\s+", "; ", re.sub(r"^\[[ xX]\]\s+", "", text))
    text = expression("now_and_then").sub("occasionally", text)
    text = re.sub(r"\?\s+([^.!?\n]{2,40})(?=[.!]|$)", _answered, text)
    if _heading_mode(text.partition(" - ")[0], Mode()):
        text = text.replace(" - ", ": ", 1)
    text = text.replace(" - ", "; ") if " - " in text and (": " in text or text.count(" - ") > 1) else text
    if (alone := _heading_mode(text.rstrip("."), Mode())) is not None:
        return alone  # "Not interested in" on a separate line
    for sentence in _sentences(text):
        _read_sentence(sentence, mode, found)
    return mode


def _answered(asked: re.Match[str]) -> str:
    """Return an opinion after a question mark ("Code review? Not so much.") as yes or no."""
    return (": no" if rejects(asked[1]) else ": yes") if is_opinion(asked[1]) else asked[0]


_MARK = re.compile(r"[(\[]([^()\[\]]{1,40})[)\]]\s*(?=\w)")

# --- Clauses: wanted and unwanted topics -----------------------------------------------------------------------


def _read_sentence(sentence: str, mode: Mode, found: Found) -> None:
    """Read one sentence: its own heading, its people, then its clauses in order."""
    sentence = sentence.strip().rstrip(".!?").strip()
    marked = _MARK.match(sentence)
    if marked and is_opinion(marked[1]):  # "(skip) surveys"
        return _read_sentence(sentence[marked.end() :], _described(marked[1], mode), found)
    if not rejects(sentence):
        sentence = expression("unless_about").sub(" except ", sentence)
    sentence = expression("not_only").sub(r"\1 and ", expression("condition").sub("", sentence))
    sentence = _NUMBER.sub(r"\1; ", sentence) if len(_NUMBER.findall(sentence)) > 1 else sentence
    head, colon, rest = sentence.partition(":")
    before, cut, label = head.rpartition(";")
    if cut and rest.strip() and _heading_mode(label, mode):  # "graphs; people I follow: Ada Lov"
        _read_sentence(before, mode, found)
        return _read_sentence(f"{label}:{rest}", mode, found)
    if colon and rest.strip():
        stated = is_opinion(head) or expression("excludes").fullmatch(f"{head} ")
        own = _heading_mode(head, mode) or (_described(head, mode) if stated else None)
        if own is not None:
            return _read_sentence(rest, own, found)
        before, _, last = head.rpartition(",")
        if before and _heading_mode(last, mode):  # "surface codes, authors: Ada Lov"
            _read_sentence(before, mode, found)
            return _read_sentence(f"{last}:{rest}", mode, found)
    sentence = re.sub(r":\s+(?=(?:i|we)\b)", "; ", sentence, flags=re.IGNORECASE)
    if read_foreign(sentence, mode, found):
        return None
    if expression("biography").match(sentence):
        found.add(sentence, mode, context=True)
        return None
    if mode.kind == "author":
        names = _names(sentence)
        if not any(expression("organisation").search(name) or name.islower() for name in names):
            found.authors |= dict.fromkeys(names)
            return None
    if mode.kind == "category":
        for code in re.findall(r"[\w.-]+", sentence):
            note_category(code, mode.wanted, found)
        for name in re.split(r"[,;]", sentence):
            note_category(name, mode.wanted, found)
        return None
    if mode.kind == "institution":
        return None
    sentence = _take_codes(_take_authors(sentence, found), mode, found)
    for part in _take_exceptions_in_brackets(sentence, mode, found):
        for plain in plain_clauses(part):
            if expression("biography").match(plain):
                found.add(plain, mode, context=True)
                continue
            subject = expression("subject").match(plain)
            own = _described(subject["words"], mode) if subject else mode
            for wanted, mild, clause, first_only in _clauses(plain[subject.end() :] if subject else plain, own):
                said = replace(own, wanted=wanted, mild=mild)
                for place, (topic, level, context) in enumerate(topics_of(clause, said, found)):
                    kept = own if first_only and place else said
                    found.add(topic, replace(kept, level=level if kept.wanted else "primary"), context=context)


def _clauses(sentence: str, mode: Mode) -> Iterator[tuple[bool, bool, str, bool]]:
    """Yield the clauses with (wanted, mild, text, only the first of its topics is excluded)."""
    wanted, mild, at, first_only = mode.wanted, mode.mild, 0, False
    while at <= len(sentence):
        found = (each for name in ("excludes", "bare") for each in expression(name).finditer(sentence, at))
        triggers = (
            each
            for each in found
            if not sentence.startswith("-", each.end())  # "skip-gram"
            and not (each.groupdict().get("less") and expression("a_bit").search(sentence[: each.start()]))
        )
        trigger = min(triggers, key=lambda each: (each.start(), -each.end()), default=None)
        resumed = expression("resumes").search(sentence, at) if not wanted and mode.wanted else None
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


def _take_exceptions_in_brackets(sentence: str, mode: Mode, found: Found) -> list[str]:
    """Read brackets that exclude ("LLMs (not vision), graphs") separately; return the rest."""
    left = sentence
    for bracket in BRACKET.finditer(sentence):
        inside = plain_clauses(bracket[1])[0]
        if expression("excludes").match(inside) or expression("bare").match(inside):
            left = left.replace(bracket[0], "", 1)
            _read_sentence(bracket[1], mode, found)
    return [left]


# --- People and categories -----------------------------------------------------------------------------------------


def _take_authors(sentence: str, found: Found) -> str:
    """Move the people to follow out of a sentence; return the rest."""

    def take(match: re.Match[str]) -> str:
        names = [name for name in _names(match["names"]) if not expression("organisation").search(name)]
        before = re.split(r"[;:]|\bbut\b", match.string[: match.start("names")])[-1]
        excluded = _is_excluded(before)
        if not names or excluded or any(name.casefold() in found.categories for name in names):
            return match[0]
        found.authors.update(dict.fromkeys(names))
        return " "

    left = expression("people").sub(take, expression("people_after").sub(take, sentence)).strip(" ,;")
    if left == sentence:
        return left
    left = expression("examples_at_end").sub("", left)
    return "" if is_opinion(left) else left


def _without_trigger(before: str) -> str:
    """Return the words before an excluded code without those that exclude it."""
    found = [each for name in ("excludes", "bare") for each in expression(name).finditer(before.rstrip() + " ")]
    last = max(found, key=lambda each: each.end(), default=None)
    return before[: last.start()] if last and not before[last.end() :].strip() else before


def _is_excluded(before: str) -> bool:
    """Return whether the words before a name or code say that it is not wanted."""
    excludes = expression("excludes").search(before) or expression("bare").search(before.strip() + " ")
    return excludes is not None and expression("exceptions").search(before) is None


def _names(text: str) -> list[str]:
    text = text.strip().rstrip(".")
    parts = re.split(r"\s*;\s*", text)
    if len(parts) < 2 or any(part.count(",") != 1 for part in parts):  # "Lov, Ada; Orr, Emil" stays in this order
        parts = re.split(r"\s*[;\n]\s*|\s*,\s*(?:and\s+|or\s+)?|\s+(?:and|or)\s+|\s*&\s*", text)
    return [re.sub(r"['’]s$", "", " ".join(part.split())) for part in parts if re.search(r"\w", part)]


_CODE = re.compile(r"\b[a-z]+(?:-[a-z]{2,4})?\.[A-Za-z-]{2,}\b|\b[a-z]{2,5}-[a-z]{2,4}\b(?![.-])")
_AND_CODE = re.compile(rf"\s*(?:,|/|\band\b|\bor\b|&)\s*(?={_CODE.pattern})")
_LEFT_OF_CODES = re.compile(
    r"\s*\([\s,;/]*\)|[,;]?\s*(?:\b(?:and|but|not?|nothing|never|from|in|of|within)\s*)+(?=[,;:.)]|$)", re.IGNORECASE
)


def _take_codes(sentence: str, mode: Mode, found: Found) -> str:
    """Move codes of categories (cs.CL) and names in "from Number Theory" out of a sentence; return the rest."""
    named = expression("sections").match(sentence)
    names = [expression("leads").sub("", name) for name in _names(named["names"])] if named else []
    if named and names and all(name.casefold() in found.categories for name in names):
        for name in names:
            note_category(name, mode.wanted, found)
        sentence = sentence[named.end() :].lstrip(" ,;:")
    at, given = 0, sentence
    for name in _category_names(sentence, found):
        sentence = re.sub(
            rf"(?:\b(?:from|in) )?{re.escape(name)}", found.categories[name.casefold()], sentence, flags=re.IGNORECASE
        )
    while (code := _CODE.search(sentence, at)) is not None:
        before = sentence[: code.start()]
        clause = re.split(r"[;:.]\s|\bbut\b", before)[-1]
        excluded = _is_excluded(clause)
        at = code.end()
        if note_category(code[0], mode.wanted and not excluded, found):
            joined = _AND_CODE.match(sentence, at)
            if excluded and not joined:
                before = _without_trigger(before)
            sentence, at = before + sentence[joined.end() if joined else at :], code.start()
    if sentence != given:
        sentence = _LEFT_OF_CODES.sub("", sentence).strip(" ,;")
    head, colon, rest = sentence.partition(":")
    if colon and (not head.strip() or _heading_mode(head, Mode())):
        return rest
    return "" if at and _heading_mode(sentence, Mode()) else sentence  # "my categories are"


def _category_names(sentence: str, found: Found) -> list[str]:
    """Return the names of categories that a sentence gives as such: "from Number Theory", "Number Theory papers"."""
    folded, names = sentence.casefold(), []
    for known in found.categories:
        if " " in known and (at := folded.find(known)) >= 0 and len(folded) == len(sentence):
            name, before, after = sentence[at : at + len(known)], folded[:at], folded[at + len(known) :]
            denied = expression("excludes").search(before) or expression("bare").search(before)
            given = re.search(r"\b(?:from|in) $", before) or re.match(r" papers?\b(?! of)", after)
            if name[:1].isupper() and given and not denied:
                names.append(name)
    return names
