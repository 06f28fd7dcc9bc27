"""Balanced evidence for the profile's questions, as stored answers hold it (SPEC R3): each side alike, gaps named."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from paper_assets.digests.plain_text import clean, lead, web_address

_PASSAGE = 420  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One document of a side. `about`: id and day, as far as known; `text` is None where only links were asked for.

    Of a private document nothing is told but that it is one.
    """

    title: str
    url: str | None
    about: str
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side with its documents, best first; `gap` says why there are fewer than wanted, or what went wrong."""

    name: str
    passages: tuple[Passage, ...]
    gap: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    question: str
    sides: tuple[Side, ...]
    notes: tuple[str, ...]


def evidence_of(answer: Mapping[str, Any]) -> Evidence:
    """A stored answer (`retrieval.answers.answer_of`) as the page shows it."""
    return Evidence(
        question=clean(answer["question"]),
        sides=tuple(_side(side, with_text=answer["generation_required"]) for side in answer["sides"]),
        notes=tuple(clean(note) for note in answer["notes"]),
    )


def remarks_on(answers: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """What is worth knowing of how the answers were graded, each once."""
    sides = (side for answer in answers for side in answer["sides"])
    return tuple(dict.fromkeys(clean(note) for side in sides for note in (side.get("graded") or {}).get("notes", ())))


def _side(side: Mapping[str, Any], *, with_text: bool) -> Side:
    best: dict[str, str] = {}
    for chunk in (side.get("graded") or {}).get("chunks", ()):  # the best one of a document comes first
        best.setdefault(chunk["doc_id"], chunk["text"])
    gaps = [clean(told) for told in (side["error"], side["shortfall"]) if told]
    return Side(
        name=clean(side["side"] or "all"),
        passages=tuple(_passage(each, best.get(each["doc_id"]), with_text=with_text) for each in side["documents"]),
        gap="; ".join(gaps) or None,
    )


def _passage(document: Mapping[str, Any], chunk: str | None, *, with_text: bool) -> Passage:
    """The chunk that answers best, else the beginning. Nothing of what is private: a page is easily passed on (M3)."""
    metadata = document["metadata"]
    if metadata.get("access_level") != "public":
        return Passage(title="a private document", url=None, about="", text=None)
    title, paper_id = clean(metadata.get("title") or ""), clean(metadata.get("paper_id") or "")
    return Passage(
        title=title or paper_id or "untitled",
        url=web_address(metadata.get("url")),
        about=", ".join(each for each in (paper_id, _day(metadata.get("date_int"))) if each),
        text=_answering(clean(document["page_content"]), clean(chunk or ""), title) if with_text else None,
    )


def _answering(whole: str, chunk: str, title: str) -> str:
    """The chunk in its place in the document, else the beginning; without the title, which stands above it."""
    begins = len(title) if whole.startswith(title) else 0
    at = whole.find(chunk) if chunk else -1
    end = at + len(chunk)
    if at < 0 or end <= begins:
        return lead(whole[begins:].lstrip(), _PASSAGE)
    return lead(whole[begins:end].lstrip(), _PASSAGE) if at <= begins + 1 else f"… {lead(whole[at:end], _PASSAGE)}"


def _day(date_int: object) -> str:
    """YYYYMMDD (R4) as YYYY-MM-DD."""
    digits = str(date_int)
    return f"{digits[:4]}-{digits[4:6]}-{digits[6:]}" if isinstance(date_int, int) and len(digits) == 8 else ""
