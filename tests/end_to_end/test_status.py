"""`status` shows what is stored and names what is out of date."""

import json
from pathlib import Path
from typing import Any

from tests.desk import GRAPHS, SPEECH, Desk, week


def ranked(folder: Path, **profiles: Any) -> Desk:
    desk = Desk(folder)
    for name, content in profiles.items():
        desk.profile(name, content)
    desk.run("import", str(desk.papers("papers.jsonl", week(["2026-03-02"]))))
    desk.run("run")
    return desk


def current(desk: Desk) -> dict[str, str]:
    found: dict[str, str] = json.loads(desk.run("status", "--json"))["current"]
    return found


def test_status_names_what_an_edit_made_out_of_date(tmp_path: Path) -> None:
    desk = ranked(tmp_path, graphs=GRAPHS, speech=SPEECH)
    assert current(desk) == {"graphs": "current", "speech": "current"}
    desk.profile("speech", {**SPEECH, "interests": {"primary": ["calibration of tree ensembles"]}})
    edited = current(desk)
    assert edited["graphs"] == "current"
    assert "gatekeeper" in edited["speech"] and "`paper-assets run`" in edited["speech"]
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in desk.run("status").splitlines()]
    assert [row for row in rows if row[0:1] in (["graphs"], ["speech"])] == [
        ["graphs", "1", "2026-03-02", "current"],
        ["speech", "1", "2026-03-02", "ranking out of date"],
    ]


def test_without_a_profile_it_shows_what_is_stored_and_how_to_make_one(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    output = desk.run("status")
    assert "none yet; after making a profile, `paper-assets start --days 7` fetches and ranks the last week" in output
    assert "none yet; `paper-assets profile new` makes one" in output
    assert "–" not in output
    desk.profile("graphs", GRAPHS)
    assert "none yet; `paper-assets start --days 7`" in desk.run("status")


def test_ratings_that_are_not_learned_yet_make_the_newest_list_out_of_date(tmp_path: Path) -> None:
    desk = ranked(tmp_path, graphs=GRAPHS)
    assert current(desk)["graphs"] == "current"
    [(rated,)] = desk.warehouse.rows("select paper_id from rankings order by rank limit 1")
    desk.run("rate", "graphs", rated, "worth")
    late = current(desk)["graphs"]
    assert late.startswith("out of date: preference_model") and "`paper-assets run`" in late
    desk.run("run")
    assert current(desk)["graphs"] == "current"


def test_each_page_that_is_changed_and_a_feed_or_list_that_is_removed_is_noticed(tmp_path: Path) -> None:
    desk = ranked(tmp_path, graphs=GRAPHS)
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
        assert current(desk)["graphs"] == "current"
        if file in (feed, ranking):  # a feed is written again with a page, so an edit of it is not noticed
            file.unlink()
        else:
            file.write_bytes(content + b" ")
        assert step in current(desk)["graphs"], file.name
        file.write_bytes(content)
    assert current(desk)["graphs"] == "current"
