"""The documentation shows what the demo prints: papers in order, levels, the reason for each place, the digests."""

import re
import sys
from pathlib import Path

import dagster as dg
import pytest

from paper_assets.defs.assets import ASSETS
from paper_assets.interfaces.cli.graph import next_commands
from paper_assets.interfaces.cli.terminal import program_as_called
from tests.desk import Desk
from tests.example_profiles import copied

ROOT = Path(__file__).parent.parent.parent


def listed(text: str) -> list[str]:
    return re.findall(r"\b2603\.9\d{4}\b", text)


def test_getting_started_shows_what_the_demo_prints(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    shown = page.split("<!-- demo output -->")[1].split("<!-- /demo output -->")[0]
    copied(tmp_path / "profiles")
    output = Desk(tmp_path).run("demo")
    assert len(levels(output)) == len(reasons(output)) == 10  # two lists; the page shows the first
    printed = output.split("\n\n")[0]
    assert headline(printed) == headline(shown)
    assert listed(printed)[0] == listed(shown)[0]  # lower ones may be in another order on another processor
    assert sorted(listed(printed)) == sorted(listed(shown))
    assert levels(printed) == levels(shown)
    assert sorted(reasons(printed)) == sorted(reasons(shown)) and len(reasons(printed)) == 5
    assert digests(printed) == digests(shown)
    for one_list, name in zip(output.split("\n\n"), digests(output), strict=False):
        digest = (tmp_path / "data" / "output" / "digests" / name).read_text(encoding="utf-8")
        assert len(set(listed(one_list))) > 5 and set(listed(one_list)) <= set(listed(digest))


@pytest.mark.parametrize(
    ("called", "found_by_name", "shown"),
    [
        (".venv/bin/paper-assets", False, ".venv/bin/paper-assets"),  # as `make demo`
        (".venv/bin/paper-assets", True, "paper-assets"),
        ("-c", False, "paper-assets"),
    ],
)
def test_the_demo_ends_with_commands_as_it_was_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, called: str, found_by_name: bool, shown: str
) -> None:
    program = tmp_path / ".venv" / "bin" / "paper-assets"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [called, "demo"])
    monkeypatch.setenv("PATH", f"{program.parent}" if found_by_name else f"{tmp_path}")
    commands = next_commands(program_as_called())
    assert re.findall(r"^  (\S+) (\S+)", commands, re.MULTILINE) == [
        (shown, "start"),
        (shown, "explain"),
        (shown, "up"),
    ]
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    assert (commands in page) == (shown == ".venv/bin/paper-assets")


def test_the_specification_lists_every_asset_and_no_other() -> None:
    specification = (ROOT / "docs" / "specification.md").read_text(encoding="utf-8")
    names = {key.to_user_string() for asset in ASSETS for key in keys_of(asset)}
    assert set(re.findall(r"^\| `(\w+)` \|", specification, re.MULTILINE)) == names


def digests(text: str) -> list[str]:
    """Return the digest named after each list, relative to the folder of the digests."""
    return re.findall(r"^digest: .*/digests/(.*)$", text, re.MULTILINE)


def keys_of(asset: dg.AssetsDefinition | dg.AssetSpec) -> list[dg.AssetKey]:
    return [asset.key] if isinstance(asset, dg.AssetSpec) else list(asset.keys)


def levels(text: str) -> list[str]:
    """Return the levels in the tables, in order."""
    return re.findall(r"^│ \d+ │ (very likely|likely|possible) ", text, re.MULTILINE)


def headline(text: str) -> str:
    """Return the line above the first table."""
    return next(line for line in text.splitlines() if " for you" in line)


def reasons(text: str) -> list[str]:
    """Return the sentence that explains each place, without its number."""
    return re.findall(r"^\d+\. (.*)$", text, re.MULTILINE)
