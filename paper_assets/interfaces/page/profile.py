"""Edit a profile, with a live preview of the papers that would enter and leave its list, and save its file.

The profile's schema validates the edit, and the ranking itself makes the preview. After saving, a sensor starts the new
ranking.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.content import change_set
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed
from paper_assets.interfaces.page.desk import (
    Desk,
    desk_of,
    folder_of,
    isolate,
    page,
    profile_of,
    readable_title,
    redirect_with_note,
)
from paper_assets.interfaces.page.profile_form import (
    GROUPS,
    OWN_WEIGHTS,
    WEIGHTS,
    edited_record,
    field_faults,
    form_values,
    submitted_values,
)
from paper_assets.learning.ratings import IN_WORDS, ratings_of
from paper_assets.pipeline import preview as previews
from paper_assets.pipeline.profiles import load_valid_profile, usable_profile
from paper_assets.profile import profile_content, read_json
from paper_assets.ranking.filters import FILTERS
from paper_assets.ranking.final_list import order_value
from paper_assets.stores.profiles import ProfileEdited, file_version, write_json
from paper_assets.stores.rankings import latest_ranking_day, ranking
from paper_assets.text.cleaning import one_line
from paper_assets.weights import DIMENSIONS

_LEFT_OUT = {each.code: each.counted for each in FILTERS}
_MOST_RATED = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The form as it is shown: its values, the version of the file it edits, faults by field, and the preview.

    `refused`: what was submitted was not saved, so the browser must warn before it is lost.
    """

    values: dict[str, Any]
    version: str
    faults: Mapping[str, str] = field(default_factory=dict)
    fault: str | None = None
    preview: Mapping[str, Any] | None = None
    refused: bool = False


def show_profile(request: Request) -> Response:
    """Show the form, what the ratings have taught, and preferences that never match."""
    desk, profile = desk_of(request), profile_of(request)
    record, version = _read_file(desk, profile)
    faults, other = field_faults(record)
    values = form_values(record, weights=_weights(desk, record))
    return _page(request, _Form(values=values, version=version, faults=faults, fault=" ".join(other) or None))


def preview_profile(request: Request) -> Response:
    """Show the list of the newest day as the submitted profile would have it; stores nothing."""
    desk, profile, submitted = desk_of(request), profile_of(request), request.state.form
    form = _Form(values=submitted_values(submitted), version=str(submitted.get("version", "")), refused=True)
    try:
        record = edited_record(_read_file(desk, profile)[0], form.values)
        faults, other = field_faults(record)
        if faults or other:
            shown = {"fault": " ".join(other) or "Correct the marked fields to see the preview."}
            return _page(request, replace(form, faults=faults, preview=shown))
        found = isolate("The preview", lambda: _previewed(desk, profile, record))
        return _page(request, replace(form, preview=found if isinstance(found, dict) else {"fault": f"{found}."}))
    except (InvalidInput, NotComputed) as fault:
        return _page(request, replace(form, preview={"fault": str(fault)}))


def save_profile(request: Request) -> Response:
    """Write the file in one step, if it is valid and was not edited elsewhere since it was read."""
    desk, profile, submitted = desk_of(request), profile_of(request), request.state.form
    form = _Form(values=submitted_values(submitted), version=str(submitted.get("version", "")), refused=True)
    folder = folder_of(desk, profile)
    if folder is None:
        raise NotComputed(f"the folder of profile {profile!r} was removed; it cannot be edited")
    file = folder / "profile.json"
    try:
        record, _ = _read_file(desk, profile)
        edited = edited_record(record, form.values)
        faults, other = field_faults(edited)
        if faults or other:
            count = "one field" if len(faults) == 1 else f"{len(faults)} fields"
            said = " ".join(other) or f"correct {count} below"
            return _page(
                request, replace(form, faults=faults, fault=f"Could not save the profile: {said}."), status=400
            )
        if edited == record:
            return redirect_with_note(request, f"/p/{profile}/profile", "No changes to save.")
        write_json(file, edited, version=form.version, turns=desk.editing)
    except ProfileEdited:
        said = (
            "Could not save the profile: it was edited elsewhere meanwhile. Your changes are still below; save again "
            "to overwrite the other edit."
        )
        return _page(request, replace(form, version=file_version(file), fault=said), status=409)
    except InvalidProfile as fault:
        return _page(request, replace(form, fault=f"Could not save the profile: {fault}"), status=400)
    note = (
        "Profile saved. While `make dev` or `paper-assets up` runs, the list follows automatically; otherwise run "
        f"paper-assets run --profile {profile}."
    )
    return redirect_with_note(request, f"/p/{profile}/profile", note.replace("`", ""))


