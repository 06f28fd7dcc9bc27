"""Store LLM answers by content, so that an equal question is not paid for again (SPEC I5, G5), and sum LLM use.

The first answer stored for a key is kept, so that two processes that asked at the same time continue with the same one.
Use is counted from stored attempts of rewrites and from the checks in the headers of rankings.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Use the warehouse as the cache of `models.llm.ask`."""

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
class Use:
    """Report the tokens of one purpose; `calls` are exchanges (two per attempt of a rewrite: actor and critic)."""

    purpose: str
    calls: int
    input_tokens: int
    output_tokens: int


def use_since(warehouse: Warehouse, moment: datetime) -> list[Use]:
    """Return the use since `moment` (UTC, without zone). A recomputed ranking counts as of its last computation."""
    with warehouse.reading() as connection:
        rows = connection.execute(
            """
            select
                'rewrites' as purpose, 2 * count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0)
            from rewrite_attempts
            where made_at >= $moment
            union all
            select
                'checks of doubtful papers',
                coalesce(sum((header ->> '$.llm_calls_made')::integer), 0),
                coalesce(sum((header ->> '$.llm_input_tokens')::bigint), 0),
                coalesce(sum((header ->> '$.llm_output_tokens')::bigint), 0)
            from ranking_sets
            where (header ->> '$.generated_at') >= $text
            """,
            {"moment": moment, "text": moment.isoformat()},
        ).fetchall()
    return [
        Use(purpose=purpose, calls=int(calls), input_tokens=int(came), output_tokens=int(went))
        for purpose, calls, came, went in rows
    ]
