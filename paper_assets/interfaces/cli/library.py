"""Commands between the desk and reference managers: a library in, a list out (SPEC Z1, Z2)."""

import os
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import typer

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.citations import citations
from paper_assets.interfaces.cli.arguments import AsJson, open_warehouse, read_settings
from paper_assets.interfaces.cli.terminal import print_json, say
from paper_assets.interfaces.days import parse_day
from paper_assets.library.entries import Entry, import_library
from paper_assets.library.formats import read_library
from paper_assets.library.zotero import zotero_file, zotero_web
from paper_assets.text.cleaning import without_controls

library = typer.Typer(
    name="library",
    help="Like the papers of your own library. From files, or from Zotero's server.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@library.command(name="import")
def import_files(
    profile: str,
    files: Annotated[list[Path], typer.Argument(help="BibTeX, RIS, CSL-JSON, or Zotero's zotero.sqlite.")],
    as_json: AsJson = False,
) -> None:
    """Like the papers of library files; what could not be matched is listed. Again, it changes nothing."""
    entries = [
        entry for file in files for entry in (zotero_file(file) if file.suffix == ".sqlite" else read_library(file))
    ]
    _like(profile, entries, as_json=as_json)


@library.command()
def zotero(
    profile: str,
    number: Annotated[str, typer.Argument(help="Number of the library, as Zotero shows it beside your keys.")],
    group: Annotated[bool, typer.Option("--group", help="A group's library instead of a user's.")] = False,
    as_json: AsJson = False,
) -> None:
    """Like the papers of a library on Zotero's server; a private one needs ZOTERO_API_KEY."""
    if not number.isdigit():
        raise InvalidInput(f"the library's number has digits only, got {number[:40]!r}")
    settings = read_settings()
    kind: Literal["user", "group"] = "group" if group else "user"
    key = os.environ.get("ZOTERO_API_KEY", "").strip() or None
    entries = zotero_web(number, kind=kind, key=key, url=settings.zotero_url, timeout=settings.request_timeout)
    _like(profile, entries, as_json=as_json)


def cite(
    profile: str,
    day: Annotated[str | None, typer.Option(metavar="YYYY-MM-DD", help="Day of the list; default: the newest.")] = None,
    rated: Annotated[str | None, typer.Option(help="Instead: the papers rated worth, later or no.")] = None,
    form: Annotated[str, typer.Option("--format", help="bibtex, ris or csl-json.")] = "bibtex",
) -> None:
    """Print a list for a reference manager: the papers that a profile's ranking shows, or those rated so."""
    text = citations(open_warehouse(), profile, form, day=parse_day(day, "--day") if day else None, rated=rated)
    print(without_controls(text), end="")


def _like(profile: str, entries: list[Entry], *, as_json: bool) -> None:
    found = import_library(
        open_warehouse(), profile, entries, now=datetime.now(UTC), profiles_dir=read_settings().profiles_dir
    )
    if as_json:
        return print_json(asdict(found))
    say(f"{profile}: {found.read} works read, {len(found.new)} newly liked, {found.stored} of all stored here")
    for line in found.left_out:
        say(f"left out: {line}")