def _page(request: Request, form: _Form, *, status: int = 200) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    day = latest_ranking_day(desk.warehouse, profile)
    rated = ratings_of(desk.warehouse, profile)
    header = ranking(desk.warehouse, day, profile).header if day else {}
    return page(
        request,
        "profile.html.jinja",
        status=status,
        groups=GROUPS,
        weights=WEIGHTS,
        own_weights=OWN_WEIGHTS,
        typed=form.values,
        version=form.version,
        refused=form.refused,
        faults=form.faults,
        fault=form.fault,
        preview=form.preview,
        latest=day,
        warnings=[one_line(line) for line in header.get("warnings", ())],
        learning=header.get("learning"),
        rated=rated[::-1][:_MOST_RATED],
        rated_count=Counter(each.rating for each in rated),
        words=IN_WORDS,
        folder=desk.settings.profiles_dir / profile,
    )


def _previewed(desk: Desk, profile: str, record: dict[str, Any]) -> dict[str, Any]:
    """The edited profile's list compared with the stored one. Raises InvalidProfile, NotComputed."""
    folder = desk.settings.profiles_dir / profile
    stored = load_valid_profile(folder) if folder_of(desk, profile) else usable_profile(desk.workspace, profile)
    edited = replace(stored, content=profile_content(record, source=str(folder / "profile.json")))
    day = latest_ranking_day(desk.warehouse, profile)
    if day is None:
        raise NotComputed(f"profile {profile!r} has no ranking yet; run `paper-assets run --profile {profile}`")
    found = previews.preview(desk.workspace, edited, day)
    rows = found.ranking.rows
    header = found.ranking.header
    changed = change_set(found.changes, since="", titles=found.titles) if found.changes else None
    entered = {move.paper_id for move in found.changes.entered} if found.changes else set()
    return {
        "fault": None,
        "day": in_words(day),
        "same": edited.content_hash == stored.content_hash,
        "rows": [
            (
                row["rank"],
                row["paper_id"],
                readable_title(found.titles.get(row["paper_id"], row["paper_id"])),
                order_value(row, header),
                row["semantic_relevance"],
                row["paper_id"] in entered,
            )
            for row in rows.filter(rows.column("shown")).to_pylist()
        ],
        "line": header.get("line"),
        "quiet": header.get("quiet"),
        "ranked": rows.num_rows,
        "left_out": [(count, _LEFT_OUT.get(code, code)) for code, count in found.left_out.items()],
        "change": changed,
        "warnings": [one_line(line) for line in found.warnings],
        "asks": header.get("llm_note"),
    }


def _read_file(desk: Desk, profile: str) -> tuple[dict[str, Any], str]:
    """The file's record and its version. Raises InvalidProfile if it is missing or not a JSON object."""
    file = desk.settings.profiles_dir / profile / "profile.json"
    version = file_version(file)
    record = read_json(file)
    if not isinstance(record, dict):
        raise InvalidProfile(f"{file}: expected an object with the key interests; fix it in an editor")
    return record, version


def _weights(desk: Desk, record: dict[str, Any]) -> dict[str, float]:
    """The weights of the profile's purpose, for a form without own weights."""
    options = record.get("ranking")
    purpose = options.get("purpose", "general") if isinstance(options, dict) else "general"
    weights = desk.settings.scoring.weights
    return dict(zip(DIMENSIONS, weights.get(purpose, weights["general"]), strict=True))
