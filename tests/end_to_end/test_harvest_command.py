"""`paper-assets harvest`, killed twice in the middle of a page, fills the days completely."""

import json
import os
import signal
from pathlib import Path

from tests.desk import Desk
from tests.loopback import Answer
from tests.loopback_oai import LoopbackOai, loopback_oai, recorded_oai
from tests.pipeline.test_harvest import in_both_formats, months
from tests.waiting import until

MONTHS = ("harvest", "--from", "2026-01-01", "--until", "2026-03-31", "--set", "cs:cs", "--json")
RECORDED = ("harvest", "--from", "2016-01-01", "--until", "2017-12-31")
SETS = ("--set", "physics:hep-ex", "--set", "physics:hep-th")


def environ(oai: LoopbackOai) -> dict[str, str]:
    return {"PAPER_ASSETS_ARXIV_OAI_URL": oai.url, "PAPER_ASSETS_REQUEST_INTERVAL": "0"}


def kill_at(desk: Desk, oai: LoopbackOai, command: tuple[str, ...], request: int) -> None:
    """SIGKILL the command while it waits for the answer to a request."""
    oai.instead = {request: Answer(hang=True)}
    process = desk.start(*command, **environ(oai))
    until(lambda: len(oai.queries) >= request or process.poll() is not None)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert len(oai.queries) == request


def test_a_harvest_killed_twice_continues_and_stores_every_paper_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with loopback_oai(in_both_formats(months()), each=4) as oai:
        kill_at(desk, oai, MONTHS, 3)
        kill_at(desk, oai, MONTHS, 6)
        outcome = json.loads(desk.run(*MONTHS, **environ(oai)))
        assert desk.refused("harvest", "--from", "2026-03-31", "--until", "2026-03-01") == (
            "error: --from and --until must not be after today, in this order"
        )
    assert (outcome["resumed"], outcome["resumed"] + outcome["pages"]) == (4, len(oai.queries) - 2)
    kept = desk.warehouse.rows("select paper_id, strftime(day, '%Y-%m-%d') from papers order by all")
    assert kept == sorted((each.paper_id, f"{each.versions[0]:%F}") for each in months())
    assert outcome["days_reported"] == len({day for _, day in kept})


def harvested(desk: Desk) -> list[tuple[object, ...]]:
    return desk.warehouse.rows("select * from papers order by paper_id")


def test_a_harvest_of_recorded_pages_killed_twice_stores_the_same_rows_as_an_undisturbed_one(
    tmp_path: Path, shared_data: Path
) -> None:
    pages = shared_data / "arxiv_oai_pmh" / "raw_xml"
    command = (*RECORDED, *SETS, "--json")
    whole, killed = Desk(tmp_path / "whole"), Desk(tmp_path / "killed")
    for desk in (whole, killed):
        desk.folder.mkdir()
    with recorded_oai(pages, each=2) as oai:
        undisturbed = json.loads(whole.run(*command, **environ(oai)))
        requests = len(oai.queries)
    with recorded_oai(pages, each=2) as oai:
        kill_at(killed, oai, command, 9)
        kill_at(killed, oai, command, 33)
        outcome = json.loads(killed.run(*command, **environ(oai)))
        assert len(oai.queries) == requests + 2  # only the two interrupted pages were read twice
    assert outcome["resumed"] == 31
    assert harvested(killed) == harvested(whole)
    with recorded_oai(pages, each=2) as oai:
        assert "submitted before --from and not stored 2" in whole.run(*RECORDED, *SETS, **environ(oai))
    assert (len(harvested(whole)), undisturbed["left_out"], undisturbed["faults"]) == (9, 2, 0)
