"""Ask the stored papers a question: quotations at once, and an answer written by the language model in the background.

The quotations cost nothing. The page shows the cost of a written answer before it is requested. A thread of this
process writes it, and asking again after a restart costs nothing, because the model's answers are stored by content.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response

from paper_assets.errors import InvalidInput, PaperAssetsError, PaperNotFound
from paper_assets.interfaces.background import Task
from paper_assets.interfaces.page.desk import Desk, desk_of, folder_of, page, profile_of
from paper_assets.interfaces.page.display import Unshown, as_sentence, isolate
from paper_assets.interfaces.page.evidence import missing_model
from paper_assets.interfaces.page.paper_rows import in_only_profile, reader_of
from paper_assets.interfaces.page.search import kept_answers_of, show_search
from paper_assets.pipeline.desk_answers import (
    FETCHING_SECONDS,
    MOST_FETCHED,
    AnsweringContext,
    PreparedQuestion,
    QuestionOptions,
    answer_as_markdown,
    answer_question,
    prepare_question,
)
from paper_assets.progress import WorkEnded
from paper_assets.retrieval.answering_sentences import parts_of
from paper_assets.retrieval.cited_answer import (
    NEAREST,
    NOT_CHECKED,
    UNANSWERED,
    Answer,
    answer_from_record,
    dropped_in_words,
    numbered,
    paid_in_words,
)
from paper_assets.retrieval.question_answering import LONGEST_QUESTION
from paper_assets.stores.papers import latest_day
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line

_FETCHES = (0, 5, 10, MOST_FETCHED)
_BEGINS_AS_QUESTION = re.compile(
    r"(?:what|which|how|why|when|where|who|do|does|did|is|are|was|were|can|could|should|will|has|have)\s+[^\s:\"]+"
    r"(?:\s+[^\s:\"]+){2,}$",
    re.IGNORECASE,
)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedQuestion:
    """A question as typed: whether for and against are separate, and how many full texts may be fetched."""

    question: str
    sides: bool = False
    fetch: int = 0

    @property
    def query(self) -> str:
        """The question as the query of an address."""
        fields = {"q": self.question, "sides": "1" if self.sides else "", "fetch": self.fetch or ""}
        return urlencode({name: value for name, value in fields.items() if value})

    def options(self, profile: str | None, **more: Any) -> QuestionOptions:
        """Return the options of an answer for a profile."""
        return QuestionOptions(profile=profile, sides=self.sides, fetch=self.fetch, **more)


def search_or_ask(request: Request) -> Response:
    """Answer a question; search for words."""
    query = request.query_params
    text = one_line(query.get("q", ""))
    asks = "kept" in query or (is_question(text) and query.get("as") != "words" and "like" not in query)
    return show_answer(request) if asks else show_search(request)


def is_question(text: str) -> bool:
    """Return whether what was typed is a question: it ends as one, or begins as one and has no filter."""
    return text.endswith("?") or bool(_BEGINS_AS_QUESTION.match(text))


def lead_to_search(request: Request) -> Response:
    """Lead the address that questions had before to the search, which answers them."""
    reader_of(request)
    fields = {{"question": "q"}.get(name, name): value for name, value in request.query_params.items()}
    return RedirectResponse(f"{request.url.path.removesuffix('ask')}search?{urlencode(fields)}".rstrip("?"), 303)


def show_answer(request: Request) -> Response:
    """Show the passages for a question, what a written answer costs, and the answer where it is written."""
    desk, profile = desk_of(request), reader_of(request)
    if elsewhere := in_only_profile(request, desk):
        return elsewhere
    typed = _typed_question(request.query_params)
    values: dict[str, Any] = {"fault": None, "quoted": None, "written": None, "prepared": None, "task": None}
    answers = kept_answers_of(request, desk, profile)
    number = request.query_params.get("kept", "")
    if number:
        chosen = next((kept_answer for kept_answer in answers if f"{kept_answer.number}" == number), None)
        if chosen is None:
            raise PaperNotFound(f"there is no kept answer {number[:20]!r}")
        typed = TypedQuestion(question=chosen.question, sides=bool(chosen.options.get("sides")))
        values |= {"written": numbered(answer_from_record(chosen.answer)), "kept_on": chosen.asked_at.date()}
        if request.query_params.get("format") == "markdown":
            return _markdown(desk, values["written"].answer)
    else:
        values |= _answered(desk, profile, typed)
        answer = values["written"] or values["quoted"]
        if request.query_params.get("format") == "markdown" and answer:
            return _markdown(desk, answer.answer)
    return page(
        request,
        "ask.html.jinja",
        status=400 if values["fault"] and not values["task"] else 200,
        asked=typed,
        fetches=() if missing_model(desk) else _FETCHES,  # only a written answer fetches
        longest=LONGEST_QUESTION,
        unanswered=UNANSWERED,
        nearest=NEAREST,
        parts=len(parts_of(typed.question)),
        not_checked=NOT_CHECKED,
        dropped_in_words=dropped_in_words,
        paid_in_words=paid_in_words,
        empty=latest_day(desk.warehouse) is None,
        savable=bool(profile and typed.question and folder_of(desk, profile)),
        text=typed.question,
        liked=None,
        address=f"kept={number}" if number else typed.query,
        **({"state": "", "running": False, "kept_on": None} | values),
    )


def _answered(desk: Desk, profile: str | None, typed: TypedQuestion) -> dict[str, Any]:
    """Return what the page shows for a question: the written answer, else its quotations, and why there is none."""
    task = desk.tasks.get("answering", (profile, typed))
    state = task.state if task else "none"  # once: the answer may be done while the quotations are gathered
    values: dict[str, Any] = {"task": task, "state": state, "running": state.startswith("running")}
    done: Answer | None = None
    try:
        done = task.future.result() if task and state == "done" else None
    except PaperAssetsError as fault:
        values["fault"] = f"The answer could not be written: {fault}."
    except Exception as fault:
        logger.error("the answer to %r failed", typed.question[:200], exc_info=fault)
        values["fault"] = f"The answer could not be written ({type(fault).__name__}); the log has more."
    if done and not done.failure:
        return {**values, "written": numbered(done)}
    if done:  # the present quotations are shown, with the offer to write again
        values["fault"] = f"The answer could not be written: {done.failure}."
    try:
        quoted = isolate("The quotations", lambda: _quoted(desk, profile, typed))
        return {**values, "fault": f"{quoted}."} if isinstance(quoted, Unshown) else {**values, **quoted}
    except InvalidInput as fault:
        return {**values, "fault": as_sentence(fault)}


def write_answer(request: Request) -> Response:
    """Start to write the answer, `again` if so asked, or cancel it; a question in progress is not asked twice."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    typed = _typed_question(form)
    if not typed.question:
        raise InvalidInput("type the question that you want to ask")
    what = str(form.get("what", ""))
    if what in ("cancel", "again"):
        desk.tasks.forget("answering", (profile, typed))
    if what != "cancel":
        desk.tasks.start(
            "answering",
            (profile, typed),
            lambda task: _write(desk, profile, typed, task, again=what == "again"),
            failed=lambda answer: answer.failure is not None,
        )
    return RedirectResponse(f"/p/{profile}/search?{typed.query}", status_code=303)


