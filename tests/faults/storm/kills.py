"""Kill every command at its n-th write; after the same command again the home must equal an undisturbed one.

Adding a command: a line in `CASES`.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from paper_assets.stores.best_practices import add_missing
from tests.answering_models import answering_model, obeys
from tests.desk import GRAPHS, SPEECH, Desk, paper, week
from tests.faults.storm.counts import Counts, Tally
from tests.faults.storm.likeness import differences, likeness
from tests.faults.storm.victims import Victims, victims
from tests.loopback import Answer, serving
from tests.loopback_arxiv import invented_paper, loopback_arxiv
from tests.loopback_llm import Request, Step, loopback_llm
from tests.loopback_oai import loopback_oai
from tests.pipeline.test_harvest import in_both_formats, months
from tests.rewriting.invented_archive import practice
from tests.rewriting.scripted import Play

DAYS = ("2026-03-02", "2026-03-03")
FETCHED = date(2026, 3, 4)
SHEEP = "2603.00901"
WEBHOOK = "PAPER_ASSETS_WEBHOOK_LAB"
V1, V2 = "optim_best_practices_v1", "optim_best_practices_v2"

IMPORT, AGAIN = ("import", "papers.jsonl"), ("import", "later.jsonl")
HARVEST = ("harvest", "--from", "2026-01-01", "--until", "2026-03-31", "--set", "cs:cs")
RATE, EXPORT = ("rate", "graphs", SHEEP, "worth"), ("export", "export")
ERASE = ("ratings", "erase", "graphs", "--yes")
RUN, REWRITE = ("run", "--since", DAYS[0]), ("rewrite", SHEEP, "--level", "public")


@dataclass(frozen=True, slots=True)
class Case:
    """A command to be killed: what goes before it, how many of ten points it gets, whether it may refuse (in
    one line) to run twice.
    """

    name: str
    command: tuple[str, ...]
    before: tuple[tuple[str, ...], ...] = ()
    prepare: Callable[[Desk], None] = lambda desk: None
    share: int = 3
    refuses: bool = False
    costly: bool = False  # not for every change
    scores: tuple[int, ...] = field(default=(60, 96))  # the critic's, of attempts 1, 2 …; none: the model answers


def _practices(desk: Desk) -> None:
    add_missing(desk.warehouse, [practice(number) for number in range(6)], collection=V1)


def _has_a_webhook(desk: Desk) -> None:
    options = {"webhook": {"address_in": WEBHOOK}}
    (desk.folder / "profiles" / "graphs" / "delivery.json").write_text(json.dumps(options), encoding="utf-8")


CASES = (
    Case("import", IMPORT),
    Case("import of newer versions", AGAIN, (IMPORT,)),
    Case("fetch", ("fetch", "--day", f"{FETCHED}")),
    Case("run over several days", RUN, (IMPORT,), share=2),
    Case("run after an edit", RUN, (IMPORT, RUN), lambda desk: _edit(desk), share=1, costly=True),
    Case(
        "digests again",
        ("run",),
        (IMPORT, RUN),
        lambda desk: shutil.rmtree(desk.folder / "data" / "output"),
        share=1,
        costly=True,
    ),
    Case("rewrite", REWRITE, (IMPORT,)),
    Case("decision", (*REWRITE, "--accept", "1"), (IMPORT, REWRITE), scores=(88,)),
    Case("archive migrate", ("archive", "migrate", "--from", V1, "--to", V2), (IMPORT,), _practices),
    Case("archive remove", ("archive", "remove", practice(4).id), (IMPORT,), _practices, share=2, refuses=True),
    Case("harvest", HARVEST, share=2),
    Case("rating", RATE, (IMPORT,), share=2),
    Case("deliver", ("deliver", "graphs", "--again"), (IMPORT, RUN), _has_a_webhook, costly=True),
    Case("ask", ("ask", "What gains in traffic forecasting on road networks?"), (IMPORT,), scores=(), costly=True),
    Case("kept answer", ("ask", "--extractive", "--keep", "What gains in traffic forecasting?"), (IMPORT,)),
    Case("export", EXPORT, (IMPORT, RATE), share=1, refuses=True),
    Case("backup", ("backup", "copy"), (IMPORT, RATE), share=2, refuses=True),
    Case("restore", ("restore", "copy", "--yes"), (IMPORT, RATE, ("backup", "copy"), AGAIN)),
    Case("entries of a backup", ("restore", "copy", "--entered"), (IMPORT, RATE, ("backup", "copy"), ERASE)),
    Case("import of an export", ("import", "export"), (IMPORT, RATE, EXPORT, ERASE)),
    Case(
        "removal of everything",
        ("profile", "remove", "graphs", "--everything", "--yes"),
        (IMPORT, RUN, RATE),
        refuses=True,
        costly=True,
    ),
)


def run(seed: int, size: int, folder: Path, *, cases: tuple[Case, ...] = CASES) -> Counts:
    """Kill `size` commands, each at a chosen write, and compare the result of the same command afterwards."""
    chance = random.Random(seed)
    tally, writes = Tally(), 0
    with _home(folder) as (desk, victim, environ, play):
        for case in cases:
            base, twin, taken = _twin(case, desk, victim, environ, play, folder)
            writes += taken.writes
            points = _points(case, size, cases)
            print(f"kills: {case.name}, {points} of {taken.writes} writes, {taken.seconds:.1f} s", flush=True)
            for _ in range(points):
                at, after = chance.randint(1, max(taken.writes, 1)), chance.uniform(0.0, taken.seconds)
                _restore(base, desk)
                if victim.counts:
                    victim.run(case.command, environ, at_write=at)
                else:
                    victim.run(case.command, environ, after=after)
                again = victim.run(case.command, environ)
                found = differences(twin, likeness(desk))
                if again.code != 0 and not (case.refuses and _one_line(again.err)):
                    found.insert(0, f"silent: exit code {again.code}: {again.err[-300:]!r}")
                tally.add(f"{case.name}, write {at} of {taken.writes}, seed {seed}", found)
                if found:
                    shutil.copytree(desk.folder, folder / f"found-{tally.tried}")
    return tally.counts(
        part="kills",
        unit="kill points" if victim.counts else "kills at random moments (no C compiler)",
        figures=(f"{len(cases)} commands with {writes} writes between them",),
    )


def _points(case: Case, size: int, cases: tuple[Case, ...]) -> int:
    return max(1, round(size * case.share / sum(each.share for each in cases)))


@contextmanager
def _home(folder: Path) -> Iterator[tuple[Desk, Victims, dict[str, str], Callable[[tuple[int, ...]], None]]]:
    """The desk (always at one path), the server of victims, the environment of commands, and how the critic scores."""
    desk = Desk(folder / "desk")
    desk.folder.mkdir(parents=True)
    models: list[Callable[[Request], Step]] = [Play(96)]

    def answer(request: Request) -> Step:
        return models[0](request)

    def play(wanted: tuple[int, ...]) -> None:
        critic = Play(*wanted, text="Counting sheep takes half the memory")
        models[0] = critic if wanted else answering_model(obeys)

    fetched = [invented_paper(number, FETCHED, categories=("cs.LG",)) for number in range(5)]
    with (
        loopback_arxiv(fetched) as arxiv,
        loopback_oai(in_both_formats(months()), each=5) as oai,
        loopback_llm(answer) as llm,
        serving(lambda _: Answer(body=b"ok")) as webhook,
    ):
        environ = {
            **desk.environment,
            **llm.environ("ollama"),
            "PAPER_ASSETS_ARXIV_URL": arxiv.url,
            "PAPER_ASSETS_ARXIV_OAI_URL": oai.url,
            WEBHOOK: webhook,
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",
            "PAPER_ASSETS_REQUEST_GATE": str(desk.folder / "gate"),
        }
        with victims(desk.folder, environ) as victim:
            yield desk, victim, environ, play


def _twin(
    case: Case,
    desk: Desk,
    victim: Victims,
    environ: dict[str, str],
    play: Callable[[tuple[int, ...]], None],
    folder: Path,
) -> tuple[Path, dict[str, Any], Any]:
    """Return the home before the command, the result of an undisturbed one, and how it ended."""
    play(case.scores)
    shutil.rmtree(desk.folder)
    desk.folder.mkdir()
    for name, profile in (("graphs", GRAPHS), ("speech", SPEECH)):
        desk.profile(name, profile)
    sheep = paper(901, DAYS[0], "counting sheep with half the memory")
    papers = [*week(DAYS, each=4), sheep]
    desk.papers("papers.jsonl", papers)
    newer = [{**each, "title": f"{each['title']}, again", "version": 2} for each in papers[:3]]
    desk.papers("later.jsonl", [*newer, paper(777, DAYS[1], "traffic forecasting on road networks")])
    for command in case.before:
        done = victim.run(command, environ)
        assert done.code == 0, done.err
    case.prepare(desk)
    base = folder / "base"
    shutil.rmtree(base, ignore_errors=True)
    shutil.copytree(desk.folder, base)
    taken = victim.run(case.command, environ)
    assert taken.code == 0, taken.err
    return base, likeness(desk), taken


def _restore(base: Path, desk: Desk) -> None:
    shutil.rmtree(desk.folder)
    shutil.copytree(base, desk.folder)


def _edit(desk: Desk) -> None:
    desk.profile("graphs", {**GRAPHS, "interests": {"primary": ["calibration of tree ensembles"]}})


def _one_line(err: str) -> bool:
    lines = [line for line in err.splitlines() if line.strip()]
    return len(lines) == 1 and lines[0].startswith("error: ")
