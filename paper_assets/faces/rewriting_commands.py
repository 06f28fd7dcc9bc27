"""`rewrite`: a paper's abstract rewritten for a level, with a person's word where the critic is in doubt (SPEC 4)."""

import os
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from paper_assets.errors import InvalidInput, PaperNotFound
from paper_assets.faces.arguments import AsJson, open_warehouse, read_settings
from paper_assets.faces.terminal import print_json, say
from paper_assets.settings import Rewriting, Settings

if TYPE_CHECKING:
    from paper_assets.rewriting.policy import Decision
    from paper_assets.rewriting.state import OptimizerState
    from paper_assets.rewriting.writing import Writer
    from paper_assets.stores.rewrites import RewriteItem
    from paper_assets.stores.warehouse import Warehouse


def rewrite(
    paper_id: str,
    level: Annotated[str, typer.Option(help="public, student or expert.")],
    accept: Annotated[int | None, typer.Option(metavar="ATTEMPT", help="Take this attempt, which waits.")] = None,
    retry: Annotated[int | None, typer.Option(metavar="ATTEMPT", help="Send this attempt back and go on.")] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Give this rewrite up.")] = False,
    reopen: Annotated[bool, typer.Option("--reopen", help="Take a cancellation back and go on.")] = False,
    as_json: AsJson = False,
) -> None:
    """Rewrite a stored paper's abstract; goes on where an earlier call, a run or the page has stopped."""
    from paper_assets.rewriting import loop
    from paper_assets.stores.rewrites import open_items

    if sum((accept is not None, retry is not None, cancel, reopen)) > 1:
        raise InvalidInput("give only one of --accept, --retry, --cancel and --reopen")
    settings, warehouse = read_settings(), open_warehouse()
    now, told, said = datetime.now(UTC), None, _decision(accept, retry)
    if said is not None:
        attempt, word = said
        item = _meant(warehouse, paper_id, level, lambda stored: _waits(stored, settings.rewriting) == attempt)
        told = loop.decide(warehouse, item, attempt, word, now=now, numbers=settings.rewriting)
    elif cancel:
        item = _meant(warehouse, paper_id, level, lambda stored: stored.outcome is None)
        told = loop.cancel(warehouse, item)
    elif reopen:
        item = _meant(warehouse, paper_id, level, lambda stored: stored.outcome == "cancelled")
        told = loop.take_up_again(warehouse, item)
    else:
        task = _task(warehouse, paper_id, level)
        item = task.item
        open_items(warehouse, [task], now=now)
    if told is not None and not told.counted:
        raise InvalidInput(told.note)
    if told is not None:
        say(told.note)
    if not cancel:
        _go_on(settings, warehouse, item, ask=not as_json)
    _show(warehouse, item, settings.rewriting, as_json=as_json)


def rewrites_of_day(warehouse: "Warehouse", profile: str, day: date, *, numbers: Rewriting) -> dict[str, int]:
    """How many rewrites of the profile's day stand how."""
    from paper_assets.rewriting.state import standing
    from paper_assets.stores.rewrites import rewrites_of

    return dict(Counter(standing(item, numbers=numbers) for item in rewrites_of(warehouse, profile=profile, day=day)))


def _decision(accept: int | None, retry: int | None) -> "tuple[int, Decision] | None":
    if accept is not None:
        return accept, "accept"
    return (retry, "retry") if retry is not None else None


def _meant(warehouse: "Warehouse", paper_id: str, level: str, fits: "Callable[[RewriteItem], bool]") -> str:
    """The stored rewrite that a word is about: the newest that fits it, else the newest, whose state refuses it.

    Also one of an older version, text or prompt, which the same command would not ask for today.
    """
    from paper_assets.paper import split_arxiv_id
    from paper_assets.stores.rewrites import items_for

    stored = items_for(warehouse, split_arxiv_id(paper_id)[0], level)
    if not stored:
        task = _task(warehouse, paper_id, level)
        raise InvalidInput(
            f"there is no rewrite of {task.paper_id} for {level} yet, so nothing waits for a decision; "
            f"begin it with: paper-assets rewrite {task.paper_id} --level {level}"
        )
    return next((item.item for item in stored if fits(item)), stored[0].item)


def _waits(item: "RewriteItem", numbers: Rewriting) -> int | None:
    """The attempt that waits for a decision."""
    from paper_assets.rewriting.policy import Wait
    from paper_assets.rewriting.state import step_of

    step = step_of(item, numbers=numbers)
    return step.attempt if isinstance(step, Wait) else None


