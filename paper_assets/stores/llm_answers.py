"""The table of LLM answers by content: what was asked once is not asked, or paid for, again (SPEC I5, G5).

The first answer kept for a key stays, so that two processes that asked at once go on with the same one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """The warehouse as the cache of `models.llm.ask`."""

    warehouse: Warehouse

    def get(self, key: str) -> str | None:
        """The answer kept for `key`, as JSON text."""
        return known_answers(self.warehouse, [key]).get(key)

    def put(self, key: str, answer: str, *, model: str, input_tokens: int, output_tokens: int) -> None:
        """Keep one answer and what it took."""
        keep_answers(self.warehouse, {key: answer}, model=model, input_tokens=input_tokens, output_tokens=output_tokens)


def known_answers(warehouse: Warehouse, keys: Iterable[str]) -> dict[str, str]:
    """The kept answers among `keys`, in one unit of work."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    with warehouse.reading() as connection:
        rows = connection.execute(
            "select key, answer from llm_answers where key in (select unnest($keys))", {"keys": wanted}
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
    """Keep answers (JSON text by key) in one transaction. Tokens are of the whole call, so give them for one answer."""
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
