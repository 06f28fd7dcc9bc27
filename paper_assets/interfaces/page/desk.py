"""What the views of the page work with: settings, stores, models, what was just said, and how a page is drawn.

Belongs here: what every view needs. Not here: any rule about rankings, rewrites or profiles; those are asked for where
the command line asks for them.
"""

import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from paper_assets.digests.html import environment
from paper_assets.errors import NotComputed, PaperNotFound
from paper_assets.interfaces.values import parse_day
from paper_assets.models import minilm
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.profile import PROFILE_NAME, profile_folders
from paper_assets.settings import Settings
from paper_assets.stores.people import Person
from paper_assets.stores.rankings import latest_ranking_day
from paper_assets.stores.warehouse import Warehouse
from paper_assets.text.cleaning import one_line
from paper_assets.text.tex import readable

if TYPE_CHECKING:
    from paper_assets.interfaces.page.sign_in import Sessions

_READING_WAITS = 4.0  # seconds for a store that somebody writes to; then the page says so and tries again by itself
_WRITING_WAITS = 15.0  # a person's word is worth a longer wait
_MOST_NOTES = 200


@dataclass(frozen=True, kw_only=True)
class Desk:
    """One running page. `token` stands in its forms; `notes` are said once, on the page that follows a change.

    With `sessions` it is a lab's: each person has signed in and sees their own profiles, as if there were no others.
    """

    settings: Settings
    environ: Mapping[str, str]
    token: str
    notes: "OrderedDict[str, str]" = field(default_factory=OrderedDict)
    sessions: "Sessions | None" = None

    @cached_property
    def workspace(self) -> Workspace:
        """Stores, models and clock. Models are loaded when a view first needs them."""
        opened = open_workspace(self.settings, self.environ, clock=now)
        named = minilm.NAME if self.settings.embedding_model == minilm.NAME else None
        return replace(opened, warehouse=replace(opened.warehouse, deadline=_READING_WAITS), assumed_model=named)

    @property
    def warehouse(self) -> Warehouse:
        """For reading: waits briefly for who writes."""
        return self.workspace.warehouse

    @property
    def for_writing(self) -> Warehouse:
        """The same for a person's word."""
        return replace(self.warehouse, deadline=_WRITING_WAITS)

    @property
    def editing(self) -> Path:
        """The lock of those who edit profiles."""
        return self.settings.home / "profiles-edited"

    @cached_property
    def templates(self) -> jinja2.Environment:
        made = environment(jinja2.PackageLoader("paper_assets.interfaces.page", "templates"))
        made.filters |= {"short_day": short_day, "readable": readable_title}
        return made

    def profiles(self) -> list[str]:
        """The names of the profile folders, as the switch shows them."""
        return [folder.name for folder in profile_folders(self.settings.profiles_dir)]

    def form_token(self, request: Request) -> str | None:
        """What the forms of a request's page carry; None where nobody has signed in."""
        return self.sessions.form_token(request) if self.sessions else self.token

    def keep_note(self, text: str) -> str:
        """Keep a line to be said once; its key for the address."""
        key = secrets.token_urlsafe(9)
        self.notes[key] = text
        while len(self.notes) > _MOST_NOTES:
            self.notes.popitem(last=False)
        return key


def readable_title(text: str) -> str:
    return readable(one_line(text))


def now() -> datetime:
    return datetime.now(UTC)


def short_day(day: date) -> str:
    """13 Mar."""
    return f"{day.day} {day:%b}"


def desk_of(request: Request) -> Desk:
    found: Desk = request.app.state.desk
    return found


def person_of(request: Request) -> Person | None:
    """Who has signed in; None on a desk of one's own, where all profiles are open."""
    found: Person | None = getattr(request.state, "person", None)
    return found


def may_see(request: Request, profile: str) -> bool:
    """Whether a profile is there for who asks."""
    person = person_of(request)
    return person is None or profile in person.profiles


def profile_of(request: Request) -> str:
    """The profile of the address. Raises PaperNotFound for one without folder and list, or another's."""
    name, desk = str(request.path_params["profile"]), desk_of(request)
    known = PROFILE_NAME.fullmatch(name) and may_see(request, name)
    if known and (folder_of(desk, name) or latest_ranking_day(desk.warehouse, name)):
        return name
    where = "" if person_of(request) else f" in {desk.settings.profiles_dir}"
    raise PaperNotFound(f"there is no profile {name[:60]!r}{where}")


def folder_of(desk: Desk, profile: str) -> Path | None:
    """The profile's folder; None where only its rankings are left."""
    folder = desk.settings.profiles_dir / profile
    return folder if (folder / "profile.json").is_file() else None


def day_of(request: Request, profile: str) -> date:
    """The day of the address, or that of the newest ranking. Raises NotComputed, InvalidInput."""
    given = request.path_params.get("day")
    if given is not None:
        return parse_day(str(given), "the day in the address")
    newest = latest_ranking_day(desk_of(request).warehouse, profile)
    if newest is None:
        raise NotComputed(f"profile {profile!r} has no list yet; run `paper-assets run --profile {profile}`")
    return newest


def page(request: Request, template: str, *, status: int = 200, **said: Any) -> Response:
    """A view drawn inside the frame; `said` goes to its template."""
    desk = desk_of(request)
    named = request.path_params.get("profile")
    note = desk.notes.pop(request.query_params.get("note", ""), None)
    person, has_profiles = person_of(request), desk.settings.profiles_dir.is_dir()
    shown = {
        "view": template.partition(".")[0],
        "profile": named if named and may_see(request, named) else None,
        "profiles": [name for name in desk.profiles() if may_see(request, name)] if has_profiles else [],
        "person": person,
        "day": None,
        "token": desk.form_token(request),
        "note": note,
        "refresh": None,
        **said,
    }
    return HTMLResponse(desk.templates.get_template(template).render(shown), status_code=status)


def redirect_with_note(request: Request, address: str, note: str) -> Response:
    """After a change: the view at `address`, which says `note` once."""
    path, hash_sign, anchor = address.partition("#")
    mark = "&" if "?" in path else "?"
    return RedirectResponse(f"{path}{mark}note={desk_of(request).keep_note(note)}{hash_sign}{anchor}", status_code=303)
