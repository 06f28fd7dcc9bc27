"""The profile: edited with a live preview of what would enter and leave, saved as its file (SPEC V6).

What is right is said by the profile's own schema; what would change, by the ranking itself. After saving, the sensor
does the rest.
"""

from collections import Counter
from dataclasses import replace
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.changed import change_set
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidInput, InvalidProfile, NotComputed
from paper_assets.interfaces.page.desk import Desk, desk_of, folder_of, page, profile_of, redirect_with_note
from paper_assets.interfaces.page.profile_form import (
    GROUPS,
    OWN_WEIGHTS,
    WEIGHTS,
    edited_record,
    form_values,
    submitted_values,
)
from paper_assets.learning.ratings import IN_WORDS, ratings_of
from paper_assets.pipeline import preview as previews
from paper_assets.pipeline.profiles import load_valid_profile, usable_profile
from paper_assets.profile import profile_content, read_json
from paper_assets.ranking.filters import FILTERS
from paper_assets.stores.profile_files import ProfileEdited, file_version, write_json
from paper_assets.stores.rankings import latest_ranking_day, ranking
from paper_assets.text.cleaning import one_line
from paper_assets.weights import DIMENSIONS

_LEFT_OUT = {each.code: each.counted for each in FILTERS}


def show_profile(request: Request) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    record, version = _read_file(desk, profile)
    return _form_page(request, form_values(record, weights=_weights(desk, record)), version=version)


def preview_profile(request: Request) -> Response:
    """What the list of the newest day would be with what was typed; stores nothing."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    typed, version = submitted_values(form), str(form.get("version", ""))
    try:
        record, _ = _read_file(desk, profile)
        shown = _previewed(desk, profile, edited_record(record, typed))
    except (InvalidInput, NotComputed) as fault:
        return _form_page(request, typed, version=version, preview={"fault": str(fault)})
    return _form_page(request, typed, version=version, preview=shown)


def save_profile(request: Request) -> Response:
    """Write the file in one step, if it is right and nobody has edited it meanwhile."""
    desk, profile, form = desk_of(request), profile_of(request), request.state.form
    typed = submitted_values(form)
    folder = folder_of(desk, profile)
    if folder is None:
        raise NotComputed(f"profile {profile!r} has no folder any more; it cannot be edited")
    file = folder / "profile.json"
    try:
        record, _ = _read_file(desk, profile)
        edited = edited_record(record, typed)
        profile_content(edited, source=str(file))
        if edited == record:
            return redirect_with_note(request, f"/p/{profile}/profile", "Nothing was edited, so nothing was written.")
        write_json(file, edited, version=str(form.get("version", "")), turns=desk.editing)
    except ProfileEdited as fault:
        said = f"{fault}. What you typed stands here still; save once more to write it over the other edit."
        return _form_page(request, typed, version=file_version(file), fault=said, status=409)
    except InvalidProfile as fault:
        return _form_page(request, typed, version=str(form.get("version", "")), fault=str(fault), status=400)
    note = f"Saved. While `make dev` runs the list follows by itself; else: paper-assets run --profile {profile}"
    return redirect_with_note(request, f"/p/{profile}/profile", note)


def _form_page(
    request: Request,
    typed: dict[str, Any],
    *,
    version: str,
    fault: str | None = None,
    preview: dict[str, Any] | None = None,
    status: int = 200,
) -> Response:
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
        typed=typed,
        version=version,
        fault=fault,
        preview=preview,
        latest=day,
        warnings=[one_line(line) for line in header.get("warnings", ())],
        learning=header.get("learning"),
        rated=rated[::-1][:40],
        rated_count=Counter(each.rating for each in rated),
        words=IN_WORDS,
        folder=desk.settings.profiles_dir / profile,
    )


def _previewed(desk: Desk, profile: str, record: dict[str, Any]) -> dict[str, Any]:
    """The edited profile's list beside the stored one, in words. Raises InvalidProfile, NotComputed."""
    folder = desk.settings.profiles_dir / profile
    stands = load_valid_profile(folder) if folder_of(desk, profile) else usable_profile(desk.workspace, profile)
    edited = replace(stands, content=profile_content(record, source=str(folder / "profile.json")))
    day = latest_ranking_day(desk.warehouse, profile)
    if day is None:
        raise NotComputed(f"profile {profile!r} has no list yet; run `paper-assets run --profile {profile}`")
    found = previews.preview(desk.workspace, edited, day)
    rows = found.ranking.rows
    header = found.ranking.header
    changed = change_set(found.changes, since="", titles=found.titles) if found.changes else None
    entered = {move.paper_id for move in found.changes.entered} if found.changes else set()
    return {
        "fault": None,
        "day": in_words(day),
        "same": edited.content_hash == stands.content_hash,
        "rows": [
            (
                row["rank"],
                row["paper_id"],
                found.titles.get(row["paper_id"], row["paper_id"]),
                row["final"],
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
    """The file's record and its version. Raises InvalidProfile where there is none, or it is no JSON object."""
    file = desk.settings.profiles_dir / profile / "profile.json"
    version = file_version(file)
    record = read_json(file)
    if not isinstance(record, dict):
        raise InvalidProfile(f"{file}: expected an object with the key interests; mend it in an editor")
    return record, version


def _weights(desk: Desk, record: dict[str, Any]) -> dict[str, float]:
    """The weights that the purpose gives, for a form in which nobody has weighed anything yet."""
    options = record.get("ranking")
    purpose = options.get("purpose", "general") if isinstance(options, dict) else "general"
    weights = desk.settings.scoring.weights
    return dict(zip(DIMENSIONS, weights.get(purpose, weights["general"]), strict=True))
