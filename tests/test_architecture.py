"""Imports go one way, and only the packages that may use Dagster, a terminal or a protocol import it."""

import ast
import inspect
import re
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import typer

from paper_assets.interfaces.cli.app import COMMANDS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"

GROUND = {
    "paper",
    "paper_id",
    "profile",
    "settings",
    "errors",
    "text",
    "progress",
    "small_files",
    "time_limit",
    "weights",
}
BELOW = {
    "paper_id": {"errors"},
    "paper": {"paper_id", "errors", "text"},
    "errors": set(),
    "settings": {"errors", "weights"},
    "profile": {"paper_id", "errors", "small_files", "text", "weights"},
    "small_files": {"errors"},
    "weights": {"errors", "small_files"},
    "text": {"errors"},
    "progress": set(),
    "time_limit": set(),
    "sources": GROUND,
    "models": GROUND,
    "stores": GROUND,
    "example": GROUND,
    "ranking": GROUND | {"models", "stores", "sources"},
    "evaluation": GROUND | {"models", "stores", "sources", "ranking"},
    "retrieval": GROUND | {"models", "stores", "sources"},
    "rewriting": GROUND | {"models", "stores", "sources", "retrieval"},
    "interpreting": GROUND | {"models", "stores", "sources", "retrieval"},
    "learning": GROUND | {"models", "stores", "sources", "ranking"},
    "library": GROUND | {"stores", "sources", "learning"},
    "cluster": GROUND | {"models", "ranking"},
    "digests": GROUND | {"stores", "sources", "ranking", "retrieval", "rewriting"},
    "delivery": GROUND | {"sources", "digests"},
    "setup": GROUND
    | {
        "delivery",
        "models",
        "stores",
        "sources",
        "ranking",
        "retrieval",
        "rewriting",
        "learning",
        "library",
        "digests",
        "pipeline",
    },
    "pipeline": GROUND
    | {"models", "stores", "sources", "ranking", "cluster", "evaluation", "retrieval", "rewriting"}
    | {"interpreting", "digests", "delivery", "learning", "library"},
}
CORE = set(BELOW)
EDGE = {"defs", "definitions", "interfaces"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def package_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def imported(module: Path) -> set[str]:
    """Return every absolute module name that a file imports, anywhere in the file."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative import"
            names.add(node.module or "")
    return names


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(PACKAGE)))
def test_imports_run_one_way(module: Path) -> None:
    here = package_of(module)
    if here in EDGE or here == "__init__":
        return
    assert here in CORE, f"{here} is a new package: define in this test what it may import"
    packages = {name.split(".")[1] for name in imported(module) if name.startswith("paper_assets.")}
    assert packages - {here} <= BELOW[here]


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(PACKAGE)))
def test_only_defs_and_interfaces_use_dagster_a_terminal_or_a_protocol(module: Path) -> None:
    tops = {name.split(".")[0] for name in imported(module)}
    here = package_of(module)
    if here not in {"defs", "definitions"}:
        assert "dagster" not in tops
    if here != "interfaces":
        assert not tops & {"typer", "rich", "mcp", "starlette"}


def test_no_interface_imports_another() -> None:
    for module in modules():
        parts = module.relative_to(PACKAGE).parts
        if parts[0] == "interfaces" and len(parts) == 3 and module.name != "servers.py":  # the command that serves
            others = {name for name in imported(module) if name.startswith("paper_assets.interfaces.")}
            folders = {name.split(".")[2] for name in others if len(name.split(".")) > 3}
            assert folders <= {parts[1]}, module


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(PACKAGE)))
def test_the_core_reads_neither_the_clock_nor_the_environment(module: Path) -> None:
    if package_of(module) in EDGE:
        return
    source = module.read_text(encoding="utf-8")
    assert not re.search(r"os\.environ|os\.getenv|datetime\.now\(|date\.today\(|\btime\.time\(", source)
    assert not re.search(r"^\s*print\(", source, re.MULTILINE)


# Modules of these packages that read or write stores, files or other hosts: services. All others compute on what they
# are given. A new module is pure, or is listed here.
SERVICES = {
    "interpreting": {"analysis", "clients", "fulltexts", "lookup", "papers"},
    "learning": {"ratings"},
    "retrieval": {"blocks", "desk_search", "search", "sides", "snapshot", "stance_judges"},
    "rewriting": {"best_practices", "loop", "migration", "recall", "writing"},
    "digests": set(),
    "setup": {"doctor", "example", "fetch_hours", "language_model", "matches", "profiles"},
}
# Functions of stores, sources and models that neither read nor write anything, and a module used for a constant.
PURE_HELPERS = {"html_of", "page_of", "source_of", "estimated_tokens", "minilm"}
OPENS = {"Warehouse", "VectorIndex"}


def outside_work(module: Path) -> set[str]:
    """Return what a module imports to read or write stores or to reach other hosts; record types are allowed."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and re.match(r"paper_assets\.(stores|sources|models)\b", node.module or ""):
            names |= {each.name for each in node.names if each.name[0].islower() or each.name in OPENS}
    names -= PURE_HELPERS
    clients = {"duckdb", "requests", "chromadb", "httpx"}
    return names | {each for each in imported(module) if each.split(".")[0] in clients}


@pytest.mark.parametrize("package", SERVICES)
def test_only_the_listed_services_of_a_core_package_use_stores_and_clients(package: str) -> None:
    found = {module.stem for module in (PACKAGE / package).glob("*.py") if outside_work(module)}
    assert found == SERVICES[package]


def test_no_folder_or_module_has_a_meaningless_name() -> None:
    names = {part for module in modules() for part in module.relative_to(PACKAGE).with_suffix("").parts}
    assert not names & {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}


def test_importing_the_graph_loads_no_model_no_vector_store_and_no_reader_of_pdfs_and_phone_numbers() -> None:
    heavy = "torch, chromadb, matplotlib, openvino, sentence_transformers, transformers, pypdfium2, phonenumbers"
    code = (
        "import sys, paper_assets.defs.runs, paper_assets.defs.automation; "
        f"print([name for name in '{heavy}'.split(', ') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_status_compares_stored_lists_without_loading_what_makes_or_fetches_anything() -> None:
    heavy = "jinja2, requests, arxiv, lxml, asyncio, smtplib, dagster, torch, pyarrow.compute, paper_assets.digests"
    heavy += ", paper_assets.retrieval, paper_assets.rewriting, paper_assets.interpreting, paper_assets.evaluation"
    code = (
        "import sys, datetime, pathlib; import paper_assets.interfaces.cli.status, paper_assets.pipeline.staleness; "
        "from paper_assets.pipeline.workspace import open_workspace; from paper_assets.settings import load_settings; "
        "open_workspace(load_settings({}, pathlib.Path()), {}, clock=datetime.datetime.now).load_verifier(); "
        f"print([name for name in '{heavy}'.split(', ') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_asking_the_command_line_for_help_loads_no_dagster() -> None:
    code = (
        "import sys, paper_assets.interfaces.cli.app; "
        "print([name for name in ('dagster', 'pyarrow', 'duckdb', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_shows_the_first_sentence_of_each_help(command: str) -> None:
    module, function, summary = COMMANDS[command]
    target = getattr(import_module(f"paper_assets.interfaces.cli.{module}"), function)
    help_text = target.info.help if isinstance(target, typer.Typer) else inspect.getdoc(target)
    first, full_stop, _ = " ".join((help_text or "").split()).partition(". ")
    assert summary == first + full_stop.strip()


@pytest.mark.parametrize("module", sorted({module for module, _, _ in COMMANDS.values()} - {"graph", "reset"}))
def test_a_command_that_moves_no_asset_loads_neither_dagster_nor_a_model(module: str) -> None:
    heavy = "dagster, torch, chromadb, matplotlib, openvino, sentence_transformers, transformers, sklearn"
    code = (
        f"import sys, paper_assets.interfaces.cli.{module}; "
        f"print([name for name in '{heavy}'.split(', ') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
