"""`make dev`: Dagster's daemon, and its page behind our door.

    python -m paper_assets.defs.dev -w workspace.yaml

takes the options of `dagster dev`. That command starts the page as a process of its own, and this one has it started
with the door (`interfaces/graph_page.py`).
"""

import os
from pathlib import Path
from typing import Any

from paper_assets.defs.instance import open_instance
from paper_assets.stores.private import make_files_private

_THEIR_PAGE = "dagster_webserver"
_OUR_PAGE = "paper_assets.interfaces.graph_page"


def main() -> None:
    """Run daemon and page until somebody ends them."""
    from dagster._cli import dev  # the folder's modules are read by every run, which needs no command line

    make_files_private()  # the daemon's runs too
    start = dev.open_ipc_subprocess

    def start_ours(parts: list[str], **options: Any) -> Any:
        return start([_OUR_PAGE if part == _THEIR_PAGE else part for part in parts], **options)

    dev.open_ipc_subprocess = start_ours  # type: ignore[assignment]
    if home := os.environ.get("DAGSTER_HOME"):
        with open_instance(Path(home)):  # writes the settings of this project where there are none
            pass
    dev.dev_command()


if __name__ == "__main__":
    main()
