"""Start using the desk: open it in a browser, or fetch and rank the first papers."""

import re
import sys
import threading
import webbrowser
from typing import Annotated

import typer

from paper_assets.interfaces.cli.terminal import say


def start(
    days: Annotated[
        int | None, typer.Option(min=1, max=60, help="Fetch the papers of the last days, rank them and show the list.")
    ] = None,
    profile: Annotated[str | None, typer.Option(help="With --days: rank only this profile; default: all.")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 takes a free one.")] = 8787,
    browser: Annotated[bool, typer.Option(help="Open the address in your browser.")] = True,
) -> None:
    """Open the desk in a browser; with --days, fetch and rank the papers of the last days.

    Without a profile the desk opens the welcome page. Fetching can be stopped at any time; the same command continues.
    """
    if days is not None:
        from paper_assets.interfaces.cli.first_papers import fetch_and_rank  # imports Dagster

        return fetch_and_rank(days, profile)
    from paper_assets.interfaces.cli.servers import serve_desk  # imports the servers

    def announce(text: str) -> None:
        say(text)
        found = re.search(r"http://\S+", text)
        if found and browser and sys.stdout.isatty():
            threading.Timer(0.5, webbrowser.open, [found[0]]).start()

    serve_desk(port, announce)
