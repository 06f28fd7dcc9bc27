"""Commands that serve: the desk as a page (`start`), the MCP server, and both over HTTP for several people (`lab`)."""

import re
import sys
import threading
import webbrowser
from functools import partial
from typing import Annotated

import typer

from paper_assets.errors import InvalidInput
from paper_assets.interfaces.cli.terminal import (
    AsJson,
    command_group,
    environment,
    print_json,
    print_table,
    read_settings,
    say,
)
from paper_assets.interfaces.mcp import server as mcp_server
from paper_assets.profile import profile_folders
from paper_assets.stores.profiles import add_person, people_file, read_people, remove_person

lab = command_group("lab", "Serve the desk and MCP over HTTP for several people, with a token for each.")
DeskPort = Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")]
OpensBrowser = Annotated[
    bool, typer.Option("--browser/--no-browser", help="At a terminal, open the address in your browser.")
]
PersonName = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person.")]


def mcp() -> None:
    """Serve assistants over MCP on standard input and output. The log goes to standard error."""
    mcp_server.serve(read_settings(), environment())


def _announce(text: str, *, browser: bool) -> None:
    """Print the line with the desk's URL; at a terminal, open the URL in the browser too unless that is not wanted."""
    say(text)
    address = re.search(r"http://\S+", text)
    if address and browser and sys.stdout.isatty():
        threading.Timer(0.5, webbrowser.open, [address[0]]).start()


@lab.command()
def serve(
    host: Annotated[str, typer.Option(help="Address to listen on; other machines only after `lab add`.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8788,
    allow_host: Annotated[
        list[str] | None, typer.Option("--allow-host", help="Host name to answer to, such as desk.example.org.")
    ] = None,
) -> None:
    """Serve the desk and MCP to the people of the lab."""
    from paper_assets.interfaces.lab import serve as serve_lab  # not for the MCP server's start

    serve_lab(read_settings(), environment(), host=host, port=port, names=allow_host or (), say=say)


@lab.command()
def add(
    name: PersonName,
    profiles: Annotated[list[str], typer.Option("--profile", help="A profile that they may use; repeatable.")],
) -> None:
    """Give a person access, and print their token, which is shown only this once."""
    settings = read_settings()
    existing = {folder.name for folder in profile_folders(settings.profiles_dir)}
    if missing := [profile for profile in profiles if profile not in existing]:
        raise InvalidInput(f"there is no profile {missing[0][:60]!r} in {settings.profiles_dir}")
    say(add_person(people_file(settings.home), name, profiles))


@lab.command()
def remove(name: PersonName) -> None:
    """Revoke a person's token at once."""
    remove_person(people_file(read_settings().home), name)
    say(f"{name} can no longer sign in: the token is revoked")


@lab.command(name="list")
def list_people(as_json: AsJson = False) -> None:
    """List the people and the profiles that they may use."""
    registered = read_people(people_file(read_settings().home))
    if as_json:
        return print_json([{"name": person.name, "profiles": sorted(person.profiles)} for person in registered])
    if not registered:
        return say("No person has a token yet; `paper-assets lab add NAME --profile PROFILE` gives one.")
    print_table(
        "people", ["name", "profiles"], [(person.name, ", ".join(sorted(person.profiles))) for person in registered]
    )


def start(
    days: Annotated[
        int | None, typer.Option(min=1, max=60, help="Fetch the papers of the last days, rank them and show the list.")
    ] = None,
    profile: Annotated[str | None, typer.Option(help="With --days: rank only this profile; default: all.")] = None,
    port: DeskPort = 8787,
    browser: OpensBrowser = True,
) -> None:
    """Open the desk in a browser; with --days, fetch and rank the papers of the last days.

    Without a profile the desk opens the welcome page. Only this machine can reach the desk. Fetching can be stopped at
    any time; the same command continues.
    """
    if days is not None:
        from paper_assets.interfaces.cli.graph import fetch_and_rank  # imports Dagster

        return fetch_and_rank(days, profile)

    from paper_assets.interfaces.page.app import serve as serve_page  # not for the MCP server's start

    serve_page(read_settings(), environment(), port=port, say=partial(_announce, browser=browser))
