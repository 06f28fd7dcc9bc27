"""`rewrite`: rewrite a paper's abstract for a level; a person decides where the critic is unsure (SPEC 4)."""

import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput, ModelUnavailable, PaperNotFound
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    PaperId,
    embedder_or_none,
    environment,
    open_warehouse,
    print_json,
    read_settings,
    say,
    warn,
)
from paper_assets.models.embedder import load_embedder
from paper_assets.paper_id import split_paper_id
from paper_assets.retrieval.stance_judges import support_judge
from paper_assets.rewriting import loop
from paper_assets.rewriting.best_practices import Archive, archive_of, offer_again
from paper_assets.rewriting.gate import held_back, unaccepted, unsettled
from paper_assets.rewriting.loop import rewriting, state_of, status_in_words, step_of
from paper_assets.rewriting.policy import LEVELS, Decision, Wait
from paper_assets.rewriting.prompts import persona
from paper_assets.rewriting.writing import Writer, new_item, open_writer
from paper_assets.settings import RewritingConfig, Settings
from paper_assets.stores.chroma import VectorIndex
from paper_assets.stores.documents import embed_documents, texts_to_embed
from paper_assets.stores.llm_answers import StoredAnswers
from paper_assets.stores.papers import find_paper
from paper_assets.stores.rewrite_progress import open_items
from paper_assets.stores.rewrites import Attempt, NewItem, RewriteItem, items_for, rewrite_item
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.languages import LANGUAGES


