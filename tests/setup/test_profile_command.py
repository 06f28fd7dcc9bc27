"""Test `paper-assets profile`: with options, with own words in a real terminal, and its errors in one line."""

import json
import os
import pty
import re
import select
import subprocess
import time
from pathlib import Path

import pytest

from paper_assets.profile import load_profile, understood
from tests.desk import COMMAND, PATIENCE, Desk
from tests.loopback_llm import loopback_llm, says


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_profile_from_options_is_listed_and_every_change_of_it_is_reported(desk: Desk) -> None:
    output = desk.run(
        "profile", "new", "speech", "--interest", "speech recognition", "--paper", "arxiv.org/abs/2501.12345v1"
    )
    assert "It follows eess.AS Audio and Speech Processing" in output
    assert desk.content("speech")["interests"] == {"primary": ["speech recognition"], "papers": ["2501.12345"]}
    desk.run("profile", "edit", "speech", "--interest", "speaker diarization", "--category", "cs.sd")
    assert "cs.SD Sound" in desk.run("profile", "show", "speech")
    assert [each["name"] for each in json.loads(desk.run("profile", "list", "--json"))] == ["speech"]
    assert "profile restore speech" in desk.run("profile", "remove", "speech", "--yes")
    assert "speech" in desk.run("profile", "list", "--removed")
    desk.run("profile", "restore", "speech")
    assert "speaker diarization" in desk.run("profile", "list")
    interests = ["word " * 200, *(f"topic {number}" for number in range(40))]
    desk.profile("many", json.dumps({"interests": {"primary": interests}}))
    listed = desk.run("profile", "list")
    assert "topic 8" in listed and "31 more" in listed and len(listed) < 2_500


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["new"], "describe the profile: "),
        (["new", "--interest", "x"], "name the profile"),
        (["new", "Speech Work", "--interest", "x"], "for example speech-work"),
        (["new", "a", "--paper", "that one"], "--paper: 'that one' names no paper: it has no arXiv id or DOI"),
        (["new", "a", "--interest", "x", "--category", "cs.Q"], "'cs.Q' is not a category of arXiv"),
        (["new", "a", "--library", "nowhere.bib"], "nowhere.bib"),
        (["show", "a"], "there is no profile 'a'"),
        (["edit", "a"], "there is no profile 'a'"),
        (["remove", "a"], "there is no profile 'a'"),
        (["restore", "a"], "there is no removed profile 'a'"),
    ],
)
def test_an_invalid_change_is_refused_in_one_line(desk: Desk, arguments: list[str], line: str) -> None:
    assert line in desk.refused("profile", *arguments)
    assert not (desk.folder / "profiles" / "a").exists()


def test_what_was_not_understood_is_named_and_the_rest_makes_a_profile(desk: Desk) -> None:
    process = desk.start("profile", "new", "odd", "--interest", "asdf qwer", "--paper", "2501.12345 zzzz")
    out, err = process.communicate()
    assert process.returncode == 0 and "It follows" not in out
    assert "note: not understood beside the ids of papers: “zzzz”" in err
    assert "note: no stored paper and no arXiv category is near “asdf qwer”; try other words" in err
    assert desk.content("odd") == {"interests": {"primary": ["asdf qwer"], "papers": ["2501.12345"]}}


def test_own_words_at_a_terminal_make_a_profile(desk: Desk) -> None:
    dialogue = [("In your own words", "I work on robot grasping.\nNot interested in surgery.\n"), ("Name", "My Robots")]
    output = in_terminal(desk, dialogue, "profile", "new")
    assert "[robot-grasping]" in output and "Profile my-robots is in" in output and "Traceback" not in output
    made = desk.content("my-robots")
    assert made["interests"] == {"primary": ["robot grasping"], "avoid": ["surgery"]}
    assert "cs.RO" in made["feed"]["categories"]  # type: ignore[index]


