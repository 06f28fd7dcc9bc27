"""Evidence: the answers to a profile's questions, side by side, and a new question answered at once."""

import json
from concurrent.futures import wait
from dataclasses import replace
from datetime import date
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from paper_assets.digests.evidence import EvidenceEntry, evidence_of, remarks_on
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed
from paper_assets.interfaces.page.background_commands import rank_again_state
from paper_assets.interfaces.page.desk import Desk, day_of, desk_of, folder_of, page, profile_of, redirect_with_note
from paper_assets.interfaces.page.display import as_sentence, isolate
from paper_assets.interfaces.page.liked_form import FieldFault
from paper_assets.interfaces.page.settings_form import missing_model
from paper_assets.pipeline.profiles import load_valid_profile, usable_profile
from paper_assets.pipeline.retrievals import ask
from paper_assets.profile import Profile, read_json
from paper_assets.retrieval.plan import categories_of, parse_plan
from paper_assets.stores.documents import retrievals_of
from paper_assets.stores.profiles import file_version, write_json
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.text.cleaning import without_controls

_CATEGORIES_SHOWN = 8
_STANCES = ({"name": "for", "stance": "supports"}, {"name": "against", "stance": "contradicts"})
_PATIENCE = 2.0  # seconds; without a language model an answer is there before
NO_MODEL = "no language model is set up"
SPLITS = ("stance", "category", "own")  # how a question's documents are divided into sides


def show_evidence(request: Request) -> Response:
    """Show the stored answers of a day, and the answer to a question that was typed, or that it is being answered."""
    desk, profile = desk_of(request), profile_of(request)
    day = day_of(request, profile)
    stored = retrievals_of(desk.warehouse, day, profile)
    owner = usable_profile(desk.workspace, profile)
    typed = _typed(request)
    values: dict[str, Any] = {"answer": None, "fault": None, "field": "question", "running": False}
    missing = missing_model(desk)

    def readable(record: dict[str, Any]) -> EvidenceEntry:
        return _without_variables(evidence_of(record), missing)

    kept = next((each for each in owner.questions if _text(each) == typed["question"]), None)
    of_question = [record for record in stored if kept and _text(record) == typed["question"]]
    answers = of_question or stored
    if typed["question"] and not of_question:
        answers = []  # the view of one question
        try:
            answer = isolate("The answer", lambda: _answer(desk, owner, day, typed, dict(kept) if kept else None))
            if answer is None:
                values["running"] = True
            elif isinstance(answer, dict):
                values["answer"] = readable(answer)
                answers = [answer]
            else:
                values["fault"] = f"{answer}."
        except InvalidInput as fault:
            field = fault.field if isinstance(fault, FieldFault) else "question"
            values |= {"fault": as_sentence(fault), "field": field}
    return page(
        request,
        "evidence.html.jinja",
        day=day,
        questions=[
            isolate(f"Question {number}", lambda answer=answer: readable(answer))  # type: ignore[misc]
            for number, answer in enumerate(of_question or (() if typed["question"] else stored), 1)
        ],
        asks=len(owner.questions),
        again=rank_again_state(request, profile, day) if day == latest_ranking_day(desk.warehouse, profile) else None,
        typed=typed,
        known=kept is not None,
        compares=typed["split"] == "stance" and not (kept and kept.get("answer")),
        categories=categories_of(owner, desk.settings)[:_CATEGORIES_SHOWN],
        editable=folder_of(desk, profile) is not None,
        remarks=remarks_on(answers),
        query=request.url.query,
        no_model=NO_MODEL,
        **values,
    )


def answer_state(request: Request) -> Response:
    """Return a text that changes when the typed question is answered, for the script that watches it."""
    desk, profile = desk_of(request), profile_of(request)
    task = desk.tasks.get("evidence", _key(profile, day_of(request, profile), _typed(request)))
    return PlainTextResponse(task.state if task else "none")


