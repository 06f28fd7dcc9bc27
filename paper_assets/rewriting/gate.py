"""Hold back rewrites for reasons that no score overrules (B2): between critic and pass, and before the archive. Pure.

Code stops language, length, a refusal, a copy, readability, another text; such a text is sent to no critic. Whether a
sentence says what the original says is asked apart from the writing (`check_sentences`, the checker of
`text/support.py`), with the original's words that code finds nearest. Numbers and names that the original lacks are
questions, answered with the sentence they are in. A question without an answer (`open_questions`) stops nothing and
costs no attempt: the rewrite is shown with it, and is archived when a person has accepted it.
Each check gives its reason in words. A person may release a text by accepting it; accepted numbers and names count as
accepted in every rewrite of the same paper.

To add a check, write a function like those below and call it in `stop_reasons`.
"""

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from textwrap import shorten

from paper_assets.rewriting.measures import (
    CLEARLY_BETTER,
    LEAST_FIT,
    TopicFit,
    content_words,
    copied_share,
    lix,
    shared_words,
)
from paper_assets.rewriting.prompts import persona
from paper_assets.stores.rewrites import Attempt, NewItem, RewriteItem
from paper_assets.text.languages import LANGUAGES, is_in_language, language_of
from paper_assets.text.numbers import count_of
from paper_assets.text.prompts import AskModel
from paper_assets.text.sentences import sentence_spans
from paper_assets.text.support import (
    Probabilities,
    Similarities,
    Statement,
    check,
    evidence,
    missing,
    settled,
)

_SAME_AGAIN = 0.75  # share of word triples from which a text repeats its original; docs/decisions.md
_SHORTER, _LONGER = 0.6, 1.6  # of the requested length
_WORDS_A_SENTENCE = 12
_OF_THE_ORIGINAL = 0.4  # share of a short abstract that is always long enough
_LETTERS_A_WORD = 1.8  # of a script without spaces
_UNSPACED = re.compile(r"[぀-ヿ㐀-鿿฀-๿]")
_FEWEST_WORDS = 40  # least number of distinct words to judge the topic
_MOST_LETTERS = 160  # of a sentence shown in a reason
_SHOWN = 5  # numbers and names shown in a reason
NOT_CHECKED = "not checked against the original"

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


def most_asked(level: str) -> int:
    """Return the most sentences of a rewrite that a model checks: the number in the longest text that is accepted."""
    return round(_LONGER * persona(level).words[1] / _WORDS_A_SENTENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedSentences:
    """Represent the check of a rewrite's sentences.

    Of the sentences whose numbers and names are all in the original, `dropped` ones are not supported and `unchecked`
    ones could not be judged. `reasons`: why the text is held back; `wrong` and `answered`: numbers and names that
    the original lacks, in sentences that are not supported and in supported ones.
    """

    reasons: tuple[str, ...]
    dropped: int
    unchecked: int
    wrong: tuple[str, ...]
    answered: tuple[str, ...]


def check_sentences(
    item: NewItem,
    text: str,
    *,
    similarities: Similarities | None,
    ask: AskModel | None,
    nli: Probabilities | None = None,
) -> CheckedSentences:
    """Compare each sentence with the words of the original that are nearest, and ask about the doubtful ones."""
    source = f"{item.title}.\n\n{item.original_text}"
    sentences = [" ".join(text[start:end].split()) for start, end in sentence_spans(text)]
    # Words of two languages are not alike, and a model of one language compares neither.
    compared = similarities if item.language == language_of(item.original_text) == "en" else None
    cited = evidence(sentences, source, compared) if compared else [source] * len(sentences)
    statements = [
        Statement(text=each, cited=words, source=source) for each, words in zip(sentences, cited, strict=True)
    ]
    checked = check(statements, compared, language=item.language, retelling=True)
    most = most_asked(item.target_level)
    outcomes = settled(statements, checked, ask=ask, nli=nli, retelling=True, most=most)
    claims: dict[str, set[str]] = {"supported": set(), "unchecked": set(), "dropped": set()}
    for sentence, outcome in zip(sentences, outcomes, strict=True):
        claims[outcome].update(missing(sentence, source))
    dropped = [
        each
        for each, outcome in zip(sentences, outcomes, strict=True)
        if outcome == "dropped" and not missing(each, source)
    ]
    return CheckedSentences(
        reasons=tuple(f"the original does not say: “{_brief(each)}”" for each in dropped),
        dropped=len(dropped),
        unchecked=sum(
            outcome == "unchecked" and not missing(sentence, source)
            for sentence, outcome in zip(sentences, outcomes, strict=True)
        ),
        wrong=tuple(sorted(claims["dropped"])),
        answered=tuple(sorted(claims["supported"] - claims["dropped"] - claims["unchecked"])),
    )


def claim_key(claim: str) -> str:
    """Return the form in which accepted numbers and names are compared."""
    return " ".join(claim.casefold().split())


def open_questions(item: RewriteItem, attempt: Attempt) -> tuple[str, ...]:
    """Return the numbers and names that code did not find in the original and that neither a model nor a person has
    answered. They do not stop the text, but it is not archived.
    """
    found = dict.fromkeys(missing(attempt.text, f"{item.title}\n{item.original_text}"))
    answered = {*attempt.unsupported, *attempt.disputed}
    return unaccepted([claim for claim in found if claim not in answered], item.accepted)


def unsettled(item: RewriteItem, attempt: Attempt) -> str | None:
    """Return what was neither checked against the original nor accepted by a person: sentences, numbers, names."""
    if item.decisions.get(attempt.attempt) == "accept":
        return None
    count = attempt.unchecked
    sentences = ["all sentences"] if count is None else [count_of(count, "sentence")] if count else []
    return unsettled_in_words([*sentences, *open_questions(item, attempt)])


def unsettled_in_words(left: Sequence[str]) -> str | None:
    """Return the sentence for what was not checked; None if nothing is left."""
    return f"{NOT_CHECKED}: {listed(left)}" if left else None


def is_stuck(attempts: Sequence[Attempt], accepted: Collection[str] = (), *, passes: int) -> bool:
    """Return whether another attempt would not help the last one: the one before was held back for the same reasons.

    One that is held back only for numbers and names must have a score that `passes`.
    """
    if not attempts or not (last := _reasons(attempts[-1], accepted)):
        return False
    if not attempts[-1].stopped and attempts[-1].score < passes:
        return False
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
    left = unaccepted(attempt.unsupported, accepted)
    return (*attempt.stopped, *([f"not in the original: {listed(left)}"] if left else []))


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
