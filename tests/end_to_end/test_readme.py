"""What the README shows is what the demo prints: the papers in their order, and the sum of the first score."""

import re
from pathlib import Path

from tests.desk import Desk

ROOT = Path(__file__).parent.parent.parent


def listed(text: str) -> list[str]:
    return re.findall(r"\b2603\.9\d{4}\b", text)


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = readme.split("<!-- demo output -->")[1].split("<!-- /demo output -->")[0]
    printed = Desk(tmp_path).run("demo", PAPER_ASSETS_PROFILES=str(ROOT / "profiles"))
    for place in (0, 5):  # two lists of five; near the end scores may tie within what processors differ by
        assert listed(printed)[place] == listed(shown)[place]
        assert set(listed(printed)[place : place + 5]) == set(listed(shown)[place : place + 5])
    assert sums(printed) == sums(shown)


def sums(text: str) -> list[list[str]]:
    """The words of the first line of arithmetic of each list."""
    return [re.findall(r"[a-zA-Z]+", line) for line in re.findall(r"^1\. 0\.\d+ = (.*)$", text, re.MULTILINE)]
