"""A real daemon detects an edited profile and ranks only that one again (A1, A2)."""

import json
from collections.abc import Callable, Iterator
from datetime import date

import pytest

from paper_assets.errors import NotComputed
from paper_assets.stores.rankings import ranking, ranking_days
from tests.desk import GRAPHS, SPEECH, Desk, week

DAYS = ("2026-03-02", "2026-03-03")
LATEST = "2026-03-03"
PATIENCE = 900  # seconds for what takes about 20 on an idle machine


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """Start a daemon with imported papers and two profiles, once for all tests because it takes a minute."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    desk.profile("graphs", GRAPHS)
    desk.profile("speech", SPEECH)
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))))
    with desk.daemon():
        yield desk


def until(desk: Desk, what: str, happened: Callable[[], bool]) -> None:
    """Wait up to PATIENCE for an outcome; show the end of the daemon's log if it fails."""
    if not desk.happens(happened, within=PATIENCE):
        pytest.fail(f"{what}: not within {PATIENCE} s\n{desk.last_words()}")


def ranked(desk: Desk, profile: str) -> tuple[str, list[str]] | None:
    """Return when the newest ranking was made, and the papers it shows."""
    try:
        stored = ranking(desk.warehouse, date.fromisoformat(LATEST), profile)
    except NotComputed:
        return None
    shown = stored.rows.filter(stored.rows.column("shown")).column("paper_id").to_pylist()
    return stored.inputs, shown


@pytest.mark.timeout(4 * PATIENCE)
def test_an_edited_profile_alone_is_ranked_again_automatically(desk: Desk) -> None:
    until(desk, "both profiles ranked", lambda: bool(ranked(desk, "graphs") and ranked(desk, "speech")))
    before = {name: ranked(desk, name) for name in ("graphs", "speech")}

    desk.profile("speech", '{"interests": {"primary": ["half wri')
    desk.profile("graphs", {**GRAPHS, "interests": {"primary": ["calibration of tree ensembles"]}})
    until(desk, "the edited profile ranked again", lambda: ranked(desk, "graphs") != before["graphs"])

    after = ranked(desk, "graphs")
    assert after is not None and before["graphs"] is not None
    assert after[1] != before["graphs"][1]
    assert ranked(desk, "speech") == before["speech"], "a broken file re-ranks nothing; the last good ranking stays"
    assert [f"{day}" for day in ranking_days(desk.warehouse, "graphs")] == [LATEST], "only the latest day"
    folder = desk.folder / "data" / "output" / "rankings"
    until(desk, "its file written", lambda: len(list(folder.glob("graphs/*_ranked*.json"))) == 2)
    files = list(folder.glob("*/*.json"))
    assert sorted(file.parent.name for file in files) == ["graphs", "graphs", "speech"]
    assert all(json.loads(file.read_text("utf-8"))["success"] for file in files)


def test_a_rating_trains_the_model_and_ranks_its_profile_alone_again_automatically(desk: Desk) -> None:
    until(desk, "both profiles ranked", lambda: bool(ranked(desk, "graphs") and ranked(desk, "speech")))
    before = {name: ranked(desk, name) for name in ("graphs", "speech")}
    first = before["graphs"]
    assert first is not None
    desk.run("rate", "graphs", first[1][0], "worth")
    desk.run("rate", "graphs", first[1][1], "no")
    until(desk, "the rated profile ranked again", lambda: ranked(desk, "graphs") != first)
    until(desk, "both ratings seen", lambda: "1 paper rated worth reading, 1 not" in learning(desk, "graphs"))
    assert ranked(desk, "speech") == before["speech"]


def learning(desk: Desk, profile: str) -> str:
    """Return what the newest ranking reports about learning."""
    return ranking(desk.warehouse, date.fromisoformat(LATEST), profile).header["learning"] or ""
