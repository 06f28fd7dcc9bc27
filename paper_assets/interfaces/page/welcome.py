"""Make a profile in one form, and rename, remove or restore one. Everything works without scripts.

The preview shows what the draft finds among the stored papers. While the first profile is written, the newest papers of
the proposed categories are fetched; what is typed is not stored until the profile is made.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidInput
from paper_assets.interfaces import background
from paper_assets.interfaces.page import liked_form
from paper_assets.interfaces.page.desk import Desk, desk_of, now, page, profile_of, redirect_with_note
from paper_assets.interfaces.page.display import Unshown, as_sentence, isolate, readable_title
from paper_assets.interfaces.page.liked_form import (
    FieldFault,
    OwnPapers,
    about_field,
    find_own_papers,
    ignored_words,
    keep_uploads,
    library_of,
    liked_ids,
    local_zotero,
    own_papers,
    wants_search,
)
from paper_assets.interfaces.page.profile_form import cost_of_reading, read_file, reading_of
from paper_assets.interfaces.removal import remove_everything
from paper_assets.profile import LONGEST_TITLE, language_notes
from paper_assets.setup import profile_editing
from paper_assets.setup.categories import (
    all_categories,
    categories_by_name,
    category_name,
    check_category,
    excluded_categories,
    read_categories,
)
from paper_assets.setup.draft import (
    LikedWork,
    ProfileDraft,
    named,
    split_lines,
)
from paper_assets.setup.matches import (
    MOST_ASKED,
    Matches,
    matches,
    proposed_categories,
    unknown_interests,
    unknown_note,
)
from paper_assets.stores.papers import latest_day
from paper_assets.stores.profiles import write_json
from paper_assets.text.cleaning import one_line
from paper_assets.text.numbers import count_of
from paper_assets.text.sentences import cut_with_ellipsis
from paper_assets.text.statements import LONGEST_STATEMENT, Reading, read_statement

# Topics and names: before the text is read one field each, then a chip (an input) for each entry.
_CHIPS = ("interests", "secondary", "exploratory", "avoid", "less", "authors")
FETCH = ("start", "--days", "7")  # the command that fetches the first papers
FIELDS = (
    *("name", *_CHIPS, "keywords", "other_categories", "exclude_categories", "statement", "read"),
    *liked_form.FIELDS,
)


def show_form(request: Request) -> Response:
    """Show the empty form of a new profile (`?name=` fills in a name), or the one that adds papers to a profile."""
    return _page(request, {**dict.fromkeys(FIELDS, ""), "name": request.query_params.get("name", "")[:60]})


def read_words(request: Request) -> Response:
    """Show the form again with the text in the reader's words read into chips; stores nothing."""
    values = _values(request)
    text = (values["statement"] if values["read"] else values["interests"]).strip()
    reading = reading_of(request, text)
    return _page(request, _with_chips(values, text, reading), own=own_papers(request), notes=reading.notes)


def _with_chips(values: Mapping[str, str], text: str, reading: Reading) -> dict[str, str]:
    """Return the values with what was read in a text as chips, and the text kept as the statement."""
    topics = {
        "interests": reading.primary,
        "secondary": (*split_lines(values["secondary"]), *reading.secondary),
        "exploratory": reading.exploratory,
        "avoid": [topic for topic in reading.avoid if topic not in reading.less],
        "less": reading.less,
        "authors": (*split_lines(values["authors"]), *reading.authors),
        "other_categories": (*values["other_categories"].split(), *reading.categories),
        "exclude_categories": reading.exclude_categories,
    }
    chips = {name: "\n".join(dict.fromkeys(entries)) for name, entries in topics.items()}
    categories = {name: " ".join(chips[name].split()) for name in ("other_categories", "exclude_categories")}
    return {**values, **chips, **categories, "statement": text[:LONGEST_STATEMENT], "read": "yes"}


def _as_read(values: Mapping[str, str]) -> dict[str, str]:
    text = values["interests"].strip()
    return _with_chips(values, text, _reading(text))


def _reading(text: str) -> Reading:
    return read_statement(text, categories=categories_by_name())


def _needs_reading(values: Mapping[str, str]) -> bool:
    """Return whether the first field says more than one topic in each line, and was not read yet."""
    text = values["interests"]
    if values["read"] or not text.strip():
        return False
    reading = _reading(text)
    several = re.search(r"[,;:.!?。，、；：]", text) is not None and reading.wanted != split_lines(text)
    return several or bool(reading.avoid or reading.authors)


