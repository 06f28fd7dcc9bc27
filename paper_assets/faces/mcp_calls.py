"""One call of a tool: work in a thread, progress, a time limit, an answer of bounded length (SPEC I6).

A call that passes its limit, or that the client cancels, is answered (or dropped) at once; its thread is told so at
its next report of progress and stops there. What it has learned until then is kept by content, so that asking again
goes on from it.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent

from paper_assets.errors import InvalidInput
from paper_assets.faces.mcp_refusals import Secrets, TimeLimit, refusal, sendable
from paper_assets.faces.terminal import numbers_or_null
from paper_assets.settings import Settings

MOST_CHARACTERS = 12_000  # of an answer, unless the caller asks for more of a text
_MOST_AT_WORK = 8  # threads; further calls wait in line
# To how many characters strings and to how many entries lists are cut, one after the other, until an answer fits.
_CUTS = ((4_000, 40), (1_000, 40), (200, 40), (100, 20), (100, 10), (60, 5))
_PAGE_MARKS = 100  # characters that name the items of a page, how many there are, and where the next begins

Progress = Callable[[int, int, str], None]  # steps done, steps in all (0: unknown), what is being done
Work = Callable[[Progress], Mapping[str, Any]]

logger = logging.getLogger(__name__)


class CallIsOver(Exception):
    """Nobody waits for this work any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The threads of a server, and what holds for each of its calls. Times in seconds."""

    secrets: Secrets
    limit: float = 50.0
    heartbeat: float = 5.0  # between two signs of life while the work says nothing
    pool: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(max_workers=_MOST_AT_WORK, thread_name_prefix="tool")
    )
    _at_work: set["Future[Mapping[str, Any]]"] = field(default_factory=set)

    @property
    def work_deadline(self) -> float:
        """What the work itself may take, so that it can say what went wrong before the limit cuts it off."""
        return 0.9 * self.limit

    def store_deadline(self, settings: Settings) -> float:
        """How long to wait for a store that another process holds: less than half of a call, which may wait twice."""
        return min(settings.store_deadline, 0.4 * self.limit)

    def wind_up(self, seconds: float) -> None:
        """Take no more work, and wait so long at most for what is being done."""
        self.pool.shutdown(wait=False, cancel_futures=True)
        wait(list(self._at_work), timeout=seconds)

    async def answer(
        self, context: Context, tool: str, work: Work, *, most: int | None = MOST_CHARACTERS
    ) -> CallToolResult:
        """Do the work and tell what came of it, good or bad; never raises but when the client cancels."""
        try:
            found = await self._worked(context, work)
            return bounded_answer(found, most=most, secrets=self.secrets)
        except Exception as error:
            return refusal(error, tool=tool, secrets=self.secrets)

    async def _worked(self, context: Context, work: Work) -> Mapping[str, Any]:
        loop, over, told = asyncio.get_running_loop(), threading.Event(), _Told(context)

        def progress(done: int, total: int, what: str) -> None:
            if over.is_set():
                raise CallIsOver
            line = f"{what} {done} of {total}" if total else what
            asyncio.run_coroutine_threadsafe(told.say(line), loop)

        started = loop.time()
        job: Future[Mapping[str, Any]] = self.pool.submit(_quietly, work, progress, over)
        self._at_work.add(job)
        job.add_done_callback(self._at_work.discard)
        pending = asyncio.wrap_future(job)
        try:
            await told.say("started")
            while not pending.done():
                left = started + self.limit - loop.time()
                if left <= 0:
                    raise TimeLimit(_too_slow(job, told.last, limit=self.limit))
                await asyncio.wait({pending}, timeout=min(self.heartbeat, left))
                if not pending.done():
                    await told.say(told.last)
            return pending.result()
        finally:
            over.set()
            told.over = True
            pending.cancel()


class _Told:
    """Progress as the protocol wants it: a number that only grows (seconds since the call began), and words."""

    def __init__(self, context: Context) -> None:
        self.last = "started"
        self.over = False
        self._context = context
        self._began = asyncio.get_running_loop().time()
        self._before = -1.0

    async def say(self, what: str) -> None:
        if self.over:
            return
        self.last = what
        seconds = round(asyncio.get_running_loop().time() - self._began, 3)
        self._before = max(seconds, round(self._before + 0.001, 3))
        await self._context.report_progress(self._before, None, what)


def _quietly(work: Work, progress: Progress, over: threading.Event) -> Mapping[str, Any]:
    """The work; its failure after its call has ended is a line in the log, since nobody is told."""
    try:
        return work(progress)
    except CallIsOver:
        logger.info("the work of a call that is over has stopped")
        raise
    except Exception as fault:
        if over.is_set():
            logger.info("the work of a call that is over failed: %s", fault)
        raise


def _too_slow(job: "Future[Any]", last: str, *, limit: float) -> str:
    if job.cancel():
        return f"not begun within {limit:g} s: {_MOST_AT_WORK} earlier calls are still at work; ask again later"
    return (
        f"not finished within {limit:g} s (last heard: {last}); what is known so far is kept, "
        "so ask again later or ask for less"
    )


def bounded_answer(found: Mapping[str, Any], *, most: int | None, secrets: Secrets) -> CallToolResult:
    """The answer as text and as structured content, the same JSON; `most` None: its maker has bounded it already.

    Raises InvalidInput if it cannot be cut to `most` characters.
    """
    value: Any = secrets.hide_within(json.loads(_text(found)))
    text = _text(value if most is None else within(value, most))
    return CallToolResult(content=[TextContent(text=text)], structured_content=json.loads(text))


def within(value: dict[str, Any], most: int) -> dict[str, Any]:
    """The JSON object in at most so many characters: its long texts and lists are cut, and `shortened` says so.

    Pages are cut where their items end, so that this concerns single items of unusual length. Raises InvalidInput.
    """
    cut = _cut(value, most)
    if (length := len(_text(cut))) > most:
        raise InvalidInput(f"the answer would have {length:,} characters, more than {most:,}; ask for less")
    return cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some of many things, how many there are, and where the next page begins (None: this is the last)."""

    items: list[Any]
    total: int
    next_offset: int | None


