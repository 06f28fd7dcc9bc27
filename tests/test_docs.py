"""What the documents name exists (files, commands, settings, requirement ids), and what is generated is current."""

import ast
import io
import json
import re
import runpy
import subprocess
import sys
import tokenize
from collections.abc import Callable, Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from paper_assets.interfaces.cli.app import app
from tests.source_tree import PACKAGE, ROOT, modules, parsed

DOCS = ROOT / "docs"
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.glob("*.md"))]
REQUIREMENT = re.compile(r"\b(?:TC\d|[SGLRMBIVZAXOQCWH]\d{1,2}[abc]?)\b(?![\w-])")
FOLDERS = {path.name for path in [*ROOT.iterdir(), *PACKAGE.iterdir()] if path.is_dir()} - {"data", ".venv"}
WORDS = 25_000


@cache
def text_of(document: Path) -> str:
    return document.read_text(encoding="utf-8")


@cache
def quoted(document: Path) -> list[str]:
    """Return what is between backticks in the running text."""
    blocks_out = re.sub(r"^```.*?^```", "", text_of(document), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", blocks_out)


def wrong_in(check: Callable[[Path], Iterable[str]]) -> dict[str, list[str]]:
    """Return what a check finds wrong, by document."""
    wrong = {document.name: sorted(check(document)) for document in DOCUMENTS}
    return {name: offenders for name, offenders in wrong.items() if offenders}


def command_lines(document: Path) -> list[list[str]]:
    """Return the words after `paper-assets` of every call, without comment and up to a pipe or a full stop."""
    text = text_of(document).replace("paper-assets -e PAPER_ASSETS", "")
    calls = re.findall(r"(?<![\w\"/-])(?:\.venv/bin/)?paper-assets ([^\n`|#]+)", text)
    return [call.split() for call in calls if re.match(r"[a-z-]+(\s|$)", call)]


@cache
def files_named(name: str) -> list[Path]:
    """Return the files meant: relative to the checkout or the package; a bare name anywhere in package and tests."""
    places = [place for place in (ROOT / name, PACKAGE / name) if place.exists()]
    return places or (
        [] if "/" in name else [place for folder in (PACKAGE, ROOT / "tests") for place in folder.rglob(name)]
    )


def test_every_file_named_exists() -> None:
    def missing(document: Path) -> list[str]:
        names = [text.rstrip("/") for text in quoted(document) if re.fullmatch(r"[\w./-]+", text)]
        ours = [name for name in names if name.endswith(".py") or ("/" in name and name.split("/")[0] in FOLDERS)]
        return [name for name in ours if not files_named(name)]

    assert wrong_in(missing) == {}


def test_every_name_attributed_to_a_file_is_in_it() -> None:
    def missing(document: Path) -> list[str]:
        matches = [re.fullmatch(r"([\w/]+\.py): (\w+)", text) for text in quoted(document)]
        references = [match.groups() for match in matches if match]
        return [
            f"{file}: {name}"
            for file, name in references
            if not any(re.search(rf"\b{name}\b", text_of(place)) for place in files_named(file))
        ]

    assert wrong_in(missing) == {}


def test_every_link_has_a_target() -> None:
    def missing(document: Path) -> list[str]:
        links = re.findall(r"\]\(([^)#:]*)(#[^)]*)?\)", text_of(document))
        files = [(document.parent / name if name else document, anchor) for name, anchor in links]
        return [
            f"{file.name}{anchor}"
            for file, anchor in files
            if not file.exists() or (anchor and anchor.removeprefix("#") not in anchors(file))
        ]

    assert wrong_in(missing) == {}


@cache
def anchors(document: Path) -> frozenset[str]:
    """Return the anchors of a document's headings, as the site makes them."""
    headings = re.findall(r"^#+ (.*)$", text_of(document), re.MULTILINE)
    return frozenset(re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings)


def test_every_command_named_exists_with_its_options() -> None:
    def unknown(document: Path) -> list[str]:
        names = []
        for words in command_lines(document):
            command: Any = typer.main.get_command(app)
            named = []
            while words and hasattr(command, "get_command") and not words[0].startswith("-"):
                named.append(words.pop(0))
                command = command.get_command(None, named[-1])
            if command is None:
                names.append(" ".join(named))
                continue
            options = {option for part in command.params for option in part.opts + part.secondary_opts} | {"--help"}
            written = {re.split(r"[=.,;:)]", word)[0] for word in words if word.startswith("--")}
            names += [f"{' '.join(named)} {option}" for option in written - options]
        return names

    assert wrong_in(unknown) == {}


def test_every_module_in_a_command_exists() -> None:
    def missing(document: Path) -> list[str]:
        names = re.findall(r"python -m ((?:benchmarks|paper_assets|tests)(?:\.\w+)+)", text_of(document))
        files = [ROOT / name.replace(".", "/") for name in names]
        return [str(file) for file in files if not file.with_suffix(".py").is_file() and not file.is_dir()]

    assert wrong_in(missing) == {}


def test_the_tests_that_the_makefile_names_exist() -> None:
    named = set(re.findall(r"tests/[\w/.]+", (ROOT / "Makefile").read_text(encoding="utf-8")))
    assert named and [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_every_make_target_named_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))

    def unknown(document: Path) -> set[str]:
        in_text = {match[1] for text in quoted(document) if (match := re.fullmatch(r"make ([a-z-]+)", text))}
        in_blocks = set(re.findall(r"^make ([a-z-]+)", text_of(document), re.MULTILINE))
        return (in_text | in_blocks) - targets

    assert wrong_in(unknown) == {}


