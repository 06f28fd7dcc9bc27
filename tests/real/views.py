"""Every view, command and MCP tool that shows stored papers, as tables, and a desk full of papers to ask them about.

Adding one: a line in `PAGES_OF_A_PAPER`, `PAGES`, `COMMANDS_OF_A_PAPER`, `COMMANDS`, `CALLS_OF_A_PAPER` or `CALLS`.
An answer is sound if a page is balanced HTML of which no part "could not be shown", and if a command or a tool ends
well or in one line of ours.
"""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from io import StringIO
from pathlib import Path
from time import process_time
from typing import Any
from unittest import mock
from urllib.parse import quote, urlencode

from starlette.testclient import TestClient

from paper_assets.interfaces.cli.app import main
from paper_assets.interfaces.lab import build_lab
from paper_assets.interfaces.page import desk as page_desk
from paper_assets.interfaces.page.app import build_app
from paper_assets.interfaces.server_guard import THIS_MACHINE
from paper_assets.paper import Paper
from paper_assets.pipeline.step import Grid, Partition
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.feedback import RATING_VALUES, NewRating, append_ratings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.profiles import add_person, people_file
from tests.desk import Desk
from tests.invented_papers import MONDAY
from tests.real.renderers import Balanced

READER = "reader"
_NOW = datetime(2026, 1, 8, tzinfo=UTC)
_PROFILE: Mapping[str, Any] = {
    "interests": {"primary": ["we propose", "language models"]},
    "ranking": {"top_k": 1_000, "threshold": 0},
    "feed": {"window_days": 60, "repeat": True},
}
_QUESTION = {
    "question": "What do we propose?",
    "rewritten_question": "what do we propose",
    "filters": {"sides": [{"name": "a", "query": "we propose"}, {"name": "b", "query": "x"}]},
    "parameters": {"k_per_side": 20},
    "generation_required": True,
}
_NO_MODEL = {"LLM_PROVIDER": "", "PAPER_ASSETS_SEMANTIC_SCHOLAR": "off", "PAPER_ASSETS_RATING_OVER_MCP": "yes"}
Ask = Callable[[], str | None]  # returns what is wrong with the answer


def _asked(address: str, **query: str) -> str:
    return f"{address}?{urlencode(query, errors='replace')}"


# Addresses below the profile's; `words` are the first words of the title.
PAGES_OF_A_PAPER: Mapping[str, Callable[[Paper], str]] = {
    "paper": lambda paper: f"/paper/{quote(paper.paper_id)}",
    "paper as BibTeX": lambda paper: f"/paper/{quote(paper.paper_id)}?format=bibtex",
    "paper as RIS": lambda paper: f"/paper/{quote(paper.paper_id)}?format=ris",
    "paper as CSL-JSON": lambda paper: f"/paper/{quote(paper.paper_id)}?format=csl",
    "why": lambda paper: _asked(f"/{MONDAY}/why", paper=paper.paper_id),
    "why by title": lambda paper: _asked(f"/{MONDAY}/why", paper=words(paper)),
    "search": lambda paper: _asked("/search", q=words(paper)),
    "papers like it": lambda paper: _asked("/search", like=paper.paper_id),
    "question": lambda paper: _asked("/search", q=f"{words(paper)}?"),
}
PAGES: Mapping[str, str] = {
    "Today": "",
    "Today, compact": "?layout=compact",
    "Today, wide": "?layout=comfortable",
    "a day": f"/{MONDAY}",
    "days": "/days",
    "changes": f"/{MONDAY}/changes",
    "map": "/map",
    "map of a month": "/map?span=month",
    "evidence": "/evidence",
    "shelf": "/shelf?show=later",
    "shelf of worth": "/shelf?show=worth",
    "shelf of no": "/shelf?show=no",
    "shelf as BibTeX": "/shelf?show=worth&format=bibtex",
    "shelf as RIS": "/shelf?show=worth&format=ris",
    "shelf as CSL-JSON": "/shelf?show=worth&format=csl",
    "teach": "/teach",
    "learned": "/learned",
    "profile": "/profile",
    "rewrites": "/rewrites",
    "practices": "/practices",
    "health": "/health",
    "all search results": "/search?q=from:2026",
    "for and against": _asked("/search", q="do we propose x?", sides="1"),
}
COMMANDS_OF_A_PAPER: Mapping[str, Callable[[Paper], tuple[str, ...]]] = {
    "explain": lambda paper: ("explain", READER, paper.paper_id),
    "explain --json": lambda paper: ("explain", READER, paper.paper_id, "--json"),
    "find": lambda paper: ("find", "--", words(paper)),
    "find --like": lambda paper: ("find", "--like", paper.paper_id),
    "ask": lambda paper: ("ask", "--extractive", "--", words(paper)),
}
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "status": ("status",),
    "changed": ("changed", READER),
    "cite BibTeX": ("cite", READER),
    "cite RIS": ("cite", READER, "--format", "ris"),
    "cite CSL-JSON": ("cite", READER, "--format", "csl-json"),
    "cite Markdown": ("cite", READER, "--format", "markdown"),
    "cite worth": ("cite", READER, "--rated", "worth"),
    "ratings": ("ratings", "list", READER),
    "ask": ("ask", "--extractive", "--markdown", "what do we propose"),
    "retrieve": ("retrieve", "plan.json"),
    "retrieve, the best": ("retrieve", "plan.json", "--standard"),
    "find": ("find", "--limit", "1000", "from:2026"),
    "run": ("run", "--as-of", f"{MONDAY}"),
}
CALLS_OF_A_PAPER: Mapping[str, tuple[str, Callable[[Paper], Mapping[str, Any]]]] = {
    "explain_rank": ("explain_rank", lambda paper: {"paper_id": paper.paper_id}),
    "search_desk": ("search_desk", lambda paper: {"query": words(paper)}),
    "search_desk, like": ("search_desk", lambda paper: {"like": paper.paper_id}),
    "ask_desk": ("ask_desk", lambda paper: {"question": words(paper), "extractive": True}),
}
CALLS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "list_profiles": ("list_profiles", {}),
    "todays_ranking": ("todays_ranking", {}),
    "what_changed": ("what_changed", {}),
    "read_digest": ("read_digest", {}),
    "list_rewrites": ("list_rewrites", {}),
    "BibTeX": ("export_citations", {}),
    "RIS": ("export_citations", {"style": "ris"}),
    "CSL-JSON": ("export_citations", {"style": "csl-json", "rated": "worth"}),
    "retrieve_standard": ("retrieve_standard", {"question": "what do we propose", "k": 100}),
    "retrieve_balanced": ("retrieve_balanced", {"question": "what do we propose", "k_per_side": 20}),
}


