"""Who is looking at the page of a lab: a cookie that says so and that only this desk can have made (SPEC X4).

The cookie holds a name, when it ends, and a seal over both and the hash of the person's token: with the person, or with
their token, it becomes void at once. Nothing is kept in the process.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from paper_assets.interfaces.tokens import Doorkeeper
from paper_assets.stores.people import Person

COOKIE = "desk"
_LASTS = timedelta(days=30)
_LONGEST = 300  # characters of a cookie of ours


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """The sessions of a page; `key` seals them. `clock` gives instants with a zone."""

    doorkeeper: Doorkeeper
    key: bytes
    clock: Callable[[], datetime]

    def person(self, request: Request) -> Person | None:
        """Who has signed in, if their cookie still holds."""
        given = request.cookies.get(COOKIE, "")
        name, _, rest = given.partition(".")
        ends, _, seal = rest.partition(".")
        if len(given) > _LONGEST or not (ends.isascii() and ends.isdigit()):
            return None
        person = self.doorkeeper.named(name)
        if person is None or int(ends) < self.clock().timestamp():
            return None
        return person if hmac.compare_digest(seal.encode(), self._seal(person, ends).encode()) else None

    def form_token(self, request: Request) -> str | None:
        """What the forms of this session carry; None for who has not signed in."""
        person = self.person(request)
        return self._sealed("form", person.name, request.cookies[COOKIE]) if person else None

    def begin(self, request: Request, response: Response, person: Person) -> None:
        """Let the person in. The cookie goes over TLS only where this request came over TLS."""
        ends = f"{int((self.clock() + _LASTS).timestamp())}"
        response.set_cookie(
            COOKIE,
            f"{person.name}.{ends}.{self._seal(person, ends)}",
            max_age=int(_LASTS.total_seconds()),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )

    def _seal(self, person: Person, ends: str) -> str:
        return self._sealed("session", person.name, ends, person.token_sha256)

    def _sealed(self, *parts: str) -> str:
        return hmac.new(self.key, "\n".join(parts).encode("utf-8", "surrogateescape"), sha256).hexdigest()
