"""The commands search, fetch-paper, analyze and interpret: readable for people, JSON for programs, errors in a line."""

import json
from collections.abc import Callable

import pytest

from tests.in_process import run_command
from tests.interpreting.outside import NOWHERE, Outside, pdf_answer, titled
from tests.interpreting.test_analysis import READING, reads
from tests.invented_pdfs import pdf
from tests.loopback_llm import loopback_llm, says
from tests.loopback_semantic_scholar import scholar_paper

ID = "2601.05001"
Command = Callable[..., tuple[str, str, int]]


@pytest.fixture
def command(world: Outside, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`command("arxiv", "search", "caches", NAME="value")`: what it printed on stdout and stderr, and its exit code."""
    world.arxiv.papers.append(
        titled(1, "Folding Caches", authors=("Ada Example", "Ben Sample", "Cleo Third", "Dan Four"))
    )
    world.arxiv.pdfs[f"{ID}v1"] = pdf_answer(pdf("We fold the cache once."))
    world.scholar.papers.append(scholar_paper(5, arxiv=ID, title="Folding Caches"))

    def run(*arguments: str, **environ: str) -> tuple[str, str, int]:
        for name in ("LLM_PROVIDER", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in {**world.clients().environ, "COLUMNS": "150", **environ}.items():
            monkeypatch.setenv(name, value)
        return run_command(*arguments, monkeypatch=monkeypatch, capsys=capsys)

    return run


def test_a_search_is_a_table_or_json(command: Command) -> None:
    out, _, code = command("arxiv", "search", "folding caches", "--category", "cs.CL")
    assert code == 0
    assert ID in out and "Folding Caches" in out and "Cleo Third and 1 more" in out
    out, _, code = command("arxiv", "search", "folding caches", "--json")
    assert json.loads(out)["papers"][0]["citation_count"] == 5


def test_a_source_that_fails_is_a_note_below_the_table(command: Command) -> None:
    out, _, code = command("arxiv", "search", "caches", PAPER_ASSETS_SEMANTIC_SCHOLAR_URL=NOWHERE)
    assert code == 0
    assert out.splitlines()[-1].startswith("note: Semantic Scholar: ")


def test_a_search_without_network_points_to_the_search_of_stored_papers(command: Command) -> None:
    nowhere = {"PAPER_ASSETS_ARXIV_URL": NOWHERE, "PAPER_ASSETS_SEMANTIC_SCHOLAR_URL": NOWHERE}
    _, err, code = command("arxiv", "search", "caches", **nowhere)
    assert code == 1
    assert "cannot be reached" in err and err.strip().endswith("`paper-assets find` searches the stored papers")


@pytest.mark.parametrize("name", [ID, f"arXiv:{ID}v1", f"https://arxiv.org/abs/{ID}", "folding caches"])
def test_a_paper_is_fetched_by_any_of_its_names(command: Command, name: str) -> None:
    out, _, code = command("arxiv", "show", name)
    assert code == 0
    assert out.splitlines()[0] == "Folding Caches" and "We fold the cache once." in out
    assert f"read it at: https://arxiv.org/abs/{ID}" in out


def test_a_paper_whose_text_cannot_be_reached_is_shown_with_its_abstract(command: Command) -> None:
    out, _, code = command("arxiv", "show", ID, PAPER_ASSETS_ARXIV_PDF_URL=f"{NOWHERE}/pdf")
    assert code == 0 and "We invent the matter" in out
    assert out.splitlines()[-1].startswith("note: its text was not fetched: ")


def test_interpreting_shows_paper_and_analysis(command: Command) -> None:
    with loopback_llm(reads) as server:
        out, _, code = command("arxiv", "interpret", ID, **server.environ("openai"))
    assert code == 0
    assert out.index("Folding Caches") < out.index("The cache is folded.") < out.index("Methodology")


def test_interpreting_without_a_model_shows_the_paper_and_why(command: Command) -> None:
    out, _, code = command("arxiv", "interpret", ID)
    assert code == 0
    assert "We invent the matter" in out and "not analyzed (LLM_CONFIG_ERROR): " in out and "OPENAI_API_KEY" in out
    out, _, _ = command("arxiv", "interpret", ID, "--json")
    assert json.loads(out)["analysis"] is None


def test_no_control_sequence_in_a_foreign_text_reaches_the_terminal(command: Command, world: Outside) -> None:
    evil = {**READING, "summary": "The cache\x1b is\x9b folded\u202e."}
    with loopback_llm(
        lambda request: says(evil) if "summary" in (request.schema or {})["properties"] else reads(request)
    ) as server:
        out, _, _ = command("arxiv", "interpret", ID, **server.environ("openai"))
    assert "The cache is folded." in out and not set(out) & set("\x1b\x9b\u202e")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["arxiv", "search", ""], "query"),
        (["arxiv", "search", "x", "--max-results", "1000"], "max_results"),
        (["arxiv", "show", "2501.1"], "2501.1"),
        (["arxiv", "show", "../x"], "../x"),
        (["arxiv", "show", "2601.99999"], "2601.99999"),
        (["arxiv", "show", "file:///etc/passwd"], "https"),
        (["arxiv", "show", "unheard of entirely"], "unheard"),
        (["arxiv", "interpret", ID, "--type", "poem"], "analysis_type"),
    ],
)
def test_a_mistake_is_one_line_and_a_code(command: Command, arguments: list[str], message: str) -> None:
    out, err, code = command(*arguments)
    assert code == 1
    assert out.strip() == ""
    [line] = [line for line in err.splitlines() if line.strip()]
    assert line.startswith("error: ") and message in line
