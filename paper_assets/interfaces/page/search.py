"""Search: words are searched, a question is answered; a search can be kept as an interest or a question.

The quotations of an answer cost nothing. The page shows the cost of a written answer before it is requested. A thread
of this process writes it, and asking again after a restart costs nothing, because the model's answers are stored by
content.
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
from paper_assets.interfaces.page.desk import (
    Desk,
    desk_of,
    folder_of,
    interests_of,
    may_see,
    now,
    page,
    person_of,
    profile_of,
    redirect_with_note,
)
from paper_assets.interfaces.page.display import Unshown, as_sentence, isolate, readable_title
from paper_assets.interfaces.page.evidence import address_of_question, keep_plan, missing_model, questions_of
from paper_assets.interfaces.page.paper_rows import corpus_of, in_only_profile, rated_by, reader_of, rows_found
from paper_assets.interfaces.page.today import ratings_part
from paper_assets.interfaces.page.welcome import place_of
from paper_assets.learning.ratings import is_profile
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
from paper_assets.retrieval.desk_search import SearchPage, search_desk, similar_papers
from paper_assets.retrieval.merge import Candidate, access
from paper_assets.retrieval.question_answering import LONGEST_QUESTION, extractive_answer
from paper_assets.retrieval.search import Corpus, search
from paper_assets.retrieval.search_query import SearchQuery, parse_search_query
from paper_assets.setup.draft import ProfileDraft
from paper_assets.setup.profile_editing import add_to_profile
from paper_assets.stores.documents import DataType
from paper_assets.stores.kept_answers import KeptAnswer, kept_answers
from paper_assets.stores.papers import find_paper, latest_day
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line
from paper_assets.text.words import words_in

_ON_A_PAGE = 20
_LAST_PAGE = 50  # MOST_RESULTS of the search
_SIMILAR = 20
_ANY_QUESTION = "what is this paper about"
_PASSAGES = 8  # their sentences are enough for the embedding model to be compiled
FILTER_HELP: tuple[tuple[str, str], ...] = (
    ('"graph neural network"', "the phrase occurs in the title or abstract"),
    ('author:Vaswani · author:"Ashish Vaswani"', "an author; several authors must all match"),
    ("category:cs.LG · category:stat", "a category, or all of an archive; several are alternatives"),
    ("from:2026-03 · to:2026-03-15", "first submission, from and to a day, month or year"),
    ("is:worth · is:later · is:no · is:shown · is:unseen", "your ratings, and what your lists have shown"),
    ("has:code · has:pdf", "a code repository is known; a full text is stored"),
    ("in:profile", "papers that passed the filters of this profile"),
    ("in:fulltexts · in:rewrites", "search full texts or rewrites instead of abstracts"),
)

logger = logging.getLogger(__name__)


def show_search(request: Request) -> Response:
    """Show the papers that a query finds, best first, or the papers most like one of them."""
    desk, profile, parameters = desk_of(request), reader_of(request), request.query_params
    if elsewhere := in_only_profile(request, desk):
        return elsewhere
    text, like = one_line(parameters.get("q", ""))[:2_000], one_line(parameters.get("like", ""))[:200]
    number = _page_number(parameters.get("page", "1"))
    values: dict[str, Any] = {"query": None, "fault": None, "rows": None, "liked": None, "found": None}
    values |= {"questions": (), "answers": ()}
    if like:
        paper = find_paper(desk.warehouse, like)
        if paper is None:
            raise PaperNotFound(f"paper {like!r} is not stored, so no similar papers can be found")
        similar = isolate("The similar papers", lambda: similar_papers(corpus_of(desk), paper, limit=_SIMILAR))
        values["liked"] = {"paper_id": paper.paper_id, "title": readable_title(paper.title)}
        values |= {"fault": f"{similar}."} if isinstance(similar, Unshown) else {"rows": rows_found(desk, similar)}
    elif text:
        try:
            query = _allowed(request, parse_search_query(text))
            results = isolate("The search", lambda: _searched(desk, query, profile, number))
            values["query"] = query
            if isinstance(results, Unshown):
                values["fault"] = f"{results}."
            else:
                values |= {"found": results, "rows": rows_found(desk, results.papers)}
        except InvalidInput as fault:
            values["fault"] = f"This search cannot be read: {str(fault).removeprefix('search: ')}."
    else:
        preload(desk)
        if profile:
            values["questions"] = questions_of(desk, profile)
        values["answers"] = kept_answers_of(request, desk, profile)[::-1]
    ratings, newest = rated_by(desk, profile), latest_day(desk.warehouse, until=now().date())
    return page(
        request,
        "search.html.jinja",
        status=400 if values["fault"] else 200,
        text=text,
        score="similar" if values["liked"] else "match",
        number=number,
        first=(number - 1) * _ON_A_PAGE + 1,
        earlier=_address(text, number - 1 if values["rows"] else 1) if number > 1 else None,
        later=_address(text, number + 1) if values["found"] and values["found"].more and number < _LAST_PAGE else None,
        help=FILTER_HELP,
        empty=newest is None,
        ratings=ratings,
        state=ratings_part(desk.warehouse, profile),
        savable=bool(profile and folder_of(desk, profile) and values["query"] and words_in(values["query"].words)),
        **values,
    )


def kept_answers_of(request: Request, desk: Desk, profile: str | None) -> list[KeptAnswer]:
    """Return the kept answers that the reader may see: in a lab those of the profile."""
    answers = kept_answers(desk.warehouse)
    return [answer for answer in answers if person_of(request) is None or answer.options.get("profile") == profile]


def keep_search(request: Request) -> Response:
    """Add the words of a search to the profile, as an interest or as a question."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    text = one_line(str(form.get("q", "")))[:2_000]
    words = parse_search_query(text).words.strip()
    if not words_in(words):
        raise InvalidInput("this search has no words that could be kept; type some in addition to the filters")
    back = f"/p/{profile}/search?{urlencode({'q': text})}"
    if form.get("as") == "question":
        is_new = keep_plan(desk, profile, words)
        note = f"“{words}” is a question of {profile} now. From the next run on it is answered every day."
        return redirect_with_note(
            request,
            address_of_question(profile, words),
            note if is_new else f"“{words}” is a question of {profile} already.",
        )
    is_new = _keep_interest(desk, profile, words)
    note = f"“{words}” is a main interest of {profile} now. The next ranking uses it."
    return redirect_with_note(request, back, note if is_new else f"“{words}” is an interest of {profile} already.")


