"""Store answers of language models by content, so that an equal question is not paid for again (SPEC I5, G5)."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from paper_assets.errors import StoreError
from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True)
class StoredAnswers:
    """Cache the answers of `models.llm.LanguageModel` in the warehouse; `again`: only store, and replace."""

    warehouse: Warehouse
    again: bool = False

    def get(self, key: str) -> str | None:
        """Return the answer stored for `key`, as JSON text."""
        return None if self.again else known_answers(self.warehouse, [key]).get(key)

    def put(self, key: str, answer: str, *, model: str, input_tokens: int, output_tokens: int) -> None:
        """Store one answer and its tokens; one that cannot be stored is still used."""
        tokens = {"input_tokens": input_tokens, "output_tokens": output_tokens}
        with suppress(StoreError):
            keep_answers(self.warehouse, {key: answer}, model=model, **tokens)


def known_answers(warehouse: Warehouse, keys: Iterable[str]) -> dict[str, str]:
    """Return the stored answers among `keys`, in one unit of work."""
    distinct = sorted(set(keys))
    if not distinct:
        return {}
    rows = warehouse.rows("select key, answer from llm_answers where key in (select unnest($keys))", {"keys": distinct})
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
    warehouse.run(
        """
        insert or replace into llm_answers
        select unnest($keys), $model, unnest($answers), $input_tokens, $output_tokens
        """,
        {
            "keys": list(answers),
            "answers": list(answers.values()),
            "model": model,
            "input_tokens": input_tokens,
            "output_tokens": output_tokens,
        },
    )


def forget_answers(warehouse: Warehouse, *, model: str | None = None) -> int:
    """Remove the answers of a model (None: of all), and return their number."""
    return warehouse.run("delete from llm_answers where $model is null or model = $model", {"model": model})
