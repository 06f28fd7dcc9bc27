"""Control and bidirectional characters in texts of other people reach no output."""

import json
import re
from typing import Any

import pytest

from paper_assets.interfaces.cli.terminal import print_json, print_table, say, warn
from paper_assets.interfaces.mcp.calls import bounded_answer
from paper_assets.interfaces.mcp.error_answers import Outgoing
from paper_assets.interpreting.analysis import Reading
from paper_assets.models.llm import read_answer
from tests.desk import GRAPHS, Desk, paper
from tests.mcp.raw_host import raw_host

# A terminal link, a reversed title, colours by one-byte controls, a line hidden by an isolate, a backspace.
STEERING = "\x1b]8;;http://a.example\x07here\x1b]8;;\x07 \u202egnp.exe\u202c \x9b31m red \u2066x\u2069 \x08 \x85"
STEERS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
ESCAPED = re.compile(r"\\u(?:001b|202e|009b|2066|0007)|\\x1b|&#27;|&#8238;", re.IGNORECASE)
SUBJECT = "traffic forecasting on road networks"


def steering_in(text: str) -> list[str]:
    return [*STEERS.findall(text), *ESCAPED.findall(text)]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Desk:
    """Return a desk with one ranked paper whose texts all contain control characters."""
    folder = tmp_path_factory.mktemp("steering")
    desk = Desk(folder / "desk")
    desk.folder.mkdir()
    desk.profile("traffic", GRAPHS)
    record = paper(
        1,
        "2026-03-02",
        SUBJECT,
        title=f"{SUBJECT} {STEERING}",
        abstract=f"We study {SUBJECT}. {STEERING} It works.",
        authors=[f"Ada {STEERING}"],
        comment=STEERING,
        journal_ref=STEERING,
    )
    (folder / "papers.jsonl").write_text(json.dumps(record), encoding="utf-8")
    (folder / "nul.jsonl").write_text(json.dumps(record | {"title": "Holds a \0"}), encoding="utf-8")
    assert "NUL" in desk.refused("import", str(folder / "nul.jsonl"))
    desk.run("import", str(folder / "papers.jsonl"))
    desk.run("run", "--as-of", "2026-03-02")
    return desk


def test_control_sequences_in_a_paper_reach_no_store_page_graph_terminal_or_answer(desk: Desk) -> None:
    outputs: list[str] = []
    for command in (["explain", "traffic", "2603.00001"], ["explain", "traffic", "2603.00001", "--json"]):
        outputs.append(desk.run(*command))
    with raw_host(desk) as host:
        host.handshake()
        ranked = host.call("todays_ranking", profile="traffic")
        assert ranked["papers"][0]["title"].startswith(SUBJECT)
        outputs += [json.dumps(ranked), host.call("read_digest", profile="traffic")["text"]]
        outputs.append(host.call("export_citations", profile="traffic")["text"])
    assert [text for text in outputs if steering_in(text)] == []
    kept = [file for file in desk.folder.rglob("*") if file.is_file()]
    assert any(file.suffix == ".db" for file in kept) and any(file.suffix == ".html" for file in kept)
    raw = ("\x1b]8;", "\u202e", "\u2066", "\\u001b]8", "\\u202e", "\\u2066")
    found = [(file.name, mark) for file in kept for mark in raw if mark.encode() in file.read_bytes()]
    assert found == []


def test_what_a_run_writes_is_for_its_user_alone(desk: Desk) -> None:
    written = [place for name in ("data", "dagster_home") for place in (desk.folder / name).rglob("*")]
    assert {"warehouse.duckdb", "chroma.sqlite3", "feed.atom", "index.db"} <= {place.name for place in written}
    open_to_others = [place for place in written if place.stat().st_mode & 0o077]
    assert [str(place.relative_to(desk.folder)) for place in open_to_others] == []
    assert [(desk.folder / name).stat().st_mode & 0o777 for name in ("data", "dagster_home")] == [0o700, 0o700]


@pytest.mark.parametrize("show", [say, warn, lambda text: print_table(text, [text[:3]], [[text]]), print_json])
def test_no_control_sequence_reaches_the_terminal(show: Any, capsys: pytest.CaptureFixture[str]) -> None:
    show(f"old {STEERING} text")
    shown = "".join(capsys.readouterr())
    assert "gnp.exe" in shown
    assert STEERS.findall(shown) == []


def test_no_control_sequence_of_a_model_or_of_an_mcp_answer_is_passed_on() -> None:
    reading = json.dumps(dict.fromkeys(Reading.model_fields, STEERING))
    assert steering_in(read_answer(reading, Reading).model_dump_json()) == []
    answer = bounded_answer({"title": STEERING, "list": [STEERING]}, most=1_000, secrets=Outgoing({}, {}))
    assert steering_in(answer.content[0].text) == []
