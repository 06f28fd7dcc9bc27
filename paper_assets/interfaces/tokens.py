"""Who a token belongs to, asked at each request, and how often somebody may be wrong (SPEC X4).

A wrong token counts once however often it comes, so that a program with a void one shuts out nobody but itself; who
tries many is told to wait, right or wrong. Nothing here writes a token anywhere.
"""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from paper_assets.errors import PaperAssetsError
from paper_assets.stores.people import Person, person_with, read_people, token_hash

_MOST_WRONG = 10  # different tokens from one address …
_WITHIN = 60.0  # … in so many seconds
_MOST_ADDRESSES = 10_000  # that are remembered
_LONGEST_TOKEN = 200

logger = logging.getLogger(__name__)


class TooManyTokens(Exception):
    """This address has tried too many wrong tokens; `seconds` until it may try again."""

    def __init__(self, seconds: int) -> None:
        super().__init__(f"too many wrong tokens; wait {seconds} s")
        self.seconds = seconds


@dataclass(frozen=True, kw_only=True)
class Doorkeeper:
    """The people of a file, and the wrong tokens of the last minute by address."""

    file: Path
    clock: Callable[[], float] = time.monotonic
    _wrong: "OrderedDict[str, dict[str, float]]" = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def people(self) -> tuple[Person, ...]:
        """Everybody now; nobody while the file is broken, which the log says."""
        try:
            return read_people(self.file)
        except PaperAssetsError as fault:
            logger.error("nobody is let in: %s", fault)
            return ()

    def named(self, name: str) -> Person | None:
        """The person of this name, if they are still there."""
        return next((person for person in self.people() if person.name == name), None)

    def with_token(self, token: str, *, address: str) -> Person | None:
        """Whose token it is, None for a wrong one. Raises TooManyTokens."""
        with self._lock:
            self._may_try(address)
        person = person_with(self.people(), token) if 0 < len(token) <= _LONGEST_TOKEN else None
        if person is None and token:
            with self._lock:
                tried = self._wrong.setdefault(address, {})
                self._wrong.move_to_end(address)
                tried.setdefault(token_hash(token), self.clock())
                while len(self._wrong) > _MOST_ADDRESSES:
                    self._wrong.popitem(last=False)
        return person

    def _may_try(self, address: str) -> None:
        now = self.clock()
        tried = {each: at for each, at in self._wrong.get(address, {}).items() if now - at < _WITHIN}
        if tried:
            self._wrong[address] = tried
        else:
            self._wrong.pop(address, None)
        if len(tried) >= _MOST_WRONG:
            raise TooManyTokens(int(_WITHIN - (now - min(tried.values()))) + 1)
