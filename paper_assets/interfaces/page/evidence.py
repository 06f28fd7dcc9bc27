"""Evidence: the answers to a profile's questions, side by side, and a new question asked at once (SPEC V2)."""

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.evidence import evidence_of, remarks_on
from paper_assets.errors import InvalidInput, NotComputed
from paper_assets.interfaces.page.desk import Desk, day_of, desk_of, folder_of, page, profile_of, redirect_with_note
from paper_assets.pipeline.asking import ask
from paper_assets.pipeline.profiles import load_valid_profile, usable_profile
from paper_assets.profile import read_json
from paper_assets.retrieval.plan import categories_of, parse_plan
from paper_assets.stores.profile_files import file_version, write_json
from paper_assets.stores.retrievals import retrievals_of

_SIDES_SHOWN = 8


def show_evidence(request: Request) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    day, asked = day_of(request, profile), request.query_params
    stored = retrievals_of(desk.warehouse, day, profile)
    owner = usable_profile(desk.workspace, profile)
    typed = {"question": asked.get("question", "").strip()[:2000], "sides": asked.get("sides", "").strip()[:4000]}
    said: dict[str, Any] = {"answer": None, "fault": None, "remarks": remarks_on(stored)}
    if typed["question"]:
        try:
            answer = ask(desk.workspace, owner, _plan(**typed), as_of=day)
            said |= {"answer": evidence_of(answer), "remarks": remarks_on([*stored, answer])}
        except InvalidInput as fault:
            said["fault"] = str(fault)
    return page(
        request,
        "evidence.html.jinja",
        day=day,
        questions=[evidence_of(answer) for answer in stored],
        asks=len(owner.questions),
        typed=typed,
        known=typed["question"] in {_words(question) for question in owner.questions},
        categories=categories_of(owner, desk.settings)[:_SIDES_SHOWN],
        editable=folder_of(desk, profile) is not None,
        **said,
    )


def keep_question(request: Request) -> Response:
    """Add a question to the profile's `questions.json`; one that stands there is kept once."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    question = str(form.get("question", "")).strip()
    file, version, kept = _kept(desk, profile)
    if not question:
        raise InvalidInput("write the question that is to be kept")
    back = f"/p/{profile}/evidence"
    if question in map(_words, kept):
        return redirect_with_note(request, back, "That question is kept already; nothing was changed.")
    record = _plan(question, str(form.get("sides", "")))
    parse_plan(record, source="the question", default_sides=())  # a broken one never reaches the file
    write_json(file, [*kept, record], version=version, turns=desk.editing)
    return redirect_with_note(request, back, "The question is kept: from the next run on it is answered every day.")


def _kept(desk: Desk, profile: str) -> tuple[Any, str, list[Any]]:
    """The profile's file of questions, what it is now, and what stands in it. Raises NotComputed, InvalidProfile."""
    folder = folder_of(desk, profile)
    if folder is None:
        raise NotComputed(f"profile {profile!r} has no folder any more; its questions cannot be edited")
    load_valid_profile(folder)  # a broken file is mended by hand, not written over
    file = folder / "questions.json"
    version = file_version(file)
    return file, version, list(read_json(file)) if file.exists() else []  # type: ignore[call-overload]


def _plan(question: str, sides: str) -> dict[str, Any]:
    """A plan of R1 from what was typed: a side a line, its name alone (a category) or `name: what it says`."""
    record: dict[str, Any] = {"rewritten_question": question, "question": question, "generation_required": True}
    named = [line.partition(":") for line in sides.splitlines() if line.strip()]
    if named:
        record["filters"] = {
            "sides": [
                {"name": name.strip(), "query": words.strip()} if words.strip() else name.strip()
                for name, _, words in named
            ]
        }
    return record


def _words(question: Any) -> str:
    return str(question.get("question") or question.get("rewritten_question") or json.dumps(question))
