"""What a person is shown of a day's rewrites, and what is checked of them (SPEC 4)."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from hashlib import sha256

from paper_assets.models.llm_budget import Usage
from paper_assets.pipeline.partition import Partition
from paper_assets.pipeline.report import Bars, Columns, Report, Table, Value
from paper_assets.pipeline.step import Checked, Made
from paper_assets.pipeline.workspace import Workspace
from paper_assets.rewriting.gate import held_back, stopped_attempts
from paper_assets.rewriting.loop import standing, state_of, step_of
from paper_assets.rewriting.policy import Wait
from paper_assets.rewriting.prompts import persona
from paper_assets.settings import RewritingConfig
from paper_assets.stores.rewrite_sets import rewrites_of
from paper_assets.stores.rewrites import Attempt, RewriteItem, unfinished_items


def rewrites_report(
    partition: Partition,
    items: Sequence[RewriteItem],
    *,
    price: Callable[[Usage], float | None] | None,
    warning: str | None,
    config: RewritingConfig,
) -> Report:
    """Where each rewrite stands, and what all of it took since it was opened."""
    attempts = [attempt for item in items for attempt in item.attempts]
    used = Usage(
        calls=2 * len(attempts),
        input_tokens=sum(attempt.input_tokens for attempt in attempts),
        output_tokens=sum(attempt.output_tokens for attempt in attempts),
    )
    cost = price(used) if price else None
    values: dict[str, Value] = {
        "dagster/row_count": len(items),
        "dagster/column_schema": Columns(
            [
                ("item", "string", "hash of paper, version, text, level and prompt"),
                ("paper_id", "string", "arXiv id without version"),
                ("target_level", "string", "public, student or expert"),
                ("attempt", "int", "from 1, without gaps"),
                ("text", "string", "the rewrite"),
                ("score", "int", "the critic's, 0 to 100"),
                ("critique", "string", "the critic's"),
                ("unsupported", "list<string>", "numbers and names that the original lacks"),
                ("stopped", "list<string>", "why the gate holds it back, numbers and names apart"),
                ("subscores", "list<int>", "the critic's five, 0 to 20; caps apart their sum is the score"),
                ("readability", "double", "LIX: words a sentence plus the percentage of long words"),
                ("examples", "list<string>", "best practices that were shown"),
                ("outcome", "string", "passed, accepted, best, best_with_warning or cancelled"),
            ]
        ),
        "rewrites": Table(
            ["paper", "level", "status", "score", "LIX", "attempts", "held back", "examples", "archive"],
            [_row(item, config) for item in items],
        ),
        "standing": Bars(
            dict(Counter(standing(item, config=config) for item in items)),
            title=f"Rewrites of {partition.profile}, {partition.day}",
        ),
        "attempts": len(attempts),
        "held_back": sum(len(stopped_attempts(item)) for item in items),
        "scores": ", ".join(f"{attempt.score}" for attempt in attempts) or "none",
        "examples_used": sum(len(attempt.examples) for attempt in attempts),
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "model": ", ".join(sorted({attempt.model for attempt in attempts})) or "none",
        "critic": ", ".join(sorted({attempt.critic for attempt in attempts if attempt.critic})) or "none",
        "warnings": warning or "none",
    }
    if cost is not None:
        values["cost"] = round(cost, 6)
    return Report(version_of(items), values)


def _row(item: RewriteItem, config: RewritingConfig) -> tuple[object, ...]:
    state = state_of(item, config=config)
    shown = item.attempts[state.attempt - 1] if state else None
    return (
        f"{item.paper_id} {item.title}",
        item.target_level,
        standing(item, config=config),
        shown.score if shown else "–",
        _readability(item, shown) if shown else "",
        len(item.attempts),
        "; ".join(held_back(item, shown)) if shown else "",
        len(shown.examples) if shown else 0,
        item.note or "",
    )


def _readability(item: RewriteItem, attempt: Attempt) -> str:
    """Measured, beside what the level asks for."""
    if attempt.readability is None:
        return "–"
    most = persona(item.target_level).lix
    return f"{attempt.readability:.0f}" + (f" (at most {most})" if most else "")


def version_of(items: Sequence[RewriteItem]) -> str:
    """Data version: changes with any attempt, decision or outcome, and with nothing else."""
    parts = [
        (
            item.item,
            [attempt.text for attempt in item.attempts],
            sorted(item.decisions.items()),
            item.outcome,
            *([sorted(item.accepted)] if item.accepted else []),
        )
        for item in items
    ]
    return sha256(json.dumps(parts).encode()).hexdigest()[:32]


def waiting_too_long(items: Iterable[RewriteItem], *, as_of: datetime, config: RewritingConfig) -> list[RewriteItem]:
    """Items that have waited for a person for `config.waiting_days` or more."""
    since = as_of - timedelta(days=config.waiting_days)
    return [item for item in items if isinstance(step_of(item, config=config), Wait) and item.moved_at <= since]


def nothing_waits_too_long(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Nobody has decided on a rewrite for days, of whatever partition."""
    config = workspace.settings.rewriting
    overdue = waiting_too_long(unfinished_items(workspace.warehouse), as_of=workspace.clock(), config=config)
    waiting = [f"{item.paper_id} for {item.target_level}" for item in overdue]
    return Checked(passed=not overdue, counted={"days": config.waiting_days, "waiting": waiting[:20]})


def attempts_are_whole(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Attempts count up from 1 without gaps; scores are 0 to 100."""
    found = [
        item
        for each in partitions
        for item in rewrites_of(workspace.warehouse, profile=each.of_profile, day=each.of_day)
    ]
    items = list({item.item: item for item in found}.values())
    torn = [
        item.item
        for item in items
        if [attempt.attempt for attempt in item.attempts] != list(range(1, len(item.attempts) + 1))
        or not all(0 <= attempt.score <= 100 for attempt in item.attempts)
    ]
    return Checked(passed=not torn, counted={"rewrites": len(items), "torn": torn[:20]})
