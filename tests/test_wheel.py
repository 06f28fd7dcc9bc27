"""What is published: a wheel and an sdist with all that the package reads, and a wheel that works once installed."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"
PUBLISHED = ("pyproject.toml", "README.md", "LICENSE")


def data_files() -> set[str]:
    """Every file of the package that is no module, by its place below the root of the checkout."""
    files = (path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(ROOT).as_posix() for path in files if path.suffix != ".py"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheel and the sdist, built from a copy because setuptools writes beside what it builds."""
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
    """A folder into which the wheel was installed; what it depends on comes from this environment."""
    folder = tmp_path_factory.mktemp("site")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(folder)]
    subprocess.run([*install, str(built[".whl"])], capture_output=True, check=True)
    return folder


def installed(site: Path, home: Path, *command: str) -> str:
    """What a command prints where only the installed package can be found, in a folder of its own."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PAPER_ASSETS_HOME": str(home / "data")}
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=120)
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

    paper = {"paper_id": "2603.00001", "title": "Counting frogs", "abstract": "Frogs are counted.", "authors": ["A. B"]}
    (tmp_path / "papers.json").write_text(json.dumps([paper]), encoding="utf-8")
    ranked = json.loads(installed(site, tmp_path, sys.executable, script, "rank", "papers.json", "--no-save"))
    assert [each["paper_id"] for each in ranked["ranked_papers"]] == ["2603.00001"]


def test_the_installed_package_opens_what_it_reads(site: Path, tmp_path: Path) -> None:
    read = """
from pathlib import Path
from importlib.resources import files
from paper_assets.evaluation.labelled_set import load_labelled_set
from paper_assets.ranking.traits import standard_taxonomy
from paper_assets.stores.summary import summary
from paper_assets.stores.warehouse import Warehouse
print(len(standard_taxonomy().names) > 10, summary(Warehouse(Path("w.duckdb"), deadline=5)).papers)
print(len(load_labelled_set(Path(str(files("paper_assets.example") / "labelled"))).queries) > 0)
"""
    assert installed(site, tmp_path, sys.executable, "-c", read).split() == ["True", "0", "True"]