def words(paper: Paper) -> str:
    """Return the start of the title as a person would type it."""
    return " ".join(paper.title.split())[:80].strip() or "x"


@dataclass(slots=True)
class Asked:
    """What was asked, and what was wrong: (view, paper id, fault)."""

    papers: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[str, str, str]] = field(default_factory=list)
    slowest: tuple[float, str, str] = (0.0, "", "")

    def add(self, name: str, paper_id: str, ask: Ask) -> None:
        """Ask, and note the outcome."""
        began = process_time()
        fault = ask()
        self.slowest = max(self.slowest, (process_time() - began, name, paper_id))
        self.answers[name] += 1
        if fault and fault.startswith("refused"):
            self.refused[f"{name}: {fault[:200]}" if not paper_id else name] += 1
        elif fault:
            self.wrong.append((name, paper_id, fault[:400]))

    def __str__(self) -> str:
        seconds, name, paper_id = self.slowest
        refusals = ", ".join(f"{name} {count}" for name, count in self.refused.items())
        return (
            f"{self.papers:,} papers, {len(self.answers)} views, commands and tools: {sum(self.answers.values()):,} "
            f"answers, wrong {len(self.wrong)}; refused in a line: {refusals or 'none'}; slowest {seconds:.2f} s "
            f"({name}, {paper_id})"
        )


def fill(folder: Path, papers: Sequence[Paper]) -> Desk:
    """Store the papers, rank them all for one profile, answer a question, make the digest, rate some of them."""
    desk = Desk(folder)
    merge_papers(desk.warehouse, papers)
    place = desk.profile(READER, _PROFILE).parent
    (place / "questions.json").write_text(json.dumps([_QUESTION]), encoding="utf-8")
    (desk.folder / "plan.json").write_text(json.dumps(_QUESTION), encoding="utf-8")
    rated = [
        NewRating(paper_id=paper.paper_id, rating=RATING_VALUES[number % len(RATING_VALUES)], title=None, abstract=None)
        for number, paper in enumerate(papers)
        if number % 3
    ]
    append_ratings(desk.warehouse, READER, rated, given_in="command line", now=_NOW)
    workspace = open_workspace(load_settings(desk.environment, folder), _NO_MODEL, clock=lambda: _NOW)
    for step in STEPS:
        partitions = {
            Grid.DAY: [Partition(MONDAY)],
            Grid.PROFILE: [Partition(profile=READER)],
            Grid.PROFILE_DAY: [Partition(MONDAY, READER)],
        }.get(step.grid, [])
        if partitions and step.name != "arxiv_papers":
            made = step.make(workspace, partitions, step.makes)
            assert not made.failures, made.failures
    return desk


