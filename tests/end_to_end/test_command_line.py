"""The command line in real processes with real stores and the real model."""

import gzip
import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from paper_assets.interfaces.cli.run import show_ranking
from paper_assets.interfaces.cli.terminal import print_table
from paper_assets.paper import paper_from_mapping
from paper_assets.stores.documents import retrievals_of
from paper_assets.stores.embeddings import unembedded_count
from tests.desk import GRAPHS, SPEECH, Desk, imported_desk, paper, week
from tests.loopback import Answer
from tests.loopback_arxiv import loopback_arxiv
from tests.loopback_semantic_scholar import loopback_semantic_scholar

DAYS = ("2026-03-02", "2026-03-03", "2026-03-04")

# Prints how often a command opens the warehouse and what it loads, after its own output.
_OPENINGS = """
import json, sys
opened = 0
from paper_assets.interfaces.cli.app import app
from importlib.abc import MetaPathFinder
from importlib.machinery import PathFinder
class Watch(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name == "paper_assets.stores.warehouse":
            sys.meta_path.remove(self)
            import duckdb
            def counting(opens):
                def counted(*file, **more):
                    global opened
                    opened += bool(file)
                    return opens(*file, **more)
                return counted
            duckdb.connect = counting(duckdb.connect)
            spec = PathFinder.find_spec(name, path)
            load = spec.loader.exec_module
            def load_and_count(module):
                load(module)
                module.attached = counting(module.attached)
                module.attached_to_write = counting(module.attached_to_write)
            spec.loader.exec_module = load_and_count
            return spec
        return None
sys.meta_path.insert(0, Watch())
app(sys.argv[1:], standalone_mode=False)
print(json.dumps({"openings": opened, "dagster": "dagster" in sys.modules}))
"""
# Runs the commands one after the other and prints which of them loaded something unnecessary.
_LOADED = """
import json, sys
from paper_assets.errors import PaperAssetsError
from paper_assets.interfaces.cli.app import app
heavy = ("dagster", "pandas", "torch", "sklearn", "chromadb", "transformers", "sentence_transformers", "matplotlib")
found, seen, failed = {}, set(), []
for command in json.loads(sys.argv[1]):
    try:
        app(command, standalone_mode=False)
    except PaperAssetsError:
        failed.append(command[0])
    new = {name for name in heavy if name in sys.modules} - seen
    if new:
        found[" ".join(command)] = sorted(new)
    seen |= new
print(json.dumps({"loaded": found, "failed": failed}))
"""


