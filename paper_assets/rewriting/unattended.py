"""A rewrite run to its end without anybody being asked: a waiting attempt is sent back while there are attempts left,
and the last one that waits is taken (SPEC V3, Auto).
"""

from datetime import datetime

from paper_assets.rewriting.gate import stopped_attempts
from paper_assets.rewriting.loop import advance, decide
from paper_assets.rewriting.policy import Wait, attempts_allowed
from paper_assets.rewriting.state import step_of
from paper_assets.rewriting.writing import Writer
from paper_assets.settings import RewritingConfig
from paper_assets.stores.rewrites import RewriteItem, rewrite_item
from paper_assets.stores.warehouse import Warehouse


def decide_unattended(warehouse: Warehouse, item: str, *, now: datetime, config: RewritingConfig) -> None:
    """Decide on the attempt that waits, if one does: retry while more are allowed, else accept."""
    stands = rewrite_item(warehouse, item)
    step = step_of(stands, config=config)
    if isinstance(step, Wait):
        scores = [attempt.score for attempt in stands.attempts]
        left = (
            attempts_allowed(scores, stands.decisions, stopped=stopped_attempts(stands), config=config) - step.attempt
        )
        decide(warehouse, item, step.attempt, "retry" if left > 0 else "accept", now=now, config=config)


def run_to_end(warehouse: Warehouse, writer: Writer, item: str) -> RewriteItem:
    """Write and decide until the item is done; the item as it then stands.

    A decision made meanwhile by somebody else counts, as everywhere. Raises LLMError; the next call goes on.
    """
    while True:
        stands = advance(warehouse, writer, item)
        if not isinstance(step_of(stands, config=writer.config), Wait):
            return stands
        decide_unattended(warehouse, item, now=writer.clock(), config=writer.config)
