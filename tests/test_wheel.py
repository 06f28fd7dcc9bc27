"""The wheel and the sdist contain everything that the package reads, and the installed wheel works."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"
PUBLISHED = ("pyproject.toml", "README.md", "LICENSE")


def data_files() -> set[str]:
    """Return every file of the package except modules, relative to the checkout."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".py"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build wheel and sdist from a copy, because setuptools writes beside its source."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("out")
    shutil.copytree(PACKAGE, source / PACKAGE.name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in PUBLISHED:
        shutil.copy(ROOT / name, source)
    build = (
        f"from setuptools import build_meta as build; build.build_sdist({str(out)!r}); build.build_wheel({str(out)!r})"
    )
    subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, check=True)
    return {kind: next(out.glob(f"*{kind}")) for kind in (".whl", ".tar.gz")}


@pytest.fixture(scope="module")
def site(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the installed wheel; dependencies come from this environment."""
    folder = tmp_path_factory.mktemp("site")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*install, str(built[".whl"])], capture_output=True, check=True)
    return folder


def installed(site: Path, home: Path, *command: str) -> str:
    """Return the output of a command that can only find the installed package, in a separate folder."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PAPER_ASSETS_HOME": str(home / "data")}
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_and_the_sdist_hold_every_file_that_the_package_reads(built: dict[str, Path]) -> None:
    expected = data_files()
    assert {PurePosixPath(name).suffix for name in expected} >= {".sql", ".toml", ".jinja", ".jsonl", ".tsv"}
    with zipfile.ZipFile(built[".whl"]) as wheel:
        assert expected - set(wheel.namelist()) == set()
    with tarfile.open(built[".tar.gz"]) as sdist:
        assert expected - {name.partition("/")[2] for name in sdist.getnames()} == set()


def test_the_wheel_and_the_sdist_carry_the_licence_and_no_tests(built: dict[str, Path]) -> None:
    with zipfile.ZipFile(built[".whl"]) as wheel, tarfile.open(built[".tar.gz"]) as sdist:
        names = wheel.namelist()
        assert "LICENSE" in {PurePosixPath(name).name for name in names}
        assert "LICENSE" in {PurePosixPath(name).name for name in sdist.getnames()}
    assert {PurePosixPath(name).parts[0].partition("-")[0] for name in names} == {PACKAGE.name}


def test_the_installed_command_works_away_from_the_checkout(site: Path, tmp_path: Path) -> None:
    script = str(site / "bin" / "paper-assets")
    where = installed(site, tmp_path, sys.executable, "-c", "import paper_assets; print(paper_assets.__path__[0])")
    assert Path(where.strip()) == site / "paper_assets"
    assert "Serve assistants over MCP" in installed(site, tmp_path, sys.executable, script, "--help")
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert installed(site, tmp_path, sys.executable, script, "--version") == f"paper-assets {version}\n"

    paper = {"paper_id": "2603.00001", "title": "Counting frogs", "abstract": "Frogs are counted.", "authors": ["A. B"]}
    (tmp_path / "papers.json").write_text(json.dumps([paper]), encoding="utf-8")
    ranked = json.loads(installed(site, tmp_path, sys.executable, script, "rank", "papers.json", "--no-save"))
    assert [each["paper_id"] for each in ranked["ranked_papers"]] == ["2603.00001"]


def test_the_installed_package_opens_what_it_reads(site: Path, tmp_path: Path) -> None:
    read = """
from pathlib import Path
from paper_assets.ranking.traits import standard_taxonomy
from paper_assets.stores.papers import summary
from paper_assets.stores.warehouse import Warehouse
print(len(standard_taxonomy().names) > 10, summary(Warehouse(Path("w.duckdb"), deadline=5)).papers)
"""
    assert installed(site, tmp_path, sys.executable, "-c", read).split() == ["True", "0"]


def test_the_installed_package_loads_in_dagster_without_a_project_file(site: Path, tmp_path: Path) -> None:
    load = """
from paper_assets.definitions import defs
repository = defs.get_repository_def()
print(len(repository.schedule_defs), len(repository.sensor_defs), "arxiv_papers" in str(repository.assets_defs_by_key))
"""
    assert installed(site, tmp_path, sys.executable, "-c", load).split() == ["1", "4", "True"]
    workspace = site / "paper_assets" / "defs" / "workspace.yaml"
    assert workspace.read_text("utf-8") == (ROOT / "workspace.yaml").read_text("utf-8")
    check = [sys.executable, "-m", "dagster", "definitions", "validate", "-w", str(workspace)]
    installed(site, tmp_path, *check)
