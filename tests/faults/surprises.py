"""Plant a surprise (an error that no code foresaw) in a step of the pipeline, for one profile, and compare the others.

`run_pipeline` makes the steps without Dagster; `run_desk` reports changes as the daemon's sensor does, makes the steps
by Dagster and then asks every interface: the page, MCP, `status`; the surprise stays planted meanwhile. Both compare
the neighbour's rows, digests and files.

Adding one: a line in `PLANTS`: the module and the name of a function that works on one profile or one of its days.
"""

import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any
from unittest import mock

from starlette.testclient import TestClient

from paper_assets.defs import runs
from paper_assets.defs.instance import open_instance
from paper_assets.defs.sensors import report_changes
from paper_assets.errors import ModelUnavailable, PaperAssetsError
from paper_assets.interfaces.cli.app import main
from paper_assets.interfaces.lab import build_lab
from paper_assets.interfaces.page import desk as page_desk
from paper_assets.interfaces.page.app import build_app
from paper_assets.interfaces.server_guard import THIS_MACHINE
from paper_assets.models.embedder import Embedder
from paper_assets.paper import paper_from_mapping
from paper_assets.pipeline.step import Grid, Partition, Step, failure_of
from paper_assets.pipeline.steps import STEPS
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.stores.feedback import NewRating, append_ratings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.profiles import add_person, people_file
from paper_assets.stores.rankings import ranking
from tests.desk import GRAPHS, SPEECH, Desk, week

VICTIM, NEIGHBOUR = "traffic", "speech"  # in the order of their names: the victim is made first
DAYS = ("2026-03-02", "2026-03-03")
_NOW = datetime(2026, 3, 5, tzinfo=UTC)
_PINGS = re.compile(rb": ping[^\n]*\n\s*")  # with the time, while a tool works


class Surprise(RuntimeError):
    """An error that no code foresaw."""


# name of the plant: module below paper_assets and function
PLANTS: Mapping[str, tuple[str, str]] = {
    "profile is loaded": ("pipeline.profiles", "load_valid_profile"),
    "profile is stored": ("pipeline.gatekeeper", "keep_profile"),
    "ratings are fingerprinted": ("pipeline.preferences", "inputs_of_model"),
    "day's inputs are gathered": ("pipeline.gatekeeper", "profile_day"),
    "candidates are filtered": ("pipeline.gatekeeper", "new_candidates"),
    "papers are filtered": ("pipeline.rankings", "_judged"),
    "candidates are stored": ("pipeline.gatekeeper", "replace_candidates"),
    "ranking is prepared": ("pipeline.gatekeeper", "ranking_work"),
    "queries are built": ("pipeline.rankings", "profile_queries"),
    "task is built": ("pipeline.rankings", "day_task"),
    "papers are ranked": ("pipeline.gatekeeper", "rank"),
    "ranking is stored": ("pipeline.rankings", "replace_ranking"),
    "ranking file is written": ("pipeline.rankings", "save_once"),
    "questions are answered": ("pipeline.retrievals", "keep_retrievals"),
    "rewrites are opened": ("pipeline.rewrites", "ask_for_rewrites"),
    "rewrites are chosen": ("pipeline.rewrites", "wanted_items"),
    "digest is gathered": ("pipeline.digest_pages", "_stored_day"),
    "digest is built": ("pipeline.digests", "digest_of"),
    "pages are rendered": ("pipeline.digests", "pages_of"),
    "pages are written": ("pipeline.digests", "keep_digest"),
    "feed is written": ("pipeline.digests", "feed_of"),
    "delivery is planned": ("pipeline.digests", "due_days"),
    "paper is shown": ("digests.content", "entry_of"),
}
# What only the daemon's sensor, `run`, `status` and Health call; an error in it is logged.
OUTSIDE_STEPS: Mapping[str, tuple[str, str]] = {
    "profile is reported": ("defs.external_assets", "profile_event"),
    "ratings are read": ("defs.external_assets", "training_inputs"),
    "ratings are reported": ("defs.external_assets", "ratings_event"),
    "newest list is checked": ("pipeline.staleness", "stale"),
}
# One for each step, for the suite; `make storm` tries all of them.
SMALL = ("profile is stored", "ratings are fingerprinted", "papers are ranked", "questions are answered",
         "rewrites are opened", "digest is built", "paper is shown", "delivery is planned")  # fmt: skip
