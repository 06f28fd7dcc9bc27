"""A lab of two people, each with a profile that has lists, digests, rewrites and a best practice, and its server."""

import http.client
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from paper_assets.pipeline.digests import write_digest
from paper_assets.pipeline.rewrite_items import wanted_items
from paper_assets.profile import load_profile
from paper_assets.stores.best_practices import add_missing
from paper_assets.stores.profiles import add_person, people_file
from paper_assets.stores.rewrite_progress import keep_attempt, replace_set
from tests.desk import COMMAND, GRAPHS, SPEECH, Desk, end
from tests.forked_commands import Command, ForkedCommand, can_fork
from tests.mcp.ranked_desk import DAYS, ranked_desk
from tests.page.invented_desk import attempt, practice
from tests.rewriting.scripted import NOW

LATEST = DAYS[-1]
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@dataclass(frozen=True)
class Lab:
    """A served lab: `tokens` by name, and of each profile its rewrite and its best practice."""

    desk: Desk
    url: str
    tokens: Mapping[str, str]
    items: Mapping[str, str]
    practices: Mapping[str, str]
    log: Path

    def asked(
        self, method: str, path: str, body: Mapping[str, str] | str | None = None, **headers: str
    ) -> tuple[int, http.client.HTTPMessage, str]:
        """Return the answer to a request with only the given headers."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=600)
        try:
            connection.request(method, path, urlencode(body) if isinstance(body, Mapping) else body, headers)
            answer = connection.getresponse()
            return answer.status, answer.msg, answer.read().decode()
        finally:
            connection.close()

    def signed_in(self, token: str) -> str:
        """Sign in with the token and return its cookie. Fails if there is none."""
        status, headers, text = self.asked("POST", "/sign-in", {"key": token}, Origin=self.url, **FORM)
        assert status == 303, text
        return headers["Set-Cookie"].partition(";")[0]

    def form_token(self, cookie: str) -> str:
        found = re.search(r'name="token" value="([^"]+)"', self.asked("GET", "/nothing", Cookie=cookie)[2])
        assert found
        return found[1]


def filled(folder: Path) -> tuple[Desk, dict[str, str], dict[str, str]]:
    """The desk of two profiles; of each the name of its rewrite and the id of its best practice."""
    desk = ranked_desk(folder)
    settings, last = desk.settings, date.fromisoformat(LATEST)
    items, practices = {}, {}
    for number, (name, content) in enumerate((("traffic", GRAPHS), ("speech", SPEECH))):
        write_digest(desk.warehouse, name, last, settings=settings)
        rewriting = {"rewriting": {"target_levels": ["student"], "papers": 1}}
        profile = load_profile(desk.profile(name, content | rewriting).parent)
        [item] = wanted_items(desk.warehouse, profile, last)
        replace_set(desk.warehouse, last, name, [item], now=NOW)
        keep_attempt(desk.warehouse, item.item, attempt(1, 87, f"A rewrite for {name}."))
        kept = replace(practice(number), paper_id=item.paper_id, target_level="student", text=f"A practice of {name}.")
        add_missing(desk.warehouse, [kept], collection=settings.archive)
        items[name], practices[name] = item.item, kept.id
    return desk, items, practices


@contextmanager
def lab(folder: Path, *options: str, open_files: int | None = None, before: str = "", **environ: str) -> Iterator[Lab]:
    """Ada, whose profile is traffic, Bob, whose profile is speech, Cleo, who has both, and the server as a process.

    `before` is code that the process runs first.
    """
    desk, items, practices = filled(folder)
    file = people_file(folder / "data")
    profiles = {"ada": ["traffic"], "bob": ["speech"], "cleo": ["traffic", "speech"]}
    tokens = {name: add_person(file, name, theirs) for name, theirs in profiles.items()}
    log = folder / "lab.log"
    command, environ = (
        ["lab", "serve", "--port", "0", *options],
        {**_environ(desk), "PAPER_ASSETS_RATING_OVER_MCP": "yes", **environ},
    )
    if open_files is not None:
        before += f"\nimport resource; resource.setrlimit(resource.RLIMIT_NOFILE, ({open_files}, {open_files}))"
    process: Command
    with log.open("w", encoding="utf-8") as stderr:
        if can_fork(environ):
            process = ForkedCommand(command, folder=desk.folder, environ=environ, before=before, stderr=stderr)
        else:
            process = subprocess.Popen(
                [*COMMAND[:-1], f"{before}\n{COMMAND[-1]}", *command],
                cwd=desk.folder,
                env=environ,
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert found, line + log.read_text("utf-8")
        yield Lab(desk, found[0], tokens, items, practices, log)
    finally:
        end(process)


def _environ(desk: Desk) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return {**kept, **desk.environment}


def call(
    lab: Lab, token: str, tool: str, arguments: Mapping[str, Any], *, address: str = "10.0.0.1"
) -> tuple[int, str]:
    """A tool called by hand, without a client, as a proxy passes it on from an address: status and what came."""
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": dict(arguments)}}
    )
    status, _, text = lab.asked(
        "POST",
        "/mcp",
        body,
        **{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"},
        **{"Authorization": f"Bearer {token}", "X-Forwarded-For": address},
    )
    return status, text
