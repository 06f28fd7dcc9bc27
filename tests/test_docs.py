"""What the documents name exists (files, commands, settings, requirement ids), and what is generated is current."""

import ast
import io
import json
import re
import runpy
import subprocess
import sys
import tokenize
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from paper_assets.interfaces.cli.app import app

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"
DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
REQUIREMENT = re.compile(r"\b(?:TC\d|[SGLRMBIVZAXOQC]\d{1,2}[abc]?)\b(?![\w-])")
FOLDERS = {path.name for path in [*ROOT.iterdir(), *PACKAGE.iterdir()] if path.is_dir()} - {"data", ".venv"}

documents = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)


def quoted(document: Path) -> list[str]:
    """Return what is between backticks in the running text."""
    blocks_out = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", blocks_out)


def command_lines(document: Path) -> list[list[str]]:
    """Return the words after `paper-assets` of every call, without comment and up to a pipe or a full stop."""
    text = document.read_text(encoding="utf-8").replace("paper-assets -e PAPER_ASSETS", "")
    calls = re.findall(r"(?<![\w\"/-])(?:\.venv/bin/)?paper-assets ([^\n`|#]+)", text)
    return [call.split() for call in calls if re.match(r"[a-z-]+(\s|$)", call)]


def found(name: str) -> list[Path]:
    """Return the files meant: relative to the checkout or the package; a bare name anywhere in package and tests."""
    places = [place for place in (ROOT / name, PACKAGE / name) if place.exists()]
    return places or (
        [] if "/" in name else [place for folder in (PACKAGE, ROOT / "tests") for place in folder.rglob(name)]
    )


@documents
def test_every_file_named_exists(document: Path) -> None:
    names = [text.rstrip("/") for text in quoted(document) if re.fullmatch(r"[\w./-]+", text)]
    ours = [name for name in names if name.endswith(".py") or ("/" in name and name.split("/")[0] in FOLDERS)]
    assert [name for name in ours if not found(name)] == []


@documents
def test_every_name_attributed_to_a_file_is_in_it(document: Path) -> None:
    references = [match.groups() for text in quoted(document) if (match := re.fullmatch(r"([\w/]+\.py): (\w+)", text))]
    missing = [
        f"{file}: {name}"
        for file, name in references
        if not any(re.search(rf"\b{name}\b", place.read_text(encoding="utf-8")) for place in found(file))
    ]
    assert missing == []


@documents
def test_every_link_to_a_file_has_a_target(document: Path) -> None:
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
def test_every_module_in_a_command_exists(document: Path) -> None:
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


@pytest.mark.parametrize(
    "name",
    ["README.md", *(f"docs/{page}.md" for page in ("operations", "profiles", "reading", "evidence", "rewrites"))],
)
def test_every_asset_check_key_and_tool_named_exists(name: str) -> None:
    texts = [text for text in quoted(ROOT / name) if re.fullmatch(r"[a-z_.]+", text) and not text.endswith(".json")]
    named = {part for text in texts for part in text.split(".") if "_" in part.strip("_")}
    files = [*PACKAGE.rglob("*.py"), PACKAGE / "defs" / "dagster.yaml"]
    known = set(re.findall(r"\w+", "\n".join(file.read_text(encoding="utf-8") for file in files)))
    assert named - known - FOLDERS == set()


@pytest.mark.parametrize("module", sorted((ROOT / "benchmarks").glob("[a-z]*.py")), ids=lambda module: module.stem)
def test_every_benchmark_documents_its_command(module: Path) -> None:
    source = module.read_text(encoding="utf-8")
    if "__main__" in source:
        assert f"python -m benchmarks.{module.stem}" in (ast.get_docstring(ast.parse(source)) or "")


def test_the_readme_is_at_most_150_lines() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


@documents
def test_no_document_names_a_package_index(document: Path) -> None:
    assert not re.search(r"pypi\.org|index-url|simple/", document.read_text(encoding="utf-8"))


def tool(name: str) -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "tools" / f"{name}.py"))


def test_the_command_reference_is_current() -> None:
    written = (DOCS / "commands.md").read_text(encoding="utf-8")
    assert written == tool("command_reference")["command_reference"](), "run: python docs/tools/command_reference.py"


def test_the_pictures_are_not_older_than_what_they_show() -> None:
    """The templates of the page and the assets of the graph are those that the pictures were taken of."""
    recorded = json.loads((DOCS / "images" / "sources.json").read_text(encoding="utf-8"))
    assert recorded == tool("pictures")["source_hashes"](), "run: python docs/tools/pictures.py"
    assert all((DOCS / "images" / name).stat().st_size < 300_000 for name in recorded)


@pytest.mark.skipif(find_spec("mkdocs") is None, reason="the site is built by `make docs`, which installs mkdocs")
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    external = re.compile(r"""(?:src|href)=["']?https?://[^"' >]+\.(?:js|css|woff2?|png|svg)""")
    assert [page.name for page in tmp_path.glob("*.html") if external.search(page.read_text(encoding="utf-8"))] == []


@cache
def explained() -> frozenset[str]:
    """Return the requirement ids that the specification explains."""
    text = (DOCS / "specification.md").read_text(encoding="utf-8")
    ranged = {f"TC{number}" for number in range(1, 9)} if "**TC1**" in text else set()
    return frozenset(re.findall(r"\*\*([A-Z]{1,2}\d+[abc]?)\*\*", text)) | ranged


def test_every_requirement_that_code_or_a_test_cites_is_explained() -> None:
    cited: dict[str, str] = {}
    for folder in (PACKAGE, ROOT / "tests", ROOT / "benchmarks"):
        for module in folder.rglob("*.py"):
            tree = ast.parse(module.read_text(encoding="utf-8"))
            nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)]
            tokens = tokenize.generate_tokens(io.StringIO(module.read_text(encoding="utf-8")).readline)
            texts = [ast.get_docstring(node) or "" for node in nodes]
            texts += [token.string for token in tokens if token.type == tokenize.COMMENT]
            for text in texts:
                cited |= {name: str(module.relative_to(ROOT)) for name in REQUIREMENT.findall(text)}
    assert {name: module for name, module in cited.items() if name not in explained()} == {}


def test_no_requirement_id_is_in_what_a_user_sees() -> None:
    """Commands, templates, scripts, MCP, descriptions and messages name things, not requirement ids."""
    seen = {"docs/commands.md": (DOCS / "commands.md").read_text(encoding="utf-8")}
    for file in PACKAGE.rglob("*"):
        name = str(file.relative_to(ROOT))
        if file.suffix == ".jinja":
            seen[name] = re.sub(r"\{#.*?#\}", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        elif file.suffix == ".py":
            tree = ast.parse(file.read_text(encoding="utf-8"))
            documented = ast.Module | ast.ClassDef | ast.FunctionDef
            if "interfaces/mcp" in name:  # a tool's docstring is its description
                documented = ast.Module | ast.ClassDef
            notes = {
                id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and docstring(node)
            }
            values = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
            texts = [str(node.value) for node in values if id(node) not in notes]
            seen[name] = "\n".join(text for text in texts if text != "S2")  # also the prefix of Semantic Scholar's ids
    found = {name: sorted(set(REQUIREMENT.findall(text)) & explained()) for name, text in seen.items()}
    assert {name: ids for name, ids in found.items() if ids} == {}


def docstring(node: Any) -> bool:
    return bool(node.body) and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
