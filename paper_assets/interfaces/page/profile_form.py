"""Edit a profile in a form, with a live preview of the papers that would enter and leave its list.

The form does not show every key of the file; the others are kept. The profile's schema validates the edit,
`field_faults` assigns its errors to the fields they are about, and the ranking itself makes the preview. After saving,
a sensor starts the new ranking. To add a field, add a line to `GROUPS`.
"""

import json
from collections import Counter
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from paper_assets.digests.content import change_set
from paper_assets.digests.entry import LEVELS_IN_WORDS
from paper_assets.digests.plain_text import in_words
from paper_assets.errors import InvalidInput, InvalidProfile, LLMError, LLMNotConfigured, NotComputed
from paper_assets.interfaces.page.background_commands import rank_again_state
from paper_assets.interfaces.page.desk import Desk, desk_of, folder_of, page, profile_of, redirect_with_note
from paper_assets.interfaces.page.display import as_sentence, isolate, readable_title
from paper_assets.interfaces.page.settings_form import environ_of, is_kept_running
from paper_assets.learning.ratings import IN_WORDS
from paper_assets.models.llm_config import llm_config
from paper_assets.pipeline import preview as previews
from paper_assets.pipeline.profiles import load_valid_profile, usable_profile
from paper_assets.profile import (
    ContrastiveType,
    Profile,
    ProfileContent,
    Purpose,
    RankingMode,
    profile_content,
    read_json,
)
from paper_assets.ranking.changes import profile_edits
from paper_assets.ranking.dimensions import DIMENSIONS_IN_WORDS
from paper_assets.ranking.levels import headline_of, level_of_row
from paper_assets.ranking.tags import AVOIDED_TOPIC
from paper_assets.rewriting.policy import LEVELS
from paper_assets.setup.categories import categories_by_name
from paper_assets.setup.matches import KeywordMatch, keyword_matches
from paper_assets.setup.model_reading import most_for_reading, read_by_model, reading_model
from paper_assets.stores.feedback import last_ratings
from paper_assets.stores.papers import columns_between, papers_by_id
from paper_assets.stores.profiles import ProfileEdited, file_version, write_json
from paper_assets.stores.rankings import latest_ranking_day, ranking
from paper_assets.text.cleaning import one_line
from paper_assets.text.numbers import count_of
from paper_assets.text.statements import LONGEST_STATEMENT, Reading, read_statement
from paper_assets.weights import DIMENSIONS

