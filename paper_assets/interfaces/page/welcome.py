"""Make a profile in one form, and rename, duplicate, remove or restore one. Everything works without scripts.

The preview shows what the draft finds among the stored papers; nothing is stored until the profile is made.
"""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.page.desk import (
    Desk,
    Unshown,
    desk_of,
    isolate,
    now,
    page,
    person_of,
    readable_title,
    redirect_with_note,
)
from paper_assets.library.entries import Entry
from paper_assets.library.formats import read_library
from paper_assets.setup import profiles as services
from paper_assets.setup.categories import category_name, check_category
from paper_assets.setup.draft import (
    LikedWork,
    ProfileDraft,
    check_name,
    proposed_name,
    read_references,
    split_lines,
)
from paper_assets.setup.matches import Matches, matches, proposed_categories

FIELDS = ("name", "interests", "secondary", "papers", "keywords", "authors", "other_categories")
_LIBRARIES = (".bib", ".ris", ".json")


def show_welcome(request: Request) -> Response:
    """Show the empty form; `?name=` fills in a name."""
    _operator_only(request)
    values = dict.fromkeys(FIELDS, "")
    values["name"] = request.query_params.get("name", "")[:60]
    return _page(request, values)


def preview_welcome(request: Request) -> Response:
    """Show the form again with the proposed categories and what the draft finds; stores nothing."""
    _operator_only(request)
    values = _values(request)
    try:
        draft = _draft(values, name="preview")
    except InvalidInput as fault:
        return _page(request, values, preview={"fault": str(fault)})
    if not (draft.interests or draft.secondary or draft.papers):
        return _page(request, values, preview={})
    found = isolate("The preview", lambda: _previewed(request, draft))
    return _page(request, values, preview={"fault": f"{found}."} if isinstance(found, Unshown) else found)


def make_profile(request: Request) -> Response:
    """Make the profile and show it; a wrong answer is explained beside the form."""
    _operator_only(request)
    desk, values = desk_of(request), _values(request)
    place = place_of(desk)
    try:
        taken = services.profile_names(place)
        first = next(iter(split_lines(values["interests"])), "my papers")
        name = check_name(values["name"] or proposed_name(first, taken=taken) or "my-papers", taken=taken)
        library = _library(request)
        draft = _draft(values, name=name)
        form = request.state.form
        if not draft.categories and not form.getlist("offered"):
            works = [LikedWork(title=entry.title, abstract=entry.abstract) for entry in library if entry.title]
            proposed = proposed_categories(desk.workspace, draft.interests, [*draft.papers, *works])
            draft = replace(draft, categories=tuple(each.code for each in proposed))
        created = services.create_profile(place, draft, now=now(), library=library)
    except InvalidInput as fault:
        return _page(request, values, fault=f"Could not make the profile: {fault}", status=400)
    said = [f"Profile {name} is made."]
    if created.imported:
        said.append(f"{len(created.imported.new)} works of your library are liked.")
    said += [f"Note: {note}." for note in created.notes[:3]]
    return redirect_with_note(request, f"/p/{name}/first", " ".join(said))


def rename(request: Request) -> Response:
    """Rename a profile with its ratings and lists."""
    name, wanted = _managed(request)
    services.rename_profile(place_of(desk_of(request)), name, wanted)
    return redirect_with_note(request, "/?all=1", f"Profile {name} is now {wanted}.")


def duplicate(request: Request) -> Response:
    """Copy a profile under another name."""
    name, wanted = _managed(request)
    services.duplicate_profile(place_of(desk_of(request)), name, wanted)
    return redirect_with_note(request, "/?all=1", f"{wanted} is a copy of {name}.")


def remove(request: Request) -> Response:
    """Remove a profile; it is kept for 30 days."""
    name, _ = _managed(request)
    removed = services.remove_profile(place_of(desk_of(request)), name, now=now())
    note = f"Profile {name} is removed. You can restore it below until {in_words(removed.until.date())}."
    return redirect_with_note(request, "/?all=1", note)


def restore(request: Request) -> Response:
    """Bring back a removed profile."""
    name, _ = _managed(request)
    services.restore_profile(place_of(desk_of(request)), name, now=now())
    return redirect_with_note(request, "/?all=1", f"Profile {name} is restored.")


