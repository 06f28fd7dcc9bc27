"""Test that one module imports Dagster's private names, and that each still does what that module expects."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

from paper_assets.defs import dagster_internals

PACKAGE = Path(dagster_internals.__file__).parents[1]
ONLY = "defs/dagster_internals.py"


def private_imports(module: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(module.read_text("utf-8"))):
        names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
        names += [f"{node.module}"] if isinstance(node, ast.ImportFrom) else []
        found |= {name for name in names if re.match(r"dagster[a-z_]*\._|dagster\..*\._", name)}
    return found


def test_only_one_module_imports_private_modules_of_dagster() -> None:
    importing = {file.relative_to(PACKAGE).as_posix() for file in PACKAGE.rglob("*.py") if private_imports(file)}
    assert importing == {ONLY}


def test_a_code_server_starts_its_runs_from_a_process_that_has_imported_the_definitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = import_module("dagster._grpc.server")
    assert "self._mp_ctx.Process(" in inspect.getsource(server.DagsterApiServer.StartRun)
    monkeypatch.setattr(server.DagsterApiServer, "_mp_ctx", None, raising=False)  # restored after the test
    one = object.__new__(server.DagsterApiServer)
    vars(one)["_mp_ctx"] = "the context of a server that was started before"
    dagster_internals.fork_runs(["json"])
    assert one._mp_ctx.get_start_method() == "forkserver"
