"""Imports go one way, and only the packages that may use Dagster, a terminal or a protocol import it."""

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module

import typer

from paper_assets.interfaces.cli.app import COMMANDS
from tests.source_tree import Module, modules

GROUND = {
    "paper",
    "paper_id",
    "profile",
    "settings",
    "errors",
    "text",
    "announcements",
    "locks",
    "processes",
    "progress",
    "retrying",
    "small_files",
    "weights",
}
BELOW = {
    "paper_id": {"errors"},
    "paper": {"paper_id", "errors", "text"},
    "errors": set(),
    "settings": {"errors", "small_files", "weights"},
    "profile": {"paper_id", "errors", "small_files", "text", "weights"},
    "small_files": {"errors"},
    "weights": {"errors", "small_files"},
    "text": {"errors"},
    "announcements": {"text"},
    "locks": {"errors", "processes", "small_files"},
    "processes": set(),
    "progress": set(),
    "retrying": set(),
    "sources": GROUND,
    "models": GROUND,
    "stores": GROUND,
    "ranking": GROUND | {"models", "stores", "sources"},
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
    | {"models", "stores", "sources", "ranking", "cluster", "retrieval", "rewriting"}
    | {"interpreting", "digests", "delivery", "learning", "library"},
}
CORE = set(BELOW)
PREFERRED = {"defs", "definitions", "interfaces"}


def test_imports_run_one_way() -> None:
    wrong = {}
    for module in modules():
        if module.package in PREFERRED or module.package == "__init__":
            continue
        assert module.package in CORE, f"{module.package} is a new package: define in this test what it may import"
        packages = {name.split(".")[1] for name in module.imports if name.startswith("paper_assets.")}
        if upwards := packages - {module.package} - BELOW[module.package]:
            wrong[module.name] = sorted(upwards)
    assert wrong == {}


def test_only_defs_and_interfaces_use_dagster_a_terminal_or_a_protocol() -> None:
    wrong = {}
    for module in modules():
        foreign = {name.split(".")[0] for name in module.imports} & {"dagster", "typer", "rich", "mcp", "starlette"}
        allowed = {"dagster"} if module.package in {"defs", "definitions"} else {"typer", "rich", "mcp", "starlette"}
        if module.package not in PREFERRED:
            allowed = set()
        if foreign - allowed:
            wrong[module.name] = sorted(foreign - allowed)
    assert wrong == {}


def test_no_interface_imports_another() -> None:
    wrong = {}
    for module in modules():
        parts = module.name.split("/")
        if parts[0] == "interfaces" and len(parts) == 3 and parts[2] != "servers.py":  # the command that serves
            others = {name for name in module.imports if name.startswith("paper_assets.interfaces.")}
            folders = {name.split(".")[2] for name in others if len(name.split(".")) > 3}
            if folders - {parts[1]}:
                wrong[module.name] = sorted(folders - {parts[1]})
    assert wrong == {}


def test_the_core_reads_neither_the_clock_nor_the_environment_and_prints_nothing() -> None:
    outside = re.compile(
        r"os\.environ|os\.getenv|datetime\.now\(|date\.today\(|\btime\.time\(|^\s*print\(", re.MULTILINE
    )
    cores = [module for module in modules() if module.package not in PREFERRED]
    assert {module.name: outside.findall(module.source) for module in cores if outside.search(module.source)} == {}


# Modules of these packages that read or write stores, files or other hosts: services. All others compute on what they
# are given. A new module is pure, or is listed here.
SERVICES = {
    "ranking": {"verifier"},
    "interpreting": {"analysis", "clients", "fulltexts", "lookup", "papers"},
    "learning": {"ratings"},
    "retrieval": {"desk_search", "search", "sides", "stance_judges"},
    "rewriting": {"best_practices", "loop", "migration", "writing"},
    "digests": set(),
    "setup": {"doctor", "embedding_model", "example", "language_model", "matches"}
    | {"model_reading", "profile_editing"},
}
# Functions of stores, sources and models that neither read nor write anything, and a module used for a constant.
PURE_HELPERS = {"html_of", "page_of", "source_of", "estimated_tokens", "minilm", "local_pdfs", "ranking_schema"}
PURE_HELPERS |= {"project_page", "reason_of", "with_code_url"}
OPENS = {"Warehouse", "VectorIndex"}


def outside_work(module: Module) -> set[str]:
    """Return what a module imports to read or write stores or to reach other hosts; record types are allowed."""
    names: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and re.match(r"paper_assets\.(stores|sources|models)\b", node.module or ""):
            names |= {each.name for each in node.names if each.name[0].islower() or each.name in OPENS}
    names -= PURE_HELPERS
    clients = {"duckdb", "requests", "chromadb", "httpx"}
    return names | {each for each in module.imports if each.split(".")[0] in clients}


def test_only_the_listed_services_of_a_core_package_use_stores_and_clients() -> None:
    services: dict[str, set[str]] = {package: set() for package in SERVICES}
    for module in modules():
        if module.package in SERVICES and outside_work(module):
            services[module.package].add(module.path.stem)
    assert services == SERVICES


def test_no_folder_or_module_has_a_meaningless_name() -> None:
    names = {part for module in modules() for part in module.name.removesuffix(".py").split("/")}
    assert not names & {"utils", "util", "helpers", "helper", "manager", "base", "common", "misc"}


def test_importing_the_graph_loads_no_model_no_vector_store_and_no_reader_of_pdfs_and_phone_numbers() -> None:
    heavy = "torch, chromadb, matplotlib, openvino, sentence_transformers, transformers, pypdfium2, phonenumbers"
    code = (
        "import sys, paper_assets.definitions, paper_assets.defs.runs; "
        f"print([name for name in '{heavy}'.split(', ') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_status_compares_stored_lists_without_loading_what_makes_or_fetches_anything() -> None:
    heavy = "jinja2, requests, arxiv, lxml, asyncio, smtplib, dagster, torch, pyarrow.compute, paper_assets.digests"
    heavy += ", paper_assets.retrieval, paper_assets.rewriting, paper_assets.interpreting"
    code = (
        "import sys, datetime, pathlib; import paper_assets.interfaces.cli.run, paper_assets.pipeline.staleness; "
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


def test_the_list_of_commands_shows_the_first_sentence_of_each_help() -> None:
    shown, first_sentences = {}, {}
    for command, (module, function, summary) in COMMANDS.items():
        target = getattr(import_module(f"paper_assets.interfaces.cli.{module}"), function)
        help_text = target.info.help if isinstance(target, typer.Typer) else inspect.getdoc(target)
        first, full_stop, _ = " ".join((help_text or "").split()).partition(". ")
        shown[command], first_sentences[command] = summary, first + full_stop.strip()
    assert shown == first_sentences


def test_a_command_that_moves_no_asset_loads_neither_dagster_nor_a_model() -> None:
    """Import all of them in one process: what one of them loads is loaded then."""
    commands = sorted({module for module, _, _ in COMMANDS.values()} - {"graph"})
    heavy = "dagster, torch, chromadb, matplotlib, openvino, sentence_transformers, transformers, sklearn"
    code = (
        "import sys, importlib; "
        f"loads = lambda: [name for name in '{heavy}'.split(', ') if name in sys.modules]; "
        f"imported = [(name, importlib.import_module('paper_assets.interfaces.cli.' + name), loads()) "
        f"for name in {commands}]; "
        "print([(name, heavy) for name, _, heavy in imported if heavy][:1])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