def place_of(desk: Desk) -> services.Place:
    """Return where the profiles of a desk are."""
    return services.Place(profiles_dir=desk.settings.profiles_dir, home=desk.settings.home, warehouse=desk.for_writing)


def removed_of(desk: Desk, at: datetime) -> list[services.RemovedProfile]:
    """Return the removed profiles that can be restored."""
    return services.removed_profiles(place_of(desk), now=at)


def _operator_only(request: Request) -> None:
    if person_of(request):  # in a lab the operator makes profiles
        raise HTTPException(404)


def _managed(request: Request) -> tuple[str, str]:
    _operator_only(request)
    return str(request.path_params["profile"]), str(request.state.form.get("new_name", "")).strip()


def _values(request: Request) -> dict[str, str]:
    form = request.state.form
    values = {name: str(form.get(name, "")).strip() for name in FIELDS}
    return {**values, "checked": " ".join(map(check_category, form.getlist("category")))}


def _draft(values: Mapping[str, str], *, name: str) -> ProfileDraft:
    """Return the draft of the submitted values. Raises InvalidInput for an invalid paper id or category."""
    references = read_references(values["papers"])
    if references.unreadable:
        raise InvalidInput(
            f"{references.unreadable[0]!r} names no paper; give an arXiv id such as 1706.03762, a DOI or a link"
        )
    typed = values["other_categories"].replace(",", " ").split()
    return ProfileDraft(
        name=name,
        interests=split_lines(values["interests"]),
        secondary=split_lines(values["secondary"]),
        keywords=split_lines(values["keywords"].replace(",", "\n")),
        authors=split_lines(values["authors"]),
        papers=tuple(LikedWork(paper_id=each) for each in references.ids),
        categories=tuple(dict.fromkeys([*values.get("checked", "").split(), *map(check_category, typed)])),
    )


def _library(request: Request) -> list[Entry]:
    """Return the entries of the uploaded files. Raises InvalidInput that names the file as the reader knows it."""
    entries: list[Entry] = []
    for name, content in getattr(request.state, "uploads", {}).get("library", ()):
        suffix = Path(name).suffix.lower()
        if suffix not in _LIBRARIES:
            raise InvalidInput(f"{name[:60]} is not a .bib, .ris or CSL-JSON (.json) file")
        with tempfile.TemporaryDirectory(prefix="paper-assets-") as folder:
            file = Path(folder) / f"library{suffix}"
            file.write_bytes(content)
            try:
                entries += read_library(file)
            except PaperAssetsError as fault:
                raise InvalidInput(str(fault).replace(str(file), name[:60])) from None
    return entries


def _previewed(request: Request, draft: ProfileDraft) -> dict[str, Any]:
    desk, form = desk_of(request), request.state.form
    proposed = proposed_categories(desk.workspace, (*draft.interests, *draft.secondary), draft.papers)
    offered, checked = set(form.getlist("offered")), set(form.getlist("category"))
    found = matches(desk.workspace, replace(draft, categories=()))
    return {
        "fault": None,
        "categories": [(each, each.code in checked or each.code not in offered) for each in proposed],
        **_shown(found),
    }


def _shown(found: Matches) -> dict[str, Any]:
    rows = found.list.ranking.rows if found.list else None
    titles = found.list.titles if found.list else {}
    return {
        "note": found.note,
        "papers": found.papers,
        "days": f"{in_words(found.first)} to {in_words(found.last)}" if found.first and found.last else None,
        "interests": list((found.interests or {}).items()),
        "keywords": found.keywords,
        "rows": [readable_title(titles.get(each, each)) for each in rows.filter(rows["shown"])["paper_id"].to_pylist()]
        if rows is not None
        else [],
    }


def _page(
    request: Request,
    values: Mapping[str, str],
    *,
    fault: str | None = None,
    preview: Mapping[str, Any] | None = None,
    status: int = 200,
) -> Response:
    form = getattr(request.state, "form", None)
    checked = form.getlist("category") if form else []
    return page(
        request,
        "welcome.html.jinja",
        status=status,
        values=values,
        fault=fault,
        preview=preview,
        checked=[(code, category_name(code)) for code in checked],
        first=not desk_of(request).settings.profiles_dir.is_dir() or not desk_of(request).profiles(),
        kept_days=services.KEPT_DAYS,
    )
