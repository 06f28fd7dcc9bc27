"""`paper-assets archive` in real processes with real stores and a language model on loopback."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from typer.testing import CliRunner

from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.cli.app import app
from paper_assets.stores.best_practices import BestPractice, add_missing, counts
from tests.desk import Desk, paper
from tests.loopback_llm import fault, loopback_llm
from tests.rewriting.invented_archive import practice
from tests.rewriting.scripted import Play

V1, V2 = "optim_best_practices_v1", "optim_best_practices_v2"


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Store two papers, and six best practices of others."""
    desk = Desk(tmp_path_factory.mktemp("desk"))
    records = [paper(number, "2026-03-02", text) for number, text in ((101, "counting sheep"), (102, "resting cows"))]
    desk.run("import", str(desk.papers("papers.jsonl", records)))
    add_missing(desk.warehouse, [kept(number) for number in range(6)], collection=V1)
    return desk


def kept(number: int) -> BestPractice:
    """Return a best practice that is similar to both papers."""
    return practice(number, original_text=f"We study counting sheep and resting cows in subject{number}.")


def listed(desk: Desk, *options: str, **environ: str) -> set[str]:
    return {each["id"] for each in json.loads(desk.run("archive", "list", "--json", *options, **environ))}


def test_list_filters_and_show_prints_everything(desk: Desk) -> None:
    assert len(listed(desk)) == 6
    assert listed(desk, "--level", "public", "--min-score", "98") == {practice(3).id}
    assert listed(desk, "--keyword", "subject4") == {practice(4).id}
    shown = json.loads(desk.run("archive", "show", practice(4).id, "--json"))
    assert (shown["original_text"], shown["made_at"]) == (kept(4).original_text, "2026-03-02T09:34:00+00:00")
    assert kept(4).original_text in desk.run("archive", "show", practice(4).id)
    assert "6 best practices" in desk.run("archive", "list")


def test_the_list_shows_whole_ids_in_a_narrow_terminal_and_show_takes_what_it_shows(desk: Desk) -> None:
    shown = desk.run("archive", "list", COLUMNS="80")
    beginning = practice(4).id[:8]
    assert beginning in shown
    assert json.loads(desk.run("archive", "show", beginning, "--json"))["id"] == practice(4).id
    assert "6 best practices have ids that begin with '0000'" in desk.refused("archive", "show", "0000")
    assert "6 best practices have ids that begin with '0000'" in desk.refused("archive", "remove", "0000")


def test_migrate_carries_over_and_remove_takes_the_beginning_of_one_id(desk: Desk) -> None:
    result = json.loads(desk.run("archive", "migrate", "--from", V1, "--to", V2, "--json"))
    assert result == {"copied": 6, "embedded": 6, "left_out": []}
    assert "copied 0, embedded 0" in desk.run("archive", "migrate", "--from", V1, "--to", V2)
    v2 = {"PAPER_ASSETS_ARCHIVE": V2}
    assert "6 best practices have ids that" in desk.refused("archive", "remove", "0000000", **v2)
    assert "no best practice '0000009'" in desk.refused("archive", "remove", "0000009", **v2)
    assert desk.run("archive", "remove", practice(4).id[:8], **v2) == f"removed {practice(4).id}\n"
    assert counts(desk.warehouse) == {V1: 6, V2: 5}
    assert listed(desk, **v2) == listed(desk) - {practice(4).id}


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["show", "nothing"], "no best practice 'nothing'"),
        (["list", "--level", "child"], "--level must be one of public, student, expert, got 'child'"),
        (["migrate", "--from", V1, "--to", "../x"], "--to must be a name that ends in its version"),
        (["migrate", "--from", "lost_v0", "--to", V2], "has no collection lost_v0"),
        (["migrate", "--from", V1, "--to", V2, "--chroma", "nowhere"], "--chroma nowhere is not a folder"),
        (["compare", "2603.00101"], "the LLM is not configured: set OPENAI_API_KEY"),
        (["compare", "2603.77777"], "paper 2603.77777 is not stored"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_what_cannot_be_done_is_one_line(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, arguments: list[str], line: str
) -> None:
    for name, value in {**desk.environment, "LLM_PROVIDER": "openai", "OPENAI_API_KEY": ""}.items():
        monkeypatch.setenv(name, value)
    refused = CliRunner().invoke(app, ["archive", *arguments]).exception
    assert isinstance(refused, PaperAssetsError)
    assert line in str(refused) and "\n" not in str(refused)


def test_compare_rewrites_both_ways_and_keeps_nothing(desk: Desk, tmp_path: Path) -> None:
    with loopback_llm(Play(80, 96)) as server:
        environment: Mapping[str, str] = server.environ("ollama")
        comparison = json.loads(desk.run("archive", "compare", "2603.00101", "2603.00102", "--json", **environment))
        asked = [request.turns[0] for request in server.requests]
    shown = sum("<examples " in question for question in asked)
    with_examples, without = comparison["with_examples"], comparison["without_examples"]
    assert with_examples["examples"] > 0 == without["examples"]
    assert shown == 1 + 4, "the warm-up and every attempt of one side, and none of the other"
    assert with_examples["papers"] == without["papers"] == 2
    assert with_examples["score"] == without["score"] == 96
    assert with_examples["attempts"] == without["attempts"] == 2
    assert with_examples["input_tokens"] == without["input_tokens"] == 12 * 100, "the warm-up is not counted"
    assert comparison["differences"]["score"] == {"mean": 0.0, "interval": [0.0, 0.0]}
    assert set(comparison["differences"]) == {"score", "attempts", "tokens", "seconds"}
    assert desk.warehouse.rows("select count(*) from rewrite_items") == [(0,)]
    assert counts(desk.warehouse)[V1] == 6


@pytest.mark.parametrize(
    ("failing", "at", "papers"), [(10, "paper 2603.00102", 1), (6, "paper 2603.00101", None), (3, "the warm-up", None)]
)
def test_a_comparison_that_fails_half_way_shows_its_results_so_far_and_names_the_paper(
    desk: Desk, failing: int, at: str, papers: int | None
) -> None:
    with loopback_llm(Play(96, steps={failing: fault(400, "odd")})) as server:
        process = desk.start(
            "archive", "compare", "2603.00101", "2603.00102", "--json", **dict(server.environ("ollama"))
        )
        out, err = process.communicate(timeout=600)
    assert process.returncode == 1
    assert f"error: the comparison ended early at {at}: " in err and "Traceback" not in err
    record = json.loads(out) if papers else None
    assert (record and [record[f"with{side}_examples"]["papers"] for side in ("", "out")]) == (
        papers and [papers, papers]
    )
    assert papers is None or (record or {})["differences"]["score"]["interval"] is None, "one paper has no interval"
    assert papers or out == ""
