"""Keep the settings of the language model in a file of the data folder that only its user can read.

The environment goes before the file, so that a variable can always replace what is kept.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from paper_assets.errors import InvalidInput, StoreUnwritable
from paper_assets.stores.locks import make_private_folder

FILE = "llm.env"
_OTHERS = 0o077
_LINE = re.compile(r"((?:LLM|OPENAI|ANTHROPIC|OLLAMA|PAPER_ASSETS_LLM)_[A-Z0-9_]{1,40})=(.*)")


def kept_variables(home: Path) -> dict[str, str]:
    """Return the variables of the file; none without one. Raises InvalidInput if others can read it."""
    file = home / FILE
    try:
        text = file.read_text(encoding="utf-8")
        mode = file.stat().st_mode
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"{file} cannot be read: {getattr(fault, 'strerror', None) or 'it is not text'}") from None
    if mode & _OTHERS:
        raise InvalidInput(f"{file} can be read by others; run `chmod 600 {file}`")
    found = (_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip() and line[0] != "#")
    return {match[1]: match[2] for match in found if match}


def keep_variables(home: Path, variables: Mapping[str, str]) -> Path:
    """Replace the file. Raises InvalidInput for a value with a line break, StoreUnwritable."""
    for name, value in variables.items():
        if not _LINE.fullmatch(f"{name}={value}") or not value.isprintable():
            raise InvalidInput(f"{name} holds a line break or a control character")
    file = home / FILE
    unfinished = home / f".{FILE}.new"
    try:
        make_private_folder(home)
        unfinished.unlink(missing_ok=True)
        with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as new:
            new.write("# Written by `paper-assets llm set`; variables of the environment go before these.\n")
            new.writelines(f"{name}={value}\n" for name, value in variables.items())
        unfinished.replace(file)
    except OSError as fault:
        raise StoreUnwritable(f"{file} cannot be written: {fault.strerror}; check permissions") from None
    return file


def forget_variables(home: Path) -> bool:
    """Remove the file; False if there is none."""
    try:
        (home / FILE).unlink()
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise StoreUnwritable(f"{home / FILE} cannot be removed: {fault.strerror}") from None
    return True
