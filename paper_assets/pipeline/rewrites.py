"""`paper_rewrites`: the day's best papers rewritten for the levels that each profile requests (B), report and checks.

A run continues until each rewrite is finished or waits for a person; a waiting rewrite does not block others. The run
succeeds whatever the language model does; unfinished work is reported as a warning.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from hashlib import sha256
from itertools import chain

from paper_assets.errors import (
    InvalidInput,
    LLMBudgetReached,
    LLMConfigError,
    LLMError,
    LLMUnreachable,
    PaperAssetsError,
    StoreBusy,
    StoreError,
    named_error,
)
from paper_assets.models.llm_config import Usage
from paper_assets.pipeline.profiles import usable_profile
from paper_assets.pipeline.rewrite_items import known_step, wanted_items
from paper_assets.pipeline.staleness import NO_REWRITES, REWRITES, UNFINISHED, decided_lately
from paper_assets.pipeline.step import (
    Check,
    Checked,
    Columns,
    Made,
    Partition,
    Product,
    Report,
    Step,
    Table,
    Value,
    bars,
    make_each,
)
from paper_assets.pipeline.workspace import Workspace
from paper_assets.profile import Profile
from paper_assets.rewriting.gate import held_back, stopped_attempts
from paper_assets.rewriting.loop import (
    Claimed,
    advance,
    state_of,
    status_in_words,
)
from paper_assets.rewriting.policy import Wait, Write
from paper_assets.rewriting.prompts import persona
from paper_assets.rewriting.writing import Writer
from paper_assets.settings import RewritingConfig
from paper_assets.stores.documents import embed_documents
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.stores.rewrite_progress import asked_by, replace_set
from paper_assets.stores.rewrites import (
    Attempt,
    RewriteItem,
    rewrite_items,
    rewrites_of,
    unfinished_items,
)
from paper_assets.stores.vectors import update
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import count_of

_COLUMNS = Columns(
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
        ("unchecked", "int", "sentences that were not checked against the original; none: all of them"),
        ("disputed", "list<string>", "numbers and names that the original lacks, in sentences that it supports"),
        ("subscores", "list<int>", "the critic's five, 0 to 20; caps apart their sum is the score"),
        ("readability", "double", "LIX: words a sentence plus the percentage of long words"),
        ("examples", "list<string>", "best practices that were shown"),
        ("outcome", "string", "passed, accepted, best, best_with_warning or cancelled"),
    ]
)


def _report(workspace: Workspace, partition: Partition, made: Made) -> Report:
    """Report the state of each rewrite, and what all of it used since it was opened."""
    items = rewrites_of(workspace.warehouse, profile=partition.of_profile, day=partition.of_day)
    details: Written = made.details
    concerned = {item.item for item in items} & set(details.left.unfinished)
    price, config = details.writer.price if details.writer else None, workspace.settings.rewriting
    attempts = [attempt for item in items for attempt in item.attempts]
    used = Usage(
        calls=2 * len(attempts),
        input_tokens=sum(attempt.input_tokens for attempt in attempts),
        output_tokens=sum(attempt.output_tokens for attempt in attempts),
    )
    cost = price(used) if price else None
    values: dict[str, Value] = {
        "dagster/row_count": len(items),
        "dagster/column_schema": _COLUMNS,
        "rewrites": Table(
            ["paper", "level", "status", "score", "LIX", "attempts", "held back", "examples", "archive"],
            [_row(item, config) for item in items],
        ),
        "standing": bars(
            dict(Counter(status_in_words(item, config=config) for item in items)),
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
        "warnings": (details.left.warning if concerned else None) or "none",
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
        status_in_words(item, config=config),
        shown.score if shown else "–",
        _readability(item, shown) if shown else "",
        len(item.attempts),
        "; ".join(held_back(item, shown)) if shown else "",
        len(shown.examples) if shown else 0,
        item.note or "",
    )


def _readability(item: RewriteItem, attempt: Attempt) -> str:
    """Return the measured readability beside the level's limits."""
    if attempt.readability is None:
        return "–"
    most = persona(item.target_level).lix
    return f"{attempt.readability:.0f}" + (f" (at most {most})" if most else "")


