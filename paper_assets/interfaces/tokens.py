"""Keep people signed in by a cookie.

The cookie contains a name, an expiry time and a signature of both and of the hash of the person's token. Removing the
person or changing the token therefore ends the session at once. No state is kept in the process. A token has 256 random
bits, so nothing needs to slow down callers who guess; none is logged or stored.
"""

import hmac
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.errors import PaperAssetsError
from paper_assets.stores.profiles import Person, read_people

COOKIE = "desk"
_SESSION = timedelta(days=30)
_LONGEST_COOKIE = 300  # characters

logger = logging.getLogger(__name__)


def people_of(file: Path) -> tuple[Person, ...]:
    """Read the people; empty while the file is broken, which is logged."""
    try:
        return read_people(file)
    except PaperAssetsError as fault:
        logger.error("sign-in is not possible: %s", fault)
        return ()


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The sessions of the people of a file, signed with `key`. `clock` returns times with a zone."""

    file: Path
    key: bytes
    clock: Callable[[], datetime]

    def person(self, request: Request) -> Person | None:
        """Return the person who has signed in, if the cookie is still valid."""
        cookie = request.cookies.get(COOKIE, "")
        name, _, rest = cookie.partition(".")
        expires, _, signature = rest.partition(".")
        if len(cookie) > _LONGEST_COOKIE or not (expires.isascii() and expires.isdigit()):
            return None
        person = next((each for each in people_of(self.file) if each.name == name), None)
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
