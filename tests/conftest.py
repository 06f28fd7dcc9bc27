"""Fixtures that every room uses: the recorded real data where it lies beside the checkout."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

# A slow machine is no failure of the code; nothing is kept between runs.
settings.register_profile("here", deadline=None, database=None)
settings.load_profile("here")

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with the recorded real data; a test that asks for it is skipped where it is absent."""
    folder = Path(os.environ.get("PAPER_ASSETS_SHARED_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("the recorded real data does not lie beside this checkout")
    return folder
