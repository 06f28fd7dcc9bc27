"""What the README shows is what the demo prints: the papers in their order, the sum of the first score, the digests."""

import re
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.defs.assets import ASSETS
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
    assert scores(printed) == pytest.approx(scores(shown), abs=0.003)  # as much as processors differ by
    assert digests(printed) == digests(shown)
    pages = [tmp_path / "data" / "output" / "digests" / name for name in digests(printed)]
    for place, page in zip((0, 5), pages, strict=True):
        assert set(listed(printed)[place : place + 5]) <= set(listed(page.read_text(encoding="utf-8")))


def test_every_asset_of_the_graph_stands_in_the_picture_of_the_lineage() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = readme.split("```")[1]
    names = {key.to_user_string() for asset in ASSETS for key in keys_of(asset)}
    assert {name for name in names if name not in picture} == set()


def digests(text: str) -> list[str]:
    """The pages that the demo ends each list with, within the folder of the digests."""
    return re.findall(r"^digest: .*/digests/(.*)$", text, re.MULTILINE)


def keys_of(asset: dg.AssetsDefinition | dg.AssetSpec) -> list[dg.AssetKey]:
    return [asset.key] if isinstance(asset, dg.AssetSpec) else list(asset.keys)


def scores(text: str) -> list[float]:
    """The scores in the tables, in their order."""
    return [float(found) for found in re.findall(r"^│ \d │ (0\.\d+) │", text, re.MULTILINE)]


def sums(text: str) -> list[list[str]]:
    """The words of the first line of arithmetic of each list."""
    return [re.findall(r"[a-zA-Z]+", line) for line in re.findall(r"^1\. 0\.\d+ = (.*)$", text, re.MULTILINE)]
