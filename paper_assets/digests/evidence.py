"""Show the stored answers to a profile's questions (R3): all sides in the same form, gaps named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from paper_assets.digests.plain_text import in_words, lead, web_address
from paper_assets.retrieval.answers import stance_in_words
from paper_assets.retrieval.cited_answer import (
    NEAREST,
    NOT_CHECKED,
    UNANSWERED,
    Footnote,
    NumberedSentence,
    answer_from_record,
    dropped_in_words,
    numbered,
)
from paper_assets.sources.table import page_of
from paper_assets.text.cleaning import one_line
from paper_assets.text.numbers import count_of
from paper_assets.text.tex import MathText, hold_formulas, release_formulas

_PASSAGE = 420  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageEntry:
    """One document of a side.

    `about`: id and day, as far as known. `text`: None if only links were requested. `quote`: the sentence on which the
    document's stance was judged. Nothing of a private document is shown except that it is private.
    """

    title: str
    url: str | None
    about: str
    text: str | None
    quote: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SideEntry:
    """One side with its documents, best first; `gap`: why there are fewer than requested, or what failed."""

    name: str
    passages: tuple[PassageEntry, ...]
    gap: str | None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotation:
    """A numbered quotation of an answer, verbatim, with the paper it is from; `about`: its id and section."""

    number: int
    quote: str
    title: str
    url: str | None
    about: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerSentence:
    """A sentence of an answer with the numbers of its quotations."""

    text: str
    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerEntry:
    """An answer in sentences by side (one without a name if it is not divided), and its quotations; without a language
    model the quotations alone.

    `verdict`: that the stored papers do not answer the question; then the quotations are the nearest sentences. `by`:
    who wrote it, and how many sentences that no quotation supports were left out.
    """

    sides: tuple[tuple[str, tuple[AnswerSentence, ...]], ...]
    quotations: tuple[Quotation, ...]
    verdict: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceEntry:
    """The answer to one question: documents by side, or `written` sentences.

    `examined`: what was judged and by which model, if sides are stances.
    """

    question: str
    sides: tuple[SideEntry, ...]
    notes: tuple[str, ...]
    examined: str | None = None
    written: AnswerEntry | None = None


def evidence_of(answer: Mapping[str, Any]) -> EvidenceEntry:
    """Convert a stored answer (`retrieval.answers.answer_of`) for the page."""
    judged = answer["stance"]
    sides = tuple(_side(side, with_text=answer["generation_required"]) for side in answer["sides"])
    record = answer.get("answer")
    notes = (*answer["notes"], *(record["notes"] if record else ()))
    common = [each for each in (sides[0].warnings if sides else ()) if all(each in side.warnings for side in sides)]
    return EvidenceEntry(
        question=one_line(answer["question"]),
        sides=tuple(
            replace(side, warnings=tuple(each for each in side.warnings if each not in common)) for side in sides
        ),
        notes=(*(one_line(note) for note in notes), *common),
        examined=one_line(stance_in_words(judged)) if judged and (judged["judge"] or not common) else None,
        written=_written(record) if record else None,
    )


def _written(record: Mapping[str, Any]) -> AnswerEntry:
    answer = answer_from_record(record)
    shown = numbered(answer)
    by = f"Written by {answer.model}" if answer.kind == "written" else "Quoted without a language model"
    by += f" from {count_of(answer.examined, 'passage')}"
    if left_out := dropped_in_words(answer):
        by += f"; {left_out}"
    return AnswerEntry(
        sides=tuple((side, tuple(map(_sentence, sentences))) for side, sentences in shown.sides)
        if answer.kind == "written"
        else (),
        quotations=tuple(map(_quotation, shown.footnotes or shown.nearest)),
        verdict="" if shown.footnotes else f"{UNANSWERED} {NEAREST}" if shown.nearest else UNANSWERED,
        by=one_line(f"{by}."),
    )


def _sentence(sentence: NumberedSentence) -> AnswerSentence:
    text = sentence.text if sentence.checked else f"“{sentence.notes[0].quote}” ({NOT_CHECKED}: {sentence.text})"
    return AnswerSentence(text=MathText(one_line(text)), numbers=tuple(note.number for note in sentence.notes))


def _quotation(note: Footnote) -> Quotation:
    paper_id = one_line(note.paper_id)
    return Quotation(
        number=note.number,
        quote=MathText(one_line(note.quote)),
        title=MathText(one_line(note.title)) or paper_id,
        url=web_address(page_of(note.paper_id)),
        about=f"{paper_id}, section {one_line(note.section)}" if note.section else paper_id,
    )


def remarks_on(answers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Collect the remarks on how the answers were graded, each once."""
    sides = (side for answer in answers for side in answer["sides"])
    return tuple(
        dict.fromkeys(one_line(note) for side in sides for note in (side.get("graded") or {}).get("notes", ()))
    )


def _side(side: Mapping[str, Any], *, with_text: bool) -> SideEntry:
    best: dict[str, str] = {}
    for chunk in (side.get("graded") or {}).get("chunks", ()):  # the best one of a document comes first
        best.setdefault(chunk["doc_id"], chunk["text"])
    gaps = [one_line(gap) for gap in (side["error"], side["shortfall"]) if gap]
    return SideEntry(
        name=one_line(side["side"] or "all"),
        passages=tuple(_passage(each, best.get(each["doc_id"]), with_text=with_text) for each in side["documents"]),
        gap="; ".join(gaps) or None,
        warnings=tuple(one_line(warning) for warning in side["warnings"]),
    )


def _passage(document: Mapping[str, Any], chunk: str | None, *, with_text: bool) -> PassageEntry:
    """Show the best chunk, otherwise the beginning. Show nothing of a private document: pages are passed on (M3)."""
    metadata = document["metadata"]
    if metadata.get("access_level") != "public":
        return PassageEntry(title="a private document", url=None, about="", text=None)
    title, paper_id = one_line(metadata.get("title") or ""), one_line(metadata.get("paper_id") or "")
    return PassageEntry(
        title=MathText(title) or paper_id or "untitled",
        url=web_address(metadata.get("url")),
        about=", ".join(each for each in (paper_id, _day(metadata.get("date_int"))) if each),
        text=_answering(one_line(document["page_content"]), one_line(chunk or ""), title) if with_text else None,
        quote=_short(one_line(document.get("sentence") or "")) or None,
    )


def _answering(whole: str, chunk: str, title: str) -> str:
    """Return the chunk as it is in the document, otherwise the beginning; without the title shown above it."""
    begins = len(title) if whole.startswith(title) else 0
    at = whole.find(chunk) if chunk else -1
    end = at + len(chunk)
    if at < 0 or end <= begins:
        return _short(whole[begins:].lstrip())
    return _short(whole[begins:end].lstrip()) if at <= begins + 1 else _short(whole[at:end], before="… ")


def _short(text: str, *, before: str = "") -> MathText:
    return MathText(f"{before}{release_formulas(lead(hold_formulas(text), _PASSAGE))}")


def _day(date_int: object) -> str:
    """Return YYYYMMDD (R4) in words; empty if it is not a day."""
    try:
        return in_words(date(date_int // 10_000, date_int // 100 % 100, date_int % 100))  # type: ignore[operator]
    except (TypeError, ValueError):
        return ""
