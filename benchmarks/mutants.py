"""Find faults in a module that no test detects, by inserting small faults one at a time.

    python -m benchmarks.mutants paper_assets/digests/content.py tests/digests [--sample 30] [--seed 1]

Paths under `paper_assets` are broken (files or folders), the other paths are the tests to run; options that are not
ours, such as --deselect=TEST, go to pytest. Everything happens in a copy of the checkout, with no recorded data beside
it; the working tree stays as it is. Each fault is tried in a forked process that stops at the first failing test.

Printed are the faults that no test noticed, as file:line, and their share of those tried. Some change nothing
visible (a cache, the wording of a message, a bound that is never reached): read each, and write a test where
a user would miss what was broken.

Adding a kind of fault: a function from a node to its broken form (or None) in `FAULTS`.
"""

import argparse
import ast
import copy
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import Phase, settings

ROOT = Path(__file__).parent.parent
# Imported once, before the forks. Nothing of the package, which each fork reads with its own fault, and nothing that
# starts threads as it is imported.
SHARED_IMPORTS = ("numpy", "pyarrow", "pydantic", "duckdb", "jinja2", "lxml.etree", "requests", "orjson", "typer")
OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


def _condition_negated(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return _changed(node, test=ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.comprehension) and node.ifs:
        return _changed(node, ifs=[ast.UnaryOp(ast.Not(), node.ifs[0]), *node.ifs[1:]])
    return None


def _comparison_swapped(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare):
        return _changed(node, ops=[OPPOSITE[type(node.ops[0])](), *node.ops[1:]])
    return None


def _and_for_or(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BoolOp):
        return _changed(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
    return None


def _statement_deleted(node: ast.AST) -> ast.AST | None:
    docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    stored = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript | ast.Attribute)
    if stored or (isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Return | ast.Continue) and not docstring):
        return ast.Pass()
    return None


def _number_off_by_one(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float) and not isinstance(node.value, bool):
        return ast.Constant(node.value + 1)
    return None


