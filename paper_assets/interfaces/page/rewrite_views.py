"""Rewrites: their stage, attempts beside the original and a reader's decision; and best practices, examples for later.

A decision on an attempt that is no longer the latest, or given twice, changes nothing.
"""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from paper_assets.digests.entry import LEVELS_IN_WORDS
from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.background import Task
from paper_assets.interfaces.page.desk import Desk, desk_of, now, page, person_of, profile_of, redirect_with_note
from paper_assets.interfaces.page.display import Unshown, as_sentence, isolate, readable_title
from paper_assets.interfaces.page.paper_rows import titles_of
from paper_assets.pipeline.rewrites import publish_vectors
from paper_assets.rewriting import loop
from paper_assets.rewriting.best_practices import archive_of, offer_again
from paper_assets.rewriting.best_practices import remove as remove_from
from paper_assets.rewriting.gate import held_back, open_questions, unsettled
from paper_assets.rewriting.loop import advance, run_to_end, state_of, step_of
from paper_assets.rewriting.measures import Piece, marked
from paper_assets.rewriting.policy import DECISIONS, LEVELS, NextStep, Wait, Write
from paper_assets.rewriting.writing import Writer, open_writer
from paper_assets.stores.best_practices import BestPractice, best_practice, best_practices, no_such_practice
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.stores.rewrite_progress import claimed_items
from paper_assets.stores.rewrites import (
    RewriteItem,
    attempts_by_examples,
    papers_with_requests,
    requested_rewrite,
    rewrite_item,
    rewrites_by_command,
    rewrites_of,
)
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.numbers import count_of
from paper_assets.text.tex import formula_spans

_MOST_DONE = 60
_MOST_PRACTICES = 200
_NO_MODEL = "No language model is set up, so nothing more is written."
_UPDATES_ITSELF = "; this page updates itself"  # left out of the list of rewrites, which does not

logger = logging.getLogger(__name__)


def list_rewrites(request: Request) -> Response:
    """Show the profile's rewrites: those that wait for a decision first, then unfinished and finished ones.

    On a personal desk also those that a command made of papers in the profile's lists.
    """
    desk, profile, pauses = desk_of(request), profile_of(request), _pauses(desk_of(request))
    groups: dict[str, list[Any]] = {"wait": [], "open": [], "done": [], "expired": []}
    items = rewrites_of(desk.warehouse, profile=profile)
    newest = latest_ranking_day(desk.warehouse, profile)
    lasting = {item.item for item in rewrites_of(desk.warehouse, profile=profile, day=newest)} if newest else set()
    expired = {item.item for item in items} - lasting
    if person_of(request) is None:
        items += rewrites_by_command(desk.warehouse, profile=profile)
    for item in items:
        row = isolate(f"The rewrite of {item.paper_id}", lambda item=item: _row(desk, item, pauses))  # type: ignore[misc]
        group = "open" if isinstance(row, Unshown) else row["group"]
        groups["expired" if newest and group == "wait" and item.item in expired else group].append(row)
    return page(
        request,
        "rewrites.html.jinja",
        groups={group: rows[:_MOST_DONE] for group, rows in groups.items()},
        counts={group: len(rows) for group, rows in groups.items()},
        levels=LEVELS_IN_WORDS,
    )