def answer_state(request: Request) -> Response:
    """Return a text that changes when the answer makes progress, for the script that watches it."""
    desk, profile = desk_of(request), profile_of(request)
    task = desk.tasks.get("answering", (profile, _typed_question(request.query_params)))
    return PlainTextResponse(task.state if task else "none")


def _quoted(desk: Desk, profile: str | None, typed: TypedQuestion) -> dict[str, Any]:
    """Return the quotations for a question, and what a written answer would cost; nothing is fetched or paid for."""
    context, options = _context(desk, desk.warehouse), replace(typed, fetch=0).options(profile)
    prepared = prepare_question(context, typed.question, options)
    answer = answer_question(context, replace(prepared, config=None), options)
    return {"prepared": prepared, "quoted": numbered(answer)}


def _write(desk: Desk, profile: str, typed: TypedQuestion, task: Task, *, again: bool) -> Answer:
    """Gather, fetch where allowed, and write; runs in a separate thread."""

    def progress(done: int, total: int | None, stage: str = "", /) -> None:
        task.progress = f"{stage} ({done + 1} of {total})" if total else stage

    context, options = _context(desk, desk.for_writing), typed.options(profile, again=again)
    prepared: PreparedQuestion = prepare_question(context, typed.question, options, progress=progress)
    options = replace(options, most_calls=max(prepared.estimate.calls, 1))

    def step(what: str) -> None:
        if task.cancelled:
            raise WorkEnded
        task.progress = what

    return answer_question(context, prepared, options, progress=step)


def _context(desk: Desk, warehouse: Warehouse) -> AnsweringContext:
    return AnsweringContext(
        settings=desk.settings,
        environ=desk.environ,
        warehouse=warehouse,
        embedder=desk.workspace.embedder(),
        fetching=FETCHING_SECONDS,
    )


def _typed_question(fields: Mapping[str, Any]) -> TypedQuestion:
    fetch = str(fields.get("fetch", ""))
    return TypedQuestion(
        question=one_line(str(fields.get("q", "")))[:LONGEST_QUESTION],
        sides=str(fields.get("sides", "")) == "1",
        fetch=int(fetch) if fetch in map(str, _FETCHES) else 0,
    )


def _markdown(desk: Desk, answer: Answer) -> Response:
    headers = {"Content-Disposition": 'attachment; filename="answer.md"'}
    return Response(answer_as_markdown(answer, desk.warehouse), media_type="text/markdown", headers=headers)