def _task(warehouse: "Warehouse", paper_id: str, level: str) -> Any:
    from paper_assets.paper import split_arxiv_id
    from paper_assets.rewriting.policy import LEVELS
    from paper_assets.rewriting.writing import new_item
    from paper_assets.stores.papers import find_paper

    known = next((name for name in LEVELS if name == level), None)
    if known is None:
        raise InvalidInput(f"--level must be one of {', '.join(LEVELS)}, got {level!r}")
    paper = find_paper(warehouse, split_arxiv_id(paper_id)[0])
    if paper is None:
        raise PaperNotFound(f"paper {paper_id} is not stored; fetch its day or import it first")
    if not paper.abstract.strip():
        raise InvalidInput(f"paper {paper_id} has no abstract to rewrite")
    return new_item(paper, known)


def _go_on(settings: Settings, warehouse: "Warehouse", item: str, *, ask: bool) -> None:
    """Write until the item is done or waits; at a terminal, ask the person who sits there."""
    from paper_assets.rewriting.loop import rewriting
    from paper_assets.stores.rewrites import rewrite_item

    stands = rewrite_item(warehouse, item)
    attended = ask and sys.stdin.isatty()
    if stands.outcome is not None:  # closed by the decision just made, or long ago
        _embed(settings, warehouse)
        return
    if _waits(stands, settings.rewriting) is not None and not attended:
        return
    writer = _writer(settings, warehouse)
    steps = rewriting(warehouse, writer, item)
    said: Decision | None = None
    try:
        while True:
            state = steps.send(said)
            say(f"attempt {state.attempt} of at most {state.max_retries}: {state.current_score} ({state.status})")
            said = _ask(state) if state.decision_required and attended else None
            if state.decision_required and said is None:
                return
    except StopIteration:
        _embed(settings, warehouse)


def _embed(settings: Settings, warehouse: "Warehouse") -> None:
    """Embed what is published; the model is not loaded where nothing lacks its vector."""
    from paper_assets.errors import ModelUnavailable
    from paper_assets.models.embedder import load_embedder
    from paper_assets.rewriting.publishing import embed_published
    from paper_assets.stores.documents import texts_to_embed

    if texts_to_embed(warehouse, "rewrite", model=settings.embedding_model)[1]:
        with suppress(ModelUnavailable):  # the next run of paper_rewrites embeds it
            embed_published(warehouse, load_embedder(settings.embedding_model))


def _ask(state: "OptimizerState") -> "Decision | None":
    """The person's word; None to leave it for later."""
    say(f"\n{state.current_text}\n\nThe critic: {state.feedback}\n")
    answer = typer.prompt("accept, retry or later", default="later", err=True).strip().lower()
    if answer in ("a", "accept"):
        return "accept"
    return "retry" if answer in ("r", "retry") else None


def _writer(settings: Settings, warehouse: "Warehouse") -> "Writer":
    from paper_assets.errors import ModelUnavailable
    from paper_assets.models.embedder import load_embedder
    from paper_assets.rewriting.best_practices import archive_of
    from paper_assets.rewriting.writing import open_writer
    from paper_assets.stores.llm_answers import StoredAnswers
    from paper_assets.stores.vectors import VectorIndex

    try:
        embedder = load_embedder(settings.embedding_model)
    except ModelUnavailable as fault:
        print(f"warning: {fault}; examples are found by words only", file=sys.stderr)
        embedder = None
    index = VectorIndex(settings.vectors_path, deadline=settings.store_deadline)
    return open_writer(
        os.environ,
        archive=archive_of(settings, warehouse, index, embedder),
        cache=StoredAnswers(warehouse),
        clock=lambda: datetime.now(UTC),
        numbers=settings.rewriting,
    )


def _show(warehouse: "Warehouse", item: str, numbers: Rewriting, *, as_json: bool) -> None:
    from dataclasses import asdict

    from paper_assets.rewriting.state import standing, state_of
    from paper_assets.stores.rewrites import rewrite_item

    stands = rewrite_item(warehouse, item)
    state = state_of(stands, numbers=numbers)
    if as_json:
        shown = {"standing": standing(stands, numbers=numbers), "state": asdict(state) if state else None}
        print_json({**shown, **asdict(stands)})
        return
    say(f"{stands.paper_id} for {stands.target_level}: {standing(stands, numbers=numbers)}")
    if state is None:
        return
    say(f"\n{state.current_text}\n")
    say(f"attempt {state.attempt}, score {state.current_score}. The critic: {state.feedback}")
    if stands.note:
        say(stands.note)
    if state.decision_required:
        say(
            f"decide: paper-assets rewrite {stands.paper_id} --level {stands.target_level} "
            f"--accept {state.attempt} (or --retry {state.attempt}, --cancel)"
        )
