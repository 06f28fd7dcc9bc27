"""Print a script that lets a shell complete commands and options."""

from enum import StrEnum
from typing import Annotated

import typer
from typer.completion import get_completion_script

from paper_assets.interfaces.cli.process import COMPLETE_VARIABLE

PROGRAM = "paper-assets"


class Shell(StrEnum):
    """A shell for which there is a script."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="Your shell.")]) -> None:
    """Print a script for Tab completion in your shell.

    bash: add `eval "$(paper-assets completion bash)"` to ~/.bashrc; zsh: the same with zsh in ~/.zshrc, after compinit;
    fish: `paper-assets completion fish > ~/.config/fish/completions/paper-assets.fish`.
    """
    print(get_completion_script(prog_name=PROGRAM, complete_var=COMPLETE_VARIABLE, shell=shell.value))
