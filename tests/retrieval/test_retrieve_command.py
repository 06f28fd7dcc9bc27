"""`paper-assets retrieve`: a plan from a file, answers as tables or JSON, faults in one line."""

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from paper_assets.errors import InvalidInput, InvalidProfile, PaperAssetsError
from paper_assets.interfaces.cli.ask import retrieve
from tests.retrieval.invented_corpus import corpus_of, paper, passage

PLAN = {
    "rewritten_question": "faithful answers",
    "filters": {"sides": ["cs.CL", "cs.XX"]},
    "data_type": ["abstract", "fulltext"],
    "parameters": {"k": 3},
}


class Desk:
    """A corpus with one private passage, and the command in this process."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys
        notes = passage("ann/0", "pdf:ann/notes", "My notes on faithful answers.", access_level="private", owner="ann")
        corpus_of(folder, [paper(at, day=1 + at) for at in range(4)], {"ann": [notes]})
        for name in ("ann", "bob"):
            (folder / "profiles" / name).mkdir(parents=True)
            content = {"interests": {"primary": ["x"]}, "feed": {"categories": ["math.ST"]}}
            (folder / "profiles" / name / "profile.json").write_text(json.dumps(content), encoding="utf-8")

    def ask(self, plan: Any, **options: Any) -> str:
        """What the command prints."""
        file = self.folder / "plan.json"
        file.write_text(plan if isinstance(plan, str) else json.dumps(plan), encoding="utf-8")
        given = {"profile": None, "as_of": None, "standard": False, "verbose": False, "as_json": False, **options}
        try:
            retrieve(file, **given)
        finally:
            self.printed = self.capsys.readouterr()
        return self.printed.out

    def found(self, plan: Any, **options: Any) -> dict[str | None, list[str]]:
        answer = json.loads(self.ask(plan, as_json=True, **options))
        return {side["side"]: [document["doc_id"] for document in side["documents"]] for side in answer["sides"]}


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Desk:
    monkeypatch.setenv("PAPER_ASSETS_HOME", str(tmp_path))
    monkeypatch.setenv("PAPER_ASSETS_PROFILES", str(tmp_path / "profiles"))
    monkeypatch.setenv("COLUMNS", "200")
    return Desk(tmp_path, capsys)


def test_a_table_has_the_documents_of_each_side_and_the_reason_for_those_that_are_missing(desk: Desk) -> None:
    shown = desk.ask(PLAN)
    assert "faithful answers" in shown and "https://arxiv.org/abs/2603.00000" in shown
    assert "0 of 2: none with primary_category cs.XX" in shown
    assert desk.printed.err == ""


def test_private_documents_come_only_to_the_profile_that_owns_them(desk: Desk) -> None:
    assert "ann/0" in desk.found(PLAN, profile="ann")["cs.CL"]
    for asking in (None, "bob"):
        assert "ann/0" not in desk.found(PLAN, profile=asking)["cs.CL"]
        assert "ann/0" not in desk.found(PLAN, profile=asking, standard=True)[None]
    assert "ann/0" in desk.found(PLAN, profile="ann", standard=True)[None]


def test_nothing_of_after_the_day_is_found(desk: Desk) -> None:
    plan = {**PLAN, "data_type": ["abstract"], "parameters": {"k_per_side": 9}}
    assert len(desk.found(plan, as_of=date(2026, 3, 2))["cs.CL"]) == 2


def test_a_plan_without_sides_takes_the_profiles_categories_or_those_that_are_fetched(desk: Desk) -> None:
    plan = {"rewritten_question": "x"}
    assert list(desk.found(plan, profile="bob")) == ["math.ST"]
    assert list(desk.found(plan)) == ["cs.CL", "cs.LG"]


def test_a_file_of_questions_is_answered_one_after_the_other_and_logged_where_asked(desk: Desk) -> None:
    answers = json.loads(desk.ask([PLAN, PLAN], as_json=True, verbose=True))
    assert len(answers) == 2 and answers[0] == answers[1]
    assert sum("meet the filter" in line for line in desk.printed.err.splitlines()) == 4


@pytest.mark.parametrize(
    ("plan", "options", "message"),
    [
        ('{"rewritten', {}, "plan.json: not valid JSON"),
        ("[]", {}, "contains no plan"),
        (PLAN, {"profile": "../profiles/ann"}, "--profile must be the name of a folder"),
        ({**PLAN, "k": 1}, {}, "plan.json: k: unknown key"),
        ([PLAN, {}], {}, "plan.json: entry 2: rewritten_question"),
        (PLAN, {"profile": "nobody"}, "nobody/profile.json does not exist"),
        (
            {**PLAN, "filters": {"sides": [{"name": "a", "where": {"x": 1}}]}},
            {},
            "nothing could be searched: 'x' is no",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    desk: Desk, plan: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises((InvalidInput, InvalidProfile, PaperAssetsError)) as fault:
        desk.ask(plan, **options)
    assert message in str(fault.value) and "\n" not in str(fault.value)
    assert desk.printed.err == ""