def test_every_class_field_and_constant_that_developers_read_of_exists() -> None:
    words = set(re.findall(r"\w+", "\n".join(module.source for module in modules())))

    def unknown(document: Path) -> list[str]:
        if document.name not in {"architecture.md", "decisions.md", "CONTRIBUTING.md"}:
            return []
        named = [text for text in quoted(document) if re.fullmatch(r"[A-Z]\w+[a-z_]\w*(\.[a-z_]+)?", text)]
        return [name for name in named if not words.issuperset(name.split("."))]

    assert wrong_in(unknown) == {}


def test_every_variable_named_is_read_somewhere() -> None:
    sources = "\n".join(module.source for module in modules())
    # Written out, or made of a setting's name.
    fields = {f"PAPER_ASSETS_{name.upper()}" for name in re.findall(r"^    (\w+):", sources, flags=re.MULTILINE)}

    def unknown(document: Path) -> set[str]:
        named = set(re.findall(r"\bPAPER_ASSETS_[A-Z_]+\b", text_of(document)))
        return {name for name in named if not re.search(rf"\b{name}\b", sources)} - fields

    assert wrong_in(unknown) == {}


def test_every_asset_check_key_and_tool_named_exists() -> None:
    words = set(re.findall(r"\w+", "\n".join(module.source for module in modules())))
    for file in [*PACKAGE.rglob("*.yaml"), *(ROOT / "tests").rglob("*.py")]:
        words |= set(re.findall(r"\w+", text_of(file)))

    def unknown(document: Path) -> set[str]:
        texts = [text for text in quoted(document) if re.fullmatch(r"[a-z_.]+", text) and not text.endswith(".json")]
        names = {part for text in texts for part in text.split(".") if "_" in part.strip("_")}
        return names - words - FOLDERS

    assert wrong_in(unknown) == {}


def test_every_benchmark_documents_its_command() -> None:
    benchmarks = [parsed(path) for path in sorted((ROOT / "benchmarks").glob("[a-z]*.py"))]
    assert [
        module.path.stem
        for module in benchmarks
        if "__main__" in module.source
        and f"python -m benchmarks.{module.path.stem}" not in (ast.get_docstring(module.tree) or "")
    ] == []


