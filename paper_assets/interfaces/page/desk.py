"""Shared parts of the views: settings, stores, models, tasks and notes of a page, and what a request names.

Rules about rankings, rewrites and profiles are in the same functions that the command line uses.
"""

import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from paper_assets.errors import InvalidProfile, NotComputed, PaperNotFound
from paper_assets.interfaces.background import Tasks
from paper_assets.interfaces.page.display import templates
from paper_assets.interfaces.tokens import Sessions
from paper_assets.interfaces.values import parse_day
from paper_assets.models import minilm
from paper_assets.pipeline.profiles import load_valid_profile, usable_profile
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.profile import PROFILE_NAME, profile_content, profile_folders, read_json
from paper_assets.settings import Settings
from paper_assets.small_files import StateCache, file_state
from paper_assets.stores.profiles import Person
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.stores.warehouse import Warehouse

_READ_DEADLINE = 4.0  # seconds to wait while another process writes; then the page reports it and reloads itself
_WRITE_DEADLINE = 15.0  # a reader's change is worth a longer wait
_MOST_NOTES = 200
_OPENED: ContextVar[Warehouse | None] = ContextVar("opened", default=None)  # the warehouse that this request reads

T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One running page. Its forms contain `token`; each of `notes` is shown once, on the page after a change.

    With `sessions` it serves a lab: each person signs in and sees only their own profiles.
    """

    settings: Settings
    environ: Mapping[str, str]
    token: str
    notes: "OrderedDict[str, tuple[str, str]]" = field(default_factory=OrderedDict)  # text, id of its place
    uploads: "OrderedDict[str, tuple[tuple[str, bytes], ...]]" = field(default_factory=OrderedDict)  # of refused forms
    sessions: Sessions | None = None
    cache: StateCache = field(default_factory=StateCache)
    tasks: Tasks = field(default_factory=Tasks)

    def due_states(self) -> tuple[str | None, str]:
        """Return what changes with everything that decides what is due: the database, the profiles, the folders of
        digests and rankings, and the hour.
        """
        settings = self.settings
        profiles = sorted(settings.profiles_dir.glob("*/*")) if settings.profiles_dir.is_dir() else []
        outputs = [
            path for root in (settings.digests_dir, settings.rankings_dir) for path in (root, *sorted(root.glob("*/")))
        ]
        return file_state([*self.warehouse.files, *profiles, *outputs], below=False), f"{now():%Y-%m-%d %H}"

    @cached_property
    def workspace(self) -> Workspace:
        """Open stores, models and clock. Models are loaded when a view first needs them."""
        opened = open_workspace(self.settings, self.environ, clock=now)
        named = minilm.NAME if self.settings.embedding_model == minilm.NAME else None
        return replace(opened, warehouse=replace(opened.warehouse, deadline=_READ_DEADLINE), assumed_model=named)

    @property
    def warehouse(self) -> Warehouse:
        """The warehouse for reading: waits briefly while another process writes."""
        return _OPENED.get() or self.workspace.warehouse

    @contextmanager
    def read_together(self) -> Iterator[Warehouse]:
        """Open the warehouse once for all that a request reads through `warehouse`; opening it takes 10 to 40 ms.

        No process can write in the meantime, so the block calls neither a language model nor `for_writing`.
        """
        with self.warehouse.read_together() as opened:
            before = _OPENED.set(opened)
            try:
                yield opened
            finally:
                _OPENED.reset(before)

    @property
    def for_writing(self) -> Warehouse:
        """The warehouse for a reader's change: waits longer."""
        return replace(self.workspace.warehouse, deadline=_WRITE_DEADLINE)

    @property
    def editing(self) -> Path:
        """The lock file for edits of profiles."""
        return self.settings.home / "profiles-edited"

    def profiles(self) -> list[str]:
        """List the names of the profile folders."""
        return [folder.name for folder in profile_folders(self.settings.profiles_dir)]

    def title_of(self, profile: str) -> str:
        """Return what readers call a profile: its title, else the name of its folder."""
        try:
            title = read_json(self.settings.profiles_dir / profile / "profile.json").get("title")  # type: ignore[attr-defined]
        except (InvalidProfile, AttributeError):
            return profile
        return title if isinstance(title, str) and title.strip() else profile

    def form_token(self, request: Request) -> str | None:
        """Return the token for the forms of a request; None before signing in."""
        return self.sessions.form_token(request) if self.sessions else self.token

    def keep_note(self, text: str, place: str) -> str:
        """Keep a note to show once, at the element with the id `place`; return its key for the address."""
        key = secrets.token_urlsafe(9)
        self.notes[key] = text, place
        while len(self.notes) > _MOST_NOTES:
            self.notes.popitem(last=False)
        return key


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def desk_of(request: Request) -> Desk:
    """Return the desk that serves a request."""
    return cast("Desk", request.app.state.desk)


def reading_together(view: Callable[[Request], Response]) -> Callable[[Request], Response]:
    """Open the warehouse once for all that a view reads: see `Desk.read_together`."""

    @wraps(view)
    def answer(request: Request) -> Response:
        with desk_of(request).read_together():
            return view(request)

    return answer


def person_of(request: Request) -> Person | None:
    """Return the person who has signed in; None on a personal desk, where all profiles are open."""
    return cast("Person | None", getattr(request.state, "person", None))


