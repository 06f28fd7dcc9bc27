"""Rewrites: where each stands, its attempts beside the original, and a person's decision (SPEC V3, B4, B5)."""

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from paper_assets.digests.versions import LEVELS_IN_WORDS
from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.page.desk import Desk, desk_of, now, page, person_of, profile_of, redirect_with_note
from paper_assets.pipeline.rewrites import publish_vectors
from paper_assets.rewriting import loop
from paper_assets.rewriting.best_practices import archive_of
from paper_assets.rewriting.best_practices import remove as remove_from
from paper_assets.rewriting.faithfulness import marked
from paper_assets.rewriting.loop import advance, run_to_end, standing, state_of, step_of
from paper_assets.rewriting.policy import DECISIONS, LEVELS, Wait, Write
from paper_assets.rewriting.writing import Writer
from paper_assets.stores.best_practices import BestPractice, best_practice, best_practices, no_such_practice
from paper_assets.stores.rewrite_outcomes import attempts_by_examples
from paper_assets.stores.rewrite_sets import papers_asked_for, rewrite_asked_for, rewrites_of
from paper_assets.stores.rewrites import RewriteItem, rewrite_item
from paper_assets.stores.warehouse import Warehouse

_MOST_DONE = 60
_ONE_AT_A_TIME = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rewriting")

logger = logging.getLogger(__name__)


def list_rewrites(request: Request) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    config = desk.settings.rewriting
    items = rewrites_of(desk.warehouse, profile=profile)
    groups: dict[str, list[RewriteItem]] = {"wait": [], "open": [], "done": []}
    for item in items:
        step = step_of(item, config=config)
        groups["wait" if isinstance(step, Wait) else "open" if isinstance(step, Write) else "done"].append(item)
    rows = {
        kind: [(item, standing(item, config=config), state_of(item, config=config)) for item in those[:_MOST_DONE]]
        for kind, those in groups.items()
    }
    return page(
        request,
        "rewrites.html.jinja",
        groups=rows,
        counts={kind: len(those) for kind, those in groups.items()},
        levels=LEVELS_IN_WORDS,
    )


def show_rewrite(request: Request) -> Response:
    desk, item = desk_of(request), _item(request)
    config = desk.settings.rewriting
    step = step_of(item, config=config)
    chosen = _attempt(request, item)
    state = state_of(item, config=config, attempt=chosen)
    shown = item.attempts[state.attempt - 1] if state else None
    against = request.query_params.get("against", "before" if shown and shown.attempt > 1 else "original")
    before = item.attempts[shown.attempt - 2] if shown and shown.attempt > 1 and against == "before" else None
    return page(
        request,
        "rewrite.html.jinja",
        item=item,
        level=LEVELS_IN_WORDS.get(item.target_level, item.target_level),
        standing=standing(item, config=config),
        waits=step.attempt if isinstance(step, Wait) else None,
        unfinished=isinstance(step, Write),
        auto=item.outcome is None and request.query_params.get("auto") == "1",
        state=state,
        attempt=shown,
        against="before" if before else "original",
        pieces=marked(shown.text, before.text if before else item.original_text, shown.unsupported) if shown else (),
        marks=(config.enough, config.asks, config.passes, config.archived),
        model=_model(desk),
        stage=_stage(item),
    )


def rewrite_state(request: Request) -> Response:
    """A word that changes when the rewrite goes on, for the script that watches it."""
    return PlainTextResponse(_stage(_item(request)))


