"""`status` tells what is current, whether from the stamp of the last run or by looking at everything."""

import json
from pathlib import Path
from typing import Any

from paper_assets.stores.run_stamp import forget_stamp
from tests.desk import GRAPHS, SPEECH, Desk, week


def test_status_says_the_same_with_the_stamp_of_a_run_and_without_and_sees_an_edit(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    desk.profile("speech", SPEECH)
    desk.run("import", str(desk.papers("papers.jsonl", week(["2026-03-02"]))))
    desk.run("run")

    def told() -> Any:
        return json.loads(desk.run("status", "--json"))

    stamped = told()
    assert stamped["current"] == {"graphs": "current", "speech": "current"}
    forget_stamp(desk.warehouse.path)
    assert told() == stamped
    desk.run("run")
    desk.profile("speech", {**SPEECH, "interests": {"primary": ["calibration of tree ensembles"]}})
    edited = told()["current"]
    assert edited["graphs"] == "current"
    assert "gatekeeper" in edited["speech"] and "`paper-assets run`" in edited["speech"]
