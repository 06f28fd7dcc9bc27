"""One broken paper, profile, question or rewrite is replaced by its name; everything else is shown."""

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lxml.html
import pytest
from starlette.testclient import TestClient

from paper_assets.defs.history_files import PastRun, runs_in_files
from paper_assets.interfaces import background
from paper_assets.interfaces.page import evidence, overview, rewrite_views, today
from paper_assets.interfaces.page.app import build_app
from paper_assets.interfaces.page.desk import Desk, interests_of
from paper_assets.stores.deliveries import claim, note
from tests.page.in_process import page_client
from tests.page.invented_desk import LATEST, PROFILE, Page

FAULT = RuntimeError("planted")


@pytest.fixture
def client(page_of_a_year: Page) -> Iterator[TestClient]:
    """The page in this process, so that a fault can be planted in it."""
    desk = page_of_a_year.desk
    settings = desk.settings
    app = build_app(Desk(settings=settings, environ=desk.environment, token="token"))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def failing(chosen: Any, function: Any) -> Any:
    """`function`, which raises for the first value for which `chosen` is true."""

    def call(value: Any, *more: Any, **named: Any) -> Any:
        if chosen(value):
            raise FAULT
        return function(value, *more, **named)

    return call


def test_a_paper_that_cannot_be_shown_has_a_line_in_its_place(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = client.get(f"/p/{PROFILE}").text
    first, second, third, *_ = re.findall(r'<article id="paper-([^"]+)"', whole)
    monkeypatch.setattr(today, "row_of", failing(lambda each: each.paper_id == second, today.row_of))
    answer = client.get(f"/p/{PROFILE}")
    assert answer.status_code == 200
    assert answer.text.count("<article") == whole.count("<article") - 1
    link = f'<a href="https://arxiv.org/abs/{second}">arXiv</a>'
    line = f"Paper {second} could not be shown; the log has the reason. {link}"
    places = [answer.text.index(text) for text in (f'"paper-{first}"', line, f'"paper-{third}"')]
    assert places == sorted(places) and answer.text.count(f"{second} ") == 1
    assert second in caplog.text and "planted" in caplog.text


def test_a_question_that_cannot_be_shown_leaves_the_view(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "evidence_of", failing(lambda _: True, evidence.evidence_of))
    answer = client.get(f"/p/{PROFILE}/evidence")
    assert answer.status_code == 200
    assert "Question 1 could not be shown" in answer.text and "Ask a question" in answer.text


def test_a_rewrite_that_cannot_be_shown_leaves_the_others(
    client: TestClient, page_of_a_year: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting = rewrite_views.rewrites_of(page_of_a_year.desk.warehouse, profile=PROFILE)[0].item
    monkeypatch.setattr(rewrite_views, "step_of", failing(lambda item: item.item == waiting, rewrite_views.step_of))
    answer = client.get(f"/p/{PROFILE}/rewrites")
    assert answer.status_code == 200
    assert answer.text.count("could not be shown") == 1 and "Finished" in answer.text


def test_health_is_shown_without_the_part_that_fails(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overview, "health", failing(lambda _: True, overview.health))
    answer = client.get("/health")
    assert answer.status_code == 200
    assert "The state of the profiles could not be shown" in answer.text and "Last runs" in answer.text


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (("2026-03-13|reader1", "2026-03-13|vision"), "13 March 2026, profiles from reader1 to vision"),
        (("2026-03-02|vision", "2026-03-13|vision"), "2 March 2026 to 13 March 2026, vision"),
        (("2026-03-13",), "13 March 2026"),
        (("vision",), "vision"),
    ],
)
def test_health_names_the_days_and_profiles_of_a_run_in_words(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], words: str
) -> None:
    run = PastRun(run_id="1", status="success", assets=(), partitions=keys, began=None, seconds=1.0)
    monkeypatch.setattr(overview, "_runs", lambda _: [run])
    assert f"<td>{words}</td>" in client.get("/health").text