def show_rewrite(request: Request) -> Response:
    """Show one attempt beside its original, its score, what was criticised, and the decisions that are possible."""
    desk, item = desk_of(request), _item(request)
    config, model = desk.settings.rewriting, _model(desk)
    step = step_of(item, config=config)
    state = state_of(item, config=config, attempt=_attempt(request, item))
    attempt = item.attempts[state.attempt - 1] if state else None
    against = request.query_params.get("against", "before" if attempt and attempt.attempt > 1 else "original")
    before = item.attempts[attempt.attempt - 2] if attempt and attempt.attempt > 1 and against == "before" else None
    questions = open_questions(item, attempt) if attempt else ()
    note = unsettled(item, attempt) if attempt else None
    pause = _pauses(desk)(item.item)
    auto = item.outcome is None and pause is None and request.query_params.get("auto") == "1"
    writer = open_writer(desk.environ, archive=None, cache=None, clock=now, config=config)
    return page(
        request,
        "rewrite.html.jinja",
        item=item,
        level=LEVELS_IN_WORDS.get(item.target_level, item.target_level),
        stage_in_words=_status(item, step, pause=pause, ahead=desk.tasks.ahead("rewriting", item.item), auto=auto),
        held=held_back(item, attempt) if attempt else (),
        note_of_attempt=note,
        confirms=bool(note and attempt and item.kept == attempt.attempt),
        waits=step.attempt if isinstance(step, Wait) else None,
        unfinished=isinstance(step, Write),
        paused=isinstance(step, Write) and pause is not None,
        auto=auto,
        model=model,
        at_most=writer.at_most([item]) if model and isinstance(step, Write | Wait) else None,
        tokens=sum(each.input_tokens + each.output_tokens for each in item.attempts),
        state=state,
        attempt=attempt,
        against="before" if before else "original",
        pieces=whole_formulas(
            marked(attempt.text, before.text if before else item.original_text, (*attempt.unsupported, *questions))
            if attempt
            else ()
        ),
        marks=(config.enough, config.asks, config.passes, config.archived),
        stage=_stage(desk, item),
    )