def page(items: Sequence[Any], *, offset: int, limit: int | None = None, most: int = MOST_CHARACTERS) -> Page:
    """The items from `offset` on, at most `limit`, and no more than fit into `most` characters (but one at least)."""
    shown: list[Any] = []
    used = 0
    for item in items[offset:]:
        used += len(_text(item)) + len(", ")
        if shown and (used > most or len(shown) == limit):
            break
        shown.append(item)
    ends = offset + len(shown)
    return Page(items=shown, total=len(items), next_offset=ends if ends < len(items) else None)


def paged(
    rest: Mapping[str, Any], name: str, items: Sequence[Any], *, offset: int, most: int = MOST_CHARACTERS
) -> dict[str, Any]:
    """The answer `rest` with a page of the items under `name`, as long as there is room for beside it."""
    beside = _cut(dict(rest), most * 3 // 4)
    listed = page(items, offset=offset, most=most - len(_text(beside)) - _PAGE_MARKS)
    return {**beside, name: listed.items, "total": listed.total, "next_offset": listed.next_offset}


def text_page(text: str, *, offset: int, limit: int) -> Page:
    """The characters offset..offset + limit of a text, as one item."""
    part = text[offset : offset + limit]
    ends = offset + len(part)
    return Page(items=[part], total=len(text), next_offset=ends if part and ends < len(text) else None)


def _text(value: Any) -> str:
    return sendable(json.dumps(numbers_or_null(value), ensure_ascii=False, default=str))


def _cut(value: dict[str, Any], most: int) -> dict[str, Any]:
    """The value cut to `most` characters, or as near to that as it gets."""
    for longest, entries in _CUTS:
        if len(_text(value)) <= most:
            break
        value = {**_shortened(value, longest, entries), "shortened": True}
    return value


def _shortened(value: Any, longest: int, entries: int) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(entry, longest, entries) for key, entry in value.items()}
    if isinstance(value, list):
        kept = [_shortened(entry, longest, entries) for entry in value[:entries]]
        left_out = len(value) - len(kept)
        # Among objects a text would be none of the kind that the schema of the tool promises.
        return [*kept, f"… ({left_out} more)"] if left_out and not isinstance(value[0], dict) else kept
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}… ({len(value) - longest} more characters)"
    return value
