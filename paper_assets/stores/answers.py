"""Store answers: of language models, of Semantic Scholar, and those to questions that a reader keeps.

Answers of language models are stored by content, so that an equal question is not paid for again (SPEC I5, G5), with
the sums of LLM use. What Semantic Scholar reports about papers (S4) is stored so that an outage of it changes nothing.
Answers that a reader keeps can be read, exported and asked again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

import pyarrow as pa

from paper_assets.paper import Paper
from paper_assets.stores.warehouse import Warehouse, read_time, stored_time


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Cache the answers of `models.llm.LanguageModel` in the warehouse."""

    warehouse: Warehouse

    def get(self, key: str) -> str | None:
        """Return the answer stored for `key`, as JSON text."""
        return known_answers(self.warehouse, [key]).get(key)

    def put(self, key: str, answer: str, *, model: str, input_tokens: int, output_tokens: int) -> None:
        """Store one answer and its tokens."""
        keep_answers(self.warehouse, {key: answer}, model=model, input_tokens=input_tokens, output_tokens=output_tokens)


def known_answers(warehouse: Warehouse, keys: Iterable[str]) -> dict[str, str]:
    """Return the stored answers among `keys`, in one unit of work."""
    distinct = sorted(set(keys))
    if not distinct:
        return {}
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select key, answer from llm_answers where key in (select unnest($keys))", {"keys": distinct}
        ).fetchall()
    return dict(rows)


def keep_answers(
    warehouse: Warehouse,
    answers: Mapping[str, str],
    *,
    model: str,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
) -> None:
    """Store answers (JSON text by key) in one transaction. Tokens are those of the whole call, so pass them for one
    answer only.
    """
    if not answers:
        return
    with warehouse.writing() as connection:
        connection.execute(
            """
            insert into llm_answers
            select unnest($keys), $model, unnest($answers), $input_tokens, $output_tokens
            on conflict do nothing
            """,
            {
                "keys": list(answers),
                "answers": list(answers.values()),
                "model": model,
                "input_tokens": input_tokens,
                "output_tokens": output_tokens,
            },
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScholarRecord:
    """Represent what is known of one paper; None and empty are unknown."""

    paper_id: str
    affiliations: tuple[str, ...] = ()
    github_url: str | None = None
    citation_count: int | None = None


def keep_records(warehouse: Warehouse, records: Iterable[ScholarRecord]) -> dict[str, ScholarRecord]:
    """Store what is new, by paper id; unknown values never replace known ones. Returns what is known now."""
    incoming = {record.paper_id: record for record in records}
    before = records_of(warehouse, list(incoming))
    known = {paper_id: _joined(before.get(paper_id), record) for paper_id, record in incoming.items()}
    changed = [record for paper_id, record in known.items() if record != before.get(paper_id)]
    if changed:
        with warehouse.writing() as connection:
            connection.execute(
                "delete from scholar_records where paper_id in (select unnest($ids))",
                {"ids": [record.paper_id for record in changed]},
            )
            connection.register("changed", _table(changed))
            connection.execute("insert into scholar_records by name from changed")
    return known


def records_of(warehouse: Warehouse, paper_ids: Sequence[str]) -> dict[str, ScholarRecord]:
    """Return what is known of these papers, by id; unknown papers are omitted."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select paper_id, affiliations, github_url, citation_count
            from scholar_records
            where paper_id in (select unnest($ids))
            """,
            {"ids": list(paper_ids)},
        ).fetchall()
    return {
        row[0]: ScholarRecord(paper_id=row[0], affiliations=tuple(row[1]), github_url=row[2], citation_count=row[3])
        for row in rows
    }


def filled(papers: Iterable[Paper], known: Mapping[str, ScholarRecord]) -> list[Paper]:
    """Fill in affiliations and code of papers where arXiv has none; arXiv's values are kept."""
    return [_filled(paper, known[paper.paper_id]) if paper.paper_id in known else paper for paper in papers]


def _filled(paper: Paper, record: ScholarRecord) -> Paper:
    return replace(
        paper,
        affiliations=paper.affiliations or record.affiliations,
        github_url=paper.github_url or record.github_url,
    )


def _joined(before: ScholarRecord | None, now: ScholarRecord) -> ScholarRecord:
    if before is None:
        return now
    return ScholarRecord(
        paper_id=now.paper_id,
        affiliations=now.affiliations or before.affiliations,
        github_url=now.github_url or before.github_url,
        citation_count=before.citation_count if now.citation_count is None else now.citation_count,
    )


def _table(records: Sequence[ScholarRecord]) -> pa.Table:
    kinds = {"affiliations": pa.list_(pa.string()), "citation_count": pa.int64()}
    names = [field.name for field in fields(ScholarRecord)]
    return pa.table(
        {name: pa.array([getattr(each, name) for each in records], kinds.get(name, pa.string())) for name in names}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptAnswer:
    """An answer as it was kept: `options` and `answer` hold JSON values."""

    number: int
    question: str
    asked_at: datetime
    options: Mapping[str, Any]
    answer: Mapping[str, Any]


def keep_answer(
    warehouse: Warehouse, question: str, *, options: Mapping[str, Any], answer: Mapping[str, Any], now: datetime
) -> int:
    """Store an answer and return its number. Raises StoreError."""
    with warehouse.writing() as connection:
        [(number,)] = connection.execute("select coalesce(max(number), 0) + 1 from kept_answers").fetchall()
        connection.execute(
            "insert into kept_answers values ($number, $question, $asked_at, $options, $answer)",
            {
                "number": number,
                "question": question,
                "asked_at": stored_time(now),
                "options": json.dumps(dict(options), ensure_ascii=False),
                "answer": json.dumps(dict(answer), ensure_ascii=False),
            },
        )
    return int(number)


def kept_answers(warehouse: Warehouse, number: int | None = None) -> list[KeptAnswer]:
    """Return the kept answers, oldest first, or the one with a number. Raises StoreError."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select number, question, asked_at, options, answer from kept_answers "
            "where $number is null or number = $number order by number",
            {"number": number},
        ).fetchall()
    return [
        KeptAnswer(
            number=found,
            question=question,
            asked_at=read_time(asked_at),
            options=json.loads(options),
            answer=json.loads(answer),
        )
        for found, question, asked_at, options, answer in rows
    ]


def remove_answer(warehouse: Warehouse, number: int) -> bool:
    """Delete a kept answer; returns whether there was one. Raises StoreError."""
    with warehouse.writing() as connection:
        removed = connection.execute(
            "delete from kept_answers where number = $number returning number", {"number": number}
        ).fetchall()
    return bool(removed)