def test_the_documents_stay_short() -> None:
    """The changelog is not counted."""
    assert len(text_of(ROOT / "README.md").splitlines()) <= 150
    counts = {document.name: len(text_of(document).split()) for document in DOCUMENTS}
    del counts["CHANGELOG.md"]
    assert sum(counts.values()) <= WORDS, counts


def test_no_line_of_prose_is_longer_than_120_characters() -> None:
    def long_lines(document: Path) -> list[str]:
        if document.name == "commands.md":  # generated
            return []
        blocks_out = re.sub(r"^```.*?^```", "", text_of(document), flags=re.MULTILINE | re.DOTALL)
        return [line for line in blocks_out.splitlines() if len(line) > 120 and not line.startswith(("|", "!["))]

    assert wrong_in(long_lines) == {}


def test_no_document_names_a_package_index() -> None:
    assert wrong_in(lambda document: re.findall(r"pypi\.org|index-url|simple/", text_of(document))) == {}


def tool(name: str) -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "tools" / f"{name}.py"))


def test_the_command_reference_is_current() -> None:
    assert text_of(DOCS / "commands.md") == tool("command_reference")["command_reference"](), (
        "run: python docs/tools/command_reference.py"
    )


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
    text = text_of(DOCS / "specification.md")
    ranged = {f"TC{number}" for number in range(1, 9)} if "**TC1**" in text else set()
    return frozenset(re.findall(r"\*\*([A-Z]{1,2}\d+[abc]?)\*\*", text)) | ranged


def test_every_requirement_that_code_or_a_test_cites_is_explained() -> None:
    cited: dict[str, str] = {}
    for folder in (PACKAGE, ROOT / "tests", ROOT / "benchmarks"):
        for module in (parsed(file) for file in folder.rglob("*.py") if REQUIREMENT.search(text_of(file))):
            nodes = [
                node for node in ast.walk(module.tree) if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            ]
            tokens = tokenize.generate_tokens(io.StringIO(module.source).readline)
            texts = [ast.get_docstring(node) or "" for node in nodes]
            texts += [token.string for token in tokens if token.type == tokenize.COMMENT]
            for text in texts:
                cited |= {name: str(module.path.relative_to(ROOT)) for name in REQUIREMENT.findall(text)}
    assert {name: module for name, module in cited.items() if name not in explained()} == {}


def test_no_requirement_id_is_in_what_a_user_sees() -> None:
    """Commands, templates, scripts, MCP, descriptions and messages name things, not requirement ids."""
    seen = {"docs/commands.md": text_of(DOCS / "commands.md")}
    for file in PACKAGE.rglob("*.jinja"):
        seen[str(file.relative_to(ROOT))] = re.sub(r"\{#.*?#\}", "", text_of(file), flags=re.DOTALL)
    for module in modules():
        documented = ast.Module | ast.ClassDef | ast.FunctionDef
        if module.name.startswith("interfaces/mcp"):  # a tool's docstring is its description
            documented = ast.Module | ast.ClassDef
        notes = {
            id(node.body[0].value)  # type: ignore[attr-defined]
            for node in ast.walk(module.tree)
            if isinstance(node, documented) and docstring(node)
        }
        constants = [node for node in ast.walk(module.tree) if isinstance(node, ast.Constant)]
        texts = [node.value for node in constants if isinstance(node.value, str) and id(node) not in notes]
        seen[module.name] = "\n".join(text for text in texts if text != "S2")  # also a prefix of ids
    ids = {name: sorted(set(REQUIREMENT.findall(text)) & explained()) for name, text in seen.items()}
    assert {name: cited for name, cited in ids.items() if cited} == {}


def docstring(node: Any) -> bool:
    return bool(node.body) and isinstance(node.body[0], ast.Expr) and isinstance(node.body[0].value, ast.Constant)
