"""Who may talk to a page on the loopback: every site that the same browser has open can reach it, and none may use it.

Only names of this machine are answered (a foreign name would be DNS rebinding), and what changes something must not
come from another site. The desk asks for more (`page/guard.py`); this guards Dagster's page, whose forms are not
ours.
"""

from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Set
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

THIS_MACHINE = frozenset({"127.0.0.1", "localhost", "::1"})
_READS = frozenset({"GET", "HEAD"})
_OF_OUR_PAGES = frozenset({"same-origin", "none"})  # none: an address that a person typed
_POLICY_VIOLATION = 1008  # how a websocket is refused


def of_this_machine(host: str, names: Set[str] = THIS_MACHINE) -> bool:
    """Whether a Host header names this machine, on whatever port; `names` are all that it answers to, in lower case."""
    try:
        return urlsplit(f"//{host}").hostname in names
    except ValueError:
        return False


class LocalOnly:
    """ASGI middleware around a page that answers programs of this machine and its own scripts, and no other site.

    Programs send neither Origin nor Sec-Fetch-Site and may do all; a page that a link elsewhere leads to is shown.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refused = _refused(scope) if scope["type"] in ("http", "websocket") else None
        if refused is None:
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION, "reason": refused[1]})
        else:
            status, line = refused
            headers = [(b"content-type", b"text/plain; charset=utf-8")]
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": f"{line}\n".encode()})


def _refused(scope: Scope) -> tuple[int, str] | None:
    """Return status and reason if the request is refused, from its headers alone."""
    headers: Mapping[str, str] = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "")
    if not of_this_machine(host):
        return 421, "this page answers only under names of this machine, like 127.0.0.1"
    read = scope["type"] == "http" and scope["method"] in _READS
    if read and scope["path"].rstrip("/").endswith("/graphql") and b"query" in scope.get("query_string", b""):
        return 405, "queries come by POST"  # a picture of another site could ask by GET, and change something
    if read and headers.get("sec-fetch-mode") == "navigate":
        return None
    origin = headers.get("origin")
    if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
        return 403, "this must come from a page of this machine"
    if headers.get("sec-fetch-site", "none") not in _OF_OUR_PAGES:
        return 403, "this must come from a page of this machine"
    return None
