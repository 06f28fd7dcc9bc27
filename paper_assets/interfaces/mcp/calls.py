"""Run one call of a tool: a thread, progress, time and length limits (SPEC I6).

A call that passes its limit, or that the client cancels, is answered (or dropped) at once; its thread notices at its
next report of progress and stops there. Results until then are stored by content, so that the repeated call continues
from them. Work that asks a language model continues instead, and the same call made again joins it: an answer that has
been paid for is not paid for twice (I5).
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from mcp.server.mcpserver import Context
from mcp_types import CallToolResult, TextContent

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.mcp.error_answers import TimeLimit, refusal
from paper_assets.interfaces.values import numbers_or_null, rounded
from paper_assets.progress import Progress, WorkEnded
from paper_assets.settings import Settings
from paper_assets.text.cleaning import encodable
from paper_assets.text.secrets import Secrets

MOST_CHARACTERS = 12_000  # of an answer, unless the caller asks for more of a text
_POLL = 0.1  # seconds between two looks at the work of a call
_MOST_AT_WORK = 8  # threads of each pool; other calls wait
# To how many characters strings and to how many entries lists are cut, one after the other, until an answer fits.
_CUTS = ((4_000, 40), (1_000, 40), (200, 40), (100, 20), (100, 10), (60, 5))
_PAGE_MARKS = 100  # characters that name the items of a page, how many there are, and where the next begins

Work = Callable[[Progress], Mapping[str, Any]]
Meanwhile = Callable[[str], Mapping[str, Any] | None]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """The threads of a server, and the limits of each call. Times in seconds.

    What needs no network has separate threads, so that it never waits behind what does (I6); so has what may ask a
    language model, which may take minutes.
    """

    secrets: Secrets
    limit: float = 50.0
    model_deadline: float = 900.0  # after which a question to a language model is given up
    heartbeat: float = 5.0  # between two progress notifications while the work reports none
    local: ThreadPoolExecutor = field(default_factory=lambda: _threads("local"))
    networked: ThreadPoolExecutor = field(default_factory=lambda: _threads("networked"))
    judging: ThreadPoolExecutor = field(default_factory=lambda: _threads("judging"))
    lasting: ThreadPoolExecutor = field(default_factory=lambda: _threads("lasting"))
    _in_progress: dict[str, "_SharedWork"] = field(default_factory=dict)
    _at_work: set[Future[Mapping[str, Any]]] = field(default_factory=set)

    @property
    def work_deadline(self) -> float:
        """Return the seconds that the work may take: less than the limit, so that it can report what went wrong."""
        return 0.9 * self.limit

    def store_deadline(self, settings: Settings) -> float:
        """Return how long to wait for a store that another process holds: less than half of a call, which may wait
        twice.
        """
        return min(settings.store_deadline, 0.4 * self.limit)

    def shut_down(self, seconds: float) -> None:
        """Accept no more work, and wait at most `seconds` for work in progress."""
        for pool in (self.local, self.networked, self.judging, self.lasting):
            pool.shutdown(wait=False, cancel_futures=True)
        wait(list(self._at_work), timeout=seconds)

    async def answer(
        self,
        context: Context,
        tool: str,
        work: Work,
        *,
        most: int | None = MOST_CHARACTERS,
        networked: bool = False,
        asks_model: bool = False,
        joined_as: str | None = None,
        meanwhile: Meanwhile = lambda _: None,
    ) -> CallToolResult:
        """Do the work and answer with its result or its error; raises only when the client cancels.

        asks_model: the work may ask a language model, and must end within `work_deadline`.
        joined_as: the work continues after the call has ended, and calls with the same name wait for the same work.
        meanwhile: returns a partial answer when the time is over, given the reason; if it returns None, the reason is
        the error.
        """
        pool = (
            self.lasting if joined_as else self.judging if asks_model else self.networked if networked else self.local
        )
        try:
            name = f"{tool} {joined_as}" if joined_as else None
            result = await self._result(context, work, pool, name=name, meanwhile=meanwhile)
            return bounded_answer(result, most=most, secrets=self.secrets)
        except Exception as error:
            return refusal(error, tool=tool, secrets=self.secrets)

    async def _result(
        self, context: Context, work: Work, pool: ThreadPoolExecutor, *, name: str | None, meanwhile: Meanwhile
    ) -> Mapping[str, Any]:
        """Return the result of the work, which work of the same name still in progress does too.

        Work without a name ends with its call, other work when no caller waits for it any more.
        """
        clock, first = asyncio.get_running_loop().time, "started"
        shared = self._in_progress.get(name) if name else None
        if shared is not None:
            first = f"already running for {clock() - shared.began:.0f} s: {shared.last}"
        else:
            shared = self._started(pool, work, meanwhile, began=clock())
            if name:
                self._in_progress[name] = shared
                shared.job.add_done_callback(lambda _: self._forget(name, shared))
        pending = asyncio.shield(asyncio.wrap_future(shared.job))
        pending.add_done_callback(
            lambda ended: ended.cancelled() or ended.exception()
        )  # otherwise asyncio logs an error that no call has read
        shared.waiting += 1
        try:
            if await self._waited(context, pending, shared, first):
                return pending.result()
        except asyncio.CancelledError:
            if name and shared.waiting == 1:  # no caller is left: it stops at its next step
                shared.over.set()
                self._forget(name, shared)
            raise
        finally:
            shared.waiting -= 1
            if not name:
                shared.over.set()
                shared.job.cancel()
        reason = self._goes_on(shared, clock()) if name else _too_slow(shared.job, shared.last, limit=self.limit)
        answer = shared.meanwhile(reason)
        if answer is None:
            raise TimeLimit(reason)
        return answer

    def _goes_on(self, shared: "_SharedWork", now: float) -> str:
        """Say why work that continues after its call has no answer yet."""
        if not shared.job.running():
            return f"{_not_begun(self.limit)}; ask the same again to wait for its answer"
        return (
            f"running for {now - shared.began:.0f} s and not finished (last report: {shared.last}); it "
            "continues: ask the same again to wait for its answer, which is not paid for twice. If the language model "
            f"is silent, its question is given up after {self.model_deadline:g} s"
        )

    def _forget(self, name: str, joined: "_SharedWork") -> None:
        """Forget work that is done or has no caller left, so that the next call of this name begins again."""
        if self._in_progress.get(name) is joined:
            self._in_progress.pop(name, None)

    def _started(self, pool: ThreadPoolExecutor, work: Work, meanwhile: Meanwhile, *, began: float) -> "_SharedWork":
        shared = _SharedWork(meanwhile, began)

        def progress(done: int, total: int | None, what: str = "") -> None:
            if shared.over.is_set():
                raise WorkEnded
            shared.last = f"{what} {done} of {total}" if total else what

        shared.job = pool.submit(_quietly, work, progress, shared.over)
        self._at_work.add(shared.job)
        shared.job.add_done_callback(self._at_work.discard)
        return shared

    async def _waited(
        self, context: Context, pending: "asyncio.Future[Mapping[str, Any]]", work: "_SharedWork", first: str
    ) -> bool:
        """Wait for the work up to the limit, reporting its progress; return whether it is done.

        Progress is what the protocol defines: a number that only grows (seconds since the call began), and a text.
        """
        clock = asyncio.get_running_loop().time
        began, number, said, next_report = clock(), 0.0, "", 0.0
        while not pending.done():
            now = clock()
            if now - began >= self.limit:
                return False
            line = work.last if said else first
            if now >= next_report or line not in (said, "started"):
                number, said, next_report = max(now - began, number + 0.001), line, now + self.heartbeat
                await context.report_progress(round(number, 3), None, line)
            await asyncio.wait({pending}, timeout=min(_POLL, began + self.limit - now))
        return True


def _threads(name: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=_MOST_AT_WORK, thread_name_prefix=name)


@dataclass(slots=True)
class _SharedWork:
    """Work that several calls may wait for, one after the other or at once."""

    meanwhile: Meanwhile
    began: float  # time of the loop
    job: Future[Mapping[str, Any]] = field(default_factory=Future)
    over: threading.Event = field(default_factory=threading.Event)
    last: str = "started"  # its latest report
    waiting: int = 0


def _quietly(work: Work, progress: Progress, over: threading.Event) -> Mapping[str, Any]:
    """Do the work; if it fails after the call has ended, log the failure."""
    try:
        return work(progress)
    except WorkEnded:
        logger.info("the work of a call that is over has stopped")
        raise
    except Exception as fault:
        if over.is_set():
            logger.info("the work of a call that is over failed: %s", fault)
        raise


def _too_slow(job: Future[Any], last: str, *, limit: float) -> str:
    if job.cancel():
        return f"{_not_begun(limit)}; ask again"
    return (
        f"not finished within {limit:g} s (last report: {last}); the results so far are kept, "
        "so ask again later or ask for less"
    )


def _not_begun(limit: float) -> str:
    return f"not begun within {limit:g} s: it waited behind {_MOST_AT_WORK} earlier calls"


def bounded_answer(answer: Mapping[str, Any], *, most: int | None, secrets: Secrets) -> CallToolResult:
    """Return the answer as text and as structured content, the same JSON; `most` None: it is already bounded.

    Raises InvalidInput if it cannot be cut to `most` characters.
    """
    value: Any = secrets.hide_within(rounded(json.loads(_text(answer))))
    text = _text(value if most is None else within(value, most))
    return CallToolResult(content=[TextContent(text=text)], structured_content=json.loads(text))


def within(value: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the JSON object in at most `most` characters: long texts and lists are cut, which `shortened` reports.

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
    """Return the items from `offset` on, at most `limit`, and no more than fit into `most` characters (but one at
    least).
    """
    fitting: list[Any] = []
    used = 0
    for item in items[offset:]:
        used += len(_text(item)) + len(", ")
        if fitting and (used > most or len(fitting) == limit):
            break
        fitting.append(item)
    ends = offset + len(fitting)
    return Page(items=fitting, total=len(items), next_offset=ends if ends < len(items) else None)


def paged(
    rest: Mapping[str, Any], name: str, items: Sequence[Any], *, offset: int, most: int = MOST_CHARACTERS
) -> dict[str, Any]:
    """Return the answer `rest` with a page of the items under `name`, as many as fit beside it."""
    beside = _cut(dict(rest), most * 3 // 4)
    listed = page(items, offset=offset, most=most - len(_text(beside)) - _PAGE_MARKS)
    return {**beside, name: listed.items, "total": listed.total, "next_offset": listed.next_offset}


def text_page(text: str, *, offset: int, limit: int) -> Page:
    """Return at most `limit` characters of a text from an offset, as one item, up to the end of a paragraph."""
    part = text[offset : offset + limit]
    if offset + limit < len(text) and (ends := part.rfind("\n\n", limit // 2)) > 0:
        part = part[: ends + 2]
    ends = offset + len(part)
    return Page(items=[part], total=len(text), next_offset=ends if part and ends < len(text) else None)


def _text(value: Any) -> str:
    return encodable(json.dumps(numbers_or_null(value), ensure_ascii=False, default=str))


def _cut(value: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the value cut to `most` characters, or as close to that as possible."""
    for longest, entries in _CUTS:
        if len(_text(value)) <= most:
            break
        value = {**_shortened(value, longest, entries), "shortened": True}
    return value


def _shortened(value: Any, longest: int, entries: int) -> Any:
    if isinstance(value, dict):
        return {key: _shortened(entry, longest, entries) for key, entry in value.items()}
    if isinstance(value, list):
        first = [_shortened(entry, longest, entries) for entry in value[:entries]]
        left_out = len(value) - len(first)
        # A text among objects would violate the schema of the tool.
        return [*first, f"… ({left_out} more)"] if left_out and not isinstance(value[0], dict) else first
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}… ({len(value) - longest} more characters)"
    return value


def call_key(*arguments: Any) -> str:
    """Return a key for what a call requests, so that an equal call is recognised."""
    return sha256(json.dumps(arguments, sort_keys=True, default=str).encode("utf-8", "replace")).hexdigest()
