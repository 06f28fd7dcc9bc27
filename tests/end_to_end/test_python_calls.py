"""The calls from Python, as a user's own file makes them: in a folder of its own, with only the package."""

import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import paper_assets
from paper_assets.errors import InvalidInput
from tests.desk import Desk
from tests.loopback_llm import loopback_llm
from tests.rewriting.scripted import Play

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


def run(desk: Desk, code: str, **more: str) -> str:
    """The output of a user's file."""
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    environ = {**kept, **desk.environment, "PYTHONPATH": str(Path(paper_assets.__file__).parents[1]), **more}
    (desk.folder / "mine.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "mine.py"], cwd=desk.folder, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def values(desk: Desk, *lines: str) -> list[Any]:
    """What each expression is, after `from paper_assets import *`."""
    code = "import json\nfrom paper_assets import *\n" + "".join(
        f"print(json.dumps({line}, default=str))\n" if not line.startswith("!") else f"{line[1:]}\n" for line in lines
    )
    return [json.loads(line) for line in run(desk, code).splitlines()]


def test_the_examples_of_the_page_run(tmp_path: Path) -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL))
    assert code.count("from paper_assets import") == 3
    desk = Desk(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "profile.json").write_text('{"interests": {"primary": ["graph learning"]}}', "utf-8")
    with loopback_llm(Play(60, 88)) as server:
        shown = run(
            desk,
            f"{code}\nprint(kept, examples, [side['party'] for side in sides], documents)",
            **server.environ("ollama"),
        )
    lines = shown.splitlines()
    assert lines[0].startswith("1 Graph learning ")
    assert lines[1] == "None []"  # no error, no warning
    assert lines[2:5] == ["1 60 FAIL", "2 88 WAIT_CONFIRM", "2 88 PASS"]
    assert lines[5] == "accepted"
    assert "'refused': None" in lines[6] and "BestPractice(" in lines[6] and "['cs.LG', 'cs.CL'] []" in lines[6]


def test_a_call_with_papers_alone_ranks_them_and_says_that_there_is_no_profile(tmp_path: Path) -> None:
    papers = [
        {"arxiv_id": f"2603.0000{at}", "title": f"Paper {at}", "abstract": "A.", "authors": [], "published_date": day}
        for at, day in enumerate(("2026-03-01", "2026-03-03", "2026-02-01", "2020-01-01", "2026-03-02", "2025-12-01"))
    ]
    result, wrong, none, unknown = values(
        Desk(tmp_path),
        f"!papers = {papers}",
        "rank_and_filter_papers(papers, as_of='2026-03-04')",
        "rank_and_filter_papers([{'title': 'T'}])",
        "rank_and_filter_papers([])",
        "rank_and_filter_papers(papers, purpose='leisure')",
    )
    assert [paper["paper_id"] for paper in result["ranked_papers"]] == [f"2603.0000{at}" for at in (1, 4, 0, 2, 5)]
    assert (result["summary"]["profile_used"], result["summary"]["output_count"]) == (None, 5)
    assert str(tmp_path / "config" / "profile.json") in result["summary"]["warnings"][0]
    assert Path(result["output_path"]).is_file()
    assert (wrong["success"], wrong["ranked_papers"]) == (False, []) and "paper_id" in wrong["error"]
    assert (none["success"], none["error"], none["ranked_papers"]) == (True, None, [])
    assert unknown["error"].startswith("purpose: ")


DEFAULTS = {  # of the original document
    "top_k": 5,
    "profile_path": "config/profile.json",
    "purpose": "general",
    "ranking_mode": "balanced",
    "include_contrastive": False,
    "contrastive_type": "method",
    "history_path": "history/read_papers.json",
    "local_pdf_dir": "pdf/",
    "enable_llm_verification": True,
}


def test_the_call_has_the_arguments_and_defaults_of_the_original_document_in_its_order() -> None:
    taken = inspect.signature(paper_assets.rank_and_filter_papers).parameters
    assert list(taken)[: 1 + len(DEFAULTS)] == ["papers", *DEFAULTS]
    assert {name: taken[name].default for name in DEFAULTS} == DEFAULTS
    assert taken["papers"].default is inspect.Parameter.empty


def test_what_is_given_comes_before_the_profile_and_that_before_the_default(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.profile("own", {"interests": {"primary": ["graphs"]}, "ranking": {"top_k": 1, "threshold": 0}})
    papers = [{"paper_id": f"2603.0000{at}", "title": f"T {at}", "abstract": "A.", "authors": []} for at in range(7)]
    counts = values(
        desk,
        f"!papers = {papers}",
        "rank_and_filter_papers(papers, profile_path='own', save=False)['summary']['output_count']",
        "rank_and_filter_papers(papers, 5, 'own', save=False)['summary']['output_count']",
        "rank_and_filter_papers(papers, profile_path=None, save=False)['summary']['output_count']",
    )
    assert counts == [1, 5, 5]


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ("retrieve_balanced({})", "the plan: rewritten_question"),
        ("retrieve_standard({'rewritten_question': 'x', 'filter': {}})", "the plan: filter: unknown key"),
        ("retrieve_best_practices('x', 'child')", "target_level must be one of public, student, expert, got 'child'"),
        ("retrieve_best_practices('x', 'public', 0)", "n must be 1 or more"),
        ("archive_best_practice({'score': 99})", "result: text must be a text"),
        (
            "archive_best_practice({'text': 'a', 'original_text': 'b', 'score': 101, 'target_level': 'public'})",
            "result: score must be a whole number from 0 to 100, got '101'",
        ),
        ("generate_with_critic_loop(' ', 'public')", "original_text is empty"),
    ],
)
def test_a_wrong_argument_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, fault: str) -> None:
    for name, value in Desk(tmp_path).environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidInput) as raised:
        eval(call, {name: getattr(paper_assets, name) for name in paper_assets.__all__})
    assert fault in str(raised.value) and "\n" not in str(raised.value)


def test_importing_a_call_loads_neither_stores_nor_models(tmp_path: Path) -> None:
    code = "import sys, paper_assets; print(sorted(m for m in sys.modules if m.startswith('paper_assets')))\n"
    code += "from paper_assets import rank_and_filter_papers\n"
    code += "print([m for m in ('duckdb', 'numpy', 'pyarrow', 'chromadb', 'torch', 'dagster') if m in sys.modules])"
    assert run(Desk(tmp_path), code) == "['paper_assets']\n[]\n"