def preview_welcome(request: Request) -> Response:
    """Show the form again with the proposed categories and what the draft finds; stores nothing."""
    values, own = _values(request), own_papers(request)
    try:
        draft = _draft(_as_read(values) if _needs_reading(values) else values, name="preview", own=own)
        if not (draft.in_words or draft.papers or draft.keywords):
            return _page(request, values, own=own, preview={})
        previewed = isolate("The preview", lambda: _previewed(request, values, draft, own))
        if isinstance(previewed, dict) and request.state.form.get("typing"):
            previewed["fetching"] = _fetching_meanwhile(desk_of(request), previewed["followed"])
    except FieldFault as fault:
        preview = {"fault": "Correct the marked field to see the preview."}
        return _page(request, values, own=own, faults={fault.field: f"{fault}"}, preview=preview)
    except InvalidInput as fault:
        return _page(request, values, own=own, preview={"fault": as_sentence(fault)})
    preview = {"fault": f"{previewed}."} if isinstance(previewed, Unshown) else previewed
    return _page(request, values, own=own, preview=preview)


def show_own_papers(request: Request) -> Response:
    """Show either form again with the papers that arXiv has by the author whose name was typed."""
    values, own = _values(request), own_papers(request)
    try:
        own = find_own_papers(desk_of(request), values["own_name"])
    except FieldFault as fault:
        return _page(request, values, own=own, faults={fault.field: f"{fault}"}, status=400)
    return _page(request, values, own=own)


def make_profile(request: Request) -> Response:
    """Make the profile and show it; a wrong answer is explained beside its field."""
    desk, values, own = desk_of(request), _values(request), own_papers(request)
    if wants_search(request, own):
        return show_own_papers(request)
    if _needs_reading(values):
        return _page(request, _as_read(values), own=own)
    place = place_of(desk)
    try:
        taken = profile_editing.profile_names(place)
        first = next(iter(split_lines(values["interests"])), values["own_name"] or "my papers")
        with about_field("name"):
            free = first if first not in taken else f"{first} 2"
            name, title = named(values["name"] or cut_with_ellipsis(free, LONGEST_TITLE), taken=taken)
        draft = replace(_draft(values, name=name, own=own), title=title)
        library = library_of(request)
        form = request.state.form
        if not draft.categories and not form.getlist("offered"):
            works = [LikedWork(title=entry.title, abstract=entry.abstract) for entry in library if entry.title]
            proposed = proposed_categories(desk.workspace, draft.in_words or draft.keywords, [*draft.papers, *works])
            codes = [*own.categories, *(category.code for category, sure in proposed.items() if sure)]
            draft = replace(draft, categories=tuple(dict.fromkeys(codes)))
        created = profile_editing.create_profile(place, draft, now=now(), library=library)
    except FieldFault as fault:
        marked = "Could not make the profile: correct the marked field"
        return _page(request, values, own=own, faults={fault.field: f"{fault}"}, fault=marked, status=400)
    except InvalidInput as fault:
        return _page(request, values, own=own, fault=f"Could not make the profile: {fault}", status=400)
    notes = [f"Profile {title or name} is made."]
    if created.imported:
        notes.append(f"{len(created.imported.new)} works of your library are liked.")
    remarks = (ignored_words(values["papers"]), unknown_note(unknown_interests(desk.workspace, draft.interests)))
    notes += [f"Note: {note}." for note in (*filter(None, remarks), *created.notes[:3])]
    watch = ""
    if request.state.form.get("fetch"):
        with suppress(InvalidInput):  # another command is running; the next page shows it and has a button to fetch
            title = f"Fetching papers for {title or name}"
            background.begin(desk.settings.home, desk.environ, [*FETCH, "--profile", name], title=title, profile=name)
            watch = "?watch=1"
    return redirect_with_note(request, f"/p/{name}/first{watch}", " ".join(notes))


def add_papers(request: Request) -> Response:
    """Add the papers of the form to those that a profile likes; a wrong answer is explained beside its field."""
    desk, profile = desk_of(request), profile_of(request)
    values, own = _values(request), own_papers(request)
    if wants_search(request, own):
        return show_own_papers(request)
    try:
        papers = (*liked_ids(values["papers"]), *own.works)
        library = library_of(request)
        if not papers and not library:
            raise FieldFault("papers", "name a paper, choose a file or a Zotero library, or find your own papers")
        draft = ProfileDraft(name=profile, papers=papers)
        added = profile_editing.add_to_profile(place_of(desk), profile, draft, now=now(), library=library)
    except FieldFault as fault:
        return _page(request, values, own=own, faults={fault.field: f"{fault}"}, status=400)
    notes = [f"{count_of(added.papers, 'paper')} added." if added.papers else "No new papers." if papers else ""]
    if added.imported:
        read, new = added.imported.read, len(added.imported.new)
        notes.append(f"{count_of(read, 'work')} of the library read, {new} newly liked.")
    notes += [f"Note: {note}." for note in (*filter(None, [ignored_words(values["papers"])]), *added.notes[:3])]
    return redirect_with_note(request, f"/p/{profile}/profile", " ".join(filter(None, notes)))


