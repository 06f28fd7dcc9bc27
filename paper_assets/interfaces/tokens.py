"""Find the person that a token belongs to, slow down callers who guess tokens, and keep people signed in by a cookie.

A right token is always accepted, whatever else comes from its address: people behind one router share an address. Wrong
tokens are counted by address and by the token's first characters, and the same wrong token counts once, so that a
program with a revoked token locks out only itself. No token is logged or stored.

The cookie contains a name, an expiry time and a signature of both and of the hash of the person's token. Removing the
person or changing the token therefore ends the session at once. No state is kept in the process.
"""

import hmac
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import PaperAssetsError
from paper_assets.stores.profiles import Person, person_with, read_people, token_hash

_WITHIN = 60.0  # seconds for which a wrong token counts
_MAX_WRONG = 10  # different tokens with the same first characters from one address
_MAX_WRONG_OF_ADDRESS = 100  # different tokens from one address
_PREFIX = 4  # characters
_MAX_ADDRESSES = 10_000  # that are remembered
_MAX_LENGTH = 200  # characters of a token
COOKIE = "desk"
_SESSION = timedelta(days=30)
_LONGEST_COOKIE = 300  # characters

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


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The sessions of a page, signed with `key`. `clock` returns times with a zone."""

    authenticator: Authenticator
    key: bytes
    clock: Callable[[], datetime]

    def person(self, request: Request) -> Person | None:
        """Return the person who has signed in, if the cookie is still valid."""
        cookie = request.cookies.get(COOKIE, "")
        name, _, rest = cookie.partition(".")
        expires, _, signature = rest.partition(".")
        if len(cookie) > _LONGEST_COOKIE or not (expires.isascii() and expires.isdigit()):
            return None
        person = self.authenticator.named(name)
        if person is None or int(expires) < self.clock().timestamp():
            return None
        return person if hmac.compare_digest(signature.encode(), self._signature(person, expires).encode()) else None

    def form_token(self, request: Request) -> str | None:
        """Return the token for the forms of this session; None before signing in."""
        person = self.person(request)
        return self._sign("form", person.name, request.cookies[COOKIE]) if person else None

    def begin(self, request: Request, response: Response, person: Person) -> None:
        """Start a session. The cookie is restricted to TLS if the request used TLS."""
        expires = f"{int((self.clock() + _SESSION).timestamp())}"
        response.set_cookie(
            COOKIE,
            f"{person.name}.{expires}.{self._signature(person, expires)}",
            max_age=int(_SESSION.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def _signature(self, person: Person, expires: str) -> str:
        return self._sign("session", person.name, expires, person.token_sha256)

    def _sign(self, *parts: str) -> str:
        return hmac.new(self.key, "\n".join(parts).encode("utf-8", "surrogateescape"), sha256).hexdigest()