def decide_rewrite(request: Request) -> Response:
    """Accept, retry, cancel, take up again, or run to its end; what is stale or said twice changes nothing."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    name, word = str(request.path_params["item"]), str(form.get("decision", ""))
    warehouse = desk.for_writing
    item = _item(request)
    if word in DECISIONS:
        attempt = _number(str(form.get("attempt", "")))
        response = loop.decide(
            warehouse,
            name,
            attempt,
            "accept" if word == "accept" else "retry",
            now=now(),
            config=desk.settings.rewriting,
        )
        note = response.note
        if response.counted:
            note += _resumed(desk, name, advance)
    elif word == "cancel":
        note = loop.cancel(warehouse, name).note
    elif word == "reopen":
        note = loop.take_up_again(warehouse, name).note + _resumed(desk, name, advance)
    elif word == "auto":
        note = f"the rewrite of {item.paper_id} for {item.target_level} runs to its end" + _resumed(
            desk, name, run_to_end
        )
    else:
        raise InvalidInput(f"a decision is accept, retry, auto, cancel or reopen, got {word[:40]!r}")
    alone = "?auto=1" if word == "auto" and _model(desk) is not None else ""
    return redirect_with_note(request, f"/p/{profile}/rewrites/{name}{alone}", f"{note[:1].upper()}{note[1:]}.")


def _item(request: Request) -> RewriteItem:
    """The rewrite of the address; in a lab only one that the profile asked for. Raises NotComputed, PaperNotFound."""
    warehouse, profile, item = desk_of(request).warehouse, profile_of(request), str(request.path_params["item"])
    return rewrite_asked_for(warehouse, item, profile) if person_of(request) else rewrite_item(warehouse, item)


def _resumed(desk: Desk, item: str, go_on: Callable[[Warehouse, Writer, str], RewriteItem]) -> str:
    """Let the rewrite go on in a thread of this process, and what to say of it. A killed one goes on elsewhere (B5)."""
    if _model(desk) is None:
        return "; no language model is set up, so nothing more is written (LLM_PROVIDER and its key)"

    def work() -> None:
        workspace = desk.workspace
        try:
            go_on(desk.for_writing, workspace.load_writer(workspace), item)
            publish_vectors(desk.for_writing, workspace)
        except PaperAssetsError as fault:  # what was written is kept; a run, or the next click, goes on from there
            logger.warning("the rewrite %s stopped: %s", item, fault)
        except Exception:
            logger.exception("the rewrite %s stopped", item)

    _ONE_AT_A_TIME.submit(work)
    return ""


def _stage(item: RewriteItem) -> str:
    return f"{len(item.attempts)} {len(item.decisions)} {item.outcome}"


def _model(desk: Desk) -> str | None:
    return desk.workspace.load_verifier().model


def _attempt(request: Request, item: RewriteItem) -> int | None:
    given = request.query_params.get("attempt")
    number = _number(given) if given else None
    return number if number is not None and 1 <= number <= len(item.attempts) else None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6):
        raise InvalidInput(f"attempt must be a number, got {text[:20]!r}")
    return int(text)


_MOST_PRACTICES = 200


def list_practices(request: Request) -> Response:
    desk, _, asked = desk_of(request), profile_of(request), request.query_params
    collection = desk.settings.archive
    level = asked.get("level") if asked.get("level") in LEVELS else None
    score = asked.get("score", "")
    if score and not (score.isascii() and score.isdigit() and len(score) < 4):
        raise InvalidInput(f"the least score must be a number from 0 to 100, got {score[:20]!r}")
    keyword = asked.get("keyword", "").strip()[:100]
    found = best_practices(
        desk.warehouse, collection, level=level, min_score=int(score) if score else None, keyword=keyword or None
    )
    kept = _own(request, best_practices(desk.warehouse, collection))
    found = _own(request, found)
    categories = [name for name, _ in Counter(each.category or "unknown" for each in kept).most_common(6)]
    spread = Counter((each.target_level, each.category or "unknown") for each in kept)
    return page(
        request,
        "practices.html.jinja",
        found=found[:_MOST_PRACTICES],
        count=len(found),
        kept=len(kept),
        asked={"level": level, "score": score, "keyword": keyword},
        levels=LEVELS_IN_WORDS,
        categories=categories,
        spread=spread,
        with_and_without={} if person_of(request) else attempts_by_examples(desk.warehouse),
        collection=collection,
    )


def show_practice(request: Request) -> Response:
    found = _practice(request)
    asks = request.query_params.get("remove") == "ask"
    return page(request, "practice.html.jinja", practice=found, levels=LEVELS_IN_WORDS, asks=asks)


def remove_practice(request: Request) -> Response:
    """Remove one, which its page has asked once more."""
    desk, profile, identifier = desk_of(request), profile_of(request), str(request.path_params["identifier"])
    if request.state.form.get("sure") != "yes":
        raise InvalidInput("a best practice is removed from its own page, which asks once more")
    _practice(request)
    archive = archive_of(desk.settings, desk.for_writing, desk.workspace.vector_index, desk.workspace.embedder())
    left = remove_from(archive, identifier)
    note = f"Removed, but {left}." if left else "The best practice is removed."
    return redirect_with_note(request, f"/p/{profile}/practices", note)


def _practice(request: Request) -> BestPractice:
    """The best practice of the address. Raises InvalidInput, PaperNotFound."""
    profile_of(request)
    collection, identifier = desk_of(request).settings.archive, str(request.path_params["identifier"])
    found = best_practice(desk_of(request).warehouse, collection, identifier)
    if not _own(request, [found]):
        raise no_such_practice(collection, identifier)
    return found


def _own(request: Request, practices: Sequence[BestPractice]) -> list[BestPractice]:
    """In a lab, of the archive what rewrites of the person's profiles brought; all of it on a desk of one's own."""
    person = person_of(request)
    if person is None:
        return list(practices)
    asked = papers_asked_for(desk_of(request).warehouse, person.profiles)
    return [each for each in practices if (each.paper_id, each.target_level) in asked]