def observed(desk: Desk, code: str, *arguments: str) -> str:
    """Return the output of a Python program about our commands on this desk."""
    environ = {**os.environ, **desk.environment}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=desk.folder, env=environ, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk with three imported days and two profiles, ranked for the newest day."""
    desk = imported_desk(tmp_path_factory.mktemp("desk"), DAYS)
    desk.run("run")
    return desk


def test_each_profile_gets_the_papers_about_its_interest_first(desk: Desk) -> None:
    shown = {ranking["profile"]: ranking["papers"] for ranking in json.loads(desk.run("run", "--json"))}
    assert shown["graphs"] and all("Traffic" in entry["title"] for entry in shown["graphs"])
    assert shown["speech"] and all("Speech" in entry["title"] for entry in shown["speech"])


def test_running_again_changes_nothing_and_reports_it(desk: Desk) -> None:
    before = desk.state()
    assert "nothing has changed" in desk.run("run")
    assert desk.state() == before


def test_a_run_with_nothing_to_do_opens_the_store_once_and_does_not_import_the_graph(desk: Desk) -> None:
    desk.run("run")
    seen = json.loads(observed(desk, _OPENINGS, "run").splitlines()[-1])
    assert seen == {"openings": 1, "dagster": False}


READING = (
    ["run"],
    ["status"],
    ["status", "--json"],
    ["explain", "graphs", "2603.00103"],
    ["changed", "graphs"],  # fails because there is no earlier day
    ["ratings", "list", "graphs"],
    ["export", "exported"],
    ["cite", "graphs"],
    ["archive", "list"],
    ["retrieve", "plan.json"],
    ["rank", "few.json", "--profile-path", "profiles/graphs", "--no-save"],
)


def test_what_only_reads_loads_neither_the_graph_nor_frames_nor_a_framework(desk: Desk) -> None:
    desk.run("run")
    desk.papers("few.json", []).write_text(json.dumps(week(DAYS)), encoding="utf-8")
    plan = {"rewritten_question": "traffic forecasting"}
    desk.papers("plan.json", []).write_text(json.dumps(plan), encoding="utf-8")
    modules = observed(desk, _LOADED, json.dumps(READING)).splitlines()[-1]
    assert json.loads(modules) == {"loaded": {}, "failed": ["changed"]}, "a command of the key has loaded the modules"


def test_importing_the_same_file_again_changes_nothing(desk: Desk) -> None:
    before = desk.state()
    counts = json.loads(desk.run("import", str(desk.folder / "papers.jsonl"), "--json"))
    assert (counts["added"], counts["updated"], counts["unchanged"]) == (0, 0, 18)
    assert desk.state() == before


def test_explain_gives_the_reason_the_numbers_on_request_and_what_was_missing(desk: Desk) -> None:
    listed, numbered = (desk.run("explain", "graphs", "2603.00103v1", *more) for more in ((), ("--numbers",)))
    assert "Place " in listed and "on topic" not in listed
    assert "The match is " in numbered and "on topic" in numbered
    left_out = json.loads(desk.run("explain", "graphs", "2603.00104", "--json"))
    assert not left_out["score"]["shown"]
    assert "Not in the list: it is possible, and all 2 places went to better matches." in left_out["why"]
    assert "there is no profile 'graph'" in desk.refused("explain", "graph", "2603.00103")


def test_today_shows_the_stored_lists_and_computes_none(desk: Desk) -> None:
    ranked = {made["profile"]: made for made in json.loads(desk.run("run", "--json"))}
    empty = desk.profile("unranked", GRAPHS)
    try:
        shown = json.loads(desk.run("today", "--json"))
        assert "profile 'unranked' has no ranking yet" in desk.refused("today", "unranked")
        empty.write_text("{", encoding="utf-8")
        assert "not valid JSON" in desk.refused("today", "unranked")
    finally:
        empty.unlink()
    assert {stored["profile"] for stored in shown} == set(ranked)
    for stored in shown:
        assert [paper["paper_id"] for paper in stored["papers"]] == [
            paper["paper_id"] for paper in ranked[stored["profile"]]["papers"]
        ]
    text = desk.run("today", "graphs", "--why")
    assert "2603.00103" in text and "in title and abstract." in text and "nothing has changed" not in text
    for command in ("today", "explain", "changed", "cite"):
        paper = ["2603.00103"] if command == "explain" else []
        refused = desk.refused(command, "graphs", *paper, "--day", "2026-02-02")
        assert "no ranking for profile 'graphs' on 2026-02-02; the newest is of" in refused
        assert "not fetched yet: `paper-assets fetch --day 2026-02-02`, then `paper-assets run" in refused


def test_changed_lists_the_papers_that_entered_and_why(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))))
    desk.run("run", "--since", DAYS[1])
    changes = json.loads(desk.run("changed", "graphs", "--json"))
    assert {move["reason"] for move in changes["left"]} == {"it was in your list on an earlier day"}
    assert "first of that day" in desk.refused("changed", "graphs", "--edit")
    desk.profile("graphs", {**GRAPHS, "interests": SPEECH["interests"]})
    desk.run("run", "--since", DAYS[1])
    edited = desk.run("changed", "graphs", "--edit")
    assert "entered: – → 1" in edited and "the profile was edited" in edited


def test_status_counts_what_is_stored_and_names_a_broken_profile(desk: Desk) -> None:
    broken = desk.profile("broken", '{"interests": {"primary": "graphs"}}')
    try:
        status = json.loads(desk.run("status", "--json"))
    finally:
        broken.unlink()
    assert (status["papers"], status["days"]) == (18, 3)
    assert "interests.primary" in status["profiles"]["broken"]


def test_rank_prints_the_result_and_keeps_it(desk: Desk) -> None:
    file = desk.folder / "asked.json"
    file.write_text(json.dumps(week(DAYS[:1])), encoding="utf-8")
    options = ("--profile-path", str(desk.folder / "profiles" / "speech"), "--top-k", "1", "--as-of", "2026-03-04")
    result = json.loads(desk.run("rank", str(file), *options))
    assert [ranked["paper_id"] for ranked in result["ranked_papers"]] == ["2603.00104"]
    assert json.loads(Path(result["output_path"]).read_text("utf-8")) == result
    Path(result["output_path"]).unlink()


def test_days_ranked_in_a_row_do_not_repeat_a_paper(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    desk.run("import", str(desk.papers("papers.jsonl", week(DAYS))))
    desk.run("run", "--since", DAYS[0])
    lists = [set(listed[1:]) for listed in desk.state()["files"]]
    assert len(lists) == 3
    assert len(set().union(*lists)) == sum(map(len, lists))
    explanation = json.loads(desk.run("explain", "graphs", "2603.00103", "--json"))
    assert explanation["candidate"]["reason"] == "ALREADY_SHOWN"


def test_a_day_is_fetched_from_arxiv_and_ranked_and_a_refusal_of_semantic_scholar_is_reported(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("graphs", GRAPHS)
    with (
        loopback_arxiv(map(paper_from_mapping, week(DAYS[:1]))) as arxiv,
        loopback_semantic_scholar(script=[Answer(status=429)] * 4) as scholar,
    ):
        sources = {
            "PAPER_ASSETS_ARXIV_URL": arxiv.url,
            "PAPER_ASSETS_SEMANTIC_SCHOLAR": "on",
            "PAPER_ASSETS_SEMANTIC_SCHOLAR_URL": scholar.url,
        }
        counts, warned = desk.heard("fetch", "--day", DAYS[0], "--json", PAPER_ASSETS_REQUEST_INTERVAL="0", **sources)
    assert json.loads(counts) == {DAYS[0]: 6}
    assert "warning: Semantic Scholar did not answer: 127.0.0.1 asks us to slow down (HTTP 429)" in warned
    assert "2603.00103" in desk.run("run")


def bad_files(folder: Path) -> dict[str, Path]:
    good = json.dumps(paper(1, "2026-03-02", "anything"))
    contents: dict[str, bytes] = {
        "empty.jsonl": b"",
        "page.jsonl": b"<!DOCTYPE html><html><body>Sign in</body></html>",
        "cut.jsonl": (good + "\n" + good[:60]).encode(),
        "cut.jsonl.gz": gzip.compress((good + "\n").encode() * 50)[:-20],
        "noise.bin": bytes(range(256)) * 40,
        "odd_id.jsonl": json.dumps({**json.loads(good), "paper_id": ""}).encode(),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return {**{name: folder / name for name in contents}, "absent.jsonl": folder / "absent.jsonl", "folder": folder}


@pytest.mark.parametrize("name", ["cut.jsonl", "cut.jsonl.gz", "page.jsonl", "folder"])
def test_a_bad_file_is_named_in_one_line_and_nothing_is_stored(desk: Desk, tmp_path: Path, name: str) -> None:
    before, file = desk.state(), bad_files(tmp_path)[name]
    assert file.name in desk.refused("import", str(file))
    assert desk.state() == before


def test_bad_options_and_unknown_names_end_in_one_line(desk: Desk) -> None:
    assert "--as-of" in desk.refused("run", "--as-of", "yesterday")
    assert "nobody" in desk.refused("run", "--profile", "nobody")
    assert "2501.1" in desk.refused("explain", "graphs", "2501.1")
    for command in (
        ("find", "in:graph roads"),
        ("find", "is:worth", "--profile", "graph"),
        ("ask", "--profile", "graph", "why"),
    ):
        assert "there is no profile 'graph'" in desk.refused(*command)
    assert "PAPER_ASSETS_FIRST_DAY" in desk.refused("status", PAPER_ASSETS_FIRST_DAY="soon")


def test_a_home_that_cannot_be_written_is_named(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    line = desk.refused("import", str(desk.folder / "papers.jsonl"), PAPER_ASSETS_HOME=str(tmp_path / "file" / "data"))
    assert str(tmp_path / "file") in line


def test_a_database_held_by_another_process_is_named_with_its_holder(desk: Desk) -> None:
    with desk.warehouse.writing():
        line = desk.refused("status", PAPER_ASSETS_STORE_DEADLINE="0.2")
    assert str(os.getpid()) in line


def test_a_title_longer_than_the_table_stays_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    title = f"{'a-long-name-of-a-profile-' * 4}, 2026-03-02: 0 of 625 candidates"
    print_table(title, ["#", "paper"], [])
    assert capsys.readouterr().out.splitlines() == [title]
    print_table(title, ["#", "paper"], [(1, "Rust Belt Graphs")])
    shown = capsys.readouterr().out
    assert shown.splitlines()[0] == title
    assert "Rust Belt Graphs" in shown


@pytest.mark.parametrize(
    "head", ["A quiet day: no paper is about your interests", "Nothing to read today"], ids=["quiet", "nothing"]
)
def test_an_empty_list_is_followed_by_what_was_filtered_out(capsys: pytest.CaptureFixture[str], head: str) -> None:
    empty = {
        "profile": "ann",
        "day": "2026-03-12",
        "headline": head,
        "is_probability": True,
        "window": "5 new papers. 4 filtered out: too old.",
        **{name: [] for name in ("papers", "more_likely", "by_people", "warnings", "rewrites")},
        **{name: f"{name}.html" for name in ("file", "digest")},
    }
    show_ranking(empty, with_why=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [f"ann, 2026-03-12: {head}", "5 new papers. 4 filtered out: too old"]


def test_a_refused_fetch_is_one_line_and_no_traceback_is_logged(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    with loopback_arxiv(script=[Answer(status=429, headers={"Retry-After": "3600"})]) as arxiv:
        line = desk.refused("fetch", "--day", "2026-03-02", PAPER_ASSETS_ARXIV_URL=arxiv.url)
    assert "try again after" in line
    assert not (tmp_path / "data" / "errors.log").exists()


# A back-catalogue: `run` ranks the day, then embeds everything that was imported, also papers outside all partitions


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
    desk.run("rate", "graphs", "2603.00902", "worth")
    desk.run("run")
    assert json.loads(desk.run("status", "--json"))["current"] == {"graphs": "current"}
    assert unembedded_count(desk.warehouse, None, None, model=MODEL) == 0
    answers = retrievals_of(desk.warehouse, date(2026, 3, 2), "graphs")
    [side] = answers[0]["sides"]
    assert side["unembedded"] == 0 and "no vector yet" not in " ".join(side["warnings"])
    assert {"2603.00901", "2603.00902"} <= {each["doc_id"] for each in side["documents"]}
    assert "1 more would match but have no date" in " ".join(side["warnings"])
