"""Check the installation: `doctor`."""

import os
from dataclasses import asdict
from typing import Annotated

import typer

from paper_assets.interfaces.cli.terminal import (
    AsJson,
    counted,
    dagster_home,
    print_json,
    print_table,
    read_settings,
    say,
)
from paper_assets.setup.doctor import Installation, examine


def doctor(
    offline: Annotated[bool, typer.Option("--offline", help="Ask no other host.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check Python, disk, folders, model, ports, network, keys and mail, and say how to fix what is wrong.

    A configured language model is asked one short question.
    """
    installation = Installation(
        settings=read_settings(), environ=dict(os.environ), dagster_home=dagster_home(), online=not offline
    )
    found = examine(installation)
    problems = [each for each in found if each.state == "problem"]
    if as_json:
        print_json([asdict(each) for each in found])
    else:
        rows = [(each.name, each.state, each.detail) for each in found]
        print_table("doctor", ["check", "state", "detail"], rows)
        for each in found:
            if each.fix:
                say(f"{each.state}: {each.name}: {each.detail}\n  fix: {each.fix}")
        say(f"{counted(len(problems), 'problem')} found." if problems else "Everything that is needed works.")
    if problems:
        raise typer.Exit(1)
