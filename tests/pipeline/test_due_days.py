"""Fetch what is due each morning from an arXiv that announces in the evening, and compare with what it shows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from paper_assets.announcements import NEW_YORK, arxiv
from paper_assets.paper import Paper
from paper_assets.pipeline import papers
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.settings import load_settings
from paper_assets.stores.papers import paper_counts
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv

MONDAY = date(2026, 10, 19)
HOURS = range(24)


def submitted(first: date, days: int) -> list[Paper]:
    """Return a paper for each hour of each day."""
    return [
        invented_paper(hour, day, published=datetime(day.year, day.month, day.day, hour, 7, tzinfo=UTC))
        for day in (first + timedelta(days=number) for number in range(days))
        for hour in HOURS
    ]


def announced(everything: Sequence[Paper], now: datetime, *, skipped: Sequence[date] = ()) -> list[Paper]:
    """Return the papers that arXiv shows: those of announcements that were made; a skipped one comes with the next."""
    made = [
        each
        for each in arxiv(MONDAY - timedelta(days=10), now.date())
        if each.at <= now and each.at.astimezone(NEW_YORK).date() not in skipped
    ]
    return [paper for paper in everything if paper.published and made and paper.published <= made[-1].until]


def workspace_of(folder: Path, server: LoopbackArxiv, now: datetime) -> Workspace:
    environ = {
        "PAPER_ASSETS_HOME": str(folder / "home"),
        "PAPER_ASSETS_ARXIV_URL": server.url,
        "PAPER_ASSETS_REQUEST_GATE": str(folder / "gate"),
        "PAPER_ASSETS_REQUEST_INTERVAL": "0",
        "PAPER_ASSETS_CATEGORIES": "cs.CL",
    }
    return open_workspace(load_settings(environ, folder), {}, clock=lambda: now)


def fetch_due(workspace: Workspace, now: datetime) -> list[date]:
    """Fetch what is due at this time; return the days, newest first."""
    workspace = replace(workspace, clock=lambda: now)
    days = [each.day for each in papers.due_days(workspace, now)]
    if days:
        papers.STEP.make(workspace, [Partition(day) for day in days], frozenset())
    return days


def counts(found: Sequence[Paper]) -> dict[date, int]:
    days = [paper.day for paper in found if paper.day]
    return {day: days.count(day) for day in sorted(set(days))}


@pytest.mark.parametrize("skipped", [(), (date(2026, 10, 27),)], ids=["regular", "one left out"])
def test_each_morning_stores_everything_that_is_announced(tmp_path: Path, skipped: tuple[date, ...]) -> None:
    everything = submitted(MONDAY, 21)
    mornings = [datetime(2026, 10, 20, 1, 30, tzinfo=UTC) + timedelta(days=number) for number in range(20)]
    with loopback_arxiv() as server:
        workspace = workspace_of(tmp_path, server, mornings[0])
        requests = []
        for now in mornings:
            server.papers = announced(everything, now, skipped=skipped)
            before = len(server.requests)
            fetch_due(workspace, now)
            requests.append(len(server.requests) - before)
            assert paper_counts(workspace.warehouse) == counts(server.papers), f"{now}"
    assert max(requests[8:]) <= 4 + 4 * bool(skipped)


def test_a_machine_that_was_off_for_days_catches_up_at_once_and_a_failed_morning_is_due_again(tmp_path: Path) -> None:
    everything = submitted(MONDAY, 14)
    friday = datetime(2026, 10, 30, 1, 30, tzinfo=UTC)
    with loopback_arxiv() as server:
        workspace = workspace_of(tmp_path, server, friday)
        server.script = []  # each request gets a 500
        fetch_due(workspace, friday)
        server.script = None
        server.papers = announced(everything, friday)
        assert fetch_due(workspace, friday)
        recent = {
            day: count for day, count in counts(server.papers).items() if day >= friday.date() - timedelta(days=7)
        }
        assert paper_counts(workspace.warehouse) == recent


def test_a_new_category_makes_the_recent_days_due_again(tmp_path: Path) -> None:
    now = datetime(2026, 10, 30, 3, tzinfo=UTC)
    with loopback_arxiv(announced(submitted(MONDAY, 14), now)) as server:
        workspace = workspace_of(tmp_path, server, now)
        fetch_due(workspace, now)
        assert not papers.due_days(workspace, now + timedelta(minutes=1))
        wider = replace(workspace, settings=workspace.settings.model_copy(update={"categories": ("cs.CL", "cs.LG")}))
        assert len(papers.due_days(wider, now + timedelta(minutes=1))) > 4
