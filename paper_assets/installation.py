"""Choose the data folder of an installation when no setting names one.

It is the current folder in a checkout, or where that already holds profiles or papers; elsewhere the user's data
folder, so that `uv tool install` and `pipx install` are enough.
"""

from collections.abc import Mapping
from pathlib import Path

from platformdirs import user_data_path

NAME = "paper-assets"


def default_folder(environ: Mapping[str, str], working_dir: Path) -> Path:
    """Return the folder of `data`, `profiles` and `dagster_home` for what no variable sets.

    With PAPER_ASSETS_HOME set it is the working folder, as the variable says where the data is.
    """
    if environ.get("PAPER_ASSETS_HOME", "").strip() or is_desk_folder(working_dir):
        return working_dir
    return user_data_path(NAME, appauthor=False)


def is_desk_folder(folder: Path) -> bool:
    """Return whether a folder is a checkout of this project, or holds profiles or papers already."""
    try:
        checkout = (folder / "pyproject.toml").is_file() and (folder / "paper_assets" / "definitions.py").is_file()
        return (
            checkout
            or (folder / "data" / "warehouse.duckdb").exists()
            or next((folder / "profiles").glob("*/profile.json"), None) is not None
        )
    except OSError:
        return False
