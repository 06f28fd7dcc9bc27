"""Answer a question from stored abstracts and full texts, every sentence with a quotation that its source contains.

The steps: gather passages by the search, judge each for the question, write the answer from the best ones, verify. A
language model judges and writes; what it writes counts only where each citation quotes words of the passage it names.
Without a model the answer is extractive: the sentences that fit best, quoted, by paper.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from paper_assets.errors import InvalidInput, LLMError
from paper_assets.models.embedder import Embedder
from paper_assets.retrieval.answering_sentences import ANSWERS, Quotable, answer_scores
from paper_assets.retrieval.cited_answer import Answer, Citation, Sentence
from paper_assets.retrieval.merge import Candidate
from paper_assets.retrieval.search import Corpus, search
from paper_assets.retrieval.stance import STANCES, StanceJudge
from paper_assets.retrieval.stance import Passage as StancePassage
from paper_assets.stores.documents import DataType, Where
from paper_assets.text.abstracts import likely_parts
from paper_assets.text.cleaning import introduced
from paper_assets.text.languages import language_of
from paper_assets.text.prompts import AskModel, by_number, closed_object, numbered_entries, prompt
from paper_assets.text.sentences import quoted_sentence, sentence_spans, without_headings
from paper_assets.text.support import Probabilities, Statement, check, longest_questions, settled, similarities_of
from paper_assets.text.words import words_in

GATHERED = 24  # passages that are judged
WRITTEN_FROM = 8  # the most passages from which the answer is written
EXTRACTED = 5  # papers quoted by an extractive answer
LONGEST_QUESTION = 2_000  # characters
_MOST_OF_PAPER = 3  # passages of one paper that are judged
_JUDGED_AT_ONCE = 12  # passages in one question to the model
_MOST_CHARACTERS = 2_400  # of a passage that are shown
_USEFUL = 4  # relevance from 0 to 10 from which a passage may be used
_SHORTEST_QUOTE = 15  # characters; a shorter one proves nothing
_NEAREST = 3  # sentences quoted where none answers
MOST_SENTENCES, _LONGEST_SENTENCE, _MOST_CITATIONS = 12, 500, 2  # of an answer, characters, of a sentence

_TEXT = {"type": "string", "maxLength": _LONGEST_SENTENCE}
_CITATIONS_SHAPE = {
    "type": "array",
    "maxItems": _MOST_CITATIONS,
    "items": closed_object({"number": {"type": "integer"}, "quote": _TEXT}),
}
_SENTENCES_SHAPE = {
    "type": "array",
    "maxItems": MOST_SENTENCES,
    "items": closed_object({"text": _TEXT, "citations": _CITATIONS_SHAPE}),
}


class WrittenAnswer(BaseModel):
    """The shape asked of the model for writing; sentences are checked one by one."""

    answered: bool
    sentences: Annotated[list[Any], WithJsonSchema(_SENTENCES_SHAPE)] = Field(default_factory=list)


def gather_passages(
    corpus: Corpus,
    question: str,
    *,
    where: Where,
    data_types: Sequence[DataType] = ("abstract", "fulltext"),
) -> list[Candidate]:
    """Return the passages that fit a question best, best first, at most `_MOST_OF_PAPER` of one paper.

    `where` must contain the access rule (`merge.access`). Raises InvalidInput (empty or too long question), StoreError.
    """
    if not words_in(question) or len(question) > LONGEST_QUESTION:
        raise InvalidInput(f"a question needs words, at most {LONGEST_QUESTION:,} characters; got {question[:60]!r}")
    found: list[Candidate] = []
    for data_type in data_types:
        result = search(corpus, question, data_type=data_type, where=where, k=GATHERED)
        floor = corpus.config.floors[result.method]
        found.extend(each for each in result.candidates if each.score >= floor)
    kept: list[Candidate] = []
    of_paper: dict[str, int] = {}
    for candidate in sorted(found, key=lambda each: (-each.score, each.doc_id)):
        if of_paper.get(candidate.source_id, 0) < _MOST_OF_PAPER:
            of_paper[candidate.source_id] = of_paper.get(candidate.source_id, 0) + 1
            kept.append(candidate)
    return kept[:GATHERED]


def questions_of(question: str, passages: Sequence[Candidate], *, sides: bool) -> list[tuple[str, type[BaseModel]]]:
    """Return every prompt that `written_answer` may send for these passages, or a longer one, with its schema."""
    batches = [passages[start : start + _JUDGED_AT_ONCE] for start in range(0, len(passages), _JUDGED_AT_ONCE)]
    written = list(passages)[:WRITTEN_FROM]
    asked = [
        (prompt("judge_passages") + _judge_prompt(question, each), _relevance_shape(len(each))) for each in batches
    ]
    parts = 2 if sides else 1
    asked += [(prompt("write_answer") + _write_prompt(question, written, None), WrittenAnswer)] * parts
    if sides and written:  # one question holds more passages than an answer is written from
        shape = numbered_entries("labels", len(written), stance=STANCES, sentence="string")
        asked.append((prompt("stance") + "".join(each.content for each in written), shape))
    return asked + longest_questions(MOST_SENTENCES * parts)


def written_answer(
    question: str,
    passages: Sequence[Candidate],
    *,
    ask: AskModel,
    embedder: Embedder | None,
    judge: StanceJudge | None = None,
    nli: Probabilities | None = None,
    progress: Callable[[str], None] = lambda step: None,
) -> Answer:
    """Let the model judge the passages and write the answer; with `judge`, one part for each stance.

    Every sentence without a verified citation, or that its citation does not support, is dropped and counted; `nli`
    decides the doubtful ones instead of the model. Where the model fails, the answer is extractive and a note gives the
    reason. Where it finds no answer, the nearest sentences are quoted. Private passages are not shown to the model.
    """
    notes: list[str] = []
    shown = [each for each in passages if each.metadata.get("access_level") == "public"]
    if len(shown) < len(passages):
        notes.append(f"{len(passages) - len(shown)} private passages were not shown to the language model")
    model = None
    try:
        scores: dict[str, int] = {}
        for start in range(0, len(shown), _JUDGED_AT_ONCE):
            batch = shown[start : start + _JUDGED_AT_ONCE]
            progress(f"judging passages {start + 1} to {start + len(batch)} of {len(shown)}")
            judged = ask(
                system=prompt("judge_passages"),
                user=_judge_prompt(question, batch),
                schema=_relevance_shape(len(batch)),
                complaint=partial(_missing_relevances, count=len(batch)),
            )
            model = judged.model
            scores |= {
                batch[number - 1].doc_id: value for number, value in _relevances(judged.value, len(batch)).items()
            }
        if silent := len(shown) - len(scores):
            notes.append(f"the model did not judge {silent} of {len(shown)} passages; these kept their own rank")
        useful = sorted(
            (each for each in shown if scores.get(each.doc_id, _USEFUL) >= _USEFUL),
            key=lambda each: -scores.get(each.doc_id, 0),  # a passage without a verdict: after those, by its own rank
        )[:WRITTEN_FROM]
        sentences: list[Sentence] = []
        dropped = 0
        for stance, part in _sides(question, useful, judge, notes):
            if not part:
                continue
            progress("writing the answer")
            written = ask(
                system=prompt("write_answer"),
                user=_write_prompt(question, part, stance),
                schema=WrittenAnswer,
                complaint=partial(_uncited, passages=part),
            )
            model = written.model
            kept, lost = _cited(written.value, part, stance)
            sentences += kept
            dropped += lost
        progress("checking the sentences against their quotations")
        by_id = {each.doc_id: each for each in shown}
        sentences, unsupported = _supported(question, sentences, by_id, ask=ask, embedder=embedder, nli=nli)
    except LLMError as fault:
        note = f"quoted without a language model: {fault}"
        return replace(
            extractive_answer(question, passages, embedder=embedder), notes=(*notes, note), failure=str(fault)
        )
    nearest: tuple[Citation, ...] = ()
    if not sentences:
        plain = extractive_answer(question, passages, embedder=embedder)
        nearest = tuple(citation for each in plain.sentences for citation in each.citations) or plain.nearest
    return Answer(
        question=question,
        kind="written",
        sentences=tuple(sentences),
        dropped=dropped + unsupported,
        examined=len(shown),
        model=model,
        notes=tuple(notes),
        nearest=nearest,
    )


def extractive_answer(question: str, passages: Sequence[Candidate], *, embedder: Embedder | None) -> Answer:
    """Quote from each paper the sentence that answers the question best, without a language model.

    If no sentence answers it, those that are nearest are quoted as such.
    """
    spans, quotables = list[tuple[Candidate, str]](), list[Quotable]()
    for passage in passages:
        sentences = [passage.content[start:end] for start, end in sentence_spans(_sentences(passage))]
        title, is_abstract = f"{passage.metadata.get('title') or ''}", passage.metadata.get("data_type") == "abstract"
        for text, part in zip(sentences, likely_parts(sentences), strict=True):
            if len(text) >= _SHORTEST_QUOTE:
                spans.append((passage, " ".join(text.split())))
                quotables.append(Quotable(text, title, part if is_abstract else ""))
    best: dict[str, tuple[float, Candidate, str]] = {}
    for (candidate, text), score in zip(spans, answer_scores(question, quotables, embedder).tolist(), strict=True):
        held = best.get(candidate.source_id)
        if held is None or score > held[0]:
            best[candidate.source_id] = (score, candidate, text)
    ranked = sorted(best.values(), key=lambda found: (-found[0], found[1].doc_id))[:EXTRACTED]
    answers = [found for found in ranked if found[0] >= ANSWERS]
    return Answer(
        question=question,
        kind="extractive",
        sentences=tuple(Sentence(text=text, citations=(_citation(candidate, text),)) for _, candidate, text in answers),
        dropped=0,
        examined=len(passages),
        model=None,
        nearest=() if answers else tuple(_citation(candidate, text) for _, candidate, text in ranked[:_NEAREST]),
    )


def _body(candidate: Candidate) -> str:
    """Return the text to quote from: of an abstract without its title, as spaces so that positions stay the same."""
    title = f"{candidate.metadata.get('title') or ''}"
    if candidate.metadata.get("data_type") == "abstract" and title and candidate.content.startswith(title):
        return " " * len(title) + candidate.content[len(title) :]
    return candidate.content


def _sentences(candidate: Candidate) -> str:
    """Return the text whose sentences may be quoted: a full text without its headings, as spaces."""
    text = _body(candidate)
    return without_headings(text) if candidate.metadata.get("data_type") == "fulltext" else text


def _listed(passages: Sequence[Candidate]) -> str:
    return "\n".join(
        json.dumps(
            {"number": number, "title": each.metadata.get("title"), "text": _shown_text(each)}, ensure_ascii=False
        )
        for number, each in enumerate(passages, 1)
    )


def _shown_text(candidate: Candidate) -> str:
    return " ".join(_body(candidate).split())[:_MOST_CHARACTERS]


def _judge_prompt(question: str, passages: Sequence[Candidate]) -> str:
    return (
        f"Question: {json.dumps(question, ensure_ascii=False)}\n\n"
        f"{introduced('Passages, one JSON object on each line', 'passages', _listed(passages))}\n\n"
        f"Give the relevance of each of these {len(passages)} passages."
    )


def _write_prompt(question: str, passages: Sequence[Candidate], stance: str | None) -> str:
    side = f'\nReport only what {stance} the answer "yes".' if stance else ""
    return (
        f"Question: {json.dumps(question, ensure_ascii=False)}{side}\n\n"
        f"{introduced('Passages, one JSON object on each line', 'passages', _listed(passages))}"
    )


def _relevance_shape(count: int) -> type[BaseModel]:
    return numbered_entries("passages", count, relevance="integer")


def _relevances(given: BaseModel, count: int) -> dict[int, int]:
    """Return by number the relevance that the model gave, where it is from 0 to 10."""
    entries = by_number(getattr(given, "passages", ()), count)
    values = {number: entry.get("relevance") for number, entry in entries.items()}
    return {
        number: value
        for number, value in values.items()
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10
    }


def _missing_relevances(given: BaseModel, count: int) -> str | None:
    missing = sorted(set(range(1, count + 1)) - set(_relevances(given, count)))
    return f"a relevance from 0 to 10 is missing for the passages {', '.join(map(str, missing))}" if missing else None


def _sides(
    question: str, useful: Sequence[Candidate], judge: StanceJudge | None, notes: list[str]
) -> list[tuple[str | None, list[Candidate]]]:
    """Return the passages to write from: all together, or separated by the stance that `judge` gives them."""
    if judge is None:
        return [(None, list(useful))]
    labels = judge.label(question, [StancePassage(text=each.content, private=False) for each in useful])
    notes.extend(labels.reasons)
    if not any(label is not None for label in labels.labels):
        notes.append("stance could not be judged; the answer is not divided")
        return [(None, list(useful))]
    by_stance: dict[str | None, list[Candidate]] = {stance: [] for stance in STANCES}
    for candidate, label in zip(useful, labels.labels, strict=True):
        if label is not None and label.stance in by_stance:
            by_stance[label.stance].append(candidate)
    return list(by_stance.items())


def _cited(written: WrittenAnswer, passages: Sequence[Candidate], stance: str | None) -> tuple[list[Sentence], int]:
    """Return the sentences with a quote that occurs in the passage it names, and how many have none."""
    if not written.answered:
        return [], 0
    kept: list[Sentence] = []
    given = written.sentences[:MOST_SENTENCES]
    for entry in given:
        text = entry.get("text") if isinstance(entry, Mapping) else None
        named = entry.get("citations") if isinstance(entry, Mapping) else None
        if not isinstance(text, str) or not text.strip() or not isinstance(named, list):
            continue
        citations = [
            _citation(passages[number - 1], exact)
            for each in named
            for number, one in by_number([each], len(passages)).items()
            if isinstance(one.get("quote"), str)
            and (exact := verbatim(one["quote"][:_LONGEST_SENTENCE], _shown_text(passages[number - 1])))
        ][:_MOST_CITATIONS]
        if citations:
            text = " ".join(text[:_LONGEST_SENTENCE].split())
            kept.append(Sentence(text=text, citations=tuple(dict.fromkeys(citations)), stance=stance))
    return kept, len(given) - len(kept)


def _uncited(written: WrittenAnswer, passages: Sequence[Candidate]) -> str | None:
    kept, dropped = _cited(written, passages, None)
    if dropped and not kept:
        return "no quote occurs word for word in the passage whose number is beside it"
    return None


def _supported(
    question: str,
    sentences: Sequence[Sentence],
    passages: Mapping[str, Candidate],
    *,
    ask: AskModel,
    embedder: Embedder | None,
    nli: Probabilities | None,
) -> tuple[list[Sentence], int]:
    """Return the sentences that their quotations support or that could not be checked, and how many are dropped."""
    statements = [
        Statement(
            text=each.text,
            cited=" ".join(citation.quote for citation in each.citations),
            source="\n".join(
                [question, *(f"{one.title}\n{_shown_text(passages[one.doc_id])}" for one in each.citations)]
            ),
        )
        for each in sentences
    ]
    checked = check(statements, similarities_of(embedder), language=language_of(question) or "en")
    outcomes = settled(statements, checked, ask=ask, nli=nli)
    kept = [
        replace(sentence, checked=outcome == "supported")
        for sentence, outcome in zip(sentences, outcomes, strict=True)
        if outcome != "dropped"
    ]
    return kept, len(sentences) - len(kept)


def verbatim(quote: str, text: str) -> str | None:
    """Return the quoted words as the text has them; None if they are not there, or too few to prove anything."""
    if quoted_sentence(quote, text) is None or len(quote.strip()) < _SHORTEST_QUOTE:
        return None
    wanted = " ".join(quote.split()).strip(" \"'“”‘’.…")
    at = text.casefold().find(wanted.casefold())
    if at >= 0 and len(text.casefold()) == len(text):
        return text[at : at + len(wanted)]
    return quoted_sentence(quote, text)  # other dashes or quotation marks: the whole sentence, as it is written


def _citation(candidate: Candidate, quote: str) -> Citation:
    return Citation(
        paper_id=str(candidate.metadata.get("paper_id") or candidate.source_id),
        title=str(candidate.metadata.get("title") or ""),
        doc_id=candidate.doc_id,
        quote=quote,
    )