def keep_question(request: Request) -> Response:
    """Add a question to the profile's `questions.json`; a question that is already there is kept once."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    question = str(form.get("question", "")).strip()
    if not question:
        raise InvalidInput("type the question that you want to keep")
    is_new = keep_plan(
        desk,
        profile,
        question,
        split=str(form.get("split", SPLITS[0])),
        sides=str(form.get("sides", "")),
        answer=form.get("answer") == "1",
    )
    note = "The question is kept. From the next run on it is answered every day."
    return redirect_with_note(
        request,
        address_of_question(profile, question),
        note if is_new else "This question is kept already; nothing was changed.",
    )


def address_of_question(profile: str, question: str) -> str:
    """Return the address of one question: its stored answer, or one that is made at once."""
    return f"/p/{profile}/evidence?{urlencode({'question': question})}"


def questions_of(desk: Desk, profile: str) -> list[tuple[str, str]]:
    """Return the kept questions of a profile, each with its address; none if the profile was never readable."""
    try:
        workspace = replace(desk.workspace, warehouse=desk.warehouse)
        texts = map(_text, usable_profile(workspace, profile).questions)
        return [(text, address_of_question(profile, text)) for text in texts]
    except InvalidProfile:
        return []


def keep_plan(
    desk: Desk, profile: str, question: str, *, split: str = SPLITS[0], sides: str = "", answer: bool = False
) -> bool:
    """Add a question to the profile's file; False if it is there already. `answer`: it is answered in sentences.

    Raises NotComputed, InvalidInput.
    """
    file, version, questions = _kept_questions(desk, profile)
    if question in map(_text, questions):
        return False
    record = _plan(question, split, sides)
    if answer:
        record |= {"answer": True, "data_type": ["abstract", "fulltext"]}
    parse_plan(record, source="the question", default_sides=())  # an invalid plan never reaches the file
    write_json(file, [*questions, record], version=version, turns=desk.editing)
    return True


def _kept_questions(desk: Desk, profile: str) -> tuple[Any, str, list[Any]]:
    """Return the profile's file of questions, its version and content. Raises NotComputed, InvalidProfile."""
    folder = folder_of(desk, profile)
    if folder is None:
        raise NotComputed(f"the folder of profile {profile!r} was removed; its questions cannot be edited")
    load_valid_profile(folder)  # a broken file is not overwritten
    file = folder / "questions.json"
    version = file_version(file)
    return file, version, list(read_json(file)) if file.exists() else []  # type: ignore[call-overload]


def _plan(question: str, split: str, sides: str) -> dict[str, Any]:
    """Return the plan of a typed question. Own sides: one a line, a category or `name: what this side says`.

    Raises InvalidInput.
    """
    record: dict[str, Any] = {"rewritten_question": question, "question": question, "generation_required": True}
    named = [line.partition(":") for line in sides.splitlines() if line.strip()]
    if split == "stance":
        record["filters"] = {"sides": [dict(side) for side in _STANCES]}
    elif split == "own" and named:
        if not all(name.strip() for name, _, _ in named):
            raise FieldFault("sides", "a side has no name; write it before the colon, as in yes: retrieval helps")
        record["filters"] = {
            "sides": [
                {"name": name.strip(), "query": words.strip()} if words.strip() else name.strip()
                for name, _, words in named
            ]
        }
    return record


def _typed(request: Request) -> dict[str, str]:
    """Return the question as it was typed, what is compared, and the typed sides."""
    query = request.query_params
    split = query.get("split", "own" if query.get("sides") else SPLITS[0])
    return {
        "question": without_controls(query.get("question", "")).strip()[:2000],
        "split": split if split in SPLITS else SPLITS[0],
        "sides": without_controls(query.get("sides", "")).strip()[:4000],
    }


def _answer(
    desk: Desk, owner: Profile, day: date, typed: dict[str, str], kept: dict[str, Any] | None
) -> dict[str, Any] | None:
    """Return the answer to the typed question, by its `kept` plan if it has one; None while it is made in the
    background. Raises InvalidInput.
    """
    key = _key(owner.name, day, typed)
    task = desk.tasks.start("evidence", key, lambda _: ask(desk.workspace, owner, kept or _plan(**typed), as_of=day))
    wait([task.future], timeout=_PATIENCE)
    if not task.future.done():
        return None
    desk.tasks.forget("evidence", key)  # the same question is answered again; the language model's labels are stored
    answer: dict[str, Any] = task.future.result()
    return answer


def _key(profile: str, day: date, typed: dict[str, str]) -> tuple[object, ...]:
    return profile, day, *typed.values()


def _without_variables(answer: EvidenceEntry, missing: str | None) -> EvidenceEntry:
    """Return the answer with a note on the missing language model that names no variable."""
    notes = tuple(note.replace(missing, NO_MODEL) for note in answer.notes) if missing else answer.notes
    return replace(answer, notes=notes)


def _text(question: Any) -> str:
    return str(question.get("question") or question.get("rewritten_question") or json.dumps(question))
