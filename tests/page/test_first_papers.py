"""Test the first papers: from an empty home to Today with a loopback arXiv, stopped and continued, refused."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from starlette.testclient import TestClient

from paper_assets.announcements import announced_days
from paper_assets.errors import InvalidInput, LLMNotConfigured
from paper_assets.interfaces import background
from paper_assets.interfaces.page.app import build_app
from paper_assets.interfaces.page.desk import Desk as PageDesk
from paper_assets.locks import store_lock
from paper_assets.models.llm_config import llm_config
from paper_assets.paper import Paper
from paper_assets.processes import process_named, this_process
from paper_assets.settings import load_settings
from paper_assets.stores.papers import paper_counts
from paper_assets.stores.rankings import latest_ranking_day
from tests.desk import GRAPHS, PATIENCE, Desk, imported_desk, paper
from tests.loopback import Answer
from tests.loopback_arxiv import LoopbackArxiv, invented_paper, loopback_arxiv
from tests.page.browser import keep_picture, visitor
from tests.page.in_process import TOKEN, page_client
from tests.page.invented_desk import served
from tests.waiting import until

TEXTS = ("traffic forecasting on road networks", "parsing of old letters", "calibration of tree ensembles")


@pytest.fixture
def today() -> date:
    """Return the date by which commands fetch; skip the test where it could change before the end of the test."""
    now = datetime.now(UTC)
    if (now + timedelta(minutes=10)).date() != now.date():
        pytest.skip("the date changes in less than ten minutes")
    return now.date()


def papers(days: int = 7) -> list[Paper]:
    return [
        invented_paper(number, day, title=f"{text.capitalize()}, part {number}", categories=(category,))
        for day in announced_days(datetime.now(UTC), days)
        for number, (text, category) in enumerate(zip(TEXTS, ("cs.LG", "cs.CL", "stat.ML"), strict=True))
    ]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def reaching(arxiv: LoopbackArxiv) -> dict[str, str]:
    return {"PAPER_ASSETS_ARXIV_URL": arxiv.url, "PAPER_ASSETS_REQUEST_INTERVAL": "0.1"}


@pytest.fixture
def arxiv(today: date) -> Iterator[LoopbackArxiv]:
    with loopback_arxiv(papers=papers()) as arxiv:
        yield arxiv


@pytest.fixture(scope="module")
def fetched(tmp_path_factory: pytest.TempPathFactory) -> tuple[date, Path]:
    """The date, and a home of which `start` has fetched and ranked two days, to be copied."""
    now, desk = datetime.now(UTC).date(), Desk(tmp_path_factory.mktemp("fetched"))
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}, "feed": {"categories": ["cs.LG", "cs.CL"]}})
    with loopback_arxiv(papers=papers()) as arxiv:
        desk.run("start", "--days", "2", **reaching(arxiv))
    return now, desk.folder


@pytest.fixture
def started(tmp_path: Path, today: date, fetched: tuple[date, Path]) -> Desk:
    """A desk of today on which `start` has fetched and ranked two days."""
    if fetched[0] != today:
        pytest.skip("the date has changed since the days were fetched")
    shutil.copytree(fetched[1], tmp_path / "started")
    return Desk(tmp_path / "started")


def of_day(arxiv: LoopbackArxiv, day: date) -> Answer:
    """Return what arXiv answers about one day."""
    return arxiv._by_day({"search_query": f"cat:cs.LG submittedDate:[{day:%Y%m%d}0000 TO {day:%Y%m%d}2359]"})


def test_start_fetches_the_categories_of_the_profiles_and_ranks(desk: Desk, arxiv: LoopbackArxiv, today: date) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}, "feed": {"categories": ["cs.LG", "stat.ML"]}})
    output = desk.run("start", "--days", "3", **reaching(arxiv))
    assert "Day 3 of 3" in output
    assert TEXTS[0].capitalize() in output
    assert {re.sub(r"\+AND.*| AND .*", "", request.query["search_query"]) for request in arxiv.requests} == {
        "(cat:cs.LG OR cat:stat.ML)"
    }
    assert set(paper_counts(desk.warehouse)) == set(announced_days(datetime.now(UTC), 3))
    asked = len(arxiv.requests)
    desk.run("start", "--days", "4", **reaching(arxiv))  # continues: only the fourth day is asked for
    assert len(arxiv.requests) == asked + 1


def test_a_later_morning_fetches_the_days_again_that_may_have_grown(started: Desk, arxiv: LoopbackArxiv) -> None:
    desk, day = started, announced_days(datetime.now(UTC), 2)[1]
    arxiv.papers.append(invented_paper(999, day, title="Traffic forecasting, announced late", categories=("cs.LG",)))
    before = paper_counts(desk.warehouse)[day]
    desk.run("start", "--days", "2", **reaching(arxiv))
    assert arxiv.requests == [], "nothing is asked twice after one announcement"
    desk.warehouse.run("update day_listings set asked_at = asked_at - interval 7 days")
    desk.run("start", "--days", "2", **reaching(arxiv))
    assert len(arxiv.requests) == 2
    assert paper_counts(desk.warehouse)[day] == before + 1


def test_run_asks_for_the_days_that_are_due_and_ranks_what_is_stored_where_arxiv_does_not_answer(
    started: Desk, arxiv: LoopbackArxiv
) -> None:
    desk = started
    desk.run("run", **reaching(arxiv))
    asked, newest = len(arxiv.requests), announced_days(datetime.now(UTC), 1)[0]
    assert asked > 0, "the other days of the week were never asked for"
    desk.run("run", **reaching(arxiv))
    assert len(arxiv.requests) == asked
    desk.warehouse.run("update day_listings set asked_at = asked_at - interval 7 days")
    arxiv.papers.append(invented_paper(999, newest, title="Traffic forecasting, late", categories=("cs.LG",)))
    arxiv.script = [Answer(status=404)] * (asked + 1)
    listed, warned = desk.heard("run", **reaching(arxiv))
    assert TEXTS[0].capitalize() in listed
    assert [line.partition(":")[0] for line in warned.splitlines() if "could not be fetched" in line] == ["warning"]
    arxiv.script = None
    with page_client(desk) as client:
        assert "not fetched yet" in client.get("/p/traffic").text
    before = paper_counts(desk.warehouse)[newest]
    desk.run("run", **reaching(arxiv))
    assert paper_counts(desk.warehouse)[newest] == before + 1
    assert f"{newest:%a} {newest.day}" in desk.run("status")


def test_a_refusal_is_explained_and_what_came_before_is_ranked(desk: Desk, arxiv: LoopbackArxiv, today: date) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}, "feed": {"categories": ["cs.LG"]}})
    refusals = [Answer(status=429, headers={"Retry-After": "3600"})] * 5
    arxiv.script = [of_day(arxiv, announced_days(datetime.now(UTC), 1)[0]), *refusals]
    process = desk.start("start", "--days", "2", **reaching(arxiv))
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 1
    assert "1 day of 2 fetched, the same command continues" in err
    assert TEXTS[0].capitalize() in out


def test_without_a_profile_start_says_how_to_make_one(desk: Desk) -> None:
    assert "paper-assets profile new" in desk.refused("start", "--days", "1")


def test_the_page_starts_stops_and_continues_the_work(desk: Desk, arxiv: LoopbackArxiv, today: date) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}, "feed": {"categories": ["cs.LG"]}})
    environ = {**desk.environment, **reaching(arxiv)}
    arxiv.script = [*(of_day(arxiv, day) for day in announced_days(datetime.now(UTC), 2)), *[Answer(hang=True)] * 9]
    settings = load_settings(environ, desk.folder)
    app = build_app(PageDesk(settings=settings, environ={**os.environ, **environ}, token=TOKEN))
    with TestClient(app, base_url="http://127.0.0.1", headers={"origin": "http://127.0.0.1"}) as client:
        assert "/p/traffic/first" in client.get("/p/traffic").text
        client.post("/p/traffic/first", data={"token": TOKEN, "days": "3"})
        until(lambda: len((background.last_job(settings.home) or background.Job()).counts) >= 2)
        shown = client.get("/p/traffic/first").text
        assert "of 3 days" in shown
        assert "You can close this page" in shown
        refused = client.post("/p/traffic/first", data={"token": TOKEN, "days": "3"})
        assert "is still running" in refused.text
        assert (
            "Stopped. What is fetched is kept"
            in client.post("/work/stop", data={"token": TOKEN, "back": "/p/traffic/first"}).text
        )
        job = background.last_job(settings.home)
        assert job is not None
        assert (job.state, len(job.counts)) == ("stopped", 2)
        asked, arxiv.script = len(arxiv.requests), None
        client.post("/p/traffic/first", data={"token": TOKEN, "days": "3"})
        until(lambda: not (background.last_job(settings.home) or background.Job()).running)
        job = background.last_job(settings.home)
        assert job is not None
        assert (job.state, job.message) == ("done", None)
        assert len(arxiv.requests) == asked + 3 - 2
        assert latest_ranking_day(desk.warehouse, "traffic") == announced_days(datetime.now(UTC), 1)[0]
        assert client.get("/p/traffic/first?watch=1").url.path == "/p/traffic"


@pytest.mark.parametrize(("done", "hint"), [(2, "seconds between two requests"), (7, "Ranking takes about a minute")])
def test_the_page_says_what_it_waits_for(desk: Desk, done: int, hint: str) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}})
    settings = desk.settings
    job = background.Job(title="Fetching", profile="traffic", stage="at work", total=7, process=str(this_process()))
    background.write_job(settings.home, replace(job, done=done))
    with page_client(desk) as client:
        work = re.search(r'<p class="facts">(.*?)</p>', client.get("/p/traffic/first").text)
    assert work is not None
    assert work[1].startswith(("arXiv asks for 3 " if done < 7 else "") + hint)


def test_today_opens_when_the_list_is_ready_while_older_papers_are_still_embedded(desk: Desk) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}})
    desk.run("import", f"{desk.papers('two', [paper(1, '2026-01-02', TEXTS[1]), paper(2, '2026-03-02', TEXTS[0])])}")
    home = desk.settings.home
    with page_client(desk) as client:
        client.post("/p/traffic/first", data={"token": TOKEN, "action": "rank"})
        until(lambda: not job_of(desk).running)
        assert job_of(desk).listed, "the list was ready before the end"
        assert job_of(desk).stage == "embedding the other stored papers, 1 paper left"
        background.write_job(home, replace(job_of(desk), state="running", process=str(this_process())))
        opened = client.get("/p/traffic/first?watch=1")
        assert opened.url.path == "/p/traffic" and "still being prepared" not in opened.text
        desk.warehouse.run("delete from embeddings")
        assert "Older papers are still being prepared" in client.get("/p/traffic/first?watch=1").text
        assert "Embed them and update the lists</button>" in client.get("/p/traffic/search?q=old+letters").text
        assert "disabled" not in client.get("/health").text
        background.write_job(home, replace(job_of(desk), listed=False))
        assert "embedding the other" in client.get("/p/traffic/first?watch=1").text


def test_a_command_that_no_list_waits_for_makes_way_for_the_next(desk: Desk) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}})
    desk.run("import", f"{desk.papers('one', [paper(1, '2026-03-02', TEXTS[0])])}")
    home = desk.settings.home
    with subprocess.Popen(["sleep", "600"]) as embedding, page_client(desk) as client:
        job = background.Job(title="Ranking", listed=True, process=str(process_named(embedding.pid)))
        background.write_job(home, job)
        client.post("/p/traffic/first", data={"token": TOKEN, "action": "rank"})
        assert embedding.wait() == -signal.SIGTERM
    until(lambda: not job_of(desk).running)
    assert job_of(desk).state == "done"
    assert latest_ranking_day(desk.warehouse, "traffic") == date(2026, 3, 2)


def test_of_two_commands_that_start_at_once_the_second_finds_the_first(tmp_path: Path) -> None:
    refused: list[str] = []

    def start() -> None:
        try:
            background.take_over(tmp_path, background.Job(title="the second"))
        except InvalidInput as fault:
            refused.append(f"{fault}")

    second = threading.Thread(target=start)
    with store_lock(tmp_path / "background", deadline=10):
        second.start()
        second.join(0.3)
        assert second.is_alive() and background.last_job(tmp_path) is None
        first = background.Job(title="the first", process=f"{process_named(os.getppid())}")
        background.write_job(tmp_path, first)
    second.join()
    assert refused == ["the first is still running; wait for its end, or stop it on the page"]
    assert background.last_job(tmp_path) == first


def test_imported_papers_can_be_ranked_where_there_is_no_list_yet(desk: Desk) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}})
    with page_client(desk) as client:
        assert "Rank the stored papers" not in client.get("/p/traffic").text
        desk.run("import", f"{desk.papers('one', [paper(1, '2026-03-02', TEXTS[0])])}")
        assert "Rank the stored papers" in client.get("/p/traffic").text
        draft = client.post("/welcome/preview", data={"token": TOKEN, "interests": TEXTS[0]}).text
        assert "the newest stored papers are not embedded. The first ranking does that" in draft


def test_an_edited_profile_and_ratings_are_ranked_again_by_one_button(tmp_path: Path) -> None:
    desk = imported_desk(tmp_path / "desk", ["2026-03-02"])
    desk.run("run")
    views, offer = ("/p/graphs", "/p/graphs/profile"), "Rank again</button>"
    with page_client(desk) as client:
        assert not any(offer in client.get(view).text for view in views)
        desk.profile("graphs", {**GRAPHS, "interests": {"primary": ["calibration of tree ensembles"]}})
        assert all(offer in client.get(view).text for view in views)
        assert offer not in client.get("/p/speech").text
        with store_lock(desk.folder / "data" / "up", deadline=0.0):  # as `paper-assets up`, which ranks
            assert offer not in client.get("/p/graphs").text
        client.post("/p/graphs/first", data={"token": TOKEN, "action": "rank"})
        assert "being ranked" in client.get("/p/graphs/profile").text
        until(lambda: not job_of(desk).running)
        assert offer not in client.get("/p/graphs").text
        assert "Calibration of tree ensembles" in client.get("/p/graphs").text
        client.post("/p/speech/rate", data={"token": TOKEN, "paper": "2603.00104", "rating": "worth"})
        assert offer in client.get("/p/speech").text
        assert "learning from ratings out of date" in client.get("/health").text
        assert "the next ranking learns from your 1 rating" in client.get("/p/speech/learned").text
        with pytest.raises(LLMNotConfigured) as missing:
            llm_config(desk.environment)
        with desk.warehouse.writing() as connection:
            (header,) = connection.execute("select header from ranking_sets where profile = 'speech'").fetchall()[0]
            note = json.dumps(json.loads(header) | {"llm_note": f"2 papers keep their estimates: {missing.value}"})
            connection.execute("update ranking_sets set header = ? where profile = 'speech'", [note])
        today = client.get("/p/speech").text
        assert (
            '2 papers keep their estimates: no language model is set up. <a href="/p/speech/settings#model">Set'
            in today
        )
        client.post("/p/speech/remove", data={"token": TOKEN})
        gone = client.get("/p/speech").text
        assert "was removed and gets no new lists" in gone and offer not in gone


def test_health_names_the_profiles_that_have_no_list_yet(tmp_path: Path) -> None:
    desk = imported_desk(tmp_path / "desk", ["2026-03-02"])
    desk.run("run", "--profile", "graphs")
    with page_client(desk) as client:
        health = client.get("/health").text
        of_profile = client.get("/p/graphs/health").text
    assert all(f"in {desk.folder / 'data'}." in each for each in (health, of_profile)), "where the data is"
    assert '<a href="/p/speech">speech</a></h3><p>It has no list yet.' in health
    assert 'href="/p/speech/first"' in health and 'href="/p/graphs/first"' not in health
    assert "newest list: Monday, 2 March 2026" in health


@pytest.mark.parametrize("form", [{"action": "explode"}, {"action": "rank", "profile": "../x"}, {"action": "fetch"}])
def test_health_runs_only_its_own_actions(desk: Desk, form: dict[str, str]) -> None:
    desk.profile("traffic", {"interests": {"primary": [TEXTS[0]]}})
    settings = desk.settings
    with page_client(desk) as client:
        assert client.post("/work", data={"token": TOKEN, **form}).status_code == 400
        assert "Rank what is out of date" in client.get("/health").text
    assert background.last_job(settings.home) is None


_FOCUSED = "name => document.activeElement.matches(name)"


class Keys:
    """A reader who has only a keyboard. Counts actions: an answer that is typed, a button that is pressed."""

    def __init__(self, view: Page, folder: str) -> None:
        self.view, self.folder, self.actions, self.tabs = view, folder, 0, 0

    def go_to(self, selector: str, by: str = "Tab") -> None:
        for _ in range(60):
            if self.view.evaluate(_FOCUSED, selector):
                return
            self.view.keyboard.press(by)
            self.tabs += 1
        raise AssertionError(f"{selector} cannot be reached with Tab")

    def type(self, selector: str, text: str, by: str = "Tab") -> None:
        self.go_to(selector, by)
        self.view.keyboard.type(text)
        self.actions += 1

    def press(self, selector: str) -> None:
        self.go_to(selector)
        self.picture()
        self.view.keyboard.press("Enter")
        self.actions += 1

    def picture(self) -> None:
        keep_picture(self.view, f"{self.folder}-{self.actions}")


def test_from_an_empty_home_to_today_by_keyboard(desk: Desk, arxiv: LoopbackArxiv, browser: Browser) -> None:
    """The papers are fetched while the form is typed, and a number moves until the list is there."""
    with served(desk, **reaching(arxiv)) as page, visitor(browser) as view:
        keys = Keys(view, "first")
        view.goto(page.url)
        keys.press("#more summary")
        keys.type("#other_categories", "cs.LG cs.CL stat.ML")
        keys.type("#interests", TEXTS[0], by="Shift+Tab")
        expect(view.locator("#preview [data-again]")).to_contain_text("of 7 days")
        until(lambda: sum(paper_counts(desk.warehouse).values()) > 0)
        assert not (desk.folder / "profiles").exists(), "fetched before the profile is made"
        keys.type("#name", "traffic")
        keys.press("#name")
        view.wait_for_url("**/p/traffic/first*")
        expect(view.locator("#work")).to_be_visible()
        expect(view.locator("meta[http-equiv]")).to_have_count(0)  # no timed refresh where scripts run
        keys.picture()
        view.wait_for_url("**/p/traffic?note*")
        expect(view.locator("article[id]").first).to_contain_text("Traffic forecasting")
        keys.actions += 1  # reading
        keys.picture()
    assert keys.actions <= 10
    assert sum(paper_counts(desk.warehouse).values()) == len(arxiv.papers)
    assert len(arxiv.requests) <= 7 + 1, "the day under way when the profile was made may be asked for again"
    print(f"{keys.actions} actions, {keys.tabs} times Tab")


# A command that is killed, with its children, when a function of it has done its work at this moment.
_DYING = """
import os, signal
from paper_assets.interfaces import background
from paper_assets.pipeline import embeddings

