"""`python -m benchmarks.evaluate`: tables for people, JSON for programs, errors in one line."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.evaluate import main
from paper_assets.profile import RankingOptions
from tests.evaluation.judged import write_lists, write_papers

Command = Callable[..., tuple[str, str, int]]


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`command("--lists", ...)`: what `evaluate` printed on stdout and stderr, and its exit code."""
    monkeypatch.setenv("PAPER_ASSETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "250")

    def run(*arguments: object) -> tuple[str, str, int]:
        monkeypatch.setattr(sys, "argv", ["evaluate", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
        printed = capsys.readouterr()
        return printed.out, printed.err, code

    return run


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    return write_lists(tmp_path / "lists")


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    return write_papers(tmp_path / "papers.jsonl")


def test_lists_are_a_table_or_json_with_the_same_figures(command: Command, lists: Path, papers: Path) -> None:
    asked = ("--lists", lists, "--papers", papers, "--mode", "hybrid", "--mode", "bm25", "--against", "bm25")
    out, _, code = command(*asked)
    assert code == 0
    for phrase in ("lists: 2 profiles, 2026-03-12", "minus bm25, paired by profile", "hybrid, purpose own, by profile"):
        assert phrase in out
    record = json.loads(command(*asked, "--json")[0])
    assert (record["set"], record["as_of"], record["unknown"], record["against"]) == ("lists", "2026-03-12", 0, "bm25")
    hybrid, bm25 = record["lists"]
    for metric in ("precision@5", "precision@10", "ndcg@10", "on_topic"):
        mean = hybrid["together"][metric]["mean"]
        values = [profile[metric] for profile in hybrid["profiles"].values() if profile[metric] is not None]
        assert mean == pytest.approx(sum(values) / len(values))
        assert f"{mean:.3f} [" in out
    assert hybrid["profiles"]["frogs"]["papers"][0].keys() == {"paper_id", "grade", "shown", "relevance"}
    (pair,) = record["comparisons"]
    difference = hybrid["together"]["ndcg@10"]["mean"] - bm25["together"]["ndcg@10"]["mean"]
    assert pair["ndcg@10"]["difference"] == pytest.approx(difference)


def test_the_default_mode_beats_every_baseline_on_the_shipped_set(command: Command) -> None:
    record = json.loads(command("--json")[0])
    ndcg = {name: figures[0]["mean"] for name, figures in record["rankers"].items()}
    assert record["unknown"] == 0, "a judgement of a document that the set lacks"
    default = ndcg[RankingOptions().interest_mode]
    assert all(default > ndcg[baseline] for baseline in ("bm25", "tfidf", "random", "newest"))


def test_two_modes_are_compared_on_the_shipped_set(command: Command) -> None:
    out, _, code = command("--mode", "hybrid", "--against", "random", "--json")
    record = json.loads(out)
    ndcg = {name: figures[0]["mean"] for name, figures in record["rankers"].items()}
    assert code == 0
    assert ndcg["hybrid"] > 0.7 > 0.3 > ndcg["random"]
    assert record["comparison"][0]["difference"] == pytest.approx(ndcg["hybrid"] - ndcg["random"])
    assert "no ranker 'magic'" in command("--mode", "magic")[1]


def test_the_same_command_gives_the_same_answer(command: Command, lists: Path, papers: Path) -> None:
    asked = ("--lists", lists, "--papers", papers, "--json")
    answers = [command(*asked)[::2] for _ in range(2)]  # without the progress of a slow run
    assert answers[0] == answers[1]


def test_each_profile_can_be_judged_by_coefficients_of_the_others(command: Command, lists: Path, papers: Path) -> None:
    asked = ("--lists", lists, "--papers", papers, "--mode", "hybrid", "--leave-one-out", "--json")
    out, _, code = command(*asked)
    assert code == 0 and json.loads(out)["held_out"] is True


def test_days_are_replayed_as_a_table_or_as_json_with_every_list(command: Command, lists: Path, papers: Path) -> None:
    asked = ("--replay", "--lists", lists, "--papers", papers, "--days", 3, "--k", 2)
    out, _, code = command(*asked)
    assert code == 0
    assert "lists: 3 days up to 2026-03-12, 2 papers a day, none twice" in out and "together" in out
    record = json.loads(command(*asked, "--json")[0])
    assert (record["days"], record["k"], record["last"]) == (3, 2, "2026-03-12")
    for profile in record["profiles"]:
        assert profile["shown"] == len(profile["lists"])
        assert {line["day"] for line in profile["lists"]} <= {"2026-03-10", "2026-03-11", "2026-03-12"}


def test_papers_that_were_judged_but_are_not_there_are_counted(command: Command, tmp_path: Path, papers: Path) -> None:
    grades = {"frogs": {"2603.00001": 3, "2603.77777": 2}, "stones": {"2603.00003": 3}}
    lists = write_lists(tmp_path / "more", grades=grades)
    out, _, code = command("--lists", lists, "--papers", papers, "--mode", "tfidf")
    assert code == 0 and "left out: 1 judged papers that are not known here" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--lists", "LISTS"), "name the file that holds them with --papers"),
        (("--lists", "LISTS", "--papers", "nowhere.jsonl"), "nowhere.jsonl does not exist"),
        (("--lists", "nowhere"), "nowhere is not a folder with profiles.json and grades.json"),
        (("--lists", "LISTS", "--papers", "PAPERS", "--mode", "magic"), "no list 'magic'"),
        (("--lists", "LISTS", "--papers", "PAPERS", "--purpose", "fun"), "no purpose 'fun'"),
        (("--lists", "LISTS", "--papers", "PAPERS", "--mode", "tfidf", "--against", "bm25"), "--against bm25"),
        (("--lists", "LISTS", "--papers", "PAPERS", "--as-of", "soon"), "--as-of must be a day"),
        (("--lists", "LISTS", "--papers", "PAPERS", "--k", "0"), "--k must be a whole number from 1"),
        (("--lists", "LISTS", "--days", "3"), "--days belongs to --replay"),
        (("--papers", "PAPERS"), "--papers belongs to --lists DIR or --replay"),
        (("--leave-one-out",), "--leave-one-out belongs to --lists"),
        (("LISTS", "--replay"), "a labelled set is judged without"),
        (("--replay", "--purpose", "general"), "--replay takes the profiles as they are"),
        (("--replay", "--mode", "magic"), "interest_mode"),
        (("--replay", "--days", "0"), "--days must be a whole number from 1"),
    ],
)
def test_a_mistake_ends_in_one_line_that_says_what_to_do(
    arguments: tuple[str, ...], message: str, command: Command, lists: Path, papers: Path
) -> None:
    places = {"LISTS": str(lists), "PAPERS": str(papers)}
    _, err, code = command(*(places.get(argument, argument) for argument in arguments))
    assert code == 1
    lines = [line for line in err.splitlines() if line.strip()]
    assert len(lines) == 1 and lines[0].startswith("error: ") and message in lines[0]


def test_broken_papers_end_in_one_line_too(command: Command, lists: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"paper_id": "2603.00001"', encoding="utf-8")
    _, err, code = command("--lists", lists, "--papers", broken)
    assert code == 1 and err.startswith("error: ") and "broken.jsonl:1" in err and err.count("\n") == 1
