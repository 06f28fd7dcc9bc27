"""The package's modules, read and parsed once for all tests that look at the source."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"


@dataclass(frozen=True, slots=True)
class Module:
    """A module: its text, its tree, and every absolute name that it imports anywhere."""

    path: Path
    source: str
    tree: ast.Module
    imports: frozenset[str]

    @property
    def name(self) -> str:
        """Return its path in the package."""
        return self.path.relative_to(PACKAGE).as_posix()

    @property
    def package(self) -> str:
        """Return the folder of the package that it is in, or its own name."""
        return self.path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@cache
def modules() -> tuple[Module, ...]:
    """Return all modules of the package, by path."""
    return tuple(parsed(path) for path in sorted(PACKAGE.rglob("*.py")))


@cache
def parsed(path: Path) -> Module:
    """Return a module by its file."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
    return Module(path, source, tree, frozenset(names))
