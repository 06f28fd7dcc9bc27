"""Exchange with other programs: import a library, export citations, send digests."""

import os
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from paper_assets.errors import InvalidInput, PaperAssetsError
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    ListDay,
    ProfileName,
    checked_warehouse,
    command_group,
    day_option,
    environment,
    open_warehouse,
    print_json,
    print_table,
    read_settings,
    say,
    stored_list,
)
from paper_assets.interfaces.ranking_answers import citations, list_day
from paper_assets.learning.ratings import check_profile
from paper_assets.library.entries import Entry, import_library
from paper_assets.library.zotero import read_libraries, zotero_web
from paper_assets.pipeline.deliveries import deliver as send
from paper_assets.pipeline.digests import outgoing_digest
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.stores.deliveries import Delivery
from paper_assets.text.cleaning import without_controls

Collections = Annotated[
    list[str] | None,
    typer.Option("--collection", help="Zotero: only works in this collection or one within it; repeatable."),
]

library = command_group(
    "library", "Import the papers of your library as liked papers. From files, or from Zotero's server."
)


@library.command(name="import")
def import_files(
    profile: ProfileName,
    files: Annotated[list[Path], typer.Argument(help="BibTeX, RIS, CSL-JSON, or Zotero's zotero.sqlite.")],
    collection: Collections = None,
    as_json: AsJson = False,
) -> None:
    """Import the papers of library files as liked papers; run it again to add new ones. Lists unreadable entries."""
    if collection and any(file.suffix != ".sqlite" for file in files):
        raise InvalidInput("--collection chooses from a zotero.sqlite; other files are read whole")
    _like(profile, read_libraries(files, collection or ()), as_json=as_json)


@library.command()
def zotero(
    profile: ProfileName,
    number: Annotated[str, typer.Argument(help="Number of the library, as Zotero shows it beside your keys.")],
    group: Annotated[bool, typer.Option("--group", help="A group's library instead of a user's.")] = False,
    collection: Collections = None,
    as_json: AsJson = False,
) -> None:
    """Import the papers on Zotero's server as liked papers; run it again to add new ones. A private library needs
    ZOTERO_API_KEY."""
    if not number.isdigit():
        raise InvalidInput(f"the library's number has digits only, got {number[:40]!r}")
    settings = read_settings()
    kind: Literal["user", "group"] = "group" if group else "user"
    key = os.environ.get("ZOTERO_API_KEY", "").strip() or None
    entries = zotero_web(
        number,
        kind=kind,
        key=key,
        url=settings.zotero_url,
        timeout=settings.request_timeout,
        collections=collection or (),
    )
    _like(profile, entries, as_json=as_json)


def cite(
    profile: ProfileName,
    day: ListDay = None,
    rated: Annotated[str | None, typer.Option(help="Instead: the papers rated worth, later or no.")] = None,
    form: Annotated[str, typer.Option("--format", help="bibtex, ris, csl-json or markdown.")] = "bibtex",
) -> None:
    """Export a list, or rated papers, as BibTeX, RIS, CSL-JSON or Markdown."""
    warehouse, day = (checked_warehouse(profile), day) if rated else stored_list(profile, day)
    text = citations(warehouse, profile, form, day=day, rated=rated)
    print(without_controls(text), end="")


def _like(profile: str, entries: list[Entry], *, as_json: bool) -> None:
    imported = import_library(
        open_warehouse(), profile, entries, now=datetime.now(UTC), profiles_dir=read_settings().profiles_dir
    )
    if as_json:
        return print_json(asdict(imported))
    say(f"{profile}: {imported.read} works read, {len(imported.new)} newly liked, {imported.stored} of all stored here")
    for line in imported.left_out:
        say(f"left out: {line}")


def _outcome(delivery: Delivery) -> dict[str, str | None]:
    if delivery.state != "sending":
        return {"channel": delivery.channel, "state": delivery.state, "reason": delivery.reason}
    reason = delivery.reason or "cut off while it was sent, it may have arrived"
    return {"channel": delivery.channel, "state": "unknown", "reason": reason}


def deliver(
    profile: ProfileName,
    day: Annotated[date | None, day_option("--day", "Day; default: the newest.")] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Send again what may have been sent, else what was sent.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send a profile's digest to the channels in its delivery.json."""
    workspace = open_workspace(read_settings(), environment(), clock=lambda: datetime.now(UTC))
    check_profile(workspace.warehouse, profile, workspace.settings.profiles_dir)
    of_day = list_day(workspace.warehouse, profile, day, settings=workspace.settings)
    digest = outgoing_digest(workspace.warehouse, profile, of_day, settings=workspace.settings)
    tried = send(workspace, digest, again=again)
    if not tried:
        raise InvalidInput(f"{profile}: nothing to send, it has no delivery.json that names a channel")
    outcomes = [_outcome(delivery) for delivery in tried]
    if as_json:
        print_json({"profile": profile, "day": of_day, "deliveries": outcomes})
    else:
        rows = [(outcome["channel"], outcome["state"], outcome["reason"] or "") for outcome in outcomes]
        print_table(f"{profile}, {of_day}", ["channel", "state", "reason"], rows)
    lost = [outcome for outcome in outcomes if outcome["state"] != "sent"]
    if lost:
        line = f"{profile}, {of_day}: {lost[0]['channel']} {lost[0]['state']}: {lost[0]['reason']}"
        if lost[0]["state"] == "unknown":
            line += f"; if it has not, send it again with: paper-assets deliver {profile} --day {of_day} --again"
        raise PaperAssetsError(line)