def ask_everything(desk: Desk, papers: Sequence[Paper]) -> Asked:
    """Ask every page, command and tool about the whole desk, then about each paper."""
    done = Asked(papers=len(papers))
    with _open(desk) as (page, call, command):
        for name, address in PAGES.items():
            done.add(f"page {name}", "", partial(page, address))
        for name, arguments in COMMANDS.items():
            done.add(f"command {name}", "", partial(command, arguments))
        for name, (tool, values) in CALLS.items():
            done.add(f"MCP {name}", "", partial(call, tool, values))
        for paper in papers:
            known = paper.paper_id
            for name, address_of in PAGES_OF_A_PAPER.items():
                done.add(f"page {name}", known, partial(page, address_of(paper)))
            for name, arguments_of in COMMANDS_OF_A_PAPER.items():
                done.add(f"command {name}", known, partial(command, arguments_of(paper)))
            for name, (tool, values_of) in CALLS_OF_A_PAPER.items():
                done.add(f"MCP {name}", known, partial(call, tool, values_of(paper)))
    return done


@contextmanager
def _open(desk: Desk) -> Iterator[tuple[Callable[..., str | None], ...]]:
    """Open page, MCP over HTTP and command line in this process; yields a function for each, which returns a fault."""
    environ = {**desk.environment, **_NO_MODEL}
    settings = load_settings(environ, desk.folder)
    token = add_person(people_file(settings.home), "ada", [READER])
    app = build_app(page_desk.Desk(settings=settings, environ=environ, token="token"))
    lab = build_lab(settings, environ, names=frozenset(THIS_MACHINE))
    with ExitStack() as stack:
        stack.enter_context(mock.patch.dict("os.environ", environ))
        open_page, open_lab = (
            stack.enter_context(TestClient(each, base_url="http://127.0.0.1", raise_server_exceptions=False))
            for each in (app, lab)
        )
        headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        yield (
            partial(_page, open_page),
            partial(_call, open_lab, headers),
            partial(_command, desk.folder),
        )


def _page(client: TestClient, address: str) -> str | None:
    answer = client.get(f"/p/{READER}{address}")
    if answer.status_code >= 500 or answer.status_code == 404:
        return f"{answer.status_code} {answer.text[-300:]}"
    if answer.headers["content-type"].startswith("text/html"):
        if "could not be shown" in answer.text:
            at = answer.text.index("could not be shown")
            return answer.text[at - 150 : at + 60]
        try:
            Balanced(answer.text)
        except (AssertionError, IndexError) as error:
            return f"not balanced: {error}"
    return "refused" if answer.status_code == 400 else None


def _call(client: TestClient, headers: Mapping[str, str], tool: str, arguments: Mapping[str, Any]) -> str | None:
    """Call a tool, then for the further pages of its answer."""
    offset = None
    for _ in range(50):
        asked = {**arguments, **({"offset": offset} if offset else {})}
        params = {"name": tool, "arguments": asked}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = client.post("/mcp", json=body, headers=dict(headers))
        if answer.status_code != 200:
            return f"{answer.status_code} {answer.text[:300]}"
        text = answer.text
        found = json.loads(text[text.index("data:") + 5 :].strip() if "data:" in text[:200] else text)
        if "error" in found:
            return f"{found['error']}"
        result = found["result"]
        if result.get("isError"):
            error = json.loads(result["content"][0]["text"])["error"]
            return f"refused: {error}" if error["code"] == "INVALID_INPUT" else f"{error}"
        offset = result["structuredContent"].get("next_offset")
        if offset is None:
            return None
    return None


def _command(folder: Path, arguments: Sequence[str]) -> str | None:
    out, err = StringIO(), StringIO()
    code = 0
    with (
        mock.patch.object(sys, "argv", ["paper-assets", *arguments]),
        chdir(folder),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    errors = err.getvalue()
    if "unexpected" in errors or "Traceback" in errors:
        return errors[-300:]
    if "\x1b" in out.getvalue() or "\x1b" in errors:
        return "an escape character"
    lines = [line for line in errors.splitlines() if line.startswith("error: ")]
    return None if code == 0 else f"refused: {errors}" if len(lines) == 1 else f"{code}: {errors[-300:]}"
