"""The walls of the house: imports run one way, and only the rooms that may know a thing import it."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"

GROUND = {"paper", "profile", "settings", "errors"}
BELOW = {
    "paper": {"errors"},
    "errors": set(),
    "settings": {"errors"},
    "profile": {"paper", "errors"},
    "sources": GROUND,
    "models": GROUND,
    "stores": GROUND,
    "example": GROUND,
    "ranking": GROUND | {"models", "stores", "sources"},
    "evaluation": GROUND | {"models", "stores", "sources", "ranking"},
    "retrieval": GROUND | {"models", "stores", "sources"},
    "rewriting": GROUND | {"models", "stores", "sources", "retrieval"},
    "interpreting": GROUND | {"models", "stores", "sources", "retrieval"},
    "digests": GROUND | {"stores", "ranking", "retrieval", "rewriting"},
}
CORE = set(BELOW)
FACES = {"defs", "definitions", "faces"}


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def room(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(module: Path) -> set[str]:
    """Every absolute module name that a file imports, wherever in the file."""
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
    here = room(module)
    if here in FACES or here == "__init__":
        return
    assert here in CORE, f"{here} is a new room: say in this test what it may import"
    rooms = {name.split(".")[1] for name in imported(module) if name.startswith("paper_assets.")}
    assert rooms - {here} <= BELOW[here]


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(PACKAGE)))
def test_only_the_edge_knows_dagster_a_terminal_a_protocol_or_a_page(module: Path) -> None:
    tops = {name.split(".")[0] for name in imported(module)}
    here = room(module)
    if here not in {"defs", "definitions"}:
        assert "dagster" not in tops
    if here != "faces":
        assert not tops & {"typer", "rich", "mcp", "streamlit"}


@pytest.mark.parametrize("module", modules(), ids=lambda module: str(module.relative_to(PACKAGE)))
def test_the_core_reads_neither_the_clock_nor_the_environment(module: Path) -> None:
    if room(module) in FACES:
        return
    source = module.read_text(encoding="utf-8")
    assert not re.search(r"os\.environ|os\.getenv|datetime\.now\(|date\.today\(|\btime\.time\(", source)
    assert not re.search(r"^\s*print\(", source, re.MULTILINE)


def test_no_folder_or_module_has_a_name_that_says_nothing() -> None:
    names = {part for module in modules() for part in module.relative_to(PACKAGE).with_suffix("").parts}
    assert not names & {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}


def test_importing_the_graph_loads_no_model_and_no_vector_store() -> None:
    heavy = "torch, chromadb, matplotlib, openvino, sentence_transformers, transformers"
    code = (
        "import sys, paper_assets.defs.runs, paper_assets.defs.automation; "
        f"print([name for name in '{heavy}'.split(', ') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_asking_the_command_line_for_help_loads_no_dagster() -> None:
    code = (
        "import sys, paper_assets.faces.cli; "
        "print([name for name in ('dagster', 'pyarrow', 'duckdb', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
