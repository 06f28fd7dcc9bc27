"""`run` ranks the day and then embeds everything that was imported, including papers outside all partitions."""

import json
from datetime import date
from pathlib import Path

from paper_assets.stores.documents import retrievals_of
from paper_assets.stores.embeddings import unembedded_count
from tests.desk import GRAPHS, Desk, paper, week

MODEL = "all-MiniLM-L6-v2"


def test_run_embeds_all_that_was_imported_and_answers_the_questions_with_it(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    folder = desk.profile("graphs", GRAPHS).parent
    question = {
        "rewritten_question": "traffic forecasting",
        "filters": {"sides": ["cs.LG"]},
        "parameters": {"k_per_side": 9},
    }
    (folder / "questions.json").write_text(json.dumps([question]), encoding="utf-8")
    older = [
        paper(901, "2026-01-20", "traffic forecasting by counting lorries"),
        paper(902, "2019-05-05", "traffic forecasting before it was fashionable"),
        {**paper(903, "2026-01-01", "traffic forecasting at an unknown time"), "published": None},
    ]
    desk.run("import", str(desk.papers("papers.jsonl", [*week(("2026-03-02",)), *older])))
    desk.run("run")
    assert unembedded_count(desk.warehouse, None, None, model=MODEL) == 0
    answers = retrievals_of(desk.warehouse, date(2026, 3, 2), "graphs")
    [side] = answers[0]["sides"]
    assert side["unembedded"] == 0 and "no vector yet" not in " ".join(side["warnings"])
    assert {"2603.00901", "2603.00902"} <= {each["doc_id"] for each in side["documents"]}
    assert "1 more would match but have no date" in " ".join(side["warnings"])
