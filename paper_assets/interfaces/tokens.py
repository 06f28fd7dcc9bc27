"""Find the person that a token belongs to, and slow down callers who guess tokens.

A right token is always accepted, whatever else comes from its address: people behind one router share an address. Wrong
tokens are counted by address and by the token's first characters, and the same wrong token counts once, so that a
program with a revoked token locks out only itself. No token is logged or stored.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from paper_assets.errors import PaperAssetsError
from paper_assets.stores.profiles import Person, person_with, read_people, token_hash

_WITHIN = 60.0  # seconds for which a wrong token counts
_MAX_WRONG = 10  # different tokens with the same first characters from one address
_MAX_WRONG_OF_ADDRESS = 100  # different tokens from one address
_PREFIX = 4  # characters
_MAX_ADDRESSES = 10_000  # that are remembered
_MAX_LENGTH = 200  # characters of a token

logger = logging.getLogger(__name__)


class TooManyTokens(Exception):
    """Too many wrong tokens were tried; `seconds` until the next one is checked."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong tokens; wait {seconds} s")
        self.seconds = seconds


@dataclass(frozen=True, kw_only=True)
class Authenticator:
    """The people of a file, and the wrong tokens of the last minute by address."""

    file: Path
    clock: Callable[[], float] = time.monotonic
    # By address: (prefix, hash) of each wrong token -> when it was first tried.
    _wrong: "OrderedDict[str, dict[tuple[str, str], float]]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def people(self) -> tuple[Person, ...]:
        """Read the people; empty while the file is broken, which is logged."""
        try:
            return read_people(self.file)
        except PaperAssetsError as fault:
            logger.error("sign-in is not possible: %s", fault)
            return ()

    def named(self, name: str) -> Person | None:
        """Find a person by name."""
        return next((person for person in self.people() if person.name == name), None)

    def with_token(self, token: str, *, address: str) -> Person | None:
        """Find the person with this token; None for a wrong one. Raises TooManyTokens, never for a right token."""
        person = person_with(self.people(), token) if 0 < len(token) <= _MAX_LENGTH else None
        if person is None and token:
            with self._lock:
                self._count(token, address)
        return person

    def _count(self, token: str, address: str) -> None:
        now, prefix = self.clock(), token[:_PREFIX]
        tried = {wrong_token: at for wrong_token, at in self._wrong.get(address, {}).items() if now - at < _WITHIN}
        same = [at for (start, _), at in tried.items() if start == prefix]
        wrong = (prefix, token_hash(token))
        if wrong in tried or (len(same) < _MAX_WRONG and len(tried) < _MAX_WRONG_OF_ADDRESS):
            tried.setdefault(wrong, now)
            limit_reached: list[float] = []
        else:
            limit_reached = same if len(same) >= _MAX_WRONG else list(tried.values())
        self._wrong[address] = tried
        self._wrong.move_to_end(address)
        while len(self._wrong) > _MAX_ADDRESSES:
            self._wrong.popitem(last=False)
        if limit_reached:
            raise TooManyTokens(int(_WITHIN - (now - min(limit_reached))) + 1)