# What only leaves something out of the victim's own digest, or is only logged: no partition fails.
SOFT = frozenset({"paper is shown", "delivery is planned", *OUTSIDE_STEPS})
# Dagster makes what is out of date, and here no profile has questions or rewrites.
BY_DAGSTER = (
    *(
        plant
        for plant in PLANTS
        if plant not in ("questions are answered", "rewrites are opened", "rewrites are chosen")
    ),
    *OUTSIDE_STEPS,
)
SMALL_BY_DAGSTER = ("papers are ranked", "ratings are read")


def fill(folder: Path) -> Desk:
    """Store the papers of two days and two profiles; nothing is ranked."""
    desk = Desk(folder)
    merge_papers(desk.warehouse, [paper_from_mapping(record) for record in week(DAYS)])
    for name, content in ((VICTIM, GRAPHS), (NEIGHBOUR, SPEECH)):
        desk.profile(name, {**content, "ranking": {**content.get("ranking", {}), "threshold": 0}})
    return desk


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run left for the neighbour, by name of table row or file, and what failed."""

    neighbour: Mapping[str, bytes]
    failures: Mapping[tuple[str, Partition], str]
    stopped: str | None  # the error that ended a whole step: nothing may


def run_pipeline(desk: Desk) -> Outcome:
    """Make every step of both profiles and days, all partitions of a step in one call, without Dagster."""
    workspace = _workspace(desk)
    failures: dict[tuple[str, Partition], str] = {}
    for step, partitions in _steps():
        try:
            made = step.make(workspace, partitions, step.makes)
        except Exception as error:
            return Outcome(_results(desk, workspace), failures, f"{step.name}: {error!r}")
        failures |= {(step.name, each): str(reason) for each, reason in made.failures.items()}
        failure = failure_of(made, partitions)
        assert failure is None or isinstance(failure, PaperAssetsError)
    return Outcome(_results(desk, workspace), failures, None)


def _steps() -> Iterator[tuple[Step, list[Partition]]]:
    for step in STEPS:
        if step.grid is Grid.PROFILE:
            yield step, [Partition(profile=name) for name in (NEIGHBOUR, VICTIM)]
        elif step.grid is Grid.PROFILE_DAY:
            yield step, [Partition(date.fromisoformat(day), name) for day in DAYS for name in (NEIGHBOUR, VICTIM)]


def run_desk(desk: Desk) -> Outcome:
    """Make the same steps by Dagster, then ask the page, MCP and `status` for the neighbour."""
    workspace, done = _workspace(desk), runs.RunResult()
    for name in (NEIGHBOUR, VICTIM):
        rated = NewRating(paper_id="2603.00102", rating="later", title=None, abstract=None)
        append_ratings(desk.warehouse, name, [rated], given_in="page", now=_NOW)
    home = Path(desk.environment["DAGSTER_HOME"])
    home.mkdir(exist_ok=True)
    with mock.patch.dict(os.environ, desk.environment):
        try:
            with open_instance(home) as instance:
                runs.report_papers(instance, workspace)
                report_changes(instance, workspace, workspace.log)
                for step, partitions in _steps():
                    runs.bring_up_to_date(instance, workspace, step, partitions, done)
            answers = _answers(desk)
        except Exception as error:
            return Outcome(_results(desk, workspace), {}, f"{error!r}")
    failures = {("run", each): str(error) for each, error in done.failures.items()}
    return Outcome(_results(desk, workspace) | answers, failures, None)


VIEWS = ("", "/days", "/evidence", "/rewrites", "/practices", "/learned", "/shelf", "/profile", "/map",
         f"/{DAYS[0]}", f"/{DAYS[1]}/changes", f"/{DAYS[1]}/why?paper=2603.00204", "/paper/2603.00204",
         "/search?q=speech")  # fmt: skip
CALLS: Mapping[str, Mapping[str, Any]] = {
    "todays_ranking": {"profile": NEIGHBOUR},
    "explain_rank": {"profile": NEIGHBOUR, "paper_id": "2603.00204"},
    "search_desk": {"profile": NEIGHBOUR, "query": "speech recognition"},
    "what_changed": {"profile": NEIGHBOUR},
    "export_citations": {"profile": NEIGHBOUR},
}


def _answers(desk: Desk) -> dict[str, bytes]:
    """Return what each interface shows to and of the neighbour; one that fails reports it."""
    settings, environ = desk.settings, {**desk.environment}
    found: dict[str, bytes] = {}
    page = build_app(page_desk.Desk(settings=settings, environ=environ, token="token"))
    with TestClient(page, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        for view in VIEWS:
            answer = client.get(f"/p/{NEIGHBOUR}{view}")
            found[f"page {view or '/'}"] = f"{answer.status_code} {answer.text}".encode()
        for view in ("/", "/health"):  # which show both profiles
            answer = client.get(view)
            found[f"page of all {view}"] = f"{answer.status_code} {NEIGHBOUR in answer.text}".encode()
    file = people_file(settings.home)
    token = add_person(file, "ada", [NEIGHBOUR])
    lab = build_lab(settings, environ, names=frozenset(THIS_MACHINE))
    with TestClient(lab, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        for tool, arguments in CALLS.items():
            answer = client.post(
                "/mcp",
                json={
                    "jsonrpc": "2.0",
                    "id": 1,
                    "method": "tools/call",
                    "params": {"name": tool, "arguments": arguments},
                },
                headers={"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"},
            )
            found[f"MCP {tool}"] = f"{answer.status_code} {answer.text}".encode()
    file.unlink()
    code, out = _command("status", "--json")
    held = json.loads(out) if code == 0 else {}
    own = {name: value[NEIGHBOUR] for name, value in held.items() if isinstance(value, dict) and NEIGHBOUR in value}
    found["status"] = f"{code} {json.dumps(own, sort_keys=True)}".encode()
    place = str(desk.folder).encode()
    return {name: _PINGS.sub(b"", answer).replace(place, b"FOLDER") for name, answer in found.items()}


def _command(*arguments: str) -> tuple[int, str]:
    """Call a command in this process; return its exit code and what it printed."""
    out = StringIO()
    with (
        redirect_stdout(out),
        redirect_stderr(StringIO()),
        mock.patch.object(sys, "argv", ["paper-assets", *arguments]),
    ):
        try:
            main()
        except SystemExit as end:
            return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def _workspace(desk: Desk) -> Workspace:
    """Return a workspace without models: rankings by keywords, no rewrites."""

    def no_model() -> Embedder:
        raise ModelUnavailable("no model in this test")

    settings = desk.settings
    log = logging.getLogger("tests.faults.surprises")
    log.setLevel(logging.CRITICAL)
    return replace(open_workspace(settings, {}, clock=lambda: _NOW), load_embedder=no_model, log=log)


def _results(desk: Desk, workspace: Workspace) -> dict[str, bytes]:
    """Return the neighbour's rows and files; the desk's folder in them is replaced by a word."""
    found: dict[str, bytes] = {}
    for day in map(date.fromisoformat, DAYS):
        stored = ranking(workspace.warehouse, day, NEIGHBOUR)
        found[f"rows of {day}"] = repr((stored.header, stored.rows.to_pylist(), stored.inputs)).encode()
    folders = [workspace.settings.digests_dir / NEIGHBOUR, workspace.settings.rankings_dir / NEIGHBOUR]
    for file in sorted(path for folder in folders for path in folder.rglob("*")):
        if file.suffix in (".html", ".md", ".atom", ".json"):
            found[file.name] = file.read_bytes()
    place = str(desk.folder).encode()
    return {name: content.replace(place, b"FOLDER") for name, content in found.items()}


@contextmanager
def planted(plant: str, day: str | None = None) -> Iterator[list[str]]:
    """Let the plant's function raise for the victim (on `day`; None: any); yields a list that grows with each time."""
    module, name = (PLANTS | OUTSIDE_STEPS)[plant]
    target = import_module(f"paper_assets.{module}")
    whole: Callable[..., Any] = getattr(target, name)
    raised: list[str] = []

    def surprising(*values: Any, **named: Any) -> Any:
        arguments = [*values, *named.values()]
        arguments += [each for value in arguments if isinstance(value, list) for each in value]
        if any(_about(value) for value in arguments) and (day is None or not _other_day(arguments, day)):
            raised.append(plant)
            raise Surprise("planted")
        return whole(*values, **named)

    with mock.patch.object(target, name, surprising):
        yield raised


def _about(value: Any) -> bool:
    """Return whether an argument is the victim, its folder, or a part of it."""
    if isinstance(value, str):
        return value == VICTIM
    if isinstance(value, Path):
        return value.name == VICTIM
    names = (getattr(value, "name", None), getattr(value, "profile", None))
    names += (getattr(getattr(value, "profile", None), "name", None),)
    names += (getattr(getattr(value, "ranking", None), "profile", None),)
    return VICTIM in [name for name in names if isinstance(name, str)]


def _other_day(values: list[Any], day: str) -> bool:
    days = [value for value in values if isinstance(value, date) and not isinstance(value, datetime)]
    days += [
        found for value in values for name in ("day", "as_of") if isinstance(found := getattr(value, name, 0), date)
    ]
    return bool(days) and date.fromisoformat(day) not in days
