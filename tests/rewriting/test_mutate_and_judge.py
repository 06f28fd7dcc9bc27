"""Test the benchmark of gate and critic with a scripted critic of known quality (B9)."""

import json
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from benchmarks import mutate_and_judge
from benchmarks.mutate_and_judge import auc
from tests.loopback_llm import Request, Step, fault, loopback_llm, says
from tests.rewriting.scripted import inside, verdict, writing
from tests.rewriting.test_gate import GOOD, LONG


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.jsonl"
    row = {"paper_id": "2603.00077", "title": LONG.title, "original": LONG.abstract, "level": "public", "rewrite": GOOD}
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    return file


Bench = Callable[..., tuple[int, str]]


@pytest.fixture
def bench(pairs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    def run(*options: str, environ: dict[str, str] | None = None) -> tuple[int, str]:
        for name in ("LLM_PROVIDER", "LLM_CRITIC_PROVIDER", "LLM_CRITIC_MODEL", "OPENAI_API_KEY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in (environ or {}).items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(sys, "argv", ["mutate_and_judge", "--pairs", str(pairs), *options])
        return mutate_and_judge.main(), capsys.readouterr().out

    return run


def scored(text: str) -> int:
    """The scripted critic: all good rewrites 80, of the wrong ones a third above that."""
    if text == GOOD:
        return 80
    return 95 if int(sha256(text.encode()).hexdigest(), 16) % 3 == 0 else 40


def test_the_auc_of_a_scripted_critic_is_the_expected_one_and_its_cost_is_estimated_before(bench: Bench) -> None:
    given: list[int] = []

    def answer(request: Request) -> Step:
        text = inside("rewrite", request.turns[0]) or ""
        if text != GOOD:
            given.append(scored(text))
        return says(verdict(scored(text)))

    with loopback_llm(answer) as server:
        _, out = bench("--each", "1", environ=dict(server.environ("ollama")))
    lines = out.splitlines()
    assert lines[0].startswith("critic: ") and f"{len(given) + 1} questions, about" in lines[0], lines[0]
    assert lines[1] == "1 good rewrites, of which the gate holds back 0 and has questions about 0"
    columns = next(line for line in lines if line.startswith("all")).split()
    expected = auc([80], given)
    assert 0.3 < expected < 0.9, "a critic of middling quality"
    assert float(columns[4]) == pytest.approx(expected, abs=0.0006)


def test_no_more_texts_are_shown_to_the_critic_than_allowed(bench: Bench) -> None:
    with loopback_llm(lambda request: says(verdict(80))) as server:
        _, out = bench("--each", "1", "--most-calls", "9", environ=dict(server.environ("ollama")))
        assert len(writing(server)) <= 9
    assert "9 questions" in out.splitlines()[0]


def test_with_plan_no_request_is_sent(bench: Bench) -> None:
    with loopback_llm() as server:
        code, out = bench("--plan", environ=dict(server.environ("ollama")))
        assert (code, len(out.splitlines()), writing(server)) == (0, 1, [])


def test_a_critic_that_fails_is_asked_no_more_and_the_gate_is_measured_all_the_same(bench: Bench) -> None:
    with loopback_llm(lambda request: fault(400)) as server:
        _, out = bench("--each", "1", environ=dict(server.environ("ollama")))
        assert len(writing(server)) == 1
    assert "critic: asked no more" in out and "a refusal" in out


def test_without_a_model_the_report_names_the_critic_as_not_measured(bench: Bench) -> None:
    _, out = bench("--each", "1")
    assert out.startswith("critic: not measured, no model configured\n")
    held = [line for line in out.splitlines() if line.startswith(("a refusal", "nothing visible", "swapped name"))]
    assert len(held) == 3 and all("100.0%" in line for line in held), out


def test_the_rewrites_beside_the_bench_are_of_both_halves_and_of_every_level() -> None:
    rows = [json.loads(line) for line in mutate_and_judge._REWRITES.read_text(encoding="utf-8").splitlines()]
    assert {mutate_and_judge.half_of(row["paper_id"]) for row in rows} == {0, 1}
    assert {row["level"] for row in rows} == {"public", "student", "expert"}