def dying(module, name, moment):
    work = getattr(module, name)

    def work_and_die(*arguments, **more):
        result = work(*arguments, **more)
        if moment(*arguments):
            os.killpg(0, signal.SIGKILL)
        return result

    setattr(module, name, work_and_die)
"""
MOMENTS = {
    "between the days": "dying(background, 'write_job', lambda home, job: len(job.counts) == 1)",
    "when embedding begins": "dying(background, 'write_job', lambda home, job: job.stage.startswith('embedding'))",
    "after the vectors are stored": "dying(embeddings, 'keep_vectors', lambda *_, **__: True)",
}


def job_of(desk: Desk) -> background.Job:
    return background.last_job(desk.folder / "data") or background.Job()


def test_killed_at_four_moments_it_continues_without_loss_or_duplicates(
    tmp_path: Path, started: Desk, arxiv: LoopbackArxiv
) -> None:
    undisturbed, killed = started, Desk(tmp_path / "killed")
    killed.profile("traffic", undisturbed.content("traffic"))
    arxiv.script = [Answer(hang=True)]
    process = killed.start("start", "--days", "2", **reaching(arxiv))
    until(lambda: bool(arxiv.requests))
    os.killpg(process.pid, signal.SIGKILL)  # while the first day is asked for
    process.communicate()
    arxiv.script = None
    for moment, dying in MOMENTS.items():
        process = killed.start("start", "--days", "2", before=f"{_DYING}{dying}", **reaching(arxiv))
        _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == -signal.SIGKILL, f"{moment}: {err}"
    killed.run("start", "--days", "2", **reaching(arxiv))
    assert killed.state() == undisturbed.state()
    assert len(arxiv.requests) == 2 + 1  # only the day that was being fetched is asked for again


def test_from_the_demo_to_ones_own_papers_is_one_button(desk: Desk) -> None:
    desk.run("demo")  # makes a profile where there is none
    settings = desk.settings
    app = build_app(PageDesk(settings=settings, environ={**os.environ, **desk.environment}, token=TOKEN))
    with TestClient(app, base_url="http://127.0.0.1", headers={"origin": "http://127.0.0.1"}) as client:
        assert "Start with your own papers" in client.get("/?all=1").text
        after = client.post("/work/leave-example", data={"token": TOKEN})
        assert after.url.path == "/welcome"
        assert paper_counts(desk.warehouse) == {}
        assert "Start with your own papers" not in client.get("/?all=1").text
        refused = client.post("/work/leave-example", data={"token": TOKEN})
        assert "nly papers of the demo can be removed here" in refused.text
