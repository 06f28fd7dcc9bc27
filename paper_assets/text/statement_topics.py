"""Find the topics of a clause of a statement: drop frames and fillers, and split enumerations where a comma separates
topics.
"""

import re
from collections.abc import Iterator, Sequence

from paper_assets.text.statement_parts import (
    BRACKET,
    Found,
    Level,
    Mode,
    expression,
    expressions,
    note_category,
    word_list,
)


def topics_of(clause: str, mode: Mode, found: Found) -> list[tuple[str, Level, bool]]:
    """Return the topics of a clause of one polarity with their level, and whether they only give context."""
    person, short = expression("person").match(clause), expression("field").match(clause)
    if person:
        clause = clause[person.end() :]
    level = mode.level
    topics: list[tuple[str, Level, bool]] = []
    colon = re.split(r":\s+", clause, maxsplit=1)
    for part in colon:
        framed = _without_frame(part)
        is_category = (
            note_category(re.sub(r"^(?:from|in)\s+", "", framed), mode.wanted, found) if " " in framed else False
        )
        for chunk in [framed] if is_category else _chunks(framed, mode):
            while mode.wanted and (at_start := expression("level_at_start").match(chunk)):
                level = _level_of(at_start["words"], level)
                chunk = expression("leads").sub("", chunk[at_start.end() :])
            at_end = expression("level_at_end").search(chunk)
            own: Level = _level_of(at_end["words"], "exploratory") if at_end else level
            last = re.search(r"\s*\(([^()]+)\)$", chunk)
            if last and all(word in word_list("heading") for word in last[1].casefold().split()):  # "trees (maybe)"
                chunk, own = chunk[: last.start()], _level_of(last[1], own)
            topic = _topic(chunk[: at_end.start()] if at_end else chunk, mode, found)
            if topic:
                field_only = short is not None and len(topic.split()) == 1 and len(colon) == 1
                topics.append((topic, own, person is not None or field_only))
    return topics


def _level_of(words: str, otherwise: Level) -> Level:
    return next((level for level, pattern in expressions("levels") if pattern.search(words)), otherwise)


def _without_frame(text: str) -> str:
    """Remove the words that introduce a topic, as often as there are any."""
    rest = text.strip(" ,;:-\"'")
    while True:
        level = expression("level_at_start").match(rest)
        lead = level["words"] + " " if level else ""
        body = rest[level.end() :] if level else rest
        shorter = expression("frames").sub("", expression("leads").sub("", body, count=1), count=1).strip(" ,;:")
        if lead + shorter == rest or not shorter:
            return expression("personal").sub("", rest).strip(" ,;:") if shorter else ""
        rest = lead + shorter


def _chunks(text: str, mode: Mode) -> Iterator[str]:
    """Yield the topics of an enumeration: commas and semicolons separate, `and` where both sides are topics."""
    for part in re.split(r"\s*;\s*|\s+(?:as well as|along with|together with)\s+", text):
        example = expression("examples").search(part)
        if example and example.start() > 0 and _outside_brackets(part, example.start()):
            head, rest = part[: example.start()].strip(" ,("), _balanced(part[example.end() :])
            if (
                not mode.wanted
                and not expression("generic").search(head)
                and example["word"].lower().startswith(("e.g", "for", "such"))
            ):
                yield f"{head} ({rest})"
                continue
            if not expression("generic").search(head):
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
    *_, last_preposition = [None, *expression("preposition").finditer(parts[0])]
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
        preposition = expression("preposition").search(side)
        if other[0].lower() in ("its", "their"):  # "glaciers and their retreat"
            split = False
        elif of_list:
            split = True
        elif len(one) == 1 and len(other) == 1:
            split = (
                expression("adjective").search(one[0]) is None or expression("adjective").search(other[0]) is not None
            )
        elif len(one) == 1:
            shared = (
                preposition is not None
                or other[-1].lower() in word_list("shared_heads")
                or expression("adjective").search(one[0])
            )
            split = not shared
        elif len(other) == 1:
            split = expression("preposition").search(result[-1]) is None
        else:
            split = expression("adjective").search(one[-1]) is None
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


def _topic(chunk: str, mode: Mode, found: Found) -> str:
    """Return the topic of a chunk without framing words; empty if nothing is left. Categories are noted."""
    for bracket in BRACKET.finditer(chunk):
        if note_category(bracket[1], mode.wanted, found):
            chunk = chunk.replace(bracket[0], "", 1)
    named = re.match(r"(?:from|in)\s+(.+)", chunk.strip())
    plain = named[1] if named else chunk.strip()
    if plain.casefold() in found.categories and (named or "." in plain or (plain.istitle() and " " in plain)):
        note_category(plain, mode.wanted, found)
    text = _without_frame(plain.strip("[]\"' ")).strip(" ,;:.?\"'-")
    text = expression("adverbs").sub("", expression("adjectives").sub("", text)).strip().removeprefix("by ")
    shorter = expression("trailing").sub("", text).strip(" ,;:.")
    if len(shorter.split()) > 1 + bool(expression("adjective").search(shorter.lower())):  # "position papers" stays
        text = shorter
    text = re.sub(r",?\s+unless\b.*", "", text)
    text = re.sub(r"\s+(?:but|and|or)$", "", _balanced(text))
    words = re.findall(r"[\w'-]+", text.casefold())
    if not words or all(word in word_list("fillers") for word in words) or not any(letter.isalpha() for letter in text):
        return ""
    return text