def _plus_for_minus(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return _changed(node, op=ast.Sub() if isinstance(node.op, ast.Add) else ast.Add())
    return None


FAULTS: tuple[tuple[str, Callable[[ast.AST], ast.AST | None]], ...] = (
    ("negated", _condition_negated),
    ("comparison swapped", _comparison_swapped),
    ("and for or", _and_for_or),
    ("deleted", _statement_deleted),
    ("number off by one", _number_off_by_one),
    ("plus for minus", _plus_for_minus),
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One fault: where it is, what it is, and the whole module with it."""

    file: Path
    line: int
    fault: str
    was: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.fault}: {self.was}"


def mutants(file: Path, source: str) -> Iterator[Mutant]:
    """Every fault that `FAULTS` knows for a module, one after another."""
    module = ast.parse(source)
    annotations = {id(inner) for node in ast.walk(module) for note in _annotations(node) for inner in ast.walk(note)}
    places = [node for node in ast.walk(module) if id(node) not in annotations]
    for place in places:
        for fault, broken in FAULTS:
            instead = broken(place)
            if instead is not None:
                line = getattr(place, "lineno", None) or place.ifs[0].lineno  # type: ignore[attr-defined]
                was = " ".join(ast.unparse(place).split())[:80]
                yield Mutant(file, line, fault, was, _replaced(module, place, instead))


def survivors(chosen: list[Mutant], tests: list[str], tree: Path) -> Iterator[Mutant]:
    """The faults that the tests in `tree` do not notice. A fault that makes them hang counts as noticed."""
    started = time.monotonic()
    if _run(tests, tree, timeout=None) != 0:
        raise SystemExit("the tests fail without any fault; nothing can be learned from them")
    timeout = 3 * (time.monotonic() - started) + 10
    for mutant in chosen:
        target = tree / mutant.file
        original = target.read_text(encoding="utf-8")
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*"):
            compiled.unlink()
        target.write_text(mutant.source, encoding="utf-8")
        try:
            if _run(tests, tree, timeout=timeout) == 0:
                yield mutant
        finally:
            target.write_text(original, encoding="utf-8")


def _run(tests: list[str], tree: Path, *, timeout: float | None) -> int | None:
    """Exit code of the tests in a forked process; None if they ran out of time."""
    process = multiprocessing.get_context("fork").Process(target=_tests, args=(tests, tree, timeout is not None))
    process.start()
    process.join(timeout)
    if process.is_alive():
        process.kill()
        process.join()
        return None
    return process.exitcode


def _tests(tests: list[str], tree: Path, broken: bool) -> None:
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    os.environ["PYTHONPATH"] = str(tree)
    sys.dont_write_bytecode = broken  # what one fault compiles to must not be taken for the next one's
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stdout(nowhere), redirect_stderr(nowhere):
        code = pytest.main(["-x", "-q", "--hypothesis-profile=mutants", "--hypothesis-seed=1", *tests])
    os._exit(int(code))


def _annotations(node: ast.AST) -> list[ast.AST]:
    found = [getattr(node, name, None) for name in ("annotation", "returns")]
    return [note for note in found if isinstance(note, ast.AST)]


def _changed(node: ast.AST, **parts: object) -> ast.AST:
    return type(node)(**{name: getattr(node, name) for name in node._fields} | parts)


def _replaced(module: ast.Module, place: ast.AST, instead: ast.AST) -> str:
    """The module's source with one node replaced."""

    class Replace(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return copy.copy(instead) if node is place else self.generic_visit(_shallow(node))

    return ast.unparse(ast.fix_missing_locations(Replace().visit(module)))


def _shallow(node: ast.AST) -> ast.AST:
    """A copy whose lists may be changed, since a NodeTransformer works in place."""
    again = copy.copy(node)
    for name, value in ast.iter_fields(node):
        if isinstance(value, list):
            setattr(again, name, list(value))
    return again


def _modules(paths: list[str]) -> list[Path]:
    given = [Path(path) for path in paths]
    return sorted(file for path in given for file in ([path] if path.suffix == ".py" else path.rglob("*.py")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", help="modules or folders under paper_assets, then tests to run")
    parser.add_argument("--sample", type=int, default=30, help="faults tried in each module (default 30; 0 for all)")
    parser.add_argument("--seed", type=int, default=1)
    asked, options = parser.parse_known_args()
    targets = _modules([path for path in asked.paths if path.startswith("paper_assets")])
    tests = [path for path in asked.paths if not path.startswith("paper_assets")] + options

    # A failing example is noticed at once; looking for the smallest one would take most of the time.
    settings.register_profile("mutants", deadline=None, database=None, phases=(Phase.explicit, Phase.generate))
    for name in SHARED_IMPORTS:
        with suppress(ImportError):
            import_module(name)

    lived_in_all, tried_in_all = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "checkout"
        for part in ("paper_assets", "tests", "benchmarks", "profiles", "docs"):
            shutil.copytree(ROOT / part, tree / part)
        for part in ("pyproject.toml", "README.md"):
            shutil.copy2(ROOT / part, tree / part)
        for file in targets:
            possible = list(mutants(file, (tree / file).read_text(encoding="utf-8")))
            chosen = random.Random(asked.seed).sample(possible, min(asked.sample or len(possible), len(possible)))
            chosen.sort(key=lambda mutant: mutant.line)
            if not chosen:
                continue
            lived = 0
            for mutant in survivors(chosen, tests, tree):
                print(mutant, flush=True)
                lived += 1
            print(f"{file}: {lived} of {len(chosen)} lived ({len(possible)} possible)", flush=True)
            lived_in_all, tried_in_all = lived_in_all + lived, tried_in_all + len(chosen)
    print(f"all: {lived_in_all} of {tried_in_all} lived ({lived_in_all / max(tried_in_all, 1):.0%})")


if __name__ == "__main__":
    main()