def version_of(items: Sequence[RewriteItem]) -> str:
    """Return the data version, which changes only with attempts, decisions and outcomes."""
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
    """Return the items that have waited for a person for `config.waiting_days` or more."""
    since = as_of - timedelta(days=config.waiting_days)
    return [item for item in items if isinstance(known_step(item, config=config), Wait) and item.moved_at <= since]


def nothing_waits_too_long(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """No rewrite has waited for a decision for days."""
    config = workspace.settings.rewriting
    overdue = waiting_too_long(unfinished_items(workspace.warehouse), as_of=workspace.clock(), config=config)
    waiting = [f"{item.paper_id} for {item.target_level}" for item in overdue]
    return Checked(passed=not overdue, counted={"days": config.waiting_days, "waiting": waiting[:20]})


def attempts_are_whole(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Attempts count up from 1; scores are 0 to 100."""
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


NAME = REWRITES.name
CODE_VERSION = "1"
_MOST_FAILURES = 2  # consecutive requests without answer after which the server is not called again


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """The result of a run, for its reports: the model that wrote (None: nothing was written), and what is left."""

    writer: Writer | None
    left: "Advanced"


def _make(workspace: Workspace, partitions: Sequence[Partition], wanted: frozenset[str]) -> Made:
    """Open the rewrites that each day and profile requests; then advance all of them and publish finished ones."""
    warehouse, asked = workspace.warehouse, []

    def ask(partition: Partition) -> bool:
        profile = usable_profile(workspace, partition.of_profile)
        asked.extend(ask_for_rewrites(warehouse, profile, partition.of_day, now=workspace.clock()))
        return True

    new, failures = make_each(partitions, ask)
    asked += decided_lately(warehouse, now=workspace.clock())
    left, writer = Advanced(unfinished=(), reason=None), None
    if asked:
        writer = workspace.load_writer(workspace)
        left = advance_all(warehouse, writer, asked, log=workspace.log.info)
        publish_vectors(warehouse, workspace)
    if left.warning:
        workspace.log.warning(left.warning)
    return Made(new=new, failures=failures, details=Written(writer=writer, left=left))


def publish_vectors(warehouse: Warehouse, workspace: Workspace) -> None:
    """Embed the finished rewrites without vector, so that retrieval finds them by meaning."""
    model = workspace.embedder()
    if model is not None:
        embed_documents(warehouse, "rewrite", encode=model.encode, model=model.name)
        _index(workspace, model.name)


def _index(workspace: Workspace, model: str) -> None:
    """Bring the index up to date; the rewrites are valid without it, and the next run tries again."""
    try:
        update(workspace.vector_index, workspace.warehouse, ["rewrite"], model=model)
    except StoreBusy:
        raise
    except (StoreError, InvalidInput) as fault:
        workspace.log.warning(f"the rewrites are stored but not in the vector index: {fault}")


def _reported(workspace: Workspace, partitions: Sequence[Partition]) -> Mapping[str, Mapping[Partition, str]]:
    return {
        NAME: {
            each: version_of(rewrites_of(workspace.warehouse, profile=each.of_profile, day=each.of_day))
            for each, stored in REWRITES.stored(workspace, partitions).items()
            if stored and stored != NO_REWRITES and not stored.startswith(UNFINISHED)
        }
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Advanced:
    """What a run could not do: items left unfinished because the language model failed, and why."""

    unfinished: tuple[str, ...]
    reason: str | None
    faults: tuple[str, ...] = ()  # unexpected errors, each in one rewrite

    @property
    def warning(self) -> str | None:
        """Return the warning for unfinished items; None if there are none."""
        if not self.unfinished:
            return None
        waiting = len(self.unfinished) - len(self.faults)
        wait = "1 rewrite waits" if waiting == 1 else f"{waiting} rewrites wait"
        return "; ".join([*([f"{wait} for the language model: {self.reason}"] if waiting else []), *self.faults])


def ask_for_rewrites(warehouse: Warehouse, profile: Profile, day: date, *, now: datetime) -> list[str]:
    """Open the items that the profile's day requests; return all of them, best paper first. Raises NotComputed."""
    items = wanted_items(warehouse, profile, day)
    replace_set(warehouse, day, profile.name, items, now=now)
    return [item.item for item in items]


def waiting_by_profile(warehouse: Warehouse, *, config: RewritingConfig) -> dict[str, int]:
    """Count the rewrites that wait for a person, by profile; they expire with the list that they are of."""
    waiting = [item.item for item in unfinished_items(warehouse) if isinstance(known_step(item, config=config), Wait)]
    found: dict[str, set[str]] = {}
    for (day, profile), items in asked_by(warehouse, waiting).items():
        if day >= (latest_ranking_day(warehouse, profile) or day):
            found.setdefault(profile, set()).update(items)
    return {profile: len(items) for profile, items in found.items()}


def advance_all(
    warehouse: Warehouse, writer: Writer, items: Iterable[str], *, log: Callable[[str], None] = lambda line: None
) -> Advanced:
    """Advance each item until it is finished or waits for a person; never fails because of the language model.

    Without a model, items that need no more writing are still closed. An unreachable server is not called again after
    two items; a server that refuses one item receives requests for the others.
    """
    left: list[str] = []
    faults: list[str] = []
    failures, reason, given_up = 0, None, writer.model is None
    elsewhere: list[RewriteItem] = []  # another process writes on them: they come last, and are waited for
    todo = rewrite_items(warehouse, dict.fromkeys(items))
    if writer.model and (asked := [each for each in todo if _needs_model(each, writer.config)]):
        log(f"asking {writer.model} for {count_of(len(asked), 'rewrite')}: at most {writer.at_most(asked)}")
    for place, current in enumerate(chain(todo, elsewhere)):
        item = current.item
        if given_up and reason and isinstance(known_step(current, config=writer.config), Write):
            left.append(item)
            continue
        try:
            before = len(current.attempts)
            current = advance(warehouse, writer, item, patient=place >= len(todo))
            if len(current.attempts) > before:
                failures = 0
            log(f"{current.paper_id} for {current.target_level}: {len(current.attempts)} attempts, {current.outcome}")
        except Claimed:
            elsewhere.append(current)
        except LLMError as error:
            left.append(item)
            failures, reason = failures + isinstance(error, LLMUnreachable), str(error)
            given_up |= isinstance(error, LLMConfigError | LLMBudgetReached) or failures == _MOST_FAILURES
            log(f"{current.paper_id} for {current.target_level}: {error}")
        except PaperAssetsError:
            raise
        except Exception as error:  # in one rewrite; the others continue
            left.append(item)
            faults.append(str(named_error(error, f"the rewrite of {current.paper_id} for {current.target_level}")))
            log(faults[-1])
    if writer.budget.usage.calls:
        log(f"paid: {writer.paid}")
    return Advanced(unfinished=tuple(left), reason=reason, faults=tuple(faults))


def _needs_model(item: RewriteItem, config: RewritingConfig) -> bool:
    return isinstance(known_step(item, config=config), Write)


def nothing_waits_for_the_model(workspace: Workspace, partitions: Sequence[Partition], made: Made) -> Checked:
    """Every rewrite is done or waits for a person, not for a missing or unreachable model."""
    if not made.details:  # the check is executed alone
        config = workspace.settings.rewriting
        items = [item for item in unfinished_items(workspace.warehouse) if _needs_model(item, config)]
        return Checked(passed=not items, counted={"unfinished": len(items)})
    left = made.details.left
    return Checked(
        passed=not left.unfinished, counted={"unfinished": len(left.unfinished), "reason": left.reason or ""}
    )


STEP = Step(
    tracked=REWRITES,
    products=(
        Product(
            name=NAME,
            description="The day's best papers rewritten for the profile's levels by actor and critic, attempts kept.",
            kinds=frozenset({"duckdb", "chroma", "llm"}),
            report=_report,
            deps=("scored_rankings",),
            checks=(
                Check(nothing_waits_for_the_model),
                Check(nothing_waits_too_long),
                Check(attempts_are_whole, serious=True),
            ),
        ),
    ),
    group="reading",
    code_version=CODE_VERSION,
    make=_make,
    reported=_reported,
)