def rename(request: Request) -> Response:
    """Give a profile another title; its folder keeps its name."""
    desk, profile = desk_of(request), profile_of(request)
    title = one_line(str(request.state.form.get("new_name", "")))[:LONGEST_TITLE]
    if not title:
        raise InvalidInput("a name needs a letter")
    file, record, version = read_file(desk, profile)
    write_json(file, {**record, "title": title}, version=version, turns=desk.editing)
    return redirect_with_note(request, "/?all=1", f"The profile is now called {title}.")


def remove(request: Request) -> Response:
    """Remove a profile; it is kept for 30 days, unless everything of it is to be deleted."""
    name = str(request.path_params["profile"])
    if request.state.form.get("everything"):
        desk = desk_of(request)
        left = remove_everything(desk.settings, desk.environ, name)
        sentences = " ".join(f"Note: {each}." for each in left)
        return redirect_with_note(request, "/?all=1", f"Everything of {name} is deleted. {sentences}".strip())
    removed = profile_editing.remove_profile(place_of(desk_of(request)), name, now=now())
    note = f"Profile {name} is removed. You can restore it below until {in_words(removed.until.date())}."
    return redirect_with_note(request, "/?all=1", note)


def restore(request: Request) -> Response:
    """Bring back a removed profile."""
    name = str(request.path_params["profile"])
    profile_editing.restore_profile(place_of(desk_of(request)), name, now=now())
    return redirect_with_note(request, "/?all=1", f"Profile {name} is restored.")


def place_of(desk: Desk) -> profile_editing.Place:
    """Return where the profiles of a desk are."""
    return profile_editing.Place(
        profiles_dir=desk.settings.profiles_dir, home=desk.settings.home, warehouse=desk.for_writing
    )


def removed_of(desk: Desk, at: datetime) -> list[profile_editing.RemovedProfile]:
    """Return the removed profiles that can be restored."""
    return profile_editing.removed_profiles(place_of(desk), now=at)


def _values(request: Request) -> dict[str, str]:
    form = request.state.form
    values = {name: str(form.get(name, "")).strip() for name in (*FIELDS, "zotero_local")}
    chips = {
        name: "\n".join(str(entry).strip() for entry in form.getlist(name) if str(entry).strip()) for name in _CHIPS
    }
    chips |= {name: "\n".join(dict.fromkeys(map(str, form.getlist(name)))) for name in ("like", "unlike")}
    return {**values, **chips, "checked": " ".join(map(check_category, form.getlist("category")))}


def _draft(values: Mapping[str, str], *, name: str, own: OwnPapers) -> ProfileDraft:
    """Return the draft of the submitted values. Raises FieldFault for an invalid paper id or category."""
    with about_field("other_categories"):
        others = read_categories(values["other_categories"])
    with about_field("exclude_categories"):
        excluded = excluded_categories(values["exclude_categories"])
    return ProfileDraft(
        name=name,
        interests=split_lines(values["interests"]),
        secondary=split_lines(values["secondary"]),
        exploratory=split_lines(values["exploratory"]),
        avoid=(*split_lines(values["avoid"]), *split_lines(values.get("unlike", ""))),
        less=split_lines(values["less"]),
        exclude_categories=excluded,
        statement=values["statement"] or None,
        keywords=split_lines(values["keywords"].replace(",", "\n")),
        authors=split_lines(values["authors"]),
        papers=(*liked_ids(values["papers"]), *liked_ids(values.get("like", "")), *own.works),
        categories=tuple(dict.fromkeys([*values.get("checked", "").split(), *others])),
    )


