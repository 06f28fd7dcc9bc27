"""Reduce a clause that gives an opinion to its topic: "NFTs can go" becomes "not interested in NFTs".

People give an opinion before a topic ("I would rather not see …") or after it ("… is just a side interest"), in too
many phrases for a list. Both are recognised by their words: a run that begins with a pronoun, an imperative or a
judgement (before a topic) or with a verb or a pronoun (after it), and consists of a closed class of words. A negative
word in it makes the topic unwanted. The words are in `statement_words.toml`.
"""

import re
from collections.abc import Sequence

from paper_assets.text.statement_parts import expression, word_list

_EDGES = " ,.;:!?()"
_QUESTION_WORDS = frozenset(("how", "what", "when", "where", "whether", "why"))
_OF_OPINIONS = ("opinions", "pronouns", "negatives", "judgements", "of_papers", "heading")
_JUDGING = ("judgements", "pronouns", "possessives")


def plain_clauses(sentence: str) -> list[str]:
    """Return the clauses of a sentence with each opinion as a short phrase before its topic; the sentence itself if it
    gives none.
    """
    sentence = expression("manners").sub("", sentence)
    if reason := expression("reason").match(sentence):  # "we build robots, so I read about grasping"
        sentence = f"I am a researcher in {reason['reason']}; {sentence[reason.end() :]}"
    given = expression("conditional").match(sentence)
    if given and rejects(given["rest"]):
        return [f"not interested in {given['topic']}"]
    separator = "enumeration" if expression("verdicts").search(sentence) else "boundary"
    parts = [part.strip(" ,") for part in expression(separator).split(sentence) if part.strip()]
    parts = [piece for part in parts for piece in _parts_judged_early(part)]
    plain = [_plain(part, alone=len(parts) == 1) for part in parts]
    for at, part in enumerate(parts[1:], 1):
        judged = plain[at] is not None or rejects(plain[at - 1] or "")
        if not judged and is_opinion(part) and rejects(part) and expression("referring").search(part):
            topic = expression("past").sub("", parts[at - 1])
            plain[at - 1 : at + 1] = [f"not interested in {topic}", ""]  # "A was my field, but I have had enough of it"
    for at, part in enumerate(parts[1:], 1):
        contrary = expression("contrast").match(part) if plain[at] is None else None
        if contrary and not rejects(parts[at]) and re.search(rf"\bbut\s+{re.escape(part)}", sentence):
            plain[at] = f"not interested in {contrary['topic']}"
    if len(parts) > 1 and plain[-1] is None and any(clause and rejects(clause) for clause in plain[:-1]):
        plain[-1] = expression("confirmed").sub("", parts[-1])  # "A is not for me, B is"
    stated = len(parts) > 1 and any(is_opinion(part) or expression("subject").match(part) for part in parts)
    if plain == [None] * len(parts) and not stated:
        return [sentence]
    clauses = [part if clause is None else clause for part, clause in zip(parts, plain, strict=True)]
    return [clause for clause in clauses if not is_opinion(clause)]


def _parts_judged_early(clause: str) -> list[str]:
    """Cut a clause at its commas if a person's opinion on the words before one ends there ("A is not for me, B")."""
    parts = expression("enumeration").split(clause)
    return parts if any(_is_judged_by_a_person(_words(part)) for part in parts[:-1]) else [clause]


def _is_judged_by_a_person(words: Sequence[str]) -> bool:
    at = 0 if _run_before(words) else _run_after(words)
    return at > 0 and any(word in word_list(name) for name in _JUDGING for word in words[at:])


def rejects(text: str) -> bool:
    """Return whether an opinion is that its topic is not wanted."""
    if expression("exceptions").search(text):  # "can't get enough of", "don't want to miss"
        return False
    negative = any(word in word_list("negatives") or word.endswith("n't") for word in _words(text))
    return negative or expression("no_interest").search(text) is not None