def _keep_interest(desk: Desk, profile: str, words: str) -> bool:
    """Add a main interest to the profile's file; False if it is there. Raises InvalidInput, InvalidProfile."""
    if words.lower() in map(str.lower, interests_of(desk, profile)):
        return False
    add_to_profile(place_of(desk), profile, ProfileDraft(name=profile, interests=(words,)), now=now())
    return True


def _searched(desk: Desk, query: SearchQuery, profile: str | None, number: int) -> SearchPage:
    return search_desk(corpus_of(desk), query, profile=profile, offset=(number - 1) * _ON_A_PAGE, limit=_ON_A_PAGE)


def _allowed(request: Request, query: SearchQuery) -> SearchQuery:
    """Return the query if it refers to a profile that exists and is this person's. Raises InvalidInput."""
    if person_of(request) and "rewrite" in query.data_types:
        raise InvalidInput("search: in:rewrites is not searched in a lab, because rewrites belong to profiles")
    if query.profile not in (None, "profile") and person_of(request) and not may_see(request, str(query.profile)):
        raise InvalidInput(f"search: in:{query.profile} is not a profile of yours")
    desk = desk_of(request)
    if query.profile not in (None, "profile") and not is_profile(
        desk.warehouse, str(query.profile), desk.settings.profiles_dir
    ):
        raise InvalidInput(f"search: there is no profile {str(query.profile)[:60]!r} to search in")
    return query


def _address(text: str, number: int) -> str:
    return f"?{urlencode({'q': text, 'page': number} if number > 1 else {'q': text})}"


def _page_number(text: str) -> int:
    return min(max(int(text), 1), _LAST_PAGE) if text.isascii() and text.isdigit() and len(text) < 6 else 1


def preload(desk: Desk) -> Task:
    """Load in the background what the first search or question needs, once for each desk.

    Called when a reader opens the view and begins to type, not when the page is served: the model and the documents of
    8,000 papers take two seconds of both cores and 400 MB, which a desk without questions does not need.
    """

    def load(_: Task) -> bool:
        try:
            corpus = corpus_of(desk)
            passages = _nearest(corpus, "abstract") + _nearest(corpus, "fulltext")
            extractive_answer(_ANY_QUESTION, passages, embedder=corpus.embedder)
            return bool(passages)
        except PaperAssetsError as fault:  # the reader's own search or question will explain it
            logger.info("not loaded in advance: %s", fault)
            return False
        except Exception:
            logger.exception("not loaded in advance")
            return False

    return desk.tasks.start("loading", None, load, failed=lambda loaded: not loaded)


def _nearest(corpus: Corpus, data_type: DataType) -> tuple[Candidate, ...]:
    return search(corpus, _ANY_QUESTION, data_type=data_type, where=access(None), k=_PASSAGES).candidates


_FETCHES = (0, 5, 10, MOST_FETCHED)
_BEGINS_AS_QUESTION = re.compile(
    r"(?:what|which|how|why|when|where|who|do|does|did|is|are|was|were|can|could|should|will|has|have)\s+[^\s:\"]+"
    r"(?:\s+[^\s:\"]+){2,}$",
    re.IGNORECASE,
)


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
