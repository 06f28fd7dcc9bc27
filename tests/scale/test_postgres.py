"""Dagster's history on a real PostgreSQL server: the desk works as on files, and the password is shown nowhere."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from paper_assets.defs.abandoned_runs import fail_abandoned_runs, process_tag
from paper_assets.defs.instance import open_instance
from tests.defs.test_abandoned_runs import GONE, begun
from tests.desk import GRAPHS, SPEECH, Desk, week
from tests.loopback import refusing_port
from tests.scale.postgres import PASSWORD, postgres, why_not

DAYS = ("2026-03-02", "2026-03-03")


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    if find_spec("dagster_postgres") is None:
        pytest.skip('dagster-postgres is not installed: pip install "paper-assets[postgres]", or make scale-test')
    if reason := why_not():
        pytest.skip(reason)
    with postgres() as found:
        yield found


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    desk.profile("speech", SPEECH)
    return desk


def files_of(desk: Desk) -> list[Path]:
    return [file for file in desk.folder.rglob("*") if file.is_file()]


def test_a_desk_imports_ranks_and_resets_with_its_history_on_the_server(desk: Desk, address: str) -> None:
    with_server = {"PAPER_ASSETS_POSTGRES": address}
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))), **with_server)
    desk.run("run", **with_server)
    again = desk.run("run", **with_server)
    assert "graphs" in again and "speech" in again
    assert not list((desk.folder / "dagster_home").rglob("*.db")), "no part of the history is in files"
    assert not [file for file in files_of(desk) if PASSWORD.encode() in file.read_bytes()]
    assert "2026-03-03" in desk.run("status", **with_server)
    message = desk.refused("run")
    assert "set PAPER_ASSETS_POSTGRES" in message and PASSWORD not in message
    desk.run("reset", "--history", "--yes", **with_server)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PAPER_ASSETS_POSTGRES", address)
        with open_instance(desk.folder / "dagster_home") as instance:
            assert (instance.get_runs(), instance.get_dynamic_partitions("profile")) == ([], [])
    desk.run("run", **with_server)


def test_abandoned_runs_are_ended_on_the_server(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAPER_ASSETS_POSTGRES", address)
    with open_instance(tmp_path / "home") as instance:
        dead, _ = begun(instance, GONE), begun(instance, process_tag())
        assert fail_abandoned_runs(instance) == [dead]
        instance.wipe()


def test_no_server_wrong_password_and_settings_that_disagree_are_lines_without_the_password(
    desk: Desk, address: str
) -> None:
    wrong = address.replace(PASSWORD, f"{PASSWORD}-but-wrong")
    with refusing_port() as port:
        for given in (f"postgresql+psycopg2://ada:{PASSWORD}@127.0.0.1:{port}/postgres", wrong):
            message = desk.refused("run", PAPER_ASSETS_POSTGRES=given)
            assert "the PostgreSQL server of PAPER_ASSETS_POSTGRES failed" in message
            assert PASSWORD not in message
    message = desk.refused("run", PAPER_ASSETS_POSTGRES=f"postgresql://ada:{PASSWORD}@127.0.0.1/x")
    assert "must be an address like postgresql+psycopg2://" in message and PASSWORD not in message
    (desk.folder / "dagster_home" / "dagster.yaml").unlink()
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))))
    message = desk.refused("run", PAPER_ASSETS_POSTGRES=address)
    assert "keeps Dagster's history in files; remove that file" in message and PASSWORD not in message
