"""Write docs/commands.md, the command reference, from the program itself.

    python docs/tools/command_reference.py

`tests/test_docs.py` compares the file with what this writes.
"""

import inspect
import re
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer

PAGE = Path(__file__).parent.parent / "commands.md"
_OPENING = """# Command reference

Generated from the program by `python docs/tools/command_reference.py`. `paper-assets COMMAND --help` shows it too.
"""


def command_reference() -> str:
    """Return the whole page: every command with its help, arguments and options, in the order of `--help`."""
    from paper_assets.interfaces.cli.app import app

    program: Any = typer.main.get_command(app)
    parts = [_OPENING]
    for name in program.list_commands(None):
        parts += _sections(program.get_command(None, name), name)
    return "\n".join(parts)


def _sections(command: Any, name: str, level: int = 2) -> list[str]:
    parts = [f"{'#' * level} {name}\n", _prose(command.help or "")]
    if hasattr(command, "list_commands"):
        for inner in command.list_commands(None):
            parts += _sections(command.get_command(None, inner), f"{name} {inner}", level + 1)
        return parts
    arguments = [part for part in command.params if part.param_type_name == "argument"]
    options = [part for part in command.params if part.param_type_name == "option"]
    usage = ["paper-assets", name, *([] if not options else ["[OPTIONS]"]), *(_metavar(part) for part in arguments)]
    parts.append(f"```\n{' '.join(usage)}\n```\n")
    if rows := [_row(part) for part in [*arguments, *options] if not getattr(part, "hidden", False)]:
        parts.append("\n".join(["| argument or option | meaning |", "|---|---|", *rows]) + "\n")
    return parts


def _metavar(argument: Any) -> str:
    shown = (argument.metavar or argument.name.upper()) + ("..." if argument.nargs == -1 else "")
    return shown if argument.required else f"[{shown}]"


def _row(part: Any) -> str:
    """One row of the table: name with its value, help, choices and default."""
    if part.param_type_name == "argument":
        name = f"`{_metavar(part)}`"
    else:
        value = "" if part.is_flag else f" {part.metavar or part.name.upper()}"
        name = ", ".join(f"`{option}{value}`" for option in [*part.opts, *part.secondary_opts])
    said = [" ".join((part.help or "").split())]
    if choices := _choices(part):
        said.append("One of " + ", ".join(f"`{choice}`" for choice in choices) + ".")
    default = getattr(part.default, "value", part.default)
    if default not in (None, "", False, True, []) and not callable(default) and not isinstance(default, list | tuple):
        said.append(f"Default: `{_portable(default)}`.")
    return f"| {name} | {_escaped(' '.join(text for text in said if text))} |"


def _choices(part: Any) -> list[str]:
    """The values that an enumeration or a Literal allows; none for other types."""
    kind = part.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [str(member.value) for member in kind]
    return [str(value) for value in get_args(kind)] if get_origin(kind) is Literal else []


def _portable(default: object) -> str:
    return str(default).replace(str(Path.cwd()), ".").replace(str(Path.home()), "~")


def _prose(help_text: str) -> str:
    """The help as Markdown: `\\b` marks, with which Click keeps lines as they are, become code blocks."""
    blocks = []
    for block in re.split(r"\n\s*\n", inspect.cleandoc(help_text)):
        if block.startswith("\b"):
            blocks.append("```\n" + block.removeprefix("\b").strip("\n") + "\n```")
        else:
            blocks.append(_escaped(" ".join(block.split())))
    return "\n\n".join(blocks) + "\n"


def _escaped(text: str) -> str:
    """Keep Markdown and HTML from reading what the program means literally; code in backticks is left unchanged."""
    pieces = re.split(r"(`[^`]*`)", text)
    return "".join(
        piece.replace("|", "\\|") if piece.startswith("`") else re.sub(r"([\\<>*_|\[\]#])", r"\\\1", piece)
        for piece in pieces
    )


if __name__ == "__main__":
    PAGE.write_text(command_reference(), encoding="utf-8")