def test_health_leads_to_the_runs_of_the_graph_that_was_started_with_the_page(
    page_of_a_year: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = PastRun(run_id="1", status="failure", assets=(), partitions=(LATEST.isoformat(),), began=None, seconds=1.0)
    monkeypatch.setattr(overview, "_runs", lambda _: [run])
    with page_client(page_of_a_year.desk, PAPER_ASSETS_GRAPH="http://127.0.0.1:3911") as client:
        health = client.get("/health").text
    assert 'href="http://127.0.0.1:3911/runs/1"' in health and 'href="http://127.0.0.1:3911/runs"' in health


def test_an_unexpected_fault_of_a_view_is_a_page_that_names_no_more_than_its_kind(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(today, "gather", failing(lambda _: True, today.gather))
    answer = client.get(f"/p/{PROFILE}")
    assert answer.status_code == 500
    assert "RuntimeError" in answer.text and "planted" not in answer.text
    assert "Content-Security-Policy" in answer.headers
    assert client.get(f"/p/{PROFILE}/rewrites").status_code == 200


def test_a_broken_profile_shows_its_fault_on_its_own_pages_and_in_health(
    client: TestClient, page_of_a_year: Page
) -> None:
    desk = page_of_a_year.desk
    broken = desk.profile("broken", "{")
    ranked = desk.folder / "profiles" / PROFILE / "profile.json"
    before = ranked.read_text("utf-8")
    try:
        ranked.write_text(before.replace('"top_k": 4', '"top_k": "four"'), encoding="utf-8")
        health = client.get("/health").text
        assert "It has no list yet" in health and f"the list of Wednesday, {LATEST.day} March" in health
        for path in ("", "/profile", "/evidence"):
            answer = client.get(f"/p/broken{path}")
            assert answer.status_code in (400, 404)
            assert "The profile broken has an error" in answer.text
        answer = client.get(f"/p/{PROFILE}")
        assert answer.status_code == 200 and "has an error" in answer.text and "top_k" in answer.text
        form = client.get(f"/p/{PROFILE}/profile").text
        assert "Enter a whole number." in form
        page_desk = client.app.state.desk  # type: ignore[attr-defined]
        with page_desk.read_together():  # as Today does, which searches for the interests on an empty day
            assert interests_of(page_desk, PROFILE)
        assert "has an error" not in client.get("/p/speech").text
    finally:
        ranked.write_text(before, encoding="utf-8")
        broken.unlink()
        broken.parent.rmdir()


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ('"interests": {"primary": 5}', "Input should be a valid array."),
        ('"interests": {"primary": "graphs"}', ">graphs</textarea>"),
        ('"ranking": {"weights": {"semantic": 1, "recency": "0.3", "author_trust": null}}', 'value="0.3"'),
        ('"ranking": {"purpose": ["general"], "weights": [1]}', "has an error"),
        ('"rewriting": {"target_levels": 7}, "feed": {"repeat": "yes", "categories": true}', "has an error"),
        (
            '"interests": {"primary": ["\\ud800 \\u001b[31mgra\\u202ephs\\nof proteins"]}',
            "[31mgraphs of proteins</textarea>",
        ),
    ],
)
def test_the_form_shows_a_profile_that_is_wrong_in_any_way_to_be_repaired(
    client: TestClient, page_of_a_year: Page, wrong: str, shown: str
) -> None:
    file = page_of_a_year.desk.profile("wrong", "{" + wrong + "}")
    try:
        answer = client.get("/p/wrong/profile")
        assert answer.status_code == 200 and shown in answer.text
        assert not re.search("[\x1b\u202e]", answer.text)
    finally:
        file.unlink()
        file.parent.rmdir()


def test_what_is_typed_is_kept_and_shown_without_control_characters(client: TestClient, page_of_a_year: Page) -> None:
    file = page_of_a_year.desk.profile("asking", '{"interests": {"primary": ["graphs"]}}')

    def keep(question: str) -> int:
        form = {"token": "token", "question": question}
        headers = {"origin": "http://127.0.0.1"}
        return client.post("/p/asking/questions", data=form, headers=headers, follow_redirects=False).status_code

    try:
        assert (keep("\0\1"), keep("why \x1b[31m\u202ered?")) == (400, 303)
        assert "why [31mred?" in file.with_name("questions.json").read_text("utf-8")
        for address in ("/p/asking/search?q=why+", "/p/asking/search?q="):
            shown = client.get(f"{address}red%1b%E2%80%AE+graphs").text
            assert "red graphs" in shown and not re.search("[\x1b\u202e]", shown)
    finally:
        shutil.rmtree(file.parent)


