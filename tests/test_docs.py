"""What the documents name exists: files, commands with their options, modules, settings, variables."""

import ast
import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer

from paper_assets.interfaces.cli.app import app

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = {path.name for path in [*ROOT.iterdir(), *PACKAGE.iterdir()] if path.is_dir()} - {"data", ".venv"}

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)


def quoted(document: Path) -> list[str]:
    """What stands between backticks in the running text."""
    blocks_out = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", blocks_out)


def command_lines(document: Path) -> list[list[str]]:
    """The words behind `paper-assets` wherever it is called, without comment, and up to a pipe or a full stop."""
    text = document.read_text(encoding="utf-8").replace("paper-assets -e PAPER_ASSETS", "")
    calls = re.findall(r"(?<![\w\"/-])(?:\.venv/bin/)?paper-assets ([^\n`|#]+)", text)
    return [call.split() for call in calls if re.match(r"[a-z-]+(\s|$)", call)]


def found(name: str) -> list[Path]:
    """The files or folders meant: from the root of the checkout or of the package, a bare name from anywhere in it."""
    places = [place for place in (ROOT / name, PACKAGE / name) if place.exists()]
    return places or (
        [] if "/" in name else [place for room in (PACKAGE, ROOT / "tests") for place in room.rglob(name)]
    )


@documents
def test_every_file_named_exists(document: Path) -> None:
    names = [text.rstrip("/") for text in quoted(document) if re.fullmatch(r"[\w./-]+", text)]
    ours = [name for name in names if name.endswith(".py") or ("/" in name and name.split("/")[0] in FOLDERS)]
    assert [name for name in ours if not found(name)] == []


@documents
def test_every_name_said_to_stand_in_a_file_stands_there(document: Path) -> None:
    said = [match.groups() for text in quoted(document) if (match := re.fullmatch(r"([\w/]+\.py): (\w+)", text))]
    missing = [
        f"{file}: {name}"
        for file, name in said
        if not any(re.search(rf"\b{name}\b", place.read_text(encoding="utf-8")) for place in found(file))
    ]
    assert missing == []


@documents
def test_every_link_to_a_file_leads_to_one(document: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8"))
    assert [target for target in targets if not (document.parent / target).exists()] == []


@documents
def test_every_command_named_exists_with_its_options(document: Path) -> None:
    unknown = []
    for words in command_lines(document):
        command: Any = typer.main.get_command(app)
        named = []
        while words and hasattr(command, "get_command") and not words[0].startswith("-"):
            named.append(words.pop(0))
            command = command.get_command(None, named[-1])
        if command is None:
            unknown.append(" ".join(named))
            continue
        options = {option for part in command.params for option in part.opts + part.secondary_opts} | {"--help"}
        given = {re.split(r"[=.,;:)]", word)[0] for word in words if word.startswith("--")}
        unknown += [f"{' '.join(named)} {option}" for option in given - options]
    assert unknown == []


@documents
def test_every_module_that_is_to_be_run_exists(document: Path) -> None:
    modules = re.findall(r"python -m (benchmarks\.\w+)", document.read_text(encoding="utf-8"))
    assert [name for name in modules if not (ROOT / f"{name.replace('.', '/')}.py").is_file()] == []


@documents
def test_every_make_target_named_exists(document: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    named = {text.split()[1] for text in quoted(document) if re.fullmatch(r"make [a-z]+", text)}
    assert named - targets == set()


@documents
def test_every_number_of_the_settings_named_exists(document: Path) -> None:
    settings = import_module("paper_assets.settings")
    named = [text.split(".") for text in quoted(document) if re.fullmatch(r"[A-Z]\w+\.[a-z]\w+", text)]
    assert [
        f"{of}.{name}" for of, name in named if name not in getattr(getattr(settings, of, None), "__annotations__", ())
    ] == []


@documents
def test_every_variable_named_is_read_somewhere(document: Path) -> None:
    named = set(re.findall(r"\bPAPER_ASSETS_[A-Z_]+\b", document.read_text(encoding="utf-8")))
    sources = "\n".join(module.read_text(encoding="utf-8") for module in PACKAGE.rglob("*.py"))
    # Written out, or made of a setting's name.
    fields = {f"PAPER_ASSETS_{name.upper()}" for name in re.findall(r"^    (\w+):", sources, flags=re.MULTILINE)}
    assert {name for name in named if name not in sources} - fields == set()


@pytest.mark.parametrize("name", ["README.md", "docs/operations.md"])
def test_every_asset_check_key_and_tool_named_exists(name: str) -> None:
    texts = [text for text in quoted(ROOT / name) if re.fullmatch(r"[a-z_.]+", text) and not text.endswith(".json")]
    named = {part for text in texts for part in text.split(".") if "_" in part.strip("_")}
    files = [*PACKAGE.rglob("*.py"), PACKAGE / "defs" / "dagster.yaml"]
    known = set(re.findall(r"\w+", "\n".join(file.read_text(encoding="utf-8") for file in files)))
    assert named - known - FOLDERS == set()


@pytest.mark.parametrize("module", sorted((ROOT / "benchmarks").glob("[a-z]*.py")), ids=lambda module: module.stem)
def test_every_benchmark_says_how_it_is_called(module: Path) -> None:
    said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    assert f"python -m benchmarks.{module.stem}" in said
