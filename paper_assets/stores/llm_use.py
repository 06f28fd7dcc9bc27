"""What the language model took, as the stores know it: rewrites by their attempts, checks by the rankings' headers."""

from dataclasses import dataclass
from datetime import datetime

from paper_assets.stores.warehouse import Warehouse


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Tokens of one purpose; `calls` are exchanges (two an attempt of a rewrite: actor and critic)."""

    purpose: str
    calls: int
    input_tokens: int
    output_tokens: int


def use_since(warehouse: Warehouse, moment: datetime) -> list[Use]:
    """What was used since `moment` (UTC, without zone). A ranking that was made again counts as it was made last."""
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
