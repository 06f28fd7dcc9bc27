"""Run a small Zotero server on 127.0.0.1: the works of one library by page, for one key.

with loopback_zotero(["On trees"], key="invented") as zotero:
    zotero_web("4711", kind="user", key="invented", url=zotero.url, timeout=60)
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests import loopback
from tests.loopback import Answer, Request

PAGE = 100


@dataclass
class LoopbackZotero:
    url: str = ""
    requests: list[Request] = field(default_factory=list)


@contextmanager
def loopback_zotero(titles: Sequence[str], *, number: str = "4711", key: str = "") -> Iterator[LoopbackZotero]:
    """A running server with the user library `number`; another number or key is refused."""
    zotero = LoopbackZotero()
    items = [
        {"key": f"K{place}", "data": {"itemType": "preprint", "title": title, "abstractNote": f"We study {title}."}}
        for place, title in enumerate(titles)
    ]

    def answer(request: Request) -> Answer:
        zotero.requests.append(request)
        given = request.headers.get("authorization", "").removeprefix("Bearer ") or request.headers.get(
            "zotero-api-key", ""
        )
        if given != key or not request.path.startswith(f"/users/{number}/"):
            return Answer(status=403, body=b"Forbidden")
        start = int(request.query.get("start", 0))
        following = start + PAGE
        headers = {"Content-Type": "application/json", "Total-Results": f"{len(items)}"}
        if following < len(items):
            headers["Link"] = f'<{zotero.url}{request.path}?start={following}&limit={PAGE}>; rel="next"'
        return Answer(body=json.dumps(items[start:following]).encode(), headers=headers)

    with loopback.serving(answer) as address:
        zotero.url = address
        yield zotero
