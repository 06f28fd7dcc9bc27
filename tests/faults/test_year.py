"""Some weeks of the fault-injection year with a fixed seed (A6, S2)."""

import json
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from paper_assets.errors import IncompleteFeed, SourceError
from paper_assets.settings import load_settings
from paper_assets.sources.arxiv import ARXIV
from paper_assets.sources.source import Access
from tests import loopback
from tests.desk import GRAPHS, Desk
from tests.faults.storm import year
from tests.loopback import Answer
from tests.loopback_arxiv import LoopbackArxiv, feed, invented_paper, loopback_arxiv

MONDAY = date(2026, 3, 2)
SIXTEEN = [invented_paper(number, MONDAY) for number in range(16)]


def test_after_weeks_of_bad_days_every_day_is_whole_or_named(tmp_path: Path) -> None:
    counts = year.run(seed=20260313, size=9, folder=tmp_path)
    assert counts.findings == ()
    assert counts.held and counts.whole > 4  # how many finish in time depends on the machine


def test_a_desk_that_loses_papers_does_not_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If every answer is accepted, papers are lost and the test reports which."""
    believing = year.papers.keep_day
    monkeypatch.setattr(
        year.papers, "keep_day", lambda *args, **more: believing(*args, **{**more, "accept_fewer": True})
    )
    counts = year.run(seed=20260313, size=8, folder=tmp_path)
    assert counts.lost and "lacks ['25" in counts.findings[0]


def fetching(desk: Desk, arxiv: LoopbackArxiv) -> dict[str, str]:
    return {"PAPER_ASSETS_ARXIV_URL": arxiv.url, "PAPER_ASSETS_REQUEST_INTERVAL": "0"}


def test_an_answer_of_far_fewer_papers_fails_the_fetch_and_status_says_how_to_fix_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    with loopback_arxiv(SIXTEEN) as arxiv:
        asking = fetching(desk, arxiv)
        desk.run("fetch", "--day", f"{MONDAY}", **asking)
        arxiv.papers = SIXTEEN[:8]
        line = desk.refused("fetch", "--day", f"{MONDAY}", **asking)
        assert "the answer has 8 papers where 16 are stored, which are kept" in line and "--accept-fewer" in line
        [trouble] = json.loads(desk.run("status", "--json"))["days_to_repair"]
        assert (trouble["first"], trouble["kind"]) == (f"{MONDAY}", "doubted")
        assert (
            f"{MONDAY}" in desk.run("status")
            and "paper-assets fetch --day 2026-03-02 --accept-fewer" in trouble["command"]
        )
        command = trouble["command"].strip("`").removeprefix("paper-assets ").split()
        desk.run(*command, **asking)
        held = json.loads(desk.run("status", "--json"))
    assert (held["papers"], held["days_to_repair"]) == (8, [])


def test_no_redirect_leads_to_a_machine_of_the_own_network(tmp_path: Path) -> None:
    asked = []
    with (
        loopback.serving(lambda request: asked.append(request) or feed([])) as private,  # type: ignore[func-returns-value]
        loopback_arxiv(script=[Answer(status=302, headers={"Location": f"{private}/latest"})] * 8) as arxiv,
    ):
        environ = {
            "PAPER_ASSETS_ARXIV_URL": arxiv.url,
            "PAPER_ASSETS_REQUEST_INTERVAL": "0",
            "PAPER_ASSETS_REQUEST_GATE": str(tmp_path / "gate"),
        }
        assert ARXIV.open_days is not None
        access = Access(settings=load_settings(environ, tmp_path))
        with ARXIV.open_days(access) as papers_of_day, pytest.raises(SourceError, match="not public"):
            papers_of_day(MONDAY)
    assert asked == []


def test_a_total_of_5000_digits_is_a_faulty_answer(tmp_path: Path) -> None:
    body = feed(SIXTEEN).body.replace(b">16<", b">" + b"7" * 5_000 + b"<")
    environ = {"PAPER_ASSETS_REQUEST_INTERVAL": "0", "PAPER_ASSETS_REQUEST_GATE": str(tmp_path / "gate")}
    with loopback_arxiv(script=[Answer(body=body)] * 8) as arxiv:
        settings = load_settings({**environ, "PAPER_ASSETS_ARXIV_URL": arxiv.url}, tmp_path)
        assert ARXIV.open_days is not None
        with (
            ARXIV.open_days(Access(settings=settings)) as papers_of_day,
            pytest.raises(IncompleteFeed, match="how many"),
        ):
            papers_of_day(MONDAY)


def test_a_paper_listed_for_the_next_day_is_stored_under_its_own_day_and_reported_to_dagster(tmp_path: Path) -> None:
    desk, tuesday = Desk(tmp_path), MONDAY + timedelta(days=1)
    late = replace(SIXTEEN[15], title="Listed late")
    with loopback_arxiv(script=[feed(SIXTEEN[:15]), feed([invented_paper(0, tuesday), late])] * 2) as arxiv:
        for _ in range(2):
            status = json.loads(
                desk.run("fetch", "--day", f"{MONDAY}", "--to", f"{tuesday}", "--json", **fetching(desk, arxiv))
            )
            assert status == {f"{MONDAY}": 16, f"{tuesday}": 1}