def in_terminal(desk: Desk, dialogue: list[tuple[str, str]], *arguments: str) -> str:
    """Run a command in a pseudo-terminal and answer its questions in order; return all that it printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=desk.folder,
        env={**os.environ, **desk.environment, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    output, place = "", 0
    ends = time.monotonic() + PATIENCE

    def read() -> bool:
        nonlocal output
        if not select.select([ours], [], [], 1)[0]:
            return time.monotonic() < ends
        try:
            more = os.read(ours, 65536)
        except OSError:  # Linux: the other side is closed
            return False
        output += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", more.decode("utf-8", "replace"))
        return bool(more)

    try:
        for question, answer in dialogue:
            while (at := output.find(question, place)) < 0:
                assert read(), f"no {question!r} after:\n{output}"
            place = at + len(question)
            os.write(ours, f"{answer}\n".encode())
        while read():
            pass
        assert process.wait(timeout=PATIENCE) == 0, output
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
    return output


def test_a_text_in_ones_own_words_is_shown_as_it_is_understood(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    text = tmp_path / "wish.txt"
    text.write_text("Sparse tensors (Number Theory), not robotics. Papers by Ada Lov.", encoding="utf-8")
    reading = json.loads(desk.run("profile", "read", f"{text}", "--json"))
    assert reading["interests"]["primary"] == ["Sparse tensors"] and reading["interests"]["avoid"] == ["robotics"]
    assert (reading["preferred_authors"], reading["categories"]) == (["Ada Lov"], ["math.NT"])
    assert "math.NT Number Theory" in desk.run("profile", "read", f"{text}")
    assert "wish" in desk.refused("profile", "read", f"{text}.missing")


def test_a_profile_is_made_from_a_text_with_exclusions_and_names_of_categories(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    text = tmp_path / "wish.txt"
    text.write_text("Sparse tensors. Not relevant: robotics. Less interested in surveys. Papers by Ada Lov.", "utf-8")
    options = [
        "--avoid",
        "games",
        "--exclude-keyword",
        "blog*",
        "--exclude-category",
        "primary:computer vision and pattern recognition",
    ]
    desk.run("profile", "new", "a", "--statement", f"{text}", "--category", "Number Theory", *options)
    content = desk.content("a")
    assert content["interests"] == {"primary": ["Sparse tensors"], "avoid": ["games", "robotics"], "less": ["surveys"]}
    assert content["statement"] == text.read_text("utf-8") and content["preferred_authors"] == ["Ada Lov"]
    assert content["feed"] == {"categories": ["math.NT"], "exclude_categories": ["primary:cs.CV"]}
    assert content["keywords"] == {"exclude": {"hard": ["blog*"]}}
    desk.run("profile", "edit", "a", "--interest", "graphs, not molecules")
    assert desk.content("a")["interests"]["avoid"] == ["games", "robotics", "molecules"]
    shown = desk.run("profile", "show", "a")
    assert "robotics" in shown and "less interested" in shown


def test_keywords_alone_make_a_profile(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.run("profile", "new", "a", "--keyword", "SLAM", "--category", "cs.RO")
    assert desk.content("a")["keywords"] == {"must_include": ["SLAM"]}


def test_a_statement_in_another_language_is_translated_by_the_model_or_named_in_one_line(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    text = tmp_path / "wish.txt"
    text.write_text("疎行列と量子化に興味があります。音楽生成には興味がありません。", "utf-8")
    desk.run("profile", "new", "plain", "--statement", f"{text}", "--category", "cs.LG")
    (note,) = understood(load_profile(desk.folder / "profiles" / "plain").content)[1]
    assert note.startswith("“疎行列”, “量子化” are in Japanese") and note.endswith("write them in English")
    answer = {"primary": ["sparse matrices", "quantization"], "avoid": ["music generation"]}
    empty: dict[str, list[str]] = {"secondary": [], "exploratory": [], "less": [], "authors": []}
    with loopback_llm(says(empty | answer)) as llm:
        environ = {**llm.environ("openai"), "OPENAI_MODEL": "m"}
        _, said = desk.heard("profile", "new", "b", "--statement", f"{text}", "--category", "cs.LG", **environ)
        desk.run("profile", "edit", "plain", "--statement", f"{text}", "--model", **environ)
        assert len(llm.requests) == 1, "the second answer is the stored one"
    desk.run("profile", "new", "c", "--statement", f"{text}", "--category", "cs.LG", **environ)
    assert desk.content("c")["interests"] == answer, "the stored answer needs no server"
    text.write_text("疎行列に興味があります。", "utf-8")
    _, said_of_fault = desk.heard("profile", "new", "d", "--statement", f"{text}", "--category", "cs.LG", **environ)
    assert "did not translate" in said_of_fault and "疎行列" in f"{desk.content('d')}"
    content = desk.content("b")
    assert content["interests"] == answer and f"{content['statement']}".startswith("疎行列と量子化")
    assert "in Japanese" not in said and "the model sparse matrices" in said
    assert "quantization" in f"{desk.content('plain')}"