def may_see(request: Request, profile: str) -> bool:
    """Return whether the person of the request may see a profile."""
    person = person_of(request)
    return person is None or profile in person.profiles


def profile_of(request: Request) -> str:
    """Return the profile in the address. Raises PaperNotFound for an unknown profile or another person's."""
    name, desk = str(request.path_params["profile"]), desk_of(request)
    permitted = PROFILE_NAME.fullmatch(name) and may_see(request, name)
    if permitted and (folder_of(desk, name) or latest_ranking_day(desk.warehouse, name)):
        return name
    where = "" if person_of(request) else f" in {desk.settings.profiles_dir}"
    raise PaperNotFound(f"there is no profile {name[:60]!r}{where}")


def folder_of(desk: Desk, profile: str) -> Path | None:
    """Return the profile's folder; None if only its rankings are left."""
    folder = desk.settings.profiles_dir / profile
    try:
        return folder if (folder / "profile.json").is_file() else None
    except OSError:  # a name too long for any file
        return None


def day_of(request: Request, profile: str) -> date:
    """Return the day in the address, or that of the newest ranking. Raises NotComputed, InvalidInput."""
    text = request.path_params.get("day")
    if text is not None:
        return parse_day(str(text), "the day in the address")
    newest = latest_ranking_day(desk_of(request).warehouse, profile)
    if newest is None:
        raise NotComputed(f"profile {profile!r} has no ranking yet")  # `missing_list` offers to make it
    return newest


def page(request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
    """Render a view inside the frame; `values` go to its template."""
    desk = desk_of(request)
    named = request.path_params.get("profile")
    seen = named if named and may_see(request, named) else None
    note, place = desk.notes.pop(request.query_params.get("note", ""), (None, ""))
    person, has_profiles = person_of(request), desk.settings.profiles_dir.is_dir()
    broken = _profile_fault(desk, seen) if seen else None
    here = request.url.remove_query_params("note")
    context = {
        "view": template.partition(".")[0],
        "profile": seen,
        "title_of": desk.title_of,
        "profile_title": desk.title_of(seen) if seen else None,
        "profiles": [name for name in desk.profiles() if may_see(request, name)] if has_profiles else [],
        "person": person,
        "gone": seen is not None and status == 200 and folder_of(desk, seen) is None,
        "broken": broken,
        "correctable": bool(seen and broken) and is_correctable(desk, str(seen)),
        "day": None,
        "token": desk.form_token(request),
        "base": f"/p/{seen}" if seen else "",
        "back": f"{here.path}?{here.query}" if here.query else here.path,
        "note": note,
        "notes": {place: note} if note and place else {},  # by the id of their place, for pages without scripts
        "refresh": None,
        "status": status,
        "seen": (),
        "score": "similar",
        **values,
    }
    # What a paper's row needs of its view. A macro of another template does not see the context.
    names = ("profile", "token", "base", "back", "notes", "seen", "score")
    context["where"] = {name: context[name] for name in names}
    return HTMLResponse(templates().get_template(template).render(context), status_code=status)


def interests_of(desk: Desk, profile: str) -> list[str]:
    """Return the profile's interests, main ones first; none if the profile was never readable."""
    try:
        # If the file is broken, the stored content is read, and a caller may be inside `read_together` already.
        workspace = replace(desk.workspace, warehouse=desk.warehouse)
        interests = usable_profile(workspace, profile).content.interests
    except InvalidProfile:
        return []
    return list(dict.fromkeys((*interests.primary, *interests.secondary, *interests.exploratory)))


def _profile_fault(desk: Desk, profile: str) -> str | None:
    """Return what is wrong with the profile's files, for the top of each of its views; None if they are valid or
    removed.
    """
    folder = folder_of(desk, profile) if PROFILE_NAME.fullmatch(profile) else None
    if folder is None:
        return None
    try:
        load_valid_profile(folder)
    except InvalidProfile as fault:
        return str(fault)
    except Exception as fault:
        logger.exception("the profile %s could not be read", profile)
        return f"the profile could not be read ({type(fault).__name__}); the log has the details"
    return None


def is_correctable(desk: Desk, profile: str) -> bool:
    """Return whether the fault of a profile can be corrected in its form: a value of `profile.json` is wrong."""
    file = desk.settings.profiles_dir / profile / "profile.json"
    try:
        record = read_json(file)
    except InvalidProfile:
        return False
    try:
        profile_content(record, source=str(file))
    except InvalidProfile:
        return isinstance(record, dict)
    return False


def address_after(request: Request, profile: str) -> str:
    """Return the profile's view that the form was sent from (`back`); its newest list without one, or for another."""
    back = str(request.state.form.get("back", ""))
    return back if back == f"/p/{profile}" or back.startswith(f"/p/{profile}/") else f"/p/{profile}"


def local_address(address: str, default: str) -> str:
    """Return the address if it is a view of this page, else the default, so that no redirect leaves this host."""
    plain = address.startswith("/") and not address.startswith("//") and address.isascii() and address.isprintable()
    return address if plain and "\\" not in address else default


def redirect_with_note(request: Request, address: str, note: str) -> Response:
    """Redirect to the view at `address`, which shows `note` once."""
    path, hash_sign, anchor = address.partition("#")
    mark = "&" if "?" in path else "?"
    return RedirectResponse(
        f"{path}{mark}note={desk_of(request).keep_note(note, unquote(anchor))}{hash_sign}{anchor}", status_code=303
    )
