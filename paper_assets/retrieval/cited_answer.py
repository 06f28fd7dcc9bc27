"""An answer with a citation for every sentence: its parts, its JSON values, its footnotes, and what changed since.

Written by `question_answering.py`, shown by the page, the digest, the command line and MCP.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from paper_assets.text.numbers import NOTHING_PAID, cost_in_words, count_of

UNANSWERED = "The stored papers do not answer this."
NEAREST = "The nearest sentences that were found; none answers the question for certain:"
NOT_CHECKED = "The model's words, not checked"
SIDES_IN_WORDS: Mapping[str | None, str] = {"supports": "For", "contradicts": "Against", None: ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """A quotation: `quote` occurs verbatim (white space and kinds of quotation marks aside) in the named document."""

    paper_id: str
    title: str
    doc_id: str
    quote: str
    section: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A sentence of the answer with its citations, at least one; `stance` if for and against are separate.

    `checked`: its quotations support it. Otherwise it is shown below them, as words of the model (`NOT_CHECKED`).
    """

    text: str
    citations: tuple[Citation, ...]
    stance: str | None = None
    checked: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer; `sentences` is empty where the stored papers do not answer.

    `dropped` sentences of the model had no quotation of their source, or one that does not support them. `examined`
    passages were judged. `calls`, tokens and `cost` (at the configured prices) are what was paid for this answer:
    nothing for earlier questions. `nearest` quotes what fits the question best where a model found no answer.
    `failure`: why the model gave no answer, so that it is extractive; it is also one of the notes, and no part of the
    JSON values.
    """

    question: str
    kind: Literal["written", "extractive"]
    sentences: tuple[Sentence, ...]
    dropped: int
    examined: int
    model: str | None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    notes: tuple[str, ...] = ()
    nearest: tuple[Citation, ...] = ()
    failure: str | None = None

    @property
    def answered(self) -> bool:
        """Whether the stored papers answer the question."""
        return bool(self.sentences)


def answer_record(answer: Answer) -> dict[str, Any]:
    """Return the answer as JSON values, the same for the command line, the page and MCP."""
    record = {**asdict(answer), "answered": answer.answered}
    for citation in (*record["nearest"], *(each for sentence in record["sentences"] for each in sentence["citations"])):
        del citation["doc_id"]
    del record["failure"]
    counts = {"dropped_sentences": record.pop("dropped"), "examined_passages": record.pop("examined")}
    return {**record, **counts}


def answer_from_record(record: Mapping[str, Any]) -> Answer:
    """Return the answer that `answer_record` gave as JSON values."""
    sentences = (Sentence(**{**each, "citations": _citations(each["citations"])}) for each in record["sentences"])
    known = {field.name for field in fields(Answer)}
    read = {
        **{name: value for name, value in record.items() if name in known},
        "sentences": tuple(sentences),
        "dropped": record["dropped_sentences"],
        "examined": record["examined_passages"],
        "notes": tuple(record["notes"]),
        "nearest": _citations(record.get("nearest", ())),
    }
    return Answer(**read)


def _citations(records: Iterable[Mapping[str, Any]]) -> tuple[Citation, ...]:
    return tuple(Citation(**each, doc_id="") for each in records)


def cited_papers(answer: Answer) -> dict[str, str]:
    """Return the titles of the cited papers by id, in the order of the answer."""
    return {each.paper_id: each.title for sentence in answer.sentences for each in sentence.citations}


def dropped_in_words(answer: Answer) -> str | None:
    """Say how many sentences of the model were left out and why; None if none was."""
    if not answer.dropped:
        return None
    return f"{count_of(answer.dropped, 'sentence')} left out: not supported by a quotation"


def paid_in_words(answer: Answer) -> str:
    """Say what was paid for an answer."""
    tokens = answer.input_tokens + answer.output_tokens
    return cost_in_words(answer.calls, tokens, answer.cost) if answer.calls else NOTHING_PAID


@dataclass(frozen=True, slots=True, kw_only=True)
class Footnote(Citation):
    """A quotation of an answer, numbered from 1."""

    number: int


@dataclass(frozen=True, slots=True)
class NumberedSentence:
    """A sentence with its footnotes; one that was not checked is listed below the quotation of its first."""

    text: str
    notes: tuple[Footnote, ...]
    checked: bool = True


@dataclass(frozen=True, slots=True)
class NumberedAnswer:
    """An answer as a reader sees it: its sentences by side (the side is empty without sides), all footnotes, and the
    nearest sentences where there is no answer.
    """

    answer: Answer
    sides: tuple[tuple[str, tuple[NumberedSentence, ...]], ...]
    footnotes: tuple[Footnote, ...]
    nearest: tuple[Footnote, ...]


def numbered(answer: Answer) -> NumberedAnswer:
    """Number the quotations of an answer; the same words of the same paper are one footnote."""
    known: dict[tuple[str, str], Footnote] = {}
    sides: dict[str, list[NumberedSentence]] = {}
    for sentence in answer.sentences:
        notes = [
            known.setdefault((each.paper_id, each.quote), Footnote(number=len(known) + 1, **asdict(each)))
            for each in sentence.citations
        ]
        side = SIDES_IN_WORDS.get(sentence.stance, f"{sentence.stance}")
        unique = tuple(dict.fromkeys(notes))
        sides.setdefault(side, []).append(NumberedSentence(sentence.text, unique, sentence.checked))
    return NumberedAnswer(
        answer=answer,
        sides=tuple((side, tuple(sentences)) for side, sentences in sides.items()),
        footnotes=tuple(known.values()),
        nearest=tuple(Footnote(number=number, **asdict(each)) for number, each in enumerate(answer.nearest, 1)),
    )