def _previewed(request: Request, values: Mapping[str, str], draft: ProfileDraft, own: OwnPapers) -> dict[str, Any]:
    desk, form = desk_of(request), request.state.form
    fitting = proposed_categories(desk.workspace, draft.in_words or draft.keywords, draft.papers)
    fitting = {each: sure for each, sure in fitting.items() if each.code not in draft.exclude_categories}
    categories = all_categories()
    of_own = [categories[code] for code in own.categories if code in categories]
    proposed = dict.fromkeys([*of_own, *fitting])
    offered, checked = set(form.getlist("offered")), set(form.getlist("category"))
    interests = draft.in_words
    more = f"the first {MOST_ASKED} of {len(interests):,} interests are counted here; the list is made for all"
    remarks = filter(
        None,
        (
            ignored_words(values["papers"]),
            unknown_note(unknown_interests(desk.workspace, interests)),
            *_reading(values["statement"] or values["interests"]).notes,
            *language_notes(interests, values["statement"]),
            more if len(interests) > MOST_ASKED else None,
        ),
    )
    ticked = {
        category: category.code in checked or (category.code not in offered and fitting.get(category, True))
        for category in proposed
    }
    followed = [*draft.categories, *(category.code for category, on in ticked.items() if on)]
    return {
        "fault": None,
        "warnings": [f"{note[:1].upper()}{note[1:]}" for note in remarks],
        "categories": list(ticked.items()),
        "understood": [
            (label, topics)
            for label, topics in (
                ("Looking for", interests),
                ("Not", (*draft.avoid, *(f"{topic} (less interested)" for topic in draft.less))),
                ("People", draft.authors),
            )
            if topics and (values["read"] or _needs_reading(values))
        ],
        "followed": followed,
        "fetching": None,
        **_shown(matches(desk.workspace, replace(draft, categories=tuple(dict.fromkeys(followed))))),
    }


def _fetching_meanwhile(desk: Desk, categories: Sequence[str]) -> background.Job | None:
    """Fetch the newest papers of the categories while the first profile is written; return the running command."""
    home = desk.settings.home
    job = background.last_job(home)
    if job is None and categories and not profile_editing.profile_names(place_of(desk)):
        if latest_day(desk.warehouse) is not None:
            return None
        environ = {"PAPER_ASSETS_CATEGORIES": ",".join(categories), **desk.environ}
        with suppress(InvalidInput):
            job = background.begin(home, environ, FETCH, title="Fetching the newest papers", profile=None, needed=False)
    return job if job and job.running else None


def _shown(draft_matches: Matches) -> dict[str, Any]:
    rows = draft_matches.list.ranking.rows if draft_matches.list else None
    titles = draft_matches.list.titles if draft_matches.list else {}
    return {
        "note": draft_matches.note,
        "papers": draft_matches.papers,
        "days": f"{in_words(draft_matches.first)} to {in_words(draft_matches.last)}"
        if draft_matches.first and draft_matches.last
        else None,
        "interests": list((draft_matches.interests or {}).items()),
        "examples": draft_matches.examples,
        "keywords": draft_matches.keywords,
        "rows": [
            readable_title(titles.get(paper_id, paper_id))
            for paper_id in rows.filter(rows["shown"])["paper_id"].to_pylist()
        ]
        if rows is not None
        else [],
    }


def _page(
    request: Request,
    values: Mapping[str, str],
    *,
    own: OwnPapers | None = None,
    faults: Mapping[str, str] | None = None,
    fault: str | None = None,
    preview: Mapping[str, Any] | None = None,
    notes: Sequence[str] | None = None,
    status: int = 200,
) -> Response:
    form = getattr(request.state, "form", None)
    checked = form.getlist("category") if form else []
    examples = (preview or {}).get("examples", {})
    shown = {each for of_topic in examples.values() for example in of_topic for each in example}
    chosen = [(name, value) for name in ("like", "unlike") for value in values.get(name, "").split("\n")]
    return page(
        request,
        "add.html.jinja" if "profile" in request.path_params else "welcome.html.jinja",
        status=status,
        values=values,
        notes=(
            *(_reading(values["statement"]).notes if notes is None else notes),
            *language_notes(split_lines(values["interests"]), values["statement"]),
        )
        if values["read"]
        else (),
        reading_by_model=cost_of_reading(desk_of(request)),
        own=own or OwnPapers(),
        zotero_file=local_zotero(desk_of(request).environ),
        faults=faults or {},
        fault=fault,
        uploads=None if faults and "library" in faults else keep_uploads(request),
        preview=preview,
        kept=[(name, value) for name, value in chosen if value and value not in shown],
        checked=[(code, category_name(code)) for code in checked],
        first=not desk_of(request).settings.profiles_dir.is_dir() or not desk_of(request).profiles(),
        kept_days=profile_editing.KEPT_DAYS,
    )
