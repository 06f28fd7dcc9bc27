"""Hold back rewrites for reasons that no score overrules (B2): between critic and pass, and before the archive. Pure.

A rewrite is stopped by code for plain contradictions only: language, length, a refusal, a copy, readability, another
text, a number that the original has with another power of ten, sign or unit. Whether a sentence says what the original
says is a question to the critic (`compare_sentences`), and so is a number or name that code did not find there
(`settled`, `doubted_claims`); its verdict counts only with words of the original. A question without an answer
(`open_questions`) stops nothing and costs no attempt: the rewrite is shown with it, and is archived when the critic or
a person has accepted it.
Each check gives its reason in words. A person may release a text by accepting it; accepted numbers and names count as
accepted in every rewrite of the same paper.

To add a check, write a function like those below and call it in `stop_reasons`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from textwrap import shorten

from paper_assets.rewriting.faithfulness import Unsupported, claim_key, unsupported
from paper_assets.rewriting.measures import (
    CLEARLY_BETTER,
    LEAST_FIT,
    TopicFit,
    content_words,
    copied_share,
    lix,
    shared_words,
)
from paper_assets.rewriting.prompts import Critique, JudgedSentence, persona
from paper_assets.stores.rewrites import Attempt, NewItem, RewriteItem
from paper_assets.text.languages import LANGUAGES, is_in_language, language_of
from paper_assets.text.sentences import quoted_sentence, sentence_spans

_SAME_AGAIN = 0.75  # share of word triples from which a text repeats its original; docs/decisions.md
_SHORTER, _LONGER = 0.6, 1.6  # of the requested length
_OF_THE_ORIGINAL = 0.4  # share of a short abstract that is always long enough
_LETTERS_A_WORD = 1.8  # of a script without spaces
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿฀-๿]")
_FEWEST_WORDS = 40  # least number of distinct words to judge the topic
_MOST_LETTERS = 160  # of a sentence shown in a reason
_SHOWN = 5  # numbers and names shown in a reason
NOT_CHECKED = "not found in the original, not checked"

_REFUSALS = re.compile(
    r"""
    \bI(?:['’]m|\ am)\ (?:really\ |very\ |so\ )?(?:sorry|afraid|unable|not\ able)
    | \bI\ (?:can(?:no|['’])t|can\ not|won['’]t|will\ not|must\ decline|apologi[sz]e)\ ?
      (?:help|assist|comply|provide|rewrite|fulfil|do|process|write|create|generate|continue)?
    | \b(?:as|being)\ an?\ (?:AI|artificial\ intelligence|(?:large\ )?language\ model)\b
    | \b(?:please|could\ you|kindly)\ (?:provide|share|send|paste)\ (?:me\ )?(?:with\ )?the[ ]
      (?:original|abstract|text|paper)
    | \bno\ (?:abstract|text|original)\ (?:was|is|has\ been)\ (?:provided|given)
    | \b(?:es\ tut\ mir\ leid|ich\ kann\ (?:dabei\ |dir\ |Ihnen\ )*nicht)
    | \b(?:je\ suis\ désolée?|je\ ne\ peux\ pas|lo\ siento|no\ puedo\ ayudar|mi\ dispiace|sinto\ muito|desculpe)
    | 죄송(?:합니다|하지만|해요)|도와드릴\ 수\ 없|抱歉|对不起|對不起|無法協助|无法(?:协助|提供|帮助)
    | 申し訳(?:ありません|ございません)
    """,
    re.VERBOSE | re.IGNORECASE,
)
_BEGINNING = 250  # leading characters searched for a refusal


def stop_reasons(item: NewItem, text: str, *, fit: TopicFit | None = None) -> tuple[str, ...]:
    """Return why a rewrite of the item may neither pass nor be archived, unsupported claims apart; () if nothing stops
    it.

    `fit`: how well the text fits its original and others, if a model has computed it.
    """
    if reason := _nothing_visible(text):
        return (reason,)
    checks = (
        _refusal(text, item.original_text),
        _another_language(text, item.language),
        _another_length(text, item),
        _copy(text, item.original_text),
        _another_topic(text, item, fit),
        _hard_to_read(text, item),
    )
    return tuple(reason for reason in checks if reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedSentences:
    """Represent the critic's comparison. `reasons`: why the text is held back; `unchecked`: sentences without a usable
    verdict, None if no sentence has one; `disputed`: doubted claims that occur in supported sentences only.
    """

    reasons: tuple[str, ...]
    unchecked: int | None
    disputed: tuple[str, ...]


def compare_sentences(
    item: NewItem, text: str, judged: Iterable[JudgedSentence], *, doubted: Collection[str] = ()
) -> ComparedSentences:
    """Return what the critic's verdicts mean. "supported" and "changed" count only if the quoted words are in the
    original; `doubted` are the numbers and names that code did not find there.
    """
    original = f"{item.title}\n\n{item.original_text}"
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    verdicts = {each.number: each for each in judged if each.number <= len(sentences)}
    reasons, checked, supported = [], 0, []
    for number, sentence in enumerate(sentences, 1):
        each = verdicts.get(number)
        if each is None or each.verdict == "unclear":
            continue
        quoted = quoted_sentence(each.original, original)
        if each.verdict in ("supported", "changed") and quoted is None:
            continue
        checked += 1
        if each.verdict == "changed":
            reasons.append(f"changed: “{_brief(sentence)}”, where the original says “{_brief(each.original)}”")
        elif each.verdict == "invented":
            reasons.append(f"invented: “{_brief(sentence)}”{f' ({each.why})' if each.why else ''}")
        elif each.verdict == "supported":
            supported.append(sentence)
    elsewhere = " ".join(sentence for sentence in sentences if sentence not in supported)
    return ComparedSentences(
        reasons=tuple(reasons),
        unchecked=len(sentences) - checked if checked else None,
        disputed=tuple(each for each in doubted if each not in elsewhere and any(each in one for one in supported)),
    )


def answered_claims(item: NewItem, text: str, critique: Critique, doubted: Collection[str]) -> dict[str, str]:
    """Return the doubted numbers and names that the critic has answered, each with its reason in words.

    "supported" counts only with words of the original; no answer counts for a claim in a sentence that is changed or
    invented, nor if there are two different answers.
    """
    original = f"{item.title}\n\n{item.original_text}"
    sentences = [text[start:end] for start, end in sentence_spans(text)]
    wrong = " ".join(
        sentences[each.number - 1]
        for each in critique.sentences
        if each.verdict in ("changed", "invented") and each.number <= len(sentences)
    )
    reasons: dict[str, str] = {}
    for claim in doubted:
        answers = [each for each in critique.claims if claim_key(each.claim) == claim_key(claim)]
        if claim in wrong or len({each.verdict for each in answers}) != 1:
            continue
        if answers[0].verdict == "explains":
            reasons[claim] = f"“{claim}” explains, and says nothing about the paper"
        elif answers[0].verdict == "supported" and quoted_sentence(answers[0].original, original):
            reasons[claim] = f"“{claim}” stands for “{_brief(answers[0].original)}”"
    return reasons


def doubted_claims(found: Unsupported, critique: Critique, answered: Collection[str]) -> tuple[str, ...]:
    """Return the numbers and names that stop a rewrite: numbers that the original contradicts, unless the critic
    settled them, and what it finds changed or invented.
    """
    wrong = {claim_key(each.claim) for each in critique.claims if each.verdict in ("changed", "invented")}
    return tuple(
        claim for claim in found.all if claim not in answered and (claim in found.certain or claim_key(claim) in wrong)
    )


def open_questions(item: RewriteItem, attempt: Attempt) -> tuple[str, ...]:
    """Return the numbers and names that code did not find in the original and that neither the critic nor a person has
    answered. They do not stop the text, but it is not archived.
    """
    found = unsupported(f"{item.title}\n{item.original_text}", attempt.text, language=item.language)
    answered = {*attempt.unsupported, *attempt.disputed}
    return unaccepted([claim for claim in found.all if claim not in answered], item.accepted)


def not_checked(claims: Sequence[str]) -> str | None:
    """Return the sentence for open questions; None without any."""
    return f"{NOT_CHECKED}: {listed(claims)}" if claims else None


def direction_note(attempt: Attempt) -> str | None:
    """Return that the direction of some or all statements was not checked; None if all were."""
    if attempt.unchecked == 0:
        return None
    if attempt.unchecked is None:
        return "direction not checked"
    return f"direction not checked in {attempt.unchecked} sentence{'' if attempt.unchecked == 1 else 's'}"


def is_stuck(attempts: Sequence[Attempt], accepted: Collection[str] = ()) -> bool:
    """Return whether another attempt would not help the last one: it is held back for reasons for which the one before
    was held back too, or only for claims that the critic found in the original.
    """
    if not attempts or not (last := _reasons(attempts[-1], accepted)):
        return False
    if not attempts[-1].stopped and last <= set(attempts[-1].disputed):
        return True
    return len(attempts) > 1 and last <= _reasons(attempts[-2], accepted)


def _reasons(attempt: Attempt, accepted: Collection[str]) -> set[str]:
    return {*attempt.stopped, *unaccepted(attempt.unsupported, accepted)}


def _brief(words: str) -> str:
    return shorten(words, _MOST_LETTERS, placeholder=" …")


def held_back(item: RewriteItem, attempt: Attempt) -> tuple[str, ...]:
    """Return every reason that stops an attempt now, claims that were not accepted included."""
    return hold_reasons(attempt, item.accepted)


def hold_reasons(attempt: Attempt, accepted: Collection[str] = ()) -> tuple[str, ...]:
    """Return the same reasons for a given set of accepted claims."""
    return (*attempt.stopped, *claim_reason(attempt.unsupported, accepted))


def claim_reason(claims: Sequence[str], accepted: Collection[str] = ()) -> tuple[str, ...]:
    """Return the reason for claims that were not accepted; () without any."""
    left = unaccepted(claims, accepted)
    return (f"not in the original: {listed(left)}",) if left else ()


def unusable(text: str, original: str) -> tuple[str, ...]:
    """Check a text of which only the original is known: no level, title or language."""
    reason = _nothing_visible(text) or _refusal(text, original) or _copy(text, original)
    return (reason,) if reason else ()


def stopped_attempts(item: RewriteItem) -> frozenset[int]:
    """Return the attempts that the gate holds back."""
    return frozenset(attempt.attempt for attempt in item.attempts if held_back(item, attempt))


def unaccepted(claims: Sequence[str], accepted: Collection[str]) -> tuple[str, ...]:
    """Return the numbers and names that no person has accepted for the paper."""
    return tuple(claim for claim in claims if claim_key(claim) not in accepted)


def listed(claims: Sequence[str]) -> str:
    """Return the first few, and how many more there are."""
    more = f" and {len(claims) - _SHOWN} more" if len(claims) > _SHOWN else ""
    return ", ".join(claims[:_SHOWN]) + more


def length_in_words(text: str) -> int:
    """Return the number of words; in a script without spaces, letters divided by the letters per word."""
    unspaced = len(_UNSPACED.findall(text))
    return len(_UNSPACED.sub(" ", text).split()) + round(unspaced / _LETTERS_A_WORD)


def _nothing_visible(text: str) -> str | None:
    visible = sum(unicodedata.category(letter)[0] in "LN" for letter in text)
    hidden = sum(unicodedata.category(letter) in ("Cf", "Cc", "Co", "Cn") for letter in text if letter not in "\n\t")
    return "no visible text" if not visible or hidden > visible else None


def _refusal(text: str, original: str) -> str | None:
    found = _REFUSALS.search(text[:_BEGINNING])
    if found is None or _REFUSALS.search(original):  # a paper on refusals quotes them
        return None
    return f"a refusal: “{' '.join(text[found.start() : found.start() + 60].split())}”"


def _another_language(text: str, language: str) -> str | None:
    return None if is_in_language(text, language) else f"not in {LANGUAGES.get(language, language)} throughout"


def _another_length(text: str, item: NewItem) -> str | None:
    least, most = persona(item.target_level).words
    words = length_in_words(text)
    if words < min(_SHORTER * least, _OF_THE_ORIGINAL * length_in_words(item.original_text)) or words > _LONGER * most:
        return f"{words} words, where {least} to {most} were asked for"
    return None


def _copy(text: str, original: str) -> str | None:
    share = copied_share(text, original, original="")
    if share < _SAME_AGAIN:
        return None
    return f"the original over again: {100 * share:.0f} % of its word triples are in it"


def _another_topic(text: str, item: NewItem, fit: TopicFit | None) -> str | None:
    """Compare words and meaning, if both texts are of one language and the text is long enough."""
    if len(content_words(text)) < _FEWEST_WORDS or language_of(item.original_text) != item.language:
        return None
    share = shared_words(text, f"{item.title} {item.original_text}")
    if share < persona(item.target_level).shared_words:
        return f"about something else: {100 * share:.0f} % of its words are in the original"
    if fit is None:
        return None
    own, least = fit.own, LEAST_FIT[item.target_level]
    if own < least:
        return f"about something else: its similarity to the original is {own:.2f}, less than {least}"
    name, best = max(fit.others.items(), key=lambda fit: fit[1], default=("", 0.0))
    if best > own + CLEARLY_BETTER:
        return (
            f"about something else: it is more like the original of {name} ({best:.2f}) than like its own ({own:.2f})"
        )
    return None


def _hard_to_read(text: str, item: NewItem) -> str | None:
    measured, most = lix(text, language=item.language), persona(item.target_level).lix
    if measured is None or most is None or measured <= most:
        return None
    return f"hard to read: LIX {measured:.0f}, for this reader at most {most}"
