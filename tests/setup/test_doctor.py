"""Test that `doctor` names each of these prepared faults and how to fix it, and nothing where all is well."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from paper_assets.settings import LLM_MONTH, LLM_USE_FOLDER, load_settings
from paper_assets.setup import doctor
from paper_assets.setup.doctor import Finding, Installation, examine
from paper_assets.stores.kept_settings import MORNING, keep_variables, kept_environment
from tests.desk import Desk
from tests.loopback import Answer, Request, refusing_port, serving
from tests.loopback_llm import KEY, fault, loopback_llm, says

EMPTY_FEED = (
    b"<?xml version='1.0'?><feed xmlns='http://www.w3.org/2005/Atom' "
    b"xmlns:opensearch='http://a9.com/-/spec/opensearch/1.1/'>"
    b"<opensearch:totalResults>0</opensearch:totalResults></feed>"
)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.profile("traffic", {"interests": {"primary": ["traffic"]}})
    return desk


@contextmanager
def installed(
    desk: Desk, answer: Callable[[Request], Answer] = lambda _: Answer(body=EMPTY_FEED), **environ: str
) -> Iterator[Installation]:
    with serving(answer) as address:
        variables = {
            **desk.environment,
            "PAPER_ASSETS_ARXIV_URL": f"{address}/api/query",
            "PAPER_ASSETS_REQUEST_INTERVAL": "0.01",
            **environ,
        }
        yield Installation(
            settings=load_settings(variables, desk.folder),
            environ=variables,
            dagster_home=desk.folder / "dagster_home",
            free_bytes=lambda _: 50_000_000_000,
        )


def wrong(installation: Installation) -> list[Finding]:
    found = [each for each in examine(installation) if each.state in ("warning", "problem")]
    assert all(each.fix for each in found)
    return found


def only(installation: Installation) -> Finding:
    found = wrong(installation)
    assert len(found) == 1, found
    return found[0]


def test_a_good_installation_has_no_findings(desk: Desk) -> None:
    with installed(desk) as installation:
        assert wrong(installation) == []


@pytest.mark.parametrize(("gigabytes", "state"), [(0.3, "problem"), (3, "warning")])
def test_a_disk_that_is_nearly_full(desk: Desk, gigabytes: float, state: str) -> None:
    with installed(desk) as installation:
        found = only(replace(installation, free_bytes=lambda _: int(gigabytes * 1e9)))
    assert (found.name, found.state) == ("disk", state)


def test_a_data_folder_that_cannot_be_written(desk: Desk) -> None:
    (desk.folder / "data").write_text("a file in its place", encoding="utf-8")
    with installed(desk) as installation:
        names = [each.name for each in wrong(installation)]
    assert "data folder" in names


def test_a_missing_model(desk: Desk) -> None:
    with installed(desk, PAPER_ASSETS_EMBEDDING_MODEL="no-such-model") as installation:
        found = only(installation)
    assert found.name == "embedding model"
    assert "PAPER_ASSETS_EMBEDDING_MODEL" in found.fix


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (Answer(status=429, headers={"Retry-After": "600"}), "warning"),
        (Answer(body=b"<html>Sign in</html>"), "problem"),
    ],
)
def test_an_arxiv_that_refuses_or_is_not_arxiv(desk: Desk, answer: Answer, state: str) -> None:
    with installed(desk, lambda _: answer) as installation:
        found = only(installation)
    assert (found.name, found.state) == ("arXiv", state)


def test_a_language_model_that_refuses_the_key_or_works(desk: Desk) -> None:
    with loopback_llm(fault(401)) as server:
        url = server.config("openai").base_url
        with installed(desk, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=url) as installation:
            found = only(installation)
    assert found.name == "language model"
    assert KEY not in f"{found}"
    with loopback_llm(says({"ok": True})) as server:
        url = server.config("openai").base_url
        with installed(desk, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=url) as installation:
            assert wrong(installation) == []
        assert len(server.requests) == 1


def test_a_mail_server_that_is_not_there(desk: Desk) -> None:
    mail = {"PAPER_ASSETS_SMTP_HOST": "127.0.0.1", "PAPER_ASSETS_MAIL_FROM": "desk@example.org"}
    with refusing_port() as port, installed(desk, **mail, PAPER_ASSETS_SMTP_PORT=f"{port}") as installation:
        found = only(installation)
    assert found.name == "mail"
    assert "PAPER_ASSETS_SMTP_HOST" in found.fix


def test_a_broken_profile(desk: Desk) -> None:
    desk.profile("broken", "{")
    with installed(desk) as installation:
        found = only(installation)
    assert found.name == "profile broken"


def test_a_check_that_fails_unexpectedly_stops_no_other(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Installation) -> list[Finding]:
        raise RuntimeError("a bug")

    monkeypatch.setattr(doctor, "CHECKS", {"first": fails, **doctor.CHECKS})
    with installed(desk) as installation:
        found = examine(installation)
    assert found[0].detail == "RuntimeError: a bug"
    assert len(found) > 5


def test_the_command_prints_the_findings_as_json_and_fails_where_there_is_a_problem(desk: Desk) -> None:
    assert {each["name"] for each in json.loads(desk.run("doctor", "--offline", "--json"))} >= {"settings", "disk"}
    desk.profile("broken", "{")
    process = desk.start("doctor", "--offline")
    out, err = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "fix: fix the file" in out
    assert "Traceback" not in err


def test_all_wrong_settings_are_named_and_the_other_checks_continue(desk: Desk) -> None:
    (desk.folder / "data").mkdir()
    kept = desk.folder / "data" / MORNING.name
    kept.write_text("PAPER_ASSETS_FETCH_AT=dawn\n", encoding="utf-8")
    wrong = {"PAPER_ASSETS_STORE_DEADLINE": "soon", "PAPER_ASSETS_REWRITING": "passes=high"}
    process = desk.start("doctor", "--offline", "--json", **wrong)
    out, err = process.communicate(timeout=600)
    found = json.loads(out)
    problems = {each["detail"]: each["fix"] for each in found if each["state"] == "problem"}
    assert process.returncode == 1
    assert "error:" not in err
    for variable, where in ((name, f"unset {name}") for name in wrong):
        assert any(detail.startswith(variable) and where in fix for detail, fix in problems.items())
    assert any(detail.startswith("PAPER_ASSETS_FETCH_AT") and f"{kept}" in fix for detail, fix in problems.items())
    assert len(problems) == 3
    assert {each["name"] for each in found} >= {"disk", "data folder", "profiles", "embedding model"}


def test_an_installation_without_profiles_says_only_how_to_make_one(tmp_path: Path) -> None:
    with installed(Desk(tmp_path)) as installation:
        found = only(installation)
    assert (found.name, found.state, found.fix) == ("profiles", "warning", "`paper-assets profile new` makes one")
    assert "PAPER_ASSETS_PROFILES" not in found.detail


def test_a_kept_key_that_others_can_read_is_named_without_asking_anyone(desk: Desk) -> None:
    file = keep_variables(desk.folder / "data", {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": KEY})
    file.chmod(0o644)
    with installed(desk) as installation:
        kept = kept_environment(installation.environ, desk.folder / "data", lambda: datetime(2026, 11, 25, tzinfo=UTC))
        found = {each.name: each for each in examine(replace(installation, environ=kept, online=False))}
    assert found["language model"].state == "problem"
    assert f"chmod 600 {file}" in found["language model"].detail


def test_a_monthly_limit_that_is_reached_is_named_and_no_call_is_made(desk: Desk) -> None:
    use = desk.folder / "use" / "2026-11.tsv"
    use.parent.mkdir()
    use.write_text("checks\t90\t10\n", encoding="utf-8")
    limit = {"PAPER_ASSETS_LLM_MONTH_TOKENS": "100", LLM_USE_FOLDER: str(use.parent), LLM_MONTH: "2026-11"}
    with loopback_llm(says({"ok": True})) as server:
        url = server.config("openai").base_url
        with installed(desk, OPENAI_API_KEY=KEY, OPENAI_BASE_URL=url, **limit) as installation:
            found = {each.name: each for each in examine(installation)}
        assert server.requests == []
    assert found["language model"].state == "warning"
    assert "monthly limit" in found["language model"].detail
