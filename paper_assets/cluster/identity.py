"""Who computes: what must be equal on two machines so that both compute the same bits, and what differs (SPEC X4)."""

import sys
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

import paper_assets
from paper_assets.models.embedder import load_embedder

# Packages whose version may change a vector, a ranking or how either travels.
_PACKAGES = ("dask", "distributed", "cloudpickle", "numpy", "scipy", "pyarrow", "openvino", "tokenizers")
_OWN = "paper_assets"
_VECTORS = "vectors of a sample"
# Texts of several lengths, more word pieces than the way for a few takes: what many texts go through is what is tried.
_SAMPLE = [" ".join(["frogs", "and", "sorting", "networks", "of", "granite"] * times) for times in range(1, 40, 3)]


def identity(model: str | None) -> Mapping[str, str]:
    """What this process would compute with, by name: versions, the package's own files, and the embedding `model`'s
    vectors of a sample (None: no model is needed). Raises ModelUnavailable.
    """
    found = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", **_packages(), _OWN: _own_files()}
    return {**found, _VECTORS: _vectors(model)} if model else found


def difference(mine: Mapping[str, str], theirs: Mapping[str, str]) -> str | None:
    """In words, the first thing that another process has otherwise than this one; None if nothing is."""
    for name, own in mine.items():
        other = theirs.get(name)
        if other == own:
            continue
        if name == _VECTORS:
            return "its processor gives other vectors than this machine's"
        if name == _OWN:
            return "another version of paper_assets"
        return f"{name} {other or 'missing'}, here {own}"
    return None


@cache
def _packages() -> Mapping[str, str]:
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found


@cache
def _own_files() -> str:
    """Digest of every file of the package: its version number alone does not change with each commit."""
    root = Path(paper_assets.__file__).parent
    files = sorted(file for file in root.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    digest = sha256()
    for file in files:
        digest.update(f"{file.relative_to(root).as_posix()} {sha256(file.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


@cache
def _vectors(model: str) -> str:
    embedder = load_embedder(model)
    if embedder.of_batch is None:
        return embedder.name
    rows = np.ascontiguousarray(embedder.of_batch(_SAMPLE), dtype=np.float32)
    return f"{embedder.name} {sha256(rows.tobytes()).hexdigest()}"
