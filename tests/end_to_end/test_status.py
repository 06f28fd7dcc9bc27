"""`status` reports the same from its stamp, from that of a run, or from a full check."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from paper_assets.stores.stamps import forget_stamps
from tests.desk import GRAPHS, SPEECH, Desk, week

# Prints whether `status` rendered the pages in order to compare them.
_MADE_PAGES = """
import os, sys
from paper_assets.interfaces.cli.app import app
app(["status", "--json"], standalone_mode=False)
sys.stdout.flush()
print("paper_assets.digests.html" in sys.modules, file=sys.stderr, flush=True)
os._exit(0)  # as the command does, before libraries report what is left
"""


def ranked_without_a_stamp(folder: Path) -> Desk:
    desk = Desk(folder)
    desk.profile("graphs", GRAPHS)
    desk.run("import", str(desk.papers("papers.jsonl", week(["2026-03-02"]))))
    desk.run("run")
    forget_stamps(desk.warehouse.path)
    return desk


def test_status_says_the_same_with_the_stamp_of_a_run_and_without_and_sees_an_edit(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    desk.profile("speech", SPEECH)
    desk.run("import", str(desk.papers("papers.jsonl", week(["2026-03-02"]))))
    desk.run("run")

    def state_shown() -> Any:
        return json.loads(desk.run("status", "--json"))

    stamped = state_shown()
    assert stamped["current"] == {"graphs": "current", "speech": "current"}
    forget_stamps(desk.warehouse.path)
    assert state_shown() == stamped
    assert state_shown() == stamped
    forget_stamps(desk.warehouse.path)
    desk.run("run")
    desk.profile("speech", {**SPEECH, "interests": {"primary": ["calibration of tree ensembles"]}})
    edited = state_shown()["current"]
    assert edited["graphs"] == "current"
    assert "gatekeeper" in edited["speech"] and "`paper-assets run`" in edited["speech"]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in desk.run("status").splitlines()]
    assert [row for row in rows if row[0:1] in (["graphs"], ["speech"])] == [
        ["graphs", "1", "2026-03-02", "current"],
        ["speech", "1", "2026-03-02", "ranking out of date"],
    ]


def test_without_a_run_status_checks_once_and_again_after_a_list_or_page_was_touched(tmp_path: Path) -> None:
    desk = ranked_without_a_stamp(tmp_path)

    def looked() -> tuple[str, bool]:
        done = subprocess.run(
            [sys.executable, "-c", _MADE_PAGES],
            cwd=desk.folder,
            env={**os.environ, **desk.environment},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["current"]["graphs"], done.stderr.splitlines()[-1] == "True"

    assert [looked(), looked()] == [("current", True), ("current", False)]
    (page,) = (tmp_path / "data" / "output" / "digests" / "graphs").glob("*.html")
    page.unlink()
    late, _ = looked()  # a missing page is noticed without making any
    assert "reading_digests" in late
    assert looked() == (late, False)
    desk.run("run")
    assert looked()[0] == "current"


def test_without_a_profile_it_shows_what_is_stored_and_how_to_make_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    output = desk.run("status")
    assert "none yet; after making a profile, `paper-assets start --days 7` fetches and ranks the last week" in output
    assert "none yet; `paper-assets profile new` makes one" in output
    assert "–" not in output
    desk.profile("graphs", GRAPHS)
    assert "none yet; `paper-assets start --days 7`" in desk.run("status")


def test_ratings_that_are_not_learned_yet_make_the_newest_list_out_of_date(tmp_path: Path) -> None:
    desk = ranked_without_a_stamp(tmp_path)
    assert json.loads(desk.run("status", "--json"))["current"]["graphs"] == "current"
    with desk.warehouse.reading() as connection:
        [(rated,)] = connection.execute("select paper_id from rankings order by rank limit 1").fetchall()
    desk.run("rate", "graphs", rated, "worth")
    late = json.loads(desk.run("status", "--json"))["current"]["graphs"]
    assert late.startswith("out of date: preference_model") and "`paper-assets run`" in late
    desk.run("run")
    forget_stamps(desk.warehouse.path)
    assert json.loads(desk.run("status", "--json"))["current"]["graphs"] == "current"


def test_a_kept_status_notices_each_page_that_is_changed_and_a_feed_or_list_that_is_removed(tmp_path: Path) -> None:
    desk = ranked_without_a_stamp(tmp_path)

    def state_shown() -> str:
        found: str = json.loads(desk.run("status", "--json"))["current"]["graphs"]
        return found

    output = tmp_path / "data" / "output"
    page, markdown, feed = (
        next((output / "digests" / "graphs").glob(name)) for name in ("*.html", "*.md", "feed.atom")
    )
    (ranking,) = (output / "rankings" / "graphs").glob("*.json")
    for file, step in (
        (page, "reading_digests"),
        (markdown, "reading_digests"),
        (feed, "reading_digests"),
        (ranking, "gatekeeper"),
    ):
        content = file.read_bytes()
        assert state_shown() == "current"
        if file in (feed, ranking):  # a feed is written again with a page, so an edit of it is not noticed
            file.unlink()
        else:
            file.write_bytes(content + b" ")
        assert step in state_shown(), file.name
        file.write_bytes(content)
    assert state_shown() == "current"