def whole_formulas(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """Divide the pieces again so that none ends in a formula; a formula is new or doubtful where a part of it is."""
    text = "".join(piece.text for piece in pieces)
    formulas = formula_spans(text)
    if not formulas:
        return tuple(pieces)
    ends = list(accumulate(len(piece.text) for piece in pieces))
    starts = [0, *ends[:-1]]
    cuts = {0, len(text), *ends, *(cut for span in formulas for cut in span)}
    boundaries = sorted(cut for cut in cuts if not any(start < cut < end for start, end in formulas))
    parts = []
    for start, end in pairwise(boundaries):
        inside = [piece for piece, a, b in zip(pieces, starts, ends, strict=True) if a < end and start < b]
        parts.append(
            Piece(text[start:end], any(piece.new for piece in inside), any(piece.doubtful for piece in inside))
        )
    return tuple(parts)


def rewrite_state(request: Request) -> Response:
    """Return a text that changes when the rewrite makes progress, for the script that watches it."""
    return PlainTextResponse(_stage(desk_of(request), _item(request)))


def decide_rewrite(request: Request) -> Response:
    """Accept, retry, cancel, reopen or run to the end; an outdated or repeated decision changes nothing."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    name, decision = str(request.path_params["item"]), str(form.get("decision", ""))
    warehouse = desk.for_writing
    item = _item(request)
    if decision in DECISIONS:
        attempt = _number(str(form.get("attempt", "")))
        response = loop.decide(
            warehouse,
            name,
            attempt,
            "accept" if decision == "accept" else "retry",
            now=now(),
            config=desk.settings.rewriting,
        )
        note = response.note
        if response.counted and item.outcome is None:
            note += _resume(desk, name, advance)
        elif response.counted:  # what kept it out of the archive is accepted
            offer_again(archive_of(desk.settings, warehouse, desk.workspace.vector_index, desk.workspace.embedder()))
    elif decision == "cancel":
        note = loop.cancel(warehouse, name).note
    elif decision == "reopen":
        note = loop.undo_cancellation(warehouse, name).note + _resume(desk, name, advance)
    elif decision == "continue":
        note = f"the rewrite of {item.paper_id} for {item.target_level} continues" + _resume(desk, name, advance)
    elif decision == "auto":
        note = f"the rewrite of {item.paper_id} for {item.target_level} runs to its end" + _resume(
            desk, name, run_to_end
        )
    else:
        raise InvalidInput(f"a decision is accept, retry, continue, auto, cancel or reopen, got {decision[:40]!r}")
    watched = "?auto=1" if decision == "auto" and _model(desk) is not None else ""
    return redirect_with_note(request, f"/p/{profile}/rewrites/{name}{watched}", as_sentence(note))


def list_practices(request: Request) -> Response:
    """Show the archive of best practices, filtered by level, score and keyword, and its spread."""
    desk, _, query = desk_of(request), profile_of(request), request.query_params
    collection = desk.settings.archive
    level = query.get("level") if query.get("level") in LEVELS else None
    score = query.get("score", "")
    valid = not score or (score.isascii() and score.isdigit() and len(score) < 4)
    keyword = query.get("keyword", "").strip()[:100]
    practices = best_practices(
        desk.warehouse,
        collection,
        level=level,
        min_score=int(score) if score and valid else None,
        keyword=keyword or None,
    )
    archived = _practices_of_person(request, best_practices(desk.warehouse, collection))
    practices = _practices_of_person(request, practices)
    categories = [name for name, _ in Counter(practice.category or "unknown" for practice in archived).most_common(6)]
    return page(
        request,
        "practices.html.jinja",
        status=200 if valid else 400,
        found=practices[:_MOST_PRACTICES],
        titles=titles_of(desk.warehouse, [each.paper_id or "" for each in practices[:_MOST_PRACTICES]]),
        count=len(practices),
        kept=len(archived),
        asked={"level": level, "score": score[:20], "keyword": keyword},
        fault=None if valid else f"The score must be a number from 0 to 100, got {score[:20]!r}.",
        levels=LEVELS_IN_WORDS,
        categories=categories,
        spread=Counter((practice.target_level, practice.category or "unknown") for practice in archived),
        with_and_without={} if person_of(request) else attempts_by_examples(desk.warehouse),
        archived=desk.settings.rewriting.archived,
    )


def show_practice(request: Request) -> Response:
    """Show one best practice beside its original; `remove=ask` asks for confirmation."""
    practice = _practice(request)
    asks = request.query_params.get("remove") == "ask"
    title = titles_of(desk_of(request).warehouse, [practice.paper_id or ""]).get(practice.paper_id or "")
    return page(request, "practice.html.jinja", practice=practice, title=title, levels=LEVELS_IN_WORDS, asks=asks)


def remove_practice(request: Request) -> Response:
    """Remove a best practice, confirmed on its own page."""
    desk, profile, identifier = desk_of(request), profile_of(request), str(request.path_params["identifier"])
    if request.state.form.get("sure") != "yes":
        raise InvalidInput("a best practice is removed only after confirmation on its own page")
    _practice(request)
    archive = archive_of(desk.settings, desk.for_writing, desk.workspace.vector_index, desk.workspace.embedder())
    left = remove_from(archive, identifier)
    note = f"Removed, but {left}." if left else "The best practice is removed."
    return redirect_with_note(request, f"/p/{profile}/practices", note)


def _row(desk: Desk, item: RewriteItem, pauses: Callable[[str], str | None]) -> dict[str, Any]:
    """Return one rewrite in the list: its group, title, status and score."""
    config = desk.settings.rewriting
    step = step_of(item, config=config)
    status = _status(item, step, pause=pauses(item.item), ahead=desk.tasks.ahead("rewriting", item.item), auto=False)
    return {
        "group": "wait" if isinstance(step, Wait) else "open" if isinstance(step, Write) else "done",
        "item": item.item,
        "title": readable_title(item.title),
        "level": LEVELS_IN_WORDS.get(item.target_level, item.target_level),
        "status": status.removesuffix(_UPDATES_ITSELF),
        "state": state_of(item, config=config),
    }


def _status(item: RewriteItem, step: NextStep, *, pause: str | None, ahead: int, auto: bool) -> str:
    """Return the one sentence about the stage of a rewrite; `pause`: why it is not being written, `ahead`: how many
    others are written before it.
    """
    if pause is None and ahead and (auto or isinstance(step, Write)):
        return f"Waits for {count_of(ahead, 'other rewrite')} to be written first{_UPDATES_ITSELF}"
    if auto:
        return f"Running to its end{_UPDATES_ITSELF}"
    if isinstance(step, Wait):
        return f"Attempt {step.attempt} waits for your decision"
    if isinstance(step, Write):
        return f"Being written{_UPDATES_ITSELF}" if pause is None else f"Paused{pause and ': '}{pause}"
    attempt = f"attempt {step.attempt}"
    return {
        "passed": f"Finished: {attempt} passed",
        "accepted": f"Finished: you accepted {attempt}",
        "best": f"Finished: {attempt}, the best of {count_of(len(item.attempts), 'attempt')}, is kept",
        "best_with_warning": f"Finished with a quality warning: {attempt} is the best of {len(item.attempts)}",
        "cancelled": "Cancelled",
    }[step.outcome]


def _pauses(desk: Desk) -> Callable[[str], str | None]:
    """Return the function that gives the reason why an unfinished rewrite is not being written: None if it is being
    written, empty where nothing failed, so that the next run or the reader continues it.
    """
    claimed, has_model = claimed_items(desk.warehouse, now=now()), _model(desk) is not None

    def pause(item: str) -> str | None:
        if item in claimed:
            return None
        if not has_model:
            return f"{_NO_MODEL[:1].lower()}{_NO_MODEL[1:-1]}"
        task = desk.tasks.get("rewriting", item)
        if task and not task.future.done():
            return None
        return task.future.result() if task else ""

    return pause


def _item(request: Request) -> RewriteItem:
    """Return the rewrite in the address; in a lab only one of the person's profile. Raises NotComputed,
    PaperNotFound.
    """
    warehouse, profile, item = desk_of(request).warehouse, profile_of(request), str(request.path_params["item"])
    return requested_rewrite(warehouse, item, profile) if person_of(request) else rewrite_item(warehouse, item)


def _resume(desk: Desk, item: str, go_on: Callable[[Warehouse, Writer, str], RewriteItem]) -> str:
    """Continue the rewrite in a thread; return what to add to the note. The next run continues a killed one."""
    if _model(desk) is None:
        return f"; {_NO_MODEL[:1].lower()}{_NO_MODEL[1:-1]}"

    def work(_: Task) -> str:
        """Return why it stopped; "" if it has reached its end."""
        workspace = desk.workspace
        try:
            go_on(desk.for_writing, workspace.load_writer(workspace), item)
            publish_vectors(desk.for_writing, workspace)
            return ""
        except PaperAssetsError as fault:  # finished attempts are kept; a run or the next click continues from there
            logger.warning("the rewrite %s stopped: %s", item, fault)
            return str(fault)
        except Exception as fault:
            logger.exception("the rewrite %s stopped", item)
            return f"it failed ({type(fault).__name__}), and the log has the details"

    desk.tasks.forget("rewriting", item)  # it comes last again
    desk.tasks.start("rewriting", item, work)
    return ""


def _stage(desk: Desk, item: RewriteItem) -> str:
    task, ahead = desk.tasks.get("rewriting", item.item), desk.tasks.ahead("rewriting", item.item)
    return f"{len(item.attempts)} {len(item.decisions)} {item.outcome} {ahead} {task and task.state}"


def _model(desk: Desk) -> str | None:
    return desk.workspace.load_verifier().model


def _attempt(request: Request, item: RewriteItem) -> int | None:
    number_text = request.query_params.get("attempt")
    number = _number(number_text) if number_text else None
    return number if number is not None and 1 <= number <= len(item.attempts) else None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise InvalidInput(f"attempt must be a number, got {text[:20]!r}")
    return int(text)


def _practice(request: Request) -> BestPractice:
    """Return the best practice in the address. Raises InvalidInput, PaperNotFound."""
    profile_of(request)
    collection, identifier = desk_of(request).settings.archive, str(request.path_params["identifier"])
    practice = best_practice(desk_of(request).warehouse, collection, identifier)
    if not _practices_of_person(request, [practice]):
        raise no_such_practice(collection, identifier)
    return practice


def _practices_of_person(request: Request, practices: Sequence[BestPractice]) -> list[BestPractice]:
    """Return the best practices from rewrites of the person's profiles in a lab; on a personal desk all of them."""
    person = person_of(request)
    if person is None:
        return list(practices)
    requested = papers_with_requests(desk_of(request).warehouse, person.profiles)
    return [practice for practice in practices if (practice.paper_id, practice.target_level) in requested]
