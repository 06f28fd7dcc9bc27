"""Take the pictures of README and documentation: the Today view and Dagster's lineage, on the bundled example.

    python docs/tools/pictures.py [today.png] [lineage.png]

Needs Chromium; the variable `CHROMIUM` names its program. The example is imported into a temporary folder, and the
page and Dagster's web server run on free ports. sources.json beside the pictures records a hash of what each shows;
tests/test_docs.py fails when templates or assets have changed since.
"""

import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
IMAGES = ROOT / "docs" / "images"
SOURCES = IMAGES / "sources.json"
_PACKAGE = ROOT / "paper_assets"
_PAGE_SOURCES = ("interfaces/page/templates/**/*", "interfaces/page/assets/**/*", "digests/**/*.jinja")
# A minimal machine has no font for these scripts and would show boxes in the names of some invented authors.
_WITHOUT_MISSING_GLYPHS = r"""() => {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode())
    texts.currentNode.data = texts.currentNode.data.replace(/,? *[\u3040-\u9fff\uac00-\ud7af]+/g, "");
}"""
_STARTING = 180  # seconds until a server answers


def source_hashes() -> dict[str, str]:
    """Return for each picture the hash of what it shows: templates and styles, or assets and dependencies."""
    page = hashlib.sha256()
    for file in sorted({file for pattern in _PAGE_SOURCES for file in _PACKAGE.glob(pattern) if file.is_file()}):
        page.update(file.relative_to(_PACKAGE).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    lineage = sorted((product.name, sorted(product.deps)) for step in _steps() for product in step.products)
    return {
        "lineage.png": hashlib.sha256(json.dumps(lineage).encode()).hexdigest(),
        "today.png": page.hexdigest(),
    }


def main(wanted: list[str]) -> None:
    """Take the pictures named, or all, and record the hash of what each shows."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        environment = {
            **os.environ,
            "PAPER_ASSETS_HOME": f"{folder}/data",
            "DAGSTER_HOME": f"{folder}/dagster_home",
            "PAPER_ASSETS_PROFILES": shutil.copytree(ROOT / "profiles", f"{folder}/profiles"),
            "PAPER_ASSETS_DESK_URL": "http://127.0.0.1:8787",
        }
        program = Path(sys.executable).parent
        subprocess.run([program / "paper-assets", "demo"], env=environment, cwd=ROOT, check=True, stdout=sys.stderr)
        found = os.environ.get("CHROMIUM") or shutil.which("chromium")
        browser = playwright.chromium.launch(executable_path=found)
        if "today.png" in wanted:
            port = _free_port()
            with _serving([program / "paper-assets", "start", "--port", str(port)], environment, port):
                page = browser.new_page(viewport={"width": 1100, "height": 860})
                page.goto(f"http://127.0.0.1:{port}/p/efficient-inference")
                page.wait_for_load_state("networkidle")
                page.evaluate(_WITHOUT_MISSING_GLYPHS)
                page.screenshot(path=IMAGES / "today.png")
        if "lineage.png" in wanted:
            port = _free_port()
            server = [program / "dagster-webserver", "-w", "workspace.yaml", "-p", str(port), "-h", "127.0.0.1"]
            settings = Path(environment["DAGSTER_HOME"], "dagster.yaml")
            settings.write_text(settings.read_text(encoding="utf-8") + "\nnux:\n  enabled: false\n", encoding="utf-8")
            with _serving(server, environment, port):
                groups = sorted({step.group for step in _steps()} | {"profiles"})
                expanded = ",".join(f"global@global:{group}" for group in groups)
                page = browser.new_page(viewport={"width": 1500, "height": 1000})
                page.set_default_timeout(_STARTING * 1000)
                page.goto(f"http://127.0.0.1:{port}/asset-groups/?expanded={expanded}")
                page.get_by_text("Hide navigation").click()
                page.get_by_text("reading").first.wait_for()
                page.wait_for_timeout(20_000)  # the layout is computed in the background and animated
                graph = {"x": 372, "y": 112, "width": 1085, "height": 740}
                page.screenshot(path=IMAGES / "lineage.png", clip=graph)
        browser.close()
    recorded = json.loads(SOURCES.read_text(encoding="utf-8")) if SOURCES.exists() else {}
    now = source_hashes()
    recorded.update({name: now[name] for name in wanted})
    SOURCES.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _steps() -> Sequence[Any]:
    from paper_assets.pipeline.steps import STEPS

    return STEPS


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def _serving(command: list[object], environment: dict[str, str], port: int) -> Iterator[None]:
    """Run a server until the block ends; it answers when the block begins."""
    server = subprocess.Popen([str(part) for part in command], env=environment, cwd=ROOT, stdout=sys.stderr)
    try:
        until = time.monotonic() + _STARTING
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).close()
                break
            except (urllib.error.URLError, TimeoutError, ConnectionError):
                if server.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.5)
        yield
    finally:
        server.terminate()
        server.wait(timeout=60)


if __name__ == "__main__":
    main(sys.argv[1:] or ["today.png", "lineage.png"])
