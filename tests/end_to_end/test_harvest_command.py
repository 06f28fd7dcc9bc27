"""`paper-assets harvest`, killed twice in the middle of a page, and what the days hold afterwards."""

import json
import os
import signal
import time
from pathlib import Path

from tests.desk import PATIENCE, Desk
from tests.loopback import Answer
from tests.loopback_oai import LoopbackOai, loopback_oai
from tests.pipeline.test_harvest import months

COMMAND = ("harvest", "--from", "2026-01-01", "--until", "2026-03-31", "--set", "cs:cs", "--json")


def kill_at(desk: Desk, oai: LoopbackOai, request: int, **environ: str) -> None:
    """SIGKILL the command while it waits for the answer to a request."""
    oai.instead = {request: Answer(hang=True)}
    process = desk.start(*COMMAND, **environ)
    ends = time.monotonic() + PATIENCE
    while len(oai.queries) < request and time.monotonic() < ends and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(oai.queries) == request


def test_a_harvest_killed_twice_goes_on_and_holds_every_paper_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with loopback_oai(months(), each=4) as oai:
        environ = {"PAPER_ASSETS_ARXIV_OAI_URL": oai.url, "PAPER_ASSETS_REQUEST_INTERVAL": "0"}
        kill_at(desk, oai, 3, **environ)
        kill_at(desk, oai, 6, **environ)
        outcome = json.loads(desk.run(*COMMAND, **environ))
        assert desk.refused("harvest", "--from", "2026-03-31", "--until", "2026-03-01") == (
            "error: --from and --until must lie before today or on it, in this order"
        )
    assert (outcome["resumed"], outcome["resumed"] + outcome["pages"]) == (4, len(oai.queries) - 2)
    with desk.warehouse.reading() as connection:
        kept = connection.execute("select paper_id, strftime(day, '%Y-%m-%d') from papers order by all").fetchall()
    assert kept == sorted((each.paper_id, f"{each.versions[0]:%F}") for each in months())
    assert outcome["days_reported"] == len({day for _, day in kept})
