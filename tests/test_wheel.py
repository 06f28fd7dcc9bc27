"""The wheel and the sdist contain everything that the package reads, and the installed wheel works."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterable
from datetime import date
from importlib.metadata import Distribution, distribution
from importlib.util import cache_from_source
from pathlib import Path, PurePosixPath
from urllib.request import urlopen

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.desk import GRAPHS, Desk
from tests.loopback_arxiv import invented_paper, loopback_arxiv

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "paper_assets"
PUBLISHED = ("pyproject.toml", "setup.py", "README.md", "LICENSE")


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
import runpy, sys
sys.argv = ["dagster", "definitions", "validate", "-m", "paper_assets.definitions"]
runpy.run_module("dagster", run_name="__main__")
"""
    assert installed(site, tmp_path, sys.executable, "-c", load).split()[:3] == ["1", "3", "True"]


def dependencies(requirements: Iterable[str]) -> set[str]:
    """Return the names of the distributions that an installation of these requirements brings here."""
    seen: set[tuple[str, str]] = set()
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        requirement, extra = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        for asked in ("", *requirement.extras):
            if (name, asked) not in seen:
                seen.add((name, asked))
                waiting += [(Requirement(each), asked) for each in distribution(name).requires or ()]
    return {name for name, _ in seen}


def link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)


@pytest.fixture(scope="module")
def reader(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment with the wheel and its dependencies, without extras or what tests need.

    The dependencies are links to the files of this environment.
    """
    folder = tmp_path_factory.mktemp("reader")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = next(folder.glob("lib/python*/site-packages"))
    wheel = Distribution.at(next(site.glob("paper_assets-*.dist-info")))
    for name in dependencies(wheel.requires or ()):
        for file in distribution(name).files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                link(packages / file, Path(str(file.locate())))
                if file.suffix == ".py" and (compiled := Path(cache_from_source(str(file.locate())))).exists():
                    link(packages / cache_from_source(str(file)), compiled)
    (packages / "wheel.pth").write_text(f"{site}\n", encoding="utf-8")
    return folder / "bin" / "python"


def test_the_wheel_without_extras_fetches_embeds_ranks_finds_and_serves_the_page(reader: Path, tmp_path: Path) -> None:
    desk, day = Desk(tmp_path), date(2026, 3, 2)
    desk.profile("graphs", GRAPHS)
    papers = [
        invented_paper(1, day, title="Traffic forecasting on road networks", abstract="Road networks and forecasts."),
        *(invented_paper(number, day) for number in range(2, 8)),
    ]
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), **desk.environment}

    def command(*arguments: str) -> list[str]:
        return [str(reader), "-c", "from paper_assets.interfaces.cli.app import program; program()", *arguments]

    def run(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        done = subprocess.run(
            command(*arguments), cwd=tmp_path, env={**environment, **more}, capture_output=True, text=True, timeout=600
        )
        assert done.returncode == 0, done.stderr
        return done

    assert subprocess.run([reader, "-c", "import torch"], env=environment, capture_output=True).returncode
    with loopback_arxiv(papers=papers) as arxiv:
        run("fetch", "--day", f"{day}", PAPER_ASSETS_ARXIV_URL=arxiv.url, PAPER_ASSETS_REQUEST_INTERVAL="0")
    run("run", "--as-of", f"{day}")
    ((stored, of_model),) = embedded(desk)
    assert of_model == "all-MiniLM-L6-v2" and stored == len(papers) + 1, "the papers and the interest"
    assert json.loads(run("today", "graphs", "--json").stdout)[0]["papers"][0]["title"].startswith("Traffic")
    assert papers[0].paper_id in run("find", "predicting vehicles on streets", "--json").stdout
    other = {"PAPER_ASSETS_EMBEDDING_MODEL": "all-mpnet-base-v2"}
    assert "keywords only" in run("run", **other).stderr
    assert "pip install 'paper-assets[models]'" in run("find", "streets", **other).stderr
    plan = {"rewritten_question": "forecasting traffic", "data_type": ["abstract"], "generation_required": True}
    (tmp_path / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    assert "pip install 'paper-assets[models]'" in run("retrieve", "plan.json", "--json").stdout

    serving = subprocess.Popen(
        command("desk", "--port", "0", "--no-browser"), cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert serving.stdout
        address = next(found[0] for line in serving.stdout if (found := re.search(r"http://[\w.:]+", line)))
        with urlopen(address) as answer:
            assert "Traffic forecasting on road networks" in answer.read().decode("utf-8")
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.communicate()


def embedded(desk: Desk) -> list[tuple[int, str]]:
    """Return how many texts have a vector, by model."""
    return desk.warehouse.rows("select count(*), model from embeddings group by model")