def test_health_lists_the_runs_of_the_folder_in_which_dagster_keeps_them(
    client: TestClient, page_of_a_year: Page
) -> None:
    import dagster as dg
    from dagster._core.events import DagsterEvent
    from dagster._core.execution.plan.objects import StepFailureData, UserFailureData

    from paper_assets.defs.instance import open_instance

    assert "No run is recorded yet" in client.get("/health").text
    folder = Path(page_of_a_year.desk.environment["DAGSTER_HOME"])
    instance = open_instance(folder)
    instance.add_run(
        dg.DagsterRun(
            job_name="daily",
            run_id="00000000-0000-4000-8000-000000000001",
            status=dg.DagsterRunStatus.STARTED,
            asset_selection=frozenset({dg.AssetKey("scored_rankings"), dg.AssetKey(["a", "b"])}),
            tags={
                "dagster/asset_partition_range_start": "2026-03-02",
                "dagster/asset_partition_range_end": "2026-03-04",
            },
        )
    )
    instance.add_run(
        dg.DagsterRun(
            job_name="__ASSET_JOB",
            asset_selection=frozenset({dg.AssetKey("paper_embeddings")}),
            run_id="00000000-0000-4000-8000-000000000002",
            status=dg.DagsterRunStatus.SUCCESS,
        )
    )
    failed = dg.DagsterRun(
        job_name="rewrites", run_id="00000000-0000-4000-8000-000000000003", status=dg.DagsterRunStatus.FAILURE
    )
    instance.add_run(failed)
    data = StepFailureData(
        error=None,
        user_failure_data=UserFailureData(label="failure", description="LLM_ERROR: the language model refused the key"),
    )
    event = DagsterEvent(
        event_type_value="STEP_FAILURE",
        message="failed",
        job_name="rewrites",
        step_key="rewrites",
        event_specific_data=data,
    )
    instance.report_dagster_event(event, failed.run_id)
    answer = client.get("/health").text
    assert "failure: the language model refused the key</td>" in answer
    assert "No run is recorded yet" not in answer and "success" in answer
    assert "<td>embeddings</td>" in answer and "<td>2 March 2026 to 4 March 2026</td>" in answer
    read = runs_in_files(folder, most=9)
    assert read and [run.status for run in read] == ["failure", "success", "started"]
    settings = folder / "dagster.yaml"
    kept = settings.read_bytes()
    settings.write_bytes(kept + b"\nstorage:\n  postgres: {}\n")
    assert runs_in_files(folder, most=9) is None, "the history is elsewhere"
    settings.write_bytes(kept)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that the page starts in the background, which are only recorded."""
    started: list[list[str]] = []
    monkeypatch.setattr(background, "begin", lambda home, environ, arguments, **_: started.append([*arguments]))
    return started


def press(client: TestClient, shown: str, words: str) -> str:
    """Press the button of a page whose words begin so; return what is shown next."""
    forms = lxml.html.fromstring(shown).forms
    [form] = [each for each in forms if any(b.text_content().startswith(words) for b in each.iter("button"))]
    return client.post(form.action, data=dict(form.form_values()), headers={"origin": "http://127.0.0.1"}).text


def test_the_list_of_a_day_that_was_not_fetched_is_made_from_its_own_page(
    client: TestClient, commands: list[list[str]]
) -> None:
    day = LATEST + timedelta(days=2)
    shown = client.get(f"/p/{PROFILE}/{day}")
    assert shown.status_code == 404 and f"{PROFILE} has no list of Friday, 6 March 2026" in shown.text
    assert "The papers of this day are not fetched yet." in shown.text
    assert "paper-assets" not in shown.text
    after = press(client, shown.text, "Fetch the papers of this day")
    assert "Fetching 6 March 2026 has started." in after and "No list of this day" in after
    press(client, shown.text, "Rank this day")
    assert commands == [
        ["fetch", "--day", f"{day}", "--to", f"{day}"],
        ["run", "--profile", PROFILE, "--as-of", f"{day}"],
    ]
    long_after = client.get(f"/p/{PROFILE}/{LATEST + timedelta(days=90)}").text
    assert "Fetch the papers of this day" in long_after and "Rank this day" not in long_after, "its window is empty"
    assert "<button" not in client.get(f"/p/{PROFILE}/2020-01-01").text, "lists begin later"


def test_health_sends_a_digest_again_that_may_not_have_arrived(
    client: TestClient, page_of_a_year: Page, commands: list[list[str]]
) -> None:
    desk, today = page_of_a_year.desk, datetime.now(UTC).date()
    file = desk.folder / "profiles" / PROFILE / "delivery.json"
    file.write_text('{"mail": {"to": ["ada@example.org"]}}', encoding="utf-8")
    try:
        assert claim(desk.warehouse, PROFILE, today, "mail", now=datetime.now(UTC))
        note(desk.warehouse, PROFILE, today, "mail", "sending", None, now=datetime.now(UTC))
        shown = client.get("/health").text
        assert "it is unknown whether it arrived" in shown and "paper-assets deliver" not in shown
        press(client, shown, "Send it once more")
        assert commands == [["deliver", PROFILE, "--day", f"{today}", "--again"]]
    finally:
        file.unlink()
        desk.warehouse.run("delete from digest_deliveries")


def test_what_the_form_can_correct_leads_to_it(client: TestClient, page_of_a_year: Page) -> None:
    file = page_of_a_year.desk.profile("wrong", '{"interests": {"primary": 5}}')
    link = '<a href="/p/wrong/profile">Correct it in the form</a>'
    try:
        assert all(link in client.get(view).text for view in ("/health", "/?all=1", "/p/wrong/shelf"))
        file.write_text("{", encoding="utf-8")  # which the form cannot show
        assert not any(link in client.get(view).text for view in ("/health", "/?all=1", "/p/wrong/shelf"))
    finally:
        shutil.rmtree(file.parent)


def test_a_rating_of_a_paper_that_is_gone_is_still_listed(client: TestClient, page_of_a_year: Page) -> None:
    from paper_assets.stores.feedback import NewRating, append_ratings

    warehouse = page_of_a_year.desk.warehouse
    odd = NewRating(paper_id="2401.00001", rating="worth", title="$\\href{..}{..}$ odd", abstract="")
    append_ratings(warehouse, "speech", [odd], given_in="import", now=datetime(2026, 3, 4, tzinfo=UTC))
    answer = client.get("/p/speech/profile")
    assert answer.status_code == 200 and "odd" in answer.text
    assert "unshown" not in answer.text