Kind = Literal["text", "lines", "number", "real", "switch", "choice", "several", "papers"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its key in the file (with dots), its label, a hint, and its kind."""

    key: str
    label: str
    kind: Kind
    hint: str = ""
    choices: tuple[tuple[str, str], ...] = ()
    default: Any = None

    @property
    def name(self) -> str:
        """The name of the field in the form."""
        return self.key.replace(".", "-")


def _choices(of: Any) -> tuple[tuple[str, str], ...]:
    return tuple((value, value.replace("_", " ")) for value in get_args(of))


_ONE_A_LINE = "one per line"
_PREFERRED = "one per line; GPT-4* matches every word that starts with GPT-4, title:word matches titles only"
_AVOIDED = "one per line; each in a title lowers the score; abstract:word looks in abstracts too"
_LEVELS = tuple((level, LEVELS_IN_WORDS[level].removeprefix("for ")) for level in LEVELS)
GROUPS: tuple[tuple[str, tuple[Field, ...]], ...] = (
    (
        "Interests",
        (
            Field("statement", "Your own words", "text", "read into the fields below, which you can correct"),
            Field("interests.primary", "Main interests", "lines", _ONE_A_LINE),
            Field("interests.secondary", "Secondary", "lines", _ONE_A_LINE),
            Field("interests.exploratory", "Exploratory", "lines", _ONE_A_LINE),
            Field("interests.avoid", "Not", "lines", "topics you do not want, one per line"),
            Field("interests.less", "Less interested in", "lines", _ONE_A_LINE),
            Field("interests.papers", "Papers you like", "papers", "tick those to remove"),
        ),
    ),
    (
        "Keywords",
        (
            Field("keywords.must_include", "Preferred keywords", "lines", _PREFERRED),
            Field("keywords.exclude.soft", "Avoided keywords", "lines", _AVOIDED),
            Field("keywords.exclude.hard", "Excluded keywords", "lines", "one per line; each removes the paper"),
        ),
    ),
    (
        "Authors and institutions",
        (
            Field("preferred_authors", "Preferred authors", "lines", _ONE_A_LINE),
            Field("preferred_institutions", "Preferred institutions", "lines", _ONE_A_LINE),
        ),
    ),
    (
        "The list",
        (
            Field("ranking.top_k", "Papers per day", "number", default=5),
            Field("feed.window_days", "Window in days", "number", default=7),
            Field("ranking.purpose", "Purpose", "choice", choices=_choices(Purpose), default="general"),
            Field("ranking.ranking_mode", "Ranking mode", "choice", choices=_choices(RankingMode), default="balanced"),
            Field("ranking.include_contrastive", "Give the last place to a contrasting paper", "switch", default=False),
            Field(
                "ranking.contrastive_type", "Contrast in", "choice", choices=_choices(ContrastiveType), default="method"
            ),
            Field("constraints.min_year", "Earliest year", "number"),
            Field("constraints.require_code", "Only papers with code", "switch", default=False),
            Field("feed.repeat", "Repeat papers on later days", "switch", default=False),
            Field("feed.categories", "arXiv categories", "lines", "one per line; empty for all stored categories"),
            Field(
                "feed.exclude_categories",
                "Excluded categories",
                "lines",
                "one per line; primary:cs.CV excludes by the first category only",
            ),
        ),
    ),
    (
        "Rewrites",
        (
            Field("rewriting.target_levels", "Rewrite the best papers for", "several", choices=_LEVELS, default=[]),
            Field("rewriting.papers", "Papers to rewrite per day", "number", default=3),
        ),
    ),
)
WEIGHTS: tuple[Field, ...] = tuple(
    Field(f"ranking.weights.{name}", DIMENSIONS_IN_WORDS[name], "real") for name in DIMENSIONS
)
LABELS = {form_field.key: form_field.label for _, fields in GROUPS for form_field in fields}
OWN_WEIGHTS = "own-weights"


def form_values(record: Mapping[str, Any], *, weights: Mapping[str, float]) -> dict[str, Any]:
    """Return the values of the form's fields for a record, which may be invalid in any way: the form repairs it.

    `weights`: those that apply if the record has none.
    """
    typed: dict[str, Any] = {}
    for form_field in _fields():
        value = _at(record, form_field.key)
        value = form_field.default if value is None else value
        if form_field.kind == "papers":
            typed[form_field.name] = []
        elif form_field.kind == "lines":
            typed[form_field.name] = "\n".join(one_line(str(entry)) for entry in _entries(value))
        elif form_field.kind == "several":
            typed[form_field.name] = [str(entry) for entry in _entries(value)]
        elif form_field.kind == "switch":
            typed[form_field.name] = bool(value)
        else:
            typed[form_field.name] = "" if value is None else f"{value}"
    own = _at(record, "ranking.weights")
    typed[OWN_WEIGHTS] = bool(own)
    own_or_usual = own or weights
    for form_field, name in zip(WEIGHTS, DIMENSIONS, strict=True):
        value = own_or_usual.get(name, "") if isinstance(own_or_usual, Mapping) else ""
        typed[form_field.name] = f"{value:g}" if isinstance(value, int | float) else str(value)
    return typed


def _entries(value: object) -> list[object]:
    """Return the entries of a list; anything else, which only an invalid file has, is its one entry."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def submitted_values(form: Any) -> dict[str, Any]:
    """Return the values of the form's fields as they were submitted."""
    typed: dict[str, Any] = {OWN_WEIGHTS: form.get(OWN_WEIGHTS) == "on"}
    for form_field in (*_fields(), *WEIGHTS):
        if form_field.kind in ("several", "papers"):
            typed[form_field.name] = form.getlist(form_field.name)
        else:
            typed[form_field.name] = (
                form.get(form_field.name) == "on" if form_field.kind == "switch" else str(form.get(form_field.name, ""))
            )
    return typed


def edited_record(record: Mapping[str, Any], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the file's record with the submitted values; defaults that the file did not contain are not added."""
    edited = deepcopy(dict(record))
    for form_field in _fields():
        if form_field.kind == "papers":  # only those to remove are submitted, so that none is lost by an old page
            held = _at(record, form_field.key) or []
            liked = [entry for entry in held if _liked_name(entry) not in typed[form_field.name]]
            if len(liked) < len(held):
                _put(edited, form_field.key, liked)
            continue
        value = _value(form_field, typed[form_field.name])
        if _at(record, form_field.key) is None and value in (form_field.default, [], None):
            continue
        _put(edited, form_field.key, value)
    if typed[OWN_WEIGHTS]:
        _put(edited, "ranking.weights", {f.key.rpartition(".")[2]: _value(f, typed[f.name]) for f in WEIGHTS})
    elif _at(edited, "ranking.weights") is not None:
        del edited["ranking"]["weights"]
    return edited


def field_faults(record: Mapping[str, Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Validate an edited record: messages by form field, and those that belong to no field of the form."""
    try:
        ProfileContent.model_validate_json(json.dumps(record))
    except ValidationError as error:
        names = {form_field.key: form_field.name for form_field in (*_fields(), *WEIGHTS)}
        by_field: dict[str, str] = {}
        other = []
        for fault in error.errors(include_url=False):
            path = ".".join(str(part) for part in fault["loc"] if not isinstance(part, int))
            place = names.get(path) or (OWN_WEIGHTS if path.startswith("ranking.weights") else None)
            message = _message(dict(fault))
            if not path and message.startswith("Interests: "):
                place, message = (
                    names["interests.primary"],
                    "Enter at least one interest or keyword, or keep a paper you like.",
                )
            if place:
                by_field.setdefault(place, message)
            else:
                other.append(f"{path}: {message}")
        return by_field, tuple(other)
    return {}, ()


def _message(fault: Mapping[str, Any]) -> str:
    """Return a schema's error in the words of a form."""
    kind, limits = str(fault["type"]), fault.get("ctx") or {}
    if kind.startswith("int_"):
        return "Enter a whole number."
    if kind.startswith("float_") or kind == "finite_number":
        return "Enter a number."
    for name, words in (("ge", "at least"), ("le", "at most"), ("gt", "more than"), ("lt", "less than")):
        if name in limits:
            return f"Enter a number of {words} {limits[name]:g}."
    if kind == "missing":
        return "Enter a value."
    message = str(fault["msg"]).removeprefix("Value error, ")
    return as_sentence(message)


def _fields() -> tuple[Field, ...]:
    return tuple(form_field for _, fields in GROUPS for form_field in fields)


def _value(form_field: Field, typed: Any) -> Any:
    """Return the value for JSON; text that is not a number stays text, for the schema to refuse."""
    if form_field.kind == "lines":
        lines = [line.strip() for line in typed.splitlines() if line.strip()]
        return lines or (None if form_field.key == "feed.categories" else [])
    if form_field.kind == "text":
        return typed.strip() or None
    if form_field.kind in ("number", "real"):
        text = typed.strip()
        try:
            return (int(text) if form_field.kind == "number" else float(text)) if text else None
        except ValueError:
            return text
    return list(typed) if form_field.kind == "several" else typed


def _at(record: Mapping[str, Any], key: str) -> Any:
    value: Any = record
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _liked_name(entry: Any) -> str:
    """Return the id of a liked paper in the file, or else its title."""
    return str((entry.get("paper_id") or entry.get("title")) if isinstance(entry, Mapping) else entry)


def _put(record: dict[str, Any], key: str, value: Any) -> None:
    *path, last = key.split(".")
    for part in path:
        if not isinstance(record.get(part), dict):
            record[part] = {}
        record = record[part]
    record[last] = value


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


def _submitted(request: Request) -> _Form:
    form = request.state.form
    return _Form(values=submitted_values(form), version=str(form.get("version", "")), refused=True)


def show_profile(request: Request) -> Response:
    """Show the form, what the ratings have taught, and preferences to check."""
    desk, profile = desk_of(request), profile_of(request)
    _, record, version = read_file(desk, profile)
    faults, other = field_faults(record)
    values = form_values(record, weights=_weights(desk, record))
    return _page(request, _Form(values=values, version=version, faults=faults, fault=" ".join(other) or None))


def preview_profile(request: Request) -> Response:
    """Show the list of the newest day as the submitted profile would have it; stores nothing."""
    desk, profile, form = desk_of(request), profile_of(request), _submitted(request)
    try:
        record = edited_record(read_file(desk, profile)[1], form.values)
        faults, other = field_faults(record)
        if faults or other:
            previewed = {"fault": " ".join(other) or "Correct the marked fields to see the preview."}
            return _page(request, replace(form, faults=faults, preview=previewed))
        shown_preview = isolate("The preview", lambda: _previewed(desk, profile, record))
        return _page(
            request,
            replace(form, preview=shown_preview if isinstance(shown_preview, dict) else {"fault": f"{shown_preview}."}),
        )
    except (InvalidInput, NotComputed) as fault:
        return _page(request, replace(form, preview={"fault": str(fault)}))


_READ_INTO = {
    "interests-primary": "primary",
    "interests-secondary": "secondary",
    "interests-exploratory": "exploratory",
    "interests-avoid": "avoid",
    "interests-less": "less",
    "preferred_authors": "authors",
    "feed-exclude_categories": "exclude_categories",
}


def cost_of_reading(desk: Desk) -> str | None:
    """Return the language model and what a reading costs at most, "" if its settings are wrong; None: there is none."""
    try:
        return most_for_reading(llm_config(environ_of(desk)))
    except LLMNotConfigured:
        return None
    except LLMError:
        return ""


def reading_of(request: Request, text: str) -> Reading:
    """Read a statement by the rules, and by the language model where its button was pressed; notes say what differs."""
    desk, reading = desk_of(request), read_statement(text, categories=categories_by_name())
    if request.state.form.get("reader") != "model":
        return reading
    try:
        config = llm_config(environ_of(desk))
        ask = reading_model(config, desk.warehouse)
        return read_by_model(text[:LONGEST_STATEMENT], reading, ask=ask, config=config)
    except LLMError as fault:
        return replace(reading, notes=(*reading.notes, f"the language model could not read it: {fault}"))


def read_words(request: Request) -> Response:
    """Show the form with what the reader's own words say added to its fields; stores nothing."""
    form = _submitted(request)
    reading = reading_of(request, form.values["statement"])
    for name, part in _READ_INTO.items():
        found = [entry for entry in getattr(reading, part) if part != "avoid" or entry not in reading.less]
        form.values[name] = "\n".join(dict.fromkeys([*form.values[name].splitlines(), *found]))
    notes = " ".join(map(as_sentence, reading.notes))
    return _page(request, replace(form, preview={"fault": notes} if notes else None))


def save_profile(request: Request) -> Response:
    """Write the file in one step, if it is valid and was not edited elsewhere since it was read."""
    desk, profile, form = desk_of(request), profile_of(request), _submitted(request)
    folder = folder_of(desk, profile)
    if folder is None:
        raise NotComputed(f"the folder of profile {profile!r} was removed; it cannot be edited")
    file = folder / "profile.json"
    try:
        file, record, _ = read_file(desk, profile)
        edited = edited_record(record, form.values)
        faults, other = field_faults(edited)
        if faults or other:
            count = "one field" if len(faults) == 1 else f"{len(faults)} fields"
            reason = " ".join(other).removesuffix(".") or f"correct {count} below"
            return _page(
                request, replace(form, faults=faults, fault=f"Could not save the profile: {reason}."), status=400
            )
        if edited == record:
            return redirect_with_note(request, f"/p/{profile}/profile", "No changes to save.")
        write_json(file, edited, version=form.version, turns=desk.editing)
    except ProfileEdited:
        reason = (
            "Could not save the profile: it was edited elsewhere meanwhile. Your changes are still below; save again "
            "to overwrite the other edit."
        )
        return _page(request, replace(form, version=file_version(file), fault=reason), status=409)
    except InvalidProfile as fault:
        return _page(request, replace(form, fault=f"Could not save the profile: {fault}"), status=400)
    follows = " The list follows within a minute." if is_kept_running(desk) else ""
    return redirect_with_note(request, f"/p/{profile}/profile", f"Profile saved.{follows}")


def _page(request: Request, form: _Form, *, status: int = 200) -> Response:
    desk, profile = desk_of(request), profile_of(request)
    day = latest_ranking_day(desk.warehouse, profile)
    rated = last_ratings(desk.warehouse, profile)
    header = ranking(desk.warehouse, day, profile).header if day else {}
    return page(
        request,
        "profile.html.jinja",
        status=status,
        groups=GROUPS,
        weights=WEIGHTS,
        own_weights=OWN_WEIGHTS,
        liked=_liked_papers(desk, profile),
        typed=form.values,
        version=form.version,
        refused=form.refused,
        faults=form.faults,
        fault=form.fault,
        preview=form.preview,
        reading_by_model=cost_of_reading(desk),
        latest=day,
        again=rank_again_state(request, profile, day),
        warnings=[one_line(line) for line in header.get("warnings", ())],
        learning=header.get("learning"),
        rated=rated[::-1][:_MOST_RATED],
        rated_count=Counter(rating.rating for rating in rated),
        words=IN_WORDS,
        folder=desk.settings.profiles_dir / profile,
    )


def _previewed(desk: Desk, profile: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the edited profile's list compared with the stored one. Raises InvalidProfile, NotComputed."""
    folder = desk.settings.profiles_dir / profile
    stored = load_valid_profile(folder) if folder_of(desk, profile) else usable_profile(desk.workspace, profile)
    edited = replace(stored, content=profile_content(record, source=str(folder / "profile.json")))
    day = latest_ranking_day(desk.warehouse, profile)
    if day is None:
        raise NotComputed("there is no list to compare with yet")
    try:
        previewed = previews.preview(desk.workspace, edited, day)
    except NotComputed:
        raise NotComputed("Some papers of this list are not embedded yet. The next ranking does that.") from None
    header, shown = previewed.ranking.header, previewed.ranking.listed
    changed = (
        change_set(previewed.changes, since="", titles=previewed.titles, edit_named=False)
        if previewed.changes
        else None
    )
    entered = {move.paper_id for move in previewed.changes.entered} if previewed.changes else set()
    return {
        "fault": None,
        "day": in_words(day),
        "same": edited.content_hash == stored.content_hash,
        "rows": [
            (
                row["rank"],
                row["paper_id"],
                readable_title(previewed.titles.get(row["paper_id"], row["paper_id"])),
                level.name if (level := level_of_row(row, header)) else f"score {row['final']:.2f}",
                row["paper_id"] in entered,
            )
            for row in shown
        ],
        "headline": headline_of(header, len(shown)),
        "edits": _edits_in_words(stored, edited, previewed),
        "change": changed,
        "keywords": _keyword_matches(desk, edited.content, day),
        "warnings": [one_line(line) for line in previewed.warnings],
        "asks": header.get("llm_note"),
    }


_REMOVED_BY = {
    "keywords.exclude.hard": "BLACKLIST_KEYWORD",
    "interests.avoid": AVOIDED_TOPIC,
    "feed.exclude_categories": "EXCLUDED_CATEGORY",
}


def _edits_in_words(stored: Profile, edited: Profile, previewed: previews.Preview) -> list[str]:
    """Return a line for each edit of the profile; for what removes papers, how many it removes."""
    then, now = stored.content.model_dump(), edited.content.model_dump()
    lines = []
    for key, edit in (profile_edits(stored, edited) or {}).items():
        added = [entry for entry in _at(now, key) if entry not in _at(then, key)] if key in _REMOVED_BY else []
        counts = [previewed.removed.get(f"{_REMOVED_BY[key]}:{entry.removeprefix('primary:')}", 0) for entry in added]
        lines += [
            f"“{entry}” removes {count:,} of {count_of(previewed.considered, 'paper')}"
            for entry, count in zip(added, counts, strict=True)
        ] or [edit.replace(f"{key}: ", f"{LABELS.get(key, key)}: ")]
    return lines


def _keyword_matches(desk: Desk, content: ProfileContent, day: date) -> tuple[KeywordMatch, ...]:
    """Count the papers of the list's days and categories that contain each preferred keyword."""
    first = day - timedelta(days=content.feed.window_days - 1)
    texts = columns_between(desk.warehouse, first, day, ["title", "abstract"], categories=content.feed.categories)
    return keyword_matches(texts, list(dict.fromkeys(content.keywords.must_include)))


def read_file(desk: Desk, profile: str) -> tuple[Path, dict[str, Any], str]:
    """Return the profile's file, its record and its version.

    Raises InvalidProfile if it is missing or not a JSON object.
    """
    file = desk.settings.profiles_dir / profile / "profile.json"
    version = file_version(file)
    record = read_json(file)
    if not isinstance(record, dict):
        raise InvalidProfile(f"{file}: expected an object with the key interests; fix it in an editor")
    return file, record, version


def _liked_papers(desk: Desk, profile: str) -> list[tuple[str, str]]:
    """Return the names and titles of the liked papers in the profile's file; none if it cannot be read."""
    try:
        entries = _at(read_file(desk, profile)[1], "interests.papers")
    except InvalidProfile:
        return []
    titles = {_liked_name(entry): _liked_title(entry) for entry in entries} if isinstance(entries, list) else {}
    stored = papers_by_id(desk.warehouse, list(titles)).select(["paper_id", "title"]).to_pylist()
    titles |= {row["paper_id"]: row["title"] for row in stored}
    return [(name, readable_title(title)) for name, title in titles.items()]


def _liked_title(entry: Any) -> str:
    return str((isinstance(entry, Mapping) and entry.get("title")) or _liked_name(entry))


def _weights(desk: Desk, record: dict[str, Any]) -> dict[str, float]:
    """Return the weights of the profile's purpose, for a form without own weights."""
    options = record.get("ranking")
    purpose = options.get("purpose", "general") if isinstance(options, dict) else "general"
    weights = desk.settings.scoring.weights
    return dict(zip(DIMENSIONS, weights.get(str(purpose), weights["general"]), strict=True))