def is_opinion(text: str) -> bool:
    """Return whether a text consists of words of opinions only: it names no topic."""
    return all(any(word in word_list(name) for name in _OF_OPINIONS) for word in _words(text))


def _plain(clause: str, *, alone: bool) -> str | None:
    """Return a clause with its opinion as a short phrase before its topic; None if it gives none."""
    if expression("past").match(clause):
        return ""
    if (match := expression("verdict").match(clause)) and (match["mark"] or not alone):
        return _phrase(match["rest"]) + str(match["topic"])
    if match := expression("kept_out").match(clause):
        return f"not interested in {match['topic']}"
    if expression("person").match(clause):
        match = expression("doing").search(clause)
        return clause[match.end() :] if match else None
    tokens, words = clause.split(), _words(clause)
    before = 0 if words[0] == "less" and tokens[0].endswith(",") else _run_before(words)
    if 0 < before < len(words):
        return _phrase(" ".join(words[:before])) + " ".join(tokens[before:])
    if at := _run_after(words):
        return _phrase(" ".join(words[at:])) + expression("emphasis").sub("", " ".join(tokens[:at]))
    return None


def _run_before(words: Sequence[str]) -> int:
    """Return how many words before the topic give an opinion; 0: none."""
    at = next((at for at, word in enumerate(words) if word not in word_list("conjunctions")), None)
    if at is None or at + 1 == len(words):
        return 0
    start, following = words[at], words[at + 1]
    if start in word_list("rejections"):
        is_run = following in word_list("after_rejections")
    else:
        is_inverted = start in word_list("judgements") and following in word_list("after_judgements")
        is_run = start in word_list("pronouns") or start.endswith("n't") or is_inverted
    if not is_run:
        return at + 1 if start == "less" and following not in word_list("opinions") else 0
    end = at + 1
    framing = word_list("opinions") | word_list("wishes")
    while end < len(words) and words[end] in framing and not _is_about(words, end):
        end += 1
    if end < len(words) and _is_about(words, end):
        end += 1
    if end < len(words) and words[end] in word_list("about"):
        end += 1
    elif end < len(words) and words[end - 1] in word_list("topical"):
        end -= 1
    if is_opinion(" ".join(words[end:])):  # "I no longer want papers on it" names no topic
        return 0
    if end == at + 1 or (expression("field").match(" ".join(words)) and not rejects(" ".join(words[:end]))):
        return 0
    return end


def _is_about(words: Sequence[str], at: int) -> bool:
    """Return whether the word stands for papers: `papers on`, `everything about`."""
    return words[at] in word_list("of_papers") and at + 1 < len(words) and words[at + 1] in word_list("about")


def _run_after(words: Sequence[str]) -> int:
    """Return at which word an opinion on the words before it begins; 0: nowhere."""
    if not words or words[0] in _QUESTION_WORDS:
        return 0
    for at in range(1, len(words)):
        first, *others = words[at:]
        denies = first.endswith("n't") or others == ["not"]
        if (first in word_list("predicates") or denies) and all(word in word_list("opinions") for word in others):
            judging = words[at:] if others else set(words[at:]) & word_list("negatives")  # "surveys excluded"
            judges = any(word in word_list(name) for name in _JUDGING for word in judging)
            return at if (denies or judges) and words[at - 1] not in word_list("about") else 0
        rest = " ".join(words[at:])
        if expression("refusal").fullmatch(rest) or expression("of_a_person").match(rest):
            return at
    return 0


def _phrase(opinion: str) -> str:
    """Return the phrase that says the same to the rules of `statements.py`."""
    if expression("mild").search(opinion) and "n't" not in opinion:
        return "less interested in "
    if rejects(opinion):
        return "not interested in "
    if expression("seldom").search(opinion):
        return "sometimes "
    return "also " if expression("beside").search(opinion) else ""


def _words(text: str) -> list[str]:
    return [word.strip(_EDGES) for word in text.casefold().split()]