def rewrite(
    paper_id: PaperId,
    level: Annotated[str, typer.Option(help="public, student or expert.")],
    accept: Annotated[int | None, typer.Option(metavar="ATTEMPT", help="Accept this waiting attempt.")] = None,
    retry: Annotated[int | None, typer.Option(metavar="ATTEMPT", help="Reject this attempt and continue.")] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel this rewrite.")] = False,
    reopen: Annotated[bool, typer.Option("--reopen", help="Undo a cancellation and continue.")] = False,
    release: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Accept this number or name in every rewrite of the paper.")
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Two-letter code of the rewrite's language; default: the original's.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Rewrite the abstract of a stored paper for a reading level.

    Continues where an earlier call, a run or the page stopped.
    """
    if sum((accept is not None, retry is not None, cancel, reopen, release is not None)) > 1:
        raise InvalidInput("give only one of --accept, --retry, --cancel, --reopen and --release")
    if language is not None and language not in LANGUAGES:
        raise InvalidInput(f"--language must be one of {', '.join(LANGUAGES)}, got {language[:40]!r}")
    settings, warehouse = read_settings(), open_warehouse()
    chosen = partial(_chosen_rewrite, warehouse, paper_id, level, language)
    now, result, decision = datetime.now(UTC), None, _decision(accept, retry)
    if decision is not None:
        attempt, verb = decision
        item = chosen(lambda stored: attempt in (_waiting_attempt(stored, settings.rewriting), stored.kept))
        result = loop.decide(warehouse, item, attempt, verb, now=now, config=settings.rewriting)
    elif cancel:
        item = chosen(lambda stored: stored.outcome is None)
        result = loop.cancel(warehouse, item)
    elif reopen:
        item = chosen(lambda stored: stored.outcome == "cancelled")
        result = loop.undo_cancellation(warehouse, item)
    elif release is not None:
        item = chosen(lambda stored: loop.is_doubted(stored, release))
        result = loop.release(warehouse, item, release, now=now)
    else:
        task = loop.stored_task(warehouse, _task(warehouse, paper_id, level, language))
        item = task.item
        open_items(warehouse, [task], now=now)
    # The same decision again continues: the first command may have been killed.
    again = decision is not None and rewrite_item(warehouse, item).decisions.get(decision[0]) == decision[1]
    if result is not None and not result.counted and not again:
        raise InvalidInput(result.note)
    if result is not None:
        say(result.note)
    if not cancel:
        _continue(settings, warehouse, item, decided=result is not None)
    _show(warehouse, item, settings.rewriting, as_json=as_json)


def _decision(accept: int | None, retry: int | None) -> tuple[int, Decision] | None:
    if accept is not None:
        return accept, "accept"
    return (retry, "retry") if retry is not None else None


def _chosen_rewrite(
    warehouse: Warehouse, paper_id: str, level: str, language: str | None, fits: Callable[[RewriteItem], bool]
) -> str:
    """Return the stored rewrite that a decision is about: the newest that fits it, else the newest, whose state refuses
    it.

    It may be one of an older version, text or prompt, for which the same command would open a new one today.
    """
    stored = items_for(warehouse, str(split_paper_id(paper_id)[0]), level)
    stored = [item for item in stored if language in (None, item.language)]
    if not stored:
        task = _task(warehouse, paper_id, level, language)
        raise InvalidInput(
            f"there is no rewrite of {task.paper_id} for {level} yet, so nothing waits for a decision; "
            f"begin it with: paper-assets rewrite {task.paper_id} --level {level}"
        )
    return next((item.item for item in stored if fits(item)), stored[0].item)


def _waiting_attempt(item: RewriteItem, config: RewritingConfig) -> int | None:
    """Return the attempt that waits for a decision."""
    step = step_of(item, config=config)
    return step.attempt if isinstance(step, Wait) else None


def _task(warehouse: Warehouse, paper_id: str, level: str, language: str | None) -> NewItem:
    known = next((name for name in LEVELS if name == level), None)
    if known is None:
        raise InvalidInput(f"--level must be one of {', '.join(LEVELS)}, got {level!r}")
    paper = find_paper(warehouse, str(split_paper_id(paper_id)[0]))
    if paper is None:
        raise PaperNotFound(f"paper {paper_id} is not stored; fetch its day or import it first")
    if not paper.abstract.strip():
        raise InvalidInput(f"paper {paper_id} has no abstract to rewrite")
    return new_item(paper, known, language=language)


def _continue(settings: Settings, warehouse: Warehouse, item: str, *, decided: bool) -> None:
    """Write attempts until the item is done or waits for a decision."""
    current = rewrite_item(warehouse, item)
    if current.outcome is not None:  # closed by the decision just made, or earlier
        _embed(settings, warehouse)
        if decided and current.note:  # that may have been what kept it out of the archive
            offer_again(_archive(settings, warehouse))
        return
    if _waiting_attempt(current, settings.rewriting) is not None:
        return
    writer = _writer(settings, warehouse)
    if writer.model:
        warn(f"Asking {writer.model}: at most {writer.at_most([current])}, repairs included")
    try:
        for state in rewriting(warehouse, writer, item):
            held = next((line for line in state.feedback.splitlines() if line.startswith("held back")), "")
            held = f", {held.rstrip('. ')}" if held and state.status == "FAIL" else ""
            say(f"attempt {state.attempt} of at most {state.max_retries}: {state.current_score} ({state.status}){held}")
            if state.decision_required:
                return
        _embed(settings, warehouse)
    finally:
        if writer.budget.usage.calls:
            warn(f"Paid: {writer.paid}")


def _embed(settings: Settings, warehouse: Warehouse) -> None:
    """Embed published rewrites; the model is loaded only if one has no vector."""
    if texts_to_embed(warehouse, "rewrite", model=settings.embedding_model)[1]:
        with suppress(ModelUnavailable):  # the next run of paper_rewrites embeds it
            model = load_embedder(settings.embedding_model)
            embed_documents(warehouse, "rewrite", encode=model.encode, model=model.name)


def _archive(settings: Settings, warehouse: Warehouse) -> Archive:
    embedder = embedder_or_none(settings.embedding_model, consequence="examples are found by words only")
    index = VectorIndex(settings.vectors_place, deadline=settings.store_deadline)
    return archive_of(settings, warehouse, index, embedder)


def _writer(settings: Settings, warehouse: Warehouse) -> Writer:
    return open_writer(
        environment(),
        archive=_archive(settings, warehouse),
        cache=StoredAnswers(warehouse),
        clock=lambda: datetime.now(UTC),
        config=settings.rewriting,
        nli=support_judge(settings),
    )


def _show(warehouse: Warehouse, item: str, config: RewritingConfig, *, as_json: bool) -> None:
    current = rewrite_item(warehouse, item)
    state = state_of(current, config=config)
    if as_json:
        record = {"standing": status_in_words(current, config=config), "state": asdict(state) if state else None}
        held = {attempt.attempt: held_back(current, attempt) for attempt in current.attempts}
        print_json({**record, "held_back": held, **asdict(current), "accepted": sorted(current.accepted)})
        return
    say(f"{current.paper_id} for {current.target_level}: {status_in_words(current, config=config)}")
    if state is None:
        return
    say(f"\n{state.current_text}\n")
    shown = current.attempts[state.attempt - 1]
    say(f"written by {shown.model}{f', judged by {shown.critic}' if shown.critic else ''}{_readable(current, shown)}")
    for reason in held_back(current, shown):
        say(f"held back: {reason}")
    if note := unsettled(current, shown):
        say(note)
    critique = f". The critic: {state.feedback}" if state.feedback.strip() else ""
    say(f"attempt {state.attempt}, score {state.current_score}{critique}")
    if current.note:
        say(current.note)
    if note and current.kept == state.attempt:
        command = f"paper-assets rewrite {current.paper_id} --level {current.target_level}"
        say(f"accept it if the original states the same: {command} --accept {state.attempt}")
    if state.decision_required:
        claims = unaccepted(shown.unsupported, current.accepted)
        release = f", --release {shlex.quote(claims[0])}" if claims else ""
        say(
            f"decide: paper-assets rewrite {current.paper_id} --level {current.target_level} "
            f"--accept {state.attempt} (or --retry {state.attempt}, --cancel{release})"
        )


def _readable(item: RewriteItem, attempt: Attempt) -> str:
    if attempt.readability is None:
        return ""
    most = persona(item.target_level).lix
    return f"; readability (LIX) {attempt.readability:.0f}" + (f", for this level at most {most}" if most else "")
