"""Fetch what is due each morning from an arXiv that announces in the evening, and compare with what it shows."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paper_assets.announcements import NEW_YORK, arxiv
from paper_assets.errors import LLMConfigError
from paper_assets.paper import Paper
from paper_assets.pipeline import papers
from paper_assets.pipeline.day_inputs import profile_day
from paper_assets.pipeline.open_days import due_days
from paper_assets.pipeline.rankings import keep_candidates, keep_ranking
from paper_assets.pipeline.step import Partition
from paper_assets.pipeline.workspace import Workspace, open_workspace
from paper_assets.profile import Profile, profile_content
from paper_assets.ranking.verifier import Verifier, unavailable
from paper_assets.settings import load_settings
from paper_assets.stores.paper_merging import merge_papers
from paper_assets.stores.papers import latest_day, paper_counts
from paper_assets.stores.rankings import ranking
from paper_assets.stores.warehouse import Warehouse
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv

MONDAY = date(2026, 10, 19)
READER = Profile(
    name="ann",
    content=profile_content(
        {"interests": {"primary": ["invented matter"]}, "ranking": {"top_k": 100, "enable_llm_verification": False}},
        source="ann",
    ),
)
NO_MODEL = Verifier(ask=unavailable(LLMConfigError("no language model")), model=None)
HOURS = (0, 6, 12, 17, 18, 19, 20, 23)  # arXiv announces what came before 14:00 in New York


def submitted(first: date, days: int) -> list[Paper]:
    """Return a paper for each of the hours of each day."""
    return [
        invented_paper(
            hour,
            day,
            title=f"On invented matter {hour} of {day}",
            published=datetime(day.year, day.month, day.day, hour, 7, tzinfo=UTC),
        )
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
    days = [each.day for each in due_days(workspace.warehouse, workspace.settings, now)]
    if days:
        papers.STEP.make(workspace, [Partition(day) for day in days], frozenset())
    return days


def counts(found: Sequence[Paper]) -> dict[date, int]:
    days = [paper.day for paper in found if paper.day]
    return {day: days.count(day) for day in sorted(set(days))}


@pytest.mark.parametrize("skipped", [(), (date(2026, 10, 27),)], ids=["regular", "one left out"])
def test_each_morning_stores_everything_that_is_announced(tmp_path: Path, skipped: tuple[date, ...]) -> None:
    everything = submitted(MONDAY, 13)
    mornings = [datetime(2026, 10, 20, 1, 30, tzinfo=UTC) + timedelta(days=number) for number in range(12)]
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


@pytest.mark.parametrize("weekday", range(7))
def test_a_fresh_start_on_any_weekday_has_all_that_is_announced_of_the_last_seven_days(
    tmp_path: Path, weekday: int
) -> None:
    now = datetime(2026, 11, 2, 8, tzinfo=UTC) + timedelta(days=weekday)
    with loopback_arxiv(announced(submitted(MONDAY, 21), now)) as server:
        workspace = workspace_of(tmp_path, server, now)
        fetch_due(workspace, now)
        recent = {day: count for day, count in counts(server.papers).items() if day >= (now - timedelta(days=7)).date()}
        assert paper_counts(workspace.warehouse) == recent
        asked = len(server.requests)
        assert not fetch_due(workspace, now + timedelta(hours=1)) and len(server.requests) == asked


def test_a_new_category_makes_the_recent_days_due_again(tmp_path: Path) -> None:
    now = datetime(2026, 10, 30, 3, tzinfo=UTC)
    with loopback_arxiv(announced(submitted(MONDAY, 14), now)) as server:
        workspace = workspace_of(tmp_path, server, now)
        fetch_due(workspace, now)
        assert not due_days(workspace.warehouse, workspace.settings, now + timedelta(minutes=1))
        wider = replace(workspace, settings=workspace.settings.model_copy(update={"categories": ("cs.CL", "cs.LG")}))
        assert len(due_days(workspace.warehouse, wider.settings, now + timedelta(minutes=1))) > 4


@settings(max_examples=settings().max_examples // 2)  # each takes a second
@given(arrivals=st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=1, max_size=14))
def test_whatever_the_order_of_arrivals_a_paper_is_in_the_first_list_after_its_arrival_and_in_no_other(
    arrivals: list[tuple[int, int]],
) -> None:
    """`arrivals`: each paper's day of submission, and after how many more mornings it arrives."""
    papers_by_morning: dict[int, list[Paper]] = {}
    for number, (submitted_on, later) in enumerate(arrivals):
        paper = invented_paper(number, MONDAY + timedelta(days=submitted_on))
        papers_by_morning.setdefault(submitted_on + later, []).append(paper)
    with TemporaryDirectory() as folder:
        warehouse, lists = Warehouse(Path(folder, "store.duckdb"), deadline=5), dict[str, date]()
        keyed = load_settings({}, Path(folder))
        for _, arrived in sorted(papers_by_morning.items()):
            merge_papers(warehouse, arrived)
            newest = latest_day(warehouse)
            assert newest is not None
            keep_candidates(warehouse, profile_day(warehouse, READER, newest, settings=keyed), settings=keyed)
            keep_ranking(
                warehouse, READER, newest, embedder=None, verifier=NO_MODEL, settings=keyed, now=datetime.now(UTC)
            )
            lists |= {paper.paper_id: newest for paper in arrived}
        shown = {day: ranking(warehouse, day, READER.name).listed for day in lists.values()}
    pairs = [(row["paper_id"], day) for day, rows in shown.items() for row in rows]
    assert sorted(pairs) == sorted(lists.items())
