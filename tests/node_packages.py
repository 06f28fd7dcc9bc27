"""Install npm packages for tests, once, outside the tree."""

import os
import shutil
import subprocess
import tempfile
from hashlib import sha256
from pathlib import Path

_SECONDS = 180


class NotInstalled(Exception):
    """The packages cannot be installed here; the text gives the reason."""


def installed(*packages: str) -> Path:
    """Return a folder whose node_modules has the packages (`name@version`). Raises NotInstalled."""
    if not (shutil.which("node") and shutil.which("npm")):
        raise NotInstalled("Node is not installed")
    name = sha256(" ".join(packages).encode()).hexdigest()[:12]
    kept = Path(tempfile.gettempdir()) / f"paper_assets_node-{os.getuid()}-{name}"
    if kept.is_dir():
        return kept
    new = Path(tempfile.mkdtemp(prefix="paper_assets_node-"))
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(new), *packages]
    try:
        done = subprocess.run(install, capture_output=True, text=True, timeout=_SECONDS)
        if done.returncode:
            raise NotInstalled(f"npm cannot install {', '.join(packages)}: {done.stderr.strip().splitlines()[-1:]}")
        new.rename(kept)
    except subprocess.TimeoutExpired:
        raise NotInstalled(f"npm has not installed {', '.join(packages)} within {_SECONDS} s") from None
    except OSError:
        assert kept.is_dir()  # another run was faster
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return kept
