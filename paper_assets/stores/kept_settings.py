"""Keep settings that a reader chose on the page or by a command in files of the data folder that only their user reads.

Three files: the language model with its key, the embedding model, and the hours of the daily fetch. A variable of the
environment overrides the files. They are read again when they change, so a running page, daemon or server needs no
restart, except for the embedding model: a process uses one until it ends. To keep another setting, add its name to the
pattern of its file.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

from paper_assets.errors import InvalidInput, StoreUnwritable
from paper_assets.settings import LLM_FAULT, LLM_MONTH, LLM_USE_FOLDER
from paper_assets.small_files import StateCache, file_state, make_private_folder, write_file

_OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file of variables: its name in the home, the names that it may hold, and whether one of them is a key."""

    name: str
    variable: re.Pattern[str]
    secret: bool


LANGUAGE_MODEL = KeptFile(
    "llm.env", re.compile(r"((?:LLM|OPENAI|ANTHROPIC|OLLAMA|PAPER_ASSETS_LLM)_[A-Z0-9_]{1,40})=(.*)"), secret=True
)
MORNING = KeptFile(
    "morning.env", re.compile(r"(PAPER_ASSETS_(?:FETCH_AT|FETCH_WEEKDAYS|TIME_ZONE))=(.*)"), secret=False
)
EMBEDDING_MODEL = KeptFile("embedding.env", re.compile(r"(PAPER_ASSETS_EMBEDDING_MODEL)=(.*)"), secret=False)
_KEPT_FILES = (LANGUAGE_MODEL, MORNING, EMBEDDING_MODEL)
KEPT_NAMES = tuple(kept.name for kept in _KEPT_FILES)
_USE = "llm-use"  # folder of the home: what was used of the language model, a file for each month


def kept_variables(home: Path, kept: KeptFile = LANGUAGE_MODEL) -> dict[str, str]:
    """Return the variables of the file; none without one. Raises InvalidInput if others can read a key."""
    file = home / kept.name
    try:
        text = file.read_text(encoding="utf-8")
        mode = file.stat().st_mode
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as fault:
        raise InvalidInput(f"{file} cannot be read: {getattr(fault, 'strerror', None) or 'it is not text'}") from None
    if kept.secret and mode & _OTHERS:
        raise InvalidInput(f"{file} can be read by others; run `chmod 600 {file}`")
    found = (kept.variable.fullmatch(line.strip()) for line in text.splitlines() if line.strip() and line[0] != "#")
    return {match[1]: match[2] for match in found if match}


def keep_variables(home: Path, variables: Mapping[str, str], kept: KeptFile = LANGUAGE_MODEL) -> Path:
    """Replace the file. Raises InvalidInput for a value with a line break, StoreUnwritable."""
    for name, value in variables.items():
        if not kept.variable.fullmatch(f"{name}={value}") or not value.isprintable():
            raise InvalidInput(f"{name} contains a line break or a control character")
    file = home / kept.name
    lines = [f"{name}={value}\n" for name, value in variables.items()]
    try:
        make_private_folder(home)
        write_file(file, "".join(["# Written by paper-assets; variables of the environment override these.\n", *lines]))
    except OSError as fault:
        raise StoreUnwritable(f"{file} cannot be written: {fault.strerror}; check permissions") from None
    return file


def forget_variables(home: Path, kept: KeptFile = LANGUAGE_MODEL) -> bool:
    """Remove the file; False if there is none."""
    try:
        (home / kept.name).unlink()
    except FileNotFoundError:
        return False
    except OSError as fault:
        raise StoreUnwritable(f"{home / kept.name} cannot be removed: {fault.strerror}") from None
    return True


class KeptEnvironment(Mapping[str, str]):
    """The environment with the kept settings behind it, as they are in the files when a variable is read.

    It also names where the use of the language model is recorded, and the current month (UTC).
    """

    def __init__(self, environ: Mapping[str, str], home: Path, clock: Callable[[], datetime]) -> None:
        self._environ = environ
        self.home = home
        self._clock = clock
        self._cache = StateCache()

    def __getitem__(self, name: str) -> str:
        own = self._environ.get(name)
        if own is not None and own.strip():
            return own
        behind = self._behind()  # an empty variable counts as unset
        return behind[name] if own is None or name in behind else own

    def __iter__(self) -> Iterator[str]:
        return iter({**self._behind(), **self._environ})

    def __len__(self) -> int:
        return len({**self._behind(), **self._environ})

    def __repr__(self) -> str:
        return f"KeptEnvironment({str(self.home)!r})"  # never a key

    def file_of(self, variable: str) -> Path | None:
        """Return the file that gives the variable, or None where the environment or nothing gives it."""
        if (self._environ.get(variable) or "").strip() or variable not in self._behind():
            return None
        return next((self.home / kept.name for kept in _KEPT_FILES if kept.variable.fullmatch(f"{variable}=")), None)

    def _behind(self) -> dict[str, str]:
        behind = {LLM_USE_FOLDER: str(self.home / _USE), LLM_MONTH: f"{self._clock():%Y-%m}"}
        for kept in _KEPT_FILES:
            state = file_state([self.home / kept.name])
            behind |= self._cache.get(kept.name, partial(_variables_or_fault, self.home, kept), state)
        return behind


def _variables_or_fault(home: Path, kept: KeptFile) -> dict[str, str]:
    try:
        return kept_variables(home, kept)
    except InvalidInput as fault:
        return {LLM_FAULT: f"{fault}"} if kept is LANGUAGE_MODEL else {}


def kept_environment(environ: Mapping[str, str], home: Path, clock: Callable[[], datetime]) -> KeptEnvironment:
    """Return the environment with the kept settings of a home behind it; such an environment as it is."""
    return environ if isinstance(environ, KeptEnvironment) else KeptEnvironment(environ, home, clock)
